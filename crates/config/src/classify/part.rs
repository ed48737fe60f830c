//! The parts of a request that classes are made of.

use std::borrow::Cow;
use std::fmt;

use sandarac_message::cookies::cookie;
use sandarac_message::is_token;
use sandarac_message::target::route_path;

use crate::classify::Subject;
use crate::pattern::bare_host;
use crate::report::Complaint;
use crate::suggest::closest;

/// A part of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Host,
    /// The path as routes match on it.
    Path,
    /// The query, without its question mark.
    Query,
    /// Path and query as received.
    Target,
    Method,
    /// A segment of the path, the first being 1.
    Segment(u32),
    Header(Box<str>),
    Cookie(Box<str>),
    /// A parameter of the query, as received.
    Parameter(Box<str>),
}

/// The most segments that anybody counts.
const DEEPEST: u32 = 100;

/// The names of parts; those that end in a colon take a word after it.
const NAMES: [&str; 9] =
    ["host", "path", "query", "target", "method", "segment:", "header:", "cookie:", "query:"];

impl Part {
    /// Reads one of `allowed`, which are of [`NAMES`].
    pub(crate) fn read(text: &str, allowed: &[&str]) -> Result<Part, Complaint> {
        let unknown = || {
            let complaint = Complaint::new(format!("{text:?} is no part of a request"));
            let name = text.split_once(':').map_or(text, |(name, _)| name);
            match closest(name, &allowed.iter().map(|name| name.trim_end_matches(':')).collect::<Vec<_>>()) {
                Some(meant) if meant != name => complaint.help(format!("did you mean `{meant}`?")),
                _ => complaint.help(format!("known: {}", allowed.join(", "))),
            }
        };
        let (name, word) = text.split_once(':').map_or((text, None), |(name, word)| (name, Some(word)));
        let key = if word.is_some() { format!("{name}:") } else { name.to_owned() };
        if !allowed.contains(&&*key) {
            return Err(unknown());
        }
        Ok(match (name, word) {
            ("host", None) => Part::Host,
            ("path", None) => Part::Path,
            ("query", None) => Part::Query,
            ("target", None) => Part::Target,
            ("method", None) => Part::Method,
            ("segment", Some(number)) => Part::Segment(segment_number(number)?),
            ("header", Some(word)) => Part::Header(token(word, "a field")?),
            ("cookie", Some(word)) => Part::Cookie(token(word, "a cookie")?),
            ("query", Some(word)) => Part::Parameter(parameter(word)?),
            _ => return Err(unknown()),
        })
    }

    /// Any part.
    pub(crate) fn of_template(text: &str) -> Result<Part, Complaint> {
        Part::read(text, &NAMES)
    }

    /// What `subject` has of it; `None` and an empty value are the same to a class.
    pub(crate) fn value<'a>(&'a self, subject: &Subject<'a>) -> Option<Cow<'a, [u8]>> {
        match self {
            Part::Host => Some(match site(subject.host) {
                site if site.iter().any(u8::is_ascii_uppercase) => Cow::Owned(site.to_ascii_lowercase()),
                site => Cow::Borrowed(site),
            }),
            Part::Path => Some(path(subject.target)),
            Part::Query => query(subject.target).map(Cow::Borrowed),
            Part::Target => Some(Cow::Borrowed(subject.target)),
            Part::Method => Some(Cow::Borrowed(subject.method)),
            Part::Segment(number) => match path(subject.target) {
                Cow::Borrowed(path) => segment(path, *number).map(Cow::Borrowed),
                Cow::Owned(path) => segment(&path, *number).map(|segment| Cow::Owned(segment.to_vec())),
            },
            Part::Header(name) => {
                let mut lines = subject.fields.all_named(name.as_bytes());
                let first = lines.next()?;
                Some(lines.fold(Cow::Borrowed(first), |joined, line| {
                    // Several lines are one, joined by commas (RFC 9110 §5.3).
                    Cow::Owned([&joined, &b", "[..], line].concat())
                }))
            }
            Part::Cookie(name) => cookie(subject.fields, name.as_bytes()).map(Cow::Borrowed),
            Part::Parameter(name) => {
                let pairs = query(subject.target)?.split(|&byte| byte == b'&');
                pairs
                    .filter_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
                    .next()
                    .map(Cow::Borrowed)
            }
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Host => f.write_str("host"),
            Part::Path => f.write_str("path"),
            Part::Query => f.write_str("query"),
            Part::Target => f.write_str("target"),
            Part::Method => f.write_str("method"),
            Part::Segment(number) => write!(f, "segment:{number}"),
            Part::Header(name) => write!(f, "header:{name}"),
            Part::Cookie(name) => write!(f, "cookie:{name}"),
            Part::Parameter(name) => write!(f, "query:{name}"),
        }
    }
}

fn token(word: &str, of: &str) -> Result<Box<str>, Complaint> {
    match is_token(word.as_bytes()) && word.len() <= 64 {
        true => Ok(word.into()),
        false => Err(Complaint::new(format!("{word:?} is not the name of {of}"))),
    }
}

fn parameter(word: &str) -> Result<Box<str>, Complaint> {
    let letter = |byte: u8| byte.is_ascii_graphic() && !b"&=#{}".contains(&byte);
    match (1..=64).contains(&word.len()) && word.bytes().all(letter) {
        true => Ok(word.into()),
        false => Err(Complaint::new(format!("{word:?} is not the name of a query parameter"))),
    }
}

/// The number of a segment.
pub(crate) fn segment_number(text: &str) -> Result<u32, Complaint> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number @ 1..=DEEPEST) if digits => Ok(number),
        _ => Err(Complaint::new(format!("{text:?} is not a number from 1 to {DEEPEST}"))
            .help("the first segment of /a/b is 1")),
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

/// The host in lower case, without port and leading `www.`; in `buffer` where letters are changed.
pub(crate) fn host<'a>(host: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
    let site = site(host);
    if !site.iter().any(u8::is_ascii_uppercase) {
        return site;
    }
    buffer.extend(site.iter().map(u8::to_ascii_lowercase));
    buffer
}

/// The path of a target as routes match on it; empty where it has none.
pub(crate) fn path(target: &[u8]) -> Cow<'_, [u8]> {
    let end = target.iter().position(|&byte| byte == b'?').unwrap_or(target.len());
    match &target[..end] {
        path @ [b'/', ..] => route_path(path).unwrap_or_default(),
        // An asterisk, or where a tunnel leads.
        _ => Cow::Borrowed(&[]),
    }
}

fn query(target: &[u8]) -> Option<&[u8]> {
    let at = target.iter().position(|&byte| byte == b'?')?;
    Some(&target[at + 1..])
}

/// A segment of a path, the first being 1, if there are as many; not an empty one.
pub(crate) fn segment(path: &[u8], number: u32) -> Option<&[u8]> {
    path.split(|&byte| byte == b'/').nth(number as usize).filter(|segment| !segment.is_empty())
}
