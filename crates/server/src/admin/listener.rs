//! The listener of the admin interface: a Unix socket that only its owner may open, or TCP. It takes few connections at
//! a time, and closes those that are idle for long or send no request.

use std::collections::VecDeque;
use std::fs::{self, Permissions};
use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use rustix::fs::Gid;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, Sleep, sleep};

use super::Endpoint;
use crate::stderr::print_line;

/// The most connections at a time; more wait to be accepted.
const MAX_CONNECTIONS: usize = 64;

/// How long a connection may take until its first request is accepted, including the time for anything else.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// How long it may be idle in both directions after that: longer than an upgrade takes to be answered.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// A bound admin endpoint that is not served yet. Dropping it removes the file of a Unix socket.
pub struct Bound {
    listener: Kind<std::os::unix::net::UnixListener, std::net::TcpListener>,
    endpoint: Endpoint,
    file: Option<SocketFile>,
}

enum Kind<U, T> {
    Unix(U),
    Tcp(T),
}

/// The file of a bound Unix socket, removed if it is still the same file.
struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
    /// Whether another process listens there.
    left: Left,
}

impl SocketFile {
    fn at(path: &Path) -> io::Result<SocketFile> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(SocketFile {
            path: path.to_owned(),
            identity: (metadata.dev(), metadata.ino()),
            left: Left::default(),
        })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let same = fs::symlink_metadata(&self.path).is_ok_and(|now| (now.dev(), now.ino()) == self.identity);
        if same
            && !self.left.is_over()
            && let Err(error) = fs::remove_file(&self.path)
        {
            print_line(format_args!(
                "sandarac: cannot remove the admin socket {}: {error}",
                self.path.display()
            ));
        }
    }
}

impl Bound {
    /// Binds `endpoint`. The socket file of a dead process is replaced; a socket that accepts connections is an error.
    /// The directory of the standard socket is created if missing. Any other directory is the user's choice; creating
    /// it silently would hide a typing error.
    pub fn bind(endpoint: &Endpoint, callers: &Callers) -> io::Result<Bound> {
        match endpoint {
            Endpoint::Unix(path) => Bound::unix(path, callers),
            Endpoint::Tcp(address) => {
                let listener = std::net::TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                let endpoint = Endpoint::Tcp(listener.local_addr()?);
                Ok(Bound { listener: Kind::Tcp(listener), endpoint, file: None })
            }
        }
    }

    /// The same for the listening socket of the process that had `endpoint` so far.
    pub(crate) fn taken(socket: OwnedFd, endpoint: &Endpoint, callers: &Callers) -> io::Result<Bound> {
        let (listener, file) = match endpoint {
            Endpoint::Tcp(_) => (Kind::Tcp(socket.into()), None),
            Endpoint::Unix(path) => {
                let group = callers.group.as_deref().map(group_number).transpose()?;
                give_to(path, group)?;
                fs::set_permissions(path, Permissions::from_mode(callers.mode(group)))?;
                (Kind::Unix(socket.into()), Some(SocketFile::at(path)?))
            }
        };
        Ok(Bound { listener, endpoint: endpoint.clone(), file })
    }

    /// A copy of its socket.
    pub(super) fn copy(&self) -> io::Result<OwnedFd> {
        match &self.listener {
            Kind::Unix(listener) => listener.as_fd().try_clone_to_owned(),
            Kind::Tcp(listener) => listener.as_fd().try_clone_to_owned(),
        }
    }

    fn unix(path: &Path, callers: &Callers) -> io::Result<Bound> {
        let group = callers.group.as_deref().map(group_number).transpose()?;
        let mode = callers.mode(group);
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            if Endpoint::standard() == Endpoint::Unix(path.to_owned()) {
                make_directory(directory, group)?;
            }
            check_directory(directory)?;
        }
        match std::os::unix::net::UnixStream::connect(path) {
            Ok(_) => {
                return Err(io::Error::new(ErrorKind::AddrInUse, "another process answers there"));
            }
            // No process listens there any more; but a file that is not a socket refuses in the same way.
            Err(error)
                if error.kind() == ErrorKind::ConnectionRefused
                    && fs::symlink_metadata(path)?.file_type().is_socket() =>
            {
                fs::remove_file(path)?;
            }
            Err(_) => {}
        }
        // Linux gives the file the mode that the socket has when it is bound, so that another user can never open it;
        // the group's permissions follow when the group is set.
        use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket: OwnedFd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::fs::fchmod(&socket, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
        rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
        give_to(path, group)?;
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        let file = SocketFile::at(path)?;
        rustix::net::listen(&socket, MAX_CONNECTIONS as i32)?;
        Ok(Bound {
            listener: Kind::Unix(socket.into()),
            endpoint: Endpoint::Unix(path.to_owned()),
            file: Some(file),
        })
    }

    /// Its address, with the actual port.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether the file system controls access, so that callers need no token.
    pub fn is_private(&self) -> bool {
        matches!(self.listener, Kind::Unix(_))
    }

    /// Registers it with the runtime of the calling thread.
    pub(super) fn into_listener(self, left: Left) -> io::Result<Listener> {
        let kind = match self.listener {
            Kind::Unix(listener) => Kind::Unix(UnixListener::from_std(listener)?),
            Kind::Tcp(listener) => Kind::Tcp(TcpListener::from_std(listener)?),
        };
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut file = self.file;
        if let Some(file) = &mut file {
            file.left = left.clone();
        }
        Ok(Listener { kind: Some(kind), places, callers: VecDeque::new(), _file: file, left })
    }
}

/// The users who may open a Unix socket, besides its owner and root.
#[derive(Clone, Debug, Default)]
pub struct Callers {
    /// The mode of its file; by default only its owner, and the group if there is one, may open it.
    pub mode: Option<u32>,
    /// The group of its file, by name or number.
    pub group: Option<String>,
}

impl Callers {
    fn mode(&self, group: Option<Gid>) -> u32 {
        self.mode.unwrap_or(if group.is_some() { 0o660 } else { 0o600 })
    }
}

/// The notice that another process accepts the callers from now on.
#[derive(Clone, Default)]
pub(super) struct Left(Arc<(Notify, AtomicBool)>);

impl Left {
    /// Gives it. From here on the file of the socket is the other process's.
    pub(super) fn leave(&self) {
        self.0.1.store(true, Ordering::Relaxed);
        self.0.0.notify_one();
    }

    fn is_over(&self) -> bool {
        self.0.1.load(Ordering::Relaxed)
    }
}

/// The number of a group.
fn group_number(group: &str) -> io::Result<Gid> {
    // The largest number means "no change".
    if let Some(number) = group.parse().ok().filter(|&number| number != u32::MAX) {
        return Ok(Gid::from_raw(number));
    }
    let known = nix::unistd::Group::from_name(group).map_err(io::Error::from)?;
    let known = known.ok_or_else(|| {
        io::Error::new(ErrorKind::InvalidInput, format!("there is no group called {group:?} ([admin] group)"))
    })?;
    Ok(Gid::from_raw(known.gid.as_raw()))
}

fn give_to(path: &Path, group: Option<Gid>) -> io::Result<()> {
    let Some(group) = group else { return Ok(()) };
    rustix::fs::chown(path, None, Some(group)).map_err(|error| {
        let error = io::Error::from(error);
        let what = format!("cannot give {} to group {}: {error}", path.display(), group.as_raw());
        io::Error::new(error.kind(), format!("{what}; is this user a member of it?"))
    })
}

/// Creates the directory of the socket if missing, accessible only to its owner and the users who may open the socket.
fn make_directory(directory: &Path, group: Option<Gid>) -> io::Result<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| {
        io::Error::new(error.kind(), format!("cannot make {}: {error}", directory.display()))
    })?;
    // A directory shared with others, for example made by a service manager, is left unchanged.
    let metadata = fs::symlink_metadata(directory)?;
    let is_mine = metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
    if group.is_some() && is_mine && metadata.mode() & 0o7777 == 0o700 {
        give_to(directory, group)?;
        fs::set_permissions(directory, Permissions::from_mode(0o750))?;
    }
    Ok(())
}

/// Whether a directory is this user's, or root's.
pub(super) fn is_trusted(directory: &fs::Metadata) -> bool {
    directory.uid() == rustix::process::geteuid().as_raw() || directory.uid() == 0
}

/// Checks that other users cannot replace the socket in its directory.
fn check_directory(directory: &Path) -> io::Result<()> {
    let metadata = fs::metadata(directory).map_err(|error| {
        let what = match error.kind() {
            ErrorKind::NotFound => format!("there is no directory {}", directory.display()),
            _ => format!("cannot look at the directory {}: {error}", directory.display()),
        };
        io::Error::new(error.kind(), what)
    })?;
    let sticky = metadata.mode() & 0o1000 != 0;
    if !is_trusted(&metadata) || (metadata.mode() & 0o002 != 0 && !sticky) {
        let what =
            format!("{} can be changed by other users: no place for the admin socket", directory.display());
        return Err(io::Error::new(ErrorKind::PermissionDenied, what));
    }
    Ok(())
}

/// A listener that takes [`MAX_CONNECTIONS`] connections at a time.
pub(super) struct Listener {
    /// `None` once another process accepts the callers.
    kind: Option<Kind<UnixListener, TcpListener>>,
    places: Arc<Semaphore>,
    /// The connections, the oldest first, each with the means to close it.
    callers: VecDeque<(Caller, oneshot::Sender<()>)>,
    _file: Option<SocketFile>,
    left: Left,
}

/// One connection: whether a request of it was accepted, and how many are being worked on.
#[derive(Clone, Default)]
pub(super) struct Caller(Arc<(AtomicBool, AtomicUsize)>);

/// Work on a request, until it is dropped.
pub(super) struct Work(Caller);

impl Caller {
    /// A request was accepted, and is worked on.
    pub(super) fn let_in(&self) -> Work {
        self.0.0.store(true, Ordering::Relaxed);
        self.0.1.fetch_add(1, Ordering::Relaxed);
        Work(self.clone())
    }

    fn is_known(&self) -> bool {
        self.0.0.load(Ordering::Relaxed)
    }

    /// Whether nothing is done for it. It may have to read an answer yet.
    fn is_idle(&self) -> bool {
        self.0.1.load(Ordering::Relaxed) == 0
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.0.0.1.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connected<IncomingStream<'_, Listener>> for Caller {
    fn connect_info(stream: IncomingStream<'_, Listener>) -> Caller {
        stream.io().caller.clone()
    }
}

impl Listener {
    /// A place for one more. If there is none, the oldest connection without a request is closed, or else the oldest
    /// for which nothing is done: so nobody keeps others out by staying.
    async fn place(&mut self) -> Option<OwnedSemaphorePermit> {
        self.callers.retain(|(_, away)| !away.is_closed());
        if self.places.available_permits() == 0 {
            let stranger = self.callers.iter().position(|(caller, _)| !caller.is_known());
            let idle = || self.callers.iter().position(|(caller, _)| caller.is_idle());
            if let Some((_, away)) = stranger.or_else(idle).and_then(|at| self.callers.remove(at)) {
                let _ = away.send(());
            }
        }
        Arc::clone(&self.places).acquire_owned().await.ok()
    }
}

impl axum::serve::Listener for Listener {
    type Io = Connection;
    type Addr = Option<SocketAddr>;

    async fn accept(&mut self) -> (Connection, Option<SocketAddr>) {
        loop {
            let next = async {
                match &self.kind {
                    Some(Kind::Unix(listener)) => {
                        listener.accept().await.map(|(stream, _)| (Kind::Unix(stream), None))
                    }
                    Some(Kind::Tcp(listener)) => {
                        listener.accept().await.map(|(stream, address)| (Kind::Tcp(stream), Some(address)))
                    }
                    None => std::future::pending().await,
                }
            };
            let accepted = tokio::select! {
                accepted = next => accepted,
                () = self.left.0.0.notified(), if self.kind.is_some() => {
                    self.kind = None;
                    continue;
                }
            };
            match accepted {
                Ok((stream, address)) => {
                    let permit = self.place().await;
                    let (caller, (away, sent_away)) = (Caller::default(), oneshot::channel());
                    self.callers.push_back((caller.clone(), away));
                    let patience = Box::pin(sleep(FIRST_REQUEST_TIMEOUT));
                    let connection =
                        Connection { stream, caller, was_known: false, patience, sent_away, _permit: permit };
                    return (connection, address);
                }
                // Descriptors have run out, most likely: retrying at once would only use CPU time.
                Err(_) => sleep(Duration::from_millis(200)).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<Option<SocketAddr>> {
        match &self.kind {
            Some(Kind::Tcp(listener)) => listener.local_addr().map(Some),
            Some(Kind::Unix(_)) | None => Ok(None),
        }
    }
}

/// A caller's connection. It fails when its first request does not arrive in time, when it is idle for too long after
/// that, and when it is closed to make room.
pub(super) struct Connection {
    stream: Kind<UnixStream, TcpStream>,
    caller: Caller,
    was_known: bool,
    patience: Pin<Box<Sleep>>,
    sent_away: oneshot::Receiver<()>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// Restarts the idle time of an accepted connection after progress, and fails a wait that has lasted too long.
    fn watch<T>(&mut self, context: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let newly_known =
            self.caller.is_known() && !std::mem::replace(&mut self.was_known, self.caller.is_known());
        if newly_known || (progress.is_ready() && self.caller.is_known()) {
            self.patience.as_mut().reset(Instant::now() + IDLE_TIMEOUT);
        }
        if progress.is_ready() {
            return progress;
        }
        if Pin::new(&mut self.sent_away).poll(context).is_ready() {
            return Poll::Ready(Err(ErrorKind::TimedOut.into()));
        }
        self.patience.as_mut().poll(context).map(|()| Err(ErrorKind::TimedOut.into()))
    }
}

macro_rules! forward {
    ($self:ident, $context:ident, $method:ident($($argument:expr),*)) => {{
        let this = $self.get_mut();
        let progress = match &mut this.stream {
            Kind::Unix(stream) => Pin::new(stream).$method($context, $($argument),*),
            Kind::Tcp(stream) => Pin::new(stream).$method($context, $($argument),*),
        };
        this.watch($context, progress)
    }};
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        forward!(self, context, poll_read(buffer))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        forward!(self, context, poll_write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        forward!(self, context, poll_flush())
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        forward!(self, context, poll_shutdown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_test_support::TempDir;

    #[test]
    fn the_socket_is_its_owners_alone_and_goes_when_dropped() {
        let dir = TempDir::new();
        let path = dir.join("admin.sock");
        let bound = Bound::bind(&Endpoint::Unix(path.clone()), &Callers::default()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        drop(bound);
        assert!(!path.exists());
    }

    #[test]
    fn only_the_standard_directory_is_made() {
        let dir = TempDir::new();
        let error =
            Bound::bind(&Endpoint::Unix(dir.join("slip/admin.sock")), &Callers::default()).err().unwrap();
        assert!(error.to_string().starts_with("there is no directory "), "{error}");
        assert!(!dir.join("slip").exists());
        make_directory(&dir.join("own"), None).unwrap();
        assert_eq!(fs::metadata(dir.join("own")).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_socket_in_use_is_an_error_and_one_left_behind_is_replaced() {
        let dir = TempDir::new();
        let endpoint = Endpoint::Unix(dir.join("admin.sock"));
        let first = Bound::bind(&endpoint, &Callers::default()).unwrap();
        let error = Bound::bind(&endpoint, &Callers::default()).err().unwrap();
        assert!(error.to_string().contains("another process answers"), "{error}");
        drop(first);
        drop(std::os::unix::net::UnixListener::bind(dir.join("admin.sock")).unwrap());
        assert!(dir.join("admin.sock").exists());
        Bound::bind(&endpoint, &Callers::default()).unwrap();
    }

    #[test]
    fn a_directory_that_others_may_change_is_no_place_for_it() {
        let dir = TempDir::new();
        fs::create_dir(dir.join("open")).unwrap();
        fs::set_permissions(dir.join("open"), Permissions::from_mode(0o777)).unwrap();
        let error =
            Bound::bind(&Endpoint::Unix(dir.join("open/admin.sock")), &Callers::default()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_file_that_is_no_socket_is_left_alone() {
        let dir = TempDir::new();
        fs::write(dir.join("precious"), "x").unwrap();
        assert!(Bound::bind(&Endpoint::Unix(dir.join("precious")), &Callers::default()).is_err());
        assert_eq!(fs::read_to_string(dir.join("precious")).unwrap(), "x");
    }
}
