//! Warnings of certificates that expire soon.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::certificate::Certificate;
use crate::time::civil;

const DAY: i64 = 86_400;

/// The times before the end at which a warning is due, in days, the longest first.
const WARNED_DAYS: [i64; 3] = [14, 7, 1];

/// Gives each warning once: 14 days, 7 days and 1 day before a certificate expires, and when it has expired.
#[derive(Debug, Default)]
pub struct ExpiryWarnings {
    /// How many warnings each certificate has had, by its digest.
    given: HashMap<[u8; 32], usize>,
}

impl ExpiryWarnings {
    /// The warnings that are due at `now`, in seconds since 1970. Certificates that are no longer in use are forgotten.
    pub fn due<'c>(
        &mut self,
        certificates: impl IntoIterator<Item = &'c Certificate>,
        now: i64,
    ) -> Vec<String> {
        let mut texts = Vec::new();
        let mut given = HashMap::new();
        for certificate in certificates {
            let digest = certificate.digest();
            let before = self.given.get(&digest).copied().unwrap_or(0);
            let count = stage(certificate.not_after(), now);
            if count > before && !given.contains_key(&digest) {
                texts.push(text(certificate, now));
            }
            given.insert(digest, count.max(before));
        }
        self.given = given;
        texts
    }
}

/// How soon a certificate expires that is valid until `not_after`: a text if it is within 14 days.
pub fn expires_soon(certificate: &Certificate, now: i64) -> Option<String> {
    (stage(certificate.not_after(), now) > 0).then(|| text(certificate, now))
}

/// How many warnings are due in all.
fn stage(not_after: i64, now: i64) -> usize {
    let left = not_after.saturating_sub(now);
    WARNED_DAYS.iter().filter(|days| left <= **days * DAY).count() + usize::from(left < 0)
}

fn text(certificate: &Certificate, now: i64) -> String {
    let of = certificate.names().first().map(|name| format!(" for {name}")).unwrap_or_default();
    let path = certificate.files().map_or_else(PathBuf::new, |files| files.chain.clone());
    let place = if path.as_os_str().is_empty() { String::new() } else { format!(" in {}", path.display()) };
    let (until, left) = (civil(certificate.not_after()), certificate.not_after().saturating_sub(now));
    let days = left / DAY;
    match () {
        () if left < 0 => format!("the certificate{of}{place} expired at {until}; clients refuse it"),
        () if days < 1 => format!("the certificate{of}{place} expires within a day, at {until}; renew it"),
        () => format!(
            "the certificate{of}{place} expires in {days} {}, at {until}; renew it",
            if days == 1 { "day" } else { "days" }
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_tests::{Ca, Directory, now};
    use crate::{Certificate, Use};

    #[test]
    fn each_warning_is_given_once() {
        let directory = Directory::new();
        let files = directory.put("a", &Ca::new("the CA").issue(&["example.org"]));
        let certificate = Certificate::load(&files, Use::Server, now()).expect("a certificate");
        let end = certificate.not_after();
        let mut warnings = ExpiryWarnings::default();
        let mut days = |days_left: i64| warnings.due([&certificate, &certificate], end - days_left * DAY);
        assert!(days(40).is_empty());
        assert!(days(15).is_empty());
        let texts = days(14);
        assert_eq!(texts.len(), 1);
        assert!(texts[0].starts_with("the certificate for example.org in /"), "{texts:?}");
        assert!(texts[0].ends_with("expires in 14 days, at 2027-01-01 00:00:00 UTC; renew it"), "{texts:?}");
        assert!(days(13).is_empty());
        assert_eq!(days(7).len(), 1);
        assert!(days(2).is_empty());
        assert!(days(1)[0].contains("expires in 1 day, at"));
        assert!(days(0).is_empty());
        assert!(days(-1)[0].contains("expired at 2027-01-01 00:00:00 UTC; clients refuse it"));
        assert!(days(-2).is_empty());
        assert!(expires_soon(&certificate, end - 14 * DAY).is_some());
        assert!(expires_soon(&certificate, end - 15 * DAY).is_none());
    }
}
