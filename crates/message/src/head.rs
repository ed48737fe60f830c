//! Request and response heads: everything before a body.

use crate::{Fields, FieldsBuf};
use std::borrow::Cow;

/// A request method (RFC 9110 §9). Methods are case-sensitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Delete,
    Connect,
    Options,
    Trace,
    Patch,
    Purge,
    /// Any other token; its text is in the head.
    Other,
}

impl Method {
    /// The method that `token` names.
    pub fn of(token: &[u8]) -> Method {
        match token {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"POST" => Method::Post,
            b"PUT" => Method::Put,
            b"DELETE" => Method::Delete,
            b"CONNECT" => Method::Connect,
            b"OPTIONS" => Method::Options,
            b"TRACE" => Method::Trace,
            b"PATCH" => Method::Patch,
            b"PURGE" => Method::Purge,
            _ => Method::Other,
        }
    }

    /// The token of a known method.
    pub const fn text(self) -> Option<&'static [u8]> {
        match self {
            Method::Get => Some(b"GET"),
            Method::Head => Some(b"HEAD"),
            Method::Post => Some(b"POST"),
            Method::Put => Some(b"PUT"),
            Method::Delete => Some(b"DELETE"),
            Method::Connect => Some(b"CONNECT"),
            Method::Options => Some(b"OPTIONS"),
            Method::Trace => Some(b"TRACE"),
            Method::Patch => Some(b"PATCH"),
            Method::Purge => Some(b"PURGE"),
            Method::Other => None,
        }
    }

    /// Whether the method only retrieves information (RFC 9110 §9.2.1).
    pub const fn is_safe(self) -> bool {
        matches!(self, Method::Get | Method::Head | Method::Options | Method::Trace)
    }

    /// Whether repeating the request has the same effect as making it once (RFC 9110 §9.2.2).
    pub const fn is_idempotent(self) -> bool {
        self.is_safe() || matches!(self, Method::Put | Method::Delete)
    }
}

/// The HTTP version of a message on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Version {
    Http10,
    Http11,
    Http2,
}

/// A borrowed request head.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// The method.
    pub method: Method,
    /// The method's token as received.
    pub method_text: &'a [u8],
    /// The request target as received: origin form, absolute form, authority form or `*` (RFC 9112 §3.2).
    pub target: &'a [u8],
    /// The version of the message.
    pub version: Version,
    /// The fields.
    pub fields: Fields<'a>,
}

/// A borrowed response head.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// The status code, 100 to 599.
    pub status: u16,
    /// The reason phrase as received; may be empty.
    pub reason: &'a [u8],
    /// The version of the message.
    pub version: Version,
    /// The fields.
    pub fields: Fields<'a>,
}

/// An owned request head.
#[derive(Clone, Debug)]
pub struct RequestHeadBuf {
    /// The method.
    pub method: Method,
    /// The method's token as received.
    pub method_text: Cow<'static, [u8]>,
    /// The request target.
    pub target: Box<[u8]>,
    /// The version of the message.
    pub version: Version,
    /// The fields.
    pub fields: FieldsBuf,
}

impl RequestHeadBuf {
    /// A copy of `head`.
    pub fn copy_of(head: &RequestHead<'_>) -> RequestHeadBuf {
        RequestHeadBuf {
            method: head.method,
            method_text: head.method.text().map_or_else(|| head.method_text.to_vec().into(), Cow::Borrowed),
            target: head.target.into(),
            version: head.version,
            fields: FieldsBuf::copy_of(head.fields),
        }
    }

    /// The head, borrowed.
    pub fn view(&self) -> RequestHead<'_> {
        RequestHead {
            method: self.method,
            method_text: &self.method_text,
            target: &self.target,
            version: self.version,
            fields: self.fields.view(),
        }
    }
}

/// An owned response head.
#[derive(Clone, Debug)]
pub struct ResponseHeadBuf {
    /// The status code.
    pub status: u16,
    /// The reason phrase.
    pub reason: Box<[u8]>,
    /// The version of the message.
    pub version: Version,
    /// The fields.
    pub fields: FieldsBuf,
}

impl ResponseHeadBuf {
    /// A copy of `head`.
    pub fn copy_of(head: &ResponseHead<'_>) -> ResponseHeadBuf {
        ResponseHeadBuf {
            status: head.status,
            reason: head.reason.into(),
            version: head.version,
            fields: FieldsBuf::copy_of(head.fields),
        }
    }

    /// The head, borrowed.
    pub fn view(&self) -> ResponseHead<'_> {
        ResponseHead {
            status: self.status,
            reason: &self.reason,
            version: self.version,
            fields: self.fields.view(),
        }
    }
}
