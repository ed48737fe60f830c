//! `status --tls`: the certificates of the running process.

use std::fmt::Write as _;

use sandarac_message::printable::printable;
use sandarac_tls::civil;

use super::output::table;
use crate::admin::{TlsCertificate, TlsListener, TlsStatus};
use crate::human::span;

/// The certificates, as text. `now` is in seconds since 1970.
pub(super) fn show(status: &TlsStatus, name: Option<&str>, now: i64) -> String {
    let mut out = String::new();
    if status.listeners.is_empty() {
        out.push_str("no listener has TLS\n");
    }
    for TlsListener { address, minimum_version, client_certificates, certificates, chosen } in
        &status.listeners
    {
        let clients = match client_certificates {
            Some(mode) => format!(", client certificates {mode}"),
            None => String::new(),
        };
        let _ = writeln!(out, "{address}: TLS {minimum_version} and later{clients}");
        if let (Some(name), Some(chosen)) = (name, chosen) {
            let name = printable(name);
            let _ = match chosen.as_str() {
                "exact" => writeln!(out, "  {name} gets the certificate of that name:"),
                "wildcard" => writeln!(out, "  {name} gets the certificate of a wildcard:"),
                _ => writeln!(
                    out,
                    "  {name} is in no certificate; clients get the default one, and refuse it:"
                ),
            };
        }
        if certificates.is_empty() {
            out.push_str("  no certificate yet\n");
        }
        let rows: Vec<_> = certificates.iter().map(|certificate| row(certificate, now)).collect();
        table(&rows, 0).lines().for_each(|line| _ = writeln!(out, "  {line}"));
    }
    out
}

fn row(certificate: &TlsCertificate, now: i64) -> Vec<String> {
    let left = certificate.valid_until.saturating_sub(now);
    let expiry = match u64::try_from(left) {
        Ok(left) => format!("expires in {}, at {}", span(left), civil(certificate.valid_until)),
        Err(_) => format!("EXPIRED at {}", civil(certificate.valid_until)),
    };
    let issuer = match certificate.self_signed {
        true => "self-signed".to_owned(),
        false => format!("issued by {}", certificate.issuer),
    };
    vec![
        certificate.names.join(", "),
        certificate.key.clone(),
        expiry,
        issuer,
        certificate.path.clone().unwrap_or_else(|| "from ACME".to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_with_the_certificate_it_gets() {
        let certificate = TlsCertificate {
            names: vec!["*.example.org".to_owned(), "example.org".to_owned()],
            path: Some("/etc/ssl/example.org.crt".to_owned()),
            issuer: "the CA".to_owned(),
            key: "ECDSA P-256".to_owned(),
            self_signed: false,
            valid_from: 0,
            valid_until: 86_400 * 30,
            sha256: String::new(),
        };
        let listener = |chosen: Option<&str>| TlsListener {
            address: ":443".to_owned(),
            minimum_version: "1.2".to_owned(),
            client_certificates: Some("optional".to_owned()),
            certificates: vec![certificate.clone()],
            chosen: chosen.map(str::to_owned),
        };
        let status = TlsStatus { listeners: vec![listener(Some("wildcard"))] };
        assert_eq!(
            show(&status, Some("www.example.org"), 0),
            ":443: TLS 1.2 and later, client certificates optional\n  \
             www.example.org gets the certificate of a wildcard:\n  \
             *.example.org, example.org  ECDSA P-256  expires in 30 d 0 h, at 1970-01-31 00:00:00 UTC  issued by the CA  \
             /etc/ssl/example.org.crt\n"
        );
        let status = TlsStatus { listeners: vec![listener(None)] };
        assert!(show(&status, None, 86_400 * 31).contains("EXPIRED at 1970-01-31 00:00:00 UTC"));
        assert_eq!(show(&TlsStatus::default(), None, 0), "no listener has TLS\n");
    }
}
