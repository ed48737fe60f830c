//! Patterns of routes: hosts, paths and methods.

use std::fmt;

use sandarac_message::Method;

use crate::report::Complaint;
use crate::setting::Kind;
use crate::value::Text;

/// Which hosts a route is for. Letter case does not matter, and ports are not looked at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// Any, also none.
    Any,
    /// This one, in lower case.
    Exact(Box<str>),
    /// Any that ends in this suffix, which begins with a dot and is in lower case: `*.example.com`.
    Under(Box<str>),
}

/// `host` without a port and without the dot of the root, as patterns are compared with; letter case is kept.
pub(crate) fn bare_host(host: &[u8]) -> &[u8] {
    let bare = match host {
        [b'[', ..] => host.iter().position(|&byte| byte == b']').map_or(host, |end| &host[..=end]),
        _ => host.iter().position(|&byte| byte == b':').map_or(host, |colon| &host[..colon]),
    };
    bare.strip_suffix(b".").unwrap_or(bare)
}

impl HostPattern {
    /// Whether every host that `other` matches is matched by this one too.
    pub(crate) fn covers(&self, other: &HostPattern) -> bool {
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

impl Text for HostPattern {
    fn form() -> Kind {
        Kind::Text { name: "host", form: "a host", examples: &["example.com", "*.example.com", "*"] }
    }

    fn from_text(text: &str) -> Result<HostPattern, Complaint> {
        let host = text.trim().to_ascii_lowercase();
        let not = || Complaint::new(format!("{text:?} is not {}", HostPattern::form().words()));
        if host == "*" {
            return Ok(HostPattern::Any);
        }
        if host.contains("://") {
            return Err(not().help("the host alone, without http://"));
        }
        let bare = std::str::from_utf8(bare_host(host.as_bytes())).unwrap_or_default();
        if bare.len() + 1 < host.len() {
            return Err(not().help(format!("ports are not looked at; did you mean \"{bare}\"?")));
        }
        let label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        let named = bare.strip_prefix("*.").unwrap_or(bare).split('.').all(label);
        let numbered =
            bare.starts_with('[') && bare.trim_matches(['[', ']']).parse::<core::net::Ipv6Addr>().is_ok();
        match bare.strip_prefix('*') {
            Some(suffix) if named => Ok(HostPattern::Under(suffix.into())),
            None if named || numbered => Ok(HostPattern::Exact(bare.into())),
            Some(rest) if !rest.starts_with('.') && !rest.contains('*') => {
                Err(not().help(format!("a star stands for whole labels: \"*.{rest}\"")))
            }
            _ if !host.is_ascii() => {
                Err(not().help("write international names as browsers send them: xn--…"))
            }
            _ => Err(not()),
        }
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// Which paths a route is for. Paths are compared decoded and free of dot segments; letter case matters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathPattern {
    /// This one alone: `=/feed`.
    Exact(Box<[u8]>),
    /// This one and all below it. Does not end in a slash, and is empty for all paths: `/blog`.
    Below(Box<[u8]>),
    /// All that begin with this, which ends in a slash: `/blog/`.
    Prefix(Box<[u8]>),
    /// All that fit, where each star stands for any run of characters, slashes too: the text before the first star,
    /// between stars, and after the last.
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

    /// The bytes that every path it matches begins with.
    pub(crate) fn literal_start(&self) -> &[u8] {
        match self {
            PathPattern::Exact(start) | PathPattern::Below(start) | PathPattern::Prefix(start) => start,
            PathPattern::Glob(parts) => parts.first().map_or(&[], |first| first),
        }
    }

    /// Whether every path that `other` matches is surely matched by this one too.
    pub(crate) fn covers(&self, other: &PathPattern) -> bool {
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
            // "/a*" covers what begins with "/a"; other globs are not worth the thought.
            (PathPattern::Glob(parts), _) => {
                matches!(&parts[..], [first, last] if last.is_empty() && start.starts_with(first))
            }
            (PathPattern::Exact(_), _) => false,
        }
    }
}

/// Matches the parts between stars in order, each as early as it can: no backtracking is needed.
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

impl Text for PathPattern {
    fn form() -> Kind {
        Kind::Text { name: "path", form: "a path", examples: &["/blog", "/static/", "/*.php", "=/feed"] }
    }

    fn from_text(text: &str) -> Result<PathPattern, Complaint> {
        let not = || Complaint::new(format!("{text:?} is not {}", PathPattern::form().words()));
        let (exact, path) = text.strip_prefix('=').map_or((false, text), |path| (true, path));
        if !path.starts_with('/') {
            let equals = if exact { "=" } else { "" };
            return Err(not().help(format!("a path begins with a slash: \"{equals}/{path}\"")));
        }
        if let Some((before, _)) = path.split_once('?') {
            return Err(not().help(format!("queries are not looked at; did you mean \"{before}\"?")));
        }
        if path.contains("//") || path.split('/').any(|segment| matches!(segment, "." | "..")) {
            return Err(not().help("paths are compared after dot segments and empty ones are resolved"));
        }
        let escaped = |at: usize| {
            path.as_bytes().get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
        };
        if path.match_indices('%').any(|(at, _)| escaped(at)) {
            return Err(not().help("paths are compared decoded: write the characters themselves"));
        }
        if path.len() > 4096 || path.chars().any(char::is_control) {
            return Err(not());
        }
        let bytes = |text: &str| Box::from(text.as_bytes());
        Ok(match path {
            _ if exact && path.contains('*') => {
                return Err(not().help("a path with a star is no single path"));
            }
            _ if exact => PathPattern::Exact(bytes(path)),
            "/" => PathPattern::Below(bytes("")),
            _ if path.contains('*') => PathPattern::Glob(path.split('*').map(bytes).collect()),
            _ if path.ends_with('/') => PathPattern::Prefix(bytes(path)),
            _ => PathPattern::Below(bytes(path)),
        })
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// A method (RFC 9110 §9), which is case-sensitive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MethodName(Box<str>);

impl MethodName {
    /// The method.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Text for MethodName {
    fn form() -> Kind {
        Kind::Text { name: "method", form: "a method", examples: &["GET", "POST"] }
    }

    fn from_text(text: &str) -> Result<MethodName, Complaint> {
        let not = || Complaint::new(format!("{text:?} is not {}", MethodName::form().words()));
        if !sandarac_message::is_token(text.as_bytes()) || text.len() > 64 {
            return Err(not());
        }
        let upper = text.to_ascii_uppercase();
        if upper != text && Method::of(upper.as_bytes()) != Method::Other {
            return Err(not().help(format!("methods are case-sensitive: \"{upper}\"")));
        }
        Ok(MethodName(text.into()))
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}
