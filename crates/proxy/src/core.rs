//! The state of one core: what its sessions and exchanges share.

use crate::origin::Origins;
use crate::report::log_throttle::LogTopic;
use crate::report::record::Recorder;
use crate::shared::Shared;
use crate::site::{LocalSite, Site};
use crate::tier::Links;
use crate::{Counters, Record};
use sandarac_message::{Fields, Span};
use sandarac_net::{PanicPart, Peer};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

/// How often idle origin connections are examined.
const PRUNE_EVERY: Duration = Duration::from_secs(1);

/// One core's part of the proxy.
pub struct Core {
    pub(crate) shared: Arc<Shared>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) origins: Rc<Origins>,
    /// The connections to the servers of the shared tier.
    pub(crate) tier_links: Links,
    pub(crate) recorder: Box<dyn Recorder>,
    me: Weak<Core>,
    /// Memory for parsing response heads, reused for each of them.
    pub(crate) spans: Cell<Vec<Span>>,
    /// The next transaction number. Numbers are interleaved among the cores.
    next: Cell<u64>,
    site: RefCell<LocalSite>,
    /// The generation of that configuration.
    generation: Cell<u64>,
}

impl Core {
    /// The part that belongs to core `index` of a process. MUST be called within its runtime.
    pub fn new(shared: Arc<Shared>, index: usize, recorder: Box<dyn Recorder>) -> Rc<Core> {
        let core = Rc::new_cyclic(|me| Core {
            counters: shared.counters[index].clone(),
            origins: Origins::new(
                &shared.site().config.dns,
                shared.counters[index].clone(),
                shared.backend_places.clone(),
            ),
            tier_links: Links::default(),
            recorder,
            me: me.clone(),
            spans: Cell::default(),
            next: Cell::new(index as u64),
            // Read before the configuration, so that a later change is noticed.
            generation: Cell::new(shared.generation()),
            site: RefCell::new(LocalSite::new(shared.site(), &shared.file_places, shared.cores())),
            shared,
        });
        sandarac_net::spawn(PanicPart::Origin, || prune(core.me.clone()));
        core
    }

    /// A reference to this core, for tasks that may outlive their caller.
    pub(crate) fn handle(&self) -> Rc<Core> {
        self.me.upgrade().expect("a core is made in an Rc, and is there while it is borrowed")
    }

    /// A number for a request or a fetch, unique in the process.
    pub(crate) fn transaction(&self) -> u64 {
        let number = self.next.get();
        // One set of counters is the upkeep's; its numbers are not used.
        self.next.set(number + self.shared.counters.len() as u64);
        number
    }

    /// The configuration in force.
    pub(crate) fn site(&self) -> LocalSite {
        let generation = self.shared.generation();
        if self.generation.replace(generation) != generation {
            let places = &self.shared.file_places;
            self.site.replace(LocalSite::new(self.shared.site(), places, self.shared.cores()));
            self.origins.ask_from(&self.site.borrow().config.dns);
        }
        self.site.borrow().clone()
    }

    /// Passes a record of `site` to the recorder, with the client's properties from connection and request.
    pub(crate) fn record(&self, site: &Site, peer: &Peer, request: Fields<'_>, record: &Record<'_>) {
        let client = site.visitor(peer, request);
        let tls = peer.tls.as_deref();
        self.recorder.record(&Record { session: peer.number, client, tls, ..*record });
    }
}

/// Closes expired idle origin connections, and logs what went wrong off the cores, for as long as the core
/// exists.
async fn prune(core: Weak<Core>) {
    loop {
        sandarac_net::sleep(PRUNE_EVERY).await;
        let Some(core) = core.upgrade() else { return };
        let site = core.site();
        let now = core.shared.epoch.elapsed();
        site.pools.iter().for_each(|pool| pool.live().look_for_silence(now));
        let longest = site.pools.iter().map(|pool| pool.timeouts.idle).max().unwrap_or_default();
        core.origins.prune(longest);
        for idle in site
            .pools
            .iter()
            .filter_map(|pool| Some((pool.application.as_ref()?.idle.as_ref()?, &pool.timeouts)))
        {
            let (idle, timeouts) = idle;
            idle.prune(timeouts.idle, &core.counters);
        }
        core.tier_links.prune(site.tier.as_deref());
        if let Some(why) = core.shared.spool.take_trouble() {
            core.shared.log_throttled(LogTopic::Spool, || {
                format!("bodies for slow clients cannot wait in files, so they wait for their clients: {why}")
            });
        }
    }
}
