//! Parsing of one line.

use sandarac_message::Timestamp;
use sandarac_message::target::{Authority, Scheme};

use super::fields::LineFields;
use super::malformed::Malformed;
use super::{json, ncsa};

/// The content of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A GET or HEAD.
    Request(Entry),
    /// One that is not replayed: of another method, or for a fragment, which its page brings with it.
    Other,
}

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) time: Timestamp,
    /// Whether the line gives the time in whole seconds only.
    pub(super) whole_second: bool,
    pub(super) head: bool,
    pub(super) host: Option<Vec<u8>>,
    pub(super) target: Vec<u8>,
    pub(super) referer: Option<Vec<u8>>,
    pub(super) user_agent: Option<Vec<u8>>,
}

impl Line {
    /// Parses a line. Its content can be sent unchanged: no host, target or field contains a delimiter.
    pub(super) fn read(line: &[u8]) -> Result<Line, Malformed> {
        let line = line.trim_ascii();
        let told = if line.starts_with(b"{") { json::read(line)? } else { ncsa::read(line)? };
        if !sandarac_message::is_token(&told.method) {
            return Err(Malformed::Request);
        }
        let head = match &told.method[..] {
            b"GET" => false,
            b"HEAD" => true,
            _ => return Ok(Line::Other),
        };
        if told.is_fragment {
            return Ok(Line::Other);
        }
        let (named, target) = target(&told.target)?;
        let host = match named.or(told.host) {
            Some(host) => Some(usual_host(&host).ok_or(Malformed::Host)?),
            None => None,
        };
        let field = |value: Option<Vec<u8>>| value.filter(|value| is_field_value(value));
        let (referer, user_agent) = (field(told.referer), field(told.user_agent));
        let LineFields { time, whole_second, .. } = told;
        Ok(Line::Request(Entry { time, whole_second, head, host, target, referer, user_agent }))
    }
}

/// The host of an absolute target, if it is one, and path and query.
fn target(target: &[u8]) -> Result<(Option<Vec<u8>>, Vec<u8>), Malformed> {
    if target.iter().any(|&byte| byte <= b' ' || byte == 0x7f || byte == b'#') {
        return Err(Malformed::Target);
    }
    if target.starts_with(b"/") {
        return Ok((None, target.to_vec()));
    }
    let (_, rest) = Scheme::strip(target).ok_or(Malformed::Target)?;
    let (host, path) = rest.split_at(memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len()));
    let slash = if path.starts_with(b"/") { &b""[..] } else { b"/" };
    Ok((Some(host.to_vec()), [slash, path].concat()))
}

/// A host without a default port.
fn usual_host(host: &[u8]) -> Option<Vec<u8>> {
    let Authority { host, port, .. } = Authority::parse(host)?;
    match port {
        None | Some(80 | 443) => Some(host.to_vec()),
        Some(port) => Some([host, format!(":{port}").as_bytes()].concat()),
    }
}

/// RFC 9110 §5.5.
fn is_field_value(value: &[u8]) -> bool {
    !value.is_empty()
        && value.trim_ascii().len() == value.len()
        && value.iter().all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}
