//! Origins: one that answers by a rule, and one that the test plays itself.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Type};

use crate::reply::After;
use crate::{Address, Conn, PATIENCE, Reply, Request, within};

/// How often a waiting origin looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(5);

/// A listener whose connections the test plays byte by byte.
pub struct Listener {
    socket: Socket,
    address: Address,
}

enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Listens on a free port of 127.0.0.1.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Listener {
        Listener::on_tcp(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port"))
    }

    /// Listens on a free port of `::1`.
    ///
    /// # Panics
    /// If this machine has no IPv6.
    #[track_caller]
    pub fn on_ipv6() -> Listener {
        let socket = TcpListener::bind((Ipv6Addr::LOCALHOST, 0));
        Listener::on_tcp(socket.unwrap_or_else(|error| {
            panic!("this test needs IPv6, and this machine has none: cannot listen on [::1]: {error}")
        }))
    }

    /// Listens on an address of the loopback network: 127.0.0.2, say.
    pub fn on_address(address: impl Into<SocketAddr>) -> Listener {
        Listener::on_tcp(TcpListener::bind(address.into()).expect("a free port"))
    }

    /// Listens on a Unix socket at `path`.
    pub fn on_unix(path: &Path) -> Listener {
        let _ = fs::remove_file(path);
        let socket = UnixListener::bind(path).expect("a Unix socket");
        Listener { socket: Socket::Unix(socket), address: Address::Unix(path.to_owned()) }
    }

    fn on_tcp(socket: TcpListener) -> Listener {
        let address = Address::Tcp(socket.local_addr().expect("a bound socket has an address"));
        Listener { socket: Socket::Tcp(socket), address }
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Where it listens, as the URL of a backend.
    pub fn url(&self) -> String {
        self.address.url()
    }

    /// Accepts a connection.
    ///
    /// # Panics
    /// If none comes.
    #[track_caller]
    pub fn accept(&self) -> Conn {
        let deadline = Instant::now() + PATIENCE;
        self.accept_while(|| Instant::now() < deadline).expect("expected a connection to the origin")
    }

    /// Accepts a connection, if one comes within `patience`.
    pub fn try_accept(&self, patience: Duration) -> Option<Conn> {
        match &self.socket {
            Socket::Tcp(socket) => {
                let _ = socket2::SockRef::from(socket).set_read_timeout(Some(patience));
                socket.accept().ok().map(|(stream, _)| Conn::over_tcp(stream))
            }
            Socket::Unix(socket) => {
                let _ = socket2::SockRef::from(socket).set_read_timeout(Some(patience));
                socket.accept().ok().map(|(stream, _)| Conn::over_unix(stream))
            }
        }
    }

    /// Whether no connection waits to be accepted.
    pub fn is_silent(&self) -> bool {
        let mut asked = false;
        self.accept_while(|| !std::mem::replace(&mut asked, true)).is_none()
    }

    fn accept_while(&self, mut go_on: impl FnMut() -> bool) -> Option<Conn> {
        self.set_nonblocking();
        while go_on() {
            let accepted = match &self.socket {
                Socket::Tcp(socket) => socket.accept().map(|(stream, _)| {
                    stream.set_nonblocking(false).expect("a socket can be made to block");
                    Conn::over_tcp(stream)
                }),
                Socket::Unix(socket) => socket.accept().map(|(stream, _)| {
                    stream.set_nonblocking(false).expect("a socket can be made to block");
                    Conn::over_unix(stream)
                }),
            };
            match accepted {
                Ok(conn) => return Some(conn),
                Err(_) => thread::sleep(Duration::from_millis(1)),
            }
        }
        None
    }

    fn set_nonblocking(&self) {
        match &self.socket {
            Socket::Tcp(socket) => socket.set_nonblocking(true),
            Socket::Unix(socket) => socket.set_nonblocking(true),
        }
        .expect("a listener can be made not to block");
    }
}

/// A port of 127.0.0.1 that nobody listens on, unless the test says so: connections to it are refused. It stays the test's own
/// for as long as the value lives, where one that was merely free a moment ago may be given to any other test.
pub struct Port(socket2::Socket);

impl Port {
    /// A free port.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Port {
        Port(bound(0).expect("a free port"))
    }

    /// Which it is.
    pub fn address(&self) -> SocketAddr {
        self.0
            .local_addr()
            .ok()
            .and_then(|address| address.as_socket())
            .expect("a bound socket has an address")
    }

    /// The address, as the URL of a backend.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Begins to listen. When the listener goes, connections are refused again.
    pub fn listen(&self) -> Listener {
        self.listen_for(128)
    }

    /// The same, where the system makes one connection more than `backlog` that were not accepted. Further ones wait until
    /// one was.
    pub fn listen_for(&self, backlog: i32) -> Listener {
        let port = self.address().port();
        let listen = || bound(port).and_then(|socket| socket.listen(backlog).map(|()| socket));
        // Between its fork and its exec, a process that another test starts has the previous listener, too.
        let socket = within("the port to be free", || match listen() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => None,
            listening => Some(listening.expect("a port that is ours can be listened on")),
        });
        Listener::on_tcp(socket.into())
    }
}

/// A socket that is bound and does not listen. Several may be bound to one port as long as none listens there.
fn bound(port: u16) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    Ok(socket)
}

/// An origin that answers each request by a rule and remembers what it was asked. It stops when dropped: nobody
/// listens any more then, and a connection answers no request that comes later.
pub struct Origin {
    address: Address,
    shared: Arc<Shared>,
    accepting: Option<thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    requests: Mutex<Vec<Request>>,
    stopping: AtomicBool,
    accepted: AtomicUsize,
    open: AtomicUsize,
    /// Raised to make the connections that wait for a request close.
    closings: AtomicUsize,
}

impl Origin {
    /// An origin on a free port of 127.0.0.1.
    pub fn new(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Origin {
        Origin::on(Listener::new(), rule)
    }

    /// An origin that listens with `listener`.
    pub fn on(listener: Listener, rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Origin {
        let address = listener.address().clone();
        let shared = Arc::new(Shared::default());
        let (state, rule) = (Arc::clone(&shared), Arc::new(rule));
        let accepting = thread::spawn(move || {
            while let Some(conn) = listener.accept_while(|| !state.is_stopping()) {
                let serial = state.accepted.fetch_add(1, Ordering::SeqCst) + 1;
                state.open.fetch_add(1, Ordering::SeqCst);
                let (state, rule) = (Arc::clone(&state), Arc::clone(&rule));
                thread::spawn(move || {
                    state.serve(conn, serial, &*rule);
                    state.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Origin { address, shared, accepting: Some(accepting) }
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Where it listens, as the URL of a backend.
    pub fn url(&self) -> String {
        self.address.url()
    }

    /// The requests so far, in the order in which their heads came in.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().expect("no rule panics").clone()
    }

    /// How many requests there were so far.
    pub fn count(&self) -> usize {
        self.shared.requests.lock().expect("no rule panics").len()
    }

    /// How many requests for `target` there were so far.
    pub fn count_of(&self, target: &str) -> usize {
        self.requests().iter().filter(|request| request.target == target).count()
    }

    /// The latest request.
    ///
    /// # Panics
    /// If there was none.
    #[track_caller]
    pub fn last(&self) -> Request {
        self.requests().pop().expect("a request at the origin")
    }

    /// Waits until there were `count` requests.
    #[track_caller]
    pub fn reached(&self, count: usize) {
        within(&format!("{count} requests at the origin"), || (self.count() >= count).then_some(()));
    }

    /// How many connections were accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many connections are open.
    pub fn open_connections(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// Closes the connections that wait for a request, and returns when they are closed.
    pub fn close_idle(&self) {
        self.shared.closings.fetch_add(1, Ordering::SeqCst);
        within("idle connections of the origin to close", || (self.open_connections() == 0).then_some(()));
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Nobody listens any more when this returns.
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    fn serve(&self, mut conn: Conn, connection: usize, rule: &(impl Fn(&Request) -> Reply + ?Sized)) {
        // Taken once: a connection that is still being answered when the others are told to close does so after that.
        let closings = self.closings.load(Ordering::SeqCst);
        loop {
            while !conn.is_ready(LOOK) {
                if self.closings.load(Ordering::SeqCst) != closings || self.is_stopping() {
                    return;
                }
            }
            // Asked here too: a client that never pauses for as long as a look would keep a stopped origin going.
            if self.is_stopping() {
                return;
            }
            let Ok(mut request) = conn.try_request_head() else { return };
            if request.field("expect") == Some("100-continue")
                && conn.try_send("HTTP/1.1 100 Continue\r\n\r\n").is_err()
            {
                return;
            }
            request.whole = conn.try_request_body(&mut request).is_ok();
            request.connection = connection;
            {
                let mut requests = self.requests.lock().expect("no rule panics");
                request.serial = requests.len() + 1;
                requests.push(request.clone());
            }
            if !request.whole {
                return;
            }
            match rule(&request).send(&mut conn, &request.method) {
                After::Open => {}
                After::Closed => return,
                After::Reset => return conn.reset(),
            }
        }
    }
}
