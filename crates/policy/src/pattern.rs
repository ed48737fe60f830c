//! Patterns of routes: hosts, paths and methods.

use std::borrow::Cow;
use std::fmt;

/// The hosts of a route. Letter case and ports are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// Any host, or none.
    Any,
    /// This one, in lower case.
    Exact(Box<str>),
    /// Any host with this suffix, which begins with a dot and is in lower case: `*.example.com`.
    Under(Box<str>),
}

/// `host` without its port and the final dot of the root, for comparison with patterns. Letter case is kept.
pub fn bare_host(host: &[u8]) -> &[u8] {
    let bare = match host {
        [b'[', ..] => host.iter().position(|&byte| byte == b']').map_or(host, |end| &host[..=end]),
        _ => host.iter().position(|&byte| byte == b':').map_or(host, |colon| &host[..colon]),
    };
    bare.strip_suffix(b".").unwrap_or(bare)
}

/// A host in lower case; borrowed if it is so already.
pub(crate) fn lower_case(host: &[u8]) -> Cow<'_, [u8]> {
    // Without branches, so that the compiler compares many bytes at once.
    let is_upper = host.iter().fold(false, |found, byte| found | byte.is_ascii_uppercase());
    if is_upper { Cow::Owned(host.to_ascii_lowercase()) } else { Cow::Borrowed(host) }
}

impl HostPattern {
    /// Whether this matches every host that `other` matches.
    pub fn covers(&self, other: &HostPattern) -> bool {
        match (self, other) {
            (HostPattern::Any, _) => true,
            (_, HostPattern::Any) => false,
            (HostPattern::Exact(a), HostPattern::Exact(b)) => a == b,
            (HostPattern::Exact(_), HostPattern::Under(_)) => false,
            (HostPattern::Under(suffix), HostPattern::Exact(host) | HostPattern::Under(host)) => {
                host.ends_with(&**suffix)
            }
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostPattern::Any => f.write_str("*"),
            HostPattern::Exact(host) => f.write_str(host),
            HostPattern::Under(suffix) => write!(f, "*{suffix}"),
        }
    }
}

/// The paths of a route. Paths are compared decoded and without dot segments; letter case matters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathPattern {
    /// This path alone: `=/feed`.
    Exact(Box<[u8]>),
    /// This path and all below it: `/blog`. Does not end in a slash, and is empty for all paths.
    Below(Box<[u8]>),
    /// All paths with this prefix, which ends in a slash: `/blog/`.
    Prefix(Box<[u8]>),
    /// All paths that fit. Each star stands for any run of characters, including slashes. Holds the text
    /// before the first star, between stars, and after the last.
    Glob(Vec<Box<[u8]>>),
}

impl PathPattern {
    /// Whether the pattern matches `path`.
    pub fn matches(&self, path: &[u8]) -> bool {
        match self {
            PathPattern::Exact(exact) => path == &**exact,
            PathPattern::Prefix(prefix) => path.starts_with(prefix),
            PathPattern::Below(top) => path
                .strip_prefix(&**top)
                .is_some_and(|rest| top.is_empty() || matches!(rest, [] | [b'/', ..])),
            PathPattern::Glob(parts) => glob(parts, path),
        }
    }

    /// The prefix of every path that it matches.
    pub fn literal_start(&self) -> &[u8] {
        match self {
            PathPattern::Exact(start) | PathPattern::Below(start) | PathPattern::Prefix(start) => start,
            PathPattern::Glob(parts) => parts.first().map_or(&[], |first| first),
        }
    }

    /// Whether this certainly matches every path that `other` matches.
    pub fn covers(&self, other: &PathPattern) -> bool {
        if self == other {
            return true;
        }
        let start = other.literal_start();
        match (self, other) {
            (_, PathPattern::Exact(path)) => self.matches(path),
            (PathPattern::Below(top), PathPattern::Glob(_)) => {
                top.is_empty() || (start.starts_with(top) && start.get(top.len()) == Some(&b'/'))
            }
            (PathPattern::Below(_), PathPattern::Below(top)) => {
                top.is_empty() == self.literal_start().is_empty() && self.matches(top)
                    || self.literal_start().is_empty()
            }
            (PathPattern::Below(_), PathPattern::Prefix(_)) => self.matches(start),
            (PathPattern::Prefix(prefix), _) => start.starts_with(prefix),
            // "/a*" covers every path with the prefix "/a". Other globs are not analysed.
            (PathPattern::Glob(parts), _) => {
                matches!(&parts[..], [first, last] if last.is_empty() && start.starts_with(first))
            }
            (PathPattern::Exact(_), _) => false,
        }
    }
}

/// Matches the parts between stars in order, each as early as possible. No backtracking is needed.
fn glob(parts: &[Box<[u8]>], path: &[u8]) -> bool {
    let [first, middle @ .., last] = parts else { return false };
    let Some(rest) = path.strip_prefix(&**first) else { return false };
    let Some(mut rest) = rest.strip_suffix(&**last) else { return false };
    for part in middle {
        match find(rest, part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    match needle {
        [] => Some(0),
        _ => haystack.windows(needle.len()).position(|window| window == needle),
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            PathPattern::Exact(path) => write!(f, "={}", text(path)),
            PathPattern::Below(top) if top.is_empty() => f.write_str("/"),
            PathPattern::Below(path) | PathPattern::Prefix(path) => f.write_str(&text(path)),
            PathPattern::Glob(parts) => f.write_str(&text(&parts.join(&b'*'))),
        }
    }
}

/// A method (RFC 9110 §9), which is case-sensitive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MethodName(Box<str>);

impl MethodName {
    /// The method called `name`, which MUST be a token (RFC 9110 §5.6.2).
    pub fn new(name: &str) -> MethodName {
        debug_assert!(sandarac_message::is_token(name.as_bytes()));
        MethodName(name.into())
    }

    /// The method.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Box<[u8]> {
        text.as_bytes().into()
    }

    #[test]
    fn paths_match_whole_segments_or_stars() {
        let below = PathPattern::Below(bytes("/blog"));
        let prefix = PathPattern::Prefix(bytes("/blog/"));
        let glob = PathPattern::Glob(["/a", "b", ".php"].map(bytes).into());
        for (pattern, path, matches) in [
            (&below, "/blog", true),
            (&below, "/blog/x", true),
            (&below, "/blogs", false),
            (&prefix, "/blog", false),
            (&prefix, "/blog/", true),
            (&glob, "/ab.php", true),
            (&glob, "/a/x/b/y.php", true),
            (&glob, "/a.php", false),
            // The parts do not overlap.
            (&PathPattern::Glob(["/ab", "b/"].map(bytes).into()), "/ab/", false),
        ] {
            assert_eq!(pattern.matches(path.as_bytes()), matches, "{pattern} {path}");
        }
    }

    #[test]
    fn hosts_are_bare_without_port_and_root() {
        for (host, bare) in [("a.example.:80", "a.example"), ("[::1]:80", "[::1]"), ("a", "a"), ("", "")] {
            assert_eq!(bare_host(host.as_bytes()), bare.as_bytes());
        }
    }
}
