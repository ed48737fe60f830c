//! Small servers of this process that answer the CA's checks, as listeners of Sandarac would.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::crypto::aws_lc_rs;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection};
use sandarac_acme::{ChallengeCertificate, Challenges, Event, KeyedChain, Sink};
use sandarac_message::Timestamp;
use std::collections::HashMap;
use std::time::SystemTime;

/// Answers HTTP-01 for whatever challenges are set. Its thread ends with the process.
pub(crate) struct HttpServer {
    pub(crate) address: SocketAddr,
    challenges: Arc<Mutex<Option<Challenges>>>,
}

impl HttpServer {
    pub(crate) fn start() -> HttpServer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let challenges: Arc<Mutex<Option<Challenges>>> = Arc::default();
        let shared = Arc::clone(&challenges);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut line = String::new();
                _ = BufReader::new(&stream).read_line(&mut line);
                let path = line.split(' ').nth(1).unwrap_or_default();
                let challenges = shared.lock().expect("no panic").clone();
                let body = path
                    .strip_prefix("/.well-known/acme-challenge/")
                    .and_then(|token| challenges?.http01(token, SystemTime::now().into()));
                _ = match body {
                    Some(body) => write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}"),
                    None => write!(stream, "HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n"),
                };
            }
        });
        HttpServer { address, challenges }
    }

    pub(crate) fn answers(&self, challenges: Challenges) {
        *self.challenges.lock().expect("no panic") = Some(challenges);
    }
}

/// Answers TLS-ALPN-01. Its thread ends with the process.
pub(crate) struct TlsServer {
    pub(crate) address: SocketAddr,
    pub(crate) shown: Arc<Shown>,
}

/// The certificates for `acme-tls/1`: those that a [`Sink`] was given, and those of other nodes.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pushed: Mutex<HashMap<String, Arc<CertifiedKey>>>,
    pulled: Mutex<Option<Challenges>>,
}

impl TlsServer {
    pub(crate) fn start() -> TlsServer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shown: Arc<Shown> = Arc::default();
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&shown) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
        let config = Arc::new(config);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut tls = ServerConnection::new(Arc::clone(&config)).expect("a server");
                while tls.is_handshaking() && tls.complete_io(&mut stream).is_ok() {}
            }
        });
        TlsServer { address, shown }
    }

    /// Answers for the orders of other nodes that share the directory.
    pub(crate) fn answers(&self, challenges: Challenges) {
        *self.shown.pulled.lock().expect("no panic") = Some(challenges);
    }
}

fn certified(certificate: ChallengeCertificate) -> Arc<CertifiedKey> {
    Arc::new(certificate.certified_key().expect("a key that signs"))
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name()?;
        let pushed = self.pushed.lock().expect("no panic").get(name).cloned();
        pushed.or_else(|| {
            let challenges = self.pulled.lock().expect("no panic").clone()?;
            challenges.tls_alpn01(name, Timestamp::from(SystemTime::now())).map(certified)
        })
    }
}

/// Only the challenges are of interest.
impl Sink for Shown {
    fn challenge(&self, name: &str, certificate: Option<ChallengeCertificate>) {
        let mut pushed = self.pushed.lock().expect("no panic");
        match certificate {
            Some(certificate) => _ = pushed.insert(name.to_owned(), certified(certificate)),
            None => _ = pushed.remove(name),
        }
    }

    fn issued(&self, _: &[String], _: &KeyedChain) {}

    fn event(&self, _: &Event) {}
}
