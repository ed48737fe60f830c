//! A client connection: requests are parsed and, if possible, answered in place from memory.

use super::encoder::{self, Coding};
use crate::account::{Held, Holder, Lease};
use crate::leased_head::LeasedHead;
use crate::lent::{Lend, Lent, Spare};
use crate::response::{Body, Responder, Response};
use crate::service::{Answer, Incoming, Peer, Refused, Request, Service, SessionLimits};
use crate::sessions::{Ending, Membership, Sessions};
use crate::{Conn, ListenerId, Moment, Output, RateGauge, Timer, Transport};
use sandarac_message::{Span, Version};
use sandarac_wire::h1::{BodyFraming, Parsed, Refusal, may_be_complete, request};
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::thread::LocalKey;
use std::time::{Duration, Instant};

/// Pipelined requests answered before the responses are written.
const BATCH: usize = 32;

/// Bytes of their heads and small bodies after which the next response waits for the write, and the same
/// where little may be held for the client.
const BATCH_BYTES: usize = 64 << 10;
const CROWDED_BATCH_BYTES: usize = 8 << 10;

/// A body is kept until it is written if it has more bytes: a socket seldom takes them at once.
const LONG: u64 = 256 << 10;

/// How long a connection accepted while draining may take to make its request: longer than it takes until a
/// packet that was lost is sent again (RFC 6298 §2.1).
pub(super) const LAST_REQUEST: Duration = Duration::from_secs(2);

/// How often the rate of a client is checked while waiting for it, because memory pressure can change
/// meanwhile.
const CHECK_RATE_EVERY: Duration = Duration::from_secs(1);

/// The shortest deadline to set: a shorter one has already passed on the coarse clock.
const TICK: Duration = Duration::from_millis(1);

/// An accepted connection.
pub(crate) struct NewConnection {
    pub(crate) transport: Transport,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) listener: ListenerId,
}

/// A client connection, between exchanges.
pub(crate) struct Connection {
    pub(crate) conn: Conn,
    /// The deadline of the current wait. An exchange borrows this timer, because each timer takes a place in
    /// the runtime's wheel.
    pub(crate) timer: Timer,
    pub(crate) peer: Peer,
    /// Whether [`Conn::data`] is the beginning of an incomplete head.
    partial: bool,
    /// The memory of that, while it is waited for.
    input: Option<Box<Lease>>,
    /// Whether the current deadline is for a head rather than for the next request.
    in_head: bool,
    /// Whether the connection ends once the queued output is taken.
    pub(super) close: bool,
    /// Whether the client sends nothing more: its last request announced that, and had no body. Some clients
    /// send an empty line after a body.
    is_last: bool,
}

/// A request that needs an exchange.
pub(crate) struct Handover<D> {
    pub(super) incoming: Box<Incoming<D>>,
    pub(super) framing: BodyFraming,
    /// Whether the connection may stay open and the client wants it to.
    pub(super) keep_alive: bool,
}

/// The reason why a series of requests answered in place ends.
pub(super) enum Turn<D> {
    Exchange(Handover<D>),
    /// The client begins HTTP/2.
    Http2,
    Refused(Refused),
    /// The client must take the queued output first.
    Flush,
    Close,
    CloseLingering,
}

/// Memory for parsing and encoding.
#[derive(Default)]
pub(crate) struct Scratch {
    spans: Vec<Span>,
    pub(crate) output: Output,
}

thread_local! {
    static SCRATCH: Spare<Scratch> = const { RefCell::new(Vec::new()) };
}

impl Lend for Scratch {
    /// A core works for one connection at a time.
    const KEPT: usize = 1;

    fn make() -> Scratch {
        Scratch::default()
    }

    fn spare() -> &'static LocalKey<Spare<Scratch>> {
        &SCRATCH
    }

    fn clear(&mut self) {
        self.spans.clear();
        self.output.clear();
    }

    fn is_clear(&self) -> bool {
        self.spans.is_empty() && self.output.is_empty()
    }
}

/// A request that is answered in place: its response is appended to the previous ones.
pub(super) struct InPlace<'o> {
    output: &'o mut Output,
    version: Version,
    coding: Coding,
    /// Whether another request may follow.
    keep_alive: bool,
    /// Whether the response is incomplete.
    broken: bool,
}

impl<'o> InPlace<'o> {
    pub(super) fn new(output: &'o mut Output, version: Version, keep_alive: bool) -> InPlace<'o> {
        InPlace { output, version, coding: Coding::Plain, keep_alive, broken: false }
    }
}

impl Responder for InPlace<'_> {
    fn begin(&mut self, response: Response<'_>) {
        let encoded = encoder::head(self.output.inline(), response, self.version, self.keep_alive);
        (self.coding, self.keep_alive) = (encoded.coding, encoded.keep_alive);
    }

    fn send(&mut self, mut body: impl Body + 'static) -> u64 {
        let mut bytes = 0;
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            match body.poll_piece(&mut cx) {
                Poll::Ready(Some(Ok(piece))) => {
                    bytes += piece.len() as u64;
                    encoder::before_piece(self.output.inline(), self.coding, piece.len());
                    self.output.share(piece);
                    self.output.inline().extend_from_slice(encoder::after_piece(self.coding));
                }
                Poll::Ready(None) => {
                    if self.coding == Coding::Chunked {
                        let trailers = body.trailers().unwrap_or_default();
                        encoder::end(self.output.inline(), self.coding, trailers.view());
                    }
                    // A socket may not take as much at once.
                    if bytes > LONG {
                        self.output.keep(Box::new(body));
                    }
                    return bytes;
                }
                Poll::Ready(Some(Err(_))) | Poll::Pending => {
                    debug_assert!(false, "a body is sent in place that is not ready");
                    self.broken = true;
                    return bytes;
                }
            }
        }
    }
}

impl Connection {
    pub(super) fn new<S: Service>(new: NewConnection, service: &Rc<S>) -> Connection {
        let NewConnection { transport, remote, listener } = new;
        let holder = service.account().connection();
        Connection {
            conn: Conn::of_client(transport, service.clone(), &holder),
            timer: Timer::new(),
            peer: Peer {
                number: service.number(),
                client: remote.map(canonical),
                listener,
                tls: None,
                requests: 0,
                holder,
            },
            partial: false,
            input: None,
            in_head: true,
            close: false,
            is_last: false,
        }
    }

    pub(super) fn await_request(&mut self, limits: &SessionLimits) {
        self.partial = false;
        self.in_head = false;
        self.timer.set(limits.idle_timeout);
    }

    /// Serves requests from memory until one needs an exchange, or the connection should end.
    pub(super) fn poll_turn<S: Service>(
        &mut self,
        cx: &mut Context<'_>,
        service: &S,
        membership: &Membership,
    ) -> Poll<Turn<S::Deferred>> {
        let sessions = &*membership.sessions;
        loop {
            if self.conn.queued() > 0 {
                return Poll::Ready(Turn::Flush);
            }
            if self.close {
                // Input that arrives on a closed connection resets it, and output on its way to the client is
                // lost. So if the client may not know yet that this is the end, its input is read for a
                // while.
                let silent = self.is_last && self.conn.data().is_empty();
                return Poll::Ready(if silent { Turn::Close } else { Turn::CloseLingering });
            }
            if self.conn.data().is_empty() || self.partial {
                let seen = self.conn.data().len();
                match self.conn.poll_fill(cx) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Turn::Close),
                    // A head in many small pieces is not parsed again for each.
                    Poll::Ready(Ok(_))
                        if self.partial
                            && !may_be_complete(
                                self.conn.data(),
                                seen,
                                &service.limits(self.peer.listener).head,
                            ) =>
                    {
                        continue;
                    }
                    Poll::Ready(Ok(_)) => {}
                    Poll::Pending => {
                        self.conn.park();
                        if !self.counts_input() {
                            return Poll::Ready(Turn::Refused(Refused::Full));
                        }
                        let is_partial = self.partial || self.conn.has_part();
                        if membership.gives_way(&mut self.conn, self.peer.requests, is_partial) {
                            service.gave_way();
                            return Poll::Ready(Turn::Close);
                        }
                        if sessions.ending() == Some(Ending::Now) && !self.partial {
                            if self.peer.requests > 0 {
                                return Poll::Ready(Turn::Close);
                            }
                            // The connection was accepted while draining: its request may be on its way.
                            self.timer.set_earlier(LAST_REQUEST);
                        }
                        ready!(self.timer.poll(cx));
                        let late = self.partial;
                        return Poll::Ready(if late { Turn::Refused(Refused::Late) } else { Turn::Close });
                    }
                }
            }
            let limits = service.limits(self.peer.listener);
            let mut scratch = Lent::<Scratch>::take();
            let turn = self.answer_what_is_there(service, &limits, sessions, &mut scratch);
            if let Err(error) = self.conn.write_output(cx, &mut scratch.output) {
                // A file has become shorter.
                if error.kind() == io::ErrorKind::WriteZero {
                    service.body_truncated();
                }
                return Poll::Ready(Turn::Close);
            }
            if let Some(turn) = turn {
                return Poll::Ready(turn);
            }
        }
    }

    /// Counts the memory of input that waits for more. Whether there is room for it.
    fn counts_input(&mut self) -> bool {
        let memory = self.conn.input_memory();
        if memory == 0 {
            self.input = None;
            return true;
        }
        let held = self.input.get_or_insert_with(|| Box::new(self.peer.holder.nothing(Held::Heads)));
        let before = held.bytes();
        if memory <= before {
            held.set(memory);
        }
        memory <= before || held.grow(memory - before)
    }

    /// Answers the complete requests in the read buffer, until one cannot be answered from memory.
    fn answer_what_is_there<S: Service>(
        &mut self,
        service: &S,
        limits: &SessionLimits,
        sessions: &Sessions,
        scratch: &mut Scratch,
    ) -> Option<Turn<S::Deferred>> {
        let began = Instant::now();
        // A client that takes nothing must not have heads written for it that only the process keeps.
        let most = if self.peer.holder.may_look_ahead() { BATCH_BYTES } else { CROWDED_BATCH_BYTES };
        for _ in 0..BATCH {
            if self.conn.data().is_empty() || scratch.output.copied() >= most {
                break;
            }
            let parsed = request::parse(self.conn.data(), &limits.head, &mut scratch.spans);
            let request = match parsed {
                Ok(Parsed::Complete(request)) => request,
                Ok(Parsed::Partial) => {
                    if !self.in_head {
                        self.in_head = true;
                        self.timer.set(limits.head_timeout);
                    }
                    self.partial = true;
                    break;
                }
                Err(Refusal::Http2Preface) if self.may_be_http2(service) => return Some(Turn::Http2),
                Err(refusal) => return Some(Turn::Refused(Refused::Message(refusal))),
            };
            self.peer.requests += 1;
            self.is_last = !request.keep_alive && request.framing.is_empty();
            let keep_alive =
                request.keep_alive && self.peer.requests < limits.max_requests && !sessions.are_last();
            let before = scratch.output.len();
            let mut client = InPlace::new(&mut scratch.output, request.head.version, keep_alive);
            let asked =
                Request { head: request.head, scheme: None, has_body: !request.framing.is_empty(), began };
            match service.answer(&self.peer, &asked, &mut client) {
                Answer::Answered => {
                    let (keep_alive, broken) = (client.keep_alive, client.broken);
                    let head_len = request.head_len;
                    self.conn.consume(head_len);
                    self.await_request(limits);
                    if broken {
                        self.conn.reset_when_dropped(true);
                    }
                    if !keep_alive || broken {
                        self.close = true;
                        break;
                    }
                }
                Answer::Deferred(deferred) => {
                    debug_assert_eq!(scratch.output.len(), before, "a part of an answer was left");
                    if !self.peer.holder.may_look_ahead() {
                        sessions.end_unfinished(Moment::now());
                    }
                    let Some(head) = LeasedHead::copy_of(&request.head, &self.peer.holder) else {
                        return Some(Turn::Refused(Refused::Full));
                    };
                    let (framing, expect_continue) = (request.framing, request.expect_continue);
                    let head_len = request.head_len;
                    self.conn.consume(head_len);
                    if self.conn.data().is_empty() {
                        self.conn.park();
                    }
                    let input = self.conn.input_memory();
                    if input > 0 && self.peer.holder.lease(Held::Uploads, input).is_none() {
                        return Some(Turn::Refused(Refused::Full));
                    }
                    let incoming = Box::new(Incoming { head, expect_continue, began, deferred });
                    (self.partial, self.input) = (false, None);
                    return Some(Turn::Exchange(Handover { incoming, framing, keep_alive }));
                }
            }
        }
        None
    }

    /// Whether an HTTP/2 connection may begin here.
    fn may_be_http2<S: Service>(&self, service: &S) -> bool {
        self.peer.requests == 0 && self.peer.tls.is_none() && service.takes_http2(self.peer.listener)
    }

    /// Waits until no more than `window` bytes are queued for the client. Fails if it takes nothing in time,
    /// or too little on average.
    pub(super) async fn flush(
        &mut self,
        window: usize,
        limits: &SessionLimits,
        pressure: &AtomicBool,
    ) -> io::Result<()> {
        self.timer.clear();
        let waited = &mut WaitedFor { has_exchange: false, ..WaitedFor::new(&self.peer.holder) };
        let _input = self.peer.holder.holds(Held::Uploads, self.conn.input_memory());
        let Connection { conn, timer, .. } = self;
        std::future::poll_fn(|cx| poll_room(cx, conn, timer, window, limits, pressure, waited)).await
    }
}

/// A client that has to take what is queued.
pub(super) struct WaitedFor {
    rate: RateGauge,
    /// Whether an exchange waits for it, which found room when it began.
    has_exchange: bool,
    /// The memory of the queue that belongs to nothing else, and what is kept.
    held: Lease,
    /// Bytes of the response that the exchange keeps meanwhile.
    pub(super) kept: usize,
}

impl WaitedFor {
    pub(super) fn new(holder: &Holder) -> WaitedFor {
        WaitedFor {
            rate: RateGauge::new(),
            has_exchange: true,
            held: holder.nothing(Held::Responses),
            kept: 0,
        }
    }

    /// Counts what waits for the client.
    pub(super) fn count(&mut self, conn: &Conn) {
        self.held.set(conn.output_memory() + self.kept);
    }

    /// Whether the client, whose socket takes no more, has to give way without being waited for. Not if it
    /// has an exchange: none begins beyond the limit.
    fn gives_way_at_once(&self) -> bool {
        !self.has_exchange
            && !self.rate.is_waiting()
            && self.held.holder().gives_way_at_once(self.held.bytes())
    }

    /// Counts nothing, because something else does.
    pub(super) fn count_nothing(&mut self) {
        self.held.set(0);
    }
}

/// Ready when no more than `window` bytes are queued for the client. Fails if it takes nothing in time, or
/// too little on average, or nothing at once where all hold more than they may. The timer MUST be clear, or
/// set by an earlier call.
pub(super) fn poll_room(
    cx: &mut Context<'_>,
    conn: &mut Conn,
    timer: &mut Timer,
    window: usize,
    limits: &SessionLimits,
    pressure: &AtomicBool,
    waited: &mut WaitedFor,
) -> Poll<io::Result<()>> {
    waited.kept = 0;
    if conn.queued() == 0 {
        waited.count_nothing();
        return Poll::Ready(Ok(()));
    }
    // The client's deadline must not apply to the next wait, for another peer.
    let has_room = |conn: &Conn, timer: &mut Timer, rate: &mut RateGauge| {
        if rate.goes_on(|| conn.taken()) {
            timer.clear();
        }
    };
    let flushed = conn.poll_flush(cx);
    waited.count(conn);
    let gives_way = waited.gives_way_at_once();
    let WaitedFor { rate, held, .. } = waited;
    // Where nothing may be held ahead, the client has to take what there is first.
    let window = held.holder().window(window);
    match flushed {
        Poll::Ready(result) => {
            has_room(conn, timer, rate);
            Poll::Ready(result)
        }
        Poll::Pending if conn.queued() <= window => {
            has_room(conn, timer, rate);
            Poll::Ready(Ok(()))
        }
        Poll::Pending if gives_way => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
        Poll::Pending => {
            loop {
                let sent = conn.taken();
                // A client that waits for a file holds no memory that the pressure is about. Where others
                // find no room, each that keeps an exchange waiting has to read, however little it holds.
                let holder = held.holder();
                let is_pressed = pressure.load(Ordering::Relaxed) || holder.account().is_nearly_full();
                let presses = is_pressed && conn.holds_memory() || holder.presses();
                let left = rate.waits(sent, limits.min_rate_out(presses, holder));
                let still = limits.patience(presses).saturating_sub(rate.still(sent));
                let Some(left) = left.filter(|_| !still.is_zero()) else {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                };
                // A client that takes next to nothing causes no wake-up, so the timer checks its rate.
                timer.set(left.min(still).min(CHECK_RATE_EVERY).max(TICK));
                ready!(timer.poll(cx));
            }
        }
    }
}

pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
