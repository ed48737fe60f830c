//! The pauses between failed attempts, kept in the state directory: neither a restart nor another node asks a CA more
//! often than one process would.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sandarac_message::Timestamp;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::files;

/// The pauses after the first failures. Let's Encrypt allows five failed verifications an hour for each name.
const FIRST_PAUSES: [Duration; 3] =
    [Duration::from_secs(60), Duration::from_secs(5 * 60), Duration::from_secs(15 * 60)];

/// The shortest pause after several failures, and after a rate limit that has no `Retry-After`.
const HOUR: Duration = Duration::from_secs(3600);

/// The longest pause, even if the CA asks for a longer one: one request a day burdens nobody.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The failed attempts since the last success.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attempts {
    /// How many.
    pub(crate) failures: u32,
    /// The last one's fault, its name first.
    #[serde(default)]
    fault: String,
    /// No attempt before this time, in seconds since the epoch.
    not_before: u64,
}

impl Attempts {
    /// The time of the next attempt. A time further away than the longest pause was written by a wrong clock.
    pub(crate) fn next(&self, now: Timestamp) -> Timestamp {
        let next = Timestamp::from_secs(self.not_before);
        if next > now.plus(LONGEST + HOUR) { now } else { next }
    }

    /// The last failure's fault, its name first.
    pub(crate) fn fault(&self) -> Option<String> {
        Some(self.fault.clone()).filter(|fault| !fault.is_empty())
    }

    /// Counts a failure.
    pub(crate) fn failed(
        &mut self,
        fault: &Fault,
        retry_after: Option<Duration>,
        chance: f64,
        now: Timestamp,
    ) {
        let is_limited = matches!(fault, Fault::RateLimited(_));
        let pause = pause(self.failures, retry_after, is_limited, chance);
        self.failures = self.failures.saturating_add(1);
        self.fault = format!("{}: {fault}", fault.name());
        self.not_before = now.plus(pause).as_secs();
    }

    /// The state after a success. Whatever the new certificate says about its renewal, it is not ordered again at once.
    pub(crate) fn succeeded(lifetime: Duration, now: Timestamp) -> Attempts {
        let pause = (lifetime / 10).clamp(FIRST_PAUSES[0], HOUR);
        Attempts { failures: 0, fault: String::new(), not_before: now.plus(pause).as_secs() }
    }
}

/// The pause after a failure that follows `earlier` ones. `chance`, from 0 to below 1, lengthens it by up to a tenth.
pub(crate) fn pause(earlier: u32, retry_after: Option<Duration>, is_limited: bool, chance: f64) -> Duration {
    let hours = |doublings: u32| HOUR.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX));
    let count = FIRST_PAUSES.len();
    let own = FIRST_PAUSES.get(earlier as usize).copied().unwrap_or_else(|| hours(earlier - count as u32));
    let limited = if is_limited && retry_after.is_none() { HOUR } else { Duration::ZERO };
    let pause = own.max(retry_after.unwrap_or_default()).max(limited).min(LONGEST);
    (pause + pause.mul_f64(chance / 10.0)).min(LONGEST)
}

/// The file of attempts of one certificate.
pub(crate) struct AttemptsFile(PathBuf);

impl AttemptsFile {
    pub(crate) fn new(path: PathBuf) -> AttemptsFile {
        AttemptsFile(path)
    }

    /// What is recorded. A file that cannot be read counts as none: the record only delays.
    pub(crate) fn read(&self) -> Attempts {
        let read = files::read(&self.0).ok().flatten();
        read.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    pub(crate) fn write(&self, attempts: &Attempts) -> Result<(), Fault> {
        files::write(&self.0, &serde_json::to_string(attempts).expect("numbers and text become JSON"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

    #[test]
    fn pauses_grow_to_an_hour_after_several_failures_and_to_a_day_at_most() {
        let minutes = |earlier| pause(earlier, None, false, 0.0).as_secs() / 60;
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 8, 40, u32::MAX].map(minutes),
            [1, 5, 15, 60, 120, 240, 1440, 1440, 1440]
        );
        assert_eq!(pause(0, None, false, 0.5), Duration::from_secs(63));
    }

    #[test]
    fn the_ca_may_lengthen_a_pause_to_a_day_and_never_shortens_it() {
        let asked = |secs| pause(1, Some(Duration::from_secs(secs)), true, 0.0).as_secs();
        assert_eq!([0, 299, 7200, 864_000, u64::MAX].map(asked), [300, 300, 7200, 86_400, 86_400]);
        assert_eq!(pause(0, None, true, 0.0), HOUR);
    }

    #[test]
    fn a_record_from_a_wrong_clock_delays_nothing() {
        let mut attempts = Attempts::default();
        assert!(attempts.next(NOW) <= NOW);
        attempts.failed(&Fault::OrderLost(String::new()), None, 0.0, NOW);
        assert_eq!(attempts.next(NOW), NOW.plus(Duration::from_secs(60)));
        let earlier = Timestamp::from_secs(1_000_000_000);
        assert_eq!(attempts.next(earlier), earlier);
    }
}
