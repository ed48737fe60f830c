//! The handshake with a backend.

use super::fault::HandshakeFault;
use super::side::ClientSide;
use super::stream::TlsStream;
use crate::Stream;
use crate::byte_queue::ByteQueue;
use rustls::ClientConfig;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// Begins TLS on a connection to a backend. The caller limits the time.
///
/// # Errors
/// If the backend does not speak TLS, or its certificate does not verify for `name`.
pub async fn connect(
    stream: Stream,
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
) -> Result<TlsStream<ClientSide>, HandshakeFault> {
    let side = UnbufferedClientConnection::new(config, name).map_err(HandshakeFault::Tls)?;
    let mut tls = TlsStream::new(stream, side, ByteQueue::default());
    loop {
        match tls.advance_handshake() {
            Ok(true) => break,
            Ok(false) => {}
            Err(error) => {
                // The backend may not take the alert.
                let _ = poll_fn(|cx| Poll::Ready(tls.poll_flush(cx))).await;
                return Err(HandshakeFault::Tls(error));
            }
        }
        match poll_fn(|cx| tls.poll_receive(cx)).await {
            Ok(0) => return Err(HandshakeFault::Closed),
            Ok(_) => {}
            Err(error) => return Err(HandshakeFault::Io(error)),
        }
    }
    // The last message of the handshake goes with the request.
    Ok(tls)
}
