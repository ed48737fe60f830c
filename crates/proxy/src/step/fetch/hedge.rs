//! Hedging: a request without a timely response is sent to a second backend too, and the first response is
//! used (Dean and Barroso 2013, "The tail at scale").

use super::attempt::attempt;
use super::connect::linked;
use super::context::FetchContext;
use super::link::OriginLink;
use super::origin_request::OriginRequest;
use super::origin_response::{Failed, OriginResponse};
use super::recipient::{Audience, Recipient};
use crate::{Counter, Fault};
use sandarac_balance::NoBackend;
use sandarac_message::Method;
use sandarac_net::Timer;
use sandarac_wire::h1::BodyFraming;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

impl OriginRequest<'_> {
    /// Whether the request may be sent to a second backend concurrently: it consists of a head only, and a
    /// repetition changes nothing (RFC 9110 §9.2.1).
    pub(super) fn can_be_hedged(&self) -> bool {
        matches!(self.method, Method::Get | Method::Head) && !self.tunnel && self.framing == BodyFraming::None
    }
}

/// Sends the request over `link` and, if no response has begun after `patience`, to another backend as well.
/// Interim responses are not forwarded, because they may belong to the response that is not used.
pub(super) async fn hedged(
    context: &FetchContext<'_>,
    request: &OriginRequest<'_>,
    link: OriginLink,
    patience: Duration,
    recipient: &mut Recipient<'_, '_>,
) -> Result<Box<OriginResponse>, Failed> {
    let mut gone = |cx: &mut Context<'_>| {
        recipient.has_left(request, cx).then_some(Failed {
            fault: Fault::ClientGone,
            sent: true,
            answered: false,
        })
    };
    // Neither attempt holds the client, which is observed here. Each has its own timer.
    let (nobody, nobody_either) = (Audience::background(), Audience::background());
    let mut first_for = Recipient::Audience(&nobody);
    let tried = [link.backend_id()];
    let began = context.now();
    let mut first = pin!(attempt(context, request, link, &mut first_for, false));
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
    let now = context.now();
    let Ok(pick) = context.live.pick(context.class, now, &tried) else { return first.await };
    if !context.pool().budget.retry(now) {
        context.counters().one(Counter::RetriesRefused);
        drop(pick);
        return first.await;
    }
    context.counters().one(Counter::Hedges);
    let mut second = pin!(async {
        let pooled = context.kept(&pick);
        let link = linked(context, request, pick, pooled).await?;
        if link.is_other_version() {
            link.spare();
            let fault = Fault::NoBackend(NoBackend::NoneServes);
            return Err(Failed { fault, sent: false, answered: false });
        }
        let mut second_for = Recipient::Audience(&nobody_either);
        attempt(context, request, link, &mut second_for, false).await
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
                    context.counters().one(Counter::HedgesWon);
                    if failed[0].is_none() {
                        let now = context.now();
                        context.live.overtaken(tried[0], now.saturating_sub(began), now);
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
