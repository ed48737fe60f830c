//! The service behind the sessions, and what sessions and service tell each other.

use crate::listen::ListenerId;
use crate::response::{Responder, Response};
use crate::{BodyError, BodyStep, Conn, Meter, MinimumRate, Timer};
use sandarac_message::{Fields, Piece, RequestHead, RequestHeadBuf};
use sandarac_wire::h1::{Limits, Refusal};
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

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
    pub min_rate_in: MinimumRate,
    /// What a client must take of a response, at least.
    pub min_rate_out: MinimumRate,
    /// The same under [memory pressure](Service::memory_pressure).
    pub min_rate_under_pressure: MinimumRate,
    /// Requests on one connection before it is closed.
    pub max_requests: u32,
}

/// The application of sessions: the proxy.
pub trait Service: Meter + 'static {
    /// What [`Service::answer`] found out about a request it defers.
    type Deferred;

    /// The limits for the next request; they change on reload.
    fn limits(&self) -> SessionLimits;

    /// A number for a connection that was accepted, different from all others.
    fn number(&self) -> u64;

    /// Whether connections to a listener begin with a PROXY protocol header; it changes on reload. `None` where the listener is
    /// not known any more: what its clients send is not guessed at.
    fn expects_proxy_header(&self, listener: ListenerId) -> Option<bool>;

    /// Whether one more connection may be served. The service MUST count it until [`Service::closed`].
    fn admit(&self) -> bool;

    /// A connection that was admitted has ended.
    fn closed(&self);

    /// It ended because of a panic.
    fn panicked(&self);

    /// A client was cut off because it took too little of a response, or is gone.
    fn cut_off(&self);

    /// Whether the memory that clients hold is wanted, so that they have to take responses faster. It may change at any time.
    fn memory_pressure(&self) -> &AtomicBool;

    /// Accepting a connection failed.
    fn accept_failed(&self, error: &io::Error);

    /// Answers from memory, or defers. MUST NOT wait, and MUST defer a request that has a body.
    fn answer(
        &self,
        peer: &Peer,
        request: &Request<'_>,
        client: &mut impl Responder,
    ) -> Answer<Self::Deferred>;

    /// Serves a deferred request. How it ended is up to what `client` was given: a response that is not ended when the exchange
    /// is has broken off.
    fn exchange(
        &self,
        client: &mut dyn Client,
        request: Box<Incoming<Self::Deferred>>,
    ) -> impl Future<Output = ()>;

    /// Answers what is not a request, or came too late; the connection is closed after it. `received` is what there is of it.
    fn refuse(&self, peer: &Peer, refused: &Refused, received: &[u8], client: &mut impl Responder);
}

/// A request as it is received, in any protocol.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The head.
    pub head: RequestHead<'a>,
    /// Whether a body follows.
    pub has_body: bool,
    /// When it was received.
    pub began: Instant,
}

/// What became of a request that the service was asked to answer from memory.
#[derive(Debug)]
pub enum Answer<D> {
    /// The responder has the response.
    Answered,
    /// It takes an exchange; what is known so far goes along.
    Deferred(D),
}

/// A request that became an exchange.
#[derive(Debug)]
pub struct Incoming<D> {
    /// The head.
    pub head: RequestHeadBuf,
    /// Whether the client waits for 100 (Continue) before it sends the body.
    pub expect_continue: bool,
    /// When it was received.
    pub began: Instant,
    /// What [`Service::answer`] found out about it.
    pub deferred: D,
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

/// The other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The number of the connection, as [`Service::number`] gave it.
    pub number: u64,
    /// The client's address: the connection's, or the one the PROXY protocol announced. An IPv4 address is one also where it came
    /// as IPv4-mapped IPv6 (RFC 4291 §2.5.5.2), as it does over a listener of both. None over a Unix socket.
    pub client: Option<SocketAddr>,
    /// The listener that took the connection.
    pub listener: ListenerId,
    /// Requests received on the connection, the current one included.
    pub requests: u32,
}

/// The client's side of one exchange, whatever protocol it speaks: the request body as it arrives, and the way back for the
/// response. An exchange owns it alone, with a timer of its own, so that many can run on one connection.
///
/// A response is [begun](Client::begin), its body [written](Client::write) or [shared](Client::share) piece by piece, each once
/// there is [room](Client::poll_room), and [ended](Client::end).
pub trait Client {
    /// Who it is.
    fn peer(&self) -> &Peer;

    /// The deadline of whatever the exchange is waiting for.
    fn timer(&mut self) -> &mut Timer;

    /// Bytes of the request body that are still to come, where that is known. 0 after its end.
    fn body_remaining(&self) -> Option<u64>;

    /// Bytes of the request body that have arrived and were not taken. An error where its framing is wrong in them.
    fn body_arrived(&self) -> Result<u64, Refusal>;

    /// The next step of the request body. While this is pending the client is waited for, unless it
    /// [awaits 100](Client::awaits_continue): [`BodyError::Late`] where it sends nothing in time, or too little.
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<BodyStep, BodyError>>;

    /// The bytes of a [`BodyStep::Data`].
    fn body_data(&self, range: &Range<usize>) -> &[u8];

    /// Drops the bytes of a [`BodyStep::Data`], which are used.
    fn consume_body(&mut self, range: &Range<usize>);

    /// Whether the client sends its body only after 100 (Continue), and has sent nothing of it.
    fn awaits_continue(&self) -> bool;

    /// The client is not waited for until the next [`Client::poll_body`].
    fn pause_body(&mut self);

    /// What is left of the request body is not to be read: it is wrong, or too much.
    fn give_up_body(&mut self);

    /// Ready when the client has left: it has broken its connection or its request off, or closed its side where `closed_is_left`.
    /// Of a body that nobody takes yet as much is received as there is room for.
    fn poll_left(&mut self, cx: &mut Context<'_>, closed_is_left: bool) -> Poll<()>;

    /// Whether the client has closed its side. Costs a system call.
    fn has_closed(&self) -> bool;

    /// Sends an interim response (RFC 9110 §15.2), if the client knows such. A client that has left is noticed later.
    fn interim(&mut self, cx: &mut Context<'_>, status: u16, reason: &[u8], fields: Fields<'_>);

    /// Begins the response. Its head is written with the first piece of its body, its end, or [`Client::send_begun`].
    fn begin(&mut self, response: Response<'_>);

    /// Writes a head that was begun, because the body takes its time.
    fn send_begun(&mut self, cx: &mut Context<'_>) -> io::Result<()>;

    /// Writes a piece of the body, which MUST NOT be empty.
    fn write(&mut self, cx: &mut Context<'_>, piece: &[u8]) -> io::Result<()>;

    /// The same without a copy.
    fn share(&mut self, cx: &mut Context<'_>, piece: Piece) -> io::Result<()>;

    /// Ends the body.
    fn end(&mut self, cx: &mut Context<'_>, trailers: Fields<'_>) -> io::Result<()>;

    /// Ready when no more than `window` bytes wait for the client. Fails where it takes nothing in time, or too little. Uses the
    /// [timer](Client::timer), which MUST be clear, or set by an earlier call, where bytes wait.
    fn poll_room(&mut self, cx: &mut Context<'_>, window: usize) -> Poll<io::Result<()>>;

    /// Sends the head of a response after which another protocol follows.
    fn switch(
        &mut self,
        cx: &mut Context<'_>,
        status: u16,
        reason: &[u8],
        fields: Fields<'_>,
    ) -> io::Result<()>;

    /// The connection and the timer, for the other protocol.
    fn tunnel(&mut self) -> (&mut Conn, &mut Timer);

    /// The other protocol has ended in order.
    fn end_tunnel(&mut self);
}
