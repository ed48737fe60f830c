//! The upkeep of the shared tier: reads the purge log of each server, delivers what servers are owed, tries
//! those that are ejected, and resolves their names.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::origin::Origins;
use crate::shared::Shared;
use crate::site::Site;
use crate::tier::{Links, TierServer, sync};

/// How often the servers are looked at.
const TICK: Duration = Duration::from_millis(100);

/// How often names are resolved.
const RESOLVE_EVERY: Duration = Duration::from_secs(5);

/// Looks after the servers for as long as it is polled.
pub(super) async fn run(shared: Arc<Shared>, site: Arc<Site>, origins: Rc<Origins>) {
    let Some(tier) = site.tier.clone() else { return };
    let links = Rc::new(Links::default());
    let mut resolve_in = Duration::ZERO;
    loop {
        let servers = tier.servers();
        if resolve_in.is_zero() {
            resolve_in = RESOLVE_EVERY;
            for server in &servers.list {
                resolve(&origins, server).await;
            }
        }
        let mut syncs = JoinSet::new();
        for server in &servers.list {
            let (shared, tier, links, server) = (shared.clone(), tier.clone(), links.clone(), server.clone());
            syncs.spawn_local(async move { sync(&shared, &tier, &links, &server).await });
        }
        while syncs.join_next().await.is_some() {}
        links.prune(Some(&*tier));
        tokio::select! {
            () = shared.upkeep_mailbox.tier_owed() => {}
            () = tokio::time::sleep(TICK) => resolve_in = resolve_in.saturating_sub(TICK),
        }
    }
}

/// Notes where a server is that is configured by a name: at the first of its addresses, so that all nodes
/// choose the same if the resolver sorts them.
async fn resolve(origins: &Origins, server: &Arc<TierServer>) {
    if let Some((name, port)) = server.name_to_resolve()
        && let Some(ip) = origins.addresses(name).await.into_iter().min()
    {
        server.resolved(SocketAddr::new(ip, port));
    }
}
