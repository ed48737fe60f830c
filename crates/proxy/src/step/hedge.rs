//! Hedging: a request that is slow to be answered goes to a second backend too, and the first answer counts
//! (Dean and Barroso 2013, "The tail at scale").

use super::fetch::{Arrived, Errand, Failed, Link, Surroundings, attempt, linked};
use crate::downstream::Downstream;
use crate::{Counter, Fault};
use sandarac_balance::NoBackend;
use sandarac_message::Method;
use sandarac_net::Timer;
use sandarac_wire::h1::BodyFraming;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

impl Errand<'_> {
    /// Whether a second backend may be asked while the first is at it: nothing but the head is sent, and asking twice
    /// changes nothing (RFC 9110 §9.2.1).
    pub(super) fn can_be_hedged(&self) -> bool {
        matches!(self.method, Method::Get | Method::Head) && !self.tunnel && self.framing == BodyFraming::None
    }
}

/// Sends the request over `link`, and if no response has begun after `patience`, to another backend as well. Interim
/// responses are not passed on: they may be of the one whose answer does not count.
pub(super) async fn hedged(
    around: &Surroundings<'_>,
    errand: &Errand<'_>,
    link: Link,
    patience: Duration,
    mut downstream: Option<&mut Downstream<'_>>,
) -> Result<Box<Arrived>, Failed> {
    let mut gone = |cx: &mut Context<'_>| {
        let down = downstream.as_deref_mut().filter(|_| errand.one_client);
        let gone = Failed { fault: Fault::ClientGone, sent: true, answered: false };
        down.and_then(|down| down.poll_gone(cx).is_ready().then_some(gone))
    };
    let tried = [link.backend_id()];
    let began = around.now();
    let mut first = pin!(attempt(around, errand, link, None, false));
    let mut timer = Timer::new();
    timer.set(patience);
    let early = poll_fn(|cx| match first.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => match gone(cx) {
            Some(gone) => Poll::Ready(Some(Err(gone))),
            None => timer.poll(cx).map(|()| None),
        },
    });
    if let Some(done) = early.await {
        return done;
    }
    let now = around.now();
    let Ok(pick) = around.live.pick(around.class, now, &tried) else { return first.await };
    if !around.pool().budget.retry(now) {
        around.counters().one(Counter::RetriesRefused);
        drop(pick);
        return first.await;
    }
    around.counters().one(Counter::Hedges);
    let mut second = pin!(async {
        let pooled = around.kept(&pick);
        let link = linked(around, pick, pooled).await?;
        if link.is_other_version {
            link.spare();
            let fault = Fault::NoBackend(NoBackend::NoneServes);
            return Err(Failed { fault, sent: false, answered: false });
        }
        attempt(around, errand, link, None, false).await
    });
    let mut failed: [Option<Failed>; 2] = [None, None];
    poll_fn(|cx| {
        if failed[0].is_none()
            && let Poll::Ready(done) = first.as_mut().poll(cx)
        {
            match done {
                Ok(arrived) => return Poll::Ready(Ok(arrived)),
                Err(why) => failed[0] = Some(why),
            }
        }
        if failed[1].is_none()
            && let Poll::Ready(done) = second.as_mut().poll(cx)
        {
            match done {
                Ok(arrived) => {
                    around.counters().one(Counter::HedgesWon);
                    if failed[0].is_none() {
                        let now = around.now();
                        around.live.overtaken(tried[0], now.saturating_sub(began), now);
                    }
                    return Poll::Ready(Ok(arrived));
                }
                Err(why) => failed[1] = Some(why),
            }
        }
        match &mut failed {
            [first @ Some(_), Some(_)] => Poll::Ready(Err(first.take().expect("it is there"))),
            _ => gone(cx).map_or(Poll::Pending, |gone| Poll::Ready(Err(gone))),
        }
    })
    .await
}
