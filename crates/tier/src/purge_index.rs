//! The records of a purge log, indexed so that matching an entry does not walk them.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use sandarac_message::glob::Glob;
use sandarac_wire::entry::{Effect, Purge, Record};

/// The attributes of a response that purges are compared with.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sandarac_message::Timestamp;
    use sandarac_wire::entry::RecordId;

    use super::*;

    fn purge() -> impl Strategy<Value = Purge> {
        let host = || prop_oneof![Just("a"), Just("b"), Just("*")].prop_map(Bytes::from);
        let path = || prop_oneof![Just("/"), Just("/1"), Just("/12"), Just("*2")].prop_map(Bytes::from);
        prop_oneof![
            (host(), path()).prop_map(|(host, path)| Purge::Target { host, path }),
            (0u64..4).prop_map(Purge::Tag),
            (host(), path()).prop_map(|(host, path)| Purge::Prefix { host, path }),
            host().prop_map(Purge::Host),
            (host(), path()).prop_map(|(host, path)| Purge::Glob { host, path }),
            Just(Purge::All),
            prop_oneof![Just("yes"), Just("no")].prop_map(|text| Purge::Ban(text.to_owned())),
        ]
    }

    proptest! {
        #[test]
        fn the_index_finds_what_a_walk_finds(
            purges in prop::collection::vec((purge(), any::<bool>()), 0..8),
            from in 0u64..9, dropped in 0u64..9, host in "[ab]", path in "/1?2?", tag in 0u64..4,
        ) {
            let mut index = PurgeIndex::default();
            let records = purges.into_iter().enumerate().map(|(number, (purge, is_hard))| {
                let effect = if is_hard { Effect::Hard } else { Effect::Soft };
                let id = RecordId([number as u8; 16]);
                (number as u64, Record { id, made: Timestamp::default(), effect, purge })
            });
            let records: Vec<_> = records.collect();
            for (offset, record) in &records {
                index.push(*offset, record.clone());
            }
            index.drop_before(dropped.min(from));
            let (host, path, tags) = (host.as_bytes(), path.as_bytes(), &[tag, 9]);
            let subject = Subject { host, path, tags, ban: &|text| text == "yes" };
            let walked = records.iter().filter(|(at, _)| *at >= from);
            let effects = walked.filter(|(_, record)| matches(&record.purge, &subject));
            let effects = effects.map(|(_, record)| record.effect);
            let expected = effects.min_by_key(|effect| *effect != Effect::Hard);
            prop_assert_eq!(index.effect(from, &subject), expected);
        }
    }
}
