//! Other readings of a path.
//!
//! Routes match on [`route_path`](super::route_path). A server behind may read the same bytes differently: it
//! may treat an encoded slash or a backslash as a separator, drop a suffix after `;`, a trailing dot or a
//! space, keep a double slash, or decode once more. If that leads to another route, the rules of one of the
//! two would be evaded.

use super::path::normalised;

/// A way in which a server may read a path that was decoded once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fold {
    /// Escapes of escapes are decoded: `%2561` is `a`.
    Decoded,
    /// `%2F` is a slash (WSGI, CGI, Go's mux).
    EncodedSlash,
    /// A backslash is a slash (IIS, servers on Windows).
    Backslash,
    /// Everything after `;` in a segment is a parameter (servlets).
    Parameters,
    /// Dots and spaces at the end of a segment are dropped (file systems of Windows).
    Trailing,
}

/// All folds, ordered so that each works on the result of the others.
const FOLDS: [Fold; 5] =
    [Fold::Decoded, Fold::EncodedSlash, Fold::Backslash, Fold::Parameters, Fold::Trailing];

/// The readings of a path, without query, that differ from its `route_path`: with runs of slashes kept, with
/// each fold alone, and with all of them. Nearly every path has none, and costs one scan of its bytes.
pub fn other_readings(received: &[u8], route_path: &[u8]) -> Vec<Vec<u8>> {
    match suspicion(received) {
        Suspicion::None => return Vec::new(),
        // Whatever follows the script of a PHP application is its own to read (CGI's PATH_INFO, RFC 3875 §4.1.5).
        Suspicion::Script => return script(route_path).map(<[u8]>::to_vec).into_iter().collect(),
        Suspicion::Any => {}
    }
    let alone = FOLDS.iter().map(|&fold| normalised(&folded(route_path, fold)));
    let all = FOLDS.iter().fold(route_path.to_vec(), |path, &fold| folded(&path, fold));
    let scripts = [script(route_path), script(&all)].into_iter().flatten().map(<[u8]>::to_vec);
    let mut readings: Vec<Vec<u8>> = alone
        .chain([normalised(&all), super::path::with_slashes(received)])
        .chain(scripts.collect::<Vec<_>>())
        .collect();
    readings.sort_unstable();
    readings.dedup();
    readings.retain(|reading| reading != route_path);
    readings
}

/// The path of the PHP script in a path that goes on after it.
fn script(path: &[u8]) -> Option<&[u8]> {
    memchr::memchr_iter(b'/', path).map(|at| &path[..at]).find(|before| before.ends_with(b".php"))
}

/// The parts of a path that servers may read differently.
enum Suspicion {
    None,
    /// A segment that may be a script, and more after it.
    Script,
    Any,
}

fn suspicion(path: &[u8]) -> Suspicion {
    let special = |byte: u8| (byte == b'%') | (byte == b'\\') | (byte == b';');
    let drops = |byte: u8| (byte == b'.') | (byte == b' ');
    let found = path.iter().fold(false, |found, &byte| found | special(byte));
    let pairs = path.iter().zip(path.get(1..).unwrap_or_default());
    const ENDS: u8 = 1;
    const SCRIPT: u8 = 2;
    let ended = pairs.fold(0, |found, (&one, &next)| {
        let ends = (u8::from((one == b'/') | drops(one)) * ENDS) | (u8::from(one == b'p') * SCRIPT);
        found | if next == b'/' { ends } else { 0 }
    });
    match ended {
        _ if found || ended & ENDS != 0 || path.last().is_some_and(|&byte| drops(byte)) => Suspicion::Any,
        0 => Suspicion::None,
        _ => Suspicion::Script,
    }
}

fn folded(path: &[u8], fold: Fold) -> Vec<u8> {
    match fold {
        Fold::Decoded => decoded_again(path),
        Fold::EncodedSlash => replaced(path, b"%2F", b'/'),
        Fold::Backslash => path.iter().map(|&byte| if byte == b'\\' { b'/' } else { byte }).collect(),
        Fold::Parameters => {
            by_segment(path, |segment| memchr::memchr(b';', segment).map_or(segment, |at| &segment[..at]))
        }
        Fold::Trailing => by_segment(path, |segment| {
            let kept = segment.iter().rposition(|byte| !matches!(byte, b'.' | b' '));
            // Dot segments are kept.
            if matches!(segment, b"." | b"..") { segment } else { &segment[..kept.map_or(0, |at| at + 1)] }
        }),
    }
}

fn by_segment<'a>(path: &'a [u8], keep: impl Fn(&'a [u8]) -> &'a [u8]) -> Vec<u8> {
    path.split(|&byte| byte == b'/').map(keep).collect::<Vec<_>>().join(&b'/')
}

fn replaced(path: &[u8], escape: &[u8; 3], by: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&first, after)) = rest.split_first() {
        if rest.first_chunk() == Some(escape) {
            out.push(by);
            rest = &rest[escape.len()..];
        } else {
            out.push(first);
            rest = after;
        }
    }
    out
}

/// Decodes the remaining escapes once more; invalid ones stay as they are.
fn decoded_again(path: &[u8]) -> Vec<u8> {
    let path = replaced(path, b"%25", b'%');
    let mut out = Vec::with_capacity(path.len());
    let mut rest = &path[..];
    while let Some((&first, after)) = rest.split_first() {
        let digit = |at: usize| rest.get(at).and_then(|&digit| char::from(digit).to_digit(16));
        match (first, digit(1), digit(2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                rest = &rest[3..];
            }
            _ => {
                out.push(first);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::route_path;

    #[track_caller]
    fn reads(path: &str, expected: &[&str]) {
        let plain = route_path(path.as_bytes()).unwrap();
        let mut readings: Vec<String> = other_readings(path.as_bytes(), &plain)
            .iter()
            .map(|reading| String::from_utf8_lossy(reading).into_owned())
            .collect();
        readings.sort();
        assert_eq!(readings, expected, "{path}");
    }

    #[test]
    fn plain_paths_have_one_reading() {
        for path in ["/", "/a/b.html", "/a.b/c", "/a-b_c~d", "/%41", "/a%20b/c", "/.well-known/x"] {
            reads(path, &[]);
        }
    }

    #[test]
    fn each_fold_alone_and_all_together() {
        reads("/admin%2fusers", &["/admin/users"]);
        reads("/admin%5cusers", &["/admin/users"]);
        reads("/admin\\users", &["/admin/users"]);
        reads("/admin;x/users", &["/admin/users"]);
        reads("/admin./users", &["/admin/users"]);
        reads("/admin%20/users", &["/admin/users"]);
        reads("/admin.", &["/admin"]);
        reads("/a//b", &["/a//b"]);
        reads("/%2561dmin", &["/admin"]);
        reads("/admin%252fusers", &["/admin/users"]);
        reads("/a;b%2fc", &["/a", "/a/c", "/a;b/c"]);
        reads("/100%25", &["/100%"]);
        reads("/...", &["/"]);
    }

    #[test]
    fn what_follows_a_php_script_is_its_own_to_read() {
        reads("/xmlrpc.php/", &["/xmlrpc.php"]);
        reads("/a/login.php/x.php/y", &["/a/login.php"]);
        reads("/login.php;x/y", &["/login.php", "/login.php/y"]);
        for path in ["/xmlrpc.php", "/x.phps/y", "/php/y", "/.php"] {
            reads(path, &[]);
        }
    }
}
