//! Deliver: a stored object becomes the response to one request: whole, in part, or as 304 (Not Modified).

use super::assemble;
use super::body::{ArrivingBody, ObjectBody, RecodedBody};
use crate::Fault;
use crate::downstream::Downstream;
use crate::downstream::sending::SendEnd;
use crate::exchange::state::{Exchange, Sent};
use crate::outgoing::{Begun, Content, Following, Head, Outgoing, Parts, Representation};
use crate::recode::{Chosen, choose};
use crate::report::handling::Detail;
use crate::respond::Synthetic;
use crate::trailers::TrailerRule;
use sandarac_cache::{Object, Reader, Store};
use sandarac_message::accel::names_file;
use sandarac_message::caching::RequestDirectives;
use sandarac_message::conditional::Role;
use sandarac_message::{FieldsBuf, StoredHead, hop};
use sandarac_net::{BodyBroken, StoredBlock, boxed, wall};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// A stored object on its way to one request.
pub(crate) struct Delivery<'a> {
    pub(crate) store: &'a Store,
    pub(crate) object: Arc<Object>,
    /// The object in the index, if `object` is a recoding of it.
    pub(crate) original: Option<Arc<Object>>,
    /// The head of a response that is recoded as it is sent, and its body.
    pub(crate) recoded: Option<Box<(StoredHead, Option<RecodedBody>)>>,
    /// Reads the body if it is still arriving.
    pub(crate) reader: Option<Reader>,
    /// Fields for this client alone.
    pub(crate) own: Option<&'a FieldsBuf>,
    /// Which trailers the client gets.
    pub(crate) trailers: Option<TrailerRule>,
}

/// The place for the header block of an object.
struct BlockPlace<'a> {
    store: &'a Store,
    object: &'a Arc<Object>,
    original: Option<&'a Arc<Object>>,
}

/// No place, for the head of one response.
struct NoPlace;

impl StoredBlock for NoPlace {
    fn block(&self, _: fn(&StoredHead) -> Vec<u8>) -> Option<&[u8]> {
        None
    }
}

impl StoredBlock for BlockPlace<'_> {
    fn block(&self, make: fn(&StoredHead) -> Vec<u8>) -> Option<&[u8]> {
        // An object that is arriving is replaced soon.
        if self.object.block().is_none() && self.object.body().is_whole() {
            let block = make(self.object.head()).into();
            match self.original {
                None => self.store.keep_block(self.object, block),
                Some(original) => self.store.keep_block_of_recoding(original, self.object, block),
            }
        }
        self.object.block()
    }
}

impl Delivery<'_> {
    /// Passes the response to `begin`. Returns its status, and the body if one follows.
    ///
    /// # Errors
    /// [`Fault::ResponseBroken`] if the body can no longer be read from its start. Nothing has begun then.
    pub(crate) fn begin(
        self,
        age: Option<u64>,
        begin: impl FnOnce(&mut Outgoing<'_>) -> Begun,
    ) -> Result<(u16, Option<ObjectBody>), Fault> {
        let Delivery { store, object, original, recoded, reader, own, trailers } = self;
        let body = object.body();
        // Read once: an arriving body, announced as chunked, may end before the head is sent.
        let is_whole = body.is_whole();
        if !is_whole && reader.is_none() && recoded.is_none() {
            return Err(Fault::ResponseBroken);
        }
        let place = BlockPlace { store, object: &object, original: original.as_ref() };
        let (head, block): (_, &dyn StoredBlock) = match &recoded {
            None => (object.head(), &place),
            Some(recoded) => (&recoded.0, &NoPlace),
        };
        let is_recoding = recoded.is_some() || original.is_some();
        let parts = if is_whole { Parts::Several } else { Parts::One };
        let content = Representation {
            role: Role::Cache,
            received: object.received(),
            length: body.len().filter(|_| recoded.is_none()),
            held: object.range(),
            parts: if is_recoding { Parts::None } else { parts },
            seed: u128::from_le_bytes(object.key().to_bytes()),
        };
        let begun = begin(&mut Outgoing {
            status: head.status(),
            reason: b"",
            head: Head::Stored(head, block),
            own,
            age,
            is_new: false,
            content: Content::Representation(content),
        });
        let all = 0..body.len().filter(|_| is_whole).unwrap_or(u64::MAX);
        let range = match begun.body {
            Following::Nothing => return Ok((begun.status, None)),
            Following::Parts(parts) => return Ok((begun.status, Some(ObjectBody::Parts { object, parts }))),
            Following::Range(range) => range,
            Following::All => all,
        };
        let body = match (recoded.and_then(|recoded| recoded.1), reader) {
            (Some(recoded), _) => ObjectBody::Recoded(Box::new(recoded)),
            (None, Some(reader)) if !is_whole => {
                ObjectBody::Arriving(ArrivingBody::new(reader, range, trailers))
            }
            (None, _) => ObjectBody::Whole { object, range },
        };
        Ok((begun.status, Some(body)))
    }
}

/// Answers from the store. `None` if the object became stale since it was found, or its body can no longer be
/// read from its start: look up again.
pub(crate) async fn hit(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    object: &Arc<Object>,
    directives: &RequestDirectives,
) -> Option<Result<Sent, Fault>> {
    let reader = reader(object)?;
    if !exchange.handling.reuse(object, directives, wall()) {
        return None;
    }
    Some(deliver(exchange, down, object.clone(), reader, None).await)
}

/// The reader of an object that is still arriving. `None` if it can no longer be read from its
/// start.
pub(crate) fn reader(object: &Arc<Object>) -> Option<Option<Reader>> {
    if object.body().is_whole() { Some(None) } else { object.reader().map(Some) }
}

/// Sends an object, including what has yet to arrive, with `own` fields for this client alone.
pub(crate) async fn deliver(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    object: Arc<Object>,
    mut reader: Option<Reader>,
    own: Option<&FieldsBuf>,
) -> Result<Sent, Fault> {
    if exchange.fragments.is_some()
        && let Some(page) = boxed(|| assemble::page_of(exchange, &object, &mut reader, own)).await
    {
        return boxed(|| assemble::send(exchange, down, page)).await;
    }
    if exchange.ranged.is_some() && object.fields().iter().any(|field| names_file(&field)) {
        exchange.restore_range();
    }
    let Chosen { object, original, recoded } = match exchange.compress {
        None => Chosen::as_it_came(object),
        Some(_) => boxed(|| choose(exchange, object, own)).await?,
    };
    let recoded = match recoded.map(|recoded| *recoded) {
        None => None,
        Some((head, None)) => Some(Box::new((head, None))),
        Some((head, Some(transform))) => {
            let body = body_to_recode(&object, reader.take(), exchange.trailers())?;
            let may_fail = transform.decodes() && !hop::is_event_stream(head.shown());
            let mut body = RecodedBody::new(body, transform, &down.client.peer().holder);
            if may_fail {
                first_block(&mut body, down).await?;
            }
            Some(Box::new((head, Some(body))))
        }
    };
    let age = exchange.handling.age(&object, own, wall());
    let store = &exchange.core.shared.store;
    let delivery = Delivery { store, object, original, recoded, reader, own, trailers: exchange.trailers() };
    let (status, body) = delivery.begin(age, |outgoing| exchange.begin(down, outgoing))?;
    let (bytes, end) = down.send(exchange.core, body).await;
    if let SendEnd::Broken(BodyBroken::Source) = end {
        exchange.handling.detail = Some(Detail::OriginBroke);
    }
    end.count(&exchange.core.counters);
    Ok(Sent { status, bytes })
}

/// Waits for the first block of a body, while the client stays.
async fn first_block(body: &mut RecodedBody, down: &mut Downstream<'_>) -> Result<(), Fault> {
    poll_fn(|cx| match body.poll_first(cx) {
        Poll::Pending => down.poll_left(cx).map(|()| Err(Fault::ClientGone)),
        begun => begun,
    })
    .await
}

/// The whole body of an object, to be recoded.
fn body_to_recode(
    object: &Arc<Object>,
    reader: Option<Reader>,
    trailers: Option<TrailerRule>,
) -> Result<ObjectBody, Fault> {
    match (object.body().is_whole(), reader) {
        (true, _) => {
            let range = 0..object.body().len().unwrap_or_default();
            Ok(ObjectBody::Whole { object: object.clone(), range })
        }
        (false, Some(reader)) => Ok(ObjectBody::Arriving(ArrivingBody::new(reader, 0..u64::MAX, trailers))),
        (false, None) => Err(Fault::ResponseBroken),
    }
}

/// Sends a response made by the proxy.
pub(crate) async fn synth(exchange: &Exchange<'_>, down: &mut Downstream<'_>, answer: Synthetic) -> Sent {
    let begun = exchange.begin(down, &mut answer.outgoing());
    let (_, end) = down.send(exchange.core, answer.body(begun.body)).await;
    end.count(&exchange.core.counters);
    Sent { status: answer.status, bytes: answer.body.len() as u64 }
}
