//! The service behind the sessions of one core: answers from memory at once, or starts an exchange.

use crate::core::Core;
use crate::exchange::{self, Deferred};
use crate::files::{FileRequest, Found};
use crate::fragments::Nesting;
use crate::handling::Handling;
use crate::log_throttle::LogTopic;
use crate::outgoing::{Begun, Outgoing, Terms};
use crate::recode::{self, KnownForm};
use crate::record::Outcome;
use crate::respond::Synthetic;
use crate::site::LocalSite;
use crate::step::apart::{Fitness, fitness};
use crate::step::assemble::may_be_page;
use crate::step::client_request::ClientRequest;
use crate::step::decide::{Decided, decide};
use crate::step::deliver::Delivery;
use crate::step::files::{self, without_file};
use crate::step::receive::Verdict;
use crate::step::received::Received;
use crate::step::shared_fetch::revalidate;
use crate::step::{hash, query};
use crate::tally::{StatusClass, TlsVersion, refused_text};
use crate::{Counter, Fault, Record};
use rustls::ProtocolVersion;
use sandarac_cache::{Intent, Key, Lookup};
use sandarac_message::accel::names_file;
use sandarac_message::target::with_path;
use sandarac_message::{Fields, Method, RequestHead, Timestamp, Version};
use sandarac_net::tls::HandshakeFault;
use sandarac_net::{
    AcceptTls, Account, Answer, Client, Cores, Incoming, ListenerId, Meter, PanicPart, Peer, Refused,
    Request, Responder, Service, SessionLimits, wall,
};
use sandarac_policy::{Action, PoolId};
use sandarac_wire::h2;
use std::any::Any;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A request that can be answered at once.
struct Known<'a> {
    core: &'a Core,
    site: &'a LocalSite,
    peer: &'a Peer,
    request: &'a Request<'a>,
    /// The transaction number of the client's request, if this one is for a fragment of its page.
    page: Option<u64>,
}

impl Known<'_> {
    /// Answers with a file or from the store, if that can be done at once. Otherwise returns the result of the lookup, if there
    /// was one.
    fn answer(
        &self,
        decided: &mut Decided<'_>,
        client: &mut impl Responder,
    ) -> Result<(), Option<(Key, Lookup)>> {
        let Decided { request, received, verdict } = decided;
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

    /// Answers from the store if the object is there whole. Otherwise returns the result of the lookup. Apart, a request
    /// fetches nothing for others, and only some of what is stored answers it.
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
        let (object, flight, outcome) = match core.shared.store.lookup(key, &query, now) {
            Lookup::Hit(object) if object.body().is_whole() => (object, None, Outcome::Hit),
            Lookup::Stale(object, flight) if object.body().is_whole() && !is_apart => {
                (object, flight, Outcome::Stale)
            }
            other => return Err(Some((key, other))),
        };
        let form = received.route.compress.as_deref().map(|rule| recode::known(rule, head.fields, &object));
        let mut handling = Handling::new(outcome);
        let takes_exchange = fitness(&object, head.fields, rule, is_apart) != Fitness::Fits
            || request.is_made_whole() && object.fields().iter().any(|field| names_file(&field))
            || received.route.fragments.is_some_and(|rule| may_be_page(rule, &object))
            || matches!(form, Some(KnownForm::Unmade))
            || object.body().len().is_some_and(|len| len > AT_ONCE)
            || !handling.reuse(&object, &directives, now);
        if takes_exchange {
            let found =
                if outcome == Outcome::Hit { Lookup::Hit(object) } else { Lookup::Stale(object, flight) };
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
        self.answered(&handling, Some(transaction), status, bytes, now);
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
        let Begun { status, body } = begin(&terms, chosen.outgoing(now), client);
        let bytes = chosen.body(body).map_or(0, |body| client.send(body));
        self.answered(&handling, None, status, bytes, now);
        Ok(())
    }

    /// Sends a fixed answer.
    fn fixed(&self, answer: &Synthetic, hsts: Option<&[u8]>, client: &mut impl Responder) {
        let now = wall();
        let terms = Terms { request: &self.request.head, now, hsts, cache_status: None };
        let begun = begin(&terms, answer.outgoing(), client);
        if let Some(body) = answer.body(begun.body) {
            client.send(body);
        }
        self.answered(&Handling::new(Outcome::Synth), None, answer.status, answer.body.len() as u64, now);
    }

    /// What the response to a request has beside its own fields.
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
    fn answered(&self, handling: &Handling, fetch: Option<u64>, status: u16, bytes: u64, now: Timestamp) {
        let Known { core, site, peer, request, page } = *self;
        core.counters.one(Counter::Requests);
        core.counters.outcome(handling, None);
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
                    outcome: handling.outcome,
                    duration,
                    first_byte: Some(duration),
                    ..Record::of(&request.head, now)
                },
            );
        }
    }
}

/// Begins a response.
fn begin(terms: &Terms<'_>, outgoing: Outgoing<'_>, client: &mut impl Responder) -> Begun {
    outgoing.begin(terms, |response| client.begin(response))
}

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
        let begun = begin(&terms, answer.outgoing(), client);
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
    /// Answers a request of a client, or one for a fragment of the `page` that the client's request with that number asks for.
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
        let mut decided = match decide(&site, peer, *head, request.scheme) {
            Ok(decided) => decided,
            Err(fault) => return Answer::Deferred(Deferred::new(Err(fault), None, site.clone())),
        };
        if matches!(decided.verdict, Err(Fault::PurgeDenied)) {
            self.counters.one(Counter::PurgesDenied);
        }
        let mut found = None;
        // A body has to be read or forwarded first.
        if !request.has_body {
            match known.answer(&mut decided, client) {
                Ok(()) => return Answer::Answered,
                Err(looked_up) => found = looked_up,
            }
        }
        decided.refuse_loop(&site);
        if let Ok(Verdict::Synth(answer)) = &decided.verdict
            && !request.has_body
        {
            let hsts = site.hsts(peer, decided.received.requester.scheme, decided.received.route);
            known.fixed(answer, hsts, client);
            return Answer::Answered;
        }
        let decision = decided.into_decision();
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

    /// The answer to the challenge of a CA, if an order waits for it. Other requests for such paths follow the routes.
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

/// A response of at most so many bytes is answered in place, and logged as sent when it is queued.
const AT_ONCE: u64 = 2 << 20;

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
