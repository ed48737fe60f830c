//! The output of a connection that the system still holds.

use rustix::ioctl::{Getter, Opcode, ioctl};
use std::ffi::c_int;
use std::os::fd::AsFd;

/// `SIOCOUTQ`, or `TIOCOUTQ`, which has this value on all architectures that Rust's first two tiers have for Linux, but
/// MIPS, PowerPC and SPARC.
const SIOCOUTQ: Opcode = 0x5411;

/// Bytes that were written to a socket and that its peer has not acknowledged; 0 where the system does not tell.
#[expect(unsafe_code, reason = "the system writes the number to where an address says")]
pub(crate) fn unacknowledged(socket: impl AsFd) -> usize {
    // SAFETY: for a socket the system writes one `int` to the address it is given (tcp(7)), which is that of a
    // `c_int` that lives until the call returns; for what knows no such operation it writes nothing and fails.
    let told = unsafe { ioctl(socket, Getter::<SIOCOUTQ, c_int>::new()) };
    told.ok().and_then(|bytes| bytes.try_into().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn what_the_peer_has_not_taken_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        assert_eq!(unacknowledged(&near), 0);
        near.set_nonblocking(true).unwrap();
        let mut written = 0;
        // More than the peer's system takes for it.
        while let Ok(more) = near.write(&[0; 1 << 16]) {
            written += more;
        }
        let left = unacknowledged(&near);
        assert!((1..written).contains(&left), "{left} of {written}");
        far.read_exact(&mut vec![0; written]).unwrap();
        assert!(unacknowledged(&near) < left);
    }

    #[test]
    fn what_is_no_socket_has_nothing_to_be_taken() {
        assert_eq!(unacknowledged(std::fs::File::open("/proc/self/status").unwrap()), 0);
    }
}
