//! Records: their types and their header (FastCGI specification §3.3, §8).

/// Bytes of a record's header.
pub const HEADER_LEN: usize = 8;

/// The most content bytes of a record.
pub const MAX_CONTENT: usize = u16::MAX as usize;

/// The only version there is.
pub(super) const VERSION: u8 = 1;

/// The id of every request, because a connection carries one at a time.
pub(super) const REQUEST_ID: u16 = 1;

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

/// The record that ends a request body.
pub const STDIN_END: [u8; HEADER_LEN] = header(STDIN, 0);

/// The header of a record with `len` bytes of a request body, from 1 to [`MAX_CONTENT`].
pub fn stdin_header(len: u16) -> [u8; HEADER_LEN] {
    debug_assert!(len > 0, "an empty record ends the body");
    header(STDIN, len)
}

/// The header of a record without padding.
pub(super) const fn header(kind: u8, content: u16) -> [u8; HEADER_LEN] {
    let [id_high, id_low] = REQUEST_ID.to_be_bytes();
    let [len_high, len_low] = content.to_be_bytes();
    [VERSION, kind, id_high, id_low, len_high, len_low, 0, 0]
}
