//! Request targets and Host (RFC 9112 §3.2).
//!
//! Keys and forwarded targets have the bytes as received; only the host is normalised. Routes match on a
//! decoded copy of the path, [`route_path`], which refuses paths that two readers could decode differently.

mod authority;
mod path;
mod query;
mod readings;
mod reference;

pub use authority::{Authority, Scheme};
pub use path::{PathError, route_path};
pub use query::{filter_query, parameters};
pub use readings::other_readings;
pub use reference::{content_location_is_target, invalidated, resolve};

use crate::{Method, Name, RequestHead, Version};

/// The form of a request target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `/path?query`.
    Origin,
    /// `http://host/path?query`, whose host overrides the Host field (RFC 9112 §3.2.2).
    Absolute,
    /// `host:port`, for CONNECT.
    Authority,
    /// `*`, for OPTIONS.
    Asterisk,
}

/// The target of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The form it was received in.
    pub form: Form,
    /// The scheme of an absolute form.
    pub scheme: Option<Scheme>,
    /// The host, with the port if one was given; `None` for an HTTP/1.0 request without Host.
    pub authority: Option<Authority<'a>>,
    /// Path and query as received; `/` for an absolute form without a path, `*` for the asterisk form, empty
    /// for the authority form.
    pub path_and_query: &'a [u8],
}

/// Why a target or Host is refused, always with 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetError {
    /// It has none of the four forms, or one that its method does not allow.
    Form,
    /// It has a byte that is never allowed: a control character, a space or `#`.
    Byte,
    /// An absolute form with another scheme than http and https.
    Scheme,
    /// No Host in HTTP/1.1 (RFC 9112 §3.2).
    NoHost,
    /// More than one Host line.
    SeveralHosts,
    /// An invalid host or port, or a host with a user name (RFC 9110 §4.2.4).
    Host,
}

impl TargetError {
    /// The error as written in logs, counters and the Proxy-Status `details`.
    pub const fn text(self) -> &'static str {
        match self {
            TargetError::Form => "target-form",
            TargetError::Byte => "target-byte",
            TargetError::Scheme => "target-scheme",
            TargetError::NoHost => "no-host",
            TargetError::SeveralHosts => "several-hosts",
            TargetError::Host => "host",
        }
    }
}

impl std::fmt::Display for TargetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TargetError::Form => "the request target has no form that its method allows",
            TargetError::Byte => "the request target holds a byte that must be encoded",
            TargetError::Scheme => "the request target has a scheme other than http and https",
            TargetError::NoHost => "the request has no Host field",
            TargetError::SeveralHosts => "the request has several Host fields",
            TargetError::Host => "the host or port of the request is malformed",
        })
    }
}

impl std::error::Error for TargetError {}

impl<'a> Target<'a> {
    /// Reads target and Host of a request. The Host field must be valid even if an absolute form overrides
    /// it.
    pub fn of(request: &RequestHead<'a>) -> Result<Target<'a>, TargetError> {
        let target = request.target;
        // Checks every byte, many at a time, instead of stopping at the first match: hardly any target has
        // one.
        if target.iter().fold(false, |found, &byte| found | (byte <= b' ') | (byte == 0x7f) | (byte == b'#'))
        {
            return Err(TargetError::Byte);
        }
        let mut hosts = request.fields.all(Name::Host);
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => Some(Authority::parse(host).ok_or(TargetError::Host)?),
            (None, _) if request.version == Version::Http11 => return Err(TargetError::NoHost),
            (None, _) => None,
            (Some(_), Some(_)) => return Err(TargetError::SeveralHosts),
        };
        if request.method == Method::Connect {
            let authority = Authority::parse(target).filter(|authority| authority.port.is_some());
            let authority = authority.ok_or(TargetError::Form)?;
            return Ok(Target {
                form: Form::Authority,
                scheme: None,
                authority: Some(authority),
                path_and_query: b"",
            });
        }
        if target.first() == Some(&b'/') {
            return Ok(Target { form: Form::Origin, scheme: None, authority: host, path_and_query: target });
        }
        if target == b"*" {
            if request.method != Method::Options {
                return Err(TargetError::Form);
            }
            return Ok(Target {
                form: Form::Asterisk,
                scheme: None,
                authority: host,
                path_and_query: target,
            });
        }
        absolute(target, request.method)
    }

    /// The path as received.
    pub fn path(&self) -> &'a [u8] {
        split_query(self.path_and_query).0
    }

    /// The query as received, without the `?`; `None` if there is no `?`.
    pub fn query(&self) -> Option<&'a [u8]> {
        split_query(self.path_and_query).1
    }
}

/// An absolute form that has a query and no path, with the path that it means (RFC 9110 §4.2.3); `None` for other targets.
/// [`Target::of`] refuses such a target as it was received.
pub fn with_path(target: &[u8]) -> Option<Vec<u8>> {
    if target.first() == Some(&b'/') {
        return None;
    }
    let (_, rest) = Scheme::strip(target)?;
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).filter(|&at| rest[at] == b'?')?;
    let (start, query) = target.split_at(target.len() - rest.len() + end);
    Some([start, b"/", query].concat())
}

fn absolute(target: &[u8], method: Method) -> Result<Target<'_>, TargetError> {
    let (scheme, rest) = Scheme::strip(target).ok_or_else(|| {
        let named = target.windows(3).any(|window| window == b"://");
        if named { TargetError::Scheme } else { TargetError::Form }
    })?;
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let (authority, path_and_query) = rest.split_at(end);
    let authority = Authority::parse(authority).ok_or(TargetError::Host)?;
    let path_and_query = match path_and_query.first() {
        // RFC 9112 §3.2.4: OPTIONS for a whole host.
        None if method == Method::Options => {
            let form = Form::Asterisk;
            return Ok(Target {
                form,
                scheme: Some(scheme),
                authority: Some(authority),
                path_and_query: b"*",
            });
        }
        None => &b"/"[..],
        Some(b'/') => path_and_query,
        // The missing `/` needs a copy: see [`with_path`].
        Some(_) => return Err(TargetError::Form),
    };
    Ok(Target { form: Form::Absolute, scheme: Some(scheme), authority: Some(authority), path_and_query })
}

/// Path and query of a target, at the first `?`.
pub fn split_query(path_and_query: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'?', path_and_query) {
        Some(at) => (&path_and_query[..at], Some(&path_and_query[at + 1..])),
        None => (path_and_query, None),
    }
}

#[cfg(test)]
mod tests;
