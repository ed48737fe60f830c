//! etcd, and its HTTP gateway.

use std::fmt::Write;
use std::net::SocketAddr;
use std::process::Command;

use serde_json::{Value, json};

use super::{Server, can_fail};
use crate::{Address, Conn, Port, post};

/// An etcd server, a cluster of its own. It ends when dropped.
pub struct Etcd {
    server: Server,
    /// Held, so that nobody else has them while it is down.
    clients: Port,
    peers: Port,
}

can_fail!(Etcd);

impl Etcd {
    /// Starts one without keys.
    pub fn start() -> Etcd {
        let mut etcd = Etcd { server: Server::new("etcd-server"), clients: Port::new(), peers: Port::new() };
        etcd.launch();
        etcd
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.clients.address()
    }

    /// The endpoint, as the setting takes it.
    pub fn url(&self) -> String {
        self.clients.url()
    }

    /// Writes a key. Returns the revision.
    #[track_caller]
    pub fn put(&self, key: &str, value: &str) -> i64 {
        revision(&self.call("kv/put", &json!({"key": base64(key), "value": base64(value)})))
    }

    /// Writes a key that goes with a lease.
    #[track_caller]
    pub fn put_with_lease(&self, key: &str, value: &str, lease: &str) {
        self.call("kv/put", &json!({"key": base64(key), "value": base64(value), "lease": lease}));
    }

    /// Takes a lease of so many seconds. Returns its number.
    #[track_caller]
    pub fn lease(&self, seconds: u32) -> String {
        let answer = self.call("lease/grant", &json!({"TTL": seconds}));
        answer["ID"].as_str().unwrap_or_else(|| panic!("no lease: {answer}")).to_owned()
    }

    /// Removes a key.
    #[track_caller]
    pub fn delete(&self, key: &str) {
        self.call("kv/deleterange", &json!({"key": base64(key)}));
    }

    /// Forgets what happened before `revision`.
    #[track_caller]
    pub fn compact(&self, revision: i64) {
        self.call("kv/compaction", &json!({"revision": revision.to_string(), "physical": true}));
    }

    /// Calls a method of the gateway.
    ///
    /// # Panics
    /// If it does not answer with 200.
    #[track_caller]
    pub fn call(&self, method: &str, message: &Value) -> Value {
        try_call(self.address(), method, message).unwrap_or_else(|what| panic!("{method}: {what}"))
    }

    fn launch(&mut self) {
        let (client, peer) = (self.clients.url(), self.peers.url());
        let mut command = Command::new("etcd");
        command.args(["--name", "alone", "--data-dir", "data", "--log-level", "warn"]);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("alone={peer}")]);
        // Tokens of users are good for two seconds, so that a test can see one expire.
        command.args(["--auth-token", "simple", "--auth-token-ttl", "2"]);
        let address = self.address();
        let serves = || {
            try_call(address, "maintenance/status", &json!({}))
                .is_ok_and(|status| status["leader"].is_string())
        };
        self.server.launch(command, serves);
    }
}

/// Calls a method of the gateway, or says why it does not answer.
fn try_call(address: SocketAddr, method: &str, message: &Value) -> Result<Value, String> {
    let mut conn = Conn::try_to(&Address::Tcp(address)).map_err(|error| error.to_string())?;
    let request = post(&format!("/v3/{method}"), &message.to_string());
    conn.try_send(request.to_bytes()).map_err(|error| error.to_string())?;
    let response = conn.try_response("POST").map_err(|trouble| format!("{trouble:?}"))?;
    if response.status != 200 {
        return Err(format!("{response:?}"));
    }
    serde_json::from_slice(&response.body).map_err(|error| error.to_string())
}

fn revision(answer: &Value) -> i64 {
    let revision = answer["header"]["revision"].as_str().and_then(|text| text.parse().ok());
    revision.unwrap_or_else(|| panic!("no revision: {answer}"))
}

/// `text` in Base64 (RFC 4648 §4).
pub fn base64(text: &str) -> String {
    let bits = text.bytes().fold(String::new(), |mut bits, byte| {
        let _ = write!(bits, "{byte:08b}");
        bits
    });
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let sextets = bits.as_bytes().chunks(6).map(|sextet| {
        let sextet = format!("{:0<6}", String::from_utf8_lossy(sextet));
        char::from(digits[usize::from_str_radix(&sextet, 2).expect("six bits")])
    });
    let text: String = sextets.collect();
    let length = text.len().next_multiple_of(4);
    format!("{text:=<length$}")
}
