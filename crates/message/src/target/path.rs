//! The decoded path that routes match on.

use std::borrow::Cow;

/// Why a path cannot be matched: servers would read it as different paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathError {
    /// A `%` that is not followed by two hexadecimal digits.
    Escape,
    /// An encoded NUL.
    Nul,
    /// A dot segment that only some servers recognise: at an encoded slash or a backslash, or before `;`.
    HiddenDots,
    /// Dot segments that lead above the root.
    AboveRoot,
    /// Another reading of the path leads to another route.
    Ambiguous,
}

impl PathError {
    /// The error as written in logs, counters and the Proxy-Status `details`.
    pub const fn text(self) -> &'static str {
        match self {
            PathError::Escape => "path-escape",
            PathError::Nul => "path-nul",
            PathError::HiddenDots => "path-hidden-dots",
            PathError::AboveRoot => "path-above-root",
            PathError::Ambiguous => "path-ambiguous",
        }
    }
}

impl std::fmt::Display for PathError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PathError::Escape => "the path has a malformed percent escape",
            PathError::Nul => "the path has an encoded NUL",
            PathError::HiddenDots => "the path has a dot segment that only some servers see",
            PathError::AboveRoot => "the path leads above the root",
            PathError::Ambiguous => {
                "servers read the path differently, and the readings have different routes"
            }
        })
    }
}

impl std::error::Error for PathError {}

/// The copy of a path, without query, that routes match on: percent escapes decoded once, dot segments
/// removed (RFC 3986 §5.2.4), runs of slashes merged. `%2F` and `%25` stay encoded, so that an encoded slash
/// is never a separator and nothing is decoded twice. Borrowed if received in this form.
pub fn route_path(path: &[u8]) -> Result<Cow<'_, [u8]>, PathError> {
    if is_plain(path) {
        return Ok(Cow::Borrowed(path));
    }
    let decoded = decode(path)?;
    let mut out: Vec<u8> = Vec::with_capacity(decoded.len() + 1);
    let mut segments = decoded.split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        if hides_dots(segment) {
            return Err(PathError::HiddenDots);
        }
        match segment {
            b"." | b"" => {
                if last {
                    out.push(b'/');
                }
            }
            b".." => {
                let parent = memchr::memrchr(b'/', &out).ok_or(PathError::AboveRoot)?;
                out.truncate(parent);
                if last {
                    out.push(b'/');
                }
            }
            _ => {
                out.push(b'/');
                out.extend_from_slice(segment);
            }
        }
    }
    Ok(Cow::Owned(out))
}

/// A decoded path without dot segments and with runs of slashes merged. Dot segments that lead above the root
/// end there.
pub(super) fn normalised(path: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(path.len());
    let mut segments = path.split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            b"." | b"" => {}
            b".." => out.truncate(memchr::memrchr(b'/', &out).unwrap_or(0)),
            _ => {
                out.push(b'/');
                out.extend_from_slice(segment);
                continue;
            }
        }
        if last {
            out.push(b'/');
        }
    }
    out
}

/// A path as read by a server that keeps runs of slashes: decoded once, with empty segments treated like
/// others.
pub(super) fn with_slashes(received: &[u8]) -> Vec<u8> {
    let Ok(decoded) = decode(received) else { return Vec::new() };
    let mut out: Vec<&[u8]> = Vec::new();
    for segment in decoded.split(|&byte| byte == b'/') {
        match segment {
            b"." => {}
            b".." => _ = if out.len() > 1 { out.pop() } else { None },
            _ => out.push(segment),
        }
    }
    if matches!(decoded.rsplit(|&byte| byte == b'/').next(), Some(b"." | b"..")) {
        out.push(b"");
    }
    out.join(&b'/')
}

/// Whether there is nothing to decode or remove. A dot at the start of a segment is left to the slow path.
/// Both folds check every byte, many at a time: hardly any path has one of these.
fn is_plain(path: &[u8]) -> bool {
    let escaped = path.iter().fold(false, |found, &byte| found | (byte == b'%') | (byte == b'\\'));
    let pairs = path.iter().zip(path.get(1..).unwrap_or_default());
    let dotted =
        pairs.fold(false, |found, (&one, &next)| found | ((one == b'/') & ((next == b'/') | (next == b'.'))));
    path.first() == Some(&b'/') && !escaped && !dotted
}

fn decode(path: &[u8]) -> Result<Vec<u8>, PathError> {
    let mut out = Vec::with_capacity(path.len());
    let mut bytes = path.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit =
            || bytes.next().and_then(|&digit| char::from(digit).to_digit(16)).ok_or(PathError::Escape);
        match (digit()? * 16 + digit()?) as u8 {
            0 => return Err(PathError::Nul),
            b'/' => out.extend_from_slice(b"%2F"),
            b'%' => out.extend_from_slice(b"%25"),
            byte => out.push(byte),
        }
    }
    Ok(out)
}

/// Whether a server that treats encoded slashes or backslashes as separators, or drops everything after `;`,
/// would find a dot segment in this segment.
fn hides_dots(segment: &[u8]) -> bool {
    if segment == b"." || segment == b".." {
        return false;
    }
    let mut rest = segment;
    loop {
        let encoded = rest.windows(3).position(|window| window == b"%2F");
        let backslash = memchr::memchr(b'\\', rest);
        let end = encoded.unwrap_or(rest.len()).min(backslash.unwrap_or(rest.len()));
        let part = rest[..end].split(|&byte| byte == b';').next().unwrap_or_default();
        if part == b"." || part == b".." {
            return true;
        }
        match rest.get(end) {
            None => return false,
            Some(b'\\') => rest = &rest[end + 1..],
            Some(_) => rest = &rest[end + 3..],
        }
    }
}
