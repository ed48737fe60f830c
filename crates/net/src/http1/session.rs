//! The session of one connection, from accept to close.
//!
//! Requests that the service answers from memory are parsed, answered and written without a separate task,
//! allocation or wait; pipelined responses are sent in one write. Any other request becomes an exchange that
//! has the connection to itself until it is done.

use super::client::{Http1Client, Next};
use super::connection::{Connection, Handover, InPlace, LAST_REQUEST, NewConnection, Turn, canonical};
use crate::service::{AcceptTls, Refused, Service};
use crate::sessions::{Lingering, Membership, Sessions};
use crate::tls::HandshakeFault;
use crate::{Holder, Output, RateGauge, SessionLimits, Timer, Transport, boxed, http2, tls};
use sandarac_message::Version;
use sandarac_wire::proxy_protocol::{self, Origin};
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// How often a client is judged that holds much.
const JUDGE_EVERY: Duration = Duration::from_secs(1);

/// How long, and for how many bytes, a client's input is still read before closing, so that closing does not
/// destroy the response on its way (RFC 9112 §9.6).
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 64 << 20;

/// The same if there are too many connections, or the process is ending: a round trip to most clients.
const LINGER_SHORT: Duration = Duration::from_millis(200);

/// Responds to a client that there are too many connections. With a `place` to linger in, the client is given
/// time to read the response; otherwise this does not wait, and the response may be lost with the connection.
pub(crate) async fn turn_away<S: Service>(new: NewConnection, service: Rc<S>, place: Option<Lingering>) {
    let mut connection = Connection::new(new, &service);
    turn_away_for(&mut connection, &*service, &Refused::Crowded, place).await;
}

/// The same to one that has a place, which is free again at once, or after a round trip.
async fn turn_away_for<S: Service>(
    connection: &mut Connection,
    service: &S,
    why: &Refused,
    place: Option<Lingering>,
) {
    let mut output = Output::new();
    let mut answer = InPlace::new(&mut output, Version::Http11, false);
    service.refuse(&connection.peer, why, &[], &mut answer);
    let written = poll_fn(|cx| Poll::Ready(connection.conn.write_output(cx, &mut output))).await;
    if place.is_some() && written.is_ok() {
        linger(connection, LINGER_SHORT).await;
    }
}

/// Serves an admitted connection to its end.
pub(crate) async fn serve<S: Service>(new: NewConnection, service: Rc<S>, membership: Membership) {
    let mut connection = Connection::new(new, &service);
    let sessions = membership.sessions.clone();
    let place = Place { service: &*service, membership };
    let membership = &place.membership;
    poll_fn(|cx| {
        membership.wakes(cx.waker());
        Poll::Ready(())
    })
    .await;
    connection.timer.set(service.limits(connection.peer.listener).head_timeout);
    match service.expects_proxy_header(connection.peer.listener) {
        Some(true) => match Box::pin(receive_proxy_header(&mut connection, membership)).await {
            ProxyHeader::Received => {}
            ProxyHeader::Missing => {
                service.proxy_header_missing(&connection.peer);
                return;
            }
            ProxyHeader::ClosedUnused => return,
        },
        Some(false) => {}
        None => return,
    }
    let tls = service.tls(connection.peer.listener);
    let Ok(_counted) = service.admit_client(&connection.peer) else {
        match tls {
            None => {
                Box::pin(turn_away_for(&mut connection, &*service, &Refused::OneClient, sessions.linger()))
                    .await
            }
            // Without a handshake there is no way to tell the client.
            Some(_) => service.ignored(&Refused::OneClient),
        }
        return;
    };
    if let Some(tls) = tls {
        match Box::pin(begin_tls(&mut connection, &*service, &sessions, tls)).await {
            BeginTls::Begun => {}
            BeginTls::NotTls => {
                Box::pin(refuse(&mut connection, &*service, Refused::NotTls)).await;
                return;
            }
            BeginTls::BegunHttp2 => {
                Box::pin(serve_http2(&mut connection, &service, membership)).await;
                return;
            }
            BeginTls::Failed => return,
        }
    }
    loop {
        let turn = poll_fn(|cx| connection.poll_turn(cx, &*service, membership)).await;
        membership.works();
        match turn {
            Turn::Exchange(request) => match exchange(&*service, &mut connection, &sessions, request).await {
                Next::KeepAlive => {
                    connection.conn.park();
                    connection.await_request(&service.limits(connection.peer.listener));
                }
                Next::Close => connection.close = true,
                Next::Reset => {
                    connection.conn.reset();
                    return;
                }
                Next::CloseLingering => {
                    // The client is given time to take the response, but no longer.
                    if connection.conn.queued() == 0 || Box::pin(flush(&mut connection, &*service)).await {
                        Box::pin(linger(&mut connection, time_to_linger(&*service))).await;
                    }
                    return;
                }
            },
            Turn::Http2 => {
                Box::pin(serve_http2(&mut connection, &service, membership)).await;
                return;
            }
            Turn::Refused(refused) => {
                Box::pin(refuse(&mut connection, &*service, refused)).await;
                return;
            }
            Turn::Flush => {
                if !Box::pin(flush(&mut connection, &*service)).await {
                    return;
                }
            }
            Turn::Close => {
                close(&mut connection, &*service).await;
                return;
            }
            Turn::CloseLingering => {
                Box::pin(linger(&mut connection, time_to_linger(&*service))).await;
                return;
            }
        }
    }
}

/// Serves a connection that speaks HTTP/2 to its end.
async fn serve_http2<S: Service>(connection: &mut Connection, service: &Rc<S>, membership: &Membership) {
    let Connection { conn, peer, timer, .. } = connection;
    match http2::serve(conn, peer, timer, service, membership).await {
        http2::End::Close => close(connection, &**service).await,
        http2::End::Reset => connection.conn.reset(),
        http2::End::Linger => linger(connection, time_to_linger(&**service)).await,
    }
}

/// Prepares the end of a connection. Where the socket has no room for the last words of the transport, they
/// are waited for.
async fn close<S: Service>(connection: &mut Connection, service: &S) {
    if poll_fn(|cx| Poll::Ready(connection.conn.poll_last_words(cx).is_pending())).await {
        Box::pin(linger(connection, time_to_linger(service))).await;
    }
}

fn time_to_linger<S: Service>(service: &S) -> Duration {
    if service.memory_pressure().load(Ordering::Relaxed) { LINGER_SHORT } else { LINGER }
}

/// The exchange, in a separate allocation. As a block of [`serve`], it would leave room in that future for
/// everything moved out of it, and that future is most of what an idle connection costs.
fn exchange<'a, S: Service>(
    service: &'a S,
    connection: &'a mut Connection,
    sessions: &'a Sessions,
    exchange: Handover<S::Deferred>,
) -> Pin<Box<dyn Future<Output = Next> + 'a>> {
    boxed(|| async move {
        let limits = service.limits(connection.peer.listener);
        let mut judge = Judge { holder: connection.peer.holder.clone(), watched: None };
        let mut client = Http1Client::new(service, connection, sessions, limits, &exchange);
        {
            // In this future, and in no other: it is long, and would be copied.
            let mut exchange = pin!(service.exchange(&mut client, exchange.incoming));
            poll_fn(|cx| {
                loop {
                    if exchange.as_mut().poll(cx).is_ready() {
                        return Poll::Ready(());
                    }
                    if ready!(judge.poll(cx, &limits)) {
                        service.cut_off();
                    }
                }
            })
            .await;
        }
        client.finish().await
    })
}

/// Judges the client of an exchange, whatever it is that it holds.
struct Judge {
    holder: Holder,
    /// The gauge and the timer that watch it, once it has held much.
    watched: Option<Box<(RateGauge, Timer)>>,
}

impl Judge {
    /// Ready when the exchange has to be polled again. True if the connection fails from now on, because its
    /// client holds so much that it has to give way, and moves too little.
    fn poll(&mut self, cx: &mut Context<'_>, limits: &SessionLimits) -> Poll<bool> {
        let holder = &self.holder;
        if !holder.holds_much() || holder.is_cut() {
            return Poll::Pending;
        }
        let (rate, timer) = &mut **self.watched.get_or_insert_default();
        if !holder.presses() {
            rate.goes_on(|| holder.moved());
        } else if rate.waits(holder.moved(), limits.min_rate_of_those_who_press(holder)).is_none() {
            holder.cut();
            return Poll::Ready(true);
        }
        timer.set(JUDGE_EVERY);
        timer.poll(cx).map(|()| false)
    }
}

/// Waits for the client to take the queued output; false if it does not.
async fn flush<S: Service>(connection: &mut Connection, service: &S) -> bool {
    let limits = service.limits(connection.peer.listener);
    let flushed = connection.flush(0, &limits, service.memory_pressure()).await;
    connection.timer.set(limits.idle_timeout);
    match &flushed {
        Ok(()) => {}
        // A file has become shorter.
        Err(error) if error.kind() == io::ErrorKind::WriteZero => service.body_truncated(),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => service.cut_off(),
        // It has left.
        Err(_) => {}
    }
    flushed.is_ok()
}

/// Counts a connection while it lives, however it ends.
struct Place<'a, S: Service> {
    service: &'a S,
    membership: Membership,
}

impl<S: Service> Drop for Place<'_, S> {
    fn drop(&mut self) {
        self.service.closed();
    }
}

async fn refuse<S: Service>(connection: &mut Connection, service: &S, refused: Refused) {
    let mut output = Output::new();
    let mut answer = InPlace::new(&mut output, Version::Http11, false);
    service.refuse(&connection.peer, &refused, connection.conn.data(), &mut answer);
    // Nothing of it is kept while the client takes its answer.
    connection.conn.consume(connection.conn.data().len());
    connection.conn.park();
    if poll_fn(|cx| Poll::Ready(connection.conn.write_output(cx, &mut output))).await.is_ok() {
        let limits = service.limits(connection.peer.listener);
        if connection.flush(0, &limits, service.memory_pressure()).await.is_ok() {
            linger(connection, LINGER).await;
        }
    }
}

/// Ends the writing direction, and reads on for a while so that the output arrives.
async fn linger(connection: &mut Connection, time: Duration) {
    connection.timer.set(time);
    let (mut reads, mut left) = (true, LINGER_BYTES);
    poll_fn(|cx| {
        let Connection { conn, timer, .. } = &mut *connection;
        let ended = match conn.poll_flush(cx) {
            // TLS has last words, for which the socket may have no room yet.
            Poll::Ready(Ok(())) => conn.poll_shutdown(cx).is_ready(),
            Poll::Ready(Err(_)) => return Poll::Ready(()),
            Poll::Pending => false,
        };
        while reads {
            let pending = conn.data().len();
            conn.consume(pending);
            left = left.saturating_sub(pending);
            match conn.poll_fill(cx) {
                Poll::Ready(Ok(1..)) if left > 0 => {}
                Poll::Ready(_) => reads = false,
                Poll::Pending => {
                    conn.park();
                    return timer.poll(cx);
                }
            }
        }
        if ended { Poll::Ready(()) } else { timer.poll(cx) }
    })
    .await;
}

/// The beginning of a connection that should speak TLS.
enum BeginTls {
    Begun,
    /// It goes on with HTTP/2.
    BegunHttp2,
    /// Its first byte is not that of a handshake.
    NotTls,
    Failed,
}

/// The protocol by which a CA verifies who holds a name.
const ACME_TLS: &[u8] = b"acme-tls/1";

/// HTTP/2 (RFC 9113 §3.2).
const HTTP_2: &[u8] = b"h2";

/// The type of a record with a part of a handshake (RFC 8446 §5.1). No HTTP method begins with this byte.
const HANDSHAKE_RECORD: u8 = 22;

/// Serves the TLS handshake. On success the connection goes on over TLS.
async fn begin_tls<S: Service>(
    connection: &mut Connection,
    service: &S,
    sessions: &Sessions,
    tls: AcceptTls,
) -> BeginTls {
    connection.timer.set(tls.timeout);
    // From here on: a client that sends nothing takes a place too.
    let handshakes = &sessions.handshakes;
    let running = poll_fn(|cx| Poll::Ready(handshakes.enter(tls.max_handshakes, cx.waker()))).await;
    if connection.conn.data().is_empty() {
        let began = poll_fn(|cx| match connection.conn.poll_fill(cx) {
            Poll::Ready(received) => Poll::Ready(received.is_ok_and(|count| count > 0)),
            Poll::Pending if running.is_ended() => Poll::Ready(false),
            Poll::Pending => {
                if sessions.are_last() {
                    connection.timer.set_earlier(LAST_REQUEST);
                }
                connection.timer.poll(cx).map(|()| false)
            }
        });
        if !began.await {
            // Otherwise it has left, as checks of a port do.
            if running.is_ended() {
                service.handshake_failed(&connection.peer, &HandshakeFault::Crowded);
            }
            return BeginTls::Failed;
        }
    }
    if connection.conn.data()[0] != HANDSHAKE_RECORD {
        return BeginTls::NotTls;
    }
    let Some((stream, received)) = connection.conn.take_stream() else { return BeginTls::Failed };
    let Connection { timer, peer, .. } = &mut *connection;
    match tls::accept(stream, received, &tls.config, sessions, &running, timer, &peer.holder).await {
        // The certificate in the handshake was the answer; HTTP is not spoken (RFC 8737 §3).
        Ok((stream, _)) if stream.state().alpn_protocol() == Some(ACME_TLS) => BeginTls::Failed,
        Ok((stream, peer)) => {
            let is_http2 = stream.state().alpn_protocol() == Some(HTTP_2);
            connection.conn.set_transport(Transport::TlsClient(Box::new(stream)));
            connection.peer.tls = Some(Rc::new(peer));
            service.handshake_ended(&connection.peer);
            connection.timer.set(service.limits(connection.peer.listener).head_timeout);
            if is_http2 { BeginTls::BegunHttp2 } else { BeginTls::Begun }
        }
        Err(fault) => {
            service.handshake_failed(&connection.peer, &fault);
            BeginTls::Failed
        }
    }
}

/// The beginning of a connection that should have a PROXY protocol header.
enum ProxyHeader {
    Received,
    /// It is wrong, late, or broke off.
    Missing,
    /// The peer closed the connection without a byte, as checks of a port do.
    ClosedUnused,
}

/// Reads the PROXY protocol header. A connection without one is closed without a response, because its peer
/// does not speak HTTP yet.
async fn receive_proxy_header(connection: &mut Connection, membership: &Membership) -> ProxyHeader {
    poll_fn(|cx| {
        loop {
            match proxy_protocol::parse(connection.conn.data()) {
                Ok(Some(header)) => {
                    connection.conn.consume(header.len);
                    if let Origin::Proxied { source, .. } = header.origin {
                        connection.peer.client = Some(canonical(source));
                    }
                    return Poll::Ready(ProxyHeader::Received);
                }
                Ok(None) => {}
                Err(_) => return Poll::Ready(ProxyHeader::Missing),
            }
            match connection.conn.poll_fill(cx) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) if connection.conn.data().is_empty() => {
                    return Poll::Ready(ProxyHeader::ClosedUnused);
                }
                Poll::Ready(_) => return Poll::Ready(ProxyHeader::Missing),
                Poll::Pending => {
                    connection.conn.park();
                    let is_partial = !connection.conn.data().is_empty();
                    if !membership.gives_way(&mut connection.conn, 0, is_partial) {
                        ready!(connection.timer.poll(cx));
                    }
                    return Poll::Ready(ProxyHeader::Missing);
                }
            }
        }
    })
    .await
}
