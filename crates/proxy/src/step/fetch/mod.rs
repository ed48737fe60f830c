//! Fetch: sends a request to a backend of a pool, and receives the head of the response.

mod attempt;
mod connect;
mod context;
mod fastcgi;
mod hedge;
mod http1;
mod http2;
mod identify;
mod link;
mod local_file;
#[cfg(test)]
mod memory;
mod named_file;
mod origin_head;
mod origin_request;
mod origin_response;
mod recipient;
mod response_fields;
mod retry;
mod run;
mod seen;
mod stderr_log;
#[cfg(test)]
mod tests;
mod trace;

pub(crate) use context::FetchContext;
#[cfg(test)]
pub(crate) use http1::encode_request;
pub(crate) use link::OriginLink;
pub(crate) use named_file::answer_from_file;
pub(crate) use origin_request::OriginRequest;
pub(crate) use origin_response::{Keeping, OriginResponse};
pub(crate) use recipient::{Audience, Recipient};
pub(crate) use run::Fetch;
pub(crate) use trace::{FetchTrace, address};
