//! Patterns of routes, as settings: hosts, paths and methods.

use sandarac_message::Method;
use sandarac_policy::{HostPattern, MethodName, PathPattern, bare_host};

use crate::report::Complaint;
use crate::setting::Kind;
use crate::value::Text;

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
            return Err(not().help(format!("ports are ignored; did you mean \"{bare}\"?")));
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
            return Err(not().help(format!("queries are ignored; did you mean \"{before}\"?")));
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
                return Err(not().help("a path with a star is not a single path"));
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
        Ok(MethodName::new(text))
    }

    fn text(&self) -> String {
        self.as_str().to_owned()
    }
}
