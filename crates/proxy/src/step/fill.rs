//! Fill: receives the body of a stored object from the origin.

use crate::report::handling::Handling;
use crate::report::tally::NoStore;
use crate::step::fetch::{OriginLink, OriginResponse};
use crate::step::store::{Landed, Landing};
use crate::tier::Fill;
use sandarac_cache::BodyWriter;
use sandarac_message::FieldsBuf;
use sandarac_net::{Account, BodyError, BodyStep, Held, Lease, PanicPart, StreamFault, Timer};
use sandarac_policy::KeyRule;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

impl Landing<'_> {
    /// Fills the object with the bytes that have arrived. A separate task receives the rest, at the origin's
    /// pace, even if the first client leaves.
    pub(super) fn fill(
        &self,
        mut writer: BodyWriter,
        arrived: OriginResponse,
        own: Option<FieldsBuf>,
        handling: &mut Handling,
    ) -> Landed {
        let OriginResponse { mut link, .. } = arrived;
        let announced = link.remaining().is_some();
        let object = writer.object().clone();
        let reader = writer.reader();
        loop {
            match link.body_step() {
                Ok(Some(BodyStep::Data(range))) => {
                    writer.append(link.piece(&range));
                    link.consume(&range);
                }
                Ok(Some(BodyStep::End(trailers))) => {
                    link.finish();
                    let trailers = Some(&trailers).filter(|trailers| !trailers.view().is_empty());
                    if let Some(unstored) = writer.unstored() {
                        self.unstored(NoStore::Unkept(unstored), handling);
                    }
                    let finished = writer.finish(trailers);
                    if let Some(tier) = self.tier.take() {
                        tier.stored(finished.clone(), &self.rule.key);
                    }
                    // The stored object is another one, made whole from the arriving one.
                    handling.stored = !Arc::ptr_eq(&object, &finished);
                    return Landed::Object(finished, reader, own);
                }
                Ok(None) => break,
                Err(error) => {
                    Ending::of(&error).end(writer, link, None);
                    return Landed::Object(object, reader, own);
                }
            }
        }
        if let Some(unstored) = writer.unstored() {
            self.unstored(NoStore::Unkept(unstored), handling);
        }
        // Whether a body of unknown length will be stored is not known yet.
        handling.stored = announced && writer.is_stored();
        let tier = self.tier.take().map(|tier| (tier, self.rule.key.clone()));
        let account = self.core.shared.account.clone();
        sandarac_net::spawn(PanicPart::Fill, || fill(writer, link, tier, self.between_bytes, account));
        Landed::Object(object, reader, own)
    }
}

/// How a fill ended.
enum Ending {
    /// The whole body has arrived, with these trailers.
    Whole(FieldsBuf),
    /// The origin broke off, or sent nothing for too long.
    BrokenOff,
    /// The body is malformed.
    Spoiled,
    /// The body is no longer wanted. Not a fault of the backend.
    Unwanted,
}

impl Ending {
    fn of(error: &BodyError) -> Ending {
        match error {
            BodyError::Truncated | BodyError::Late | BodyError::Io(_) => Ending::BrokenOff,
            BodyError::Refused(_)
            | BodyError::Records(_)
            | BodyError::Stream(StreamFault::Violation(_) | StreamFault::Malformed(_)) => Ending::Spoiled,
            BodyError::Stream(_) => Ending::BrokenOff,
        }
    }

    /// Reports the end to the backend, the object and its readers, and the shared tier.
    fn end(self, writer: BodyWriter, link: OriginLink, tier: Option<(Fill, KeyRule)>) {
        match self {
            Ending::Whole(trailers) => {
                link.finish();
                let object = writer.finish(Some(&trailers).filter(|trailers| !trailers.view().is_empty()));
                if let Some((tier, key)) = tier {
                    tier.stored(object, &key);
                }
            }
            Ending::BrokenOff => {
                link.broken();
                writer.break_off(sandarac_net::wall());
            }
            Ending::Spoiled => link.broken(),
            Ending::Unwanted => link.unwanted(),
        }
    }
}

/// Receives the rest of a body into its object.
async fn fill(
    mut writer: BodyWriter,
    mut link: OriginLink,
    tier: Option<(Fill, KeyRule)>,
    between_bytes: Duration,
    account: Arc<Account>,
) {
    let mut timer = Timer::new();
    timer.set(between_bytes);
    // The window of the origin, while readers hold the fill up.
    let mut held_up: Option<Lease> = None;
    let ending = poll_fn(|cx| {
        loop {
            if !writer.is_wanted() {
                return Poll::Ready(Ending::Unwanted);
            }
            let now = sandarac_net::wall();
            if writer.poll_room(cx, now).is_pending() {
                // Readers decide the pace now, for as long as the store permits. Then the next poll cuts them
                // off.
                held_up.get_or_insert_with(|| account.process().nothing(Held::Responses)).set(link.park());
                timer.set(writer.deadline().map_or(between_bytes, |deadline| deadline.since(now)));
                std::task::ready!(timer.poll(cx));
                continue;
            }
            if held_up.take().is_some() {
                timer.set(between_bytes);
            }
            match read(&mut writer, &mut link, cx) {
                Poll::Ready(Ok(None)) => timer.set(between_bytes),
                Poll::Ready(Ok(Some(trailers))) => return Poll::Ready(Ending::Whole(trailers)),
                Poll::Ready(Err(error)) => return Poll::Ready(Ending::of(&error)),
                Poll::Pending => {
                    link.park();
                    std::task::ready!(timer.poll(cx));
                    return Poll::Ready(Ending::BrokenOff);
                }
            }
        }
    })
    .await;
    ending.end(writer, link, tier);
}

/// Reads once: directly into the object if the body is framed by its length, else through the buffer. Ready
/// with the trailers at the end.
fn read(
    writer: &mut BodyWriter,
    link: &mut OriginLink,
    cx: &mut Context<'_>,
) -> Poll<Result<Option<FieldsBuf>, BodyError>> {
    if link.reads_directly() {
        let direct = writer.read_with(|memory| match link.poll_read_into(cx, memory) {
            Poll::Ready(Ok(n)) => (n, Poll::Ready(Ok(()))),
            Poll::Ready(Err(error)) => (0, Poll::Ready(Err(error))),
            Poll::Pending => (0, Poll::Pending),
        });
        if let Some(direct) = direct {
            std::task::ready!(direct)?;
            return Poll::Ready(Ok((link.remaining() == Some(0)).then(FieldsBuf::new)));
        }
    }
    link.limit_reads(writer.read_limit());
    Poll::Ready(Ok(match std::task::ready!(link.poll_body(cx))? {
        BodyStep::Data(range) => {
            writer.append(link.piece(&range));
            link.consume(&range);
            None
        }
        BodyStep::End(trailers) => Some(trailers),
    }))
}
