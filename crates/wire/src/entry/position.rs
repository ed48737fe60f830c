//! Positions in the purge logs of servers.

use super::EntryError;
use super::reader::Reader;

/// The random number of a log. A server that loses its log gets another one with another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogId(pub [u8; 16]);

/// A position in a purge log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// The log.
    pub log: LogId,
    /// Bytes of records before this position, including those that were dropped since.
    pub offset: u64,
}

impl Position {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.log.0);
        out.extend_from_slice(&self.offset.to_le_bytes());
    }

    pub(super) fn decode(reader: &mut Reader) -> Result<Position, EntryError> {
        Ok(Position { log: LogId(reader.array()?), offset: reader.u64()? })
    }
}
