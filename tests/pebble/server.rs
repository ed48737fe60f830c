//! Pebble and its name server, in a directory and on ports of their own.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use sandarac_test_support::{Port, TempDir, within};
use serde_json::json;

/// The CA, running. Every name leads to 127.0.0.1.
pub(crate) struct Pebble {
    dir: TempDir,
    api: Port,
    management: Port,
    dns: Port,
    dns_management: Port,
    /// Where HTTP-01 is verified instead of port 80.
    pub(crate) http: SocketAddr,
    /// Where TLS-ALPN-01 is verified instead of port 443.
    pub(crate) tls: SocketAddr,
    external_accounts: bool,
    children: Vec<Child>,
}

/// The key identifier and the key of the one customer, if there have to be customers.
pub(crate) const CUSTOMER: (&str, &str) =
    ("kid-1", "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W");

impl Pebble {
    /// Starts one that verifies at these addresses of 127.0.0.1.
    pub(crate) fn start(http: SocketAddr, tls: SocketAddr) -> Pebble {
        Pebble::launched(http, tls, false)
    }

    /// Starts one that takes only accounts of [`CUSTOMER`].
    pub(crate) fn for_customers(http: SocketAddr, tls: SocketAddr) -> Pebble {
        Pebble::launched(http, tls, true)
    }

    fn launched(http: SocketAddr, tls: SocketAddr, external_accounts: bool) -> Pebble {
        let mut pebble = Pebble {
            dir: TempDir::new(),
            api: Port::new(),
            management: Port::new(),
            dns: udp_port(),
            dns_management: Port::new(),
            http,
            tls,
            external_accounts,
            children: Vec::new(),
        };
        pebble.write_certificate();
        pebble.launch();
        pebble
    }

    /// Ends it and starts it again: it has forgotten all accounts, orders and roots.
    pub(crate) fn restart(&mut self) {
        self.stop();
        self.launch();
    }

    /// The URL of its directory.
    pub(crate) fn directory(&self) -> String {
        format!("https://{}/dir", self.api.address())
    }

    /// The file of the root by which its own server is verified.
    pub(crate) fn root_file(&self) -> PathBuf {
        self.dir.join("root.pem")
    }

    /// How many orders it was sent.
    pub(crate) fn orders(&self) -> usize {
        let log = std::fs::read_to_string(self.dir.join("log")).expect("a log");
        log.matches("POST /order-plz").count()
    }

    /// The root of the certificates that it issues.
    pub(crate) fn root(&self) -> CertificateDer<'static> {
        let response = self.get(self.management.address(), "/roots/0").expect("pebble's root");
        let (_, pem) = response.split_once("\r\n\r\n").expect("a response");
        CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")
    }

    fn launch(&mut self) {
        let mut dns = Command::new(binary("pebble-challtestsrv"));
        dns.args([
            "-dnsserver",
            &self.dns.address().to_string(),
            "-defaultIPv4",
            "127.0.0.1",
            "-defaultIPv6",
            "",
        ]);
        dns.args(["-management", &self.dns_management.address().to_string()]);
        dns.args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""]);
        self.spawn(dns);

        let customers = if self.external_accounts { json!({CUSTOMER.0: CUSTOMER.1}) } else { json!({}) };
        let config = json!({"pebble": {
            "listenAddress": self.api.address().to_string(),
            "managementListenAddress": self.management.address().to_string(),
            "certificate": self.dir.join("chain.pem"),
            "privateKey": self.dir.join("key.pem"),
            "httpPort": self.http.port(),
            "tlsPort": self.tls.port(),
            "externalAccountBindingRequired": self.external_accounts,
            "externalAccountMACKeys": customers,
            "domainBlocklist": ["blocked.example"],
            "keyAlgorithm": "ecdsa",
            "profiles": {"default": {"description": "90 days", "validityPeriod": 7_776_000}},
        }});
        std::fs::write(self.dir.join("config.json"), config.to_string()).expect("written");
        let mut pebble = Command::new(binary("pebble"));
        pebble.args(["-config", "config.json", "-dnsserver", &self.dns.address().to_string()]);
        // It verifies at once, takes every nonce, and lets no order profit from another: no test depends on luck.
        pebble.env("PEBBLE_VA_NOSLEEP", "1").env("PEBBLE_WFE_NONCEREJECT", "0").env("PEBBLE_AUTHZREUSE", "0");
        self.spawn(pebble);
        within("pebble to serve", || {
            self.assert_runs();
            self.get(self.api.address(), "/dir").filter(|response| response.contains("newOrder"))
        });
    }

    fn spawn(&mut self, mut command: Command) {
        let log = File::options().create(true).append(true).open(self.dir.join("log")).expect("a log");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
        let child = command.current_dir(self.dir.path()).spawn();
        self.children.push(child.unwrap_or_else(|error| panic!("{command:?}: {error}; {MISSING}")));
    }

    fn assert_runs(&mut self) {
        for child in &mut self.children {
            if let Ok(Some(status)) = child.try_wait() {
                let log = std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
                panic!("pebble or its name server ended with {status}: {log}");
            }
        }
    }

    fn stop(&mut self) {
        for mut child in self.children.drain(..) {
            _ = child.kill();
            _ = child.wait();
        }
    }

    /// A certificate for 127.0.0.1, with its root.
    fn write_certificate(&self) {
        let (root_key, key) = (KeyPair::generate().expect("a key"), KeyPair::generate().expect("a key"));
        let mut root = CertificateParams::default();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root_pem = root.self_signed(&root_key).expect("a root").pem();
        let leaf = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
        let chain = leaf.signed_by(&key, &Issuer::new(root, root_key)).expect("a certificate").pem();
        for (name, text) in [("root.pem", root_pem), ("chain.pem", chain), ("key.pem", key.serialize_pem())] {
            std::fs::write(self.dir.join(name), text).expect("written");
        }
    }

    /// The response to a GET. `None` while nobody listens.
    fn get(&self, address: SocketAddr, path: &str) -> Option<String> {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_file(self.dir.join("root.pem")).expect("the root");
        roots.add(root).expect("a root");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("127.0.0.1").expect("a name");
        let tls = rustls::ClientConnection::new(Arc::new(config), name).expect("a client");
        let mut stream = rustls::StreamOwned::new(tls, TcpStream::connect(address).ok()?);
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\nUser-Agent: test\r\n\r\n").ok()?;
        let mut response = Vec::new();
        _ = stream.read_to_end(&mut response);
        String::from_utf8(response).ok()
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", std::fs::read_to_string(self.dir.join("log")).unwrap_or_default());
        }
        self.stop();
    }
}

const MISSING: &str = "./check builds pebble into target/pebble, for which it needs Go 1.24 or later";

/// A program that `./check` built, or one of the same name in the PATH.
fn binary(name: &str) -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/pebble").join(name);
    built.canonicalize().unwrap_or_else(|_| name.into())
}

/// A port that is free for UDP too.
fn udp_port() -> Port {
    within("a port", || {
        let port = Port::new();
        UdpSocket::bind(port.address()).is_ok().then_some(port)
    })
}
