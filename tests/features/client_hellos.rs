//! The host names in the first message of a TLS client (RFC 6066 §3), written by hand: clients' libraries refuse these.

use std::io::{Read, Write};
use std::net::TcpStream;

use sandarac_test_support::{Address, Origin, Sandarac, reply};

use crate::ca::Ca;
use crate::{sandarac, site};

const HANDSHAKE: u8 = 22;
const ALERT: u8 = 21;

#[test]
fn an_address_for_a_name_gets_the_default_certificate() {
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200)));
    let proxy = serving(&ca, &origin);
    for name in [&b"192.0.2.1"[..], b"b.example", b"unknown.example"] {
        let received = answer(&proxy, &client_hello(Some(name)));
        assert_eq!(received[0], HANDSHAKE, "{received:?}");
        let expected = if name == b"b.example" { "b.example" } else { "a.example" };
        assert!(contains(&received, expected), "{}", String::from_utf8_lossy(&received));
    }
    let received = answer(&proxy, &client_hello(None));
    assert!(contains(&received, "a.example"), "{}", String::from_utf8_lossy(&received));
}

#[test]
fn a_name_that_is_none_ends_the_handshake_and_nothing_else() {
    let (ca, origin) = (Ca::new(), Origin::new(|_| reply(200)));
    let proxy = serving(&ca, &origin);
    let long = [b'a'; 300];
    let labels = [&b"a."[..]; 150].concat();
    for name in
        [&b"a.exam\0ple"[..], b"\0", b"", &long, &labels, b"a..example", b"\xff\xfe.example", b"[::1]"]
    {
        let received = answer(&proxy, &client_hello(Some(name)));
        assert_eq!(received[0], ALERT, "{name:?}: {received:?}");
    }
    // Its length is longer than the message.
    let mut cut = client_hello(Some(b"a.example"));
    let at = cut.windows(9).position(|bytes| bytes == b"a.example").unwrap();
    cut[at - 1] = 0xff;
    assert_eq!(answer(&proxy, &cut)[0], ALERT);
    let received = answer(&proxy, &client_hello(Some(b"a.example")));
    assert!(contains(&received, "a.example"), "{}", String::from_utf8_lossy(&received));
}

fn serving(ca: &Ca, origin: &Origin) -> Sandarac {
    ca.issue("a", "a.example");
    ca.issue("b", "b.example");
    let tls = format!("\"127.0.0.1:0\"\ntls = {{ directory = \"{}\" }}", ca.directory.path().display());
    sandarac().config(site(&origin.url(), "", "").replace("\"127.0.0.1:0\"", &tls)).start()
}

/// What the server sends until it waits for the client, which sends no more, or until it ends the connection.
fn answer(proxy: &Sandarac, hello: &[u8]) -> Vec<u8> {
    let Address::Tcp(address) = proxy.address() else { panic!("no TCP address") };
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(hello).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    received
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// A ClientHello of TLS 1.2 (RFC 5246 §7.4.1.2), in its record: the server's certificate then comes in clear.
fn client_hello(name: Option<&[u8]>) -> Vec<u8> {
    let mut extensions = Vec::new();
    let mut extension = |kind: u16, content: Vec<u8>| {
        extensions.extend(kind.to_be_bytes());
        extensions.extend(counted(&content));
    };
    if let Some(name) = name {
        extension(0, counted(&[&[0], &*counted(name)].concat()));
    }
    // X25519 and P-256; uncompressed points; ECDSA with P-256 and SHA-256.
    extension(10, counted(&[0, 29, 0, 23]));
    extension(11, vec![1, 0]);
    extension(13, counted(&[4, 3]));
    let mut hello = vec![3, 3];
    hello.extend([7; 32]);
    // No session; TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256; no compression.
    hello.extend([0, 0, 2, 0xc0, 0x2b, 1, 0]);
    hello.extend(counted(&extensions));
    // The length of a message has three bytes.
    let message = [&[1, 0], &*counted(&hello)].concat();
    [&[HANDSHAKE, 3, 1], &*counted(&message)].concat()
}

/// `bytes` after their length in two bytes.
fn counted(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}
