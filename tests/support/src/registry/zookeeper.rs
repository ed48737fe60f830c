//! ZooKeeper, and a session with it.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use super::{Server, can_fail};
use crate::{PATIENCE, Port};

/// The jar that starts a server; its manifest names all others that it needs.
const JAR: &str = "/usr/share/java/zookeeper.jar";

/// A ZooKeeper server. It ends when dropped.
pub struct ZooKeeper {
    server: Server,
    /// Held, so that nobody else has it while the server is down.
    port: Port,
}

can_fail!(ZooKeeper);

impl ZooKeeper {
    /// Starts one without nodes.
    pub fn start() -> ZooKeeper {
        let mut zookeeper = ZooKeeper { server: Server::new("zookeeper"), port: Port::new() };
        zookeeper.launch();
        zookeeper
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// A session that lives for `timeout` without a sign of life, which only what is asked of it is.
    #[track_caller]
    pub fn session(&self, timeout: Duration) -> Registrar {
        Registrar::connect(self.address(), timeout, 0, &[0; 16]).expect("ZooKeeper gives a session")
    }

    fn launch(&mut self) {
        assert!(
            fs::exists(JAR).unwrap_or(false),
            "{JAR} is not there: ./check installs the Debian package zookeeper"
        );
        let data = self.server.dir.join("data");
        let config = self.server.dir.join("zoo.cfg");
        let address = self.address();
        // Short ticks, so that short sessions are possible.
        let text = format!(
            "dataDir={}\nclientPortAddress={}\nclientPort={}\ntickTime=100\nmaxSessionTimeout=60000\nmaxClientCnxns=0\n\
             admin.enableServer=false\n4lw.commands.whitelist=*\n",
            data.display(),
            address.ip(),
            address.port()
        );
        fs::write(&config, text).expect("the configuration can be written");
        let mut command = Command::new("java");
        command.args(["-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dzookeeper.forceSync=no"]);
        command.args(["-cp", JAR, "org.apache.zookeeper.server.quorum.QuorumPeerMain"]).arg(&config);
        let serves = || status(address).is_ok_and(|status| status.contains("Mode: standalone"));
        self.server.launch(command, serves);
    }
}

/// A session that makes and changes nodes. Where it is dropped, its ephemeral nodes stay until it has expired.
pub struct Registrar {
    stream: TcpStream,
    address: SocketAddr,
    timeout: Duration,
    id: i64,
    password: Vec<u8>,
    xid: i32,
}

impl Registrar {
    /// Goes on with the session after the server was restarted.
    #[track_caller]
    pub fn reconnect(&mut self) {
        *self = Registrar::connect(self.address, self.timeout, self.id, &self.password)
            .expect("ZooKeeper knows the session");
    }

    /// Has the session expire so long from now; only one who has been listed can be missed.
    #[track_caller]
    pub fn lives_for(mut self, timeout: Duration) {
        self.timeout = timeout;
        self.reconnect();
    }

    /// Makes a node that stays.
    #[track_caller]
    pub fn create(&mut self, path: &str, data: &str) {
        self.make(path, data, 0);
    }

    /// Makes a node that goes with the session.
    #[track_caller]
    pub fn register(&mut self, path: &str, data: &str) {
        self.make(path, data, 1);
    }

    /// Makes a node that nobody may read.
    #[track_caller]
    pub fn create_unreadable(&mut self, path: &str) {
        // All permissions but the first for anyone.
        let anyone = [int(1), int(30), string("world"), string("anyone")].concat();
        self.ask(1, &[string(path), string(""), anyone, int(0)].concat());
    }

    /// Changes the data of a node.
    #[track_caller]
    pub fn set(&mut self, path: &str, data: &str) {
        self.ask(5, &[string(path), string(data), int(-1)].concat());
    }

    /// Removes a node.
    #[track_caller]
    pub fn delete(&mut self, path: &str) {
        self.ask(2, &[string(path), int(-1)].concat());
    }

    /// Ends the session, and with it its ephemeral nodes.
    #[track_caller]
    pub fn close(mut self) {
        self.ask(-11, &[]);
    }

    #[track_caller]
    fn make(&mut self, path: &str, data: &str, flags: i32) {
        // One entry of access control: all permissions for anyone.
        let anyone = [int(1), int(31), string("world"), string("anyone")].concat();
        self.ask(1, &[string(path), string(data), anyone, int(flags)].concat());
    }

    fn connect(address: SocketAddr, timeout: Duration, id: i64, password: &[u8]) -> io::Result<Registrar> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let millis = timeout.as_millis() as i32;
        let hello = [int(0), vec![0; 8], int(millis), id.to_be_bytes().to_vec(), bytes(password), vec![0]];
        stream.write_all(&bytes(&hello.concat()))?;
        let answer = packet(&mut stream)?;
        let id = i64::from_be_bytes(answer[8..16].try_into().expect("eight bytes"));
        if id == 0 {
            return Err(io::Error::other("the session has expired"));
        }
        Ok(Registrar { stream, address, timeout, id, password: answer[20..36].to_vec(), xid: 0 })
    }

    #[track_caller]
    fn ask(&mut self, operation: i32, arguments: &[u8]) {
        self.xid += 1;
        let request = bytes(&[&int(self.xid)[..], &int(operation), arguments].concat());
        self.stream.write_all(&request).expect("ZooKeeper takes a request");
        let answer = packet(&mut self.stream).expect("ZooKeeper answers");
        assert_eq!(answer[..4], self.xid.to_be_bytes());
        assert_eq!(answer[12..16], [0; 4], "ZooKeeper's error {:?}", &answer[12..16]);
    }
}

/// What the server says of itself.
fn status(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    // While it starts, it may accept and not answer.
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    stream.write_all(b"srvr")?;
    let mut status = String::new();
    stream.read_to_string(&mut status)?;
    Ok(status)
}

/// The next packet, without its length.
fn packet(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut packet = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut packet)?;
    Ok(packet)
}

fn int(number: i32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn string(text: &str) -> Vec<u8> {
    bytes(text.as_bytes())
}

/// Bytes with their length before them.
fn bytes(bytes: &[u8]) -> Vec<u8> {
    [&int(bytes.len() as i32)[..], bytes].concat()
}
