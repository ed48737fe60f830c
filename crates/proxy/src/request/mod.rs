//! The request: who asks, for what, by which key, and what the route changes of it and of the response to it.

pub(crate) mod client_certificate;
pub(crate) mod client_request;
pub(crate) mod hash;
pub(crate) mod purge_target;
pub(crate) mod query;
pub(crate) mod received;
pub(crate) mod requester;
pub(crate) mod response_edits;
pub(crate) mod tags;
pub(crate) mod unkeyed;
