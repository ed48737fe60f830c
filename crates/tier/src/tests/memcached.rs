//! A model of one memcached server.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::command::{Command, Condition, Reply, StoredItem};

/// A server. Its clock counts whole seconds, like that of memcached.
#[derive(Default)]
pub(super) struct Model {
    items: BTreeMap<Vec<u8>, Stored>,
    last_cas: u64,
}

struct Stored {
    value: Bytes,
    flags: u32,
    cas: u64,
    /// The second at which it has gone.
    expires: Option<u64>,
}

impl Model {
    /// Executes a command at a time in milliseconds.
    pub(super) fn execute(&mut self, now: u64, command: &Command) -> Reply {
        let second = now / 1000;
        let (Command::Get { key, .. }
        | Command::Set { key, .. }
        | Command::Append { key, .. }
        | Command::Delete { key, .. }) = command;
        let key = key.as_bytes();
        if self.items.get(key).is_some_and(|item| item.expires.is_some_and(|expires| expires <= second)) {
            self.items.remove(key);
        }
        match command {
            Command::Get { value, .. } => match self.items.get(key) {
                None => Reply::Absent,
                Some(item) => Reply::Item(StoredItem {
                    value: if *value { item.value.clone() } else { Bytes::new() },
                    size: item.value.len() as u64,
                    flags: item.flags,
                    cas: item.cas,
                    left: item.expires.map(|expires| (expires - second) as u32),
                }),
            },
            Command::Set { condition, ttl, flags, value, .. } => {
                match (condition, self.items.get(key)) {
                    (Condition::Absent, Some(_)) => return Reply::Refused,
                    (Condition::Cas(_), None) => return Reply::Absent,
                    (Condition::Cas(cas), Some(item)) if item.cas != *cas => return Reply::Refused,
                    _ => {}
                }
                self.last_cas += 1;
                let item = Stored {
                    value: value.concat().into(),
                    flags: *flags,
                    cas: self.last_cas,
                    expires: ttl.map(|ttl| second + u64::from(ttl)),
                };
                self.items.insert(key.to_vec(), item);
                Reply::Stored(self.last_cas)
            }
            // memcached answers an append to nothing with "not stored".
            Command::Append { cas, value, .. } => match self.items.get_mut(key) {
                None => Reply::Refused,
                Some(item) if item.cas != *cas => Reply::Refused,
                Some(item) => {
                    self.last_cas += 1;
                    item.value = [&item.value[..], value].concat().into();
                    item.cas = self.last_cas;
                    Reply::Stored(self.last_cas)
                }
            },
            Command::Delete { cas, .. } => match self.items.get(key) {
                None => Reply::Absent,
                Some(item) if item.cas != *cas => Reply::Refused,
                Some(_) => {
                    self.items.remove(key);
                    Reply::Deleted
                }
            },
        }
    }

    /// Loses everything, and counts from the beginning again.
    pub(super) fn restart(&mut self) {
        *self = Model::default();
    }

    /// Loses everything.
    pub(super) fn flush(&mut self) {
        self.items.clear();
    }

    /// Loses one item.
    pub(super) fn evict(&mut self, key: &[u8]) {
        self.items.remove(key);
    }

    /// Damages an item, which the server does not notice.
    pub(super) fn damage(&mut self, key: &[u8]) {
        if let Some(item) = self.items.get_mut(key) {
            item.value = item.value.slice(..item.value.len() - 1);
            self.last_cas += 1;
            item.cas = self.last_cas;
        }
    }

    /// The keys, in order.
    pub(super) fn keys(&self) -> Vec<Vec<u8>> {
        self.items.keys().cloned().collect()
    }

    /// A value that has not expired.
    pub(super) fn value(&self, now: u64, key: &[u8]) -> Option<Bytes> {
        let item = self.items.get(key)?;
        item.expires.is_none_or(|expires| expires > now / 1000).then(|| item.value.clone())
    }
}
