//! The end of a TCP stream on its way.

use std::fs;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// States of a socket whose end the peer's kernel has not acknowledged: FIN_WAIT1, LAST_ACK and CLOSING.
const ON_ITS_WAY: [&str; 3] = ["04", "09", "0B"];

/// Waits until the end that this socket has sent is at the peer. On a busy machine it can arrive after what another connection sends
/// later.
pub(crate) fn await_arrival(stream: &TcpStream) {
    let (Ok(local), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) else { return };
    let (local, peer) = (format!(":{:04X}", local.port()), format!(":{:04X}", peer.port()));
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline
        && ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|table| {
            let table = fs::read_to_string(table).unwrap_or_default();
            table.lines().any(|line| {
                let mut columns = line.split_whitespace().skip(1);
                let mut ends_with =
                    |port: &str| columns.next().is_some_and(|address| address.ends_with(port));
                ends_with(&local)
                    && ends_with(&peer)
                    && columns.next().is_some_and(|state| ON_ITS_WAY.contains(&state))
            })
        })
    {
        thread::sleep(Duration::from_millis(1));
    }
}
