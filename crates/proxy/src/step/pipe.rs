//! Pipe: the connection becomes a tunnel, and both sides speak whatever they agreed on.

use crate::Fault;
use crate::downstream::Downstream;
use crate::exchange::{Exchange, Sent};
use crate::forward::Purpose;
use crate::step::receive::Received;
use sandarac_net::{Client, Conn, Output};
use sandarac_wire::h1::BodyFraming;
use sandarac_wire::h1::encode::Head;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll};
use std::time::Duration;

/// Bytes that may wait for one side before the other is read further.
const WINDOW: usize = 64 * 1024;

/// Asks a backend for the protocol that the client wants, and opens the tunnel where it agrees. Where it does not, its
/// answer goes to the client like any other.
pub(crate) async fn pipe(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    received: &Received<'_>,
    pool: usize,
) -> Result<Sent, Fault> {
    // A tunnel's target is its authority (RFC 9110 §9.3.6).
    let target = match received.target.path_and_query {
        b"" => received.asker.host,
        target => target,
    };
    let mut arrived = exchange.fetch(down, received, pool, target, Purpose::Tunnel).await?;
    if !arrived.switched {
        return exchange.relay_edited(down, received, arrived, pool).await;
    }
    if !down.is_uploaded() {
        // The protocol that follows the request begins where its body ends (RFC 9110 §7.8): what is left of that is none of it.
        arrived.link.close();
        return Err(Fault::UnaskedSwitch);
    }
    let mut output = Output::new();
    let mut head = Head::response(output.inline(), arrived.head.status, &arrived.head.reason);
    head.fields(arrived.head.fields.view(), BodyFraming::None);
    head.finish();
    let sent = down.send(&mut output, WINDOW).await;
    sent.map_err(|_| Fault::ClientGone)?;
    let idle = *exchange.site.config.timeouts.tunnel;
    let bytes = tunnel(down.client, &mut arrived.link.conn, idle).await;
    arrived.link.close();
    Ok(Sent { status: arrived.head.status, bytes, keep_alive: false, cut: false })
}

/// Copies both ways until both sides have ended, one has failed, or neither has said anything for `idle`. Returns
/// the bytes that went to the client.
async fn tunnel(client: &mut Client, origin: &mut Conn, idle: Duration) -> u64 {
    let before = client.conn.sent();
    let mut down = Direction::default();
    let mut up = Direction::default();
    client.timer.set(idle);
    poll_fn(|cx| {
        loop {
            let moved = match (down.poll(cx, origin, &mut client.conn), up.poll(cx, &mut client.conn, origin))
            {
                (Ok(down), Ok(up)) => down || up,
                _ => return Poll::Ready(()),
            };
            if down.ended && up.ended {
                return Poll::Ready(());
            }
            if !moved {
                return client.timer.poll(cx);
            }
            client.timer.set(idle);
        }
    })
    .await;
    client.conn.sent() - before
}

/// One direction of a tunnel.
#[derive(Default)]
struct Direction {
    /// The source has ended.
    finished: bool,
    /// The end has been passed on.
    ended: bool,
}

impl Direction {
    /// Moves what can be moved now; whether anything was.
    fn poll(&mut self, cx: &mut Context<'_>, from: &mut Conn, to: &mut Conn) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let mut moved = false;
        if to.queued() > 0 {
            match to.poll_flush(cx) {
                Poll::Ready(result) => {
                    result?;
                    moved = true;
                }
                Poll::Pending if to.queued() > WINDOW => return Ok(false),
                Poll::Pending => {}
            }
        }
        if !self.finished && from.data().is_empty() {
            match from.poll_fill(cx) {
                Poll::Ready(Ok(0)) => self.finished = true,
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => from.park(),
            }
        }
        let data = from.data();
        if !data.is_empty() {
            let n = data.len();
            to.write(cx, &[IoSlice::new(data)])?;
            from.consume(n);
            moved = true;
        }
        if self.finished && to.queued() == 0 && to.poll_shutdown(cx).is_ready() {
            self.ended = true;
            moved = true;
        }
        Ok(moved)
    }
}
