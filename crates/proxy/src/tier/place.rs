//! The place of a response in the tier: its keys, and the server that has them.

use std::sync::Arc;

use bytes::Bytes;
use sandarac_cache::{Key, Object};
use sandarac_message::vary::VaryKey;
use sandarac_policy::{Route, SharedUse};
use sandarac_tier::Target;
use sandarac_wire::entry::{EntryKey, LocalKey, Token};

use super::{SharedTier, TierServer};
use crate::site::Site;

/// Where the responses for one key are. All variants of a response are on the server of its entry, so that
/// the position in one purge log covers them.
#[derive(Clone)]
pub(crate) struct Place {
    pub(super) tier: Arc<SharedTier>,
    pub(super) server: Arc<TierServer>,
    local: LocalKey,
    entry: EntryKey,
    host: Bytes,
    path: Bytes,
    may_write: bool,
}

impl Place {
    /// The place of responses to a key and a target, as its route uses the tier. `None` if there is no tier,
    /// or the route stays out.
    pub(crate) fn of(site: &Site, route: &Route, key: Key, host: &[u8], path: &[u8]) -> Option<Place> {
        let tier = site.tier.as_ref()?;
        let shared = route.cache_rule()?.shared;
        if shared == SharedUse::Off {
            return None;
        }
        let local = LocalKey { key: key.to_bytes(), rules: route.rules_digest()? };
        let servers = tier.servers();
        let entry = tier.keys.entry(&local);
        let server = servers.placement.as_ref()?.server_of(&entry)?;
        // In one allocation: both are cloned for each lookup.
        let mut path = Bytes::from([host, path].concat());
        let host = path.split_to(host.len());
        Some(Place {
            tier: tier.clone(),
            server: servers.list[server].clone(),
            local,
            entry,
            host,
            path,
            may_write: shared == SharedUse::ReadWrite,
        })
    }

    /// The place of a stored object.
    pub(crate) fn of_object(site: &Site, route: &Route, object: &Object) -> Option<Place> {
        Place::of(site, route, object.key(), object.host(), object.path())
    }

    /// The tier.
    pub(super) fn tier(&self) -> &SharedTier {
        &self.tier
    }

    /// The server that has it.
    pub(crate) fn server(&self) -> &Arc<TierServer> {
        &self.server
    }

    /// The key of the entry, as text.
    pub(crate) fn entry_key(&self) -> String {
        self.entry().key.to_string()
    }

    /// Whether the route writes to the tier.
    pub(super) fn may_write(&self) -> bool {
        self.may_write
    }

    /// Where a lookup begins.
    pub(super) fn entry(&self) -> Target {
        self.target(self.entry)
    }

    /// The place of one variant under the index with this token; that of the entry if it is none.
    pub(super) fn variant(&self, index: Option<Token>, vary: &VaryKey) -> Target {
        match index {
            None => self.entry(),
            Some(index) => self.target(self.tier.keys.variant(&self.local, index, vary)),
        }
    }

    fn target(&self, key: EntryKey) -> Target {
        Target { key, keys: self.tier.keys.clone(), host: self.host.clone(), path: self.path.clone() }
    }
}
