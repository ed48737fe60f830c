//! `Client-Cert` and `Client-Cert-Chain`, by which backends learn the certificates of a client (RFC 9440).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use sandarac_config::ClientCertificateForward;
use sandarac_message::{Field, Fields, FieldsBuf, TooLarge};
use sandarac_policy::KeyRule;

const CLIENT_CERT: &[u8] = b"Client-Cert";
const CLIENT_CERT_CHAIN: &[u8] = b"Client-Cert-Chain";

/// Fields by which other proxies describe a client's certificate, and those whose names continue one of these
/// after a hyphen.
const OF_OTHER_PROXIES: [&[u8]; 13] = [
    // nginx and HAProxy by their examples, ingress-nginx, Apache httpd.
    b"X-SSL-Client",
    b"SSL-Client",
    b"X-SSL-Cert",
    b"X-Client-Cert",
    b"X-Client-Certificate",
    b"X-Client-Verify",
    b"X-Client-DN",
    b"X-Client-S-DN",
    // Envoy, Traefik, the load balancers of Amazon and Azure, WebLogic.
    b"X-Forwarded-Client-Cert",
    b"X-Forwarded-TLS-Client-Cert",
    b"X-Amzn-Mtls",
    b"X-ARR-ClientCert",
    b"WL-Proxy-Client-Cert",
];

/// Whether a field is `Client-Cert` or `Client-Cert-Chain`, or one that servers with CGI's variables take for
/// it.
pub(crate) fn is_client_certificate(field: &Field<'_>) -> bool {
    let is = |name: &[u8]| field.name.len() == name.len() && begins_with(field.name, name);
    is(CLIENT_CERT) || is(CLIENT_CERT_CHAIN)
}

/// Whether other proxies describe a client's certificate in a field of this name.
pub(crate) fn is_of_other_proxies(field: &Field<'_>) -> bool {
    OF_OTHER_PROXIES.iter().any(|name| {
        begins_with(field.name, name) && matches!(field.name.get(name.len()), None | Some(b'-' | b'_'))
    })
}

/// Whether `name` begins with `prefix` as servers with CGI's variables read it: `Client_Cert` is
/// `Client-Cert`.
fn begins_with(name: &[u8], prefix: &[u8]) -> bool {
    let same = |(a, b): (&u8, &u8)| a.eq_ignore_ascii_case(b) || (*a == b'_' && *b == b'-');
    name.len() >= prefix.len() && name.iter().zip(prefix).all(same)
}

/// Whether a rule keys the client's own certificate, so that each has responses of its own.
pub(crate) fn keys_certificate(rule: &KeyRule) -> bool {
    keys(rule, CLIENT_CERT)
}

fn keys(rule: &KeyRule, name: &[u8]) -> bool {
    rule.fields.iter().any(|keyed| keyed.eq_ignore_ascii_case(name))
}

/// The fields of a request from a client that is not trusted, with the certificates of its connection in
/// place of those that it claims, as far as the rule keys them. The key, the request to the backend and
/// `Vary` then see what was verified.
pub(crate) fn with_certificates(
    fields: Fields<'_>,
    certificates: &[CertificateDer<'_>],
    rule: &KeyRule,
) -> Result<FieldsBuf, TooLarge> {
    let mut kept = FieldsBuf::new();
    kept.extend(fields, |field| !is_client_certificate(field))?;
    let forward = match keys(rule, CLIENT_CERT_CHAIN) {
        true => ClientCertificateForward::Chain,
        false => ClientCertificateForward::Leaf,
    };
    add_client_certificate(&mut kept, certificates, forward)?;
    Ok(kept)
}

/// Adds the certificates of a client, its own first; nothing if it has none.
pub(crate) fn add_client_certificate(
    fields: &mut FieldsBuf,
    certificates: &[CertificateDer<'_>],
    forward: ClientCertificateForward,
) -> Result<(), TooLarge> {
    let ([leaf, issuers @ ..], ClientCertificateForward::Leaf | ClientCertificateForward::Chain) =
        (certificates, forward)
    else {
        return Ok(());
    };
    fields.push(CLIENT_CERT, byte_sequence(leaf).as_bytes())?;
    if forward == ClientCertificateForward::Chain && !issuers.is_empty() {
        let chain: Vec<String> = issuers.iter().map(byte_sequence).collect();
        fields.push(CLIENT_CERT_CHAIN, chain.join(", ").as_bytes())?;
    }
    Ok(())
}

/// A byte sequence as a structured field writes it (RFC 9651 §3.3.5).
fn byte_sequence(certificate: &CertificateDer<'_>) -> String {
    format!(":{}:", STANDARD.encode(certificate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_other_proxies_are_known_in_all_their_spellings() {
        let is_known = |name: &str| {
            let fields: FieldsBuf = [(name, "x")].into_iter().collect();
            fields.view().iter().all(|field| is_of_other_proxies(&field))
        };
        for name in
            ["X-SSL-Client-S-DN", "ssl_client_verify", "x-forwarded-client-cert", "X-Amzn-Mtls-Clientcert"]
        {
            assert!(is_known(name), "{name}");
        }
        // `Client-Cert` is ours.
        for name in ["Client-Cert", "X-Client-DNS", "X-SSL", "X-Client", "SSL-Clients"] {
            assert!(!is_known(name), "{name}");
        }
    }

    fn added(certificates: &[&'static [u8]], forward: ClientCertificateForward) -> Vec<(String, String)> {
        let certificates: Vec<_> = certificates.iter().map(|der| CertificateDer::from(*der)).collect();
        let mut fields = FieldsBuf::new();
        add_client_certificate(&mut fields, &certificates, forward).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        fields.view().iter().map(|field| (text(field.name), text(field.value))).collect()
    }

    #[test]
    fn the_leaf_is_a_byte_sequence_and_the_chain_a_list_without_it() {
        let chain: [&[u8]; 3] = [b"leaf", b"one", b"two"];
        let leaf = ("Client-Cert".to_owned(), ":bGVhZg==:".to_owned());
        let rest = ("Client-Cert-Chain".to_owned(), ":b25l:, :dHdv:".to_owned());
        assert_eq!(added(&chain, ClientCertificateForward::Off), []);
        assert_eq!(added(&[], ClientCertificateForward::Chain), []);
        assert_eq!(added(&chain, ClientCertificateForward::Leaf), std::slice::from_ref(&leaf));
        assert_eq!(added(&chain[..1], ClientCertificateForward::Chain), std::slice::from_ref(&leaf));
        assert_eq!(added(&chain, ClientCertificateForward::Chain), [leaf, rest]);
    }
}
