//! memcached, the real one of Debian, on a Unix socket or a port that the system assigns.
//!
//! `./check` installs it. A test that wants it where it is missing fails and names the package.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

use crate::registry::{Server, can_fail};

/// A memcached server with 16 MiB. It ends when dropped.
pub struct Memcached {
    server: Server,
    arguments: Vec<String>,
}

can_fail!(Memcached);

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
