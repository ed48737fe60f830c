//! Faults of files of certificates.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rcgen::{KeyPair, date_time_ymd};

use crate::made_tests::{Ca, Directory, Made, now, params, self_signed};
use crate::when_expired::WhenExpired;
use crate::{
    Certificate, CertificateFiles, CertificateWarning, Fault, KeyType, Name, Reason, Use, certificates_in,
};

fn load(files: &CertificateFiles) -> Result<Certificate, Fault> {
    Certificate::load(files, Use::Server, now(), &WhenExpired::Refuse)
}

fn leaf() -> Made {
    Ca::new("the CA").issue(&["example.org"])
}

/// The name of the fault of a pair with these contents, and its text.
fn fault(chain: &str, key: &str) -> (&'static str, String) {
    let directory = Directory::new();
    let files = directory.put("bad", &Made { chain: chain.to_owned(), key: key.to_owned() });
    let fault = load(&files).expect_err("a fault");
    let text = fault.to_string();
    assert!(text.contains(&directory.0.display().to_string()), "no file is named: {text}");
    (fault.reason.name(), text)
}

#[test]
fn bad_files_are_refused_by_name() {
    const ENCRYPTED: &str =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIBpjBQ\n-----END ENCRYPTED PRIVATE KEY-----\n";
    const OLD_ENCRYPTED: &str = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n\
                                 MIIBpjBQ\n-----END RSA PRIVATE KEY-----\n";
    let (good, other) = (leaf(), leaf());
    let cut = good.chain.replace("-----END CERTIFICATE-----", "");
    let not_base64 = good.chain.replacen("MII", "M\u{e4}?", 1);
    let not_x509 = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let not_a_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    let two = format!("{}{}", good.key, other.key);
    let one_of_both = format!("{}{ENCRYPTED}", good.key);
    let table: [(&str, &str, &str); 17] = [
        ("", &good.key, "no_certificate"),
        ("rubbish", &good.key, "no_certificate"),
        ("\0\u{1}\n", "", "no_key"),
        (&good.chain, "", "no_key"),
        (&good.chain, "-----BEGIN", "no_key"),
        (&good.chain, &good.chain, "no_key"),
        (&good.key, &good.chain, "swapped"),
        (&cut, &good.key, "malformed_pem"),
        (&not_base64, &good.key, "malformed_pem"),
        (not_x509, &good.key, "malformed_certificate"),
        (&good.chain, not_a_key, "unusable_key"),
        (&good.chain, &two, "several_keys"),
        (&good.chain, ENCRYPTED, "encrypted_key"),
        (&good.chain, OLD_ENCRYPTED, "encrypted_key"),
        (&good.chain, &one_of_both, "encrypted_key"),
        (&good.chain, &other.key, "key_mismatch"),
        (&self_signed(&[]).chain, &self_signed(&[]).key, "key_mismatch"),
    ];
    for (at, (chain, key, expected)) in table.into_iter().enumerate() {
        let (name, text) = fault(chain, key);
        assert_eq!(name, expected, "row {at}: {text}");
    }
    let (_, text) = fault(&good.chain, ENCRYPTED);
    assert!(text.contains("passwords are not supported; decrypt it: openssl pkey -in "), "{text}");
}

#[test]
fn files_that_cannot_be_read_are_refused_by_name() {
    let directory = Directory::new();
    let good = directory.put("good", &leaf());
    let missing = CertificateFiles { chain: directory.0.join("missing.crt"), ..good.clone() };
    assert_eq!(load(&missing).expect_err("a fault").reason.name(), "unreadable");
    let folder = CertificateFiles { chain: directory.0.clone(), ..good.clone() };
    assert_eq!(load(&folder).expect_err("a fault").reason, Reason::NotAFile);
    let device = CertificateFiles { key: "/dev/zero".into(), ..good.clone() };
    assert_eq!(load(&device).expect_err("a fault").reason, Reason::NotAFile);
    let large = directory.write("large.crt", vec![b'x'; (16 << 20) + 1]);
    let large = CertificateFiles { chain: large, ..good };
    assert_eq!(load(&large).expect_err("a fault").reason, Reason::TooLarge);
}

#[test]
fn text_around_the_sections_is_ignored() {
    let made = leaf();
    let directory = Directory::new();
    let chain = format!("Subject: example.org\r\n\u{feff}\n{}\nthe end", made.chain.replace('\n', "\r\n"));
    let key =
        format!("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n{}", made.key);
    let loaded = load(&directory.put("a", &Made { chain, key })).expect("a certificate");
    assert_eq!(loaded.names(), [Name::Dns("example.org".into())]);
}

#[test]
fn one_file_may_hold_both() {
    let made = leaf();
    let directory = Directory::new();
    for text in [format!("{}{}", made.chain, made.key), format!("{}{}", made.key, made.chain)] {
        let path = directory.write("both.pem", text);
        load(&CertificateFiles::in_one(path)).expect("a certificate");
    }
}

#[test]
fn a_chain_is_in_the_order_of_issue() {
    let root = Ca::new("the root");
    let intermediate = root.intermediate("the intermediate");
    let made = intermediate.issue(&["example.org"]);
    let chain = |parts: &[&str]| parts.concat();
    let directory = Directory::new();
    for good in
        [chain(&[&made.chain, &intermediate.pem]), chain(&[&made.chain, &intermediate.pem, &root.pem])]
    {
        let files = directory.put("good", &Made { chain: good, key: made.key.clone() });
        assert_eq!(load(&files).expect("a certificate").warnings(), []);
    }
    let (name, text) = fault(&chain(&[&made.chain, &root.pem, &intermediate.pem]), &made.key);
    assert_eq!(name, "wrong_order");
    assert!(text.contains("certificate 1 in"), "{text}");
    assert!(text.contains("issued by the intermediate, but the next one is that of the root"), "{text}");
    let (name, text) = fault(&chain(&[&intermediate.pem, &made.chain]), &made.key);
    assert_eq!(name, "leaf_not_first");
    assert!(text.contains("number 2"), "{text}");
}

#[test]
fn a_missing_intermediate_is_a_warning() {
    let directory = Directory::new();
    let loaded = load(&directory.put("a", &leaf())).expect("a certificate");
    let [warning @ CertificateWarning::NoIntermediate { issuer, .. }] = loaded.warnings() else {
        panic!("{:?}", loaded.warnings())
    };
    assert_eq!(&**issuer, "the CA");
    assert!(warning.to_string().contains("a.crt holds the certificate alone"), "{warning}");
}

#[test]
fn a_certificate_has_a_time() {
    let issue = |from, until| {
        let mut params = params(&["example.org"]);
        (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
        Ca::new("the CA").issue_with(params, &KeyPair::generate().expect("a key"))
    };
    let expired = issue(2025, 2026);
    let (name, text) = fault(&expired.chain, &expired.key);
    assert_eq!(name, "expired");
    assert!(text.contains("expired at 2026-01-01 00:00:00 UTC; renew it"), "{text}");
    let later = issue(2027, 2028);
    assert_eq!(fault(&later.chain, &later.key).0, "not_yet_valid");
}

#[test]
fn a_server_s_certificate_has_names() {
    let made = self_signed(&[]);
    assert_eq!(fault(&made.chain, &made.key).0, "no_names");
    let directory = Directory::new();
    let files = directory.put("client", &made);
    Certificate::load(&files, Use::Client, now(), &WhenExpired::Refuse).expect("clients need no names");
}

#[test]
fn a_key_that_everyone_may_read_is_a_warning() {
    let directory = Directory::new();
    let files = directory.put("a", &self_signed(&["example.org"]));
    fs::set_permissions(&files.key, fs::Permissions::from_mode(0o644)).expect("a mode");
    let loaded = load(&files).expect("a certificate");
    assert!(loaded.warnings().contains(&CertificateWarning::PublicKeyFile(files.key)));
    assert!(loaded.warnings().contains(&CertificateWarning::SelfSigned(files.chain)));
}

#[test]
fn a_certificate_states_its_names_and_its_key() {
    let directory = Directory::new();
    let made = Ca::new("the CA").issue_rsa(&["WWW.Example.org", "*.example.org", "192.0.2.1", "2001:db8::1"]);
    let loaded = load(&directory.put("a", &made)).expect("a certificate");
    let names: Vec<String> = loaded.names().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["*.example.org", "www.example.org", "192.0.2.1", "2001:db8::1"]);
    assert_eq!((loaded.key_type(), loaded.issuer()), (KeyType::Rsa(2048), "the CA"));
    assert_eq!((loaded.not_before(), loaded.not_after()), (1_767_225_600, 1_798_761_600));
    assert!(!loaded.is_self_signed());
    let curve = load(&directory.put("b", &leaf())).expect("a certificate").key_type();
    assert_eq!(curve, KeyType::Ecdsa(256));
}

#[test]
fn a_directory_holds_pairs_and_files_with_both() {
    let directory = Directory::new();
    let pair = directory.put("b.example", &leaf());
    let made = leaf();
    let both = directory.write("a.pem", format!("{}{}", made.chain, made.key));
    directory.write("README", "text");
    directory.write(".hidden.crt", "text");
    let found = certificates_in(&directory.0).expect("certificates");
    assert_eq!(found, [CertificateFiles::in_one(both), pair]);

    let alone = directory.write("c.crt", leaf().chain);
    let fault = certificates_in(&directory.0).expect_err("a fault");
    assert_eq!(fault, Fault { path: alone, reason: Reason::KeyFileMissing(directory.0.join("c.key")) });
    let empty = Directory::new();
    assert_eq!(certificates_in(&empty.0).expect_err("a fault").reason, Reason::EmptyDirectory);
}

#[test]
fn a_directory_may_have_the_layout_of_certbot() {
    let directory = Directory::new();
    let put = |name: &str| {
        std::fs::create_dir(directory.0.join(name)).expect("a directory");
        let made = leaf();
        let chain = directory.write(&format!("{name}/fullchain.pem"), &made.chain);
        directory.write(&format!("{name}/cert.pem"), &made.chain);
        CertificateFiles { chain, key: directory.write(&format!("{name}/privkey.pem"), &made.key) }
    };
    let (b, a) = (put("b.example"), put("a.example"));
    directory.write("README", "text");
    std::fs::create_dir(directory.0.join("empty")).expect("a directory");
    assert_eq!(certificates_in(&directory.0).expect("certificates"), [a.clone(), b]);
    let beside = directory.put("c.example", &leaf());
    assert_eq!(certificates_in(&directory.0).expect("certificates")[..2], [beside, a.clone()]);

    std::fs::remove_file(&a.key).expect("a file");
    let fault = certificates_in(&directory.0).expect_err("a fault");
    assert_eq!(fault, Fault { path: a.chain, reason: Reason::KeyFileMissing(a.key) });
}
