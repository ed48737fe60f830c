//! Whether backends get the certificates of clients (RFC 9440).

use crate::definition::Value;
use crate::report::{Node, Report};
use crate::setting::Kind;
use crate::suggest::closest;

/// What backends get of a client's verified certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificateForward {
    /// Nothing.
    Off,
    /// `Client-Cert`: the client's own certificate.
    Leaf,
    /// `Client-Cert-Chain` too: the other certificates that the client sent.
    Chain,
}

const WORDS: [&str; 2] = ["leaf", "chain"];

impl Value for ClientCertificateForward {
    fn kind() -> Kind {
        Kind::Either(vec![Kind::Choice(WORDS.to_vec()), Kind::Bool])
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<ClientCertificateForward> {
        let value = node.get_ref();
        match (value.as_bool(), value.as_str()) {
            (Some(false), _) => Some(ClientCertificateForward::Off),
            (_, Some("leaf")) => Some(ClientCertificateForward::Leaf),
            (_, Some("chain")) => Some(ClientCertificateForward::Chain),
            (on, text) => {
                let help = match (on, text) {
                    (Some(true), _) => Some("\"leaf\" is for the client's own certificate alone".to_owned()),
                    (_, Some("false")) => Some("without quotes: false".to_owned()),
                    (_, text) => text
                        .and_then(|text| closest(text, &WORDS))
                        .map(|meant| format!("did you mean \"{meant}\"?")),
                };
                report.unexpected(node, &ClientCertificateForward::kind()).help = help;
                None
            }
        }
    }

    fn show(&self) -> Option<String> {
        Some(match self {
            ClientCertificateForward::Off => "false".to_owned(),
            ClientCertificateForward::Leaf => "\"leaf\"".to_owned(),
            ClientCertificateForward::Chain => "\"chain\"".to_owned(),
        })
    }
}
