//! The fields of a line.

use sandarac_message::Timestamp;

/// The content of a line, in any format, with all escapes reversed.
#[derive(Debug, Default)]
pub(super) struct LineFields {
    pub(super) time: Timestamp,
    pub(super) whole_second: bool,
    /// Whether it is for a fragment, which nobody visited.
    pub(super) is_fragment: bool,
    pub(super) method: Vec<u8>,
    pub(super) host: Option<Vec<u8>>,
    pub(super) target: Vec<u8>,
    pub(super) referer: Option<Vec<u8>>,
    pub(super) user_agent: Option<Vec<u8>>,
}
