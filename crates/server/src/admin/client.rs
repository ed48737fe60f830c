//! The client of the admin interface: one request per connection, blocking, for the subcommands.

use std::fmt;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use sandarac_message::Method;
use sandarac_wire::h1::{Limits, Parsed, response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::listener::is_trusted;
use super::{
    AddBackend, AskPools, AskShared, Banned, DrainBackend, Endpoint, Fault, Ordered, Pools, Purge, Purged,
    Refusal, Reloaded, RemoveBackend, SharedContent, Standing, Stats, Status, TlsStatus, Upgrade, Upgraded,
};

/// How long the process may take to accept a request, to begin a response, and between two pieces of one.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// The same for an upgrade: the new process has half a minute until it serves.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(60);

/// How often a connection to a socket with a full backlog is retried.
const RETRY_AFTER: Duration = Duration::from_millis(20);

/// How long connecting over TCP may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest response that is read whole, in bytes.
const MAX_ANSWER: u64 = 64 << 20;

/// Limits of a response head.
const HEAD_LIMITS: Limits = Limits { head: 64 << 10, fields: 32, target: 0 };

/// Talks to a running process.
#[derive(Clone, Debug)]
pub struct AdminClient {
    endpoint: Endpoint,
    token: Option<String>,
    patience: Duration,
}

/// The reason for a missing response.
#[derive(Debug)]
pub enum Error {
    /// No process listens there.
    NotRunning(Endpoint, io::Error),
    /// A process listens there, but sent nothing for this long.
    Silent(Endpoint, Duration),
    /// The connection failed.
    Io(Endpoint, io::Error),
    /// The peer is not an admin interface of this program.
    Foreign(Endpoint, &'static str),
    /// The process refused the request.
    Refused(Refusal),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotRunning(endpoint, error) => write!(
                f,
                "no sandarac answers at {endpoint} ({error})\n  help: is it running? Where it says another admin \
                 address at its start, give that with --admin"
            ),
            Error::Silent(endpoint, patience) => write!(
                f,
                "the sandarac at {endpoint} did not answer in {} s\n  help: it is there, but stopped, or busy with other \
                 callers of its admin interface; whether it has done what it was asked is not known",
                patience.as_secs()
            ),
            Error::Io(endpoint, error) if error.kind() == ErrorKind::PermissionDenied => write!(
                f,
                "not allowed to open {endpoint}\n  help: run this as the user that runs sandarac, or let a group open the \
                 socket with `group` in [admin]"
            ),
            Error::Io(endpoint, error) => write!(f, "the connection to {endpoint} failed: {error}"),
            Error::Foreign(endpoint, what) => {
                write!(
                    f,
                    "{what}\n  help: is {endpoint} really the admin interface of a sandarac of this version?"
                )
            }
            Error::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.flush(),
            Stream::Tcp(stream) => stream.flush(),
        }
    }
}

/// The lines of the log as they arrive.
pub struct LogLines {
    endpoint: Endpoint,
    reader: BufReader<Stream>,
}

impl Iterator for LogLines {
    type Item = Result<String, Error>;

    /// The next line that is not empty, without its line feed.
    fn next(&mut self) -> Option<Result<String, Error>> {
        let mut line = String::new();
        loop {
            line.clear();
            match self.reader.read_line(&mut line) {
                Ok(0) => return None,
                Ok(_) if line.trim().is_empty() => {}
                Ok(_) => return Some(Ok(line.trim_end().to_owned())),
                Err(error) => return Some(Err(Error::Io(self.endpoint.clone(), error))),
            }
        }
    }
}

impl AdminClient {
    /// A client of the process at `endpoint`. It connects for each request.
    pub fn new(endpoint: Endpoint, token: Option<String>) -> AdminClient {
        AdminClient { endpoint, token, patience: ANSWER_TIMEOUT }
    }

    /// The same, with this timeout for the start of a response.
    pub fn patience(self, patience: Duration) -> AdminClient {
        AdminClient { patience, ..self }
    }

    /// The status of the process.
    pub fn status(&self) -> Result<Status, Error> {
        self.ask("GET", "/status", None)
    }

    /// Whether the process accepts new connections. It may be of another version, whose status has other fields.
    pub fn standing(&self) -> Result<Standing, Error> {
        self.ask("GET", "/status", None)
    }

    /// TLS of the listeners; with `name`, the certificates that a client gets for it.
    pub fn tls(&self, name: Option<&str>) -> Result<TlsStatus, Error> {
        let query = name.map(|name| format!("?name={}", percent(name))).unwrap_or_default();
        self.ask("GET", &format!("/tls{query}"), None)
    }

    /// The statistics so far.
    pub fn stats(&self) -> Result<Stats, Error> {
        self.ask("GET", "/stats", None)
    }

    /// Purges.
    pub fn purge(&self, purge: &Purge) -> Result<Purged, Error> {
        self.ask("POST", "/purge", Some(encode(purge)))
    }

    /// What the shared tier has for a URL.
    pub fn shared(&self, ask: &AskShared) -> Result<SharedContent, Error> {
        self.ask("POST", "/shared", Some(encode(ask)))
    }

    /// Bans all objects that match an expression.
    pub fn ban(&self, expression: &str) -> Result<Banned, Error> {
        self.ask("POST", "/ban", Some(encode(&serde_json::json!({ "expr": expression }))))
    }

    /// The state of pools.
    pub fn pools(&self, ask: &AskPools) -> Result<Pools, Error> {
        let mut target = format!("/pools?classes={}", ask.classes);
        let names = ask.names.iter().map(|name| ("pool", name));
        for (parameter, value) in names.chain(ask.class.iter().map(|name| ("class", name))) {
            target.push_str(&format!("&{parameter}={}", percent(value)));
        }
        self.ask("GET", &target, None)
    }

    /// Adds a backend to a pool.
    pub fn add_backend(&self, order: &AddBackend) -> Result<Ordered, Error> {
        self.ask("POST", "/pool/add", Some(encode(order)))
    }

    /// Removes a backend from a pool.
    pub fn remove_backend(&self, order: &RemoveBackend) -> Result<Ordered, Error> {
        self.ask("POST", "/pool/remove", Some(encode(order)))
    }

    /// Stops or resumes new requests to a backend.
    pub fn drain_backend(&self, order: &DrainBackend) -> Result<Ordered, Error> {
        self.ask("POST", "/pool/drain", Some(encode(order)))
    }

    /// Makes the process reload its configuration.
    pub fn reload(&self) -> Result<Reloaded, Error> {
        self.ask("POST", "/reload", Some(Vec::new()))
    }

    /// Makes the process hand over to another one.
    pub fn upgrade(&self, order: &Upgrade) -> Result<Upgraded, Error> {
        let patient = AdminClient { patience: UPGRADE_TIMEOUT, ..self.clone() };
        patient.ask("POST", "/upgrade", Some(encode(order)))
    }

    /// Watches the log, at most `limit` entries a second, and only those that match conditions, each with a name of
    /// [`Filter::NAMES`](crate::logs::Filter::NAMES).
    pub fn log(&self, limit: Option<u64>, conditions: &[(&str, &str)]) -> Result<LogLines, Error> {
        let limit = limit.map(|limit| format!("limit={limit}"));
        let conditions = conditions.iter().map(|(name, value)| format!("{name}={}", percent(value)));
        let query: Vec<String> = limit.into_iter().chain(conditions).collect();
        let target = format!("/log?{}", query.join("&"));
        let (status, reader) = self.open("GET", &target, None)?;
        if status != 200 {
            return Err(self.refusal(status, reader));
        }
        Ok(LogLines { endpoint: self.endpoint.clone(), reader })
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        target: &str,
        body: Option<Vec<u8>>,
    ) -> Result<T, Error> {
        let (status, reader) = self.open(method, target, body)?;
        if status != 200 {
            return Err(self.refusal(status, reader));
        }
        let answer = self.whole(reader)?;
        serde_json::from_slice(&answer).map_err(|_| self.foreign("its answer is not the expected JSON"))
    }

    fn failed(&self, error: io::Error) -> Error {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                Error::Silent(self.endpoint.clone(), self.patience)
            }
            _ => Error::Io(self.endpoint.clone(), error),
        }
    }

    fn foreign(&self, what: &'static str) -> Error {
        Error::Foreign(self.endpoint.clone(), what)
    }

    fn refusal(&self, status: u16, reader: BufReader<Stream>) -> Error {
        #[derive(serde::Deserialize)]
        struct Answer {
            error: Refusal,
        }
        match self.whole(reader).map(|body| serde_json::from_slice::<Answer>(&body)) {
            Ok(Ok(answer)) => {
                let fault = if status < 500 { Fault::Caller } else { Fault::Process };
                Error::Refused(Refusal { fault, ..answer.error })
            }
            Ok(Err(_)) => self.foreign("it refuses with an unknown error"),
            Err(error) => error,
        }
    }

    fn whole(&self, reader: BufReader<Stream>) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        let read = reader.take(MAX_ANSWER + 1).read_to_end(&mut body);
        read.map_err(|error| self.failed(error))?;
        if body.len() as u64 > MAX_ANSWER {
            return Err(self.foreign("its answer has no end"));
        }
        Ok(body)
    }

    fn connect(&self) -> io::Result<Stream> {
        match &self.endpoint {
            Endpoint::Unix(path) => {
                if self.endpoint == Endpoint::standard() {
                    check_owner(path)?;
                }
                let stream = connect_unix(path, self.patience)?;
                stream.set_read_timeout(Some(self.patience))?;
                stream.set_write_timeout(Some(self.patience))?;
                Ok(Stream::Unix(stream))
            }
            Endpoint::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, self.patience.min(CONNECT_TIMEOUT))?;
                stream.set_read_timeout(Some(self.patience))?;
                stream.set_write_timeout(Some(self.patience))?;
                Ok(Stream::Tcp(stream))
            }
        }
    }

    /// Sends a request and reads the head of its response: the status, and a reader of the body up to its end. The
    /// request is HTTP/1.0, so that the body is not chunked and ends with the connection.
    fn open(
        &self,
        method: &str,
        target: &str,
        body: Option<Vec<u8>>,
    ) -> Result<(u16, BufReader<Stream>), Error> {
        let mut stream = self.connect().map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::TimedOut => {
                Error::NotRunning(self.endpoint.clone(), error)
            }
            _ => self.failed(error),
        })?;
        let failed = |error| self.failed(error);
        let mut request = format!("{method} {target} HTTP/1.0\r\nHost: sandarac\r\n");
        // On a Unix socket no token is required, and the socket could belong to another user.
        if let (Some(token), Endpoint::Tcp(_)) = (&self.token, &self.endpoint) {
            request.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        if let Some(body) = &body {
            request
                .push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        let mut request = request.into_bytes();
        request.extend_from_slice(&body.unwrap_or_default());
        // A refusal may arrive before the whole body was sent; its text is more useful than the broken pipe.
        let sent = stream.write_all(&request);
        let mut reader = BufReader::new(stream);
        let (mut head, mut spans) = (Vec::new(), Vec::new());
        loop {
            let read =
                (&mut reader).take(HEAD_LIMITS.head as u64).read_until(b'\n', &mut head).map_err(failed)?;
            if read == 0 {
                sent.map_err(failed)?;
                return Err(self.foreign("it closed the connection without an answer"));
            }
            match response::parse(&head, &HEAD_LIMITS, &mut spans, Method::Get) {
                Ok(Parsed::Partial) => {}
                Ok(Parsed::Complete(response)) => return Ok((response.head.status, reader)),
                Err(_) => return Err(self.foreign("its answer is not HTTP")),
            }
        }
    }
}

/// Checks that the directory of the standard socket belongs to this user or root: if it is missing, any user could
/// create it in the directory for temporary files. Root connects to the socket of any service user.
fn check_owner(socket: &Path) -> io::Result<()> {
    let is_root = rustix::process::geteuid().is_root();
    let Some(directory) = socket.parent().filter(|_| !is_root) else { return Ok(()) };
    match std::fs::metadata(directory) {
        Ok(metadata) if !is_trusted(&metadata) => Err(io::Error::other(format!(
            "{} belongs to another user, who may not be trusted",
            directory.display()
        ))),
        _ => Ok(()),
    }
}

/// Connects to a Unix socket. The standard way blocks for ever while the backlog is full.
fn connect_unix(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
    let until = Instant::now() + patience;
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        match connect(&socket, &address) {
            Ok(()) => break,
            Err(Errno::AGAIN) if Instant::now() < until => std::thread::sleep(RETRY_AFTER),
            Err(error) => return Err(error.into()),
        }
    }
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// `text` as a part of a query.
fn percent(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("requests are made of strings and lists")
}
