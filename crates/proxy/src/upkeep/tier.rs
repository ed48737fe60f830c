//! The upkeep of the shared tier: reads the purge log of each server, delivers what servers are owed, tries
//! those that are ejected, and resolves their names.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::origin::Origins;
use crate::shared::Shared;
use crate::site::Site;
use crate::tier::{Links, TierServer, TierServerState, sync};

/// How often the servers are looked at.
const TICK: Duration = Duration::from_millis(100);

/// How often names are resolved.
const RESOLVE_EVERY: Duration = Duration::from_secs(5);

/// Looks after the servers for as long as it is polled.
pub(super) async fn run(shared: Arc<Shared>, site: Arc<Site>, origins: Rc<Origins>) {
    let Some(tier) = site.tier.clone() else { return };
    let links = Rc::new(Links::default());
    let mut resolve_in = Duration::ZERO;
    let mut logged = BTreeMap::new();
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
        servers.list.iter().for_each(|server| log_change(&shared, &server.state(), &mut logged));
        links.prune(Some(&*tier));
        tokio::select! {
            () = shared.upkeep_mailbox.tier_owed() => {}
            () = tokio::time::sleep(TICK) => resolve_in = resolve_in.saturating_sub(TICK),
        }
    }
}

/// What was logged last of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Logged {
    #[default]
    Used,
    Ejected,
    /// It answers, but its purge log cannot be used.
    Unusable,
}

/// Logs when the use of a server changes.
fn log_change(shared: &Shared, server: &TierServerState, logged: &mut BTreeMap<String, Logged>) {
    let name = &server.name;
    let before = logged.entry(name.clone()).or_default();
    let now = match server {
        TierServerState { is_ejected: true, .. } => Logged::Ejected,
        TierServerState { log_fault: true, .. } => Logged::Unusable,
        TierServerState { is_current: true, .. } => Logged::Used,
        _ => *before,
    };
    if std::mem::replace(before, now) == now {
        return;
    }
    let fault = server.fault.as_deref().unwrap_or("it does not answer");
    shared.log(&match now {
        Logged::Used => format!("shared tier: {name} is used again"),
        Logged::Ejected => {
            format!("shared tier: {name} is not used: {fault}. What it has is fetched from backends; it is tried again")
        }
        Logged::Unusable => format!("shared tier: {name} is not used: {fault}"),
    });
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
