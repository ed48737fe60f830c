//! Fetch: a request goes to a backend, and the head of its response comes back.

use crate::complaints::Subject;
use crate::downstream::{Downstream, Upload};
use crate::origin::{Origins, Provenance};
use crate::pool::{Live, SitePool};
use crate::site::Site;
use crate::step::hedge::hedged;
use crate::worker::Worker;
use crate::{Counter, Counters, Fault};
use sandarac_balance::{Address, Backend, BackendId, NoBackend, Outcome, Pick, Ticket};
use sandarac_config::{PoolId, ResponseEdits};
use sandarac_message::hop::{self, is_of_workers};
use sandarac_message::tags::is_surrogate_only;
use sandarac_message::{Fields, FieldsBuf, Method, Name, ResponseHeadBuf, Span, Timestamp, TooLarge};
use sandarac_net::{COPIED, Conn, Framer, Moment, Timer, Unread, wall};
use sandarac_wire::h1::response::{self, Kind, Response};
use sandarac_wire::h1::{BodyFraming, Parsed, encode};
use std::future::poll_fn;
use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Room for what is added to a response head on its way: the status line, Via, Date, Cache-Status, Connection.
const ADDED: usize = 352;

/// Interim responses before the final one: 100, a few 103 and 102 while something slow is under way.
const INTERIM: usize = 64;

/// Backends that may refuse connections for one request before they count as others that it was lost at. They cost next
/// to nothing, but a pool of a thousand that are all gone is not to be gone through by each request.
const REFUSALS: usize = 16;

/// Backends that turn out, as a request is about to be sent to them, to be of a version that does not serve, before it is sent
/// nevertheless. A restart of a whole pool takes a few; a pool in which it does not end has no version to keep to.
const TURNS: usize = 16;

/// How long an exchange waits for an origin.
#[derive(Clone, Copy, Debug)]
pub struct OriginTimeouts {
    /// For a place at a backend, where all are full.
    pub queue: Duration,
    /// For a connection.
    pub connect: Duration,
    /// For the first byte of a response, once the request is sent.
    pub first_byte: Duration,
    /// Between bytes of a response.
    pub between_bytes: Duration,
    /// How long a connection is kept without a request.
    pub idle: Duration,
    /// How long a connection is used at most.
    pub age: Duration,
}

/// What a fetch needs of its surroundings.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) site: &'a Site,
    pub(crate) pool: PoolId,
    /// The pool as it was when the fetch began, or when it last tried another backend.
    pub(crate) live: &'a Live,
    pub(crate) class: Option<&'a [u8]>,
    /// The backend that the client's session sticks to.
    pub(crate) sticks_to: Option<BackendId>,
}

impl<'a> Surroundings<'a> {
    /// How the pool is configured.
    pub(crate) fn pool(&self) -> &'a SitePool {
        self.site.pool_by_id(self.pool)
    }

    pub(crate) fn counters(&self) -> &'a Counters {
        &self.worker.counters
    }

    /// The pool that is in force now, if it is another than this one and has the same classes.
    fn newer(&self) -> Option<Arc<Live>> {
        let live = self.pool().live();
        let other = !std::ptr::eq(&*live, self.live);
        (other && live.classifier() == self.live.classifier()).then_some(live)
    }

    /// Logs that a backend gave no response.
    fn complain(&self, backend: BackendId, fault: &Fault) {
        let pool = self.live.name();
        self.worker.shared.complain(Subject::Backend(pool.into(), backend, fault.name()), || {
            let address = self.live.backend(backend).map(|backend| backend.address().to_string());
            format!("pool {pool}: {}: {}", address.unwrap_or_default(), fault.text())
        });
    }

    /// A connection that was kept to the backend of a pick.
    pub(super) fn kept(&self, pick: &Pick) -> Option<(Box<Conn>, Provenance)> {
        let resumes = self.to_meet();
        let current = |instance: &str| resumes.as_ref().is_none_or(|known| known.is_at(pick.id(), instance));
        self.worker.origins.checkout(pick.backend().address(), &self.pool().timeouts, current)
    }

    /// The time on the balancer's clock.
    pub(crate) fn now(&self) -> Duration {
        self.worker.shared.epoch.elapsed()
    }
}

/// A request ready to be sent.
pub(crate) struct Errand<'a> {
    pub(crate) method: Method,
    /// The encoded head.
    pub(crate) head: &'a [u8],
    /// Whether it asks for another protocol.
    pub(crate) tunnel: bool,
    /// Whether the response is for one client alone, so that nobody wants it once that has reset its connection.
    pub(crate) one_client: bool,
    /// The body that follows.
    pub(crate) framing: BodyFraming,
    /// The edits of the response. What they remove or replace is not sent in interim ones either.
    pub(crate) edits: &'a ResponseEdits,
}

impl Errand<'_> {
    /// Whether a server may leave a part of the request unread and take it for the next: cheroot does so with chunks that the
    /// application did not read, aiohttp with all that follows a request for another protocol.
    fn may_be_left(&self) -> bool {
        self.framing == BodyFraming::Chunked || self.tunnel
    }
}

/// A connection to a backend, in use.
pub(crate) struct Link {
    pub(crate) conn: Box<Conn>,
    provenance: Provenance,
    pick: Pick,
    origins: Rc<Origins>,
    /// Whether it was kept from an earlier request.
    reused: bool,
    keep_alive: bool,
    /// The status blames the backend.
    server_error: bool,
    /// Whether the backend turned out, since it was picked, to be of a version that does not serve.
    pub(super) is_other_version: bool,
    epoch: Moment,
}

impl Link {
    pub(crate) fn backend_id(&self) -> BackendId {
        self.pick.id()
    }

    /// The backend.
    pub(crate) fn backend(&self) -> &Backend {
        self.pick.backend()
    }

    /// The response has ended: the connection can serve another request if both sides allow it.
    pub(crate) fn finish(self) {
        let now = self.epoch.elapsed();
        let repairs = self.conn.repairs();
        if !repairs.is_empty() {
            self.origins.repaired(repairs);
        } else if self.keep_alive {
            self.origins.checkin(self.pick.backend().address(), self.conn, self.provenance);
        }
        self.pick.finish(if self.server_error { Outcome::ServerError } else { Outcome::Answered }, now);
    }

    /// The response broke off.
    pub(crate) fn broken(self) {
        let now = self.epoch.elapsed();
        self.pick.finish(Outcome::Broken, now);
    }

    /// The rest of the response is not read, for a reason that lies here.
    pub(crate) fn unwanted(self) {
        let now = self.epoch.elapsed();
        self.pick.finish(Outcome::Aborted, now);
    }

    /// No request was sent.
    pub(super) fn spare(self) {
        self.origins.checkin(self.pick.backend().address(), self.conn, self.provenance);
    }

    /// The connection is not to be used again, although the response is whole.
    pub(crate) fn close(mut self) {
        self.keep_alive = false;
        self.finish();
    }
}

/// A response whose head has arrived.
pub(crate) struct Arrived {
    pub(crate) link: Link,
    /// Its fields stand after the status line, as both go to the client, unless it switched protocols.
    pub(crate) head: ResponseHeadBuf,
    pub(crate) body: Framer,
    /// 101, or 2xx to CONNECT: what follows belongs to another protocol.
    pub(crate) switched: bool,
    pub(crate) requested: Timestamp,
    pub(crate) received: Timestamp,
    /// How far the request body has come.
    pub(crate) upload: Upload,
}

impl Arrived {
    /// Leaves the body, which the client does not want, unread: the connection is not used again.
    pub(crate) fn drop_body(&mut self) {
        if !self.body.is_ended() {
            self.body = Framer::Ended;
            self.link.keep_alive = false;
        }
    }
}

/// An attempt that brought no response.
pub(super) struct Failed {
    pub(super) fault: Fault,
    /// Whether any byte of the request may have reached the backend.
    pub(super) sent: bool,
    /// Whether any byte of a response came.
    pub(super) answered: bool,
}

/// Sends the request to a backend of the pool and receives the response head, with retries where they are safe:
/// another attempt after a kept connection turned out dead, or at another backend after one was lost, if no response
/// byte came and either the method is idempotent and the body at hand, or nothing was sent.
///
/// What is limited is at how many backends it may be lost, as it may be what kills them. One that refuses the connection
/// has not seen it; and one that ends breaks kept connections first, and then the new one that it still let in.
pub(crate) async fn fetch(
    around: &Surroundings<'_>,
    errand: &Errand<'_>,
    mut downstream: Option<&mut Downstream<'_>>,
) -> Result<Box<Arrived>, Fault> {
    let mut tried: Vec<BackendId> = Vec::new();
    let mut fresh = false;
    let mut lost_at: Vec<BackendId> = Vec::new();
    let mut refusals = 0;
    let mut turns = 0;
    let mut newer: Option<Arc<Live>> = None;
    around.pool().budget.request();
    loop {
        let around = &Surroundings { live: newer.as_deref().unwrap_or(around.live), ..*around };
        let pick = place(around, errand, &tried, downstream.as_deref_mut()).await?;
        let backend = pick.id();
        if let Some(down) = downstream.as_deref_mut() {
            down.asked = Some(backend);
        }
        let pooled = if fresh { None } else { around.kept(&pick) };
        let reused = pooled.is_some();
        let was_failing = pick.backend().is_failing();
        let failed = match linked(around, pick, pooled).await {
            Ok(link) if link.is_other_version && turns < TURNS => {
                turns += 1;
                link.spare();
                continue;
            }
            Ok(link) => {
                let done = match around.pool().hedge_after.filter(|_| errand.can_be_hedged()) {
                    Some(patience) => {
                        let down = downstream.as_deref_mut();
                        Box::pin(hedged(around, errand, link, patience, down)).await
                    }
                    None => {
                        attempt(around, errand, link, downstream.as_deref_mut(), !lost_at.is_empty()).await
                    }
                };
                match done {
                    Ok(arrived) => return Ok(arrived),
                    Err(failed) => failed,
                }
            }
            Err(failed) => failed,
        };
        around.counters().one(Counter::FetchFailures);
        let body_at_hand = downstream.as_deref().is_none_or(|down| down.can_replay());
        let safe = !failed.answered && (!failed.sent || (errand.method.is_idempotent() && body_at_hand));
        let next = around.newer();
        let another = next.as_deref().unwrap_or(around.live).backends().len() > tried.len() + 1;
        // A kept connection that ended says nothing of the backend; one that is silent does.
        let stale = reused && matches!(failed.fault, Fault::NoResponse);
        if failed.fault.is_origins() && !stale && failed.fault != Fault::NoDescriptors {
            around.complain(backend, &failed.fault);
        }
        let possible = safe && failed.fault.is_origins() && (stale || another);
        if failed.sent && !stale {
            // A page that hangs one worker may hang the next; and what nobody waits for is not worth another's time.
            let late = failed.fault == Fault::ResponseLate && !around.pool().retry_timeouts;
            let gone = match downstream.as_deref_mut() {
                Some(down) => poll_fn(|cx| Poll::Ready(down.poll_gone(cx).is_ready())).await,
                None => true,
            };
            if late || gone {
                return Err(failed.fault);
            }
        }
        if matches!(failed.fault, Fault::ConnectFailed(_)) && refusals < REFUSALS {
            refusals += 1;
        } else if !lost_at.contains(&backend) {
            lost_at.push(backend);
        }
        let retries = around.pool().retries as usize;
        if !possible || retries == 0 || lost_at.len() > retries {
            return Err(failed.fault);
        }
        // Not what load is multiplied by: who refuses has done nothing, and who dies does so once.
        let is_free = match failed.fault {
            Fault::ConnectFailed(_) | Fault::NoDescriptors => true,
            Fault::NoResponse => stale || !was_failing,
            _ => false,
        };
        if !is_free && !around.pool().budget.retry(around.now()) {
            around.counters().one(Counter::RetriesRefused);
            return Err(failed.fault);
        }
        if stale {
            // Whatever closed this connection probably closed its companions: take a new one.
            fresh = true;
        } else {
            tried.push(backend);
        }
        around.counters().one(Counter::FetchRetries);
        newer = next.or(newer);
    }
}

/// A place at a backend: at once where there is one, else in the pool's queue.
async fn place(
    around: &Surroundings<'_>,
    errand: &Errand<'_>,
    tried: &[BackendId],
    downstream: Option<&mut Downstream<'_>>,
) -> Result<Pick, Fault> {
    if let Some(backend) = around.sticks_to.filter(|backend| !tried.contains(backend)) {
        if let Some(pick) = around.live.pick_sticky(backend, around.class, around.now()) {
            return Ok(pick);
        }
        if around.live.holds_sessions(backend, around.now()) {
            let turn = around.live.queue().sticking_to(backend);
            return Box::pin(wait_for_place(around, errand, tried, downstream, turn)).await;
        }
    }
    match around.live.pick_patiently(around.class, around.now(), tried) {
        Err(NoBackend::AllFull) => {}
        picked => return picked.map_err(Fault::NoBackend),
    }
    Box::pin(wait_for_place(around, errand, tried, downstream, around.live.queue())).await
}

/// Waits its turn in the pool's queue, if there is no place at once: for the backend that is best for it as long as the pool
/// says, then for any. A client that is gone does not wait.
async fn wait_for_place(
    around: &Surroundings<'_>,
    errand: &Errand<'_>,
    tried: &[BackendId],
    mut downstream: Option<&mut Downstream<'_>>,
    mut ticket: Ticket,
) -> Result<Pick, Fault> {
    let mut own = Timer::new();
    let timeout = around.pool().timeouts.queue;
    let patience = around.live.settings().patience.min(timeout);
    let mut waits = false;
    let mut left = Some(timeout - patience);
    poll_fn(|cx| {
        loop {
            if let Poll::Ready(picked) = ticket.poll_pick(cx, around.class, around.now(), tried) {
                return Poll::Ready(picked.map_err(Fault::NoBackend));
            }
            let down = downstream.as_deref_mut().filter(|_| errand.one_client);
            if down.is_some_and(|down| down.poll_gone(cx).is_ready()) {
                return Poll::Ready(Err(Fault::ClientGone));
            }
            let timer = timer(&mut own, &mut downstream);
            if !waits {
                waits = true;
                around.counters().one(Counter::FetchesQueued);
                timer.set(patience);
            }
            if timer.poll(cx).is_pending() {
                return Poll::Pending;
            }
            match left.take() {
                Some(left) => timer.set(left),
                None => return Poll::Ready(Err(Fault::QueuedTooLong)),
            }
        }
    })
    .await
}

/// A connection to the backend of a pick: `pooled`, or a new one. Where only one version is to serve, the worker at its end has
/// said what it runs, if it does.
pub(super) async fn linked(
    around: &Surroundings<'_>,
    pick: Pick,
    pooled: Option<(Box<Conn>, Provenance)>,
) -> Result<Link, Failed> {
    let served = !pick.backend().is_sidelined();
    let reused = pooled.is_some();
    let mut connected = connect(around, pooled, pick.backend().address()).await;
    let meets = around.to_meet().is_some();
    if meets {
        connected = Box::pin(around.introduced(&pick, connected)).await;
    }
    if meets || !reused {
        connected = connected.and_then(|(conn, provenance)| match around.worker.origins.unread(&conn) {
            Unread::Nothing => Ok((conn, provenance)),
            Unread::Data => Err(Fault::Unasked),
            Unread::End => Err(Fault::NoResponse),
        });
    }
    match connected {
        Ok((conn, provenance)) => {
            let (origins, epoch) = (around.worker.origins.clone(), around.worker.shared.epoch);
            let is_other_version = served && pick.backend().is_sidelined();
            Ok(Link {
                conn,
                provenance,
                pick,
                origins,
                reused,
                keep_alive: false,
                server_error: false,
                is_other_version,
                epoch,
            })
        }
        Err(fault) => {
            let own = fault == Fault::NoDescriptors;
            pick.finish(if own { Outcome::Aborted } else { Outcome::ConnectFailed }, around.now());
            Err(Failed { fault, sent: false, answered: false })
        }
    }
}

pub(super) async fn connect(
    around: &Surroundings<'_>,
    pooled: Option<(Box<Conn>, Provenance)>,
    address: &Address,
) -> Result<(Box<Conn>, Provenance), Fault> {
    if let Some(conn) = pooled {
        around.counters().one(Counter::OriginConnectionsReused);
        return Ok(conn);
    }
    around.counters().one(Counter::OriginConnections);
    // Resolving a name is a large state machine that a kept connection has no use for.
    Box::pin(around.worker.origins.connect(address, around.pool().timeouts.connect)).await
}

/// Sends the request once, and its body as it comes; forwards interim responses.
pub(super) async fn attempt(
    around: &Surroundings<'_>,
    errand: &Errand<'_>,
    mut link: Link,
    mut downstream: Option<&mut Downstream<'_>>,
    again: bool,
) -> Result<Box<Arrived>, Failed> {
    around.counters().one(Counter::Fetches);
    let requested = wall();
    let mut own_timer = Timer::new();
    let mut sent = false;
    let mut answered = false;
    let mut interim = 0;
    let mut upload = Upload::Done;
    let class_line = around.class_line(link.pick.id());
    let arrived = poll_fn(|cx| {
        if !sent {
            sent = true;
            if send_head(cx, errand, &class_line, &mut link.conn, downstream.as_deref_mut(), again).is_err() {
                return Poll::Ready(Err(Fault::NoResponse));
            }
            timer(&mut own_timer, &mut downstream).set(around.pool().timeouts.first_byte);
        }
        if let Some(down) = downstream.as_deref_mut() {
            let now = match down.upload(cx, &mut link.conn) {
                // The origin may have answered before it closed on us: look for the answer first.
                Err(Fault::NoResponse) => Upload::Done,
                Err(fault) => return Poll::Ready(Err(fault)),
                Ok(upload) => upload,
            };
            // The origin's time is what passes while it takes nothing, and then while it does not answer.
            match now {
                _ if now == upload => {}
                Upload::AwaitsClient => down.client.timer.clear(),
                Upload::Done | Upload::AwaitsOrigin(_) => {
                    down.client.timer.set(around.pool().timeouts.first_byte);
                }
            }
            upload = now;
        } else if link.conn.queued() > 0 && matches!(link.conn.poll_flush(cx), Poll::Ready(Err(_))) {
            return Poll::Ready(Err(Fault::NoResponse));
        }
        if upload == Upload::Done {
            link.pick.awaits_answer();
        }
        loop {
            let down = downstream.as_deref_mut();
            let mut spans = around.worker.spans.take();
            let received = receive(around, errand, &mut link, &mut spans, &mut interim, cx, down);
            around.worker.spans.set(spans);
            match received {
                Ok(Some(arrived)) => return Poll::Ready(Ok(arrived)),
                Ok(None) => {}
                Err(fault) => return Poll::Ready(Err(fault)),
            }
            match link.conn.poll_fill(cx) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(Fault::NoResponse)),
                Poll::Ready(Ok(_)) => answered = true,
                Poll::Pending => {
                    if timer(&mut own_timer, &mut downstream).poll(cx).is_ready() {
                        return Poll::Ready(Err(Fault::ResponseLate));
                    }
                    let looks = errand.one_client && upload == Upload::Done;
                    let down = downstream.as_deref_mut().filter(|_| looks);
                    return match down.map(|down| down.poll_gone(cx)) {
                        Some(Poll::Ready(())) => Poll::Ready(Err(Fault::ClientGone)),
                        Some(Poll::Pending) | None => Poll::Pending,
                    };
                }
            }
        }
    })
    .await;
    match arrived {
        Ok(Head { head, body, keep_alive, switched }) => {
            link.keep_alive = keep_alive;
            link.server_error = head.status >= 500;
            link.pick.responded(link.epoch.elapsed());
            link.pick.took().into_iter().for_each(|took| around.pool().latency.observe_shared(took));
            Ok(Box::new(Arrived { link, head, body, switched, requested, received: wall(), upload }))
        }
        Err(fault) => {
            let wrote = link.conn.sent() > 0;
            // What the client did is not held against the backend.
            if !link.reused && !answered && matches!(fault, Fault::NoResponse) {
                link.pick.finish(Outcome::ConnectFailed, link.epoch.elapsed());
            } else if !answered && fault == Fault::ResponseLate {
                link.pick.finish(Outcome::Late, link.epoch.elapsed());
            } else if fault.is_origins() {
                link.broken();
            }
            Err(Failed { fault, sent: wrote && sent, answered })
        }
    }
}

/// The deadline in force: the client's, so that one timer serves the whole connection, or the fetch's own.
fn timer<'t>(own: &'t mut Timer, downstream: &'t mut Option<&mut Downstream<'_>>) -> &'t mut Timer {
    match downstream {
        Some(down) => &mut down.client.timer,
        None => own,
    }
}

fn send_head(
    cx: &mut Context<'_>,
    errand: &Errand<'_>,
    class_line: &[u8],
    conn: &mut Conn,
    downstream: Option<&mut Downstream<'_>>,
    again: bool,
) -> std::io::Result<()> {
    if class_line.is_empty() {
        conn.write(cx, &[IoSlice::new(errand.head)])?;
    } else {
        let (head, end) = errand.head.split_at(errand.head.len() - encode::CRLF.len());
        conn.write(cx, &[IoSlice::new(head), IoSlice::new(class_line), IoSlice::new(end)])?;
    }
    match downstream {
        Some(down) if again => down.replay(cx, conn),
        _ => Ok(()),
    }
}

struct Head {
    head: ResponseHeadBuf,
    body: Framer,
    keep_alive: bool,
    switched: bool,
}

/// Parses what has arrived: the final head, or `None` where more is to be read. Interim ones are forwarded.
fn receive(
    around: &Surroundings<'_>,
    errand: &Errand<'_>,
    link: &mut Link,
    spans: &mut Vec<Span>,
    interim: &mut usize,
    cx: &mut Context<'_>,
    mut downstream: Option<&mut Downstream<'_>>,
) -> Result<Option<Head>, Fault> {
    loop {
        if link.conn.data().is_empty() {
            return Ok(None);
        }
        let limits = &around.site.response_head;
        let mut anew = Vec::new();
        let parsed = response::parse_or_repair(link.conn.data(), limits, spans, &mut anew, errand.method)
            .map_err(Fault::BadResponse)?;
        let Parsed::Complete(response) = parsed else { return Ok(None) };
        let (head_len, repairs) = (response.head_len, response.repairs);
        match response.kind {
            Kind::Interim => {
                *interim += 1;
                if *interim > INTERIM {
                    return Err(Fault::TooManyInterim);
                }
                if let Some(down) = downstream.as_deref_mut()
                    && let Ok(mut fields) = end_to_end(Vec::new(), response.head.fields)
                {
                    fields.retain_names(|name| !is_surrogate_only(name));
                    errand.edits.edited().for_each(|name| fields.remove_named(name));
                    down.interim(cx, response.head.status, response.head.reason, fields.view());
                }
                link.conn.consume(head_len);
                link.conn.repaired(repairs);
            }
            Kind::Switching if !errand.tunnel => return Err(Fault::UnaskedSwitch),
            kind => {
                let switched = kind != Kind::Final;
                around.hear(link.pick.id(), response.head.fields);
                // What a new protocol is called stands in hop-by-hop fields.
                let fields = if switched {
                    let mut kept = FieldsBuf::new();
                    let kept_all = kept.extend(response.head.fields, |field| {
                        !is_of_workers(field.id) && !is_surrogate_only(field.id)
                    });
                    kept_all.map(|()| kept).map_err(|_| Fault::HeadTooLarge)?
                } else {
                    let fields = response.head.fields;
                    let body = match response.framing {
                        BodyFraming::Length(length) if length <= COPIED as u64 => length as usize,
                        _ => 0,
                    };
                    let mut first = Vec::with_capacity(fields.encoded_len() + ADDED + body);
                    encode::status_line(&mut first, response.head.status, response.head.reason);
                    let mut fields = end_to_end(first, fields).map_err(|_| Fault::HeadTooLarge)?;
                    if response.head.status == 204 {
                        // It has no content, not even none of a length (RFC 9110 §8.6).
                        fields.remove(Name::ContentLength);
                    }
                    if let Some([b'0', _, ..]) = fields.view().get(Name::ContentLength) {
                        trim_zeros(&mut fields).map_err(|_| Fault::HeadTooLarge)?;
                    }
                    fields
                };
                let head = Head {
                    head: ResponseHeadBuf {
                        status: response.head.status,
                        reason: response.head.reason.into(),
                        version: response.head.version,
                        fields,
                    },
                    body: Framer::of_response(response.framing),
                    keep_alive: response.keep_alive
                        && !may_be_followed(&response, errand.method)
                        && !errand.may_be_left(),
                    switched,
                };
                link.conn.consume(head_len);
                link.conn.repaired(repairs);
                return Ok(Some(head));
            }
        }
    }
}

/// Writes a Content-Length without leading zeros, which make it octal to some.
#[cold]
fn trim_zeros(fields: &mut FieldsBuf) -> Result<(), TooLarge> {
    let digits = fields.view().get(Name::ContentLength).unwrap_or_default().to_vec();
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count().min(digits.len() - 1);
    fields.replace(b"Content-Length", &digits[zeros..])
}

/// Whether a body may follow that is not to be read: some origins send one in response to HEAD, and not always at once. It
/// would be the response to the next request on the connection.
fn may_be_followed(response: &Response<'_>, method: Method) -> bool {
    let says_empty = || {
        let length = response.head.fields.get(Name::ContentLength);
        length.is_some_and(|digits| digits.iter().all(|&digit| digit == b'0'))
    };
    method == Method::Head && !matches!(response.head.status, 204 | 304) && !says_empty()
}

/// A copy of the fields that are not the connection's own (RFC 9110 §7.6.1), after `first_line`. Those that Connection names
/// were taken out when the response was read.
pub(crate) fn end_to_end(first_line: Vec<u8>, fields: Fields<'_>) -> Result<FieldsBuf, TooLarge> {
    // Two more are added on the way: Via, Date.
    let mut kept = FieldsBuf::after(first_line, fields.len() + 2);
    kept.extend(fields, |field| !hop::is_standing(field.id))?;
    Ok(kept)
}
