//! TLS to clients: certificates of the configuration, their reload, and what is reported of them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use sandarac_test_support::{Address, Origin, Sandarac, TempDir, eventually, reply};

use crate::ca::{Ca, write};
use crate::{sandarac, site};

/// A configuration whose listener has `tls`.
fn with_tls(origin: &Origin, tls: &str) -> String {
    site(&origin.url(), "", "").replace("\"127.0.0.1:0\"", &format!("\"127.0.0.1:0\"\ntls = {tls}"))
}

fn directory(ca: &Ca) -> String {
    format!("{{ directory = \"{}\" }}", ca.directory.path().display())
}

/// Sends a request over TLS, and returns the response with the server's certificate.
fn get(
    proxy: &Sandarac,
    client: &Arc<ClientConfig>,
    name: &str,
) -> Result<(String, Vec<u8>), std::io::Error> {
    get_with(proxy, client, name, "")
}

/// The same with more fields, each of which ends with a line break.
fn get_with(
    proxy: &Sandarac,
    client: &Arc<ClientConfig>,
    name: &str,
    fields: &str,
) -> Result<(String, Vec<u8>), std::io::Error> {
    get_target(proxy, client, name, "/", fields)
}

fn get_target(
    proxy: &Sandarac,
    client: &Arc<ClientConfig>,
    name: &str,
    target: &str,
    fields: &str,
) -> Result<(String, Vec<u8>), std::io::Error> {
    let mut stream = connect(proxy, client, name)?;
    write!(stream, "GET {target} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n{fields}\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok((text, stream.conn.peer_certificates().unwrap()[0].to_vec()))
}

/// A connection whose handshake begins when it is used.
fn connect(
    proxy: &Sandarac,
    client: &Arc<ClientConfig>,
    name: &str,
) -> Result<StreamOwned<ClientConnection, TcpStream>, std::io::Error> {
    let Address::Tcp(address) = proxy.address() else { panic!("no TCP address") };
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connection = ClientConnection::new(client.clone(), name).unwrap();
    Ok(StreamOwned::new(connection, TcpStream::connect(address)?))
}

#[test]
fn a_directory_of_certificates_serves_each_name_its_own() {
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200).body("hello")));
    ca.issue("a", "a.example");
    ca.issue("b", "*.b.example");
    let proxy = sandarac().config(with_tls(&origin, &directory(&ca))).start();
    for name in ["a.example", "www.b.example"] {
        let (text, _) = get(&proxy, &ca.client(), name).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("hello"), "{text}");
    }
    assert_eq!(origin.last().field("X-Forwarded-Proto"), Some("https"));
    get(&proxy, &ca.client(), "c.example").unwrap_err();

    let shown = proxy.admin(&["status", "--tls", "www.b.example"]).success().stdout;
    assert!(shown.contains("www.b.example gets the certificate of a wildcard:\n  *.b.example"), "{shown}");
    let all = proxy.admin_json(&["status", "--tls", "--json"]);
    assert_eq!(all["listeners"][0]["certificates"].as_array().unwrap().len(), 2);
    assert_eq!(all["listeners"][0]["certificates"][0]["names"][0], "a.example");
    let admin = Address::Unix(proxy.admin_path());
    let metrics = sandarac_test_support::Conn::to(&admin).get("/metrics").expect(200).text();
    let sample = "sandarac_certificate_expiry_timestamp_seconds{listener=\"127.0.0.1:";
    assert!(metrics.contains(sample) && metrics.contains("} 4070908800\n"), "{metrics}");
}

#[test]
fn a_bad_pair_keeps_the_process_from_starting() {
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200)));
    ca.issue("a", "a.example");
    write(&ca.directory.join("b.crt"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    write(&ca.directory.join("b.key"), &fs::read_to_string(ca.directory.join("a.key")).unwrap());
    let text = with_tls(&origin, &directory(&ca));
    for command in [None, Some("check")] {
        let mut setup = sandarac().config(text.clone());
        setup = command.into_iter().fold(setup, |setup, command| setup.arg(command));
        let output = setup.run().failure();
        assert!(output.stderr.contains("b.crt"), "{}", output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command:?}");
    }
}

/// Regression: one certificate that had expired kept the renewals of all others on its listener from being taken
/// over, made every reload fail, and the next start.
#[test]
fn an_expired_certificate_does_not_stand_in_the_way_of_others() {
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200).cache("no-store").body("hello")));
    ca.issue("a", "a.example");
    ca.issue_until("b", "b.example", 2021);
    let text = with_tls(&origin, &directory(&ca));
    let said = sandarac().config(text.clone()).arg("check").run().failure().stderr;
    assert!(said.contains("b.crt expired at 2021-01-01 00:00:00 UTC; renew it (expired)"), "{said}");

    let proxy = sandarac().config(text.clone()).start();
    assert!(
        proxy.stderr().contains("b.crt expired at 2021-01-01 00:00:00 UTC; clients refuse it"),
        "{}",
        proxy.stderr()
    );
    let (_, before) = get(&proxy, &ca.client(), "a.example").unwrap();
    ca.issue("a", "a.example");
    proxy.reload(&text).success();
    let (_, after) = get(&proxy, &ca.client(), "a.example").unwrap();
    assert!(after != before, "the renewal is in force");
    // Another one that has expired is refused, and what is in force stays.
    ca.issue_until("a", "a.example", 2021);
    assert!(proxy.reload(&text).failure().stderr.contains("a.crt expired"));
    assert_eq!(get(&proxy, &ca.client(), "a.example").unwrap().1, after);
}

#[test]
fn a_reload_with_a_bad_pair_changes_nothing() {
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200).cache("no-store").body("hello")));
    ca.issue("a", "a.example");
    let text = with_tls(&origin, &directory(&ca));
    let proxy = sandarac().config(text.clone()).start();
    let (_, before) = get(&proxy, &ca.client(), "a.example").unwrap();
    let key = fs::read_to_string(ca.directory.join("a.key")).unwrap();
    write(
        &ca.directory.join("a.key"),
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    );
    let output = proxy.reload(&text).failure();
    let said = &output.stderr;
    assert!(said.contains("a.key is encrypted") && said.contains("(encrypted_key)"), "{said}");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(get(&proxy, &ca.client(), "a.example").unwrap().1, before);
    write(&ca.directory.join("a.key"), &key);
    ca.issue("b", "b.example");
    proxy.reload(&text).success();
    get(&proxy, &ca.client(), "b.example").unwrap();
}

#[test]
fn changed_files_are_taken_over_without_a_reload_once_they_match() {
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200).cache("no-store").body("hello")));
    ca.issue("a", "a.example");
    let proxy = sandarac().config(with_tls(&origin, &directory(&ca))).start();
    let (_, before) = get(&proxy, &ca.client(), "a.example").unwrap();
    let chain = fs::read_to_string(ca.directory.join("a.crt")).unwrap();
    ca.issue("a", "a.example");
    let renewed = fs::read_to_string(ca.directory.join("a.crt")).unwrap();
    // A chain whose key does not follow is refused, and the old pair stays.
    write(&ca.directory.join("a.crt"), &chain);
    proxy.says("the certificates in use stay, because:");
    proxy.says("(key_mismatch)");
    assert_eq!(get(&proxy, &ca.client(), "a.example").unwrap().1, before);
    write(&ca.directory.join("a.crt"), &renewed);
    eventually("the renewed certificate", || {
        (get(&proxy, &ca.client(), "a.example").unwrap().1 != before).then_some(())
    });
}

#[test]
fn check_shows_the_certificates() {
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200)));
    ca.issue("a", "a.example");
    let output = sandarac().config(with_tls(&origin, &directory(&ca))).arg("check").run().success();
    let said = &output.stdout;
    assert!(
        said.contains("Certificates of 127.0.0.1:0 (TLS 1.2 and 1.3):\n  a.example: ECDSA P-256, issued by the test's CA"),
        "{said}"
    );
    assert!(said.contains("expires at 2099-01-01 00:00:00 UTC, for unknown names too"), "{said}");
    assert!(output.stderr.contains("a.crt holds the certificate alone"), "{}", output.stderr);
}

#[test]
fn http_is_redirected_to_https() {
    let origin = Origin::new(|_| reply(200));
    let text =
        site(&origin.url(), "", "").replace("\"127.0.0.1:0\"", "\"127.0.0.1:0\"\nredirect_to_https = true");
    let proxy = sandarac().config(text).start();
    let mut client = proxy.connect();
    let response =
        client.exchange(&sandarac_test_support::get("/a?b=c").host("www.example.org:8080")).expect(308);
    assert_eq!(response.field("Location"), Some("https://www.example.org/a?b=c"));
    assert_eq!(origin.count(), 0);
}

#[test]
fn browsers_are_bound_to_https_by_trusted_certificates_only() {
    const FIELD: &str = "Strict-Transport-Security: max-age=31536000; includeSubDomains\r\n";
    let ca = Ca::new();
    ca.issue("a", "a.example");
    let origin = Origin::new(|_| {
        reply(200).cache("max-age=60").with("Strict-Transport-Security", "max-age=1").body("x")
    });
    let text = with_tls(&origin, &directory(&ca));
    let text = text.replace("pool = \"app\"", "pool = \"app\"\nhsts = { include_subdomains = true }");
    let proxy = sandarac().config(format!("{text}\n[[listen]]\naddress = \"127.0.0.1:0\"\n")).start();
    for stored in [false, true] {
        let (text, _) = get(&proxy, &ca.client(), "a.example").unwrap();
        assert_eq!(text.contains("; hit"), stored, "{text}");
        assert_eq!(text.matches("Strict-Transport-Security").count(), 1, "{text}");
        assert!(text.contains(FIELD), "{text}");
    }
    let response = sandarac_test_support::Conn::to(&proxy.addresses()[1]).get("/").expect(200);
    assert_eq!(response.field("Strict-Transport-Security"), None);

    let key = KeyPair::generate().unwrap();
    let stand_in = CertificateParams::new(vec!["b.example".to_owned()]).unwrap().self_signed(&key).unwrap();
    write(&ca.directory.join("b.crt"), &stand_in.pem());
    write(&ca.directory.join("b.key"), &key.serialize_pem());
    proxy.admin(&["reload"]).success();
    let (text, _) = get(&proxy, &ca.client(), "a.example").unwrap();
    assert!(!text.contains("Strict-Transport-Security"), "{text}");
}

/// Regression: clients that left their handshakes unfinished could take all connections.
#[test]
fn clients_without_a_handshake_do_not_keep_out_others() {
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200).body("hello")));
    ca.issue("a", "a.example");
    let text = with_tls(&origin, &directory(&ca));
    let proxy = sandarac().config(format!("threads = 1\n{text}\n[limits]\nconnections = 8\n")).start();
    let Address::Tcp(address) = proxy.address() else { panic!("no TCP address") };
    // Half of them have begun a handshake.
    let silent: Vec<TcpStream> = (0..40)
        .map(|number| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(&[22, 3, 1][..number % 2 * 3]).unwrap();
            stream
        })
        .collect();
    let (text, _) = get(&proxy, &ca.client(), "a.example").unwrap();
    assert!(text.ends_with("hello"), "{text}");
    drop(silent);
}

/// Regression: unfinished handshakes within their share of the connections kept out others, if clients had the rest.
#[test]
fn an_unfinished_handshake_makes_room_for_another_client() {
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200).body("hello")));
    ca.issue("a", "a.example");
    let tls = directory(&ca).replace(" }", ", handshake_timeout = \"10m\" }");
    let text = with_tls(&origin, &tls);
    let proxy = sandarac().config(format!("threads = 1\n{text}\n[limits]\nconnections = 8\n")).start();
    let Address::Tcp(address) = proxy.address() else { panic!("no TCP address") };
    let mut served: Vec<_> = (0..4).map(|_| connect(&proxy, &ca.client(), "a.example").unwrap()).collect();
    // A request whose body is still to come: an idle connection would give way.
    let post = "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\n\r\n";
    served.iter_mut().for_each(|stream| write!(stream, "{post}").unwrap());
    let mut is_served = || {
        served.iter_mut().all(|stream| {
            write!(stream, "x").unwrap();
            let mut received = Vec::new();
            while !received.ends_with(b"hello") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                received.extend(byte);
            }
            write!(stream, "{post}").unwrap();
            received.starts_with(b"HTTP/1.1 200 ")
        })
    };
    assert!(is_served());
    let silent: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(address).unwrap()).collect();
    eventually("a place", || get(&proxy, &ca.client(), "a.example").ok());
    assert!(is_served(), "other connections stay");
    drop(silent);
}

/// RFC 9110 §7.4: what is stored for http must not be had, or filled, over a connection that is for https, and the reverse.
#[test]
fn a_target_of_the_other_scheme_is_misdirected() {
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200).cache("max-age=60")));
    ca.issue("a", "a.example");
    let proxy = sandarac().config(with_tls(&origin, &directory(&ca))).start();
    for (target, status) in [("http://a.example/", "421"), ("https://a.example/", "200"), ("/", "200")] {
        let (text, _) = get_target(&proxy, &ca.client(), "a.example", target, "").unwrap();
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{target}: {text}");
    }
}

#[test]
fn requests_with_a_client_certificate_bypass_the_cache() {
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200).cache("max-age=60").body("hello")));
    ca.issue("a", "a.example");
    let pem = ca.directory.join("clients.ca");
    write(&pem, &ca.pem);
    let clients = format!("client_certificates = {{ mode = \"optional\", ca = \"{}\" }} }}", pem.display());
    let tls = directory(&ca).replace(" }", &format!(", {clients}"));
    let proxy = sandarac().config(with_tls(&origin, &tls)).start();
    for _ in 0..2 {
        let (text, _) = get(&proxy, &ca.client_with_certificate(), "a.example").unwrap();
        assert!(text.contains("fwd=bypass") && text.contains("detail=client-certificate"), "{text}");
    }
    get(&proxy, &ca.client(), "a.example").unwrap();
    assert!(get(&proxy, &ca.client(), "a.example").unwrap().0.contains("; hit"));
    let (text, _) = get(&proxy, &ca.client_with_certificate(), "a.example").unwrap();
    assert!(text.contains("detail=client-certificate"), "{text}");
    assert_eq!(origin.count(), 4);
}

#[test]
fn a_rule_that_keys_the_certificate_gives_each_client_its_own_response() {
    let (ca, origin) = (
        Ca::new(),
        Origin::new(|request| {
            let whose = request.field("Client-Cert").unwrap_or("nobody").to_owned();
            reply(200).cache("max-age=60").body(whose)
        }),
    );
    ca.issue("a", "a.example");
    let pem = ca.directory.join("clients.ca");
    write(&pem, &ca.pem);
    let clients = format!("client_certificates = {{ mode = \"optional\", ca = \"{}\" }} }}", pem.display());
    let tls = directory(&ca).replace(" }", &format!(", {clients}"));
    let route = "cache = { key_fields = [\"Client-Cert\"] }";
    let text =
        site(&origin.url(), route, "").replace("\"127.0.0.1:0\"", &format!("\"127.0.0.1:0\"\ntls = {tls}"));
    let proxy = sandarac().config(text).start();
    let (one, leaf) = ca.client_with_chain();
    let (other, another) = ca.client_with_chain();
    let nobody = ca.client();
    let claim = format!("Client-Cert: :{}:\r\n", STANDARD.encode(&leaf));
    // The line break after the fields ends a body of three bytes.
    let claim_with_body = format!("{claim}Content-Length: 3\r\n\r\n?");
    for is_first in [true, false] {
        for (client, fields, whose) in [
            (&one, "", format!(":{}:", STANDARD.encode(&leaf))),
            (&other, &*claim, format!(":{}:", STANDARD.encode(&another))),
            (&nobody, "", "nobody".to_owned()),
            (&nobody, &*claim, "nobody".to_owned()),
        ] {
            let (text, _) = get_with(&proxy, client, "a.example", fields).unwrap();
            assert!(text.ends_with(&whose), "{whose} gets {text}");
            assert!(is_first || text.contains("; hit"), "{text}");
        }
    }
    let (text, _) = get_with(&proxy, &nobody, "a.example", &claim_with_body).unwrap();
    assert!(text.ends_with("nobody"), "{text}");
    assert_eq!(origin.requests().iter().filter(|request| !request.fields.has("Content-Length")).count(), 3);
}

/// A site with an `optional` client certificate and a listener in clear, whose clients are trusted if `trusted` says so.
fn with_client_certificates(ca: &Ca, origin: &Origin, forward: &str, trusted: &str) -> Sandarac {
    ca.issue("a", "a.example");
    let pem = ca.directory.join("clients.ca");
    write(&pem, &ca.pem);
    let clients = format!("mode = \"optional\", ca = \"{}\"{forward}", pem.display());
    let tls = directory(ca).replace(" }", &format!(", client_certificates = {{ {clients} }} }}"));
    let in_clear = format!("[[listen]]\naddress = \"127.0.0.1:0\"\n{trusted}\n");
    sandarac().config(format!("{}\n{in_clear}", with_tls(origin, &tls))).start()
}

#[test]
fn backends_get_the_certificate_that_a_client_presented() {
    for forward in ["", ", forward = \"chain\"", ", forward = false"] {
        let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200).cache("no-store")));
        let proxy = with_client_certificates(&ca, &origin, forward, "");
        let (client, leaf) = ca.client_with_chain();
        get(&proxy, &client, "a.example").unwrap();
        let expected = (!forward.contains("false")).then(|| format!(":{}:", STANDARD.encode(&leaf)));
        assert_eq!(origin.last().field("Client-Cert"), expected.as_deref(), "{forward}");
        let chain = forward.contains("chain").then(|| format!(":{}:", STANDARD.encode(ca.der())));
        assert_eq!(origin.last().field("Client-Cert-Chain"), chain.as_deref(), "{forward}");
        get(&proxy, &ca.client(), "a.example").unwrap();
        assert_eq!(origin.last().field("Client-Cert"), None);
    }
}

#[test]
fn clients_cannot_claim_a_certificate() {
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200).cache("no-store")));
    let proxy = with_client_certificates(&ca, &origin, "", "");
    let claims = "Client-Cert: :AAAA:\r\nclient-cert-chain: :AAAA:\r\nClient_Cert: :AAAA:\r\n";
    for client in [ca.client(), ca.client_with_certificate()] {
        get_with(&proxy, &client, "a.example", claims).unwrap();
        let sent = origin.last();
        let lines = sent.fields.lines();
        assert!(lines.iter().all(|(_, value)| !value.contains("AAAA")), "{lines:?}");
        assert!(!sent.fields.has("Client-Cert-Chain"), "{lines:?}");
    }
    let request = sandarac_test_support::get("/").host("a.example").with("Client-Cert", ":AAAA:");
    sandarac_test_support::Conn::to(&proxy.addresses()[1]).exchange(&request).expect(200);
    assert_eq!(origin.last().field("Client-Cert"), None);
}

/// Backends that were behind another proxy believe its fields.
#[test]
fn clients_cannot_claim_a_certificate_in_the_fields_of_other_proxies() {
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200).cache("no-store")));
    let proxy = with_client_certificates(&ca, &origin, "", "");
    let claims = "X-SSL-Client-Verify: claim\r\nssl-client-cert: claim\r\nSSL_CLIENT_S_DN: claim\r\n\
                  X-Forwarded-Client-Cert: claim\r\nX-Forwarded-Tls-Client-Cert-Info: claim\r\n\
                  X-Client-Cert: claim\r\nX-Client-DNS: kept\r\n";
    for client in [ca.client(), ca.client_with_certificate()] {
        get_with(&proxy, &client, "a.example", claims).unwrap();
        let sent = origin.last();
        let lines = sent.fields.lines();
        assert!(lines.iter().all(|(_, value)| *value != "claim"), "{lines:?}");
        assert_eq!(sent.field("X-Client-DNS"), Some("kept"));
    }
    // A site that asks for no certificates may have a use of its own for such names.
    let request = sandarac_test_support::get("/").host("a.example").with("X-SSL-Client-Verify", "kept");
    sandarac_test_support::Conn::to(&proxy.addresses()[1]).exchange(&request).expect(200);
    assert_eq!(origin.last().field("X-SSL-Client-Verify"), Some("kept"));
}

#[test]
fn a_trusted_proxy_may_name_the_certificate_of_its_client_and_bypasses_the_cache() {
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200).cache("max-age=60")));
    let proxy = with_client_certificates(&ca, &origin, "", "trusted_proxies = [\"127.0.0.1\"]");
    for _ in 0..2 {
        let request = sandarac_test_support::get("/").host("a.example").with("Client-Cert", ":AAAA:");
        let response = sandarac_test_support::Conn::to(&proxy.addresses()[1]).exchange(&request).expect(200);
        assert!(response.field("Cache-Status").unwrap().contains("detail=client-certificate"));
        assert_eq!(origin.last().field("Client-Cert"), Some(":AAAA:"));
    }
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_session_is_resumed_by_the_process_that_takes_over() {
    const SET: &str = "request.set = { X-Tls = \"{tls_resumed}\" }\ncache = \"pass\"";
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200)));
    ca.issue("a", "a.example");
    let text =
        with_tls(&origin, &directory(&ca)).replace("pool = \"app\"", &format!("pool = \"app\"\n{SET}"));
    let proxy = sandarac().config(text).start();
    let client = ca.client();
    for resumed in ["false", "true", "true"] {
        get(&proxy, &client, "a.example").unwrap();
        assert_eq!(origin.last().field("X-Tls"), Some(resumed));
        proxy.admin(&["upgrade"]).success();
    }
}

#[test]
fn logs_edits_and_metrics_know_the_connection() {
    const SET: &str = "request.set = { X-Tls = \"{tls_version} {tls_cipher} {tls_server_name} {tls_resumed}\", \
                       X-Client = \"{tls_client_certificate}\" }\ncache = \"pass\"";
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200)));
    ca.issue("a", "a.example");
    let pem = ca.directory.join("clients.ca");
    write(&pem, &ca.pem);
    let clients = format!("client_certificates = {{ mode = \"optional\", ca = \"{}\" }} }}", pem.display());
    let tls = directory(&ca).replace(" }", &format!(", {clients}"));
    let text = with_tls(&origin, &tls).replace("pool = \"app\"", &format!("pool = \"app\"\n{SET}"));
    let logs = TempDir::new();
    let log = logs.join("access.log");
    let proxy = sandarac()
        .config(text)
        .option("--access-log", log.display().to_string())
        .option("--log-format", "json")
        .start();
    let (client, leaf) = ca.client_with_chain();
    let digest: String = digest(&SHA256, &leaf).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    for resumed in ["false", "true"] {
        get(&proxy, &client, "a.example").unwrap();
        let told = format!("TLSv1.3 TLS_AES_256_GCM_SHA384 a.example {resumed}");
        assert_eq!(origin.last().field("X-Tls"), Some(&*told));
        assert_eq!(origin.last().field("X-Client"), Some(&*digest));
    }
    // Each core writes its own lines.
    let line = eventually("the line of the resumed session", || {
        let text = fs::read_to_string(&log).ok()?;
        text.split_inclusive('\n').find(|line| line.contains("\"tls_resumed\":true")).map(str::to_owned)
    });
    let fields = "\"tls_version\":\"TLSv1.3\",\"tls_cipher\":\"TLS_AES_256_GCM_SHA384\",\
                  \"tls_server_name\":\"a.example\",\"tls_resumed\":true,\"tls_client_certificate\":";
    assert!(line.contains(&format!("{fields}\"{digest}\"")), "{line}");
    let admin = Address::Unix(proxy.admin_path());
    let metrics = sandarac_test_support::Conn::to(&admin).get("/metrics").expect(200).text();
    assert!(metrics.contains("sandarac_handshakes_total{version=\"TLSv1.3\"} 2\n"), "{metrics}");
}

#[test]
fn flags_alone_serve_https() {
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200).body("hello")));
    ca.issue("a", "a.example");
    let file = |name: &str| ca.directory.join(name).display().to_string();
    let proxy = sandarac()
        .before(&origin)
        .option("--certificate", file("a.crt"))
        .option("--key", file("a.key"))
        .start();
    let (text, _) = get(&proxy, &ca.client(), "a.example").unwrap();
    assert!(text.ends_with("hello"), "{text}");
}
