//! Handshakes in memory between rustls' client and the configurations made here.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CustomExtension, KeyPair, SerialNumber};
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use rustls::sign::CertifiedKey;
use rustls::{
    ClientConfig, ClientConnection, Connection, HandshakeKind, NamedGroup, ProtocolVersion, RootCertStore,
    ServerConfig, ServerConnection,
};

use crate::made_tests::{Ca, Directory, Made, Still, loading, now, params, self_signed};
use crate::{
    ACME_TLS_ALPN, Certificate, ClientCertificates, ClientMode, Loading, ServerSettings, Version,
    cipher_suite, provider,
};

/// What a client is set to.
struct Client {
    ca: String,
    suites: Vec<&'static str>,
    protocols: Vec<&'static [u8]>,
    certificate: Option<Made>,
}

impl Client {
    fn trusting(ca: &Ca) -> Client {
        Client { ca: ca.pem.clone(), suites: Vec::new(), protocols: Vec::new(), certificate: None }
    }

    fn config(self) -> Arc<ClientConfig> {
        let mut crypto = (**provider()).clone();
        if !self.suites.is_empty() {
            crypto.cipher_suites =
                self.suites.iter().map(|name| cipher_suite(name).expect("a suite")).collect();
        }
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.ca.as_bytes()).expect("a CA")).expect("a root");
        let builder = ClientConfig::builder_with_details(Arc::new(crypto), Arc::new(Still))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let mut config = match self.certificate {
            None => builder.with_no_client_auth(),
            Some(Made { chain, key }) => {
                let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).map(|one| one.expect("PEM"));
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
                builder.with_client_auth_cert(chain.collect(), key).expect("a certificate")
            }
        };
        config.alpn_protocols = self.protocols.iter().map(|protocol| protocol.to_vec()).collect();
        config.resumption = Resumption::in_memory_sessions(8);
        Arc::new(config)
    }
}

/// How a handshake ended.
#[derive(Debug)]
struct Done {
    client: ClientConnection,
    server: ServerConnection,
}

impl Done {
    fn certificate(&self) -> &CertificateDer<'static> {
        &self.client.peer_certificates().expect("a certificate")[0]
    }

    fn was_resumed(&self) -> bool {
        self.server.handshake_kind() == Some(HandshakeKind::Resumed)
    }
}

fn handshake(
    client: &Arc<ClientConfig>,
    server: &Arc<ServerConfig>,
    name: &str,
) -> Result<Done, rustls::Error> {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let client = ClientConnection::new(client.clone(), name).expect("a client");
    let server = ServerConnection::new(server.clone()).expect("a server");
    let mut done = (Connection::from(client), Connection::from(server));
    for _ in 0..8 {
        carry(&mut done.0, &mut done.1)?;
        carry(&mut done.1, &mut done.0)?;
    }
    match done {
        (Connection::Client(client), Connection::Server(server)) => {
            assert!(!client.is_handshaking() && !server.is_handshaking());
            Ok(Done { client, server })
        }
        _ => unreachable!("a client and a server"),
    }
}

fn carry(from: &mut Connection, to: &mut Connection) -> Result<(), rustls::Error> {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).expect("a buffer");
    }
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        to.read_tls(&mut rest as &mut dyn io::Read).expect("a buffer");
        to.process_new_packets()?;
    }
    Ok(())
}

fn server(settings: &ServerSettings, loading: &Loading) -> Arc<ServerConfig> {
    settings.load(loading).unwrap_or_else(|faults| panic!("{faults:?}")).config
}

fn der(made: &Made) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(made.chain.as_bytes()).expect("PEM")
}

#[test]
fn the_name_chooses_the_certificate() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    let first = ca.issue(&["first.example"]);
    let wild = ca.issue(&["*.example.org", "example.org"]);
    let exact = ca.issue(&["www.example.org"]);
    let files =
        [("first", &first), ("wild", &wild), ("exact", &exact)].map(|(name, made)| directory.put(name, made));
    let config = server(&ServerSettings::of(files.to_vec()), &loading());
    let client = Client::trusting(&ca).config();
    for (name, expected) in [
        ("first.example", &first),
        ("FIRST.example.", &first),
        ("example.org", &wild),
        ("a.example.org", &wild),
        ("www.example.org", &exact),
    ] {
        let done = handshake(&client, &config, name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(*done.certificate(), der(expected), "{name}");
    }
    // These names get the default certificate, which clients refuse.
    for name in ["b.a.example.org", "other.example", "192.0.2.1"] {
        let error = handshake(&client, &config, name).expect_err("another name");
        assert!(matches!(error, rustls::Error::InvalidCertificate(_)), "{name}: {error}");
    }
}

#[test]
fn a_client_without_a_name_gets_the_default_certificate() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    let of_address = ca.issue(&["192.0.2.1"]);
    let files = vec![directory.put("a", &ca.issue(&["a.example"])), directory.put("b", &of_address)];
    let settings = ServerSettings { default: Some(1), ..ServerSettings::of(files) };
    let config = server(&settings, &loading());
    let done = handshake(&Client::trusting(&ca).config(), &config, "192.0.2.1").expect("a handshake");
    assert_eq!(*done.certificate(), der(&of_address));
    assert_eq!(done.server.server_name(), None);
}

#[test]
fn rsa_and_ecdsa_stand_side_by_side() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    let (rsa, ecdsa) = (ca.issue_rsa(&["example.org"]), ca.issue(&["example.org"]));
    let files = vec![directory.put("rsa", &rsa), directory.put("ecdsa", &ecdsa)];
    let config = server(&ServerSettings::of(files), &loading());
    for (suites, expected) in [
        (vec![], &ecdsa),
        (vec!["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"], &rsa),
        (vec!["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"], &ecdsa),
    ] {
        let client = Client { suites, ..Client::trusting(&ca) }.config();
        let done = handshake(&client, &config, "example.org").expect("a handshake");
        assert_eq!(*done.certificate(), der(expected));
    }
}

#[test]
fn the_minimum_version_is_kept() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    let files = vec![directory.put("a", &ca.issue(&["example.org"]))];
    let old = || {
        Client { suites: vec!["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"], ..Client::trusting(&ca) }.config()
    };
    let done = handshake(&old(), &server(&ServerSettings::of(files.clone()), &loading()), "example.org");
    assert_eq!(done.expect("TLS 1.2").client.protocol_version(), Some(ProtocolVersion::TLSv1_2));
    let settings = ServerSettings { minimum_version: Version::Tls13, ..ServerSettings::of(files) };
    let error = handshake(&old(), &server(&settings, &loading()), "example.org").expect_err("TLS 1.3 only");
    assert!(matches!(error, rustls::Error::PeerIncompatible(_)), "{error}");
}

#[test]
fn the_hybrid_group_is_negotiated() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    let config =
        server(&ServerSettings::of(vec![directory.put("a", &ca.issue(&["example.org"]))]), &loading());
    let done = handshake(&Client::trusting(&ca).config(), &config, "example.org").expect("a handshake");
    let group = done.server.negotiated_key_exchange_group().expect("a group");
    assert_eq!(group.name(), NamedGroup::X25519MLKEM768);
    assert_eq!(done.client.handshake_kind(), Some(HandshakeKind::Full), "no retry for another group");
}

#[test]
fn suites_are_those_of_the_settings() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    let settings = ServerSettings {
        cipher_suites: vec!["TLS_CHACHA20_POLY1305_SHA256".into()],
        ..ServerSettings::of(vec![directory.put("a", &ca.issue(&["example.org"]))])
    };
    let done = handshake(&Client::trusting(&ca).config(), &server(&settings, &loading()), "example.org");
    let suite = done.expect("a handshake").client.negotiated_cipher_suite().expect("a suite");
    assert_eq!(crate::registered_name(suite), "TLS_CHACHA20_POLY1305_SHA256");
}

/// Connects twice with the same client, and reports whether the second connection was resumed.
fn resumes(client: &Arc<ClientConfig>, first: &Arc<ServerConfig>, second: &Arc<ServerConfig>) -> bool {
    assert!(!handshake(client, first, "example.org").expect("a handshake").was_resumed());
    handshake(client, second, "example.org").expect("a handshake").was_resumed()
}

#[test]
fn tickets_are_accepted_by_nodes_with_the_same_secret() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    let files = vec![directory.put("a", &ca.issue(&["example.org"]))];
    let secret = directory.write("secret", [7; 32]);
    let alone = ServerSettings::of(files);
    let shared = ServerSettings { ticket_secret_file: Some(secret), ..alone.clone() };
    for suites in [vec![], vec!["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"]] {
        let client = || Client { suites: suites.clone(), ..Client::trusting(&ca) }.config();
        assert!(resumes(&client(), &server(&shared, &loading()), &server(&shared, &loading())), "{suites:?}");
        assert!(!resumes(&client(), &server(&alone, &loading()), &server(&alone, &loading())), "{suites:?}");
        let process = loading();
        assert!(resumes(&client(), &server(&alone, &process), &server(&alone, &process)), "after a reload");
    }
}

/// The fault of nginx in CVE-2025-23419.
#[test]
fn a_ticket_earned_under_other_checks_ends_in_a_full_handshake() {
    let directory = Directory::new();
    let (ca, first, second) = (Ca::new("the CA"), Ca::new("clients A"), Ca::new("clients B"));
    let secret = directory.write("secret", [7; 32]);
    let (ca_a, ca_b) = (directory.write("a.ca", &first.pem), directory.write("b.ca", &second.pem));
    let crl = directory.write("b.crl", second.revoke(1, 2028));
    let open = ServerSettings {
        ticket_secret_file: Some(secret),
        ..ServerSettings::of(vec![directory.put("a", &ca.issue(&["example.org"]))])
    };
    let with = |mode, ca: &[_], crl: &[_]| ServerSettings {
        client_certificates: Some(ClientCertificates { mode, ca: ca.to_vec(), crl: crl.to_vec() }),
        ..open.clone()
    };
    use ClientMode::{Optional, Required};
    let earned = with(Required, &[ca_a.clone(), ca_b.clone()], &[]);
    let client = |suites: &[&'static str]| {
        let certificate = Some(second.issue(&["client"]));
        Client { suites: suites.to_vec(), certificate, ..Client::trusting(&ca) }.config()
    };
    for suites in [&[][..], &["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"]] {
        let resumes = |other: &ServerSettings| {
            resumes(&client(suites), &server(&earned, &loading()), &server(other, &loading()))
        };
        assert!(resumes(&earned));
        assert!(
            resumes(&with(Required, &[ca_b.clone(), ca_a.clone()], &[])),
            "the order of the files does not count"
        );
        assert!(!resumes(&with(Required, std::slice::from_ref(&ca_b), &[])), "another set of CAs");
        assert!(!resumes(&with(Optional, &[ca_a.clone(), ca_b.clone()], &[])), "another mode");
        assert!(
            !resumes(&with(Required, &[ca_a.clone(), ca_b.clone()], std::slice::from_ref(&crl))),
            "a new list"
        );
        assert!(!resumes(&open), "no client certificates");
    }
    // After a reload without the client's CA, its ticket does not let it in.
    let client = client(&[]);
    handshake(&client, &server(&earned, &loading()), "example.org").expect("a handshake");
    let reloaded = server(&with(Required, &[ca_a], &[]), &loading());
    let error = handshake(&client, &reloaded, "example.org").expect_err("an unknown CA");
    assert!(matches!(error, rustls::Error::InvalidCertificate(_)), "{error}");
}

#[test]
fn clients_are_asked_for_certificates() {
    let directory = Directory::new();
    let (ca, clients) = (Ca::new("the CA"), Ca::new("the clients' CA"));
    let with = |mode, crl: Option<String>| ServerSettings {
        client_certificates: Some(ClientCertificates {
            mode,
            ca: vec![directory.write("clients.ca", &clients.pem)],
            crl: crl.into_iter().map(|list| directory.write("clients.crl", list)).collect(),
        }),
        ..ServerSettings::of(vec![directory.put("a", &ca.issue(&["example.org"]))])
    };
    let good = || {
        let mut params = params(&["client"]);
        params.serial_number = Some(SerialNumber::from(7));
        clients.issue_with(params, &KeyPair::generate().expect("a key"))
    };
    use ClientMode::{Optional, Required};
    // The settings, the client's certificate, and whether it gets a connection.
    let table = [
        (with(Required, None), Some(good()), true),
        (with(Required, None), None, false),
        (with(Required, None), Some(self_signed(&["client"])), false),
        (with(Optional, None), None, true),
        (with(Optional, None), Some(good()), true),
        (with(Optional, None), Some(self_signed(&["client"])), false),
    ];
    for (at, (settings, certificate, is_accepted)) in table.into_iter().enumerate() {
        let has_one = certificate.is_some();
        let client = Client { certificate, ..Client::trusting(&ca) }.config();
        let done = handshake(&client, &server(&settings, &loading()), "example.org");
        assert_eq!(done.is_ok(), is_accepted, "row {at}: {done:?}");
        if let Ok(done) = done {
            assert_eq!(done.server.peer_certificates().is_some(), has_one, "row {at}");
        }
    }
    let revoked =
        [(clients.revoke(8, 2028), true), (clients.revoke(7, 2028), false), (clients.revoke(8, 2026), false)];
    for (at, (list, is_accepted)) in revoked.into_iter().enumerate() {
        let client = Client { certificate: Some(good()), ..Client::trusting(&ca) }.config();
        let done = handshake(&client, &server(&with(Required, Some(list)), &loading()), "example.org");
        assert_eq!(done.is_ok(), is_accepted, "list {at}: {done:?}");
    }
}

#[test]
fn challenges_are_answered_only_in_their_protocol() {
    let (ca, directory, loading) = (Ca::new("the CA"), Directory::new(), loading());
    let usual = ca.issue(&["example.org"]);
    let settings = ServerSettings {
        has_runtime_certificates: true,
        ..ServerSettings::of(vec![directory.put("a", &usual)])
    };
    let config = server(&settings, &loading);
    let acme = || Client { protocols: vec![ACME_TLS_ALPN], ..Client::trusting(&ca) }.config();
    let error = handshake(&acme(), &config, "example.org").expect_err("no challenge is pending");
    assert!(error.to_string().contains("no server certificate chain resolved"), "{error}");

    let mut params = params(&["example.org"]);
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(&[1; 32])];
    let challenge = ca.issue_with(params, &KeyPair::generate().expect("a key"));
    let key = PrivateKeyDer::from_pem_slice(challenge.key.as_bytes()).expect("a key");
    let key = provider().key_provider.load_private_key(key).expect("a key");
    loading.runtime.set_challenge("Example.org", Arc::new(CertifiedKey::new(vec![der(&challenge)], key)));
    // A client that knows no certificate extension of ACME refuses the certificate: it saw the right one.
    let refused = handshake(&acme(), &config, "example.org").expect_err("a critical extension");
    assert!(refused.to_string().contains("UnsupportedCriticalExtension"), "{refused}");
    for protocols in [vec![], vec![&b"http/1.1"[..]]] {
        let client = Client { protocols, ..Client::trusting(&ca) }.config();
        let done = handshake(&client, &config, "example.org").expect("a handshake");
        assert_eq!(*done.certificate(), der(&usual));
    }
    loading.runtime.remove_challenge("example.org");
    handshake(&acme(), &config, "example.org").expect_err("the challenge is over");
}

#[test]
fn an_issued_certificate_is_served_without_a_reload() {
    let (ca, loading) = (Ca::new("the CA"), loading());
    let settings = ServerSettings { has_runtime_certificates: true, ..ServerSettings::of(Vec::new()) };
    let config = server(&settings, &loading);
    let client = || Client::trusting(&ca).config();
    handshake(&client(), &config, "example.org").expect_err("no certificate yet");
    for _ in 0..2 {
        let made = ca.issue(&["example.org"]);
        let issued = Certificate::from_pem("acme", made.chain.as_bytes(), made.key.as_bytes(), now());
        loading.runtime.put_issued(issued.expect("a certificate"));
        let done = handshake(&client(), &config, "example.org").expect("a handshake");
        assert_eq!(*done.certificate(), der(&made));
    }
    assert_eq!(loading.runtime.issued().len(), 1);
}

#[test]
fn a_protocol_that_fits_nobody_ends_the_handshake() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    let config =
        server(&ServerSettings::of(vec![directory.put("a", &ca.issue(&["example.org"]))]), &loading());
    let client = Client { protocols: vec![b"h2", b"spdy/3"], ..Client::trusting(&ca) }.config();
    let error = handshake(&client, &config, "example.org").expect_err("no common protocol");
    assert_eq!(error, rustls::Error::NoApplicationProtocol);
    let client = Client { protocols: vec![b"h2", b"http/1.1"], ..Client::trusting(&ca) }.config();
    let done = handshake(&client, &config, "example.org").expect("a handshake");
    assert_eq!(done.server.alpn_protocol(), Some(&b"http/1.1"[..]));
}

#[test]
fn early_data_is_not_offered() {
    let (ca, directory) = (Ca::new("the CA"), Directory::new());
    let settings = ServerSettings::of(vec![directory.put("a", &ca.issue(&["example.org"]))]);
    let config = server(&settings, &loading());
    assert_eq!((config.max_early_data_size, settings.ticket_lifetime), (0, Duration::from_secs(43_200)));
    assert!(!config.session_storage.can_cache());
}
