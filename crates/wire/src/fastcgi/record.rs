//! Records: their types and their header (FastCGI specification §3.3, §8).

/// Bytes of a record's header.
pub const HEADER_LEN: usize = 8;

/// The most content bytes of a record.
pub const MAX_CONTENT: usize = u16::MAX as usize;

/// The only version there is.
pub(super) const VERSION: u8 = 1;

/// The number of a request on its connection, never 0. A connection carries one request at a time, but each has another
/// number, so that a late record of an earlier one is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(u16);

impl RequestId {
    /// That of the first request on a connection.
    pub const FIRST: RequestId = RequestId(1);

    /// That of the request after this one. After the last number there is, they begin again.
    #[must_use]
    pub fn next(self) -> RequestId {
        self.0.checked_add(1).map_or(RequestId::FIRST, RequestId)
    }

    pub(super) fn is(self, number: u16) -> bool {
        self.0 == number
    }
}

/// The id of records about the connection itself.
pub(super) const MANAGEMENT_ID: u16 = 0;

pub(super) const BEGIN_REQUEST: u8 = 1;
pub(super) const END_REQUEST: u8 = 3;
pub(super) const PARAMS: u8 = 4;
pub(super) const STDIN: u8 = 5;
pub(super) const STDOUT: u8 = 6;
pub(super) const STDERR: u8 = 7;
pub(super) const GET_VALUES_RESULT: u8 = 10;
pub(super) const UNKNOWN_TYPE: u8 = 11;

/// The record that ends the body of a request.
pub fn stdin_end(id: RequestId) -> [u8; HEADER_LEN] {
    header(id, STDIN, 0)
}

/// The header of a record with `len` bytes of the body of a request, from 1 to [`MAX_CONTENT`].
pub fn stdin_header(id: RequestId, len: u16) -> [u8; HEADER_LEN] {
    debug_assert!(len > 0, "an empty record ends the body");
    header(id, STDIN, len)
}

/// The header of a record without padding.
pub(super) fn header(id: RequestId, kind: u8, content: u16) -> [u8; HEADER_LEN] {
    let [id_high, id_low] = id.0.to_be_bytes();
    let [len_high, len_low] = content.to_be_bytes();
    [VERSION, kind, id_high, id_low, len_high, len_low, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_requests_go_round_without_0() {
        assert_eq!(RequestId::FIRST.next(), RequestId(2));
        assert_eq!(RequestId(u16::MAX).next(), RequestId::FIRST);
        assert_eq!(stdin_header(RequestId(0x102), 3), [1, 5, 1, 2, 0, 3, 0, 0]);
    }
}
