//! Orders, verified by pebble.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use sandarac_acme::{Acme, ChallengeKind, Event, ExternalAccount, KeyedChain, Settings, Sink};
use sandarac_message::Timestamp;
use sandarac_test_support::{Port, TempDir};

use crate::clock::FakeClock;
use crate::node::Node;
use crate::server::{CUSTOMER, Pebble};
use crate::validated::{HttpServer, TlsServer};

const DAY: Duration = Duration::from_secs(86_400);

/// A client that trusts pebble accepts the certificate for each name, and for no other.
#[track_caller]
fn assert_trusted(pebble: &Pebble, certificate: &KeyedChain, names: &[&str]) {
    let mut roots = RootCertStore::empty();
    roots.add(pebble.root()).expect("a root");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().expect("roots");
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate.chain_pem.as_bytes())
        .map(|certificate| certificate.expect("PEM"))
        .collect();
    let verify = |name: &str| {
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], UnixTime::now())
    };
    for name in names {
        verify(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert!(verify("other.example").is_err());
}

/// A clock that stands at the real time: pebble and the servers that answer it judge by that.
fn real_now() -> FakeClock {
    FakeClock::at(Timestamp::from(SystemTime::now()))
}

#[test]
fn http_01_gets_a_certificate_for_several_names_and_renews_it_with_ari() {
    let (http, closed, dir, clock) = (HttpServer::start(), Port::new(), TempDir::new(), real_now());
    let pebble = Pebble::start(http.address, closed.address());
    http.answers(sandarac_acme::Challenges::new(&dir.join("state")));
    let names = ["www.example.org", "example.org"];
    let node = Node::start(pebble.settings(&dir, ChallengeKind::Http01, &names), &clock);
    let first = node.certificate(1);
    assert_trusted(&pebble, &first, &names);
    clock.pass(61 * DAY);
    let second = node.certificate(2);
    assert_ne!(second, first);
    assert_trusted(&pebble, &second, &names);
    let failed =
        node.heard.events.lock().expect("no panic").iter().any(|event| matches!(event, Event::Failed { .. }));
    assert!(!failed, "the renewal needed a second attempt: pebble did not accept what it replaces");
}

#[test]
fn tls_alpn_01_gets_a_certificate_with_the_certificates_that_the_sink_shows() {
    let (tls, closed, dir) = (TlsServer::start(), Port::new(), TempDir::new());
    let pebble = Pebble::start(closed.address(), tls.address);
    let names = ["a.example", "b.example"];
    let settings = pebble.settings(&dir, ChallengeKind::TlsAlpn01, &names);
    let real: sandarac_acme::Clock = Arc::new(|| Timestamp::from(SystemTime::now()));
    let acme = Acme::open(settings.clone(), Arc::clone(&real)).expect("settings that work");
    let shown: Arc<dyn Sink> = Arc::clone(&tls.shown) as Arc<dyn Sink>;
    // The future ends when the certificate is in the directory.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let found = runtime.block_on(async {
        let arrives = async {
            loop {
                let kept = Acme::open(settings.clone(), Arc::clone(&real)).expect("settings that work");
                if !kept.is_stand_in() {
                    return kept.certificate().clone();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            _ = acme.run(shown, 7) => unreachable!("it never completes"),
            found = tokio::time::timeout(sandarac_test_support::PATIENCE, arrives) => found,
        }
    });
    assert_trusted(&pebble, &found.expect("a certificate in time"), &names);
}

#[test]
fn tls_alpn_01_is_answered_by_a_node_that_did_not_place_the_order() {
    let (tls, closed, dir) = (TlsServer::start(), Port::new(), TempDir::new());
    let pebble = Pebble::start(closed.address(), tls.address);
    tls.answers(sandarac_acme::Challenges::new(&dir.join("state")));
    let clock = real_now();
    let node = Node::start(pebble.settings(&dir, ChallengeKind::TlsAlpn01, &["example.org"]), &clock);
    assert_trusted(&pebble, &node.certificate(1), &["example.org"]);
}

#[test]
fn a_ca_that_forgot_everything_gets_a_new_account() {
    let (http, closed, dir, clock) = (HttpServer::start(), Port::new(), TempDir::new(), real_now());
    let mut pebble = Pebble::start(http.address, closed.address());
    http.answers(sandarac_acme::Challenges::new(&dir.join("state")));
    Node::start(pebble.settings(&dir, ChallengeKind::Http01, &["a.example"]), &clock).certificate(1);
    pebble.restart();
    let node = Node::start(pebble.settings(&dir, ChallengeKind::Http01, &["b.example"]), &clock);
    assert_eq!(node.failure(1).0.name(), "account_unknown");
    clock.pass(Duration::from_secs(90));
    assert_trusted(&pebble, &node.certificate(1), &["b.example"]);
}

#[test]
fn an_account_is_bound_to_a_customer_of_the_ca() {
    let (http, closed, dir, clock) = (HttpServer::start(), Port::new(), TempDir::new(), real_now());
    let pebble = Pebble::for_customers(http.address, closed.address());
    http.answers(sandarac_acme::Challenges::new(&dir.join("state")));
    let settings = pebble.settings(&dir, ChallengeKind::Http01, &["a.example"]);
    let stranger = Node::start(settings.clone(), &clock);
    assert_eq!(stranger.failure(1).0.name(), "external_account_required");
    drop(stranger);
    clock.pass(Duration::from_secs(90));
    let (key_id, hmac_key) = (CUSTOMER.0.to_owned(), CUSTOMER.1.to_owned());
    let customer = Settings { external_account: Some(ExternalAccount { key_id, hmac_key }), ..settings };
    Node::start(customer, &clock).certificate(1);
}

#[test]
fn what_pebble_refuses_or_cannot_verify_is_named() {
    let (http, closed, dir, clock) = (HttpServer::start(), Port::new(), TempDir::new(), real_now());
    // The server knows no challenges.
    let pebble = Pebble::start(http.address, closed.address());
    for (kind, name, fault, part) in [
        (ChallengeKind::Http01, "blocked.example", "refused", "blocked.example"),
        (ChallengeKind::Http01, "a.example", "not_verified", "port 80"),
        (ChallengeKind::TlsAlpn01, "b.example", "not_verified", "port 443"),
    ] {
        let node = Node::start(pebble.settings(&dir, kind, &[name]), &clock);
        let (found, _) = node.failure(1);
        assert!(found.name() == fault && found.to_string().contains(part), "{found}");
    }
}
