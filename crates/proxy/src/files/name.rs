//! From the path of a request to the name of a file.

use crate::report::file_refusal::FileRefusal;
use std::borrow::Cow;

/// The only hidden name that is served (RFC 8615).
const WELL_KNOWN: &[u8] = b".well-known";

/// The path of a request as a name below the root. `path` is a
/// [`route_path`](sandarac_message::target::route_path), which has neither dot segments nor NUL, and in which
/// only slashes and percent signs are still encoded.
pub(super) fn file_path(path: &[u8]) -> Result<Cow<'_, [u8]>, FileRefusal> {
    let name = match memchr::memchr(b'%', path) {
        None => Cow::Borrowed(path),
        Some(_) => Cow::Owned(decoded(path)?),
    };
    if is_hidden(&name) { Err(FileRefusal::Hidden) } else { Ok(name) }
}

/// Whether a part of the name begins with a dot.
pub(crate) fn is_hidden(name: &[u8]) -> bool {
    name.split(|&byte| byte == b'/').any(|part| part.first() == Some(&b'.') && part != WELL_KNOWN)
}

/// Whether the name is that of a program of PHP, in any letter case. Where such files lie beside others,
/// their source has passwords in it, and a site that was moved here from another server relies on a rule of
/// that server to keep it.
pub(super) fn is_script(name: &[u8]) -> bool {
    let Some(dot) = memchr::memrchr(b'.', name) else { return false };
    let ending = name[dot + 1..].to_ascii_lowercase();
    match ending.strip_prefix(b"ph") {
        Some(b"tml" | b"t" | b"ar" | b"ps") => true,
        Some([b'p', digits @ ..]) => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// No name of a file has a slash in it.
fn decoded(path: &[u8]) -> Result<Vec<u8>, FileRefusal> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = rest[at..].strip_prefix(b"%25").ok_or(FileRefusal::NotFound)?;
        out.push(b'%');
    }
    out.extend_from_slice(rest);
    Ok(out)
}

/// The parts of a name. Empty ones, from slashes in a row, are none.
pub(super) fn parts(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    name.split(|&byte| byte == b'/').filter(|part| !part.is_empty())
}

/// `name` relative to its root; `.` for the root itself.
pub(super) fn relative(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    for part in parts(name) {
        if !out.is_empty() {
            out.push(b'/');
        }
        out.extend_from_slice(part);
    }
    if out.is_empty() { b".".to_vec() } else { out }
}

/// Appends a part of a path, with every byte encoded that has a meaning somewhere in a URL.
pub(super) fn encode(part: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in part {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(byte);
        } else {
            out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

/// The reference to the directory of a request's `path`, which lacks its last slash. One slash begins it, so
/// that it leads to no other host (RFC 3986 §4.2).
pub(super) fn with_slash(name: &[u8], query: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len() + 2);
    for part in parts(name) {
        out.push(b'/');
        encode(part, &mut out);
    }
    out.push(b'/');
    if let Some(query) = query {
        out.push(b'?');
        out.extend_from_slice(query);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_message::target::route_path;

    #[track_caller]
    fn is(received: &str, expected: Result<&str, FileRefusal>) {
        let path = route_path(received.as_bytes()).unwrap();
        let name = file_path(&path).map(|name| String::from_utf8_lossy(&name).into_owned());
        assert_eq!(name.as_deref().map_err(|refusal| *refusal), expected, "{received}");
    }

    #[test]
    fn names_are_decoded_once_and_have_no_slashes_in_them() {
        is("/a/b.html", Ok("/a/b.html"));
        is("/a%20b", Ok("/a b"));
        is("/100%25.txt", Ok("/100%.txt"));
        is("/%2561", Ok("/%61"));
        is("/%252e%252e/x", Ok("/%2e%2e/x"));
        is("/a%2fb", Err(FileRefusal::NotFound));
        is("/a%252fb", Ok("/a%2fb"));
        is("/a\\b", Ok("/a\\b"));
        is("/a.", Ok("/a."));
        is("//a//b/", Ok("/a/b/"));
    }

    #[test]
    fn hidden_names_are_refused_except_well_known() {
        is("/.git/config", Err(FileRefusal::Hidden));
        is("/a/.env", Err(FileRefusal::Hidden));
        is("/%2ehtaccess", Err(FileRefusal::Hidden));
        is("/...", Err(FileRefusal::Hidden));
        is("/.well-known/security.txt", Ok("/.well-known/security.txt"));
        is("/.well-known/.x", Err(FileRefusal::Hidden));
        is("/.well-knownx", Err(FileRefusal::Hidden));
    }

    #[test]
    fn a_redirect_to_a_directory_stays_on_its_host() {
        let to = |name: &[u8], query| String::from_utf8(with_slash(name, query)).unwrap();
        assert_eq!(to(b"//evil.example", None), "/evil.example/");
        assert_eq!(to(b"/\\evil.example", None), "/%5Cevil.example/");
        assert_eq!(to(b"/a b/\xff", Some(b"x=1")), "/a%20b/%FF/?x=1");
    }
}
