//! Fetching of whole résumés: at first contact with a worker, and whenever what is known of it no longer follows.

use super::client::{Client, Question};
use crate::resume::{Unbelieved, named};
use crate::shared::Shared;
use crate::site::Site;
use crate::{Counter, Fault, SitePool};
use sandarac_balance::{Backend, BackendId, Disbelief, WorkerState};
use sandarac_message::Name;
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
        running: JoinSet::new(),
    };
    loop {
        desk.look_for_strangers();
        desk.start();
        tokio::select! {
            want = wants.recv() => desk.wanted.extend(want),
            () = site.members_changed() => {}
            Some(done) = desk.running.join_next() => {
                if let Ok((worker, well)) = done {
                    desk.done(worker, well);
                }
            }
            () = tokio::time::sleep(AGAIN.0) => {}
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

    fn start(&mut self) {
        let now = Moment::now();
        let due = |worker: &Worker, desk: &Desk| {
            !desk.asked.contains(worker)
                && desk.failed.get(worker).is_none_or(|failure| now >= failure.not_before)
        };
        let due: Vec<Worker> = self.wanted.iter().copied().filter(|worker| due(worker, self)).collect();
        for worker in due.into_iter().take(AT_ONCE.saturating_sub(self.running.len())) {
            self.wanted.remove(&worker);
            self.asked.insert(worker);
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
        Ok(answer) if answer.status == 304 => return true,
        Ok(answer) if answer.status == 200 => {
            let json = answer.fields.view().get(Name::ContentType).is_some();
            let document = match &answer.body {
                Some(body) if json => Document::parse(body),
                Some(_) => Err(resume::Malformed::Syntax),
                None => Err(resume::Malformed::TooLarge),
            };
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
        format!(
            "pool {}: {address} gives no résumé: {}; where workers keep none, [pool.{0}.resume] skills = \"inferred\" \
             goes by how long they take",
            live.name(),
            why.1
        )
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
