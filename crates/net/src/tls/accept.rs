//! The handshake with a client.

use super::fault::HandshakeFault;
use super::handshakes::Running;
use super::peer::TlsPeer;
use super::side::ServerSide;
use super::stream::TlsStream;
use crate::byte_queue::ByteQueue;
use crate::sessions::Sessions;
use crate::{Holder, Stream, Timer};
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert, UnbufferedServerConnection};
use rustls::sign::CertifiedKey;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

/// How long a handshake may still take while the process drains: three round trips on a slow line.
const LAST_HANDSHAKE: Duration = Duration::from_secs(2);

/// The longest ClientHello, with its records. With keys for two groups, tickets and its encrypted copy (ECH),
/// a browser sends less than 4 KiB.
const MAX_HELLO: usize = 16 << 10;

/// Bytes of memory of a handshake, beside the messages that have not come whole.
const HANDSHAKE: usize = 12 << 10;

/// Serves a TLS handshake until `timer` ends, or too many others are `running`. `received` is what was read
/// already. Whatever TLS has to tell the client about a failure is sent.
pub(crate) async fn accept(
    stream: Stream,
    received: ByteQueue,
    config: &Arc<ServerConfig>,
    sessions: &Sessions,
    running: &Running<'_>,
    timer: &mut Timer,
    holder: &Holder,
) -> Result<(TlsStream<ServerSide>, TlsPeer), HandshakeFault> {
    let handshakes = &sessions.handshakes;
    if holder.account().is_crowded_by_handshakes() {
        handshakes.end_stalled();
    }
    let mut held = holder.lease_handshake(HANDSHAKE).ok_or(HandshakeFault::Crowded)?;
    let asked = Arc::new(RecordsServerName { inner: config.cert_resolver.clone(), name: OnceLock::new() });
    let mut config = ServerConfig::clone(config);
    config.cert_resolver = asked.clone();
    let side = UnbufferedServerConnection::new(Arc::new(config)).map_err(HandshakeFault::Tls)?;
    let mut tls = TlsStream::new(stream, side, received);

    let mut ends = |cx: &mut std::task::Context<'_>| {
        if sessions.are_last() {
            timer.set_earlier(LAST_HANDSHAKE);
        }
        match () {
            () if running.is_ended() => Some(HandshakeFault::Crowded),
            () if timer.poll(cx).is_ready() => Some(HandshakeFault::Late),
            () => None,
        }
    };
    loop {
        let mut turn = pin!(handshakes.turn());
        poll_fn(|cx| match turn.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending => {
                tls.park();
                ends(cx).map_or(Poll::Pending, |fault| Poll::Ready(Err(fault)))
            }
        })
        .await?;
        match tls.advance_handshake() {
            Ok(true) => break,
            Ok(false) => {}
            Err(error) => {
                // The client may not take the alert.
                let _ = poll_fn(|cx| Poll::Ready(tls.poll_flush(cx))).await;
                return Err(HandshakeFault::Tls(error));
            }
        }
        let is_hello = asked.name.get().is_none();
        poll_fn(|cx| match tls.poll_receive(cx) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(HandshakeFault::Closed)),
            Poll::Ready(Ok(_)) if is_hello && tls.unprocessed() > MAX_HELLO => {
                let why = "the ClientHello is longer than 16 KiB";
                Poll::Ready(Err(HandshakeFault::Io(io::Error::new(io::ErrorKind::InvalidData, why))))
            }
            Poll::Ready(Ok(_)) => Poll::Ready(Ok(())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(HandshakeFault::Io(error))),
            Poll::Pending => {
                held.set(HANDSHAKE + tls.unprocessed());
                ends(cx).map_or(Poll::Pending, |fault| Poll::Ready(Err(fault)))
            }
        })
        .await?;
    }
    let peer = TlsPeer::of(tls.state(), asked.name.get().and_then(Option::as_deref));
    let peer = peer.ok_or_else(|| HandshakeFault::Tls(rustls::Error::HandshakeNotComplete))?;
    Ok((tls, peer))
}

/// Selects certificates as another resolver does, and records the name that the client asked for: a
/// connection of the unbuffered API does not tell it.
#[derive(Debug)]
struct RecordsServerName {
    inner: Arc<dyn ResolvesServerCert>,
    /// Set once the ClientHello has come; `None` if it names nobody.
    name: OnceLock<Option<Box<str>>>,
}

impl ResolvesServerCert for RecordsServerName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // A second ClientHello (RFC 8446 §4.1.4) asks for the same name.
        let _ = self.name.set(hello.server_name().map(|name| name.to_ascii_lowercase().into()));
        self.inner.resolve(hello)
    }

    fn only_raw_public_keys(&self) -> bool {
        self.inner.only_raw_public_keys()
    }
}
