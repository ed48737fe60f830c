//! Who the client is: the PROXY protocol, and proxies that are trusted.

use sandarac_test_support::{Conn, Origin, Sandarac, get, reply};

use crate::{sandarac, site};

fn start(listener_keys: &str) -> (Sandarac, Origin) {
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let address = "address = \"127.0.0.1:0\"\n";
    let text = site(&origin.url(), "", "").replace(address, &format!("{address}{listener_keys}\n"));
    (sandarac().config(text).start(), origin)
}

fn version_2(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    header.extend([0x20 | command, family]);
    header.extend((addresses.len() as u16).to_be_bytes());
    header.extend(addresses);
    header
}

#[test]
fn a_proxy_header_of_version_1_names_the_client() {
    let (proxy, origin) = start("proxy_protocol = true");
    for (header, client) in [
        ("PROXY TCP4 192.0.2.7 192.0.2.1 5000 80\r\n", "192.0.2.7"),
        ("PROXY TCP6 2001:db8::7 2001:db8::1 5000 80\r\n", "2001:db8::7"),
        ("PROXY UNKNOWN\r\n", "127.0.0.1"),
    ] {
        let mut client_side = proxy.connect();
        client_side.send(header).send(get("/").to_bytes());
        client_side.response().expect(200);
        assert_eq!(origin.last().field("x-forwarded-for"), Some(client));
        client_side.get("/again").expect(200);
        assert_eq!(origin.last().field("x-forwarded-for"), Some(client));
    }
}

#[test]
fn a_proxy_header_of_version_2_names_the_client() {
    let (proxy, origin) = start("proxy_protocol = true");
    let addresses = [192, 0, 2, 9, 192, 0, 2, 1, 0x13, 0x88, 0, 80];
    let mut with_extension = addresses.to_vec();
    with_extension.extend([0x04, 0, 3, b'a', b'b', b'c']);
    for (header, client) in [
        (version_2(1, 0x11, &addresses), "192.0.2.9"),
        (version_2(1, 0x11, &with_extension), "192.0.2.9"),
        (version_2(0, 0x00, &[]), "127.0.0.1"),
    ] {
        let mut conn = proxy.connect();
        conn.send([header, get("/").to_bytes()].concat());
        conn.response().expect(200);
        assert_eq!(origin.last().field("x-forwarded-for"), Some(client));
    }
}

#[test]
fn a_connection_without_its_proxy_header_is_closed() {
    let (proxy, origin) = start("proxy_protocol = true");
    for bytes in [
        &get("/").to_bytes()[..],
        b"PROXY TCP4 nonsense\r\n",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1 99999\r\n",
        &version_2(1, 0x11, &[1, 2]),
    ] {
        let mut client: Conn = proxy.connect();
        let _ = client.try_send(bytes);
        let _ = client.try_send(get("/").to_bytes());
        client.read_to_end();
    }
    assert_eq!(origin.count(), 0);
}

#[test]
fn a_proxy_header_means_nothing_where_none_is_expected() {
    let (proxy, origin) = start("");
    let mut client = proxy.connect();
    client.send("PROXY TCP4 192.0.2.7 192.0.2.1 5000 80\r\n");
    let _ = client.try_send(get("/").to_bytes());
    client.response().expect(400);
    client.expect_end();
    assert_eq!(origin.count(), 0);
}

#[test]
fn a_trusted_proxy_is_believed_and_added_to() {
    let (proxy, origin) = start("trusted_proxies = [\"127.0.0.0/8\"]");
    let request = get("/")
        .with("X-Forwarded-For", "192.0.2.7")
        .with("X-Forwarded-Proto", "https")
        .with("X-Forwarded-Host", "public.example")
        .with("Forwarded", "for=192.0.2.7;proto=https");
    proxy.exchange(&request).expect(200);
    let fields = origin.last().fields;
    assert_eq!(fields.list("x-forwarded-for"), "192.0.2.7, 127.0.0.1");
    assert_eq!(fields.list("x-forwarded-proto"), "https");
    assert_eq!(fields.list("x-forwarded-host"), "public.example");
    let forwarded = fields.list("forwarded");
    assert!(
        forwarded.starts_with("for=192.0.2.7;proto=https, ") && forwarded.contains("for=127.0.0.1"),
        "{forwarded}"
    );
}

#[test]
fn what_is_told_of_the_client_can_be_turned_off() {
    let origin = Origin::new(|_| reply(200));
    let proxy = sandarac()
        .config(site(
            &origin.url(),
            "",
            "[forwarded]\nx_forwarded = false\nforwarded = false\nname = \"edge\"",
        ))
        .start();
    let response = proxy.exchange(&get("/").with("X-Forwarded-For", "6.6.6.6")).expect(200);
    let fields = origin.last().fields;
    assert!(!fields.has("forwarded") && !fields.list("x-forwarded-for").contains("127.0.0.1"));
    assert_eq!(fields.list("via"), "1.1 edge");
    assert!(response.cache_status().starts_with("edge;"), "{response:?}");
}
