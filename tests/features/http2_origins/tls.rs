//! The choice of the protocol in TLS (ALPN).

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::{ServerConnection, StreamOwned};
use sandarac_test_support::http2::{END_HEADERS, END_STREAM, block, frame, kind};
use sandarac_test_support::{Sandarac, get, within};

use crate::ca::Ca;
use crate::sandarac;

type TlsConn = StreamOwned<ServerConnection, TcpStream>;

/// A backend over TLS that offers these protocols, and answers with the one that was chosen.
struct Backend {
    port: u16,
    connections: Arc<AtomicUsize>,
    /// The protocol of each connection.
    chosen: Arc<Mutex<Vec<String>>>,
}

fn backend(ca: &Ca, alpn: &[&str]) -> Backend {
    let mut config = (*ca.server("app")).clone();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = listener.local_addr().unwrap().port();
    let backend = Backend { port, connections: Arc::default(), chosen: Arc::default() };
    let (count, chosen) = (backend.connections.clone(), backend.chosen.clone());
    thread::spawn(move || {
        for socket in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
            let (config, chosen) = (config.clone(), chosen.clone());
            thread::spawn(move || {
                let mut conn = StreamOwned::new(ServerConnection::new(config).unwrap(), socket.unwrap());
                if conn.conn.complete_io(&mut conn.sock).is_err() {
                    return;
                }
                let protocol = conn.conn.alpn_protocol().unwrap_or(b"none").to_vec();
                let protocol = String::from_utf8(protocol).unwrap();
                chosen.lock().unwrap().push(protocol.clone());
                // The end of the connection ends it.
                let _ = if protocol == "h2" { http2(&mut conn) } else { http1(&mut conn, &protocol) };
            });
        }
    });
    backend
}

fn http1(conn: &mut TlsConn, protocol: &str) -> std::io::Result<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0; 1];
            conn.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        if String::from_utf8_lossy(&head).contains("Upgrade: websocket") {
            conn.write_all(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            )?;
            continue;
        }
        conn.write_all(
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{protocol}", protocol.len()).as_bytes(),
        )?;
    }
}

fn http2(conn: &mut TlsConn) -> std::io::Result<()> {
    conn.read_exact(&mut [0; 24])?;
    conn.write_all(&frame(kind::SETTINGS, 0, 0, []))?;
    loop {
        let mut head = [0; 9];
        conn.read_exact(&mut head)?;
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; len];
        conn.read_exact(&mut payload)?;
        let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
        match head[3] {
            kind::HEADERS => {
                let mut answer = frame(kind::HEADERS, END_HEADERS, stream, block(&[(":status", "200")]));
                answer.extend(frame(kind::DATA, END_STREAM, stream, "h2"));
                conn.write_all(&answer)?;
            }
            kind::SETTINGS if head[4] == 0 => conn.write_all(&frame(kind::SETTINGS, END_STREAM, 0, []))?,
            _ => {}
        }
    }
}

fn proxy(ca: &Ca, backend: &Backend, alpn: &str) -> Sandarac {
    let text = format!(
        "threads = 1\n\n[[listen]]\naddress = \"127.0.0.1:0\"\n\n[pool.app]\nbackends = [\"https://localhost:{}\"]\n\
         tls = {{ ca = \"{}\"{alpn} }}\n\n[[route]]\npool = \"app\"\ncache = \"pass\"\n\n\
         [log]\naccess = \"./access.json\"\nformat = \"json\"\n",
        backend.port,
        ca.file()
    );
    sandarac().config(text).start()
}

fn ca() -> Ca {
    let ca = Ca::new();
    ca.issue("app", "localhost");
    ca
}

#[test]
fn the_protocol_is_the_one_that_the_backend_chooses() {
    let ca = ca();
    for (alpn, offered, chosen) in [
        ("", &["h2", "http/1.1"][..], "http/1.1"),
        (", alpn = [\"h2\", \"http/1.1\"]", &["h2", "http/1.1"], "h2"),
        (", alpn = [\"h2\", \"http/1.1\"]", &["http/1.1"], "http/1.1"),
        (", alpn = [\"h2\", \"http/1.1\"]", &[], "none"),
        (", alpn = [\"h2\"]", &["h2"], "h2"),
    ] {
        let backend = backend(&ca, offered);
        let proxy = proxy(&ca, &backend, alpn);
        let mut conn = proxy.connect();
        for _ in 0..3 {
            assert_eq!(conn.get("/").text(), chosen, "{alpn} {offered:?}");
        }
        assert_eq!(backend.connections.load(Ordering::SeqCst), 1);
        let protocol = if chosen == "h2" { "HTTP/2.0" } else { "HTTP/1.1" };
        let log = proxy.dir().join("access.json");
        let logged = format!("\"backend_protocol\":\"{protocol}\"");
        within("the log", || {
            let text = fs::read_to_string(&log).ok()?;
            (text.lines().filter(|line| line.contains(&logged)).count() == 3).then_some(())
        });
    }
}

#[test]
fn a_burst_of_requests_shares_the_first_connection() {
    let ca = ca();
    for (offered, connections) in [(&["h2"][..], 1..=1), (&["http/1.1"], 1..=10)] {
        let backend = backend(&ca, offered);
        let proxy = proxy(&ca, &backend, ", alpn = [\"h2\", \"http/1.1\"]");
        let mut clients: Vec<_> = (0..10).map(|_| proxy.connect()).collect();
        clients.iter_mut().for_each(|conn| _ = conn.send(get("/").to_bytes()));
        clients.iter_mut().for_each(|conn| assert_eq!(conn.response().text(), offered[0]));
        assert!(connections.contains(&backend.connections.load(Ordering::SeqCst)));
    }
}

/// The backend offers no extended CONNECT, so it is asked over HTTP/1.1.
#[test]
fn an_upgrade_falls_back_to_http_1() {
    let ca = ca();
    let backend = backend(&ca, &["h2", "http/1.1"]);
    let proxy = proxy(&ca, &backend, ", alpn = [\"h2\", \"http/1.1\"]");
    let mut conn = proxy.connect();
    conn.send(get("/").with("Connection", "Upgrade").with("Upgrade", "websocket").to_bytes());
    assert_eq!(conn.response().status, 101);
    assert_eq!(*backend.chosen.lock().unwrap(), ["h2", "http/1.1"]);
}

#[test]
fn an_empty_alpn_is_refused() {
    let ca = ca();
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[pool.app]\nbackends = [\"https://a\"]\ntls = {{ ca = \"{}\", alpn = [] }}\n\
         [[route]]\npool = \"app\"\n",
        ca.file()
    );
    let output = sandarac().config(text).run().failure();
    assert!(output.stderr.contains("`alpn` needs a protocol"), "{}", output.stderr);
}
