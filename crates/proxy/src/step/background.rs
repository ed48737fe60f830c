//! Revalidation with no client waiting: the stale response was served already.

use crate::Counter;
use crate::forward::{Asker, Forward, Purpose};
use crate::handling::Handling;
use crate::record::Outcome;
use crate::site::LocalSite;
use crate::step::fetch::{Errand, Surroundings, fetch};
use crate::step::hash;
use crate::step::lookup::single_range;
use crate::step::receive::Received;
use crate::step::store::{EditsForTarget, Landed, Landing};
use crate::worker::Worker;
use sandarac_cache::Flight;
use sandarac_config::{PoolId, RouteId, Subject};
use sandarac_message::caching::RequestDirectives;
use sandarac_message::target::Target;
use sandarac_message::{Method, RequestHead, RequestHeadBuf};
use sandarac_wire::h1::BodyFraming;
use std::rc::Rc;

/// A request made again for the store's sake. Outlives the exchange that found the stale response.
struct Revalidation {
    worker: Rc<Worker>,
    site: LocalSite,
    request: RequestHeadBuf,
    host: Box<[u8]>,
    asker: Asker<'static>,
    route: RouteId,
    pool: PoolId,
    flight: Flight,
}

/// Starts to validate the flight's candidate, in a task of its own.
pub(crate) fn revalidate(
    worker: &Worker,
    site: &LocalSite,
    request: &RequestHead<'_>,
    received: &Received<'_>,
    pool: PoolId,
    flight: Flight,
) {
    let Some(worker) = worker.me.upgrade() else { return };
    let mut request = RequestHeadBuf::copy_of(request);
    request.method = Method::Get;
    request.method_text = b"GET"[..].into();
    let revalidation = Revalidation {
        worker,
        site: site.clone(),
        request,
        host: (*received.host).into(),
        asker: received.asker.asking(b""),
        route: received.route_id,
        pool,
        flight,
    };
    tokio::task::spawn_local(revalidation.run());
}

impl Revalidation {
    async fn run(self) {
        let Revalidation { worker, site, flight, .. } = self;
        let (worker, site) = (&worker, &site);
        let route = &site.config.routes[self.route];
        let Some(rule) = route.cache_rule() else { return };
        let request = self.request.view();
        let Ok(target) = Target::of(&request) else { return };
        let path = hash::target(&rule.key, target.path_and_query);
        flight.aim(hash::target_tag(&rule.key, &self.host, &path));
        worker.counters.one(Counter::FetchesBackground);
        let transaction = worker.transaction();
        let id = worker.shared.request_id(&route.request, None, transaction).unwrap_or_default();
        let forward = Forward {
            request,
            asker: self.asker.asking(&self.host),
            introduction: &site.introduction,
            edits: &route.request,
            id: &id,
            target: &path,
            sticky: site.pool_by_id(self.pool).sticky.as_ref(),
            framing: BodyFraming::None,
            expect_continue: false,
            trailers: false,
            purpose: Purpose::Fill {
                rule,
                candidate: flight.candidate().map(|object| &**object),
                part: None,
            },
        };
        let Ok(head) = forward.encode() else { return };
        let live = site.pool_by_id(self.pool).live();
        let subject = Subject {
            host: &self.host,
            method: request.method_text,
            target: target.path_and_query,
            fields: request.fields,
        };
        let mut class = Vec::new();
        let class = live.classify(subject, &mut class, &worker.counters);
        let around = Surroundings { worker, site, pool: self.pool, live: &live, class, sticks_to: None };
        let errand = Errand {
            method: Method::Get,
            head: &head,
            tunnel: false,
            one_client: false,
            framing: BodyFraming::None,
            edits: &route.response,
        };
        let Ok(arrived) = fetch(&around, &errand, None).await else {
            // The stale response goes on being served while its lifetimes allow it.
            flight.fail();
            return;
        };
        let landing = Landing {
            store: &worker.shared.store,
            site,
            counters: &worker.counters,
            request: &request,
            wanted: single_range(&request),
            host: &self.host,
            path: &path,
            rule,
            edits: EditsForTarget { edits: &route.response, host: &self.host, target: &path },
            directives: RequestDirectives::default(),
            between_bytes: around.pool().timeouts.between_bytes,
            transaction,
        };
        let mut handling = Handling::new(Outcome::Miss);
        if let Ok(Landed::Relay(arrived)) = landing.land(flight, arrived, &mut handling) {
            arrived.link.close();
        }
    }
}
