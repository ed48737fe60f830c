//! The part of ZooKeeper's protocol that reading needs (its records are defined in `zookeeper.jute`). Numbers
//! are big-endian. Strings, buffers and packets are preceded by their length.

use crate::{Loss, LossReason};

/// The longest packet that is read, in bytes. Servers send a mebibyte unless told otherwise
/// (`jute.maxbuffer`).
pub(super) const MAX_PACKET: usize = 4 * 1024 * 1024;

/// The transaction id of pings and their replies.
pub(super) const PING: i32 = -2;

/// The transaction id of notifications: a watch has fired.
pub(super) const NOTIFICATION: i32 = -1;

/// The operations of a server, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Exists = 3,
    GetData = 4,
    GetChildren = 8,
    Ping = 11,
    CloseSession = -11,
}

/// A packet under construction.
pub(super) struct Packet(Vec<u8>);

impl Packet {
    /// The first packet on a connection. It requests a new session that lives for `timeout` milliseconds
    /// without a sign of life, at a server that knows the transaction `zxid`.
    pub(super) fn connect(zxid: i64, timeout: i32) -> Packet {
        let packet = Packet(vec![0; 4]);
        // Version, last zxid seen, timeout, session id, password of 16 bytes, and no read-only servers.
        packet.int(0).long(zxid).int(timeout).long(0).buffer(&[0; 16]).byte(0)
    }

    /// A request; the caller appends its arguments.
    pub(super) fn request(xid: i32, operation: Operation) -> Packet {
        Packet(vec![0; 4]).int(xid).int(operation as i32)
    }

    pub(super) fn int(mut self, number: i32) -> Packet {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub(super) fn long(mut self, number: i64) -> Packet {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub(super) fn byte(mut self, byte: u8) -> Packet {
        self.0.push(byte);
        self
    }

    /// Bytes, or a string.
    pub(super) fn buffer(self, bytes: &[u8]) -> Packet {
        let mut packet = self.int(bytes.len() as i32);
        packet.0.extend(bytes);
        packet
    }

    /// The packet, preceded by its length.
    pub(super) fn bytes(mut self) -> Vec<u8> {
        let length = (self.0.len() - 4) as u32;
        self.0[..4].copy_from_slice(&length.to_be_bytes());
        self.0
    }
}

/// A received packet, read from front to back. Reading beyond its end is a loss: the server is not ZooKeeper.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn int(&mut self) -> Result<i32, Loss> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(malformed)?;
        self.0 = rest;
        Ok(i32::from_be_bytes(*bytes))
    }

    pub(super) fn long(&mut self) -> Result<i64, Loss> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(malformed)?;
        self.0 = rest;
        Ok(i64::from_be_bytes(*bytes))
    }

    /// Bytes, or a string; empty if it is absent (a length of -1).
    pub(super) fn buffer(&mut self) -> Result<&'a [u8], Loss> {
        let length = self.int()?;
        let length = if length == -1 { 0 } else { usize::try_from(length).map_err(|_| malformed())? };
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// A list of strings.
    pub(super) fn buffers(&mut self) -> Result<Vec<&'a [u8]>, Loss> {
        let count = self.int()?;
        // Bounded by the packet, whatever the count is.
        (0..count).map(|_| self.buffer()).collect()
    }
}

/// The loss for a server that speaks another protocol.
pub(super) fn malformed() -> Loss {
    Loss::new(LossReason::Malformed, "this is not an answer of ZooKeeper")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_written_with_its_length_and_read_back() {
        let packet = Packet::request(7, Operation::GetData).buffer(b"/a").byte(1).bytes();
        assert_eq!(packet, b"\0\0\0\x0f\0\0\0\x07\0\0\0\x04\0\0\0\x02/a\x01");
        let mut fields = Fields(&packet[4..]);
        assert_eq!((fields.int(), fields.int(), fields.buffer()), (Ok(7), Ok(4), Ok(&b"/a"[..])));
        assert_eq!(fields.int(), Err(malformed()));
    }

    #[test]
    fn lengths_that_lie_are_found_out() {
        assert_eq!(Fields(b"\xff\xff\xff\xff").buffer(), Ok(&b""[..]));
        assert_eq!(Fields(b"\xff\xff\xff\xfe").buffer(), Err(malformed()));
        assert_eq!(Fields(b"\x7f\xff\xff\xffab").buffer(), Err(malformed()));
        assert_eq!(Fields(b"\x7f\xff\xff\xff\0\0\0\x01a").buffers(), Err(malformed()));
        assert_eq!(Fields(b"\0\0\0\x02\0\0\0\x01a\0\0\0\0").buffers(), Ok(vec![&b"a"[..], &b""[..]]));
    }
}
