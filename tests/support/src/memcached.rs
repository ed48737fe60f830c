//! memcached, the real one of Debian, on a Unix socket or a port that the system assigns.
//!
//! `./check` installs it. A test that wants it where it is missing fails and names the package.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

use crate::registry::{Server, can_fail};
use crate::{Address, Conn, within};

/// A memcached server with 16 MiB. It ends when dropped.
pub struct Memcached {
    server: Server,
    arguments: Vec<String>,
}

can_fail!(Memcached);

/// An item of memcached, without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The key.
    pub key: String,
    /// The size of the value and of what memcached keeps with it, in bytes.
    pub size: usize,
    /// The CAS value, another after each change.
    pub cas: u64,
}

impl Memcached {
    /// Starts one on a Unix socket, with these arguments in addition.
    pub fn start(arguments: &[&str]) -> Memcached {
        let mut memcached = Memcached {
            server: Server::new("memcached"),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        };
        memcached.launch();
        memcached
    }

    /// Starts one that wants the login `user` with `password`.
    pub fn with_login(user: &str, password: &str) -> Memcached {
        let mut memcached = Memcached { server: Server::new("memcached"), arguments: Vec::new() };
        let file = memcached.server.dir.join("logins");
        fs::write(&file, format!("{user}:{password}\n")).expect("the file of logins");
        memcached.arguments = vec!["-Y".to_owned(), file.display().to_string()];
        memcached.launch();
        memcached
    }

    /// Starts one that listens at a port of `host`. It cannot be restarted there.
    pub fn on_tcp(host: &str) -> (Memcached, SocketAddr) {
        let mut memcached = Memcached { server: Server::new("memcached"), arguments: Vec::new() };
        let ports = memcached.server.dir.join("ports");
        let mut command = Memcached::command();
        command.args(["-l", host, "-p", "-1"]).env("MEMCACHED_PORT_FILENAME", &ports);
        // The file is written under another name and then renamed, so it is complete once it is there.
        memcached.server.launch(command, || ports.exists());
        let ports = fs::read_to_string(ports).expect("the file of ports");
        let port = ports.trim().rsplit(' ').next().and_then(|port| port.parse().ok()).expect("a port");
        (memcached, SocketAddr::new(host.parse().expect("an address"), port))
    }

    /// The path of the socket.
    pub fn socket(&self) -> PathBuf {
        self.server.dir.join("socket")
    }

    /// The socket, as settings take it.
    pub fn url(&self) -> String {
        format!("unix:{}", self.socket().display())
    }

    /// Sends `command`, and reads the reply through `end`.
    #[track_caller]
    pub fn ask(&self, command: impl AsRef<[u8]>, end: &str) -> Vec<u8> {
        Conn::to(&Address::Unix(self.socket())).send(command).read_through(end)
    }

    /// The items whose keys begin with `prefix`.
    #[track_caller]
    pub fn items(&self, prefix: &str) -> Vec<Item> {
        within("a list of the items", || {
            let mut conn = Conn::to(&Address::Unix(self.socket()));
            conn.send("lru_crawler metadump hash\r\n");
            let mut items = Vec::new();
            loop {
                let line = String::from_utf8(conn.read_through("\n")).expect("a list in ASCII");
                match line.trim_end() {
                    "END" => return Some(items),
                    // memcached makes one list at a time.
                    line if line.starts_with("BUSY") => return None,
                    line => items.push(item(line)),
                }
                items.retain(|item| item.key.starts_with(prefix));
            }
        })
    }

    /// The value under `key`, if there is one.
    #[track_caller]
    pub fn value(&self, key: &str) -> Option<Vec<u8>> {
        let mut conn = Conn::to(&Address::Unix(self.socket()));
        let line = conn.send(format!("mg {key} v\r\n")).read_through("\r\n");
        let length = std::str::from_utf8(&line).ok()?.strip_prefix("VA ")?.trim().parse().ok()?;
        Some(conn.read(length))
    }

    /// Replaces the value under `key`, and leaves its client flags and TTL as they are.
    #[track_caller]
    pub fn replace_value(&self, key: &str, value: &[u8]) {
        let mut conn = Conn::to(&Address::Unix(self.socket()));
        let line = conn.send(format!("mg {key} f t\r\n")).read_through("\r\n");
        let line = String::from_utf8(line).expect("a reply in ASCII");
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["HD", flags, ttl] = words[..] else { panic!("no item {key}: {line}") };
        let ttl = ttl.replace('t', "T").replace("-1", "0");
        let flags = flags.replace('f', "F");
        conn.send(format!("ms {key} {} {flags} {ttl}\r\n", value.len())).send(value).send("\r\n");
        conn.expect("HD\r\n");
    }

    fn command() -> Command {
        let mut command = Command::new("memcached");
        command.args(["-U", "0", "-m", "16", "-t", "1"]);
        if rustix::process::geteuid().is_root() {
            // It refuses to run as root unless it is told to.
            command.args(["-u", "root"]);
        }
        command
    }

    fn launch(&mut self) {
        let socket = self.socket();
        let mut command = Memcached::command();
        command.arg("-s").arg(&socket).args(&self.arguments);
        self.server.launch(command, || UnixStream::connect(&socket).is_ok());
    }
}

/// An item from a line of `lru_crawler metadump`.
fn item(line: &str) -> Item {
    let of = |name: &str| {
        let mut words = line.split(' ');
        words.find_map(|word| word.strip_prefix(name)).unwrap_or_else(|| panic!("no {name} in {line:?}"))
    };
    let number = |name: &str| of(name).parse().unwrap_or_else(|_| panic!("no number in {line:?}"));
    Item {
        key: of("key=").replace("%3A", ":"),
        size: usize::try_from(number("size=")).expect("a size"),
        cas: number("cas="),
    }
}
