//! The entries that a source names, read one by one, within bounds, with a reason for each that is not taken.

use super::LiveSettings;
use hashbrown::HashSet;
use sandarac_balance::{Address, Backend};
use std::fmt;

/// The most backends that are taken of one source.
pub const MAX_MEMBERS: usize = 1000;

/// The longest name, address or value of an entry, in bytes.
pub const MAX_ENTRY_BYTES: usize = 4096;

/// How many ignored entries are kept with their text; of the others only the count.
const MAX_EXAMPLES: usize = 16;

/// How much of an ignored entry is kept, in characters.
const MAX_EXAMPLE_CHARS: usize = 120;

/// What a source names at a time. No two members have the same address.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// The backends: in the order of a file, by priority of SRV records, otherwise by name.
    pub members: Vec<Member>,
    /// What it says of the pool.
    pub settings: LiveSettings,
    /// What it said that makes no sense.
    pub ignored: Ignored,
}

/// A backend that a source names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Where it is found.
    pub address: Address,
    /// Its weight, from 1 to [`Backend::MAX_WEIGHT`].
    pub weight: u32,
    /// The priority of its SRV record: the lower, the sooner it is used (RFC 2782). 0 in all other sources.
    pub priority: u16,
}

impl Listing {
    /// The members of the first priority, which is all of them except for SRV records with several. Others are stand-ins
    /// that a pool uses which knows an order, as `fallback` does.
    pub fn preferred(&self) -> &[Member] {
        let first = self.members.first().map(|member| member.priority);
        let count = self.members.iter().take_while(|member| Some(member.priority) == first).count();
        &self.members[..count]
    }
}

/// Why an entry of a source is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IgnoredReason {
    /// It holds no address of a backend.
    BadAddress,
    /// An entry before it has the same address.
    DuplicateAddress,
    /// Its weight is no number from 1 to [`Backend::MAX_WEIGHT`].
    BadWeight,
    /// There are [`MAX_MEMBERS`] before it.
    TooMany,
    /// It is longer than [`MAX_ENTRY_BYTES`].
    TooLong,
    /// It is not UTF-8.
    NotText,
    /// It is a file, and no socket.
    NotASocket,
    /// It may not be read.
    Denied,
    /// It is a setting that there is not.
    UnknownSetting,
    /// It is a setting with a value that it cannot have, or settings that are no JSON object.
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

/// The entries of a listing that were not taken: all counted, the first few with their text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    counts: [u32; IgnoredReason::ALL.len()],
    examples: Vec<IgnoredEntry>,
}

/// An entry that was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredEntry {
    /// Why.
    pub reason: IgnoredReason,
    /// What it says, or the beginning of that, with what is no printable text escaped.
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

/// A listing in the making.
#[derive(Default)]
pub(super) struct Gathering {
    listing: Listing,
    seen: HashSet<Address>,
}

impl Gathering {
    /// Takes a member, unless there is one with its address, or too many; `entry` is what it was read from.
    pub(super) fn take(&mut self, member: Member, entry: &[u8]) {
        if self.seen.contains(&member.address) {
            self.ignore(IgnoredReason::DuplicateAddress, entry);
        } else if self.listing.members.len() == MAX_MEMBERS {
            self.ignore(IgnoredReason::TooMany, entry);
        } else {
            self.seen.insert(member.address.clone());
            self.listing.members.push(member);
        }
    }

    /// Leaves out an entry.
    pub(super) fn ignore(&mut self, reason: IgnoredReason, entry: &[u8]) {
        self.listing.ignored.add(reason, entry);
    }

    /// Takes down what is said of the pool, a JSON object.
    pub(super) fn settings(&mut self, json: &[u8]) {
        self.listing.settings = LiveSettings::read(json, &mut self.listing.ignored);
    }

    /// The listing.
    pub(super) fn listing(self) -> Listing {
        self.listing
    }
}

/// A weight as text: a number from 1 to [`Backend::MAX_WEIGHT`].
pub(super) fn weight(text: &str) -> Result<u32, IgnoredReason> {
    let weight = text.parse().ok().filter(|weight| (1..=Backend::MAX_WEIGHT).contains(weight));
    weight.ok_or(IgnoredReason::BadWeight)
}
