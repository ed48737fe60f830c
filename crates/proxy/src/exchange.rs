//! One request from receipt to record: the steps in their order, and the ways between them.
//!
//! ```text
//! receive ─ hash ─ lookup ┬ hit ───────────────────────────────┬ deliver ─ record
//!    │                    ├ wait ─ (hit, or the lead of a miss)│
//!    │                    └ miss ─ fetch ─ store ──────────────┤
//!    ├ pass ──────────────────── fetch ─ (invalidate) ─ relay ─┤
//!    ├ pipe ────────────────────────────────────────────────── ┤
//!    └ synth, purge ───────────────────────────────────────────┘
//! ```
//!
//! A request that can be answered from memory at once never gets here: see [`crate::worker`].

use crate::downstream::Downstream;
use crate::forward::{Purpose, is_for_all};
use crate::handling::{Detail, Handling, StandIn};
use crate::record::Outcome;
use crate::respond::Synthetic;
use crate::site::{LocalSite, Site};
use crate::step::deliver::{self, Delivery};
use crate::step::fetch::{Audience, Fetch, FetchTrace, OriginResponse, Recipient, address};
use crate::step::hash;
use crate::step::receive::{Judged, PassReason, Received, RequestFacts, Verdict};
use crate::step::relay::{Encoding, Relay, Relayed};
use crate::step::shared_fetch::{Answer, Fetched, SharedFetch, revalidate};
use crate::step::store::{Landed, add_date};
use crate::step::{lookup, pipe, purge, stream};
use crate::sticky;
use crate::tally::{MissReason, StatusClass};
use crate::trailers::TrailerRule;
use crate::worker::{Deferred, Worker};
use crate::{Counter, Fault};
use sandarac_cache::{Flight, Key, Lookup, Mark, Object, Reader, Waited};
use sandarac_message::caching::{BypassReason, RequestDirectives};
use sandarac_message::status_fields::Forward as Forwarded;
use sandarac_message::{FieldsBuf, Method, Name, RequestHead, RequestHeadBuf, Version, hop, tags};
use sandarac_net::{Client, Framer, Incoming, Next, Output, discard, wall};
use sandarac_policy::{CacheRule, PoolId, ResponseEdits};
use sandarac_wire::h1::{BodyFraming, encode};
use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// How often a request is looked up: each time after the first, what it waited for was not for it.
const TURNS: usize = 8;

/// How many of those who wait for a fetch try for themselves at once when a second one has brought no answer. The others
/// wait for one of them: an origin that may be dying is not asked by a whole crowd at once, and none waits long.
pub(crate) const RELEASED: usize = 16;

/// How often a request may have passed this proxy already: no deployment has more tiers of one name.
const PASSES: usize = 5;

/// How far origins and stored bodies are read ahead of a slow client, in bytes.
pub(crate) const WINDOW: usize = 1 << 20;

/// The rest of a request body that is read to keep a connection, in bytes, and for how long.
const DISCARD: u64 = 64 * 1024;
const DISCARD_FOR: Duration = Duration::from_secs(1);

/// What the log calls a request whose client left before its response began. No client receives it. nginx introduced it.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// One exchange.
pub(crate) struct Exchange<'e> {
    pub(crate) worker: &'e Worker,
    pub(crate) site: &'e LocalSite,
    /// The head of the request, and a view of it.
    head: &'e Rc<RequestHeadBuf>,
    pub(crate) request: RequestHead<'e>,
    pub(crate) keep_alive: bool,
    expect_continue: bool,
    pub(crate) handling: Handling,
    pub(crate) transaction: u64,
    /// What is known of the fetch, if there was one.
    pub(crate) trace: FetchTrace,
    /// Why a stale response stands in for that of the origin.
    origin_fault: Option<String>,
    /// Whether the outcome has been counted.
    counted: Cell<bool>,
    /// The edits of the response's fields.
    edits: Option<&'e ResponseEdits>,
}

/// What was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) status: u16,
    pub(crate) bytes: u64,
    /// Whether the connection can serve another request.
    pub(crate) keep_alive: bool,
    /// Whether it broke off where nothing but the way the connection ends can tell: the end of the body was to be that of the
    /// connection.
    pub(crate) cut: bool,
}

impl Sent {
    fn nothing() -> Sent {
        Sent { status: 0, bytes: 0, keep_alive: false, cut: false }
    }
}

/// Serves a request that could not be answered from memory at once.
pub(crate) async fn run(worker: &Worker, client: &mut Client, incoming: Box<Incoming<Deferred>>) -> Next {
    let Incoming { head, body, keep_alive, expect_continue, began, deferred } = *incoming;
    let Deferred { site, judged, found } = deferred;
    let transaction = worker.transaction();
    // A fetch for the store may outlive the exchange, and keeps the head with it.
    let head = Rc::new(head);
    let mut exchange = Exchange {
        worker,
        site: &site,
        head: &head,
        request: head.view(),
        keep_alive,
        expect_continue,
        handling: Handling::new(Outcome::Error),
        transaction,
        trace: FetchTrace::default(),
        origin_fault: None,
        counted: Cell::new(false),
        edits: None,
    };
    worker.counters.one(Counter::Requests);
    let (limits, hurry) = (&site.session, &worker.shared.hurry);
    let mut down =
        Downstream::new(client, limits, hurry, head.version, body, site.body_limit, expect_continue);
    down.is_logged = worker.recorder.wants();
    let (sent, fault) = match exchange.steps(&mut down, judged, found).await {
        Ok(sent) => (sent, None),
        // After a response has begun there is nothing to say.
        Err(fault) if exchange.counted.get() => (Sent::nothing(), Some(fault)),
        Err(fault) => {
            exchange.handling.outcome = Outcome::Error;
            exchange.handling.detail = Some(Detail::Fault(fault));
            exchange.count(Some(&fault));
            if fault == Fault::ClientGone {
                (Sent::nothing(), Some(fault))
            } else {
                // Nobody reads the rest of a body that was part of the fault.
                exchange.keep_alive &= down.is_uploaded();
                let answer = Synthetic::fault(&fault, site.name());
                (exchange.synth(&mut down, answer).await, Some(fault))
            }
        }
    };
    exchange.count(None);
    let uploaded = down.is_uploaded();
    let first_byte = down.answered.map(|answered| answered.duration_since(began));
    let left = down.left || fault == Some(Fault::ClientGone) && down.answered.is_none();
    let status = if left { CLIENT_CLOSED_REQUEST } else { sent.status };
    let mut rest: Framer = down.into_body();
    exchange.record(client, Sent { status, ..sent }, fault.as_ref(), began, first_byte);
    if sent.cut {
        return Next::Reset;
    }
    match (sent.keep_alive, uploaded) {
        (false, true) => Next::Close,
        (true, true) => Next::KeepAlive,
        // A client that waits for 100 (Continue) may send another request instead of the body.
        (true, false) if !expect_continue && discard(client, &mut rest, DISCARD, DISCARD_FOR).await => {
            Next::KeepAlive
        }
        (_, false) => Next::CloseLingering,
    }
}

/// Whether a request has passed this proxy too often.
pub(crate) fn is_loop(site: &Site, request: &RequestHead<'_>) -> bool {
    hop::passes(request.fields, site.name()) > PASSES
}

impl<'e> Exchange<'e> {
    /// What is asked for, and what is to be done.
    fn judge(
        &self,
        down: &mut Downstream<'_>,
        judged: Result<Judged, Fault>,
    ) -> Result<(Received<'e>, Verdict), Fault> {
        let judged = judged?;
        let site: &'e Site = self.site;
        if is_loop(site, &self.request) {
            return Err(Fault::Loop);
        }
        down.check()?;
        if matches!(judged.verdict, Err(Fault::PurgeDenied)) {
            self.worker.counters.one(Counter::PurgesDenied);
        }
        let received = judged.facts.received(site, &self.request)?;
        Ok((received, judged.verdict?))
    }

    async fn steps(
        &mut self,
        down: &mut Downstream<'_>,
        judged: Result<Judged, Fault>,
        found: Option<(Key, Lookup)>,
    ) -> Result<Sent, Fault> {
        let (received, verdict) = self.judge(down, judged)?;
        self.edits = Some(&received.route.response);
        if let Verdict::Lookup(pool) | Verdict::Pass(pool, _) | Verdict::Pipe(pool) = verdict {
            down.closed_is_gone = self.site.pool_by_id(pool).abort_on_close;
        }
        match verdict {
            // What is rare, or waits anyway, lies in memory of its own: a pass carries none of it.
            Verdict::Lookup(pool) => Box::pin(self.lookup(down, &received, pool, found)).await,
            Verdict::Pass(pool, reason) => {
                self.passing(reason);
                self.pass(down, &received, pool).await
            }
            Verdict::Pipe(pool) => {
                self.handling = Handling::new(Outcome::Pipe);
                Box::pin(pipe::pipe(self, down, &received, pool)).await
            }
            Verdict::Synth(answer) => {
                self.handling = Handling::new(Outcome::Synth);
                Ok(self.synth(down, *answer).await)
            }
            Verdict::Purge => {
                self.handling = Handling::new(Outcome::Purge);
                let answer = purge::purge(self, &received);
                Ok(self.synth(down, answer).await)
            }
        }
    }

    async fn lookup(
        &mut self,
        down: &mut Downstream<'_>,
        received: &Received<'_>,
        pool: PoolId,
        mut found: Option<(Key, Lookup)>,
    ) -> Result<Sent, Fault> {
        let Some(rule) = received.route.cache_rule() else { return self.pass(down, received, pool).await };
        let directives = rule.policy.directives(self.request.fields);
        let query = lookup::query(&self.request, rule, &directives);
        let path = received.target.path_and_query;
        let store = &self.worker.shared.store;
        for _ in 0..TURNS {
            let (key, lookup) = found.take().unwrap_or_else(|| {
                let fields = self.request.fields;
                let key = hash::key(&rule.key, received.asker.scheme, &received.host, path, fields);
                (key, store.lookup(key, &query, wall()))
            });
            match lookup {
                Lookup::Hit(object) => {
                    if let Some(sent) = self.hit(down, &object, Outcome::Hit).await {
                        return sent;
                    }
                }
                Lookup::Stale(object, flight) => {
                    if let Some(flight) = flight {
                        revalidate(self.worker, self.site, &self.request, received, pool, flight);
                    }
                    if let Some(sent) = self.hit(down, &object, Outcome::Stale).await {
                        return sent;
                    }
                }
                Lookup::Miss(flight) => {
                    return self.miss(down, received, pool, rule, directives, flight).await;
                }
                Lookup::Wait(waiter) => {
                    let stored = self.stored(key, &query);
                    let stands_in_after = stored
                        .as_ref()
                        .and_then(|object| self.stands_in_after(pool, rule, object, &directives));
                    if let (Some(object), Some(Duration::ZERO)) = (&stored, stands_in_after) {
                        return self.stand_in(down, object, Fault::NoResponse, StandIn::Silent).await;
                    }
                    self.worker.counters.one(Counter::Coalesced);
                    self.handling.collapsed = true;
                    self.handling.forward =
                        Some(if waiter.validates() { Forwarded::Stale } else { Forwarded::Miss });
                    let first_byte = self.site.pool_by_id(pool).timeouts.first_byte;
                    let patience = stands_in_after.map_or(first_byte, |after| after.min(first_byte));
                    match lookup::wait(waiter, &query, down, patience).await? {
                        Some(Waited::Object(object)) => {
                            if let Some(sent) = self.hit(down, &object, Outcome::Hit).await {
                                return sent;
                            }
                        }
                        Some(Waited::Lead(flight)) => {
                            self.handling.collapsed = false;
                            return self.miss(down, received, pool, rule, directives, flight).await;
                        }
                        Some(Waited::Again) => {
                            self.handling.collapsed = false;
                            self.handling.forward = None;
                        }
                        Some(Waited::Failed) => {
                            return self.instead(down, key, &query, Fault::NoResponse, StandIn::Failed).await;
                        }
                        None => {
                            let reason =
                                if stands_in_after.is_some() { StandIn::Slow } else { StandIn::Failed };
                            return self.instead(down, key, &query, Fault::ResponseLate, reason).await;
                        }
                    }
                }
                Lookup::Marked(Mark::HitForMiss, flight) => {
                    self.worker.counters.one(Counter::MarkedPasses);
                    self.handling.detail = Some(Detail::HitForMiss);
                    return self.miss(down, received, pool, rule, directives, flight).await;
                }
                Lookup::Marked(Mark::HitForPass, _) => {
                    self.worker.counters.one(Counter::MarkedPasses);
                    self.passing(PassReason::HitForPass);
                    return self.pass(down, received, pool).await;
                }
                Lookup::Absent(_) if directives.only_if_cached => return Err(Fault::NotCached),
                Lookup::Absent(candidate) => {
                    let forward =
                        lookup::forward(store, key, self.request.fields, candidate.as_deref(), &directives);
                    self.missing(MissReason::Forward(forward), forward);
                    return self.head(down, received, pool, rule, candidate).await;
                }
            }
        }
        self.passing(PassReason::NotWorthWaiting);
        self.pass(down, received, pool).await
    }

    /// Answers from the store. `None` where the body can no longer be read from its start: look up again.
    pub(crate) async fn hit(
        &mut self,
        down: &mut Downstream<'_>,
        object: &Arc<Object>,
        outcome: Outcome,
    ) -> Option<Result<Sent, Fault>> {
        let reader = if object.body().is_whole() { None } else { Some(object.reader()?) };
        self.handling.outcome = outcome;
        self.handling.ttl = Some(object.lifetimes().ttl(wall()));
        Some(self.deliver(down, object, reader).await)
    }

    /// Fetches for the store, and for all who wait.
    async fn miss(
        &mut self,
        down: &mut Downstream<'_>,
        received: &Received<'_>,
        pool: PoolId,
        rule: &CacheRule,
        directives: RequestDirectives,
        flight: Flight,
    ) -> Result<Sent, Fault> {
        if let Some(object) = flight.candidate().cloned()
            && self.stands_in_after(pool, rule, &object, &directives) == Some(Duration::ZERO)
        {
            revalidate(self.worker, self.site, &self.request, received, pool, flight);
            return self.stand_in(down, &object, Fault::NoResponse, StandIn::Silent).await;
        }
        let (store, candidate) = (&self.worker.shared.store, flight.candidate());
        let fields = self.request.fields;
        let forward =
            lookup::forward(store, flight.key(), fields, candidate.map(|object| &**object), &directives);
        let marked = self.handling.detail == Some(Detail::HitForMiss);
        let reason = if marked { MissReason::HitForMiss } else { MissReason::Forward(forward) };
        self.missing(reason, forward);
        match self.attend(down, received, pool, directives, flight).await? {
            Answer::Landed(Landed::Object(object, reader, own)) => {
                self.deliver_with(down, &object, reader, own.as_ref()).await
            }
            Answer::Landed(Landed::Relay(arrived)) => self.relay(down, arrived, pool).await,
            Answer::StandIn(object, fault) => {
                self.origin_fault = Some(fault.text());
                self.stand_in(down, &object, fault, StandIn::Failed).await
            }
        }
    }

    /// Fetches for the store while the client stays. Where it leaves, the fetch goes on without it: those who wait, and those who
    /// come, are served all the same. Where too many go on so already it is given up, and one of those who wait takes over.
    async fn attend(
        &mut self,
        down: &mut Downstream<'_>,
        received: &Received<'_>,
        pool: PoolId,
        directives: RequestDirectives,
        flight: Flight,
    ) -> Result<Answer, Fault> {
        let audience = Rc::new(Audience::attended());
        let fetch = SharedFetch {
            worker: self.worker.handle(),
            site: self.site.clone(),
            head: self.head.clone(),
            facts: RequestFacts::of(received),
            pool,
            flight,
            directives,
            audience: audience.clone(),
            handling: self.handling,
            transaction: self.transaction,
        };
        audience.lend_timer(std::mem::take(&mut down.client.timer));
        let mut fetch = Box::pin(fetch.run());
        let fetched = poll_fn(|cx| {
            let fetched = fetch.as_mut().poll(cx);
            audience.drain_interims(|status, reason, fields| down.interim(cx, status, reason, fields));
            match fetched {
                Poll::Ready(fetched) => Poll::Ready(Some(fetched)),
                Poll::Pending => down.poll_gone(cx).map(|()| None),
            }
        })
        .await;
        let Some(Fetched { result, handling, trace }) = fetched else {
            audience.leave();
            self.trace = audience.begun();
            let asked = audience.asked().filter(|_| self.worker.recorder.wants());
            self.trace.backend = asked.and_then(|backend| address(self.site, pool, backend));
            if let Some(place) = self.worker.shared.detach() {
                self.worker.counters.one(Counter::FetchesDetached);
                tokio::task::spawn_local(async move {
                    fetch.await.leave();
                    drop(place);
                });
            }
            return Err(Fault::ClientGone);
        };
        down.client.timer = audience.return_timer();
        self.handling = handling;
        self.trace = trace;
        result
    }

    /// HEAD, when nothing stored answers it: goes to the origin, whose answer tells something about what is stored
    /// (RFC 9111 §4.3.5).
    async fn head(
        &mut self,
        down: &mut Downstream<'_>,
        received: &Received<'_>,
        pool: PoolId,
        rule: &CacheRule,
        candidate: Option<Arc<Object>>,
    ) -> Result<Sent, Fault> {
        let target = received.target.path_and_query;
        let stored = candidate.filter(|_| is_for_all(&self.request, received, rule));
        let flight = stored.map(|stored| self.worker.shared.store.open_for(&stored));
        let mut arrived = self.fetch(down, received, pool, target, Purpose::Head { rule }).await?;
        self.edit(received, &mut arrived)?;
        if let Some(flight) = flight {
            lookup::learn_from_head(self, received, rule, flight, &arrived);
        }
        self.edit_passed(received, &mut arrived)?;
        self.relay(down, arrived, pool).await
    }

    /// Goes past the store.
    async fn pass(
        &mut self,
        down: &mut Downstream<'_>,
        received: &Received<'_>,
        pool: PoolId,
    ) -> Result<Sent, Fault> {
        let target = received.target.path_and_query;
        let begun = self.worker.shared.store.begun();
        let arrived = self.fetch(down, received, pool, target, Purpose::Pass).await?;
        let arrived = match purge::passed(self, received, pool, arrived, begun)? {
            Landed::Object(object, reader, own) => {
                return Box::pin(self.deliver_with(down, &object, reader, own.as_ref())).await;
            }
            Landed::Relay(arrived) => arrived,
        };
        self.relay_edited(down, received, arrived, pool).await
    }

    /// Sends a response on that the store has not seen.
    pub(crate) async fn relay_edited(
        &mut self,
        down: &mut Downstream<'_>,
        received: &Received<'_>,
        mut arrived: Box<OriginResponse>,
        pool: PoolId,
    ) -> Result<Sent, Fault> {
        self.edit(received, &mut arrived)?;
        self.edit_passed(received, &mut arrived)?;
        self.relay(down, arrived, pool).await
    }

    /// Makes the edits that the route asks for, and adds Via.
    fn edit(&self, received: &Received<'_>, arrived: &mut OriginResponse) -> Result<(), Fault> {
        let edits = received.edits(received.target.path_and_query);
        edits.make(&mut arrived.head, self.site).map_err(|_| Fault::HeadTooLarge)
    }

    /// Makes those of what is not stored.
    fn edit_passed(&self, received: &Received<'_>, arrived: &mut OriginResponse) -> Result<(), Fault> {
        let edits = received.edits(received.target.path_and_query);
        edits.make_passed(&mut arrived.head).map_err(|_| Fault::HeadTooLarge)
    }

    /// Sends a request to a backend of the pool, for this client alone, and waits for the head of its response.
    pub(crate) async fn fetch(
        &mut self,
        down: &mut Downstream<'_>,
        received: &Received<'_>,
        pool: PoolId,
        target: &[u8],
        purpose: Purpose<'_>,
    ) -> Result<Box<OriginResponse>, Fault> {
        let fetch = Fetch {
            worker: self.worker,
            site: self.site,
            request: self.request,
            received,
            pool,
            target,
            purpose,
            expect_continue: self.expect_continue,
            transaction: self.transaction,
        };
        fetch.run(&mut Recipient::Client(down), &mut self.trace).await
    }

    /// Sends a response on as it comes.
    async fn relay(
        &mut self,
        down: &mut Downstream<'_>,
        mut arrived: Box<OriginResponse>,
        pool: PoolId,
    ) -> Result<Sent, Fault> {
        if self.request.method == Method::Head {
            arrived.link.drop_body();
        }
        let mut fields = std::mem::take(&mut arrived.head.fields);
        fields.retain_names(|name| !tags::is_surrogate_only(name));
        add_date(&mut fields, arrived.received);
        if let (Some((key, scheme)), Some(sticky)) = (self.trace.stick_to, &self.site.pool_by_id(pool).sticky)
        {
            sticky::tell(sticky, key, scheme, &mut fields).map_err(|_| Fault::HeadTooLarge)?;
        }
        let status = arrived.head.status;
        let (framing, encoding, keep_alive) = self.framing(&arrived);
        let keep_alive = keep_alive && self.can_end_upload(down);
        let told = match framing {
            // A response to HEAD says how long the body would be (RFC 9110 §9.3.2); a 304 may too.
            BodyFraming::None => fields
                .view()
                .get(Name::ContentLength)
                .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
                .map_or(framing, BodyFraming::Length),
            _ => framing,
        };
        let mut head = encode::lines(fields, told);
        if self.site.config.cache.cache_status {
            self.handling.encode(self.site.name(), &mut head);
        }
        deliver::connection(&mut head, self.request.version, keep_alive);
        head.extend_from_slice(b"\r\n");
        let relay = Relay {
            exchange: self,
            downstream: down,
            head: Some(head),
            encoding,
            window: WINDOW,
            between_bytes: self.site.pool_by_id(pool).timeouts.between_bytes,
            bytes: 0,
            upload: arrived.upload,
        };
        let until_close = framing == BodyFraming::UntilClose;
        if until_close {
            relay.downstream.client.conn.reset_when_dropped(true);
        }
        let ran = relay.run(arrived).await;
        let cut = until_close && !matches!(ran, Ok((Relayed::Whole, _)) | Err(_));
        if until_close && !cut {
            down.client.conn.reset_when_dropped(false);
        }
        let (relayed, bytes) = ran?;
        match &relayed {
            Relayed::OriginBroke => self.handling.detail = Some(Detail::OriginBroke),
            Relayed::UploadBroke(fault) => {
                self.handling.detail = Some(Detail::Fault(*fault));
                self.worker.counters.one(Counter::UploadsBroken);
            }
            Relayed::Whole | Relayed::ClientGone => {}
        }
        let keep_alive = keep_alive && relayed == Relayed::Whole && !down.is_spoiled();
        Ok(Sent { status, bytes, keep_alive, cut })
    }

    /// Whether the connection can serve another request after a response that begins now. A client that waits to be told
    /// to go on with its body might send it after all, or another request instead: nobody could tell which
    /// (RFC 9110 §10.1.1).
    fn can_end_upload(&self, down: &Downstream<'_>) -> bool {
        let ends = down.is_uploaded() || (!self.expect_continue && down.is_uploaded_or_small());
        ends && !self.worker.sessions.draining()
    }

    /// How a response that is passed on is framed for this client, and whether the connection can stay open after it.
    fn framing(&self, arrived: &OriginResponse) -> (BodyFraming, Encoding, bool) {
        let (bodiless, keep_alive) = (matches!(arrived.head.status, 204 | 304), self.keep_alive);
        match arrived.link.remaining() {
            Some(0) if self.request.method == Method::Head || bodiless => {
                (BodyFraming::None, Encoding::Plain, keep_alive)
            }
            Some(length) => (BodyFraming::Length(length), Encoding::Plain, keep_alive),
            None if self.request.version != Version::Http10 => {
                (BodyFraming::Chunked, Encoding::Chunked, keep_alive)
            }
            None => (BodyFraming::UntilClose, Encoding::Plain, false),
        }
    }

    /// Sends an object, as far as it has arrived and then as it arrives.
    pub(crate) async fn deliver(
        &mut self,
        down: &mut Downstream<'_>,
        object: &Arc<Object>,
        reader: Option<Reader>,
    ) -> Result<Sent, Fault> {
        self.deliver_with(down, object, reader, None).await
    }

    /// The same, with fields for this client alone.
    async fn deliver_with(
        &mut self,
        down: &mut Downstream<'_>,
        object: &Arc<Object>,
        reader: Option<Reader>,
        own: Option<&FieldsBuf>,
    ) -> Result<Sent, Fault> {
        let mut output = Output::new();
        let delivery = Delivery {
            site: self.site,
            object,
            request: &self.request,
            now: wall(),
            handling: &self.handling,
            own,
            keep_alive: self.keep_alive && !self.worker.sessions.draining(),
        };
        let delivered = delivery.encode(&mut output);
        if delivered.rest.is_some() && reader.is_none() {
            return Err(Fault::ResponseBroken);
        }
        self.count(None);
        let sent = down.send(&mut output, WINDOW).await;
        let mut sent = sent.map(|()| Sent {
            status: delivered.status,
            bytes: delivered.bytes,
            keep_alive: delivered.keep_alive,
            cut: false,
        });
        if let (Ok(sent), Some(rest), Some(reader)) = (&mut sent, delivered.rest, reader) {
            let until_close = self.request.version == Version::Http10;
            if until_close {
                down.client.conn.reset_when_dropped(true);
            }
            let rule = self.trailers();
            let streamed = stream::stream(&self.worker.counters, down, reader, rest, rule.as_ref()).await;
            if streamed.origin_broke {
                self.handling.detail = Some(Detail::OriginBroke);
            }
            sent.bytes = streamed.bytes;
            sent.keep_alive &= streamed.whole;
            sent.cut = !streamed.whole && until_close;
            if until_close && !sent.cut {
                down.client.conn.reset_when_dropped(false);
            }
        }
        Ok(sent.unwrap_or_else(|error| {
            self.worker.counters.cut_off(&error);
            Sent { status: delivered.status, ..Sent::nothing() }
        }))
    }

    /// Sends an answer made here.
    pub(crate) async fn synth(&mut self, down: &mut Downstream<'_>, answer: Synthetic) -> Sent {
        self.count(None);
        let mut output = Output::new();
        // After a request body that was not read, the connection is in no state for another request.
        let keep_alive = self.keep_alive && self.can_end_upload(down);
        let status = self.site.config.cache.cache_status && self.handling.forward.is_some();
        deliver::synthetic(
            &mut output,
            &answer,
            Some(&self.request),
            status.then_some((&self.handling, self.site.name())),
            wall(),
            keep_alive,
        );
        let sent = down.send(&mut output, WINDOW).await;
        Sent {
            status: answer.status,
            bytes: answer.body.len() as u64,
            keep_alive: keep_alive && sent.is_ok(),
            cut: false,
        }
    }

    /// Counts the outcome, once: as the response begins, or as the exchange ends without one.
    pub(crate) fn count(&self, fault: Option<&Fault>) {
        if !self.counted.replace(true) {
            self.worker.counters.outcome(&self.handling, fault);
        }
    }

    /// Which trailers of the response the client gets; none unless it reads them.
    pub(crate) fn trailers(&self) -> Option<TrailerRule> {
        let edits = self.edits.filter(|_| hop::accepts_trailers(self.request.fields));
        edits.map(|edits| TrailerRule::new(edits.edited()))
    }

    fn missing(&mut self, reason: MissReason, forward: Forwarded) {
        self.handling.outcome = Outcome::Miss;
        self.handling.miss = Some(reason);
        self.handling.forward = Some(forward);
    }

    fn passing(&mut self, reason: PassReason) {
        self.handling.outcome = Outcome::Pass;
        self.handling.pass = Some(reason);
        self.handling.forward = Some(match reason {
            PassReason::Bypass(BypassReason::Method) => Forwarded::Method,
            PassReason::NotWorthWaiting => Forwarded::Miss,
            _ => Forwarded::Bypass,
        });
        self.handling.detail = Some(Detail::Pass(reason));
    }

    fn record(
        &self,
        client: &Client,
        sent: Sent,
        fault: Option<&Fault>,
        began: Instant,
        first_byte: Option<Duration>,
    ) {
        let duration = began.elapsed();
        self.worker.counters.responses.one(&StatusClass(sent.status));
        self.worker.counters.latency.observe(duration);
        if !self.worker.recorder.wants() {
            return;
        }
        let broke = (self.handling.detail == Some(Detail::OriginBroke))
            .then(|| "the response broke off at the backend".to_owned());
        let error = fault.map(Fault::text).or(broke).or_else(|| {
            let status = self.handling.forward_status.filter(|_| self.handling.outcome == Outcome::Stale);
            self.origin_fault.clone().or(status.map(|status| format!("the backend answered {status}")))
        });
        self.worker.record(
            self.site,
            &client.peer,
            self.request.fields,
            &crate::Record {
                request: self.transaction,
                fetch: self.trace.number,
                status: sent.status,
                bytes: sent.bytes,
                outcome: self.handling.outcome,
                reason: self.handling.detail.map(Detail::text),
                duration,
                first_byte,
                origin: self.trace.time,
                id: self.trace.id.as_deref(),
                backend: self.trace.backend.as_deref(),
                error: error.as_deref(),
                ..crate::Record::of(&self.request, wall().minus(duration))
            },
        );
    }
}
