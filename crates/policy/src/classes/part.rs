//! The parts of a request that classes are made of.

use std::borrow::Cow;
use std::fmt;

use sandarac_message::cookies::cookie;
use sandarac_message::target::route_path;

use super::Subject;
use crate::pattern::{bare_host, lower_case};

/// A part of a request that a class can be made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassPart {
    /// The host in lower case, without port and leading `www.`.
    Host,
    /// The path as routes match on it.
    Path,
    /// The query, without its question mark.
    Query,
    /// Path and query as received.
    Target,
    /// The method.
    Method,
    /// A segment of the path, the first being 1.
    Segment(u32),
    /// The lines of a field, joined by commas.
    Header(Box<str>),
    /// A cookie.
    Cookie(Box<str>),
    /// A parameter of the query, as received.
    Parameter(Box<str>),
}

impl ClassPart {
    /// The value of this part in `subject`. For a class, `None` and an empty value are the same.
    pub(crate) fn value<'a>(&'a self, subject: &Subject<'a>) -> Option<Cow<'a, [u8]>> {
        match self {
            ClassPart::Host => Some(lower_case(site(subject.host))),
            ClassPart::Path => Some(path(subject.target)),
            ClassPart::Query => query(subject.target).map(Cow::Borrowed),
            ClassPart::Target => Some(Cow::Borrowed(subject.target)),
            ClassPart::Method => Some(Cow::Borrowed(subject.method)),
            ClassPart::Segment(number) => match path(subject.target) {
                Cow::Borrowed(path) => segment(path, *number).map(Cow::Borrowed),
                Cow::Owned(path) => segment(&path, *number).map(|segment| Cow::Owned(segment.to_vec())),
            },
            ClassPart::Header(name) => {
                let mut lines = subject.fields.all_named(name.as_bytes());
                let first = lines.next()?;
                Some(lines.fold(Cow::Borrowed(first), |joined, line| {
                    // Several lines are combined into one, joined by commas (RFC 9110 §5.3).
                    Cow::Owned([&joined, &b", "[..], line].concat())
                }))
            }
            ClassPart::Cookie(name) => cookie(subject.fields, name.as_bytes()).map(Cow::Borrowed),
            ClassPart::Parameter(name) => {
                let pairs = query(subject.target)?.split(|&byte| byte == b'&');
                pairs
                    .filter_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
                    .next()
                    .map(Cow::Borrowed)
            }
        }
    }
}

impl fmt::Display for ClassPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClassPart::Host => f.write_str("host"),
            ClassPart::Path => f.write_str("path"),
            ClassPart::Query => f.write_str("query"),
            ClassPart::Target => f.write_str("target"),
            ClassPart::Method => f.write_str("method"),
            ClassPart::Segment(number) => write!(f, "segment:{number}"),
            ClassPart::Header(name) => write!(f, "header:{name}"),
            ClassPart::Cookie(name) => write!(f, "cookie:{name}"),
            ClassPart::Parameter(name) => write!(f, "query:{name}"),
        }
    }
}

/// The host without port and leading `www.`; letter case is kept.
fn site(host: &[u8]) -> &[u8] {
    let bare = bare_host(host);
    match bare.split_at_checked(4) {
        Some((start, rest)) if start.eq_ignore_ascii_case(b"www.") => rest,
        _ => bare,
    }
}

/// The host in lower case, without port and leading `www.`; in `buffer` if letters are changed.
pub(crate) fn host<'a>(host: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
    let site = site(host);
    if !site.iter().any(u8::is_ascii_uppercase) {
        return site;
    }
    buffer.extend(site.iter().map(u8::to_ascii_lowercase));
    buffer
}

/// The path of a target as routes match on it; empty if it has none.
pub(crate) fn path(target: &[u8]) -> Cow<'_, [u8]> {
    let end = target.iter().position(|&byte| byte == b'?').unwrap_or(target.len());
    match &target[..end] {
        path @ [b'/', ..] => route_path(path).unwrap_or_default(),
        // An asterisk, or the authority of a tunnel.
        _ => Cow::Borrowed(&[]),
    }
}

fn query(target: &[u8]) -> Option<&[u8]> {
    let at = target.iter().position(|&byte| byte == b'?')?;
    Some(&target[at + 1..])
}

/// A segment of a path, the first being 1, if there are that many; `None` if it is empty.
pub(crate) fn segment(path: &[u8], number: u32) -> Option<&[u8]> {
    path.split(|&byte| byte == b'/').nth(number as usize).filter(|segment| !segment.is_empty())
}
