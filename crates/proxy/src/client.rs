//! HTTP/1.1 client side for this program's own requests: the upkeep of pools, and the drivers of a load.

use sandarac_message::Method;
use sandarac_net::{BodyError, BodyStep, Conn, Framer};
use sandarac_wire::h1::response::{self, Kind, Response};
use sandarac_wire::h1::{Limits, Parsed, Refusal};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::ops::ControlFlow;
use std::task::{Context, Poll, ready};

/// Why no response head was received.
#[derive(Debug)]
pub enum HeadError {
    /// The connection failed.
    Io(io::Error),
    /// The peer closed the connection before the head was complete.
    Closed,
    /// The bytes received are not a valid response head.
    Refused(Refusal),
    /// The peer switched to another protocol unasked.
    Switched,
}

/// Sends `request`, which must be complete and have `method`, and receives the head of its response. Returns
/// the result of `read`. Interim responses are skipped. The bytes after the head are left in `conn`.
pub async fn head<T>(
    conn: &mut Conn,
    request: &[u8],
    method: Method,
    limits: &Limits,
    read: impl Fn(&Response<'_>) -> T,
) -> Result<T, HeadError> {
    let mut sent = false;
    poll_fn(|cx| {
        if !std::mem::replace(&mut sent, true) {
            conn.write(cx, &[IoSlice::new(request)]).map_err(HeadError::Io)?;
        }
        if conn.queued() > 0
            && let Poll::Ready(Err(error)) = conn.poll_flush(cx)
        {
            return Poll::Ready(Err(HeadError::Io(error)));
        }
        poll_head(cx, conn, method, limits, &read)
    })
    .await
}

fn poll_head<T>(
    cx: &mut Context<'_>,
    conn: &mut Conn,
    method: Method,
    limits: &Limits,
    read: impl Fn(&Response<'_>) -> T,
) -> Poll<Result<T, HeadError>> {
    let (mut spans, mut anew) = (Vec::new(), Vec::new());
    loop {
        if !conn.data().is_empty() {
            let parsed = response::parse_or_repair(conn.data(), limits, &mut spans, &mut anew, method);
            match parsed.map_err(HeadError::Refused)? {
                Parsed::Partial => {}
                Parsed::Complete(head) => {
                    let head_len = head.head_len;
                    match head.kind {
                        Kind::Final => {
                            let done = read(&head);
                            conn.consume(head_len);
                            return Poll::Ready(Ok(done));
                        }
                        Kind::Interim => {
                            conn.consume(head_len);
                            continue;
                        }
                        Kind::Switching | Kind::Tunnel => return Poll::Ready(Err(HeadError::Switched)),
                    }
                }
            }
        }
        match ready!(conn.poll_fill(cx)) {
            Ok(0) => return Poll::Ready(Err(HeadError::Closed)),
            Ok(_) => {}
            Err(error) => return Poll::Ready(Err(HeadError::Io(error))),
        }
    }
}

/// Receives a body piece by piece, until its end or until `take` wants no more.
pub async fn body(
    conn: &mut Conn,
    framer: &mut Framer,
    mut take: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), BodyError> {
    poll_fn(|cx| {
        loop {
            match ready!(framer.poll_step(conn, cx))? {
                BodyStep::Data(range) => {
                    let flow = take(&conn.data()[range.clone()]);
                    conn.consume(range.end);
                    if flow.is_break() {
                        return Poll::Ready(Ok(()));
                    }
                }
                BodyStep::End(_) => return Poll::Ready(Ok(())),
            }
        }
    })
    .await
}
