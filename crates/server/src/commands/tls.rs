//! `status --tls`: the certificates of the running process.

use std::fmt::Write as _;

use sandarac_message::printable::printable;
use sandarac_tls::civil;

use super::output::table;
use crate::admin::{AcmeStatus, TlsCertificate, TlsListener, TlsStatus};
use crate::human::{count, span};

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
    status.acme.iter().for_each(|certificate| show_acme(&mut out, certificate, now));
    out
}

fn show_acme(out: &mut String, certificate: &AcmeStatus, now: i64) {
    let names = certificate.names.join(", ");
    let at = |seconds: u64| civil(i64::try_from(seconds).unwrap_or(i64::MAX));
    let _ = writeln!(out, "ACME for {names}, by {}:", certificate.directory);
    let valid = match certificate.valid_until {
        Some(end) => format!("valid until {}", at(end)),
        None => "no certificate yet; a self-signed one stands in".to_owned(),
    };
    let left = certificate.next_order.checked_sub(u64::try_from(now).unwrap_or(0));
    let next = match left.filter(|left| *left > 0) {
        Some(left) => format!("next order in {}, at {}", span(left), at(certificate.next_order)),
        None => "an order is pending".to_owned(),
    };
    let _ = writeln!(out, "  {valid}; {next}");
    if let Some(fault) = &certificate.last_fault {
        let failed = count(u64::from(certificate.failed_attempts), "attempt");
        let _ = writeln!(out, "  {failed} failed; the last: {}", printable(fault));
    }
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
        let status = TlsStatus { listeners: vec![listener(Some("wildcard"))], acme: Vec::new() };
        assert_eq!(
            show(&status, Some("www.example.org"), 0),
            ":443: TLS 1.2 and later, client certificates optional\n  \
             www.example.org gets the certificate of a wildcard:\n  \
             *.example.org, example.org  ECDSA P-256  expires in 30 d 0 h, at 1970-01-31 00:00:00 UTC  issued by the CA  \
             /etc/ssl/example.org.crt\n"
        );
        let status = TlsStatus { listeners: vec![listener(None)], acme: Vec::new() };
        assert!(show(&status, None, 86_400 * 31).contains("EXPIRED at 1970-01-31 00:00:00 UTC"));
        assert_eq!(show(&TlsStatus::default(), None, 0), "no listener has TLS\n");
    }

    #[test]
    fn a_certificate_by_acme_is_shown_with_its_next_order_and_its_last_fault() {
        let good = AcmeStatus {
            names: vec!["a.example".to_owned(), "b.example".to_owned()],
            directory: "https://ca.example/".to_owned(),
            next_order: 86_400 * 60,
            valid_until: Some(86_400 * 90),
            ..AcmeStatus::default()
        };
        let failing = AcmeStatus {
            names: vec!["c.example".to_owned()],
            failed_attempts: 2,
            last_fault: Some("not_verified: why".to_owned()),
            next_order: 300,
            valid_until: None,
            ..good.clone()
        };
        let pending = AcmeStatus { failed_attempts: 0, last_fault: None, next_order: 0, ..failing.clone() };
        let status = TlsStatus { listeners: Vec::new(), acme: vec![good, failing, pending] };
        assert_eq!(
            show(&status, None, 0),
            "no listener has TLS\nACME for a.example, b.example, by https://ca.example/:\n  \
             valid until 1970-04-01 00:00:00 UTC; next order in 60 d 0 h, at 1970-03-02 00:00:00 UTC\n\
             ACME for c.example, by https://ca.example/:\n  \
             no certificate yet; a self-signed one stands in; next order in 5 min 0 s, at 1970-01-01 00:05:00 UTC\n  \
             2 attempts failed; the last: not_verified: why\n\
             ACME for c.example, by https://ca.example/:\n  \
             no certificate yet; a self-signed one stands in; an order is pending\n"
        );
    }
}
