//! The end of a TCP stream on its way.

use std::fs;
use std::net::TcpStream;

use crate::within;

/// States of a socket whose end the peer's kernel has not acknowledged: FIN_WAIT1, LAST_ACK and CLOSING.
const ON_ITS_WAY: [&str; 3] = ["04", "09", "0B"];

/// Waits until the end that this socket has sent is at the peer. On a busy machine it can arrive after the bytes
/// that another connection sends later.
#[track_caller]
pub(crate) fn await_arrival(stream: &TcpStream) {
    let (Ok(local), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) else { return };
    let (local, peer) = (format!(":{:04X}", local.port()), format!(":{:04X}", peer.port()));
    let is_on_its_way = |line: &str| {
        let mut columns = line.split_whitespace().skip(1);
        let mut ends_with = |port: &str| columns.next().is_some_and(|address| address.ends_with(port));
        ends_with(&local)
            && ends_with(&peer)
            && columns.next().is_some_and(|state| ON_ITS_WAY.contains(&state))
    };
    within("the end of the connection to arrive", || {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
        (!tables.iter().flatten().any(|table| table.lines().any(is_on_its_way))).then_some(())
    });
}
