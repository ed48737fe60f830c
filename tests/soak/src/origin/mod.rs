//! Backends: servers that answer for every host, as the host and the request ask for it.

mod application;
mod cached;
mod echo;
mod gateway;
pub(crate) mod tunnel;
pub(crate) mod upload;
mod worker;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub(crate) use echo::echoed;
use sandarac_test_support::{Conn, Listener, Port, Request, TempDir, http_date};

use crate::pool::Pool;
use crate::random::Random;
use crate::stage::Stage;
use crate::verdict::Rule;

/// How often a waiting thread looks whether its backend was killed.
const LOOK: Duration = Duration::from_millis(50);

/// The stack of a thread that serves a connection. Reading takes 64 KiB of it.
pub(crate) const STACK: usize = 256 << 10;

/// A request that comes within this time of a stray response may have crossed it on the way: neither side can tell then which
/// request the response belongs to.
const CROSSING: Duration = Duration::from_millis(10);

/// A backend, which can be killed and revived at its address.
pub(crate) struct Backend {
    pub(crate) pool: Pool,
    pub(crate) name: String,
    pub(crate) url: String,
    port: Option<Port>,
    power: Arc<Power>,
    accepting: Mutex<Option<JoinHandle<()>>>,
    stage: Arc<Stage>,
}

/// Whether a backend lives.
#[derive(Default)]
struct Power {
    listening: AtomicBool,
    /// How often it was killed.
    deaths: AtomicUsize,
}

/// What becomes of a connection after an answer.
pub(super) enum After {
    Open,
    Closed,
    Reset,
    /// It stays open, and a request that has crossed a stray response is excused.
    Excusing,
}

/// What serves one connection.
struct Server {
    stage: Arc<Stage>,
    name: String,
    random: Random,
    power: Arc<Power>,
    /// The deaths of the backend when the connection began.
    born: usize,
}

impl Backend {
    /// Starts the backends of `pool`.
    pub(crate) fn start_all(pool: Pool, stage: &Arc<Stage>, dir: &TempDir) -> Vec<Backend> {
        let start = |number| {
            let name = format!("{}-{number}", pool.name());
            let (port, listener) = if pool == Pool::Unix {
                (None, Listener::on_unix(&dir.join(&name)))
            } else {
                let port = Port::new();
                let listener = port.listen();
                (Some(port), listener)
            };
            let url = match &port {
                Some(port) if pool == Pool::Cgi => application::before(port.address(), stage),
                Some(port) if pool.is_behind_gateway(number) => gateway::before(port.address()),
                _ => listener.url(),
            };
            let backend = Backend {
                pool,
                name,
                url,
                port,
                power: Arc::default(),
                accepting: Mutex::default(),
                stage: Arc::clone(stage),
            };
            backend.listen(listener);
            backend
        };
        (0..pool.backends()).map(start).collect()
    }

    fn listen(&self, listener: Listener) {
        self.power.listening.store(true, Ordering::SeqCst);
        let (stage, power, name) = (Arc::clone(&self.stage), Arc::clone(&self.power), self.name.clone());
        let accept = move || {
            let mut part = 1 << 32;
            while power.listening.load(Ordering::SeqCst) {
                let Some(conn) = listener.try_accept(LOOK) else { continue };
                part += 1;
                let mut server = Server {
                    stage: Arc::clone(&stage),
                    name: name.clone(),
                    random: Random::new(stage.seed, part),
                    power: Arc::clone(&power),
                    born: power.deaths.load(Ordering::SeqCst),
                };
                let serve = thread::Builder::new().stack_size(STACK).spawn(move || server.serve(conn));
                if serve.is_err() {
                    stage.verdict.violation(Rule::Harness, &[("origin", "no thread".to_owned())]);
                }
            }
        };
        *self.accepting.lock().expect("no thread panics here") = Some(thread::spawn(accept));
    }

    /// Stops to listen, and resets all connections.
    pub(crate) fn kill(&self) {
        self.power.deaths.fetch_add(1, Ordering::SeqCst);
        self.power.listening.store(false, Ordering::SeqCst);
        if let Some(accepting) = self.accepting.lock().expect("no thread panics here").take() {
            let _ = accepting.join();
        }
    }

    /// Listens again where it did.
    pub(crate) fn revive(&self) {
        if let Some(port) = &self.port {
            self.listen(port.listen());
        }
    }
}

impl Server {
    fn is_dead(&self) -> bool {
        self.power.deaths.load(Ordering::SeqCst) != self.born
    }

    fn serve(&mut self, mut conn: Conn) {
        let mut excusing = false;
        loop {
            while !conn.is_ready(LOOK) {
                if self.is_dead() {
                    return conn.reset();
                }
            }
            let Ok(request) = conn.try_request_head() else { return };
            let nonce = request.field("x-nonce").and_then(|nonce| nonce.parse().ok());
            let attempt = nonce.map_or(1, |nonce| self.stage.ledger.attempt(nonce));
            if attempt > 1 && request.method == "POST" {
                let lines = [("request", format!("{request:?}")), ("expected", "one attempt".to_owned())];
                self.stage.verdict.violation(Rule::Resent, &lines);
            }
            if excusing {
                // Whatever the proxy takes for the answer by now, the next request must not be drawn into it.
                return self.stage.ledger.excuse(nonce.unwrap_or_default());
            }
            if self.is_dead() {
                return conn.reset();
            }
            match self.answer(&mut conn, request, attempt) {
                After::Open => {}
                After::Closed => return,
                After::Reset => return conn.reset(),
                After::Excusing => excusing = true,
            }
        }
    }

    fn answer(&mut self, conn: &mut Conn, request: Request, attempt: u32) -> After {
        let host = request.field("host").unwrap_or_default().to_owned();
        if request.path() == worker::RESUME {
            return self.tell_resume(conn, &request);
        }
        if request.fields.has("upgrade") {
            return self.tunnel(conn, &request);
        }
        if request.method == "POST" && host != crate::site::HOST {
            return self.receive(conn, request, attempt);
        }
        let mut request = request;
        if conn.try_request_body(&mut request).is_err() {
            return After::Closed;
        }
        if host == crate::site::HOST {
            self.cached(conn, &request)
        } else {
            self.echo(conn, &request, attempt)
        }
    }

    fn pause(&mut self, low: u64, high: u64) {
        thread::sleep(Duration::from_millis(self.random.within(low, high)));
    }

    /// Sends nothing until the proxy gives up, or for some seconds.
    fn hang(&self, conn: &mut Conn) -> After {
        for _ in 0..80 {
            if self.is_dead() {
                return After::Reset;
            }
            if conn.is_ready(LOOK) {
                break;
            }
        }
        After::Closed
    }
}

/// The head of a response with these fields, and a date.
fn head(status: u16, fields: &[(&str, String)]) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} Soak\r\nDate: {}\r\n", http_date());
    for (name, value) in fields {
        text += &format!("{name}: {value}\r\n");
    }
    (text + "\r\n").into_bytes()
}
