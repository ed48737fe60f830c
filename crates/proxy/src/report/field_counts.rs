//! Request fields that kept requests from sharing responses, by name.

use sandarac_message::caching::BypassReason;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// The most names. Clients can send any.
const MAX_NAMES: usize = 64;

/// The longest name, in bytes, that is counted by itself.
const MAX_NAME: usize = 64;

/// How often a field kept a request from sharing, for the names that came first; all others are counted
/// together.
#[derive(Default)]
pub(crate) struct FieldCounts {
    named: Mutex<BTreeMap<(Box<str>, &'static str), u64>>,
    others: AtomicU64,
}

impl FieldCounts {
    /// Counts one request. The name in lower case, if it is a new one and there is room for it.
    pub(crate) fn one(&self, name: &[u8], why: BypassReason) -> Option<String> {
        let lower = String::from_utf8_lossy(name).to_ascii_lowercase();
        let mut named = self.named.lock();
        if let Some(count) = named.get_mut(&(Box::from(&*lower), why.text())) {
            *count += 1;
            return None;
        }
        if name.len() > MAX_NAME || named.len() >= MAX_NAMES {
            self.others.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        named.insert((lower.as_str().into(), why.text()), 1);
        Some(lower)
    }

    /// The name, the reason and the count of each, by name; all others last, without a name.
    pub(crate) fn all(&self) -> Vec<(Box<str>, &'static str, u64)> {
        let named = self.named.lock();
        let mut all: Vec<_> = named.iter().map(|((name, why), count)| (name.clone(), *why, *count)).collect();
        let others = self.others.load(Ordering::Relaxed);
        if others > 0 {
            all.push(("".into(), "other", others));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_makes_names_up_costs_64_of_them() {
        let counts = FieldCounts::default();
        assert_eq!(counts.one(b"X-API-Key", BypassReason::UnknownField).as_deref(), Some("x-api-key"));
        assert_eq!(counts.one(b"x-api-KEY", BypassReason::UnknownField), None);
        assert_eq!(counts.one("a".repeat(65).as_bytes(), BypassReason::UnknownField), None);
        for n in 0..1000 {
            counts.one(format!("X-{n}").as_bytes(), BypassReason::UnknownField);
        }
        let all = counts.all();
        assert_eq!(all.len(), MAX_NAMES + 1);
        assert!(all.contains(&("x-api-key".into(), "unknown-field", 2)));
        assert_eq!(all.last(), Some(&("".into(), "other", 1 + 1000 - 63)));
    }
}
