//! Faults and doubts of settings, and certificates in reports.

use std::sync::Arc;

use crate::made_tests::{Ca, Directory, loading, now, self_signed};
use crate::when_expired::WhenExpired;
use crate::{
    Certificate, CertificateFiles, Certificates, ClientCertificates, ClientMode, ClientSettings, Identity,
    Match, Reason, ServerSettings, Use, Version, Warning,
};

fn faults(settings: &ServerSettings) -> Vec<&'static str> {
    let faults = settings.load(&loading()).expect_err("a fault");
    faults.iter().map(|fault| fault.reason.name()).collect()
}

#[test]
fn one_bad_pair_among_good_ones_is_refused_by_name() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    for name in ["a", "b", "d"] {
        directory.put(name, &ca.issue(&[&format!("{name}.example")]));
    }
    directory.put("c", &self_signed(&[]));
    let settings = ServerSettings { directory: Some(directory.0.clone()), ..ServerSettings::of(Vec::new()) };
    let found = settings.load(&loading()).expect_err("a fault");
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].path.clone(), found[0].reason.name()), (directory.0.join("c.crt"), "no_names"));
}

#[test]
fn all_faults_are_reported_at_once() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    let good = directory.put("a", &ca.issue(&["a.example"]));
    let missing = CertificateFiles::in_one(directory.0.join("missing.pem"));
    let settings = ServerSettings {
        certificates: vec![good, missing],
        cipher_suites: vec!["TLS_NULL".into()],
        ticket_secret_file: Some(directory.write("secret", [1; 31])),
        ..ServerSettings::of(Vec::new())
    };
    assert_eq!(faults(&settings), ["unreadable", "settings", "short_secret"]);
    assert_eq!(faults(&ServerSettings::of(Vec::new())), ["settings"]);
}

#[test]
fn bad_files_of_client_certificates_are_refused_by_name() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    let certificate = directory.put("a", &ca.issue(&["a.example"]));
    let good = directory.write("good.ca", &ca.pem);
    let text = directory.write("text", "text");
    let malformed =
        directory.write("malformed.crl", "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n");
    let der = directory.write("cut.der", [0x30, 0x82, 1]);
    let not_a_ca = directory.write("x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    for (ca, crl, expected) in [
        (vec![], vec![], "settings"),
        (vec![text.clone()], vec![], "no_certificate"),
        (vec![not_a_ca], vec![], "unusable_ca"),
        (vec![good.clone()], vec![text], "no_revocation_list"),
        (vec![good.clone()], vec![malformed], "malformed_revocation_list"),
        (vec![good], vec![der], "malformed_revocation_list"),
    ] {
        let settings = ServerSettings {
            client_certificates: Some(ClientCertificates { mode: ClientMode::Required, ca, crl }),
            ..ServerSettings::of(vec![certificate.clone()])
        };
        assert_eq!(faults(&settings), [expected]);
    }
}

#[test]
fn suites_must_serve_the_minimum_version() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    let settings = ServerSettings {
        cipher_suites: vec!["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256".into()],
        minimum_version: Version::Tls13,
        ..ServerSettings::of(vec![directory.put("a", &ca.issue(&["a.example"]))])
    };
    assert_eq!(faults(&settings), ["settings"]);
}

#[test]
fn suites_must_fit_a_certificate() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    let (ecdsa, rsa) =
        (directory.put("a", &ca.issue(&["a.example"])), directory.put("b", &ca.issue_rsa(&["a.example"])));
    let settings = |certificates| ServerSettings {
        cipher_suites: vec!["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256".into()],
        ..ServerSettings::of(certificates)
    };
    assert_eq!(faults(&settings(vec![ecdsa.clone()])), ["settings"]);
    settings(vec![rsa.clone()]).load(&loading()).expect("it fits");
    settings(vec![ecdsa, rsa]).load(&loading()).expect("it fits one of them");
}

#[test]
fn a_ca_without_a_revocation_list_is_a_warning_if_there_are_lists() {
    let (ca, other, directory) = (Ca::new("the CA"), Ca::new("another CA"), Directory::new());
    let (file, list) = (directory.write("ca", &ca.pem), directory.write("other.crl", other.revoke(1, 2030)));
    let of = |crl: Vec<_>| ServerSettings {
        client_certificates: Some(ClientCertificates {
            mode: ClientMode::Optional,
            ca: vec![file.clone()],
            crl,
        }),
        ..ServerSettings::of(vec![directory.put("a", &ca.issue(&["a.example"]))])
    };
    let uncovered = |settings: ServerSettings| {
        let warnings = settings.load(&loading()).expect("settings").warnings;
        warnings.into_iter().find(|warning| matches!(warning, Warning::UncoveredCa(..)))
    };
    assert_eq!(uncovered(of(vec![])), None);
    assert_eq!(
        uncovered(of(vec![list.clone()])),
        Some(Warning::UncoveredCa(file.clone(), "CN=the CA".into()))
    );
    let own = directory.write("own.crl", ca.revoke(1, 2030));
    assert_eq!(uncovered(of(vec![list, own])), None);
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_file() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    let files = directory.put("a", &ca.issue(&["a.example"]));
    for path in [&files.chain, &files.key] {
        let text = std::fs::read_to_string(path).expect("a file");
        std::fs::write(path, format!("\u{feff}{text}")).expect("a directory");
    }
    ServerSettings::of(vec![files]).load(&loading()).expect("settings");
}

#[test]
fn an_outdated_revocation_list_is_a_warning() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    let crl = directory.write("old.crl", ca.revoke(1, 2026));
    let settings = ServerSettings {
        client_certificates: Some(ClientCertificates {
            mode: ClientMode::Optional,
            ca: vec![directory.write("ca", &ca.pem)],
            crl: vec![crl.clone()],
        }),
        ..ServerSettings::of(vec![directory.put("a", &ca.issue(&["a.example"]))])
    };
    let warnings = settings.load(&loading()).expect("settings").warnings;
    assert!(warnings.contains(&Warning::OutdatedRevocationList(crl, 1_767_225_600)), "{warnings:?}");
}

#[test]
fn the_first_of_two_certificates_for_a_name_is_used() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    let first = directory.put("first", &ca.issue(&["example.org"]));
    let second = directory.put("second", &ca.issue(&["example.org", "www.example.org"]));
    let tls = ServerSettings::of(vec![first.clone(), second]).load(&loading()).expect("settings");
    let shadowed = tls.warnings.iter().filter(|warning| matches!(warning, Warning::Shadowed(_)));
    let texts: Vec<String> = shadowed.map(ToString::to_string).collect();
    assert_eq!(texts.len(), 1);
    assert!(
        texts[0].ends_with("are both for example.org with the same kind of key; the first is used"),
        "{texts:?}"
    );
    let (_, chosen) = tls.certificates.for_name(Some("example.org"));
    assert_eq!(chosen[0].files(), Some(&first));
}

#[test]
fn a_report_names_the_certificate_of_a_name() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    let load = |name: &str, names: &[&str]| {
        let files = directory.put(name, &ca.issue(names));
        Arc::new(Certificate::load(&files, Use::Server, now(), &WhenExpired::Refuse).expect("a certificate"))
    };
    let all = vec![load("a", &["a.example"]), load("b", &["*.b.example"])];
    let (certificates, _) = Certificates::new(all, 0, None);
    let long = "x".repeat(300);
    for (name, expected, file) in [
        (Some("A.Example."), Match::Exact, "a.crt"),
        (Some("x.b.example"), Match::Wildcard, "b.crt"),
        (Some("*.b.example"), Match::Exact, "b.crt"),
        (Some("b.example"), Match::Default, "a.crt"),
        (Some("192.0.2.1"), Match::Default, "a.crt"),
        (Some(""), Match::Default, "a.crt"),
        (Some("."), Match::Default, "a.crt"),
        (Some("\0"), Match::Default, "a.crt"),
        (Some(&long), Match::Default, "a.crt"),
        (None, Match::Default, "a.crt"),
    ] {
        let (found, chosen) = certificates.for_name(name);
        let identity = Identity::from(&*chosen[0]);
        assert_eq!((found, identity.path), (expected, Some(directory.0.join(file))), "{name:?}");
        assert_eq!((identity.issuer.as_str(), identity.digest.len()), ("the CA", 64));
    }
}

#[test]
fn faults_of_settings_to_origins_are_named() {
    let directory = Directory::new();
    let text = directory.write("text", "text");
    let settings = ClientSettings {
        ca: vec![text.clone()],
        client_certificate: Some(CertificateFiles::in_one(text)),
        ..ClientSettings::default()
    };
    let names: Vec<_> =
        settings.load(now()).expect_err("faults").into_iter().map(|fault| fault.reason).collect();
    assert_eq!(names, [Reason::NoCertificate, Reason::NoKey]);
}

#[test]
fn origins_are_verified_by_a_given_ca_or_not_at_all() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    let of_client = directory.put("client", &self_signed(&[]));
    let settings = ClientSettings {
        ca: vec![directory.write("ca", &ca.pem)],
        client_certificate: Some(of_client),
        ..ClientSettings::default()
    };
    let tls = settings.load(now()).expect("settings");
    assert!(tls.warnings.is_empty(), "{:?}", tls.warnings);
    assert!(tls.config.client_auth_cert_resolver.has_certs());
    let unverified = ClientSettings { dangerous_skip_verification: true, ..ClientSettings::default() };
    unverified.load(now()).expect("settings without a CA");
}
