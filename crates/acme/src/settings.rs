//! Settings: the certificate to obtain, its CA, and the place where it is kept.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use sandarac_message::dns_name::certifiable;

use crate::fault::Fault;

/// The directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// The directory of Let's Encrypt for trials: looser limits, certificates that no browser trusts.
pub const LETS_ENCRYPT_STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";

/// The most names of a certificate that public CAs accept.
const MAX_NAMES: usize = 100;

/// One certificate: its names, its CA, and the directory that keeps it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The names of the certificate, as [`Settings::checked`] leaves them: lower case, no trailing dot.
    pub names: Vec<String>,
    /// A mail address for the CA's notices, without `mailto:`.
    pub contact: Option<String>,
    /// The URL of the CA's directory (RFC 8555 §7.1.1).
    pub directory: String,
    /// The state directory. Nodes may share one; so may several certificates.
    pub state: PathBuf,
    /// A PEM file with the roots that the CA's own server is verified with. `None` for those of the system.
    pub ca: Option<PathBuf>,
    /// The challenges that can be answered, preferred first. A failed attempt is followed by one with the next.
    pub challenges: Vec<ChallengeKind>,
    /// The credentials by which the CA recognises a customer (RFC 8555 §7.3.4).
    pub external_account: Option<ExternalAccount>,
    /// Limits, which only tests change.
    pub limits: Limits,
}

/// A way to prove control of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChallengeKind {
    /// A response on port 80 (RFC 8555 §8.3).
    Http01,
    /// A certificate on port 443 (RFC 8737).
    TlsAlpn01,
}

/// The credentials of a customer of the CA.
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalAccount {
    /// The key identifier, from the CA.
    pub key_id: String,
    /// The HMAC key, from the CA, in Base64url.
    pub hmac_key: String,
}

/// Bounds on time and memory.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The time for one request to the CA, from the connection to the last byte. A slow CA needs seconds; half a
    /// minute bears a retransmission or two on each step.
    pub request: Duration,
    /// The time for a whole order. CAs verify within seconds, under load within a minute.
    pub order: Duration,
    /// The largest response in bytes. A chain has about 8 KiB.
    pub response: usize,
    /// The longest pause between looks at the state directory, for certificates of other nodes.
    pub poll: Duration,
    /// The pause before the state of an order is asked for again, if the CA names none; it doubles each time.
    pub first_order_poll: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            request: Duration::from_secs(30),
            order: Duration::from_secs(5 * 60),
            response: 1 << 20,
            poll: Duration::from_secs(60),
            first_order_poll: Duration::from_secs(1),
        }
    }
}

impl Settings {
    /// The settings for `names` with certificates in `state`, from Let's Encrypt.
    pub fn new(names: Vec<String>, state: PathBuf) -> Settings {
        Settings {
            names,
            contact: None,
            directory: LETS_ENCRYPT.to_owned(),
            state,
            ca: None,
            challenges: vec![ChallengeKind::Http01, ChallengeKind::TlsAlpn01],
            external_account: None,
            limits: Limits::default(),
        }
    }

    /// The settings with names in lower case and sorted, each once.
    ///
    /// # Errors
    /// [`Fault::BadSetting`] names the first value that cannot work.
    pub fn checked(mut self) -> Result<Settings, Fault> {
        let mut names = Vec::new();
        for name in &self.names {
            let name =
                certifiable(name).map_err(|why| Fault::BadSetting(format!("acme: name {name:?} {why}")))?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.is_empty() || names.len() > MAX_NAMES {
            return bad(format!("acme: {} names; a certificate has 1 to {MAX_NAMES}", names.len()));
        }
        names.sort();
        self.names = names;
        if self.challenges.is_empty() {
            return bad(
                "acme: no challenge can be answered: listen on port 80 or, with TLS, on port 443".to_owned()
            );
        }
        is_https(&self.directory).map_err(|why| {
            Fault::BadSetting(format!(
                "acme: directory {:?} {why}; Let's Encrypt has {LETS_ENCRYPT:?}",
                self.directory
            ))
        })?;
        if let Some(contact) = &self.contact {
            let is_address = contact.split_once('@').is_some_and(|(user, host)| {
                !user.is_empty() && !host.is_empty() && !contact.contains([' ', ',', '?', '\n', '\r'])
            });
            if !is_address || contact.starts_with("mailto:") {
                return bad(format!(
                    "acme: contact {contact:?} is not a mail address such as you@example.org"
                ));
            }
        }
        Ok(self)
    }
}

fn bad<T>(text: String) -> Result<T, Fault> {
    Err(Fault::BadSetting(text))
}

/// Whether `url` is one of https that a request can be made to; the error completes a sentence.
pub(crate) fn is_https(url: &str) -> Result<hyper::Uri, &'static str> {
    let uri: hyper::Uri = url.parse().map_err(|_| "is not a URL")?;
    match (uri.scheme_str(), uri.host()) {
        (Some("https"), Some(host)) if !host.is_empty() => Ok(uri),
        _ => Err("is not a URL of https"),
    }
}

impl ChallengeKind {
    /// Its name in ACME.
    pub fn name(self) -> &'static str {
        match self {
            ChallengeKind::Http01 => "http-01",
            ChallengeKind::TlsAlpn01 => "tls-alpn-01",
        }
    }
}

impl fmt::Display for ChallengeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The key stays out of logs.
impl fmt::Debug for ExternalAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalAccount").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(names: &[&str]) -> Settings {
        Settings::new(names.iter().map(|name| (*name).to_owned()).collect(), "/state".into())
    }

    #[track_caller]
    fn refusal(settings: Settings) -> String {
        settings.checked().expect_err("settings that cannot work").to_string()
    }

    #[test]
    fn names_become_lower_case_and_sorted_each_once() {
        let checked = settings(&["www.Example.org", "example.org.", "EXAMPLE.org"]).checked();
        assert_eq!(
            checked.map(|settings| settings.names),
            Ok(vec!["example.org".to_owned(), "www.example.org".to_owned()])
        );
    }

    #[test]
    fn a_name_that_no_ca_can_verify_is_refused() {
        assert!(
            refusal(settings(&["a.example", "*.example.org"])).contains("\"*.example.org\" is a wildcard")
        );
        assert!(refusal(settings(&[])).contains("0 names"));
    }

    #[test]
    fn other_values_that_cannot_work_are_refused() {
        let example = || settings(&["example.org"]);
        for directory in ["http://ca.example/", "ca.example", "", "https://", "https://a b/"] {
            let text = refusal(Settings { directory: directory.to_owned(), ..example() });
            assert!(text.contains("is not a URL"), "{directory}: {text}");
        }
        for contact in ["mailto:a@example.org", "a", "a@", "a@b,c@d", "a@b\n"] {
            let text = refusal(Settings { contact: Some(contact.to_owned()), ..example() });
            assert!(text.contains("is not a mail address"), "{contact}: {text}");
        }
        assert!(refusal(Settings { challenges: Vec::new(), ..example() }).contains("port 80"));
    }
}
