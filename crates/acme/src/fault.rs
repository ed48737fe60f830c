//! The ways in which ACME can fail, each with a name, and a text that says what, where, and what to do.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sandarac_message::printable::escaped;

/// The most characters of a text from the CA that are reported.
const MAX_QUOTED_CHARS: usize = 300;

/// Why a certificate could not be obtained, kept or used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A setting has a value that cannot work. Holds the whole text.
    BadSetting(String),
    /// The file system has no space left.
    DiskFull(PathBuf),
    /// A file or directory cannot be written.
    CannotWrite(PathBuf, String),
    /// A file cannot be read.
    CannotRead(PathBuf, String),
    /// A file of the state directory does not hold what it should.
    BadFile(PathBuf, String),
    /// The state directory may be entered by other users. Holds its permission bits.
    OpenDirectory(PathBuf, u32),
    /// There are no root certificates to verify the CA with.
    NoRoots(String),
    /// No connection to the CA.
    Unreachable {
        /// The URL of the request.
        url: String,
        /// The last attempt's failure.
        why: String,
    },
    /// The CA did not respond in time.
    RequestTimedOut {
        /// The URL of the request.
        url: String,
        /// The time it was given.
        limit: Duration,
    },
    /// A response of the CA is larger than any that is needed.
    ResponseTooLarge {
        /// The URL of the request.
        url: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// A response of the CA cannot be used.
    BadResponse {
        /// The URL of the request.
        url: String,
        /// The reason.
        why: String,
    },
    /// A URL is not one of https (RFC 8555 §6.1).
    NotHttps(String),
    /// The CA limits requests (`rateLimited`).
    RateLimited(String),
    /// The CA does not know the account.
    AccountUnknown(String),
    /// The CA takes only accounts that are bound to one of its customers.
    ExternalAccountRequired(String),
    /// The CA wants something from the account's owner, such as new terms of service to be accepted.
    ActionRequired(String),
    /// The CA no longer knows the order.
    OrderLost(String),
    /// The CA refused a request. Holds what was refused, and the CA's words.
    Refused(&'static str, String),
    /// The CA could not verify that a name leads here.
    NotVerified {
        /// The name.
        name: String,
        /// `http-01` or `tls-alpn-01`.
        challenge: &'static str,
        /// The CA's words.
        why: String,
    },
    /// The CA offers no challenge for a name that can be answered.
    NoUsableChallenge {
        /// The name.
        name: String,
        /// The types that are allowed here.
        allowed: String,
    },
    /// The token of a challenge is not Base64url text (RFC 8555 §8.3).
    BadToken(String),
    /// An order contains names that were not ordered.
    OtherNamesOrdered(String),
    /// The CA declared an order invalid without a reason that can be attributed to a name.
    OrderInvalid(String),
    /// An order was not completed in time.
    OrderTimedOut(Duration),
    /// The certificate from the CA cannot be used.
    BadCertificate(CertificateFault),
    /// A key or certificate could not be made on this machine.
    CannotMake(String),
}

/// Why a certificate cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateFault {
    /// It is not PEM, or not X.509.
    Unreadable(String),
    /// Its private key is missing or of an unknown kind.
    NoKey(String),
    /// It is for another key.
    OtherKey,
    /// It lacks a name.
    NameMissing(String),
    /// It is not valid yet.
    NotYetValid,
    /// It has expired.
    Expired,
}

impl Fault {
    /// The name of the kind, for logs and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Fault::BadSetting(_) => "bad_setting",
            Fault::DiskFull(_) => "disk_full",
            Fault::CannotWrite(..) => "cannot_write",
            Fault::CannotRead(..) => "cannot_read",
            Fault::BadFile(..) => "bad_file",
            Fault::OpenDirectory(..) => "open_directory",
            Fault::NoRoots(_) => "no_roots",
            Fault::Unreachable { .. } => "unreachable",
            Fault::RequestTimedOut { .. } => "request_timed_out",
            Fault::ResponseTooLarge { .. } => "response_too_large",
            Fault::BadResponse { .. } => "bad_response",
            Fault::NotHttps(_) => "not_https",
            Fault::RateLimited(_) => "rate_limited",
            Fault::AccountUnknown(_) => "account_unknown",
            Fault::ExternalAccountRequired(_) => "external_account_required",
            Fault::ActionRequired(_) => "action_required",
            Fault::OrderLost(_) => "order_lost",
            Fault::Refused(..) => "refused",
            Fault::NotVerified { .. } => "not_verified",
            Fault::NoUsableChallenge { .. } => "no_usable_challenge",
            Fault::BadToken(_) => "bad_token",
            Fault::OtherNamesOrdered(_) => "other_names_ordered",
            Fault::OrderInvalid(_) => "order_invalid",
            Fault::OrderTimedOut(_) => "order_timed_out",
            Fault::BadCertificate(fault) => fault.name(),
            Fault::CannotMake(_) => "cannot_make",
        }
    }

    /// The fault of writing `path`.
    pub(crate) fn writing(path: &Path, error: &std::io::Error) -> Fault {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                Fault::DiskFull(path.to_owned())
            }
            _ => Fault::CannotWrite(path.to_owned(), error.to_string()),
        }
    }

    /// The fault of reading `path`.
    pub(crate) fn reading(path: &Path, error: &std::io::Error) -> Fault {
        Fault::CannotRead(path.to_owned(), error.to_string())
    }
}

/// Text from the CA, short and without characters that drive a terminal.
pub(crate) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_QUOTED_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    escaped(&short)
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::BadSetting(text) => f.write_str(text),
            Fault::DiskFull(path) => {
                write!(
                    f,
                    "no space is left to write {}: free some, nothing that was there is lost",
                    path.display()
                )
            }
            Fault::CannotWrite(path, why) => {
                write!(
                    f,
                    "cannot write {}: {why}; it must be writable for the user of this process",
                    path.display()
                )
            }
            Fault::CannotRead(path, why) => {
                write!(
                    f,
                    "cannot read {}: {why}; it must be readable for the user of this process",
                    path.display()
                )
            }
            Fault::BadFile(path, why) => {
                write!(f, "{} is damaged: {why}; remove it, and it is made anew", path.display())
            }
            Fault::OpenDirectory(path, mode) => write!(
                f,
                "the ACME directory {0} holds private keys and is open to other users ({mode:04o}): chmod 700 {0}",
                path.display()
            ),
            Fault::NoRoots(why) => write!(
                f,
                "no root certificates to verify the CA with: {why}; install ca-certificates, or set ca to a PEM file"
            ),
            Fault::Unreachable { url, why } => {
                write!(f, "cannot reach the CA at {url}: {why}; check directory, DNS and the firewall")
            }
            Fault::RequestTimedOut { url, limit } => {
                write!(f, "the CA did not respond at {url} within {} s", limit.as_secs_f64())
            }
            Fault::ResponseTooLarge { url, limit } => {
                write!(
                    f,
                    "the response of the CA at {url} is larger than {limit} bytes; is it an ACME server?"
                )
            }
            Fault::BadResponse { url, why } => {
                write!(f, "the response of the CA at {url} is not ACME: {why}; check directory")
            }
            Fault::NotHttps(url) => write!(f, "the URL {url} is not one of https, which ACME requires"),
            Fault::RateLimited(said) => write!(f, "the CA limits requests: {said}; retried later"),
            Fault::AccountUnknown(said) => {
                write!(f, "the CA does not know the account: {said}; the next attempt makes a new one")
            }
            Fault::ExternalAccountRequired(said) => write!(
                f,
                "the CA takes only accounts of its customers: {said}; set external_account to the key id and the key it gave you"
            ),
            Fault::ActionRequired(said) => {
                write!(f, "the CA wants something from the owner of the account: {said}")
            }
            Fault::OrderLost(said) => {
                write!(f, "the CA no longer knows the order: {said}; the next attempt places a new one")
            }
            Fault::Refused(doing, said) => write!(f, "the CA refused {doing}: {said}"),
            Fault::NotVerified { name, challenge, why } => {
                let port = if *challenge == "http-01" { 80 } else { 443 };
                write!(
                    f,
                    "the CA could not verify {name} by {challenge}: {why}; the name must lead to this machine, \
                     and port {port} must be open to the internet"
                )
            }
            Fault::NoUsableChallenge { name, allowed } => {
                write!(f, "the CA offers no challenge for {name} that may be used here ({allowed})")
            }
            Fault::BadToken(name) => {
                write!(f, "the CA sent a token for {name} that is not Base64url; it is not answered")
            }
            Fault::OtherNamesOrdered(name) => {
                write!(f, "the CA's order contains {name}, which was not ordered; it is not answered")
            }
            Fault::OrderInvalid(said) => write!(f, "the CA declared the order invalid: {said}"),
            Fault::OrderTimedOut(limit) => {
                write!(f, "the CA did not complete the order within {} s", limit.as_secs_f64())
            }
            Fault::BadCertificate(fault) => write!(f, "the certificate from the CA is not used: {fault}"),
            Fault::CannotMake(why) => write!(f, "a key or certificate could not be made: {why}"),
        }
    }
}

impl std::error::Error for Fault {}

impl CertificateFault {
    /// The name of the kind, for logs and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            CertificateFault::Unreadable(_) => "certificate_unreadable",
            CertificateFault::NoKey(_) => "certificate_without_key",
            CertificateFault::OtherKey => "certificate_for_another_key",
            CertificateFault::NameMissing(_) => "certificate_lacks_name",
            CertificateFault::NotYetValid => "certificate_not_yet_valid",
            CertificateFault::Expired => "certificate_expired",
        }
    }
}

impl fmt::Display for CertificateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateFault::Unreadable(why) => write!(f, "it cannot be read: {why}"),
            CertificateFault::NoKey(why) => write!(f, "its private key cannot be read: {why}"),
            CertificateFault::OtherKey => f.write_str("it is for another key than the one sent"),
            CertificateFault::NameMissing(name) => write!(f, "it is not for {name}"),
            CertificateFault::NotYetValid => {
                f.write_str("it is not valid yet; is this machine's clock right?")
            }
            CertificateFault::Expired => f.write_str("it has expired; is this machine's clock right?"),
        }
    }
}
