//! The service behind the sessions, and the interface between them.

use crate::account::{Account, Holder};
use crate::crowding::Cores;
use crate::leased_head::LeasedHead;
use crate::listen::ListenerId;
use crate::response::{Responder, Response};
use crate::tls::{HandshakeFault, TlsPeer};
use crate::{BodyError, BodyStep, Duplex, Meter, MinimumRate, Timer};
use sandarac_message::target::Scheme;
use sandarac_message::{Fields, Piece, RequestHead};
use sandarac_wire::h1::{Limits, Refusal};
use sandarac_wire::h2;
use std::any::Any;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The limits of a session on its client.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// Limits of a request head.
    pub head: Limits,
    /// Wait for the next request on a connection.
    pub idle_timeout: Duration,
    /// Wait for a whole request head, from its first byte or from accept.
    pub head_timeout: Duration,
    /// Wait for the next piece of a request body.
    pub body_timeout: Duration,
    /// Wait for the client to take the next piece of a response.
    pub send_timeout: Duration,
    /// The rate at which a client must send a request body.
    pub min_rate_in: MinimumRate,
    /// The rate at which a client must take a response.
    pub min_rate_out: MinimumRate,
    /// The rate at which a client must take a response under [memory pressure](Service::memory_pressure).
    pub min_rate_under_pressure: MinimumRate,
    /// The same where the account of what clients hold is nearly full.
    pub min_rate_when_full: MinimumRate,
    /// Requests on one connection before it is closed.
    pub max_requests: u32,
}

/// How long a client may move nothing where all hold more than they may. One that moves is left alone also
/// then.
const AT_ONCE: Duration = Duration::from_millis(250);

/// How long a client may take nothing under memory pressure. The system of one that reads 40 KiB a second may
/// show it once in more than half a minute: it takes more when a large part of its buffers is free, and these
/// grow to megabytes.
const STILL_UNDER_PRESSURE: Duration = Duration::from_secs(60);

impl SessionLimits {
    /// The rate at which a client must take a response now. `presses` is whether there is [memory
    /// pressure](Service::memory_pressure) that this client adds to.
    pub(crate) fn min_rate_out(&self, presses: bool, holder: &Holder) -> MinimumRate {
        if presses { self.min_rate_of_those_who_press(holder) } else { self.min_rate_out }
    }

    /// How long a client may take nothing at all.
    pub(crate) fn patience(&self, presses: bool) -> Duration {
        if presses { self.send_timeout.min(STILL_UNDER_PRESSURE) } else { self.send_timeout }
    }

    /// The rate at which a client has to move bytes that holds so much that it may have to give way.
    pub(crate) fn min_rate_of_those_who_press(&self, holder: &Holder) -> MinimumRate {
        if holder.is_beyond_limit() {
            MinimumRate { after: AT_ONCE, ..self.min_rate_when_full }
        } else if holder.account().is_nearly_full() {
            self.min_rate_when_full
        } else {
            self.min_rate_under_pressure
        }
    }
}

/// The application of sessions: the proxy.
pub trait Service: Meter + 'static {
    /// The findings of [`Service::answer`] about a request that it defers.
    type Deferred;

    /// The limits for the next request on a connection to a listener; they change on reload.
    fn limits(&self, listener: ListenerId) -> SessionLimits;

    /// A number for an accepted connection, different from all others.
    fn number(&self) -> u64;

    /// Whether connections to a listener begin with a PROXY protocol header; it changes on reload. `None` where the listener is
    /// not known any more: what its clients send is not guessed at.
    fn expects_proxy_header(&self, listener: ListenerId) -> Option<bool>;

    /// TLS for connections to a listener; it changes on reload. `None` where clients speak HTTP in clear.
    fn tls(&self, listener: ListenerId) -> Option<AcceptTls>;

    /// Whether clients of a listener may begin HTTP/2 without having negotiated it (RFC 9113 §3.3); it changes on reload.
    fn takes_http2(&self, listener: ListenerId) -> bool;

    /// A client broke the protocol of HTTP/2, or a limit. It `ends` the connection, or only a stream.
    fn http2_fault(&self, peer: &Peer, fault: h2::Fault, ends: bool);

    /// Input was not accepted as a request, and gets no response.
    fn ignored(&self, refused: &Refused);

    /// A TLS handshake has ended; [`Peer::tls`] is its outcome.
    fn handshake_ended(&self, peer: &Peer);

    /// A TLS handshake has failed; the connection is closed.
    fn handshake_failed(&self, peer: &Peer, fault: &HandshakeFault);

    /// A connection is closed because it did not begin with a valid PROXY protocol header.
    fn proxy_header_missing(&self, peer: &Peer);

    /// Whether one more connection may be served. The service MUST count it until [`Service::closed`].
    fn admit(&self) -> bool;

    /// Counts an admitted connection against the most that its client may have, until what is returned is
    /// dropped.
    ///
    /// # Errors
    /// The client has as many.
    #[expect(clippy::result_unit_err, reason = "there is one reason")]
    fn admit_client(&self, peer: &Peer) -> Result<Option<Box<dyn Any>>, ()>;

    /// The cores of the process, which make room for each other's connections.
    fn cores(&self) -> &Cores;

    /// An idle connection is closed, so that another may be admitted.
    fn gave_way(&self);

    /// A connection is turned away because it was not admitted.
    fn refused(&self);

    /// A connection that was admitted has ended.
    fn closed(&self);

    /// A client was cut off because it took too little of a response, or is gone.
    fn cut_off(&self);

    /// A response broke off after its exchange had ended, or without one: its file has become shorter, or cannot be read.
    fn body_truncated(&self);

    /// Whether the memory that clients hold is needed, so that they have to take responses faster. May change
    /// at any time.
    fn memory_pressure(&self) -> &AtomicBool;

    /// The account of what connections hold.
    fn account(&self) -> &Arc<Account>;

    /// Accepting a connection failed.
    fn accept_failed(&self, error: &io::Error);

    /// Answers from memory, or defers. MUST NOT block, and MUST defer a request that has a body.
    fn answer(
        &self,
        peer: &Peer,
        request: &Request<'_>,
        client: &mut impl Responder,
    ) -> Answer<Self::Deferred>;

    /// Serves a deferred request. The outcome is what `client` was given: a response that has not ended when
    /// the exchange ends has broken off.
    fn exchange(
        &self,
        client: &mut dyn Client,
        request: Box<Incoming<Self::Deferred>>,
    ) -> impl Future<Output = ()>;

    /// Responds to input that is not a request, or came too late; the connection is closed afterwards.
    /// `received` is the input so far.
    fn refuse(&self, peer: &Peer, refused: &Refused, received: &[u8], client: &mut impl Responder);
}

/// A request as it is received, in any protocol.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The head.
    pub head: RequestHead<'a>,
    /// The scheme that a client of HTTP/2 states beside the target. It MUST NOT be trusted.
    pub scheme: Option<Scheme>,
    /// Whether a body follows.
    pub has_body: bool,
    /// When it was received.
    pub began: Instant,
}

/// The outcome of answering a request from memory.
#[derive(Debug)]
pub enum Answer<D> {
    /// The responder has the response.
    Answered,
    /// The request needs an exchange, which is given what is known so far.
    Deferred(D),
}

/// A request that became an exchange.
#[derive(Debug)]
pub struct Incoming<D> {
    /// The head.
    pub head: LeasedHead,
    /// Whether the client waits for 100 (Continue) before it sends the body.
    pub expect_continue: bool,
    /// When it was received.
    pub began: Instant,
    /// The findings of [`Service::answer`] about it.
    pub deferred: D,
}

/// TLS for the connections to a listener.
#[derive(Clone, Debug)]
pub struct AcceptTls {
    /// Certificates and the rest of the server's side.
    pub config: Arc<rustls::ServerConfig>,
    /// The most time for a handshake.
    pub timeout: Duration,
    /// The most connections of this core that may be without a finished handshake. If one more comes, the oldest ends.
    pub max_handshakes: usize,
}

/// Why a connection's input was not accepted as a request.
#[derive(Debug)]
pub enum Refused {
    /// It is not TLS, and the listener expects TLS (400).
    NotTls,
    /// It breaks the protocol, or a limit.
    Message(Refusal),
    /// A request over HTTP/2 is above a limit.
    Http2(h2::Refusal),
    /// A request head did not arrive in time (408).
    Late,
    /// Too many connections are open (503).
    Crowded,
    /// The client has too many connections open (503).
    OneClient,
    /// Connections hold as much memory as they may, or this one does (503, or REFUSED_STREAM).
    Full,
}

/// The other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The number of the connection, from [`Service::number`].
    pub number: u64,
    /// The client's address: the connection's, or the one announced by the PROXY protocol. An IPv4-mapped
    /// IPv6 address (RFC 4291 §2.5.5.2), as a listener for both reports it, is converted to IPv4. None over a
    /// Unix socket.
    pub client: Option<SocketAddr>,
    /// The listener that accepted the connection.
    pub listener: ListenerId,
    /// The outcome of the TLS handshake; `None` over a connection in clear.
    pub tls: Option<Rc<TlsPeer>>,
    /// Requests received on the connection, the current one included.
    pub requests: u32,
    /// The holder of what the connection makes the process hold.
    pub holder: Holder,
}

/// The client's side of one exchange, in any protocol: it delivers the request body and takes the response.
/// An exchange owns it exclusively, with its own timer, so that many can run on one connection.
///
/// A response is [begun](Client::begin), its body [written](Client::write) or [shared](Client::share) piece
/// by piece, each once there is [room](Client::poll_room), and [ended](Client::end).
pub trait Client {
    /// The client and its connection.
    fn peer(&self) -> &Peer;

    /// The deadline of the exchange's current wait.
    fn timer(&mut self) -> &mut Timer;

    /// Bytes of the request body that are still to come, if known. 0 after its end.
    fn body_remaining(&self) -> Option<u64>;

    /// Bytes of the request body that have arrived and were not taken. Fails if their framing is wrong.
    fn body_arrived(&self) -> Result<u64, Refusal>;

    /// The next step of the request body. While this is pending, the client's rate is measured, unless it
    /// [awaits 100](Client::awaits_continue). Fails with [`BodyError::Late`] if it sends nothing in time, or
    /// too little.
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<BodyStep, BodyError>>;

    /// The bytes of a [`BodyStep::Data`].
    fn body_data(&self, range: &Range<usize>) -> &[u8];

    /// Drops the bytes of a [`BodyStep::Data`] after use.
    fn consume_body(&mut self, range: &Range<usize>);

    /// Whether the client sends its body only after 100 (Continue), and has sent nothing of it.
    fn awaits_continue(&self) -> bool;

    /// Whether the rest of the body may come at any rate, as that of gRPC does. Otherwise, and from the beginning, the minimum
    /// rate holds. Only a stream of HTTP/2 can be excused.
    fn take_body_at_any_rate(&mut self, _any: bool) {}

    /// Stops waiting for the client until the next [`Client::poll_body`].
    fn pause_body(&mut self);

    /// Stops reading the request body, because it is wrong or too long.
    fn give_up_body(&mut self);

    /// Ready when the client has left: it has broken off its connection or its request, or, with
    /// `closed_is_left`, closed its side. Meanwhile receives as much of an untaken body as there is room for.
    ///
    /// Output that is queued for the client goes on being written.
    fn poll_left(&mut self, cx: &mut Context<'_>, closed_is_left: bool) -> Poll<()>;

    /// Whether the client has closed its side. Costs a system call.
    fn has_closed(&mut self) -> bool;

    /// Sends an interim response (RFC 9110 §15.2), if the client's protocol has them. A client that has left
    /// is noticed later.
    fn interim(&mut self, cx: &mut Context<'_>, status: u16, reason: &[u8], fields: Fields<'_>);

    /// Begins the response. The head is written with the first piece of its body, with its end, or by
    /// [`Client::send_begun`].
    fn begin(&mut self, response: Response<'_>);

    /// Writes the head of a begun response, because the body is slow to come.
    fn send_begun(&mut self, cx: &mut Context<'_>) -> io::Result<()>;

    /// Writes a piece of the body, which MUST NOT be empty.
    fn write(&mut self, cx: &mut Context<'_>, piece: &[u8]) -> io::Result<()>;

    /// Adds a piece of the body without a copy. It MUST NOT be empty.
    fn share(&mut self, cx: &mut Context<'_>, piece: Piece) -> io::Result<()>;

    /// Ends the body.
    fn end(&mut self, cx: &mut Context<'_>, trailers: Fields<'_>) -> io::Result<()>;

    /// Ready when no more than `window` bytes wait for the client. Fails if the client takes nothing in time,
    /// or too little. Uses the [timer](Client::timer) while bytes wait; it MUST be clear, or set by an
    /// earlier call.
    fn poll_room(&mut self, cx: &mut Context<'_>, window: usize) -> Poll<io::Result<()>>;

    /// Notes that the exchange, while there is no room, keeps `bytes` of the response that the origin has sent.
    fn keeps(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// Bytes that the exchange may read from the origin at a time. Fewer where many exchanges share a connection.
    fn read_limit(&self) -> usize {
        usize::MAX
    }

    /// Sends the head of a response that switches to another protocol.
    fn switch(
        &mut self,
        cx: &mut Context<'_>,
        status: u16,
        reason: &[u8],
        fields: Fields<'_>,
    ) -> io::Result<()>;

    /// The bytes in both directions and the timer, for the other protocol.
    fn tunnel(&mut self) -> (&mut dyn Duplex, &mut Timer);

    /// Records that the other protocol has ended in order.
    fn end_tunnel(&mut self);
}
