//! Fetching of whole résumés: at first contact with a worker, and whenever an update does not follow the
//! known one.

use super::client::{Question, UpkeepClient};
use super::resume_schedule::{FetchOutcome, ResumeSchedule, Worker};
use crate::report::log_throttle::LogTopic;
use crate::report::unbelieved::Unbelieved;
use crate::resume::named;
use crate::shared::Shared;
use crate::site::Site;
use crate::{Counter, Fault, SitePool};
use sandarac_balance::{Backend, BackendId, Disbelief, WorkerState};
use sandarac_net::Moment;
use sandarac_wire::resume::{self, Document};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// The time limit of a résumé fetch. A worker is to respond without waiting for the application.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Concurrent fetches: each may take [`resume::MAX_DOCUMENT`] bytes of memory.
const MAX_FETCHES: usize = 4;

/// How often workers of a version that does not serve are asked. They get no requests, whose responses could
/// report a new version.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Fetches the résumés that are due in the [`ResumeSchedule`].
struct Fetcher {
    shared: Arc<Shared>,
    site: Arc<Site>,
    client: UpkeepClient,
    schedule: ResumeSchedule,
    running: JoinSet<(Worker, FetchOutcome)>,
}

/// Fetches résumés of the workers of `site`, for as long as it is polled.
pub(super) async fn run(shared: Arc<Shared>, site: Arc<Site>, client: UpkeepClient) {
    let mut wanted = shared.upkeep_mailbox.resumes().await;
    let mut fetcher = Fetcher {
        shared: shared.clone(),
        site: site.clone(),
        client,
        schedule: ResumeSchedule::default(),
        running: JoinSet::new(),
    };
    let mut look = tokio::time::interval(POLL_INTERVAL);
    loop {
        fetcher.look_for_strangers();
        fetcher.start();
        tokio::select! {
            Some(worker) = wanted.recv() => {
                fetcher.announced(worker);
                while let Ok(worker) = wanted.try_recv() {
                    fetcher.announced(worker);
                }
            }
            () = site.members_changed() => {}
            Some(done) = fetcher.running.join_next() => {
                if let Ok((worker, outcome)) = done {
                    fetcher.done(worker, outcome);
                }
            }
            _ = look.tick() => fetcher.look_at_sidelined(),
        }
    }
}

impl Fetcher {
    /// Requests the résumés of unknown workers.
    fn look_for_strangers(&mut self) {
        for (place, pool) in self.site.pools().iter().enumerate() {
            let live = pool.live();
            let Some(resumes) = live.reported_resumes() else { continue };
            let strangers = live.ids().iter().filter(|&&id| resumes.known(id).is_none());
            let strangers: Vec<Worker> = strangers.map(|&id| (place, id)).collect();
            if !live.ids().is_empty() && strangers.iter().all(|worker| self.schedule.failed(worker)) {
                pool.resumes_told();
            }
            strangers.into_iter().for_each(|worker| self.schedule.want(worker));
        }
    }

    /// Requests the résumés of workers that get no requests, and so cannot report a new version in a
    /// response.
    fn look_at_sidelined(&mut self) {
        for (place, pool) in self.site.pools().iter().enumerate() {
            let live = pool.live();
            if live.reported_resumes().is_some() {
                let sidelined =
                    live.ids().iter().zip(live.backends()).filter(|(_, backend)| backend.is_sidelined());
                sidelined.for_each(|(&id, _)| self.schedule.want((place, id)));
            }
        }
    }

    /// Handles a response of the worker that announces an unknown résumé.
    fn announced(&mut self, worker: Worker) {
        if !self.schedule.announced(worker, Moment::now()) {
            let (shared, live) = (&self.shared, self.site.pools()[worker.0].live());
            shared.unbelieved(shared.upkeep_counters(), &live, worker.1, Unbelieved::Unsettled);
        }
    }

    fn start(&mut self) {
        for worker in self.schedule.due(MAX_FETCHES, Moment::now()) {
            let (shared, site, client) = (self.shared.clone(), self.site.clone(), self.client.clone());
            self.running.spawn_local(async move {
                let pool = &site.pools()[worker.0];
                (worker, fetch(&shared, pool, &client, worker.1).await)
            });
        }
    }

    fn done(&mut self, worker: Worker, outcome: FetchOutcome) {
        let pools = self.site.pools();
        if outcome != FetchOutcome::Known
            && let Some(resumes) = pools[worker.0].live().resumes()
        {
            resumes.doubt(worker.1);
        }
        self.schedule.done(worker, outcome, Moment::now());
        self.schedule.retain(|&(place, id)| pools[place].live().ids().contains(&id));
    }
}

/// Fetches a worker's résumé and stores it in the pool.
async fn fetch(shared: &Shared, pool: &SitePool, client: &UpkeepClient, worker: BackendId) -> FetchOutcome {
    let live = pool.live();
    let Some(address) = live.backend(worker).map(Backend::address) else { return FetchOutcome::Known };
    let known = live.resumes().and_then(|resumes| resumes.known(worker));
    let etag = known.as_ref().map(|known| named(known).etag());
    let fields = etag.as_deref().map(|etag| (&b"If-None-Match"[..], etag));
    let question = Question {
        address,
        tls: pool.tls.as_ref(),
        host: None,
        target: &resume::target(live.settings().resume.classifier),
        fields: fields.as_slice(),
        body: resume::MAX_DOCUMENT,
        patience: FETCH_TIMEOUT,
    };
    shared.upkeep_counters().one(Counter::ResumesFetched);
    let since = shared.epoch.elapsed();
    let (outcome, why) = match client.get(&question).await {
        Ok(answer) if answer.status == 304 && known.is_some() => return FetchOutcome::Known,
        Ok(answer) if answer.lacked_room => {
            let what = "there is no memory for it while clients hold as much as they may";
            (FetchOutcome::Unavailable, (Unbelieved::NoResume, what.to_owned()))
        }
        Ok(answer) if answer.status == 200 => {
            let document = answer.body.as_deref().map_or(Err(resume::Malformed::TooLarge), Document::parse);
            match document {
                Ok(document) => return take(shared, pool, worker, &document, since),
                Err(why) => (FetchOutcome::Unusable, (Unbelieved::Malformed(why), why.to_string())),
            }
        }
        Ok(answer) => {
            (FetchOutcome::Unavailable, (Unbelieved::NoResume, format!("it answered {}", answer.status)))
        }
        // Absent backends are logged elsewhere.
        Err(
            Fault::ConnectFailed(_)
            | Fault::TlsFailed(_)
            | Fault::NoDescriptors
            | Fault::ConnectLate
            | Fault::Unresolved,
        ) => {
            return FetchOutcome::Unavailable;
        }
        Err(fault) => (FetchOutcome::Unusable, (Unbelieved::NoResume, fault.log_text())),
    };
    shared.upkeep_counters().unbelieved.one(&why.0);
    shared.log_throttled(LogTopic::Worker(live.name().into(), worker, why.0.name()), || {
        let (pool, why, text) = (live.name(), why.0, why.1);
        let advice = match why {
            Unbelieved::NoResume => format!(
                "; if workers keep none, [pool.{pool}.resume] skills = \"inferred\" goes by response times"
            ),
            _ => String::new(),
        };
        format!("pool {pool}: no usable résumé from {address}: {text}{advice}")
    });
    outcome
}

/// `since` is the time before the request, on the balancer's clock.
fn take(
    shared: &Shared,
    pool: &SitePool,
    worker: BackendId,
    document: &Document,
    since: Duration,
) -> FetchOutcome {
    // The pool in force now, because backends may have changed meanwhile and skills belong to the current
    // pool.
    let live = pool.live();
    let Some(resumes) = live.resumes() else { return FetchOutcome::Known };
    let (instance, revision) = (document.instance.as_str(), document.revision);
    let taken = resumes.whole(worker, document.by, instance, revision, document.skills.iter());
    let counters = shared.upkeep_counters();
    match taken {
        Ok(believed) => {
            shared.passed_over(counters, &live, worker, &believed);
            let version = document.version.as_deref();
            let said = WorkerState { instance, revision, version, ..WorkerState::default() };
            resumes.met(worker, &said, since, shared.epoch.elapsed());
            FetchOutcome::Known
        }
        Err(Disbelief::Outdated | Disbelief::Stranger) => FetchOutcome::Known,
        Err(why) => {
            shared.unbelieved(counters, &live, worker, Unbelieved::Disbelief(why));
            FetchOutcome::Unusable
        }
    }
}
