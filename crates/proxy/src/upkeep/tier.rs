//! The upkeep of the shared tier: reads the purge log of each server, delivers what servers are owed, tries
//! those that are ejected, and resolves their names.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sandarac_balance::{Address, Endpoint};
use sandarac_config::{Server, SharedServer, SharedServers, Source};
use sandarac_discover::{Event, LossReason, Memory, watch};
use tokio::task::JoinSet;

use crate::origin::Origins;
use crate::shared::Shared;
use crate::site::Site;
use crate::tier::{Links, SharedTier, TierServer, TierServerState, sync};

/// How often the servers are looked at.
const TICK: Duration = Duration::from_millis(100);

/// How often names are resolved.
const RESOLVE_EVERY: Duration = Duration::from_secs(5);

/// Looks after the shared tier for as long as it is polled.
pub(super) async fn run(shared: Arc<Shared>, site: Arc<Site>, origins: Rc<Origins>) {
    let Some(tier) = site.tier.clone() else { return };
    match site.config.cache.shared.as_ref().map(|config| &config.servers) {
        Some(SharedServers::Discovered(source)) => {
            tokio::join!(look_after(&shared, &tier, &origins), discover(&shared, &site, &tier, source));
        }
        _ => look_after(&shared, &tier, &origins).await,
    }
}

/// Looks after the servers.
async fn look_after(shared: &Arc<Shared>, tier: &Arc<SharedTier>, origins: &Origins) {
    let links = Rc::new(Links::default());
    let mut resolve_in = Duration::ZERO;
    let mut logged = BTreeMap::new();
    loop {
        let servers = tier.servers();
        if resolve_in.is_zero() {
            resolve_in = RESOLVE_EVERY;
            for server in &servers.list {
                resolve(origins, server).await;
            }
        }
        let mut syncs = JoinSet::new();
        for server in &servers.list {
            let (shared, tier, links, server) = (shared.clone(), tier.clone(), links.clone(), server.clone());
            syncs.spawn_local(async move { sync(&shared, &tier, &links, &server).await });
        }
        while syncs.join_next().await.is_some() {}
        servers.list.iter().for_each(|server| log_change(shared, &server.state(), &mut logged));
        links.prune(Some(tier));
        tokio::select! {
            () = shared.upkeep_mailbox.tier_owed() => {}
            Some((inspection, result)) = shared.upkeep_mailbox.inspection() => {
                let (shared, links) = (shared.clone(), links.clone());
                tokio::task::spawn_local(async move {
                    // The caller may have given up.
                    let _ = result.send(inspection.run(&*shared, &links).await);
                });
            }
            () = tokio::time::sleep(TICK) => resolve_in = resolve_in.saturating_sub(TICK),
        }
    }
}

/// Takes over the servers that a source lists, for as long as it is polled. A source that names none, or cannot
/// be reached, leaves those that it named last.
async fn discover(shared: &Shared, site: &Site, tier: &SharedTier, source: &Source) {
    let log = |what: String| shared.log(&format!("shared tier: {source}: {what}"));
    let mut lost_for: Vec<LossReason> = Vec::new();
    let heard = |event| match event {
        Event::Listing(listing) => {
            let mut found: Vec<SharedServer> =
                listing.preferred().iter().map(|found| server_at(&found.address)).collect();
            found.sort_by_key(SharedServer::to_string);
            found.dedup();
            let used = tier.servers();
            if used.list.iter().map(|server| server.server()).ne(&found) {
                log(match found.len() {
                    1 => "1 server".to_owned(),
                    count => format!("{count} servers"),
                });
                tier.use_servers(&found, &used.list);
            }
        }
        Event::Emptied { .. } => log("it names no server; those that it named last stay".to_owned()),
        Event::Lost(loss) if !lost_for.contains(&loss.reason) => {
            lost_for.push(loss.reason);
            log(format!("lost: {loss}; the servers that it named last stay"));
        }
        Event::Lost(_) => {}
        Event::Back => {
            lost_for.clear();
            log("found again".to_owned());
        }
    };
    watch(source.clone(), &site.config.dns, Memory::default(), 0, heard).await;
}

/// The server at an address.
fn server_at(address: &Address) -> SharedServer {
    match address.endpoint() {
        Endpoint::Unix(path) => SharedServer::Unix(path.clone()),
        Endpoint::Tcp(host, port) => SharedServer::Tcp(Server { host: host.clone(), port: *port }),
    }
}

/// What was logged of a server.
#[derive(Debug, Default)]
struct Logged {
    state: LoggedState,
    /// The reasons since it was last used, each of which is logged once.
    reasons: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LoggedState {
    #[default]
    Used,
    Ejected,
    /// It answers, but its purge log cannot be used.
    Unusable,
}

/// The most reasons that are logged before a server is used again.
const MAX_REASONS: usize = 8;

/// Logs when the use of a server changes, or the reason why it is not used.
fn log_change(shared: &Shared, server: &TierServerState, logged: &mut BTreeMap<String, Logged>) {
    if let Some(line) = logged.entry(server.name.clone()).or_default().line(server) {
        shared.log(&line);
    }
}

impl Logged {
    /// The line about a server, if there is something new.
    fn line(&mut self, server: &TierServerState) -> Option<String> {
        let name = &server.name;
        let now = match server {
            TierServerState { is_ejected: true, .. } => LoggedState::Ejected,
            TierServerState { log_fault: true, .. } => LoggedState::Unusable,
            TierServerState { is_current: true, .. } => LoggedState::Used,
            _ => self.state,
        };
        let before = std::mem::replace(&mut self.state, now);
        if now == LoggedState::Used {
            self.reasons.clear();
            return (before != now).then(|| format!("shared tier: {name} is used again"));
        }
        let fault = server.fault.as_deref().or((before != now).then_some("it does not answer"))?;
        if self.reasons.len() >= MAX_REASONS || self.reasons.iter().any(|reason| reason == fault) {
            return None;
        }
        self.reasons.push(fault.to_owned());
        Some(match now {
            LoggedState::Ejected if before != now => {
                format!(
                    "shared tier: {name} is not used: {fault}. What it has is fetched from backends; it is tried again"
                )
            }
            LoggedState::Used | LoggedState::Ejected | LoggedState::Unusable => {
                format!("shared tier: {name} is not used: {fault}")
            }
        })
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
