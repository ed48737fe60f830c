//! The records of a purge log, indexed so that matching an entry does not walk them.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use sandarac_message::glob::Glob;
use sandarac_wire::entry::{Effect, Purge, Record};

/// What purges are compared with: the attributes of a response.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The host by which it is purged.
    pub host: &'a [u8],
    /// The path and query by which it is purged.
    pub path: &'a [u8],
    /// The tags and groups by which it is purged.
    pub tags: &'a [u64],
    /// Whether the expression of a ban holds for it. An expression that cannot be evaluated MUST be taken to
    /// hold.
    pub ban: &'a dyn Fn(&str) -> bool,
}

/// Records in the order of their offsets.
#[derive(Debug, Default)]
pub(crate) struct PurgeIndex {
    records: VecDeque<(u64, Record)>,
    targets: BTreeMap<(Bytes, Bytes), Latest>,
    hosts: BTreeMap<Bytes, Latest>,
    tags: BTreeMap<u64, Latest>,
    all: Latest,
    /// Prefixes, patterns and bans.
    others: Vec<(u64, Record)>,
}

/// The offsets of the last records of one kind. Earlier ones add nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    hard: Option<u64>,
    soft: Option<u64>,
}

impl Latest {
    fn add(&mut self, offset: u64, effect: Effect) {
        let place = match effect {
            Effect::Hard => &mut self.hard,
            Effect::Soft => &mut self.soft,
        };
        *place = (*place).max(Some(offset));
    }

    /// The effect of the records from an offset on.
    fn from(&self, offset: u64) -> Option<Effect> {
        match self {
            Latest { hard: Some(hard), .. } if *hard >= offset => Some(Effect::Hard),
            Latest { soft: Some(soft), .. } if *soft >= offset => Some(Effect::Soft),
            _ => None,
        }
    }

    fn ends_before(&self, offset: u64) -> bool {
        self.hard.max(self.soft).is_none_or(|last| last < offset)
    }
}

impl PurgeIndex {
    /// Adds a record, whose offset MUST be above those of the others.
    pub(crate) fn push(&mut self, offset: u64, record: Record) {
        let effect = record.effect;
        match &record.purge {
            Purge::Target { host, path } => {
                self.targets.entry((host.clone(), path.clone())).or_default().add(offset, effect);
            }
            Purge::Tag(tag) => self.tags.entry(*tag).or_default().add(offset, effect),
            Purge::Host(host) => self.hosts.entry(host.clone()).or_default().add(offset, effect),
            Purge::All => self.all.add(offset, effect),
            Purge::Prefix { .. } | Purge::Glob { .. } | Purge::Ban(_) => {
                self.others.push((offset, record.clone()));
            }
        }
        self.records.push_back((offset, record));
    }

    /// Forgets the records before an offset.
    pub(crate) fn drop_before(&mut self, offset: u64) {
        while self.records.pop_front_if(|(at, _)| *at < offset).is_some() {}
        self.others.retain(|(at, _)| *at >= offset);
        self.targets.retain(|_, latest| !latest.ends_before(offset));
        self.hosts.retain(|_, latest| !latest.ends_before(offset));
        self.tags.retain(|_, latest| !latest.ends_before(offset));
    }

    /// The records, each with its offset.
    pub(crate) fn records(&self) -> impl Iterator<Item = &(u64, Record)> {
        self.records.iter()
    }

    /// The effect on a response of the records from an offset on. A hard purge outweighs a soft one.
    pub(crate) fn effect(&self, from: u64, subject: &Subject<'_>) -> Option<Effect> {
        let mut found = self.all.from(from);
        let mut note = |effect: Option<Effect>| {
            if found != Some(Effect::Hard) && effect.is_some() {
                found = effect;
            }
        };
        if !self.targets.is_empty() {
            let target = (Bytes::copy_from_slice(subject.host), Bytes::copy_from_slice(subject.path));
            note(self.targets.get(&target).and_then(|latest| latest.from(from)));
        }
        note(self.hosts.get(subject.host).and_then(|latest| latest.from(from)));
        for tag in subject.tags {
            note(self.tags.get(tag).and_then(|latest| latest.from(from)));
        }
        for (_, record) in self.others.iter().rev().take_while(|(at, _)| *at >= from) {
            note(matches(&record.purge, subject).then_some(record.effect));
        }
        found
    }
}

/// Whether a purge applies to a response.
pub fn matches(purge: &Purge, subject: &Subject<'_>) -> bool {
    match purge {
        Purge::Target { host, path } => host == subject.host && path == subject.path,
        Purge::Tag(tag) => subject.tags.contains(tag),
        Purge::Prefix { host, path } => host == subject.host && subject.path.starts_with(path),
        Purge::Host(host) => host == subject.host,
        Purge::Glob { host, path } => {
            Glob::new(host).matches(subject.host) && Glob::new(path).matches(subject.path)
        }
        Purge::All => true,
        Purge::Ban(expression) => (subject.ban)(expression),
    }
}
