//! Names of hosts as certificates contain them (RFC 5280 §4.2.1.6, RFC 1123 §2.1).

use std::net::IpAddr;

/// Why a text is no name of a host that a public CA certifies by HTTP-01 or TLS-ALPN-01. The text completes the sentence
/// "NAME …".
pub type Wrong = &'static str;

/// The name in lower case and without a trailing dot: labels of letters, digits and inner hyphens. It is also safe as
/// the name of a file.
///
/// # Errors
/// Wildcards, addresses, names outside ASCII, and texts that are no name.
pub fn certifiable(text: &str) -> Result<String, Wrong> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if name.starts_with("*.") {
        return Err(
            "is a wildcard, which CAs only certify by DNS-01; list the names, or use certificate files",
        );
    }
    if name.parse::<IpAddr>().is_ok() || name.starts_with('[') {
        return Err("is an address; only names of DNS can be certified");
    }
    if name.is_empty() || name.len() > 253 {
        return Err("does not have 1 to 253 characters");
    }
    if !name.is_ascii() {
        return Err("is not ASCII; write its xn-- form");
    }
    if !name.split('.').all(is_label) {
        return Err("is not a host name: labels of letters, digits and inner hyphens, with dots between");
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_lower_case() {
        for name in ["www.example.org", "WWW.Example.ORG", "www.example.org."] {
            assert_eq!(certifiable(name).as_deref(), Ok("www.example.org"));
        }
        assert_eq!(certifiable("xn--bcher-kva.example").as_deref(), Ok("xn--bcher-kva.example"));
    }

    #[test]
    fn names_that_no_ca_can_verify_are_refused() {
        for (name, why) in [
            ("*.example.org", "is a wildcard"),
            ("127.0.0.1", "is an address"),
            ("[::1]", "is an address"),
            ("::1", "is an address"),
            ("", "does not have 1 to 253"),
            (".", "does not have 1 to 253"),
            (&"a.".repeat(130), "does not have 1 to 253"),
            ("bücher.example", "is not ASCII"),
            ("../../etc/passwd", "is not a host name"),
            ("a..b", "is not a host name"),
            ("a_b.example", "is not a host name"),
            ("-a.example", "is not a host name"),
            ("a-.example", "is not a host name"),
            (&"a".repeat(64), "is not a host name"),
            ("a.example:443", "is not a host name"),
            ("a\0.example", "is not a host name"),
        ] {
            let found = certifiable(name).expect_err(name);
            assert!(found.contains(why), "{name:?}: {found}");
        }
    }
}
