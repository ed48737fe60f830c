//! Response heads as returned by links, over any protocol.

use sandarac_message::{Fields, ResponseHead, ResponseHeadBuf};

/// The head of a final response.
pub(crate) struct OriginHead {
    /// The fields stand after the status line, as both are sent to the client, unless it switched protocols.
    pub(crate) head: ResponseHeadBuf,
    /// 101, or 2xx to CONNECT: another protocol follows.
    pub(crate) switched: bool,
}

/// A head that arrives on the way.
pub(crate) enum Seen<'a> {
    /// An interim response, with all of its fields.
    Interim(&'a ResponseHead<'a>),
    /// The fields of the final response, including those of the connection.
    Final(Fields<'a>),
}
