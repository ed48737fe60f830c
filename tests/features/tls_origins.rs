//! TLS to backends.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use sandarac_test_support::{Sandarac, eventually};

use crate::ca::Ca;
use crate::sandarac;

type TlsConn = StreamOwned<ServerConnection, TcpStream>;

/// A scripted backend over TLS.
struct Backend {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Backend {
    /// A backend that calls `serve` with each connection, after its handshake.
    fn new(config: Arc<ServerConfig>, serve: impl Fn(TlsConn) + Send + Sync + 'static) -> Backend {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, connections) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
        let (serve, count) = (Arc::new(serve), connections.clone());
        thread::spawn(move || {
            for socket in listener.incoming() {
                count.fetch_add(1, Ordering::SeqCst);
                let (serve, config) = (serve.clone(), config.clone());
                thread::spawn(move || {
                    let mut conn = StreamOwned::new(ServerConnection::new(config).unwrap(), socket.unwrap());
                    if conn.conn.complete_io(&mut conn.sock).is_ok() {
                        serve(conn);
                    }
                });
            }
        });
        Backend { port, connections }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Reads a request without a body; `None` at the end of the connection.
fn request(conn: &mut TlsConn) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0; 1];
    while !head.ends_with(b"\r\n\r\n") {
        if conn.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

/// Answers each request with a body that names its Host.
fn echo(mut conn: TlsConn) {
    while let Some(head) = request(&mut conn) {
        let host = head.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default().to_owned();
        let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{host}", host.len());
        if conn.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

/// A proxy whose pool has `https://HOST:PORT` and the settings `tls`.
fn proxy(host: &str, port: u16, tls: &str) -> Sandarac {
    let text = format!(
        "threads = 1\n\n[[listen]]\naddress = \"127.0.0.1:0\"\n\n[pool.app]\nbackends = [\"https://{host}:{port}\"]\n\
         tls = {tls}\n\n[[route]]\npool = \"app\"\n"
    );
    sandarac().config(text).start()
}

#[test]
fn a_backend_is_verified_by_the_ca_that_is_named() {
    let ca = Ca::new();
    ca.issue("app", "localhost");
    let backend = Backend::new(ca.server("app"), echo);
    let proxy = proxy("localhost", backend.port, &format!("{{ ca = \"{}\" }}", ca.file()));
    let response = proxy.get("/");
    assert_eq!((response.status, response.text().as_str()), (200, "www.example"));
}

/// Each failure is a 502 with the error type of RFC 9209 §2.3, and nothing is sent to the backend.
#[test]
fn a_certificate_that_does_not_verify_is_named() {
    let (ca, other) = (Ca::new(), Ca::new());
    ca.issue("app", "app.internal");
    ca.issue_until("old", "localhost", 2021);
    ca.issue_ca("authority", "localhost");
    let served = |file: &str| Backend::new(ca.server(file), |_| panic!("a request was sent"));
    let (good, old, authority) = (served("app"), served("old"), served("authority"));
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let plain_port = plain.local_addr().unwrap().port();
    thread::spawn(move || {
        for socket in plain.incoming() {
            let mut socket = socket.unwrap();
            let _ = socket.read(&mut [0; 1]);
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    for (port, ca, error, says) in [
        (good.port, &other, "tls_certificate_error", "issued by no CA that is trusted"),
        (good.port, &ca, "tls_certificate_error", "for another name"),
        (old.port, &ca, "tls_certificate_error", "has expired"),
        (authority.port, &ca, "tls_certificate_error", "is that of a CA"),
        (plain_port, &ca, "tls_protocol_error", "does not speak TLS"),
    ] {
        let proxy = proxy("localhost", port, &format!("{{ ca = \"{}\" }}", ca.file()));
        let response = proxy.get("/");
        assert_eq!(response.status, 502);
        let proxy_status = response.field("Proxy-Status").unwrap_or_default();
        assert!(proxy_status.contains(error) && proxy_status.contains(says), "{proxy_status}");
    }
}

#[test]
fn the_name_to_verify_can_be_set_and_verification_turned_off() {
    let ca = Ca::new();
    ca.issue("app", "app.internal");
    let backend = Backend::new(ca.server("app"), echo);
    let named = format!("{{ ca = \"{}\", server_name = \"app.internal\" }}", ca.file());
    for tls in [&*named, "{ dangerous_skip_verification = true }"] {
        assert_eq!(proxy("127.0.0.1", backend.port, tls).get("/").status, 200);
    }
}

/// Tickets arrive after the handshake, or with the first response, and are not an answer to a request.
#[test]
fn a_connection_is_kept_although_tickets_arrive_on_it() {
    let ca = Ca::new();
    ca.issue("app", "localhost");
    let backend = Backend::new(ca.server("app"), |mut conn: TlsConn| {
        while request(&mut conn).is_some() {
            conn.write_all(b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok")
                .unwrap();
            // A record that is not data follows the response.
            conn.conn.refresh_traffic_keys().unwrap();
            conn.flush().unwrap();
        }
    });
    let proxy = proxy("localhost", backend.port, &format!("{{ ca = \"{}\" }}", ca.file()));
    for _ in 0..5 {
        assert_eq!(proxy.get("/").status, 200);
    }
    assert_eq!(backend.connections(), 1);
}

/// RFC 8446 §6.1: without close_notify nobody knows that the end of the connection is that of the body.
#[test]
fn a_body_that_ends_without_close_notify_is_not_stored() {
    let ca = Ca::new();
    ca.issue("app", "localhost");
    let fetches = Arc::new(AtomicUsize::new(0));
    let backend = {
        let fetches = fetches.clone();
        Backend::new(ca.server("app"), move |mut conn: TlsConn| {
            let Some(head) = request(&mut conn) else { return };
            conn.write_all(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\n\r\nhalf a page").unwrap();
            if head.starts_with("GET /whole ") {
                conn.conn.send_close_notify();
            }
            fetches.fetch_add(1, Ordering::SeqCst);
            conn.flush().unwrap();
        })
    };
    let proxy = proxy("localhost", backend.port, &format!("{{ ca = \"{}\" }}", ca.file()));
    for _ in 0..2 {
        assert_eq!(proxy.get("/whole").text(), "half a page");
    }
    assert_eq!(fetches.load(Ordering::SeqCst), 1, "an end in order is the end of the body");
    for _ in 0..2 {
        let mut conn = proxy.connect();
        conn.send("GET /cut HTTP/1.1\r\nHost: test.example\r\n\r\n");
        let mut response = conn.response_head();
        assert!(!response.cache_status().contains("stored"), "{response:?}");
        assert!(conn.try_response_body("GET", &mut response).is_err(), "the response breaks off");
    }
    assert_eq!(fetches.load(Ordering::SeqCst), 3);
}

/// Regression: in TLS 1.3 the handshake of the client ends before the server can refuse it, and the alert was taken for a lost
/// connection.
#[test]
fn a_backend_that_demands_a_certificate_is_named() {
    let ca = Ca::new();
    ca.issue("app", "localhost");
    let config = ca.server_that_demands_certificates("app");
    let backend = Backend::new(config, |_| panic!("the handshake ends without a certificate"));
    let proxy = proxy("localhost", backend.port, &format!("{{ ca = \"{}\" }}", ca.file()));
    let response = proxy.get("/");
    assert_eq!(response.status, 502);
    let proxy_status = response.field("Proxy-Status").unwrap_or_default();
    let says = "it demands a client certificate";
    assert!(proxy_status.contains("tls_alert_received") && proxy_status.contains(says), "{proxy_status}");
}

/// Regression: a kept connection that ends with an alert was taken for a refusal, and not for one that has ended.
#[test]
fn an_alert_on_a_kept_connection_is_the_end_of_that_connection() {
    let ca = Ca::new();
    ca.issue("app", "localhost");
    let backend = Backend::new(ca.server("app"), |mut conn: TlsConn| {
        assert!(request(&mut conn).is_some());
        conn.write_all(b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok").unwrap();
        if request(&mut conn).is_some() {
            send_alert(&mut conn);
        }
    });
    let proxy = proxy("localhost", backend.port, &format!("{{ ca = \"{}\" }}", ca.file()));
    assert_eq!(proxy.get("/").status, 200);
    assert_eq!(proxy.get("/").status, 200);
    assert_eq!(backend.connections(), 2);
}

#[test]
fn an_alert_for_a_first_request_is_named() {
    let ca = Ca::new();
    ca.issue("app", "localhost");
    let backend = Backend::new(ca.server("app"), |mut conn: TlsConn| {
        assert!(request(&mut conn).is_some());
        send_alert(&mut conn);
    });
    let proxy = proxy("localhost", backend.port, &format!("{{ ca = \"{}\" }}", ca.file()));
    let response = proxy.get("/");
    assert_eq!(response.status, 502);
    let proxy_status = response.field("Proxy-Status").unwrap_or_default();
    let says = "it refused the connection with the alert bad_record_mac";
    assert!(proxy_status.contains("tls_alert_received") && proxy_status.contains(says), "{proxy_status}");
}

/// Sends the alert for a record that cannot be decrypted.
fn send_alert(conn: &mut TlsConn) {
    let record = [&[23, 3, 3, 0, 32][..], &[0; 32]].concat();
    conn.conn.read_tls(&mut &*record).unwrap();
    conn.conn.process_new_packets().unwrap_err();
    conn.conn.write_tls(&mut conn.sock).unwrap();
}

/// The checks of a pool use its TLS.
#[test]
fn checks_are_made_over_tls() {
    let ca = Ca::new();
    ca.issue("app", "localhost");
    let backend = Backend::new(ca.server("app"), echo);
    let tls = format!("{{ ca = \"{}\" }}\ncheck = {{ path = \"/health\", interval = \"100ms\" }}", ca.file());
    let proxy = proxy("localhost", backend.port, &tls);
    assert_eq!(proxy.get("/").status, 200);
    let before = backend.connections();
    eventually("two more checks", || (backend.connections() > before + 1).then_some(()));
    assert_eq!(proxy.get("/").status, 200);
}
