//! Certificates by ACME as the file writes them.

use sandarac_message::dns_name::certifiable;

use crate::definition::settings;
use crate::path::AbsolutePath;
use crate::report::{At, Complaint};
use crate::setting::Kind;
use crate::value::Text;

settings! {
    /// A certificate from a CA by ACME (RFC 8555), obtained and renewed without further ado. Using it accepts the terms of
    /// service of the CA. See [HTTPS with ACME](../how-to/https-with-acme.md).
    pub(crate) struct AcmeSettings {
        /// The names of the certificate. Each must lead to this machine, or to a node with the same `state`.
        names: Vec<At<CertifiedName>> = Vec::new(), required "\"example.org\"";
        /// A mail address for notices of the CA.
        contact: Option<At<MailAddress>> = None, unset "none" "\"admin@example.org\"";
        /// The URL of the CA's directory.
        directory: Option<At<DirectoryUrl>> = None, unset "that of Let's Encrypt" "\"https://ca.internal/acme/directory\"";
        /// Whether Let's Encrypt's staging environment is used, for trials: its limits are looser, and browsers do not
        /// trust its certificates.
        staging: At<bool> = At::nowhere(false);
        /// The directory of account, certificates and pending orders, made with mode 0700 if it is missing. Nodes that
        /// share it obtain one certificate together.
        // The FHS's place for the state of a service; systemd's `StateDirectory=sandarac` makes its parent.
        state: AbsolutePath = AbsolutePath::of("/var/lib/sandarac/acme");
        /// A file with the root certificates that the CA's own server is verified with, in PEM, for a private CA.
        ca: Option<AbsolutePath> = None, unset "those of the system" "\"/etc/ssl/internal-ca.pem\"";
        /// The credentials of a customer, for CAs that take nobody else (RFC 8555 §7.3.4).
        external_account: Option<At<ExternalAccountSettings>> = None, unset "none"
            "{ key_id = \"kid-1\", key_file = \"/etc/sandarac/eab\" }";
    }

    /// The credentials that bind an ACME account to a customer of the CA.
    pub(crate) struct ExternalAccountSettings {
        /// The identifier of the key, from the CA.
        key_id: Option<At<String>> = None, required "\"kid-1\"";
        /// A file with the HMAC key in Base64url, from the CA.
        key_file: Option<At<AbsolutePath>> = None, required "\"/etc/sandarac/eab\"";
    }
}

/// A name that a CA can certify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertifiedName(pub(crate) Box<str>);

impl Text for CertifiedName {
    fn form() -> Kind {
        Kind::Text { name: "host name", form: "the name of a host", examples: &["example.org"] }
    }

    fn from_text(text: &str) -> Result<CertifiedName, Complaint> {
        match certifiable(text) {
            Ok(name) => Ok(CertifiedName(name.into())),
            Err(why) => Err(Complaint::new(format!("{text:?} {why}"))),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// A mail address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MailAddress(pub(crate) Box<str>);

impl Text for MailAddress {
    fn form() -> Kind {
        Kind::Text { name: "mail address", form: "a mail address", examples: &["admin@example.org"] }
    }

    fn from_text(text: &str) -> Result<MailAddress, Complaint> {
        // The rest is for the CA to judge.
        let is_part = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic());
        let is_plain = !text.contains([',', '?', ':', '<', '>']);
        match text.split_once('@').is_some_and(|(user, host)| is_part(user) && is_part(host) && is_plain) {
            true => Ok(MailAddress(text.into())),
            false => Err(Complaint::new(format!("{text:?} is not {}", MailAddress::form().words()))),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// The URL of a directory of ACME.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryUrl(pub(crate) Box<str>);

impl Text for DirectoryUrl {
    fn form() -> Kind {
        let examples = &["https://acme-v02.api.letsencrypt.org/directory"];
        Kind::Text { name: "URL", form: "a URL of https", examples }
    }

    fn from_text(text: &str) -> Result<DirectoryUrl, Complaint> {
        let host = text.strip_prefix("https://").and_then(|rest| rest.split(['/', '?']).next());
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        match host.is_some_and(|host| !host.is_empty() && !host.contains(['@', '#'])) && is_plain {
            true => Ok(DirectoryUrl(text.into())),
            false => Err(Complaint::new(format!("{text:?} is not {}", DirectoryUrl::form().words()))),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}
