//! Response heads as links hand them over, whatever protocol they came by.

use sandarac_message::{Fields, ResponseHead, ResponseHeadBuf};

/// The head of a final response.
pub(crate) struct OriginHead {
    /// Its fields stand after the status line, as both go to the client, unless it switched protocols.
    pub(crate) head: ResponseHeadBuf,
    /// 101, or 2xx to CONNECT: what follows belongs to another protocol.
    pub(crate) switched: bool,
}

/// What shows as a response head arrives.
pub(crate) enum Seen<'a> {
    /// An interim response, with all of its fields.
    Interim(&'a ResponseHead<'a>),
    /// The fields of the final one, those of the connection among them.
    Final(Fields<'a>),
}
