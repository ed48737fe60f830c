//! Commands of the admin interface to the running process.

use std::sync::Arc;
use std::time::Duration;

use sandarac_cache::{Expression, Purge as Kind, Tag};
use sandarac_message::caching::Profile;
use sandarac_message::civil::Civil;
use sandarac_proxy::{Purger, Selection, Shared};

use super::state::ProcessState;
use super::stats::stats;
use super::{pools, shared_tier, tls};
use crate::admin::{
    AddBackend, AskPools, AskShared, AskTls, Banned, CacheStatus, Control, DescriptorsStatus, DrainBackend,
    HoldingsStatus, Ordered, Pools, Purge, Purged, Refusal, Reloaded, RemoveBackend, SharedContent, State,
    Stats, Status, TlsStatus, Upgrade, Upgraded,
};
use crate::logs::{Filter, Subscription, Viewer};
use crate::panic_report;

/// How long a purge waits for the servers of the shared tier.
const PATIENCE: Duration = Duration::from_secs(1);

/// The process as the admin interface sees it.
pub(super) struct ProcessControl(pub(super) Arc<ProcessState>);

impl Control for ProcessControl {
    fn status(&self) -> Status {
        let state = &*self.0;
        let site = state.shared.site();
        let store = state.shared.store.stats();
        let draining_since = state.draining_since.get();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            state: if draining_since.is_some() { State::Draining } else { State::Running },
            started: Civil::of(state.started_at).rfc3339().to_string(),
            uptime_seconds: state.started.elapsed().as_secs(),
            draining_seconds: draining_since.map(|since| since.elapsed().as_secs()),
            config: state.args.as_ref().and_then(|args| Some(args.config.as_ref()?.display().to_string())),
            profile: match site.config.cache.profile {
                Profile::Safe => "safe",
                Profile::Rfc => "rfc",
            }
            .to_owned(),
            threads: state.cores.count() as u64,
            predecessors: state.predecessors(),
            listeners: state.listeners.lock().iter().map(|listener| listener.address.to_string()).collect(),
            admin: state.admin.lock().clone(),
            cache: CacheStatus {
                limit_bytes: store.limit,
                used_bytes: store.stored_bytes(),
                objects: store.objects,
            },
            holdings: holdings(&state.shared),
            panics: panic_report::counts(),
            shared: shared_tier::status(&state.shared),
            pools: pools::status(&state.shared),
        }
    }

    fn tls(&self, ask: &AskTls) -> TlsStatus {
        tls::status(&self.0.shared, &self.0.acme, ask)
    }

    fn stats(&self) -> Stats {
        stats(&self.0)
    }

    fn purge(&self, purge: &Purge) -> Result<Purged, Refusal> {
        let shared = &self.0.shared;
        let kind = if purge.soft { Kind::Soft } else { Kind::Hard };
        let mut selections = Vec::new();
        for url in &purge.urls {
            selections.push(Selection::of_url(url).ok_or_else(|| {
                let refusal = Refusal::invalid(format!("{url:?} is not an absolute URL"));
                refusal.instead("write it whole, as http://example.com/path")
            })?);
        }
        if !purge.tags.is_empty() {
            selections.push(Selection::Tags(purge.tags.iter().map(|tag| Tag::new(tag.as_bytes())).collect()));
        }
        if purge.all {
            selections.push(Selection::All);
        }
        let purged = self.forget(&selections, kind)?;
        let unreached = purged.wait();
        let files = purge.urls.iter().filter(|url| shared.is_answered_by_file(url)).cloned().collect();
        Ok(Purged { objects: purged.objects as u64, unreached, files })
    }

    fn ban(&self, expression: &str) -> Result<Banned, Refusal> {
        let parsed = Expression::parse(expression).map_err(|error| {
            Refusal::invalid(error.what.clone())
                .at(format!("column {} of the expression", error.at.start + 1))
                .instead(error.instead)
        })?;
        let shared = &self.0.shared;
        let unreached = self.forget(&[Selection::Matching(parsed)], Kind::Hard)?.wait();
        Ok(Banned { active: shared.store.stats().bans, unreached })
    }

    fn shared(&self, ask: &AskShared) -> Result<SharedContent, Refusal> {
        shared_tier::content(&self.0.shared, ask)
    }

    fn reload(&self) -> Result<Reloaded, Refusal> {
        self.0.reload()
    }

    fn upgrade(&self, order: &Upgrade) -> Result<Upgraded, Refusal> {
        self.0.upgrade(order)
    }

    fn pools(&self, ask: &AskPools) -> Result<Pools, Refusal> {
        pools::pools(&self.0.shared, ask)
    }

    fn add_backend(&self, order: &AddBackend) -> Result<Ordered, Refusal> {
        self.0.order(|| pools::add(&self.0.shared, order))
    }

    fn remove_backend(&self, order: &RemoveBackend) -> Result<Ordered, Refusal> {
        self.0.order(|| pools::remove(&self.0.shared, order))
    }

    fn drain_backend(&self, order: &DrainBackend) -> Result<Ordered, Refusal> {
        self.0.order(|| pools::drain(&self.0.shared, order))
    }

    fn subscribe(&self, viewer: Viewer, limit: u64, filter: Filter) -> Option<Subscription> {
        self.0.feed.subscribe(viewer, limit, filter)
    }
}
impl ProcessControl {
    /// Purges, unless what is stored is being written for the next process.
    fn forget(&self, selections: &[Selection], kind: Kind) -> Result<sandarac_proxy::Purged, Refusal> {
        let is_saving = self.0.is_saving.read();
        if *is_saving {
            return Err(Refusal::failed(
                "nothing is purged: this process is ending, and writes what it has stored",
            )
            .instead("purge again when the next one has started"));
        }
        Ok(Purger::of(&self.0.shared).purge(selections, kind, PATIENCE))
    }
}

/// Memory and descriptors that are held for clients.
fn holdings(shared: &Shared) -> HoldingsStatus {
    let (bytes, limit) = shared.held_in_all();
    let of = |(of, open, limit): (&str, usize, usize)| DescriptorsStatus {
        of: of.to_owned(),
        open: open as u64,
        limit: limit as u64,
    };
    HoldingsStatus {
        bytes: bytes as u64,
        limit_bytes: limit as u64,
        // Files have none where none are served.
        descriptors: shared.descriptors().into_iter().filter(|(_, _, limit)| *limit > 0).map(of).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;
    use sandarac_config::Config;

    /// Regression: what was purged while a snapshot was written came back with it.
    #[test]
    fn nothing_is_purged_while_a_snapshot_is_written() {
        let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nanswer = { status = 200 }\n";
        let (config, _) = Config::from_toml("test.toml", text).unwrap();
        let process = Process::start(config, None).unwrap();
        let control = ProcessControl(process.state.clone());
        let everything = Purge { all: true, ..Purge::default() };
        control.purge(&everything).unwrap();
        control.ban("status == 404").unwrap();
        *process.state.is_saving.write() = true;
        for refused in [control.purge(&everything).map(drop), control.ban("status == 404").map(drop)] {
            assert!(refused.unwrap_err().to_string().contains("this process is ending"));
        }
    }
}
