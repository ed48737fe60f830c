//! The cryptography: versions, suites and groups.

use std::sync::{Arc, OnceLock};

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::version::{TLS12, TLS13};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

/// The lowest version of TLS that is spoken. Earlier ones than 1.2 are not supported (RFC 8996).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// TLS 1.2 (RFC 5246).
    #[default]
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

impl Version {
    pub(crate) fn and_later(self) -> &'static [&'static SupportedProtocolVersion] {
        const ALL: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];
        match self {
            Version::Tls12 => ALL,
            Version::Tls13 => &ALL[..1],
        }
    }
}

/// The cryptography with all suites. X25519MLKEM768 is the first of its groups.
pub fn provider() -> &'static Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER.get_or_init(|| Arc::new(aws_lc_rs::default_provider()))
}

/// A suite by the name that IANA has registered.
pub fn cipher_suite(name: &str) -> Option<SupportedCipherSuite> {
    let all = &provider().cipher_suites;
    all.iter().copied().find(|suite| registered_name(*suite) == name)
}

/// The name of a suite as registered by IANA.
pub fn registered_name(suite: SupportedCipherSuite) -> String {
    let name = format!("{:?}", suite.suite());
    // Names of TLS 1.3 are prefixed in rustls, so that both sets can be told apart.
    match name.strip_prefix("TLS13_") {
        Some(rest) => format!("TLS_{rest}"),
        None => name,
    }
}

/// The cryptography with these suites only, by name; all of them if there are none.
///
/// # Errors
/// A text, if a name is unknown, or if no suite serves `minimum` or a later version.
pub(crate) fn provider_with(suites: &[Box<str>], minimum: Version) -> Result<Arc<CryptoProvider>, Box<str>> {
    if suites.is_empty() {
        return Ok(provider().clone());
    }
    let mut cipher_suites = Vec::new();
    for name in suites {
        cipher_suites.push(cipher_suite(name).ok_or_else(|| format!("there is no cipher suite {name}"))?);
    }
    if minimum == Version::Tls13 && !cipher_suites.iter().any(|suite| suite.tls13().is_some()) {
        return Err("none of the cipher suites is for TLS 1.3, and the minimum version is 1.3".into());
    }
    Ok(Arc::new(CryptoProvider { cipher_suites, ..(**provider()).clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_the_names_of_iana() {
        let names: Vec<String> =
            provider().cipher_suites.iter().map(|suite| registered_name(*suite)).collect();
        assert!(names.contains(&"TLS_AES_256_GCM_SHA384".to_owned()), "{names:?}");
        assert!(names.contains(&"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256".to_owned()), "{names:?}");
        assert!(names.iter().all(|name| cipher_suite(name).is_some()));
        assert_eq!(names.len(), 9);
    }

    #[test]
    fn the_hybrid_group_is_preferred() {
        assert_eq!(provider().kx_groups[0].name(), rustls::NamedGroup::X25519MLKEM768);
    }
}
