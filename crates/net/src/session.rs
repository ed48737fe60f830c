//! One client connection over HTTP/1.1, from accept to close.
//!
//! Requests that the service answers from memory are parsed, answered and written without a task, an allocation or a
//! wait of their own; pipelined ones go out in one write. Any other request becomes an exchange that has the
//! connection to itself until it is done.

use crate::lent::{Lend, Lent, Spare};
use crate::worker::{Entrance, Lingering, Membership, Sessions};
use crate::{BodyStep, Conn, Framer, LeastRate, Meter, Output, Pace, Stream, Timer};
use sandarac_message::{RequestHeadBuf, Span};
use sandarac_wire::h1::request::{self, Request};
use sandarac_wire::h1::{Limits, Parsed, Refusal, may_be_complete};
use sandarac_wire::proxy_protocol::{self, Origin};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::thread::LocalKey;
use std::time::{Duration, Instant};

/// Pipelined requests answered before the answers are written.
const BATCH: usize = 32;

/// How long a connection accepted while draining is given to make its request.
const LAST_REQUEST: Duration = Duration::from_millis(500);

/// How long, and for how many bytes, the input of a client is still read, so that closing does not destroy the
/// answer on its way (RFC 9112 §9.6).
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 256 * 1024;

/// The same where there are too many connections, or the process is to end: a round trip to most clients.
const LINGER_SHORT: Duration = Duration::from_millis(200);

/// How often a client that is waited for is looked at: whether it is to hurry can change meanwhile.
const LOOK: Duration = Duration::from_secs(1);

/// The least time that a deadline can be off: what is less has passed on the coarse clock.
const TICK: Duration = Duration::from_millis(1);

/// How long a session waits for its client.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// What a request head may hold.
    pub head: Limits,
    /// For the next request on a connection.
    pub idle_timeout: Duration,
    /// For a whole request head, from its first byte or from accept.
    pub head_timeout: Duration,
    /// For the next piece of a request body.
    pub body_timeout: Duration,
    /// For the client to take the next piece of a response.
    pub send_timeout: Duration,
    /// What a client must send of a request body, at least.
    pub least_in: LeastRate,
    /// What a client must take of a response, at least.
    pub least_out: LeastRate,
    /// The same while clients are to [hurry](Service::hurry).
    pub least_hurried: LeastRate,
    /// Requests on one connection before it is closed.
    pub max_requests: u32,
}

/// What became of a request that the service was asked to answer from memory.
#[derive(Debug)]
pub enum Answer<D> {
    /// The answer is in the output; whether the connection stays open.
    Answered {
        /// Whether another request may follow.
        keep_alive: bool,
    },
    /// It takes an exchange; what is known so far goes along.
    Deferred(D),
}

/// What an exchange leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another request may follow.
    KeepAlive,
    /// The connection is to be closed once everything is written.
    Close,
    /// The connection is to be closed although the client may still be sending.
    CloseLingering,
    /// The connection is to be reset: its end would pass for the end of a response that is not whole.
    Reset,
}

/// The application of sessions: the proxy.
pub trait Service: Meter + 'static {
    /// What [`Service::answer`] found out about a request it defers.
    type Deferred;

    /// The limits for the next request; they change on reload.
    fn limits(&self) -> SessionLimits;

    /// A number for a connection that was accepted, different from all others.
    fn number(&self) -> u64;

    /// Whether one more connection may be served. The service MUST count it until [`Service::closed`].
    fn admit(&self) -> bool;

    /// A connection that was admitted has ended.
    fn closed(&self);

    /// It ended because of a panic.
    fn panicked(&self);

    /// A client was cut off because it took too little of a response, or is gone.
    fn cut_off(&self);

    /// Whether clients are to take responses faster, because what they hold is wanted; it may change at any time.
    fn hurry(&self) -> &AtomicBool;

    /// Accepting a connection failed.
    fn accept_failed(&self, error: &io::Error);

    /// Answers from memory, or defers. MUST NOT wait, and MUST defer a request that has a body.
    fn answer(
        &self,
        peer: &Peer,
        request: &Request<'_>,
        began: Instant,
        output: &mut Output,
    ) -> Answer<Self::Deferred>;

    /// Serves a deferred request.
    fn exchange(
        &self,
        client: &mut Client,
        request: Box<Incoming<Self::Deferred>>,
    ) -> impl Future<Output = Next>;

    /// Writes the answer to what is not a request, or came too late; the connection is closed after it.
    /// `received` is what there is of it.
    fn refuse(&self, peer: &Peer, refused: &Refused, received: &[u8], output: &mut Output);
}

/// Why a connection's input was not taken for a request.
#[derive(Debug)]
pub enum Refused {
    /// It breaks the protocol, or a limit.
    Message(Refusal),
    /// A request head did not arrive in time (408).
    Late,
    /// Too many connections are open (503).
    Crowded,
}

/// Who is at the other end.
#[derive(Debug)]
pub struct Peer {
    /// The number of the connection, as [`Service::number`] gave it.
    pub number: u64,
    /// The client's address: the connection's, or the one the PROXY protocol announced. An IPv4 address is one also where it came
    /// as IPv4-mapped IPv6 (RFC 4291 §2.5.5.2), as it does over a listener of both. None over a Unix socket.
    pub client: Option<SocketAddr>,
    /// The listener that took the connection.
    pub entrance: Arc<Entrance>,
    /// Requests received on the connection, the current one included.
    pub requests: u32,
}

/// A request that became an exchange.
#[derive(Debug)]
pub struct Incoming<D> {
    /// The head.
    pub head: RequestHeadBuf,
    /// The body as it arrives.
    pub body: Framer,
    /// Whether the client wants the connection to stay open.
    pub keep_alive: bool,
    /// Whether the client waits for 100 (Continue) before it sends the body.
    pub expect_continue: bool,
    /// When it was received.
    pub began: Instant,
    /// What [`Service::answer`] found out about it.
    pub deferred: D,
}

/// A connection just accepted.
pub(crate) struct Arrival {
    pub(crate) stream: Stream,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) entrance: Arc<Entrance>,
}

/// The client's side of an exchange.
pub struct Client {
    /// The connection.
    pub conn: Conn,
    /// The deadline of whatever is being waited for.
    pub timer: Timer,
    /// Who it is.
    pub peer: Peer,
    /// Whether [`Conn::data`] is the beginning of a head that needs more bytes.
    partial: bool,
    /// Whether the current deadline is for a head rather than for the next request.
    in_head: bool,
    /// Whether the connection ends when what is queued was taken.
    close: bool,
    /// Whether the client sends nothing more: its last request said so, and had no body. Some clients send an empty line after one.
    is_last: bool,
}

enum Turn<D> {
    Exchange(Box<Incoming<D>>),
    Refused(Refused),
    /// The client has to take what is queued before anything else.
    Flush,
    Close,
    CloseLingering,
}

/// Parsing and encoding memory.
#[derive(Default)]
struct Scratch {
    spans: Vec<Span>,
    output: Output,
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

/// Tells a client that there are too many connections. Where it has a `place` to linger in, it is given the time to read
/// that; else this waits for nothing, and the answer may be lost with the connection.
pub(crate) async fn turn_away<S: Service>(arrival: Arrival, service: Rc<S>, place: Option<Lingering>) {
    let mut client = Client::new(arrival, &service);
    let mut output = Output::new();
    service.refuse(&client.peer, &Refused::Crowded, &[], &mut output);
    let written = poll_fn(|cx| Poll::Ready(client.conn.write_output(cx, &mut output))).await;
    if place.is_some() && written.is_ok() {
        linger(&mut client, LINGER_SHORT).await;
    }
}

/// Serves one connection, which was admitted, to its end.
pub(crate) async fn serve<S: Service>(arrival: Arrival, service: Rc<S>, sessions: Rc<Sessions>) {
    let mut client = Client::new(arrival, &service);
    let _place = Place {
        service: &*service,
        _membership: poll_fn(|cx| Poll::Ready(sessions.enter(cx.waker()))).await,
    };
    client.timer.set(service.limits().head_timeout);
    if client.peer.entrance.proxy_protocol && !Box::pin(receive_proxy_header(&mut client)).await {
        return;
    }
    loop {
        match poll_fn(|cx| client.poll_turn(cx, &*service, &sessions)).await {
            Turn::Exchange(request) => {
                let next = exchange(&*service, &mut client, request).await;
                match next {
                    Next::KeepAlive => {
                        client.conn.park();
                        client.await_request(&service.limits());
                    }
                    Next::Close => client.close = true,
                    Next::Reset => {
                        client.conn.reset();
                        return;
                    }
                    Next::CloseLingering => {
                        // The client has its time to take the answer, and no more than that.
                        if client.conn.queued() == 0 || Box::pin(flush(&mut client, &*service)).await {
                            Box::pin(linger(&mut client, time_to_linger(&*service))).await;
                        }
                        return;
                    }
                }
            }
            Turn::Refused(refused) => {
                Box::pin(refuse(&mut client, &*service, refused)).await;
                return;
            }
            Turn::Flush => {
                if !Box::pin(flush(&mut client, &*service)).await {
                    return;
                }
            }
            Turn::Close => return,
            Turn::CloseLingering => {
                Box::pin(linger(&mut client, time_to_linger(&*service))).await;
                return;
            }
        }
    }
}

fn time_to_linger<S: Service>(service: &S) -> Duration {
    if service.hurry().load(Ordering::Relaxed) { LINGER_SHORT } else { LINGER }
}

/// The exchange in memory of its own. Not a block of [`serve`], whose state would keep room for what is moved out of it:
/// that state is most of what an idle connection costs.
fn exchange<'a, S: Service>(
    service: &'a S,
    client: &'a mut Client,
    request: Box<Incoming<S::Deferred>>,
) -> Pin<Box<dyn Future<Output = Next> + 'a>> {
    Box::pin(service.exchange(client, request))
}

/// Lets the client take what is queued; false where it does not.
async fn flush<S: Service>(client: &mut Client, service: &S) -> bool {
    let limits = service.limits();
    let flushed = client.flush(0, &limits, &mut Pace::new(service.hurry())).await;
    client.timer.set(limits.idle_timeout);
    if flushed.is_err() {
        service.cut_off();
    }
    flushed.is_ok()
}

/// Counts a connection for as long as it is there, however it ends.
struct Place<'a, S: Service> {
    service: &'a S,
    _membership: Membership,
}

impl<S: Service> Drop for Place<'_, S> {
    fn drop(&mut self) {
        self.service.closed();
        if std::thread::panicking() {
            self.service.panicked();
        }
    }
}

impl Client {
    fn new<S: Service>(arrival: Arrival, service: &Rc<S>) -> Client {
        let Arrival { stream, remote, entrance } = arrival;
        Client {
            conn: Conn::metered(stream, service.clone()),
            timer: Timer::new(),
            peer: Peer { number: service.number(), client: remote.map(canonical), entrance, requests: 0 },
            partial: false,
            in_head: true,
            close: false,
            is_last: false,
        }
    }

    fn await_request(&mut self, limits: &SessionLimits) {
        self.partial = false;
        self.in_head = false;
        self.timer.set(limits.idle_timeout);
    }

    /// Serves requests from memory until one needs an exchange, or the connection is to end.
    fn poll_turn<S: Service>(
        &mut self,
        cx: &mut Context<'_>,
        service: &S,
        sessions: &Sessions,
    ) -> Poll<Turn<S::Deferred>> {
        loop {
            if self.conn.queued() > 0 {
                return Poll::Ready(Turn::Flush);
            }
            if self.close {
                // What a client sends to a closed connection resets it, and what was on its way to that client is lost: one that
                // may not know yet that this is the end is read from for a while.
                let silent = self.is_last && self.conn.data().is_empty();
                return Poll::Ready(if silent { Turn::Close } else { Turn::CloseLingering });
            }
            if self.conn.data().is_empty() || self.partial {
                let seen = self.conn.data().len();
                match self.conn.poll_fill(cx) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Turn::Close),
                    // A head in many small pieces is not parsed anew for each.
                    Poll::Ready(Ok(_))
                        if self.partial
                            && !may_be_complete(self.conn.data(), seen, &service.limits().head) =>
                    {
                        continue;
                    }
                    Poll::Ready(Ok(_)) => {}
                    Poll::Pending => {
                        self.conn.park();
                        if sessions.draining() && !self.partial {
                            if self.peer.requests > 0 {
                                return Poll::Ready(Turn::Close);
                            }
                            // It was accepted on the way out: its request may be on its way, too.
                            self.timer.set_earlier(LAST_REQUEST);
                        }
                        ready!(self.timer.poll(cx));
                        let late = self.partial;
                        return Poll::Ready(if late { Turn::Refused(Refused::Late) } else { Turn::Close });
                    }
                }
            }
            let limits = service.limits();
            let mut scratch = Lent::<Scratch>::take();
            let turn = self.answer_what_is_there(service, &limits, sessions, &mut scratch);
            if self.conn.write_output(cx, &mut scratch.output).is_err() {
                return Poll::Ready(Turn::Close);
            }
            if let Some(turn) = turn {
                return Poll::Ready(turn);
            }
        }
    }

    /// Answers the requests in the read buffer, as far as they are complete and can be answered from memory.
    fn answer_what_is_there<S: Service>(
        &mut self,
        service: &S,
        limits: &SessionLimits,
        sessions: &Sessions,
        scratch: &mut Scratch,
    ) -> Option<Turn<S::Deferred>> {
        let began = Instant::now();
        for _ in 0..BATCH {
            if self.conn.data().is_empty() {
                break;
            }
            let parsed = request::parse(self.conn.data(), &limits.head, &mut scratch.spans);
            let mut request = match parsed {
                Ok(Parsed::Complete(request)) => request,
                Ok(Parsed::Partial) => {
                    if !self.in_head {
                        self.in_head = true;
                        self.timer.set(limits.head_timeout);
                    }
                    self.partial = true;
                    break;
                }
                Err(refusal) => return Some(Turn::Refused(Refused::Message(refusal))),
            };
            self.peer.requests += 1;
            self.is_last = !request.keep_alive && request.framing.is_empty();
            request.keep_alive &= self.peer.requests < limits.max_requests && !sessions.draining();
            let before = scratch.output.len();
            match service.answer(&self.peer, &request, began, &mut scratch.output) {
                Answer::Answered { keep_alive } => {
                    let head_len = request.head_len;
                    self.conn.consume(head_len);
                    self.await_request(limits);
                    if !keep_alive {
                        self.close = true;
                        break;
                    }
                }
                Answer::Deferred(deferred) => {
                    debug_assert_eq!(scratch.output.len(), before, "a part of an answer was left");
                    let incoming = Incoming {
                        head: RequestHeadBuf::copy_of(&request.head),
                        body: request.framing.into(),
                        keep_alive: request.keep_alive,
                        expect_continue: request.expect_continue,
                        began,
                        deferred,
                    };
                    let head_len = request.head_len;
                    self.conn.consume(head_len);
                    if self.conn.data().is_empty() {
                        self.conn.park();
                    }
                    self.partial = false;
                    return Some(Turn::Exchange(Box::new(incoming)));
                }
            }
        }
        None
    }

    /// Writes `output` and waits until the client took all but `window` bytes of what is queued.
    pub async fn send(
        &mut self,
        output: &mut Output,
        window: usize,
        limits: &SessionLimits,
        pace: &mut Pace<'_>,
    ) -> io::Result<()> {
        poll_fn(|cx| Poll::Ready(self.conn.write_output(cx, output))).await?;
        self.flush(window, limits, pace).await
    }

    /// Waits until no more than `window` bytes are queued for the client, as long as it takes some in time and enough
    /// on average.
    pub async fn flush(
        &mut self,
        window: usize,
        limits: &SessionLimits,
        pace: &mut Pace<'_>,
    ) -> io::Result<()> {
        self.timer.clear();
        poll_fn(|cx| self.poll_room(cx, window, limits, pace)).await
    }

    /// The same, as a poll. The timer MUST be clear, or set by an earlier call.
    pub fn poll_room(
        &mut self,
        cx: &mut Context<'_>,
        window: usize,
        limits: &SessionLimits,
        pace: &mut Pace<'_>,
    ) -> Poll<io::Result<()>> {
        if self.conn.queued() == 0 {
            return Poll::Ready(Ok(()));
        }
        match self.conn.poll_flush(cx) {
            Poll::Ready(result) => {
                self.has_room(pace);
                Poll::Ready(result)
            }
            Poll::Pending if self.conn.queued() <= window => {
                self.has_room(pace);
                Poll::Ready(Ok(()))
            }
            Poll::Pending => {
                let sent = self.conn.sent();
                loop {
                    let least = if pace.is_hurried() { limits.least_hurried } else { limits.least_out };
                    let left = pace.waits(sent, least);
                    let still = limits.send_timeout.saturating_sub(pace.still(sent));
                    let Some(left) = left.filter(|_| !still.is_zero()) else {
                        return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                    };
                    // One that takes next to nothing wakes nobody: it is too slow all the same.
                    self.timer.set(left.min(still).min(LOOK).max(TICK));
                    ready!(self.timer.poll(cx));
                }
            }
        }
    }

    /// The client is not waited for any more: a deadline that was for it must not fall on whoever is waited for next.
    fn has_room(&mut self, pace: &mut Pace<'_>) {
        if pace.goes_on(self.conn.sent()) {
            self.timer.clear();
        }
    }
}

async fn refuse<S: Service>(client: &mut Client, service: &S, refused: Refused) {
    let mut output = Output::new();
    service.refuse(&client.peer, &refused, client.conn.data(), &mut output);
    let limits = service.limits();
    if client.send(&mut output, 0, &limits, &mut Pace::new(service.hurry())).await.is_ok() {
        linger(client, LINGER).await;
    }
}

/// Ends the writing direction, and reads on for a while so that what was written arrives.
async fn linger(client: &mut Client, time: Duration) {
    client.timer.set(time);
    let mut left = LINGER_BYTES;
    poll_fn(|cx| {
        loop {
            if ready!(client.conn.poll_flush(cx)).is_err() || client.conn.poll_shutdown(cx).is_pending() {
                return Poll::Ready(());
            }
            let pending = client.conn.data().len();
            client.conn.consume(pending);
            left = left.saturating_sub(pending);
            match client.conn.poll_fill(cx) {
                Poll::Ready(Ok(1..)) if left > 0 => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    client.conn.park();
                    return client.timer.poll(cx);
                }
            }
        }
    })
    .await;
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Reads the PROXY protocol header; false where there is none, or it is wrong: such a connection is closed without a
/// word, since its peer does not speak HTTP yet.
async fn receive_proxy_header(client: &mut Client) -> bool {
    poll_fn(|cx| {
        loop {
            match proxy_protocol::parse(client.conn.data()) {
                Ok(Some(header)) => {
                    client.conn.consume(header.len);
                    if let Origin::Proxied { source, .. } = header.origin {
                        client.peer.client = Some(canonical(source));
                    }
                    return Poll::Ready(true);
                }
                Ok(None) => {}
                Err(_) => return Poll::Ready(false),
            }
            match client.conn.poll_fill(cx) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return Poll::Ready(false),
                Poll::Pending => {
                    client.conn.park();
                    ready!(client.timer.poll(cx));
                    return Poll::Ready(false);
                }
            }
        }
    })
    .await
}

/// Reads and drops what is left of a request body, up to `limit` bytes, so that the connection can be used again;
/// false where it cannot.
pub async fn discard(client: &mut Client, body: &mut Framer, mut limit: u64, within: Duration) -> bool {
    client.timer.set(within);
    poll_fn(|cx| {
        loop {
            match body.poll_step(&mut client.conn, cx) {
                Poll::Ready(Ok(BodyStep::Data(range))) => {
                    client.conn.consume(range.end);
                    limit = limit.saturating_sub(range.len() as u64);
                    if limit == 0 {
                        return Poll::Ready(false);
                    }
                }
                Poll::Ready(Ok(BodyStep::End(_))) => return Poll::Ready(true),
                Poll::Ready(Err(_)) => return Poll::Ready(false),
                Poll::Pending => {
                    ready!(client.timer.poll(cx));
                    return Poll::Ready(false);
                }
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::Ordering;

    const UNHURRIED: Duration = Duration::from_secs(3600);

    fn limits() -> SessionLimits {
        let least = LeastRate { bytes: 0, after: UNHURRIED };
        SessionLimits {
            head: Limits::default(),
            idle_timeout: UNHURRIED,
            head_timeout: UNHURRIED,
            body_timeout: UNHURRIED,
            send_timeout: UNHURRIED,
            least_in: least,
            least_out: least,
            least_hurried: LeastRate { bytes: u64::MAX, after: Duration::ZERO },
            max_requests: u32::MAX,
        }
    }

    const BODY: usize = 8 << 20;

    /// Runs `test` with a client that has [`BODY`] bytes to take, and its end of the connection.
    fn with_a_client_that_is_waited_for(test: impl AsyncFnOnce(Client, UnixStream)) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let address = crate::ListenAddress::Unix("/".into(), None);
            let entrance = Arc::new(Entrance { address, proxy_protocol: false });
            let mut client = Client {
                conn: Conn::new(Stream::Unix(tokio::net::UnixStream::from_std(ours).unwrap())),
                timer: Timer::new(),
                peer: Peer { client: None, entrance, requests: 0, number: 1 },
                partial: false,
                in_head: false,
                close: false,
                is_last: false,
            };
            client.conn.enqueue(Bytes::from(vec![b'x'; BODY]));
            test(client, theirs).await;
        });
    }

    #[test]
    fn the_time_to_take_something_ends_when_there_is_room_again() {
        with_a_client_that_is_waited_for(async |mut client, mut theirs| {
            let calm = AtomicBool::new(false);
            let (limits, mut pace) = (limits(), Pace::new(&calm));
            let mut room = |client: &mut Client, cx: &mut Context<'_>| {
                client.poll_room(cx, BODY / 2, &limits, &mut pace)
            };
            let waits = poll_fn(|cx| Poll::Ready(room(&mut client, cx).is_pending())).await;
            assert!(waits && client.timer.is_set());
            let reader = std::thread::spawn(move || {
                theirs.read_exact(&mut vec![0; BODY / 2]).unwrap();
                theirs
            });
            poll_fn(|cx| room(&mut client, cx)).await.unwrap();
            assert!(!client.timer.is_set(), "the next wait, for the origin, would have what is left of it");
            let _theirs = reader.join().unwrap();
            // A deadline that somebody else has set is left alone.
            client.timer.set(UNHURRIED);
            poll_fn(|cx| room(&mut client, cx)).await.unwrap();
            assert!(client.timer.is_set());
        });
    }

    #[test]
    fn a_client_that_is_waited_for_hears_that_it_is_to_hurry() {
        with_a_client_that_is_waited_for(async |mut client, _theirs| {
            static HURRY: AtomicBool = AtomicBool::new(false);
            let (limits, mut pace) = (limits(), Pace::new(&HURRY));
            std::thread::spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                HURRY.store(true, Ordering::Relaxed);
            });
            let room = poll_fn(|cx| client.poll_room(cx, 0, &limits, &mut pace)).await;
            assert_eq!(room.unwrap_err().kind(), io::ErrorKind::TimedOut);
        });
    }
}
