//! The service behind the sessions of one core: answers from memory at once, or starts an exchange.

use crate::at_once::{Known, begin};
use crate::core::Core;
use crate::exchange::{self, Deferred};
use crate::fragments::Nesting;
use crate::outgoing::Terms;
use crate::report::log_throttle::LogTopic;
use crate::report::record::Outcome;
use crate::report::tally::{StatusClass, TlsVersion, refused_text};
use crate::respond::Synthetic;
use crate::step::decide::decide;
use crate::step::receive::{Verdict, receive};
use crate::{Counter, Fault, Record};
use rustls::ProtocolVersion;
use sandarac_message::target::with_path;
use sandarac_message::{Fields, Method, RequestHead, Version};
use sandarac_net::tls::HandshakeFault;
use sandarac_net::{
    AcceptTls, Account, Answer, Client, Cores, Incoming, ListenerId, Meter, PanicPart, Peer, Refused,
    Request, Responder, Service, SessionLimits, wall,
};
use sandarac_wire::h2;
use std::any::Any;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

impl Meter for Core {
    fn wrote(&self, bytes: u64) {
        self.counters.add(Counter::BytesToClients, bytes);
    }
}

impl Service for Core {
    type Deferred = Deferred;

    fn limits(&self, listener: ListenerId) -> SessionLimits {
        let site = self.site();
        // The settings of a listener that is gone serve one more request of each of its connections.
        let max_requests = if site.is_listening(listener) { site.session.max_requests } else { 1 };
        SessionLimits { max_requests, ..site.session }
    }

    fn number(&self) -> u64 {
        self.transaction()
    }

    fn expects_proxy_header(&self, listener: ListenerId) -> Option<bool> {
        self.site().listener(listener).map(|listener| listener.proxy_protocol)
    }

    fn tls(&self, listener: ListenerId) -> Option<AcceptTls> {
        self.site().listener(listener)?.tls.as_ref().map(|tls| tls.accept(self.shared.max_handshakes()))
    }

    fn takes_http2(&self, listener: ListenerId) -> bool {
        self.site().listener(listener).is_some_and(|listener| listener.http2)
    }

    fn http2_fault(&self, peer: &Peer, fault: h2::Fault, ends: bool) {
        self.counters.http2_faults.one(&fault);
        if !ends {
            return;
        }
        let site = self.site();
        let Some(listener) = site.listener(peer.listener) else { return };
        self.shared.log_throttled(LogTopic::Http2(peer.listener, fault.name()), || {
            format!(
                "HTTP/2 with {} on {} ended: {} ({fault})",
                client_text(peer),
                listener.address,
                fault.name()
            )
        });
    }

    fn ignored(&self, refused: &Refused) {
        self.counters.refused.one(refused);
        self.note_refusal(refused);
    }

    fn handshake_ended(&self, peer: &Peer) {
        let Some(tls) = &peer.tls else { return };
        self.counters.handshakes.one(match tls.version {
            ProtocolVersion::TLSv1_2 => &TlsVersion::Tls12,
            _ => &TlsVersion::Tls13,
        });
        if tls.resumed {
            self.counters.one(Counter::HandshakesResumed);
        }
    }

    fn handshake_failed(&self, peer: &Peer, fault: &HandshakeFault) {
        self.counters.handshakes_failed.one(fault);
        // Clients that leave are no news.
        if matches!(fault, HandshakeFault::Closed | HandshakeFault::Io(_)) {
            return;
        }
        let site = self.site();
        let Some(listener) = site.listener(peer.listener) else { return };
        self.shared.log_throttled(LogTopic::Handshake(peer.listener, fault.name()), || {
            format!("TLS with {} on {} failed: {fault}", client_text(peer), listener.address)
        });
    }

    fn proxy_header_missing(&self, peer: &Peer) {
        self.counters.one(Counter::ProxyHeadersMissing);
        let site = self.site();
        let Some(listener) = site.listener(peer.listener) else { return };
        self.shared.log_throttled(LogTopic::ProxyHeader(peer.listener), || {
            format!(
                "a connection from {} to {} is closed: it does not begin with a valid PROXY header \
                 (proxy_protocol = true)",
                client_text(peer),
                listener.address
            )
        });
    }

    fn admit(&self) -> bool {
        let admitted = self.shared.admit();
        if admitted {
            self.counters.one(Counter::Connections);
        }
        admitted
    }

    fn admit_client(&self, peer: &Peer) -> Result<Option<Box<dyn Any>>, ()> {
        let client = peer.client.map(|client| client.ip());
        if self.site().trusts(peer.listener, client) {
            // It speaks for many.
            return Ok(None);
        }
        let counted = self.shared.admit_client(client)?;
        Ok(counted.map(|counted| Box::new(counted) as Box<dyn Any>))
    }

    fn cores(&self) -> &Cores {
        &self.shared.cores
    }

    fn gave_way(&self) {
        self.counters.one(Counter::ConnectionsGaveWay);
    }

    fn refused(&self) {
        self.counters.one(Counter::ConnectionsRefused);
        self.shared.log_throttled(LogTopic::Clients, || {
            "too many client connections: some are answered 503".to_owned()
        });
    }

    fn closed(&self) {
        self.shared.closed();
    }

    fn cut_off(&self) {
        self.counters.one(Counter::ClientsSlow);
    }

    fn body_truncated(&self) {
        self.counters.one(Counter::BodiesTruncated);
    }

    fn memory_pressure(&self) -> &AtomicBool {
        &self.shared.memory_pressure
    }

    fn account(&self) -> &Arc<Account> {
        &self.shared.account
    }

    fn accept_failed(&self, error: &io::Error) {
        self.counters.one(Counter::AcceptFailures);
        self.shared.log_throttled(LogTopic::Accepting, || format!("cannot accept connections: {error}"));
    }

    fn answer(&self, peer: &Peer, request: &Request<'_>, client: &mut impl Responder) -> Answer<Deferred> {
        let Some(target) = with_path(request.head.target) else {
            return self.answer_as(peer, request, client, None);
        };
        let request = Request { head: RequestHead { target: &target, ..request.head }, ..*request };
        match self.answer_as(peer, &request, client, None) {
            Answer::Answered => Answer::Answered,
            Answer::Deferred(deferred) => Answer::Deferred(Deferred { target: Some(target), ..deferred }),
        }
    }

    async fn exchange(&self, client: &mut dyn Client, request: Box<Incoming<Deferred>>) {
        exchange::run(self, client, request, None).await;
    }

    fn refuse(&self, peer: &Peer, refused: &Refused, received: &[u8], client: &mut impl Responder) {
        let site = self.site();
        let answer = match refused {
            Refused::Message(refusal) => Synthetic::refusal(*refusal, site.name()),
            Refused::Http2(refusal) => Synthetic::turned_away(refusal.status(), refusal.text(), site.name()),
            Refused::Late => {
                Synthetic::turned_away(408, "the request head did not arrive in time", site.name())
            }
            Refused::NotTls => {
                let text = "this port speaks TLS: use https:// instead of http://";
                Synthetic::turned_away(400, text, site.name())
            }
            Refused::Crowded => Synthetic::turned_away(503, "too many connections are open", site.name()),
            Refused::OneClient => {
                Synthetic::turned_away(503, "too many connections are open from this address", site.name())
            }
            Refused::Full => Synthetic::turned_away(503, "too much memory is in use", site.name()),
        };
        self.counters.refused.one(refused);
        self.note_refusal(refused);
        if received.starts_with(TLS_HANDSHAKE)
            && peer.tls.is_none()
            && let Some(listener) = site.listener(peer.listener)
        {
            self.shared.log_throttled(LogTopic::TlsUnexpected(peer.listener), || {
                format!(
                    "{} speaks TLS to {}, which has no certificates: add `tls` to its [[listen]], or use http://",
                    client_text(peer),
                    listener.address
                )
            });
        }
        self.counters.responses.one(&StatusClass(answer.status));
        let (method_text, target) = request_line(received);
        let what_came = RequestHead {
            method: Method::Other,
            method_text,
            target,
            version: if matches!(refused, Refused::Http2(_)) { Version::Http2 } else { Version::Http11 },
            fields: Fields::default(),
        };
        let terms = Terms { request: &what_came, now: wall(), hsts: None, cache_status: None };
        let begun = begin(&terms, &mut answer.outgoing(), client);
        if let Some(body) = answer.body(begun.body) {
            client.send(body);
        }
        if self.recorder.wants() {
            self.record(
                &site,
                peer,
                what_came.fields,
                &Record {
                    request: self.transaction(),
                    status: answer.status,
                    bytes: answer.body.len() as u64,
                    outcome: Outcome::Error,
                    reason: Some(refused_text(refused)),
                    ..Record::of(&what_came, terms.now)
                },
            );
        }
    }
}

impl Core {
    /// Answers a request of a client, or one for a fragment of the `page` that the client's request with that
    /// number asks for.
    pub(crate) fn answer_as(
        &self,
        peer: &Peer,
        request: &Request<'_>,
        client: &mut impl Responder,
        page: Option<u64>,
    ) -> Answer<Deferred> {
        let site = self.site();
        let head = &request.head;
        if let Some(answer) = self.challenge(head)
            && !request.has_body
        {
            Known { core: self, site: &site, peer, request, page }.fixed(&answer, None, client);
            return Answer::Answered;
        }
        let known = Known { core: self, site: &site, peer, request, page };
        let received = match receive(&site, peer, head, request.scheme) {
            Ok(received) => received,
            Err(fault) => return Answer::Deferred(Deferred::new(Err(fault), None, site.clone())),
        };
        let mut decided = decide(&site, peer, &received, *head);
        if matches!(decided.verdict, Err(Fault::PurgeDenied)) {
            self.counters.one(Counter::PurgesDenied);
        }
        let mut found = None;
        // A body has to be read or forwarded first.
        if !request.has_body {
            match known.answer(&received, &mut decided, client) {
                Ok(()) => return Answer::Answered,
                Err(looked_up) => found = looked_up,
            }
        }
        decided.refuse_loop(&site);
        if let Ok(Verdict::Synth(answer)) = &decided.verdict
            && !request.has_body
        {
            let hsts = site.hsts(peer, received.requester.scheme, received.route);
            known.fixed(answer, hsts, client);
            return Answer::Answered;
        }
        let decision = decided.into_decision(&received);
        Answer::Deferred(Deferred::new(decision, found, site))
    }

    /// Serves the deferred request for a fragment in a task of its own.
    pub(crate) fn spawn_exchange(
        self: &Rc<Core>,
        mut client: impl Client + 'static,
        incoming: Box<Incoming<Deferred>>,
        nesting: Nesting,
    ) {
        let core = self.clone();
        // Behind a pointer, because the exchange of a fragment may spawn those of others.
        let exchange: Pin<Box<dyn Future<Output = ()>>> = Box::pin(async move {
            exchange::run(&core, &mut client, incoming, Some(nesting)).await;
        });
        sandarac_net::spawn(PanicPart::Exchange, || exchange);
    }

    /// The answer to the challenge of a CA, if an order waits for it. Other requests for such paths follow
    /// the routes.
    fn challenge(&self, head: &RequestHead<'_>) -> Option<Synthetic> {
        let token = head.target.strip_prefix(b"/.well-known/acme-challenge/")?;
        if !matches!(head.method, Method::Get | Method::Head) {
            return None;
        }
        let answer = self.shared.challenges.get()?(std::str::from_utf8(token).ok()?)?;
        Some(Synthetic::challenge(answer))
    }
}

/// The beginning of a TLS connection: a record of a handshake, of a version from 1.0 (RFC 8446 §5.1).
const TLS_HANDSHAKE: &[u8] = &[22, 3];

impl Core {
    /// Tells the operator why requests are refused, where only he can help.
    fn note_refusal(&self, refused: &Refused) {
        if matches!(refused, Refused::Full) {
            self.shared.log_throttled(LogTopic::Memory, || {
                let (held, most) = self.shared.held_in_all();
                let [held, most] = [held, most].map(|bytes| bytes >> 20);
                format!("requests are refused for want of memory: clients hold {held} of {most} MiB ([cache] memory)")
            });
        }
    }
}

/// The client of a connection, for messages.
fn client_text(peer: &Peer) -> String {
    peer.client.map_or_else(|| "a Unix socket".to_owned(), |client| client.to_string())
}

/// The method and target of a refused request, as far as they can be read. For the log, which must hold only
/// the beginning of malformed input.
fn request_line(received: &[u8]) -> (&[u8], &[u8]) {
    const METHOD: usize = 32;
    const TARGET: usize = 1024;
    let line = received
        .split(|byte| matches!(byte, b'\r' | b'\n'))
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    let method = words.next().filter(|word| word.len() <= METHOD && word.iter().all(u8::is_ascii_graphic));
    match (method, words.next()) {
        (Some(method), Some(target)) => (method, &target[..target.len().min(TARGET)]),
        _ => (b"", b""),
    }
}
