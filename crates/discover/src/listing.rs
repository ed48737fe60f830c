//! The backends that a source names, within bounds.

use super::{Ignored, IgnoredReason, LiveSettings};
use hashbrown::HashSet;
use sandarac_balance::{Address, Backend};

/// The most backends accepted from one source.
pub const MAX_MEMBERS: usize = 1000;

/// The content of a source at one moment. No two members have the same address.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// The backends: in the order of a file, by priority of SRV records, otherwise by name.
    pub members: Vec<ListedBackend>,
    /// Settings of the pool.
    pub settings: LiveSettings,
    /// The malformed part of its content.
    pub ignored: Ignored,
}

/// A backend that a source names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBackend {
    /// Its address.
    pub address: Address,
    /// Its weight, from 1 to [`Backend::MAX_WEIGHT`].
    pub weight: u32,
    /// The priority of its SRV record; the lowest is used first (RFC 2782). 0 in all other sources.
    pub priority: u16,
}

impl Listing {
    /// The members of the first priority. These are all of them, except for SRV records with several
    /// priorities. The others are for algorithms that use an order, such as `fallback`.
    pub fn preferred(&self) -> &[ListedBackend] {
        let first = self.members.first().map(|member| member.priority);
        let count = self.members.iter().take_while(|member| Some(member.priority) == first).count();
        &self.members[..count]
    }
}

/// A listing under construction.
#[derive(Default)]
pub(super) struct ListingBuilder {
    listing: Listing,
    seen: HashSet<Address>,
}

impl ListingBuilder {
    /// Adds a member, unless its address is a duplicate or there are too many; `entry` is its source text.
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

    /// Counts an ignored entry.
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

/// An address with its scheme, or `host:port`. The port is required here, because a single word is more
/// likely a name for people.
pub(super) fn address(text: &str) -> Result<Address, IgnoredReason> {
    let has_port = || {
        let port = text.rsplit_once(':').map_or("", |(_, port)| port);
        !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    };
    let read = if text.starts_with("http://") || text.starts_with("unix:") {
        text.parse()
    } else if has_port() {
        format!("http://{text}").parse()
    } else {
        return Err(IgnoredReason::BadAddress);
    };
    read.map_err(|_| IgnoredReason::BadAddress)
}
