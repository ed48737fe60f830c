//! Fetching of whole résumés: at first contact with a worker, and whenever what is known of it no longer follows.

use super::client::{Client, Question};
use crate::resume::{Unbelieved, named};
use crate::shared::Shared;
use crate::site::Site;
use crate::{Counter, Fault, SitePool};
use sandarac_balance::{Backend, BackendId, Disbelief, WorkerState};
use sandarac_net::Moment;
use sandarac_wire::resume::{self, Document};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long a worker may take to give its résumé. It is to answer without waiting for the application.
const PATIENCE: Duration = Duration::from_secs(10);

/// Résumés that are fetched at a time: each may take [`resume::MAX_DOCUMENT`] bytes of memory.
const AT_ONCE: usize = 4;

/// How long after a failure a worker is asked again: twice as long after each that follows, up to the second.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How often workers of a version that does not serve are asked: they get no requests that could tell of another one.
const LOOK: Duration = Duration::from_secs(1);

/// How many résumés of one worker are fetched in a row, and after what time each one more: several where it restarts or learns
/// much at once, and no more where it never means what it says.
const PACE: (u32, Duration) = (4, Duration::from_secs(1));

/// A worker of a pool, which is told by its place among the site's.
type Worker = (usize, BackendId);

/// Who is to be asked for a résumé, who is being asked, and who failed to give one.
struct Desk {
    shared: Arc<Shared>,
    site: Arc<Site>,
    client: Client,
    wanted: HashSet<Worker>,
    asked: HashSet<Worker>,
    failed: HashMap<Worker, Failure>,
    /// When those would be due that were asked at an even [`PACE`].
    paced: HashMap<Worker, Moment>,
    running: JoinSet<(Worker, bool)>,
}

struct Failure {
    times: u32,
    not_before: Moment,
}

/// Fetches résumés of the workers of `site`, for as long as it is polled.
pub(super) async fn run(shared: Arc<Shared>, site: Arc<Site>, client: Client) {
    let mut wants = shared.wants.receive().await;
    let mut desk = Desk {
        shared: shared.clone(),
        site: site.clone(),
        client,
        wanted: HashSet::new(),
        asked: HashSet::new(),
        failed: HashMap::new(),
        paced: HashMap::new(),
        running: JoinSet::new(),
    };
    let mut look = tokio::time::interval(LOOK);
    loop {
        desk.look_for_strangers();
        desk.start();
        tokio::select! {
            Some(worker) = wants.recv() => {
                desk.want(worker);
                while let Ok(worker) = wants.try_recv() {
                    desk.want(worker);
                }
            }
            () = site.members_changed() => {}
            Some(done) = desk.running.join_next() => {
                if let Ok((worker, well)) = done {
                    desk.done(worker, well);
                }
            }
            _ = look.tick() => desk.look_at_sidelined(),
        }
    }
}

impl Desk {
    /// Wants the résumés of workers of which nothing is known.
    fn look_for_strangers(&mut self) {
        for (place, pool) in self.site.pools().iter().enumerate() {
            let live = pool.live();
            let Some(resumes) = live.reported_resumes() else { continue };
            let strangers = live.ids().iter().filter(|&&id| resumes.known(id).is_none());
            let strangers: Vec<Worker> = strangers.map(|&id| (place, id)).collect();
            if !live.ids().is_empty() && strangers.iter().all(|worker| self.failed.contains_key(worker)) {
                pool.resumes_told();
            }
            self.wanted.extend(strangers);
        }
    }

    /// Wants the résumés of workers that are in no position to tell of a new version with a response.
    fn look_at_sidelined(&mut self) {
        for (place, pool) in self.site.pools().iter().enumerate() {
            let live = pool.live();
            if live.reported_resumes().is_some() {
                let sidelined =
                    live.ids().iter().zip(live.backends()).filter(|(_, backend)| backend.is_sidelined());
                self.wanted.extend(sidelined.map(|(&id, _)| (place, id)));
            }
        }
    }

    /// A response of the worker told of a résumé that is not known.
    fn want(&mut self, worker: Worker) {
        self.wanted.insert(worker);
        if !self.is_paced(worker, Moment::now()) {
            let (shared, live) = (&self.shared, self.site.pools()[worker.0].live());
            shared.unbelieved(shared.upkeep_counters(), &live, worker.1, Unbelieved::Unsettled);
        }
    }

    /// Whether the worker has not been asked more often than is good.
    fn is_paced(&self, worker: Worker, now: Moment) -> bool {
        self.paced.get(&worker).is_none_or(|&due| due < now.plus(PACE.1 * PACE.0))
    }

    fn start(&mut self) {
        let now = Moment::now();
        self.paced.retain(|_, due| *due > now);
        let due = |worker: &Worker, desk: &Desk| {
            !desk.asked.contains(worker)
                && desk.is_paced(*worker, now)
                && desk.failed.get(worker).is_none_or(|failure| now >= failure.not_before)
        };
        let due: Vec<Worker> = self.wanted.iter().copied().filter(|worker| due(worker, self)).collect();
        for worker in due.into_iter().take(AT_ONCE.saturating_sub(self.running.len())) {
            self.wanted.remove(&worker);
            self.asked.insert(worker);
            let due = self.paced.get(&worker).map_or(now, |&due| due.max(now)).plus(PACE.1);
            self.paced.insert(worker, due);
            let (shared, site, client) = (self.shared.clone(), self.site.clone(), self.client.clone());
            self.running.spawn_local(async move {
                let pool = &site.pools()[worker.0];
                (worker, fetch(&shared, pool, &client, worker.1).await)
            });
        }
        // Those who have to wait are wanted again when they are next heard of.
        self.wanted.retain(|worker| !self.failed.contains_key(worker) && !self.asked.contains(worker));
    }

    fn done(&mut self, worker: Worker, well: bool) {
        self.asked.remove(&worker);
        if well {
            self.failed.remove(&worker);
            return;
        }
        let times = self.failed.get(&worker).map_or(0, |failure| failure.times) + 1;
        let pause = AGAIN.0.saturating_mul(1 << (times - 1).min(16)).min(AGAIN.1);
        self.failed.insert(worker, Failure { times, not_before: Moment::now().plus(pause) });
        let gone = |&(place, id): &Worker| !self.site.pools()[place].live().ids().contains(&id);
        self.failed.retain(|worker, _| !gone(worker));
    }
}

/// Asks a worker for its résumé and takes it in. Whether that went well.
async fn fetch(shared: &Shared, pool: &SitePool, client: &Client, worker: BackendId) -> bool {
    let live = pool.live();
    let Some(address) = live.backend(worker).map(Backend::address) else { return true };
    let known = live.resumes().and_then(|resumes| resumes.known(worker));
    let etag = known.as_ref().map(|known| named(known).etag());
    let fields = etag.as_deref().map(|etag| (&b"If-None-Match"[..], etag));
    let question = Question {
        address,
        host: None,
        target: &resume::target(live.settings().resume.classifier),
        fields: fields.as_slice(),
        body: resume::MAX_DOCUMENT,
        patience: PATIENCE,
    };
    shared.upkeep_counters().one(Counter::ResumesFetched);
    let why = match client.get(&question).await {
        Ok(answer) if answer.status == 304 && known.is_some() => return true,
        Ok(answer) if answer.status == 200 => {
            let document = answer.body.as_deref().map_or(Err(resume::Malformed::TooLarge), Document::parse);
            match document {
                Ok(document) => return take(shared, pool, worker, &document),
                Err(why) => (Unbelieved::Malformed(why), why.to_string()),
            }
        }
        Ok(answer) => (Unbelieved::NoResume, format!("it answered {}", answer.status)),
        // Backends that are not there are another matter, and said elsewhere.
        Err(Fault::ConnectFailed(_) | Fault::ConnectLate | Fault::Unresolved) => return false,
        Err(fault) => (Unbelieved::NoResume, fault.text()),
    };
    shared.upkeep_counters().unbelieved.one(&why.0);
    shared.complain(|| {
        let (pool, why, text) = (live.name(), why.0, why.1);
        let advice = match why {
            Unbelieved::NoResume => format!(
                "; where workers keep none, [pool.{pool}.resume] skills = \"inferred\" goes by how long they take"
            ),
            _ => String::new(),
        };
        format!("pool {pool}: {address} gives no résumé that can be believed: {text}{advice}")
    });
    false
}

fn take(shared: &Shared, pool: &SitePool, worker: BackendId, document: &Document) -> bool {
    // The one in force now: backends may have come and gone meanwhile, and skills are the pool's that is there.
    let live = pool.live();
    let Some(resumes) = live.resumes() else { return true };
    let (instance, revision) = (document.instance.as_str(), document.revision);
    let taken = resumes.whole(worker, document.by, instance, revision, document.skills.iter());
    let counters = shared.upkeep_counters();
    match taken {
        Ok(believed) => {
            shared.passed_over(counters, &live, worker, &believed);
            let version = document.version.as_deref();
            let said = WorkerState { instance, revision, in_flight: None, version };
            resumes.heard(worker, &said, Moment::now().since(shared.epoch));
            true
        }
        Err(Disbelief::Outdated | Disbelief::Stranger) => true,
        Err(why) => {
            shared.unbelieved(counters, &live, worker, Unbelieved::Disbelief(why));
            false
        }
    }
}
