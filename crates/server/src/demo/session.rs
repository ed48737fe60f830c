//! Sessions of the sample site: a cookie holds a name and a keyed digest of it; the site keeps nothing.

use std::hash::{BuildHasher, RandomState};

use sandarac_message::members;

/// The longest name, in bytes.
const MAX_NAME: usize = 24;
const DIGEST_LEN: usize = 32;

/// Makes and checks session cookies. Cookies of another process are invalid.
#[derive(Debug)]
pub(super) struct Sessions {
    key: [u8; 32],
}

impl Sessions {
    pub(super) fn new() -> Sessions {
        // The standard library seeds its hasher from the system's random source: enough for a sample's login.
        let mut key = [0; 32];
        for (part, chunk) in key.chunks_exact_mut(8).enumerate() {
            chunk.copy_from_slice(&RandomState::new().hash_one(part).to_le_bytes());
        }
        Sessions { key }
    }

    fn digest(&self, name: &str) -> String {
        blake3::keyed_hash(&self.key, name.as_bytes()).to_hex()[..DIGEST_LEN].to_owned()
    }

    /// The `Set-Cookie` value that signs `name` in; `None` if the name is not acceptable.
    pub(super) fn open(&self, name: &str) -> Option<String> {
        let acceptable = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(acceptable) {
            return None;
        }
        Some(format!("session={name}.{}; Path=/; HttpOnly; SameSite=Lax", self.digest(name)))
    }

    /// The `Set-Cookie` value that signs out.
    pub(super) fn close() -> &'static str {
        "session=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"
    }

    /// The name in a `Cookie` value, if it is signed in.
    pub(super) fn visitor(&self, cookies: &str) -> Option<String> {
        cookies.split(';').find_map(|cookie| {
            let (name, digest) = cookie.trim().strip_prefix("session=")?.rsplit_once('.')?;
            (digest == self.digest(name)).then(|| name.to_owned())
        })
    }
}

/// Whether an `If-None-Match` value names `etag`, by weak comparison (RFC 9110 §8.8.3.2).
pub(super) fn none_match_hits(if_none_match: &[u8], etag: &str) -> bool {
    let opaque = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_vec();
    members(if_none_match).any(|tag| tag == b"*" || opaque(tag) == opaque(etag.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_cookie_made_here_signs_in() {
        let sessions = Sessions::new();
        let set_cookie = sessions.open("Ada").unwrap();
        let cookie = set_cookie.split(';').next().unwrap();
        assert_eq!(sessions.visitor(&format!("theme=dark; {cookie}")).as_deref(), Some("Ada"));
        assert_eq!(sessions.visitor(&cookie.replace("Ada", "Eve")), None);
        assert_eq!(Sessions::new().visitor(cookie), None);
        assert_eq!(sessions.visitor("session="), None);
    }

    #[test]
    fn names_that_would_break_a_cookie_are_refused() {
        for name in ["", "a;b", "a b", "é", "a.b", "aaaaaaaaaaaaaaaaaaaaaaaaa"] {
            assert_eq!(Sessions::new().open(name), None, "{name}");
        }
    }

    #[test]
    fn validators_are_compared_weakly() {
        assert!(none_match_hits(b"\"a\", W/\"7-0\"", "W/\"7-0\""));
        assert!(none_match_hits(b"\"7-0\"", "W/\"7-0\""));
        assert!(none_match_hits(b"*", "W/\"7-0\""));
        assert!(!none_match_hits(b"\"7-1\"", "W/\"7-0\""));
    }
}
