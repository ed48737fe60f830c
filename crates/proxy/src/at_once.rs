//! Answers that need nothing but memory: a stored response, a file, an answer of a route.

use crate::core::Core;
use crate::files::{FileRequest, Found};
use crate::outgoing::{Begun, Outgoing, Terms};
use crate::recode::{self, KnownForm};
use crate::report::handling::{Course, Handling};
use crate::report::tally::StatusClass;
use crate::request::client_request::ClientRequest;
use crate::request::received::Received;
use crate::request::{hash, query};
use crate::respond::Synthetic;
use crate::site::LocalSite;
use crate::step::apart::{Fitness, fitness};
use crate::step::assemble::may_be_page;
use crate::step::decide::Decided;
use crate::step::deliver::Delivery;
use crate::step::files::{self, without_file};
use crate::step::receive::Verdict;
use crate::step::shared_fetch::revalidate;
use crate::{Counter, Fault, Record};
use sandarac_cache::{Intent, Key, Lookup};
use sandarac_message::accel::names_file;
use sandarac_message::{RequestHead, Timestamp};
use sandarac_net::{Peer, Request, Responder, wall, wall_fine};
use sandarac_policy::{Action, PoolId};

/// A response of at most so many bytes is answered in place, and logged as sent when it is queued.
const AT_ONCE: u64 = 2 << 20;

/// A request that can be answered at once.
pub(crate) struct Known<'a> {
    pub(crate) core: &'a Core,
    pub(crate) site: &'a LocalSite,
    pub(crate) peer: &'a Peer,
    pub(crate) request: &'a Request<'a>,
    /// The transaction number of the client's request, if this one is for a fragment of its page.
    pub(crate) page: Option<u64>,
}

impl Known<'_> {
    /// Answers with a file or from the store, if that can be done at once. Otherwise returns the result of
    /// the lookup, if there was one.
    pub(crate) fn answer(
        &self,
        received: &Received<'_>,
        decided: &mut Decided<'_>,
        client: &mut impl Responder,
    ) -> Result<(), Option<(Key, Lookup)>> {
        let Decided { request, verdict } = decided;
        if let Ok(Verdict::Files) = verdict {
            match self.file(received, client) {
                Ok(()) => return Ok(()),
                Err(otherwise) => *verdict = otherwise,
            }
        }
        match *verdict {
            Ok(Verdict::Lookup(pool)) => self.stored(request, received, pool, false, client),
            Ok(Verdict::Apart(pool, _)) => self.stored(request, received, pool, true, client),
            _ => Err(None),
        }
    }

    /// Answers from the store if the object is there whole. Otherwise returns the result of the lookup.
    /// Apart, a request fetches nothing for others, and only some of what is stored answers it.
    fn stored(
        &self,
        request: &ClientRequest<'_>,
        received: &Received<'_>,
        pool: PoolId,
        is_apart: bool,
        client: &mut impl Responder,
    ) -> Result<(), Option<(Key, Lookup)>> {
        let Known { core, site, .. } = *self;
        let rule = received.route.cache_rule().ok_or(None)?;
        let (head, now) = (&request.view(), wall());
        let directives = rule.policy.directives(head.fields);
        let path = received.target.path_and_query;
        let key = hash::key(&rule.key, received.requester.scheme, &received.host, path, head.fields);
        let mut query = query::query(head, rule, &directives);
        if is_apart {
            query.intent = Intent::Peek;
        }
        let (object, flight, course) = match core.shared.store.lookup(key, &query, now) {
            Lookup::Hit(object) if object.body().is_whole() => (object, None, Course::Hit),
            Lookup::Stale(object, flight) if object.body().is_whole() && !is_apart => {
                (object, flight, Course::Stale)
            }
            other => return Err(Some((key, other))),
        };
        let form = received.route.compress.as_deref().map(|rule| recode::known(rule, head.fields, &object));
        let mut handling = Handling::new(course);
        let takes_exchange = fitness(&object, head.fields, rule, is_apart) != Fitness::Fits
            || request.is_made_whole() && object.fields().iter().any(|field| names_file(&field))
            || received.route.fragments.is_some_and(|rule| may_be_page(rule, &object))
            || matches!(form, Some(KnownForm::Unmade))
            || object.body().len().is_some_and(|len| len > AT_ONCE)
            || !handling.reuse(&object, &directives, now);
        if takes_exchange {
            let found =
                if course == Course::Hit { Lookup::Hit(object) } else { Lookup::Stale(object, flight) };
            return Err(Some((key, found)));
        }
        if let Some(flight) = flight {
            revalidate(core, site, head, received, pool, flight);
        }
        let (object, original) = match form {
            None | Some(KnownForm::Unmade) => (object, None),
            Some(KnownForm::Recoded(recoded)) => (recoded, Some(object)),
            Some(KnownForm::AsItCame(reason)) => {
                handling.uncompressed = reason;
                reason.iter().for_each(|reason| core.counters.uncompressed.one(reason));
                (object, None)
            }
        };
        let (transaction, age) = (object.transaction(), handling.age(&object, None, now));
        let delivery = Delivery {
            store: &core.shared.store,
            object,
            original,
            recoded: None,
            reader: None,
            own: None,
            trailers: None,
        };
        let terms = self.terms(head, received, &handling, now);
        let begun = delivery.begin(age, |outgoing| begin(&terms, outgoing, client));
        let (status, body) = begun.expect("a whole body can be read");
        let bytes = body.map_or(0, |body| client.send(body));
        self.answered(&handling, Some(transaction), status, bytes);
        Ok(())
    }

    /// Answers with a file, if that does not wait. Otherwise returns what is to be done.
    fn file(
        &self,
        received: &Received<'_>,
        client: &mut impl Responder,
    ) -> Result<(), Result<Verdict, Fault>> {
        let Known { site, request: Request { head, .. }, .. } = *self;
        let Action::Files { rule, .. } = &received.route.action else { return Err(Ok(Verdict::Files)) };
        let file = match FileRequest::of(site, rule, received).known() {
            Some(Found::File(file)) if file.len() <= AT_ONCE => file,
            Some(Found::File(_) | Found::Listing(_)) | None => return Err(Ok(Verdict::Files)),
            Some(Found::Redirect(answer)) => return Err(Ok(Verdict::Synth(Box::new(answer)))),
            Some(Found::Nothing(refusal)) => {
                let otherwise = without_file(received, head, refusal);
                // An exchange sends the page of the route.
                let has_page = otherwise.is_err() && refusal.status() == 404 && rule.not_found.is_some();
                return Err(if has_page { Ok(Verdict::Files) } else { otherwise });
            }
        };
        let now = wall();
        let handling = files::handling();
        let chosen = file.choose(head.fields);
        let terms = self.terms(head, received, &handling, now);
        let Begun { status, body } = begin(&terms, &mut chosen.outgoing(now), client);
        let bytes = chosen.body(body).map_or(0, |body| client.send(body));
        self.answered(&handling, None, status, bytes);
        Ok(())
    }

    /// Sends a fixed answer.
    pub(crate) fn fixed(&self, answer: &Synthetic, hsts: Option<&[u8]>, client: &mut impl Responder) {
        let now = wall();
        let terms = Terms { request: &self.request.head, now, hsts, cache_status: None };
        let begun = begin(&terms, &mut answer.outgoing(), client);
        if let Some(body) = answer.body(begun.body) {
            client.send(body);
        }
        self.answered(&Handling::new(Course::Synth), None, answer.status, answer.body.len() as u64);
    }

    /// The terms of a response to the request.
    fn terms<'t>(
        &'t self,
        request: &'t RequestHead<'t>,
        received: &Received<'t>,
        handling: &Handling,
        now: Timestamp,
    ) -> Terms<'t> {
        let hsts = self.site.hsts(self.peer, received.requester.scheme, received.route);
        Terms { request, now, hsts, cache_status: self.site.reported(handling) }
    }

    /// Counts and records the response.
    fn answered(&self, handling: &Handling, fetch: Option<u64>, status: u16, bytes: u64) {
        let Known { core, site, peer, request, page } = *self;
        core.counters.one(Counter::Requests);
        core.counters.course(handling.course);
        let duration = request.began.elapsed();
        core.counters.responses.one(&StatusClass(status));
        core.counters.latency.observe(duration);
        if core.recorder.wants() {
            core.record(
                site,
                peer,
                request.head.fields,
                &Record {
                    request: core.transaction(),
                    fetch,
                    page,
                    status,
                    bytes,
                    outcome: handling.course.outcome(),
                    duration,
                    first_byte: Some(duration),
                    ..Record::of(&request.head, wall_fine().minus(duration))
                },
            );
        }
    }
}

/// Begins a response.
pub(crate) fn begin(terms: &Terms<'_>, outgoing: &mut Outgoing<'_>, client: &mut impl Responder) -> Begun {
    outgoing.begin(terms, |response| client.begin(response))
}
