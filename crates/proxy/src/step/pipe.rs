//! Pipe: the connection becomes a tunnel for whatever protocol both sides agreed on.

use super::receive::is_extended_connect;
use super::relay::relay_edited;
use crate::Fault;
use crate::downstream::Downstream;
use crate::exchange::state::{Exchange, Sent};
use crate::forward::Purpose;
use crate::request::received::Received;
use sandarac_message::{Fields, Method, hop, members};
use sandarac_net::{Duplex, Held, Lease, Timer};
use sandarac_policy::PoolId;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

/// Bytes that may be queued for one side before reading from the other pauses; fewer where much is held.
const WINDOW: usize = 64 * 1024;

/// Requests the client's protocol from a backend, and opens the tunnel if the backend agrees. If not, its
/// response goes to the client like any other, except that success would mislead the client of an extended
/// CONNECT.
pub(crate) async fn pipe(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    received: &Received<'_>,
    pool: PoolId,
) -> Result<Sent, Fault> {
    if exchange.request.method == Method::Connect && !down.body.has_ended() {
        return Err(Fault::TunnelWithBody);
    }
    // A tunnel's target is its authority (RFC 9110 §9.3.6).
    let target = match received.target.path_and_query {
        b"" => received.requester.host,
        target => target,
    };
    let mut arrived = exchange.fetch(down, received, pool, target, Purpose::Tunnel).await?;
    if !arrived.switched {
        if is_extended_connect(&exchange.request) && (200..300).contains(&arrived.head.status) {
            arrived.link.close();
            return Err(Fault::TunnelIgnored);
        }
        return relay_edited(exchange, down, received, arrived, pool).await;
    }
    let asked = hop::upgrade(exchange.request.fields);
    if exchange.request.method != Method::Connect && !agrees(asked, arrived.head.fields.view()) {
        arrived.link.close();
        return Err(Fault::UnaskedSwitch);
    }
    if !down.body.has_ended() {
        // The other protocol begins where the request body ends (RFC 9110 §7.8). An unfinished body is not
        // part of it.
        arrived.link.close();
        return Err(Fault::UnaskedSwitch);
    }
    received.edits(target).make_switched(&mut arrived.head).map_err(|_| Fault::HeadTooLarge)?;
    down.begin_response();
    let head = &arrived.head;
    let switched =
        poll_fn(|cx| Poll::Ready(down.client.switch(cx, head.status, &head.reason, head.fields.view())));
    switched.await.map_err(|_| Fault::ClientGone)?;
    poll_fn(|cx| down.client.poll_room(cx, WINDOW)).await.map_err(|_| Fault::ClientGone)?;
    let idle = *exchange.site.config.timeouts.tunnel;
    let held = down.client.peer().holder.nothing(Held::Tunnels);
    let (client, timer) = down.client.tunnel();
    let (bytes, in_order) = tunnel(client, timer, arrived.link.tunnel(), idle, held).await;
    if in_order {
        down.client.end_tunnel();
    }
    let status = arrived.head.status;
    arrived.link.close();
    Ok(Sent { status, bytes })
}

/// Whether a response switches to protocols that were `asked` for, and names them (RFC 9110 §7.8).
fn agrees(asked: Option<&[u8]>, response: Fields<'_>) -> bool {
    let asked_for = |protocol: &[u8]| {
        members(asked.unwrap_or_default()).any(|offered| offered.eq_ignore_ascii_case(protocol))
    };
    hop::upgrade(response).is_some_and(|protocols| members(protocols).all(asked_for))
}

/// Copies both ways until both directions have ended, or neither side has sent anything for `idle`. Returns
/// the bytes sent to the client, and whether both sides ended in order. If not, both connections are reset
/// when they are dropped: the protocol in the tunnel may mark the end of its data only by the end of the
/// connection.
async fn tunnel(
    client: &mut dyn Duplex,
    timer: &mut Timer,
    origin: &mut dyn Duplex,
    idle: Duration,
    mut held: Lease,
) -> (u64, bool) {
    let reset_when_dropped = |client: &mut dyn Duplex, origin: &mut dyn Duplex, reset| {
        client.reset_when_dropped(reset);
        origin.reset_when_dropped(reset);
    };
    // Set at the start, because the tunnel may be dropped in the middle when the process ends.
    reset_when_dropped(client, origin, true);
    let before = client.sent();
    let mut down = Direction::Open;
    let mut up = Direction::Open;
    timer.set(idle);
    let in_order = poll_fn(|cx| {
        loop {
            let holder = held.holder();
            if holder.is_cut() {
                return Poll::Ready(false);
            }
            let (window, most) = (holder.window(WINDOW), holder.read_limit());
            client.limit_reads(most);
            origin.limit_reads(most);
            let moved = down.poll(up, cx, origin, client, window) | up.poll(down, cx, client, origin, window);
            // A side that failed accepts nothing more.
            if down == Direction::Failing {
                up = Direction::Cut;
            } else if up == Direction::Failing {
                down = Direction::Cut;
            }
            if down.is_over() && up.is_over() {
                return Poll::Ready(down == Direction::Ended && up == Direction::Ended);
            }
            if !moved {
                let (is_client_read, is_origin_read) = (origin.queued() <= window, client.queued() <= window);
                held.set(client.memory(is_client_read) + origin.memory(is_origin_read));
                return timer.poll(cx).map(|()| false);
            }
            timer.set(idle);
        }
    })
    .await;
    if in_order {
        reset_when_dropped(client, origin, false);
    }
    (client.sent() - before, in_order)
}

/// One direction of a tunnel, from a source to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// The source may send more.
    Open,
    /// The source has ended. Queued bytes are sent, then the end.
    Ending,
    /// The source has failed. Queued bytes are sent.
    Failing,
    /// The end was sent.
    Ended,
    /// Closed without an end.
    Cut,
}

impl Direction {
    fn is_over(self) -> bool {
        matches!(self, Direction::Ended | Direction::Cut)
    }

    /// Moves as many bytes as possible now. Returns whether any were moved. `back` is the other direction.
    fn poll(
        &mut self,
        back: Direction,
        cx: &mut Context<'_>,
        from: &mut dyn Duplex,
        to: &mut dyn Duplex,
        window: usize,
    ) -> bool {
        if self.is_over() {
            return false;
        }
        self.advance(back, cx, from, to, window).unwrap_or_else(|_| {
            *self = Direction::Cut;
            true
        })
    }

    /// Like [`Direction::poll`], but an error is returned. It is the destination's.
    fn advance(
        &mut self,
        back: Direction,
        cx: &mut Context<'_>,
        from: &mut dyn Duplex,
        to: &mut dyn Duplex,
        window: usize,
    ) -> io::Result<bool> {
        let mut moved = false;
        if to.queued() > 0 {
            match to.poll_flush(cx) {
                Poll::Ready(result) => {
                    result?;
                    moved = true;
                }
                Poll::Pending if to.queued() > window => {
                    from.park();
                    return Ok(false);
                }
                Poll::Pending => {}
            }
        }
        if *self == Direction::Open && from.data().is_empty() {
            match from.poll_fill(cx) {
                // If writing to the source failed, its error was consumed there, and only an end is left to
                // read.
                Poll::Ready(Ok(0)) if back != Direction::Cut => *self = Direction::Ending,
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0) | Err(_)) => {
                    *self = Direction::Failing;
                    return Ok(true);
                }
                Poll::Pending => from.park(),
            }
        }
        let data = from.data();
        if !data.is_empty() {
            let n = data.len();
            to.write(cx, data)?;
            from.consume(n);
            return Ok(true);
        }
        if to.queued() > 0 {
            return Ok(moved);
        }
        match self {
            Direction::Ending => match to.poll_shutdown(cx) {
                Poll::Ready(result) => {
                    result?;
                    *self = Direction::Ended;
                    moved = true;
                }
                Poll::Pending => {}
            },
            Direction::Failing => {
                *self = Direction::Cut;
                moved = true;
            }
            Direction::Open | Direction::Ended | Direction::Cut => {}
        }
        Ok(moved)
    }
}
