//! URI references in Location and Content-Location that point to this origin (RFC 3986 §5).

use super::{Authority, Scheme, Target, split_query};
use crate::{Fields, Name, RequestHead};

/// Path and query of `reference` resolved against `base`, without fragment and dot segments. `None` if it
/// points to another origin. If the base's `scheme` is not known, both http and https count as its own.
pub fn resolve(base: &Target<'_>, scheme: Option<Scheme>, reference: &[u8]) -> Option<Vec<u8>> {
    let reference = reference.split(|&byte| byte == b'#').next().unwrap_or_default();
    let scheme = base.scheme.or(scheme);
    let local = if let Some((other, rest)) = Scheme::strip(reference) {
        if scheme.is_some_and(|scheme| scheme != other) {
            return None;
        }
        same_host(base, other, rest)?
    } else if let Some(rest) = reference.strip_prefix(b"//") {
        same_host(base, scheme.unwrap_or(Scheme::Http), rest)?
    } else if has_scheme(reference) {
        return None;
    } else {
        reference
    };

    let absolute = local.len() < reference.len() || local.first() == Some(&b'/');
    let (path, query) = split_query(local);
    let mut merged = Vec::new();
    let query = match (path, absolute) {
        (b"", true) => {
            merged.push(b'/');
            query
        }
        (b"", false) => {
            merged.extend_from_slice(base.path());
            query.or(base.query())
        }
        (path, true) => {
            merged.extend_from_slice(path);
            query
        }
        (path, false) => {
            let directory = memchr::memrchr(b'/', base.path()).map_or(0, |at| at + 1);
            merged.extend_from_slice(&base.path()[..directory]);
            merged.extend_from_slice(path);
            query
        }
    };
    let mut out = without_dots(&merged);
    if let Some(query) = query {
        out.push(b'?');
        out.extend_from_slice(query);
    }
    Some(out)
}

/// The rest after the authority, if that is the base's.
fn same_host<'a>(base: &Target<'_>, scheme: Scheme, rest: &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let host = Authority::parse(&rest[..end])?.normalised(scheme);
    (base.authority?.normalised(scheme) == host).then_some(&rest[end..])
}

/// Whether a reference begins with a scheme (RFC 3986 §3.1).
fn has_scheme(reference: &[u8]) -> bool {
    let end = reference.iter().position(|byte| matches!(byte, b':' | b'/' | b'?')).unwrap_or(reference.len());
    reference.get(end) == Some(&b':')
        && reference[0].is_ascii_alphabetic()
        && reference[..end].iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
}

/// RFC 3986 §5.2.4, for a path that begins with `/`; segments that lead above the root end there.
fn without_dots(path: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(path.len());
    let mut segments = path.split(|&byte| byte == b'/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            b"." | b".." => {
                if segment == b".." {
                    out.truncate(memchr::memrchr(b'/', &out).unwrap_or(0));
                }
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
    out
}

/// Path and query of the resources that an unsafe request may have changed besides its target: Location and
/// Content-Location of the response, if they point to the same origin (RFC 9111 §4.4) and not to the target
/// itself.
pub fn invalidated(target: &Target<'_>, scheme: Scheme, response: Fields<'_>) -> Vec<Vec<u8>> {
    let mut others: Vec<Vec<u8>> = [Name::Location, Name::ContentLocation]
        .into_iter()
        .filter_map(|name| resolve(target, Some(scheme), response.get(name)?))
        .filter(|other| other != target.path_and_query)
        .collect();
    others.dedup();
    others
}

/// Whether Content-Location declares the response a representation of the request's target (RFC 9110 §8.7).
pub fn content_location_is_target(request: &RequestHead<'_>, response: Fields<'_>) -> bool {
    let (Some(reference), Ok(target)) = (response.get(Name::ContentLocation), Target::of(request)) else {
        return false;
    };
    resolve(&target, None, reference).is_some_and(|resolved| resolved == target.path_and_query)
}
