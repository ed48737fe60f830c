//! The address of the client: the PROXY protocol, and trusted proxies.

use sandarac_test_support::{Conn, Origin, Sandarac, get, reply, within};

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
    // A connection that is closed without a byte is a check of the port.
    let mut check = proxy.connect();
    check.finish();
    check.expect_end();
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
    assert_eq!(proxy.metric("proxy_headers_missing"), 4);
    let warning = format!(
        " to {} is closed: it does not begin with a valid PROXY header (proxy_protocol = true)",
        proxy.address()
    );
    proxy.says(&warning);
    let stderr = proxy.stderr();
    assert!(stderr.contains("sandarac: a connection from 127.0.0.1:"), "{stderr}");
    assert_eq!(stderr.matches(&warning).count(), 1, "{stderr}");
}

#[test]
fn a_connection_that_sends_no_proxy_header_in_time_is_counted() {
    let origin = Origin::new(|_| reply(200));
    let address = "address = \"127.0.0.1:0\"\n";
    let text = site(&origin.url(), "", "[timeouts]\nhead = \"1s\"")
        .replace(address, &format!("{address}proxy_protocol = true\n"));
    let proxy = sandarac().config(text).start();
    proxy.connect().expect_end();
    assert_eq!(proxy.metric("proxy_headers_missing"), 1);
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
    // Only requests that bypass the cache carry these, because a stored page must depend on its key alone.
    proxy.exchange(&request.with("Cookie", "session=1")).expect(200);
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

/// The client in the log record of the one request that `send` makes, at a listener with `keys`. PURGE is allowed from
/// 192.0.2.0/24.
fn logged(keys: &str, send: impl FnOnce(&Sandarac)) -> serde_json::Value {
    let origin = Origin::new(|_| reply(200).cache("max-age=60"));
    let tables = "[log]\naccess = \"./log\"\nformat = \"json\"\n[purge]\nallow = [\"192.0.2.0/24\"]";
    let address = "address = \"127.0.0.1:0\"\n";
    let text = site(&origin.url(), "", tables).replace(address, &format!("{address}{keys}\n"));
    let proxy = sandarac().config(text).start();
    send(&proxy);
    let line = within("a line in the log", || {
        let text = std::fs::read_to_string(proxy.dir().join("log")).unwrap_or_default();
        text.split_once('\n').map(|(line, _)| line.to_owned())
    });
    serde_json::from_str::<serde_json::Value>(&line).expect("JSON")["client"].clone()
}

#[test]
fn the_log_has_the_visitor_whom_a_trusted_proxy_names() {
    let trusting = "trusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\"]";
    for (keys, list, client) in [
        (trusting, "6.6.6.6, 192.0.2.7, 10.1.2.3", "192.0.2.7"),
        (trusting, "192.0.2.7", "192.0.2.7"),
        (trusting, "", "127.0.0.1"),
        ("trusted_proxies = [\"10.0.0.0/8\"]", "192.0.2.7", "127.0.0.1"),
        ("", "192.0.2.7", "127.0.0.1"),
    ] {
        let ask = |proxy: &Sandarac| {
            let request = if list.is_empty() { get("/") } else { get("/").with("X-Forwarded-For", list) };
            proxy.exchange(&request).expect(200);
        };
        assert_eq!(logged(keys, ask), client, "{keys} {list}");
    }
}

#[test]
fn a_purge_is_decided_by_the_connection_whatever_is_forwarded() {
    let client = logged("trusted_proxies = [\"127.0.0.1\"]", |proxy| {
        let mut client = proxy.connect();
        client.send("PURGE / HTTP/1.1\r\nHost: www.example\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n");
        client.response().expect(403);
    });
    assert_eq!(client, "192.0.2.7", "the log names who asked");
    let client = logged("proxy_protocol = true", |proxy| {
        let mut client = proxy.connect();
        client.send("PROXY TCP4 192.0.2.7 192.0.2.1 5000 80\r\n");
        client.send("PURGE / HTTP/1.1\r\nHost: www.example\r\n\r\n");
        client.response().expect(200);
    });
    assert_eq!(client, "192.0.2.7");
}

#[test]
fn a_listener_behind_tls_is_reached_by_https() {
    let (proxy, origin) = start("proxy_protocol = true\nscheme = \"https\"");
    let mut client = proxy.connect();
    client.send("PROXY TCP4 192.0.2.7 192.0.2.1 5000 443\r\n");
    client.get("/").expect(200);
    let fields = origin.last().fields;
    assert_eq!(fields.list("x-forwarded-proto"), "https");
    assert_eq!(fields.list("x-forwarded-for"), "192.0.2.7");
    assert!(fields.list("forwarded").contains("proto=https"), "{fields:?}");
    client.get("https://www.example/whole").expect(200);
    // A trusted proxy may still say that its client used http.
    let (proxy, origin) = start("scheme = \"https\"\ntrusted_proxies = [\"127.0.0.1\"]");
    proxy.exchange(&get("/").with("X-Forwarded-Proto", "http")).expect(200);
    assert_eq!(origin.last().field("x-forwarded-proto"), Some("http"));
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
