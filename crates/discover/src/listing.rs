//! The backends that a source names, within bounds.

use super::{Ignored, IgnoredReason, LiveSettings};
use hashbrown::HashSet;
use sandarac_balance::{Address, Backend};

/// The most backends that are taken of one source.
pub const MAX_MEMBERS: usize = 1000;

/// What a source names at a time. No two members have the same address.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// The backends: in the order of a file, by priority of SRV records, otherwise by name.
    pub members: Vec<ListedBackend>,
    /// What it says of the pool.
    pub settings: LiveSettings,
    /// What it said that makes no sense.
    pub ignored: Ignored,
}

/// A backend that a source names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBackend {
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
    pub fn preferred(&self) -> &[ListedBackend] {
        let first = self.members.first().map(|member| member.priority);
        let count = self.members.iter().take_while(|member| Some(member.priority) == first).count();
        &self.members[..count]
    }
}

/// A listing in the making.
#[derive(Default)]
pub(super) struct ListingBuilder {
    listing: Listing,
    seen: HashSet<Address>,
}

impl ListingBuilder {
    /// Adds a member, unless there is one with its address, or too many; `entry` is what it was read from.
    pub(super) fn add(&mut self, member: ListedBackend, entry: &[u8]) {
        if self.seen.contains(&member.address) {
            self.ignore(IgnoredReason::DuplicateAddress, entry);
        } else if self.listing.members.len() == MAX_MEMBERS {
            self.ignore(IgnoredReason::TooMany, entry);
        } else {
            self.seen.insert(member.address.clone());
            self.listing.members.push(member);
        }
    }

    /// Counts an entry that is not taken.
    pub(super) fn ignore(&mut self, reason: IgnoredReason, entry: &[u8]) {
        self.listing.ignored.add(reason, entry);
    }

    /// Reads the settings of the pool, a JSON object.
    pub(super) fn settings(&mut self, json: &[u8]) {
        self.listing.settings = LiveSettings::read(json, &mut self.listing.ignored);
    }

    /// The finished listing.
    pub(super) fn build(self) -> Listing {
        self.listing
    }
}

/// A weight as text: a number from 1 to [`Backend::MAX_WEIGHT`].
pub(super) fn weight(text: &str) -> Result<u32, IgnoredReason> {
    let weight = text.parse().ok().filter(|weight| (1..=Backend::MAX_WEIGHT).contains(weight));
    weight.ok_or(IgnoredReason::BadWeight)
}
