//! A service manager that is told of the state of its service (sd_notify(3)).

use std::os::unix::net::UnixDatagram;

use sandarac_test_support::{PATIENCE, Sandarac, Setup, TempDir};

pub(crate) struct ServiceManager {
    socket: UnixDatagram,
    dir: TempDir,
}

impl ServiceManager {
    pub(crate) fn new() -> ServiceManager {
        let dir = TempDir::new();
        let socket = UnixDatagram::bind(dir.join("notify")).expect("a socket can be bound");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket has a time limit");
        ServiceManager { socket, dir }
    }

    /// Starts the binary, which is to tell it of its state.
    #[track_caller]
    pub(crate) fn starts(&self, setup: Setup) -> Sandarac {
        setup.variable("NOTIFY_SOCKET", &self.dir.join("notify").display().to_string()).start()
    }

    /// The next message.
    #[track_caller]
    pub(crate) fn told(&self) -> String {
        let mut buffer = [0; 4096];
        let len = self.socket.recv(&mut buffer).expect("the service manager is told");
        String::from_utf8_lossy(&buffer[..len]).into_owned()
    }
}
