//! From the first order to a restart.

use std::path::Path;

use sandarac_test_support::{Address, Conn, Origin, Port, Sandarac, Setup, TempDir, get, reply};

use crate::server::Pebble;
use crate::visitor::Visitor;

fn sandarac() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_sandarac"))
}

fn origin() -> Origin {
    Origin::new(|_| reply(200).cache("no-store").body("hello"))
}

/// A site by flags alone that listens at the addresses and keeps its certificate in `state`.
fn by_flags(pebble: &Pebble, origin: &Origin, listen: &[String], state: &Path) -> Sandarac {
    let setup =
        listen.iter().fold(sandarac().before(origin), |setup, listen| setup.option("--listen", listen));
    setup
        .option("--acme", "example.org")
        .option("--acme", "www.example.org")
        .option("--acme-directory", pebble.directory())
        .option("--acme-state", state.display().to_string())
        // What OpenSSL and we take for the roots of the system.
        .variable("SSL_CERT_FILE", &pebble.root_file().display().to_string())
        .start()
}

#[test]
fn the_flag_acme_gets_a_certificate_by_http_01_and_a_restart_orders_no_other() {
    let (plain, tls, dir, origin) = (Port::new(), Port::new(), TempDir::new(), origin());
    let pebble = Pebble::start(plain.address(), tls.address());
    let listen = [tls.address().to_string(), format!("{},http", plain.address())];
    let proxy = by_flags(&pebble, &origin, &listen, &dir.join("state"));
    let visitor = Visitor::trusting(&pebble);
    let (response, first) = visitor.get_trusted(tls.address(), "www.example.org");
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("hello"), "{response}");
    for line in [
        "by using ACME you accept the terms of service of the CA at https://",
        "a self-signed certificate stands in for example.org, www.example.org until the CA issued one",
        "ordering a certificate for example.org, www.example.org, verified by http-01",
        "a certificate for example.org, www.example.org was issued, valid until",
    ] {
        proxy.says(line);
    }
    // Nobody learns from paths of challenges whether an order is pending.
    let plain_address = Address::Tcp(plain.address());
    let response = Conn::to(&plain_address).get("/.well-known/acme-challenge/none").expect(200);
    assert_eq!(response.text(), "hello", "the routes answer");
    drop(proxy);

    let proxy = by_flags(&pebble, &origin, &listen, &dir.join("state"));
    let (_, second) =
        visitor.get(tls.address(), "example.org").expect("the certificate is there at the start");
    assert_eq!(second, first);
    proxy.says("a certificate for example.org, www.example.org is in the ACME directory, valid until");
    assert!(!proxy.stderr().contains("ordering"), "{}", proxy.stderr());
    let status = proxy.admin(&["status", "--tls", "example.org"]).success().stdout;
    assert!(status.contains("  valid until ") && status.contains("; next order in "), "{status}");
    assert_eq!(pebble.orders(), 1);
}

#[test]
fn names_are_verified_by_tls_alpn_01_without_a_listener_for_http() {
    let (closed, tls, dir, origin) = (Port::new(), Port::new(), TempDir::new(), origin());
    let pebble = Pebble::start(closed.address(), tls.address());
    let proxy = by_flags(&pebble, &origin, &[tls.address().to_string()], &dir.join("state"));
    let (response, _) = Visitor::trusting(&pebble).get_trusted(tls.address(), "example.org");
    assert!(response.ends_with("hello"), "{response}");
    proxy.says("verified by tls-alpn-01");
    assert_eq!(pebble.orders(), 1);
}

#[test]
fn the_example_redirects_to_https_answers_the_ca_and_gets_a_certificate() {
    let (plain, tls, dir, origin) = (Port::new(), Port::new(), TempDir::new(), origin());
    let pebble = Pebble::start(plain.address(), tls.address());
    let mut text = include_str!("../../examples/acme/sandarac.toml").to_owned();
    let ca = format!("directory = \"{}\"\nca = \"{}\"", pebble.directory(), pebble.root_file().display());
    for (own, other) in [
        ("\":80\"", format!("\"{}\"", plain.address())),
        ("\":443\"", format!("\"{}\"", tls.address())),
        ("/var/lib/sandarac/acme", dir.join("state").display().to_string()),
        ("staging = true", ca),
        ("http://127.0.0.1:8000", origin.url()),
    ] {
        assert!(text.contains(own), "{own}");
        text = text.replace(own, &other);
    }
    let proxy = sandarac().config(text.clone()).start();
    let (response, _) = Visitor::trusting(&pebble).get_trusted(tls.address(), "example.org");
    assert!(response.contains("\r\nStrict-Transport-Security: max-age=3600\r\n"), "{response}");
    proxy.says("verified by http-01");
    let mut client = Conn::to(&Address::Tcp(plain.address()));
    let response = client.exchange(&get("/a?b=c").host("example.org")).expect(308);
    assert_eq!(response.field("Location"), Some("https://example.org/a?b=c"));
    assert_eq!(pebble.orders(), 1);
    assert_eq!(proxy.metric("acme_orders"), 1);
    assert!(proxy.metric("acme_certificate_expiry_timestamp_seconds") > 0);
    drop(proxy);
    let said = sandarac().config(text).arg("check").run().success().stdout;
    assert!(said.contains("Certificate by ACME for example.org, www.example.org, in "), "{said}");
    assert!(said.contains("  expires at "), "{said}");
}
