//! Invalidation: a response shows that stored ones are no longer valid.

use crate::exchange::state::Exchange;
use crate::purger::{Purger, Selection};
use crate::request::received::Received;
use crate::tier;
use sandarac_cache::{Purge, Tag};
use std::time::Duration;

/// Removes the stored responses of targets on the host of the request, and of groups. Waits until the servers
/// of the shared tier have been told of groups.
pub(crate) async fn invalidate(
    exchange: &Exchange<'_>,
    received: &Received<'_>,
    targets: Vec<Vec<u8>>,
    groups: Vec<Tag>,
) {
    let (core, site) = (exchange.core.handle(), exchange.site);
    let purger = Purger::of(&core.shared);
    let select = |targets: &[Vec<u8>]| -> Vec<Selection> {
        targets.iter().map(|target| Selection::of_target(&received.host, target)).collect()
    };
    let (told, others): (Vec<_>, Vec<_>) =
        targets.into_iter().partition(|target| tier::may_have(site, &received.host, target));
    purger.purge(&select(&told), Purge::Hard, Duration::ZERO);
    for selection in select(&others) {
        purger.purge_here(&selection, Purge::Hard);
    }
    if !groups.is_empty() {
        purger.purge(&[Selection::Tags(groups)], Purge::Hard, purger.patience()).reached().await;
    }
    tier::entomb(&core, site, &received.host, &told).await;
}
