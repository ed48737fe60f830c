//! Another address of a server, which can go while the server stays.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use sandarac_test_support::within;

/// Forwards connections to a server until it is dropped. Then they break, and no more are accepted.
pub(crate) struct Forwarder {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    connections: Vec<TcpStream>,
    closed: bool,
}

impl Forwarder {
    /// On a free port.
    pub(crate) fn to(server: SocketAddr) -> Forwarder {
        Forwarder::at((Ipv4Addr::LOCALHOST, 0).into(), server)
    }

    /// At an address where another was.
    pub(crate) fn at(address: SocketAddr, server: SocketAddr) -> Forwarder {
        // The one before may not have closed its listener yet.
        let listener = within("the port to be free", || TcpListener::bind(address).ok());
        let address = listener.local_addr().expect("a bound socket has an address");
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let mut state = shared.lock().expect("no forwarder panics");
                if state.closed {
                    return;
                }
                let Ok(server) = TcpStream::connect(server) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                state.connections.extend([client, server]);
            }
        });
        Forwarder { address, state }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether a connection goes through it.
    pub(crate) fn is_used(&self) -> bool {
        !self.state.lock().expect("no forwarder panics").connections.is_empty()
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        let mut state = self.state.lock().expect("no forwarder panics");
        state.closed = true;
        for connection in state.connections.drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
        drop(state);
        // Wakes the one who accepts, who then closes the listener.
        let _ = TcpStream::connect(self.address);
    }
}
