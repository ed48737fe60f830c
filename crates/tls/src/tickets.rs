//! Session tickets that several nodes can share (RFC 8446 §4.6.1, RFC 5077).
//!
//! A ticket is sealed by a key that is derived from a secret, the period of time, and a digest of everything that a full
//! handshake on the listener would have checked. So a ticket that was earned under one set of client CAs ends in a full
//! handshake on a listener with another set, and after a reload that changed the set (CVE-2025-23419).

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use aws_lc_rs::rand;
use rustls::server::ProducesTickets;
use rustls::time_provider::TimeProvider;

use crate::fault::{Fault, Reason};
use crate::file;

/// The fewest bytes of a secret.
pub const MIN_SECRET_BYTES: usize = 32;

/// The most bytes of a secret. A longer file was probably not meant.
const MAX_SECRET_BYTES: usize = 4096;

/// How many bytes name a key at the beginning of a ticket, so that tickets of other keys are not tried.
const KEY_NAME_BYTES: usize = 16;

/// The domain of the derivation; it changes with the format of tickets.
const SALT: &[u8] = b"sandarac session tickets 1";

/// The secret of all tickets. No debug output shows it.
#[derive(Clone)]
pub struct TicketSecret(Arc<[u8]>);

/// Seals and opens the tickets of a listener.
pub struct Tickets {
    secret: TicketSecret,
    binding: [u8; 32],
    /// The length of a period in seconds, not 0. A ticket is accepted in its own period and in the next one.
    period: u32,
    clock: Arc<dyn TimeProvider>,
    keys: ArcSwapOption<Keys>,
}

/// The keys of a period and of the one before.
struct Keys {
    period: u64,
    current: Key,
    previous: Option<Key>,
}

struct Key {
    name: [u8; KEY_NAME_BYTES],
    aead: LessSafeKey,
}

impl TicketSecret {
    /// A random secret, for a process whose tickets no other node accepts.
    ///
    /// # Panics
    /// If the system has no random numbers.
    pub fn random() -> TicketSecret {
        let mut bytes = [0; 48];
        rand::fill(&mut bytes).expect("the system has random numbers");
        TicketSecret(bytes.as_slice().into())
    }

    /// The secret of another process, if it is one.
    pub fn of(bytes: &[u8]) -> Option<TicketSecret> {
        (MIN_SECRET_BYTES..=MAX_SECRET_BYTES).contains(&bytes.len()).then(|| TicketSecret(bytes.into()))
    }

    /// Its bytes, for a process that takes over.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads a secret from a file, and reports whether every user of the machine may read it. All its bytes count.
    ///
    /// # Errors
    /// The file cannot be read, or is shorter than [`MIN_SECRET_BYTES`].
    pub fn from_file(path: &Path) -> Result<(TicketSecret, bool), Fault> {
        let content = file::read(path)?;
        match content.bytes.len() {
            few if few < MIN_SECRET_BYTES => Err(Fault::new(path, Reason::ShortSecret(few))),
            many if many > MAX_SECRET_BYTES => Err(Fault::new(path, Reason::TooLarge)),
            _ => Ok((TicketSecret(content.bytes.into()), content.is_public)),
        }
    }
}

impl Tickets {
    /// Tickets under `secret` for a listener whose checks have the digest `binding`. `lifetime` is the length of a
    /// period: tickets are accepted for at least that, and at most for twice that.
    pub fn new(
        secret: TicketSecret,
        binding: [u8; 32],
        lifetime: std::time::Duration,
        clock: Arc<dyn TimeProvider>,
    ) -> Tickets {
        let period = u32::try_from(lifetime.as_secs()).unwrap_or(u32::MAX).max(1);
        Tickets { secret, binding, period, clock, keys: ArcSwapOption::empty() }
    }

    /// The keys in force. Cores that find a new period at the same time derive the same keys.
    fn keys(&self) -> Option<Arc<Keys>> {
        let period = self.clock.current_time()?.as_secs() / u64::from(self.period);
        if let Some(keys) = self.keys.load_full().filter(|keys| keys.period == period) {
            return Some(keys);
        }
        let previous = period.checked_sub(1).and_then(|before| self.derive(before));
        let keys = Arc::new(Keys { period, current: self.derive(period)?, previous });
        self.keys.store(Some(keys.clone()));
        Some(keys)
    }

    fn derive(&self, period: u64) -> Option<Key> {
        const BYTES: usize = KEY_NAME_BYTES + 32;
        struct Length;
        impl KeyType for Length {
            fn len(&self) -> usize {
                BYTES
            }
        }
        let secret = Salt::new(HKDF_SHA256, SALT).extract(&self.secret.0);
        // The length of a period is a part, because periods of different lengths have the same numbers.
        let (number, length) = (period.to_be_bytes(), self.period.to_be_bytes());
        let info = [&number[..], &length, &self.binding];
        let mut bytes = [0; BYTES];
        secret.expand(&info, Length).ok()?.fill(&mut bytes).ok()?;
        let (name, key) = bytes.split_at(KEY_NAME_BYTES);
        let aead = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).ok()?);
        Some(Key { name: name.try_into().ok()?, aead })
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.period
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let keys = self.keys()?;
        // Random nonces suffice for 2^32 tickets of a key (NIST SP 800-38D §8.3): 100 000 a second for 12 hours.
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).ok()?;
        let mut ticket = Vec::with_capacity(KEY_NAME_BYTES + NONCE_LEN + plain.len() + AES_256_GCM.tag_len());
        ticket.extend_from_slice(&keys.current.name);
        ticket.extend_from_slice(&nonce);
        let head = ticket.len();
        ticket.extend_from_slice(plain);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let name = Aad::from(keys.current.name);
        let tag = keys.current.aead.seal_in_place_separate_tag(nonce, name, &mut ticket[head..]).ok()?;
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_at_checked(KEY_NAME_BYTES)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
        let keys = self.keys()?;
        // The name of a key is public: a comparison in constant time is not needed.
        let key = [Some(&keys.current), keys.previous.as_ref()]
            .into_iter()
            .flatten()
            .find(|key| key.name == name)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut opened = sealed.to_vec();
        let length = key.aead.open_in_place(nonce, Aad::from(key.name), &mut opened).ok()?.len();
        opened.truncate(length);
        Some(opened)
    }
}

impl fmt::Debug for TicketSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketSecret")
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").field("period", &self.period).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use rustls::pki_types::UnixTime;

    use super::*;

    #[derive(Debug, Default)]
    struct Clock(AtomicU64);

    impl TimeProvider for Clock {
        fn current_time(&self) -> Option<UnixTime> {
            Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0.load(Ordering::Relaxed))))
        }
    }

    fn tickets(secret: &TicketSecret, binding: u8, clock: &Arc<Clock>) -> Tickets {
        Tickets::new(secret.clone(), [binding; 32], Duration::from_secs(100), clock.clone())
    }

    #[test]
    fn a_ticket_is_accepted_in_its_period_and_in_the_next() {
        let clock = Arc::new(Clock::default());
        clock.0.store(1_050, Ordering::Relaxed);
        let tickets = tickets(&TicketSecret::random(), 1, &clock);
        let ticket = tickets.encrypt(b"session").expect("a ticket");
        for (now, accepted) in
            [(1_050, true), (1_099, true), (1_100, true), (1_199, true), (1_200, false), (0, false)]
        {
            clock.0.store(now, Ordering::Relaxed);
            let opened = tickets.decrypt(&ticket);
            assert_eq!(opened.as_deref(), accepted.then_some(&b"session"[..]), "at {now}");
        }
    }

    #[test]
    fn nodes_with_the_same_secret_accept_each_others_tickets() {
        let (clock, secret) = (Arc::new(Clock::default()), TicketSecret::random());
        let ticket = tickets(&secret, 1, &clock).encrypt(b"session").expect("a ticket");
        assert!(tickets(&secret, 1, &clock).decrypt(&ticket).is_some());
        assert!(tickets(&TicketSecret::random(), 1, &clock).decrypt(&ticket).is_none());
    }

    #[test]
    fn a_ticket_is_bound_to_the_checks_of_its_listener() {
        let (clock, secret) = (Arc::new(Clock::default()), TicketSecret::random());
        let ticket = tickets(&secret, 1, &clock).encrypt(b"session").expect("a ticket");
        assert!(tickets(&secret, 2, &clock).decrypt(&ticket).is_none());
        let other = Tickets::new(secret, [1; 32], Duration::from_secs(101), clock);
        assert!(other.decrypt(&ticket).is_none());
    }

    #[test]
    fn forged_tickets_are_refused() {
        let clock = Arc::new(Clock::default());
        let tickets = tickets(&TicketSecret::random(), 1, &clock);
        let ticket = tickets.encrypt(b"session").expect("a ticket");
        assert_ne!(tickets.encrypt(b"session"), Some(ticket.clone()), "nonces differ");
        for length in 0..ticket.len() {
            assert!(tickets.decrypt(&ticket[..length]).is_none());
        }
        for at in 0..ticket.len() {
            let mut forged = ticket.clone();
            forged[at] ^= 1;
            assert!(tickets.decrypt(&forged).is_none(), "byte {at}");
        }
    }
}
