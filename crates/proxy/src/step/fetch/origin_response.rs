//! A response whose head has arrived, or a failed attempt.

use super::link::OriginLink;
use crate::Fault;
use crate::downstream::upload::Upload;
use crate::files::FileFound;
use sandarac_message::{ResponseHeadBuf, Timestamp};

/// A response whose head has arrived.
pub(crate) struct OriginResponse {
    pub(crate) link: OriginLink,
    /// The fields stand after the status line, as both are sent to the client, unless it switched protocols.
    pub(crate) head: ResponseHeadBuf,
    /// 101, or 2xx to CONNECT: another protocol follows.
    pub(crate) switched: bool,
    pub(crate) requested: Timestamp,
    pub(crate) received: Timestamp,
    /// The progress of the request body.
    pub(crate) upload: Upload,
    /// Whether it may be stored, apart from what it says of itself.
    pub(crate) keeping: Keeping,
    /// Whether the application asks that it goes at the pace of its client.
    pub(crate) is_unbuffered: bool,
    /// The file that takes the place of the body.
    pub(crate) file: Option<FileFound>,
}

/// Whether a response may be stored, apart from what it says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// It may.
    Allowed,
    /// Only if it states how long it is fresh: a file that the application has named, or a page that php-fpm
    /// made and not the application.
    IfStated,
    /// It names a file in place of its body, and its pool may not send any: this is not the page.
    Refused,
}

/// An attempt that brought no response.
pub(super) struct Failed {
    pub(super) fault: Fault,
    /// Whether any byte of the request may have reached the backend.
    pub(super) sent: bool,
    /// Whether any byte of a response arrived.
    pub(super) answered: bool,
}
