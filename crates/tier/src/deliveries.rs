//! Purges that a node knows, and whether a server has them.
//!
//! A node remembers its own purges and those that it read from the log of the server. When the server loses
//! its log, all of them are owed again, so that a purge survives as long as one node that knows it.

use std::collections::BTreeMap;
use std::time::Duration;

use sandarac_message::Timestamp;
use sandarac_wire::entry::{Effect, Purge, Record, RecordId};

use crate::purge_index::{Subject, matches};

/// The purges that a node knows, from the view of one server.
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    /// Not in the log of the server, as far as is known. In the order in which they were learnt.
    owed: Vec<Known>,
    /// In the log.
    delivered: BTreeMap<[u8; 16], Known>,
    /// When [`Deliveries::expire`] last walked them.
    expired: Timestamp,
}

/// The time between walks for purges that may be forgotten.
const EXPIRE_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
struct Known {
    record: Record,
    /// When this node learnt of it.
    at: Timestamp,
    /// Whether the server, or an earlier log of it, has ever had it. Until then it is kept without end.
    acknowledged: bool,
}

impl Deliveries {
    /// Adds a purge of this node. Beyond `max_owed` purges, all that are owed become one purge of everything
    /// under the id of this one.
    pub(crate) fn owe(&mut self, record: Record, now: Timestamp, max_owed: usize) {
        self.owed.push(Known { record, at: now, acknowledged: false });
        if self.owed.len() > max_owed
            && let Some(mut last) = self.owed.pop()
        {
            last.record.purge = Purge::All;
            last.record.effect = Effect::Hard;
            self.owed = vec![last];
        }
    }

    /// Notes that a record is in the log, and returns whether it is new to this node.
    pub(crate) fn found(&mut self, record: &Record, now: Timestamp) -> bool {
        if let Some(at) = self.owed.iter().position(|known| known.record.id == record.id) {
            let known = self.owed.remove(at);
            self.delivered.insert(record.id.0, Known { acknowledged: true, ..known });
            return false;
        }
        let known = Known { record: record.clone(), at: now, acknowledged: true };
        match self.delivered.entry(record.id.0) {
            std::collections::btree_map::Entry::Occupied(_) => false,
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(known);
                true
            }
        }
    }

    /// Notes that the server has lost its log: everything is owed again.
    pub(crate) fn lost(&mut self) {
        let mut again: Vec<Known> = std::mem::take(&mut self.delivered).into_values().collect();
        again.sort_by_key(|known| known.at);
        again.append(&mut self.owed);
        self.owed = again;
    }

    /// Forgets purges that were learnt more than `memory` ago, but not those that the server never had.
    pub(crate) fn expire(&mut self, now: Timestamp, memory: Duration) {
        if now.since(self.expired) < EXPIRE_INTERVAL {
            return;
        }
        self.expired = now;
        let recent = |known: &Known| now.since(known.at) <= memory;
        self.owed.retain(|known| !known.acknowledged || recent(known));
        self.delivered.retain(|_, known| recent(known));
    }

    /// The records that the server is owed.
    pub(crate) fn owed(&self) -> impl Iterator<Item = &Record> {
        self.owed.iter().map(|known| &known.record)
    }

    pub(crate) fn owes_any(&self) -> bool {
        !self.owed.is_empty()
    }

    pub(crate) fn owes(&self, id: &RecordId) -> bool {
        self.owed.iter().any(|known| known.record.id == *id)
    }

    /// Whether a purge that the server is owed applies to a response.
    pub(crate) fn owed_effect(&self, subject: &Subject<'_>) -> Option<Effect> {
        let matching = self.owed().filter(|record| matches(&record.purge, subject));
        matching.map(|record| record.effect).min_by_key(|effect| *effect != Effect::Hard)
    }
}
