//! The upkeep of a server: its purge log is read, and what it is owed delivered.

use std::sync::Arc;

use sandarac_tier::{LogSync, Reply};

use super::clock::now;
use super::links::Links;
use super::{SharedTier, TierServer};
use crate::shared::Shared;

/// Delivers what a server is owed and reads its log, if that is due. A server that is ejected is tried when
/// its time has come.
pub(crate) async fn sync(shared: &Shared, tier: &SharedTier, links: &Links, server: &Arc<TierServer>) {
    if !server.is_due(now()) {
        return;
    }
    let mut sync = LogSync::new(now().minus(tier.local_ttl() / 2));
    while let Some(command) = server.with(shared, |server| sync.next(now(), server)) {
        let replies = links.send_trial(tier, server, vec![command]).await;
        let reply = replies.into_iter().next().unwrap_or(Reply::Unavailable("no-reply"));
        server.with(shared, |server| sync.reply(now(), reply, server));
    }
}
