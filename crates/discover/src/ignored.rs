//! The entries of a source that are ignored, each with a reason.

use std::fmt;

/// The longest name, address or value of an entry, in bytes.
pub const MAX_ENTRY_BYTES: usize = 4096;

/// How many ignored entries are kept with their text; others are only counted.
const MAX_EXAMPLES: usize = 16;

/// How much of an ignored entry is kept, in characters.
const MAX_EXAMPLE_CHARS: usize = 120;

/// Why an entry of a source is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IgnoredReason {
    /// It contains no backend address.
    BadAddress,
    /// An earlier entry has the same address.
    DuplicateAddress,
    /// Its weight is not a number from 1 to [`Backend::MAX_WEIGHT`](sandarac_balance::Backend::MAX_WEIGHT).
    BadWeight,
    /// There are [`MAX_MEMBERS`](super::MAX_MEMBERS) entries before it.
    TooMany,
    /// It is longer than [`MAX_ENTRY_BYTES`].
    TooLong,
    /// It is not UTF-8.
    NotText,
    /// It is a file, but not a socket.
    NotASocket,
    /// It may not be read.
    Denied,
    /// It is an unknown setting.
    UnknownSetting,
    /// It is a setting with an invalid value, or settings that are not a JSON object.
    BadSetting,
}

impl IgnoredReason {
    /// All of them.
    pub const ALL: [IgnoredReason; 10] = [
        IgnoredReason::BadAddress,
        IgnoredReason::DuplicateAddress,
        IgnoredReason::BadWeight,
        IgnoredReason::TooMany,
        IgnoredReason::TooLong,
        IgnoredReason::NotText,
        IgnoredReason::NotASocket,
        IgnoredReason::Denied,
        IgnoredReason::UnknownSetting,
        IgnoredReason::BadSetting,
    ];

    /// Its name in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            IgnoredReason::BadAddress => "bad_address",
            IgnoredReason::DuplicateAddress => "duplicate_address",
            IgnoredReason::BadWeight => "bad_weight",
            IgnoredReason::TooMany => "too_many",
            IgnoredReason::TooLong => "too_long",
            IgnoredReason::NotText => "not_text",
            IgnoredReason::NotASocket => "not_a_socket",
            IgnoredReason::Denied => "denied",
            IgnoredReason::UnknownSetting => "unknown_setting",
            IgnoredReason::BadSetting => "bad_setting",
        }
    }
}

impl fmt::Display for IgnoredReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The ignored entries of a listing: all counted, the first few with their text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    counts: [u32; IgnoredReason::ALL.len()],
    examples: Vec<IgnoredEntry>,
}

/// An ignored entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredEntry {
    /// The reason.
    pub reason: IgnoredReason,
    /// Its text, or the beginning of it, with unprintable bytes escaped.
    pub text: String,
}

impl Ignored {
    /// How many were ignored for a reason.
    pub fn count(&self, reason: IgnoredReason) -> u32 {
        self.counts[reason as usize]
    }

    /// How many were ignored in all.
    pub fn total(&self) -> u32 {
        self.counts.iter().sum()
    }

    /// The first few of them.
    pub fn examples(&self) -> &[IgnoredEntry] {
        &self.examples
    }

    pub(super) fn add(&mut self, reason: IgnoredReason, entry: &[u8]) {
        self.counts[reason as usize] = self.counts[reason as usize].saturating_add(1);
        if self.examples.len() < MAX_EXAMPLES {
            let entry = &entry[..entry.len().min(4 * MAX_EXAMPLE_CHARS)];
            let text = String::from_utf8_lossy(entry);
            let text = text.escape_debug().take(MAX_EXAMPLE_CHARS).collect();
            self.examples.push(IgnoredEntry { reason, text });
        }
    }
}
