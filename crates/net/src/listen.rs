//! Listening sockets: one for each core on every TCP address, one shared by all on a Unix path.

use crate::Stream;
use rustix::net::{SocketFlags, acceptfrom_with};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The backlog: connections that may wait to be accepted. The kernel caps it at `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// A TCP address; port 0 selects a free one.
    Tcp(SocketAddr),
    /// A Unix socket, with the permission bits of its file.
    Unix(PathBuf, Option<u32>),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Tcp(address) => address.fmt(f),
            ListenAddress::Unix(path, _) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The number of a listener. Its configuration is found by it, and can change while the sockets stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId(u32);

impl ListenerId {
    /// A number that no listener of this process has had.
    pub fn unused() -> ListenerId {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        ListenerId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A bound listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its number.
    pub id: ListenerId,
    /// The address actually bound.
    pub address: ListenAddress,
}

impl Listener {
    fn new(address: ListenAddress) -> Listener {
        Listener { id: ListenerId::unused(), address }
    }
}

/// The sockets of one listener, for so many cores: one for each, or one for all, or as many as another
/// process had cores.
#[derive(Debug)]
pub struct Listeners {
    /// The listener.
    pub listener: Listener,
    sockets: Vec<Socket>,
    cores: usize,
}

/// The sockets of one listener from which a core accepts.
#[derive(Debug)]
pub struct CoreSockets {
    /// The listener.
    pub listener: Listener,
    sockets: Vec<Socket>,
}

impl Listeners {
    /// Binds `address` for `cores` cores.
    ///
    /// TCP sockets share the port (`SO_REUSEPORT`), so that the kernel spreads connections and no core waits
    /// for another. A second daemon of the same user could share such a port too, and take half of its
    /// traffic. A probe bind without sharing makes that fail.
    pub fn bind(address: &ListenAddress, cores: usize) -> io::Result<Listeners> {
        match address {
            ListenAddress::Tcp(address) => bind_tcp(*address, cores),
            ListenAddress::Unix(path, mode) => bind_unix(path, *mode, cores),
        }
    }

    fn new(address: ListenAddress, sockets: Vec<Socket>, cores: usize) -> Listeners {
        Listeners { listener: Listener::new(address), sockets, cores }
    }

    /// Copies of the sockets, which keep them open.
    pub fn copies(&self) -> io::Result<Vec<OwnedFd>> {
        self.sockets.iter().map(|socket| socket.try_clone().map(OwnedFd::from)).collect()
    }

    /// The sockets for each core. Each socket is accepted from: what the kernel has put into its queue comes
    /// out nowhere else.
    pub fn split(self) -> io::Result<Vec<CoreSockets>> {
        let Listeners { listener, sockets, cores } = self;
        let mut split: Vec<CoreSockets> =
            (0..cores).map(|_| CoreSockets { listener: listener.clone(), sockets: Vec::new() }).collect();
        for core in sockets.len()..cores {
            let shared = sockets[core % sockets.len()].try_clone()?;
            split[core].sockets.push(shared);
        }
        for (at, socket) in sockets.into_iter().enumerate() {
            split[at % cores].sockets.push(socket);
        }
        Ok(split)
    }
}

impl CoreSockets {
    /// The sockets, to be used inside the runtime of the core.
    pub fn acceptors(self) -> io::Result<Vec<Acceptor>> {
        let CoreSockets { listener, sockets } = self;
        let acceptor = |socket: Socket| {
            Ok(match listener.address {
                ListenAddress::Tcp(_) => Acceptor::Tcp(watch(socket)?),
                ListenAddress::Unix(..) => Acceptor::Unix(tokio::net::UnixListener::from_std(socket.into())?),
            })
        };
        sockets.into_iter().map(acceptor).collect()
    }
}

/// Listening sockets of another process: passed by the one that started this process, or by its predecessor.
/// They stay open while this lives.
#[derive(Debug, Default)]
pub struct Inherited(Vec<(ListenAddress, Vec<Socket>)>);

impl Inherited {
    /// Takes the passed sockets.
    ///
    /// # Errors
    /// If one is not a listening TCP or Unix socket. The message gives its number, counted from 0.
    pub fn new(sockets: impl IntoIterator<Item = OwnedFd>) -> io::Result<Inherited> {
        Inherited::grouped(sockets.into_iter().map(|socket| vec![socket]))
    }

    /// The same with several sockets for each listener, which have one address.
    pub fn grouped(groups: impl IntoIterator<Item = Vec<OwnedFd>>) -> io::Result<Inherited> {
        let named = |(at, sockets): (usize, Vec<OwnedFd>)| {
            let mut address = None;
            let mut group = Vec::with_capacity(sockets.len());
            for socket in sockets.into_iter().map(Socket::from) {
                let bound = listening_on(&socket).map_err(|error| {
                    let what = format!("socket {at} that was passed to this process: {error}");
                    io::Error::new(error.kind(), what)
                })?;
                socket.set_nonblocking(true)?;
                if let ListenAddress::Tcp(_) = bound {
                    tune(&socket)?;
                }
                address = Some(bound);
                group.push(socket);
            }
            Ok((address.ok_or(io::ErrorKind::NotFound)?, group))
        };
        groups.into_iter().enumerate().map(named).collect::<io::Result<_>>().map(Inherited)
    }

    /// The addresses of the sockets.
    pub fn addresses(&self) -> impl Iterator<Item = &ListenAddress> {
        self.0.iter().map(|(address, _)| address)
    }

    /// Whether one of them is for `address`, whatever the mode of its file.
    pub fn has(&self, address: &ListenAddress) -> bool {
        self.addresses().any(|own| match (own, address) {
            (ListenAddress::Unix(own, _), ListenAddress::Unix(path, _)) => own == path,
            (own, address) => own == address,
        })
    }

    /// The first sockets whose address is wanted, for `cores` cores.
    pub fn find(
        &self,
        is_wanted: impl Fn(&ListenAddress) -> bool,
        cores: usize,
    ) -> Option<io::Result<Listeners>> {
        let (address, sockets) = self.0.iter().find(|(address, _)| is_wanted(address))?;
        let copies = sockets.iter().map(Socket::try_clone).collect::<io::Result<_>>();
        Some(copies.map(|copies| Listeners::new(address.clone(), copies, cores)))
    }
}

fn listening_on(socket: &Socket) -> io::Result<ListenAddress> {
    if !socket.is_listener()? {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a listening socket"));
    }
    let address = socket.local_addr()?;
    if let Some(tcp) = address.as_socket() {
        return Ok(ListenAddress::Tcp(tcp));
    }
    match address.as_pathname() {
        Some(path) => Ok(ListenAddress::Unix(path.to_path_buf(), None)),
        None => Err(io::Error::new(io::ErrorKind::InvalidInput, "it has neither a TCP address nor a path")),
    }
}

fn bind_tcp(address: SocketAddr, cores: usize) -> io::Result<Listeners> {
    let probe = tcp_socket(address)?;
    probe.bind(&address.into())?;
    let bound = probe.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
    let sockets = (0..cores)
        .map(|_| {
            let socket = tcp_socket(bound)?;
            socket.set_reuse_port(true)?;
            tune(&socket)?;
            socket.bind(&bound.into())?;
            socket.listen(BACKLOG)?;
            Ok(socket)
        })
        .collect::<io::Result<_>>()?;
    // Held until here, so that no other process is given a port that the system chose.
    drop(probe);
    Ok(Listeners::new(ListenAddress::Tcp(bound), sockets, cores))
}

/// The most bytes the system takes for a client beside those in flight. It asks for more when half of them
/// are left.
const UNSENT: u32 = 128 << 10;

/// Sets options that accepted connections inherit, which saves a system call for each (see [`Stream::tcp`]).
fn tune(listener: &Socket) -> io::Result<()> {
    listener.set_tcp_nodelay(true)?;
    // Makes a client that reads steadily look steady: otherwise the system reports room only when a third of
    // megabytes has drained.
    listener.set_tcp_notsent_lowat(UNSENT)
}

fn tcp_socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if let SocketAddr::V6(v6) = address {
        // `[::]` also accepts IPv4, whatever the system's default; any other address is IPv6 only.
        socket.set_only_v6(!v6.ip().is_unspecified())?;
    }
    Ok(socket)
}

fn bind_unix(path: &Path, mode: Option<u32>, cores: usize) -> io::Result<Listeners> {
    remove_stale_socket(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    if let Some(mode) = mode {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    }
    socket.listen(BACKLOG)?;
    Ok(Listeners::new(ListenAddress::Unix(path.to_path_buf(), mode), vec![socket], cores))
}

/// Removes a socket file without a listener. Fails if it has one, or if the file is of another kind.
pub fn remove_stale_socket(path: &Path) -> io::Result<()> {
    let Ok(meta) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !meta.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the path exists and is not a socket"));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens on this socket")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        Err(error) => Err(error),
    }
}

/// One core's listening socket.
#[derive(Debug)]
pub enum Acceptor {
    /// TCP.
    Tcp(AsyncFd<Socket>),
    /// A Unix socket.
    Unix(tokio::net::UnixListener),
}

impl Acceptor {
    /// The next connection, and the peer's address if it has one.
    pub async fn accept(&self) -> io::Result<(Stream, Option<SocketAddr>)> {
        match self {
            Acceptor::Tcp(listener) => {
                // Let a core serve its connections, even if new ones never stop arriving.
                tokio::task::coop::consume_budget().await;
                loop {
                    let mut ready = listener.readable().await?;
                    if let Ok(accepted) = ready.try_io(|listener| accept_tcp(listener.get_ref())) {
                        return accepted;
                    }
                }
            }
            Acceptor::Unix(listener) => {
                listener.accept().await.map(|(stream, _)| (Stream::Unix(stream), None))
            }
        }
    }
}

/// A listening socket registered with the runtime. The runtime's own listener would also register each
/// connection at once.
#[expect(unsafe_code, reason = "the runtime cannot know that a socket keeps its descriptor")]
fn watch(socket: Socket) -> io::Result<AsyncFd<Socket>> {
    // SAFETY: `socket` owns its descriptor: it is open, and the same, for as long as the `AsyncFd` owns the
    // socket.
    Ok(unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }?)
}

fn accept_tcp(listener: &Socket) -> io::Result<(Stream, Option<SocketAddr>)> {
    let (socket, peer) = acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
    Ok((Stream::accepted(socket.into()), peer.and_then(|peer| peer.try_into().ok())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_an_error_even_where_it_could_be_shared() {
        let any = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
        let first = Listeners::bind(&any, 2).unwrap();
        let error = Listeners::bind(&first.listener.address, 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn every_socket_has_a_core_and_every_core_a_socket() {
        let any = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
        for (sockets, cores) in [(1, 1), (2, 2), (3, 2), (4, 1), (2, 5)] {
            let bound = Listeners::bind(&any, sockets).unwrap();
            let inherited = Inherited::grouped([bound.copies().unwrap()]).unwrap();
            drop(bound);
            let split = inherited.find(|_| true, cores).unwrap().unwrap().split().unwrap();
            assert_eq!(split.len(), cores);
            assert!(split.iter().all(|core| !core.sockets.is_empty()));
            assert_eq!(split.iter().map(|core| core.sockets.len()).sum::<usize>(), sockets.max(cores));
        }
    }

    #[test]
    fn connections_are_accepted_without_delay() {
        let any = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
        let listeners = Listeners::bind(&any, 1).unwrap();
        let ListenAddress::Tcp(address) = listeners.listener.address.clone() else {
            panic!("bound to {:?}", listeners.listener.address)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let _client = std::net::TcpStream::connect(address).unwrap();
            let acceptors = listeners.split().unwrap().remove(0).acceptors().unwrap();
            let (stream, _) = acceptors[0].accept().await.unwrap();
            assert!(stream.nodelay().unwrap());
        });
    }

    #[test]
    fn a_stale_socket_file_is_replaced_and_a_live_one_is_not() {
        let directory = std::env::temp_dir().join(format!("sandarac-listen-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("socket");
        let address = ListenAddress::Unix(path.clone(), Some(0o600));
        let first = Listeners::bind(&address, 2).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Listeners::bind(&address, 1).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(first);
        Listeners::bind(&address, 1).unwrap();
        std::fs::write(directory.join("file"), "").unwrap();
        assert!(Listeners::bind(&ListenAddress::Unix(directory.join("file"), None), 1).is_err());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
