//! Fetch: a request goes to a backend of a pool, and the head of its response comes back.

mod attempt;
mod connect;
mod context;
mod hedge;
mod http1;
mod identify;
mod link;
#[cfg(test)]
mod memory;
mod recipient;
mod request;
mod retry;
#[cfg(test)]
mod tests;

pub(crate) use context::FetchContext;
#[cfg(test)]
pub(crate) use http1::encode_request;
pub(crate) use link::OriginLink;
pub(crate) use recipient::{Audience, Recipient};
pub(crate) use request::{Fetch, FetchTrace, OriginRequest, address};

use crate::Fault;
use crate::downstream::Upload;
use sandarac_message::{ResponseHeadBuf, Timestamp};

/// A response whose head has arrived.
pub(crate) struct OriginResponse {
    pub(crate) link: OriginLink,
    /// Its fields stand after the status line, as both go to the client, unless it switched protocols.
    pub(crate) head: ResponseHeadBuf,
    /// 101, or 2xx to CONNECT: what follows belongs to another protocol.
    pub(crate) switched: bool,
    pub(crate) requested: Timestamp,
    pub(crate) received: Timestamp,
    /// How far the request body has come.
    pub(crate) upload: Upload,
}

/// An attempt that brought no response.
struct Failed {
    fault: Fault,
    /// Whether any byte of the request may have reached the backend.
    sent: bool,
    /// Whether any byte of a response came.
    answered: bool,
}
