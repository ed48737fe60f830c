//! The common and the combined format, with or without a preceding virtual host.

use std::net::IpAddr;

use super::escape::unescape;
use super::fields::LineFields;
use super::malformed::Malformed;
use super::time;

/// Parses a line such as `host ident user [time] "request" status bytes "referer" "agent"`, with anything
/// after it.
pub(super) fn read(line: &[u8]) -> Result<LineFields, Malformed> {
    let (before, time, rest) = at_time(line)?;
    let (request, rest) = quoted(rest).ok_or(Malformed::Format)?;
    let mut words = rest.trim_ascii_start().splitn(3, |&byte| byte == b' ');
    let status = words.next().unwrap_or_default();
    if status.len() != 3 || !status.iter().all(u8::is_ascii_digit) || words.next().is_none() {
        return Err(Malformed::Format);
    }
    let fields = words.next().unwrap_or_default();
    let (referer, user_agent) = match quoted(fields) {
        Some((referer, rest)) => (Some(referer), quoted(rest).map(|(agent, _)| agent)),
        None => (None, None),
    };
    let field = |value: Option<&[u8]>| value.filter(|value| !matches!(*value, b"" | b"-")).map(unescape);
    let (method, target) = request_line(request).ok_or(Malformed::Request)?;
    Ok(LineFields {
        is_fragment: false,
        time,
        whole_second: true,
        method: method.to_vec(),
        host: virtual_host(before).map(<[u8]>::to_vec),
        target: unescape(target),
        referer: field(referer),
        user_agent: field(user_agent),
    })
}

/// The text before the time, the time, and the text after it. The name of a user may contain anything, even
/// `[`.
fn at_time(line: &[u8]) -> Result<(&[u8], sandarac_message::Timestamp, &[u8]), Malformed> {
    let mut why = Malformed::Format;
    for at in memchr::memmem::find_iter(line, b" [") {
        let (before, rest) = (&line[..at], &line[at + 2..]);
        let Some(end) = memchr::memchr(b']', rest) else { break };
        match time::ncsa(&rest[..end]) {
            Some(time) => return Ok((before, time, &rest[end + 1..])),
            None => why = Malformed::Time,
        }
    }
    Err(why)
}

/// The quoted text at the beginning, still escaped, and the rest.
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start().strip_prefix(b"\"")?;
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', &text[from..])?;
        match text[at] {
            b'"' => return Some((&text[..at], &text[at + 1..])),
            // An escaped quote is not the end.
            _ => from = (at + 2).min(text.len()),
        }
    }
}

/// Method and target of a request line with a version.
fn request_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memchr::memchr(b' ', line)?;
    let last = memchr::memrchr(b' ', line).filter(|&last| last > space)?;
    line[last + 1..].starts_with(b"HTTP/").then(|| (&line[..space], &line[space + 1..last]))
}

/// The virtual host, if one precedes client, identity and user. The user may contain spaces.
fn virtual_host(before: &[u8]) -> Option<&[u8]> {
    let mut words = before.split(|&byte| byte == b' ');
    let (first, second) = (words.next()?, words.next()?);
    if words.count() < 2 {
        return None;
    }
    let is_address = |word: &[u8]| std::str::from_utf8(word).is_ok_and(|word| word.parse::<IpAddr>().is_ok());
    let has_port = || {
        let port = first.rsplit(|&byte| byte == b':').next().unwrap_or_default();
        port.len() < first.len() && !port.is_empty() && port.iter().all(u8::is_ascii_digit)
    };
    // An identity is never an address, and a client's address has no port.
    (is_address(second) || (has_port() && !is_address(first))).then_some(first)
}
