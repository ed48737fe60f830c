//! Deliver: a stored object becomes the response to one request: whole, in part, or as 304 (Not Modified).

use super::assemble;
use super::body::{ArrivingBody, ObjectBody, Part, RecodedBody};
use crate::Fault;
use crate::downstream::Downstream;
use crate::exchange::state::{Exchange, Sent};
use crate::handling::{Detail, Handling};
use crate::recode::{Chosen, choose};
use crate::respond::Synthetic;
use crate::sending::SendEnd;
use crate::site::Site;
use crate::trailers::TrailerRule;
use sandarac_cache::{Object, Reader, Store};
use sandarac_message::accel::names_file;
use sandarac_message::caching::RequestDirectives;
use sandarac_message::conditional::{self, Evaluation, Role};
use sandarac_message::range::{self, ByteRange, ContentRange, Multipart, Selection};
use sandarac_message::{Field, FieldsBuf, Method, Name, RequestHead, StoredHead, Timestamp, date, hop};
use sandarac_net::{Base, BodyBroken, Length, Response, StoredBlock, boxed, wall};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// The longest Content-Range, with three numbers of 20 digits. Room for less would be taken piece by piece.
const MAX_CONTENT_RANGE: usize = "bytes -/".len() + 3 * 20;

/// The delivery of one object to one request.
pub(crate) struct Delivery<'a> {
    pub(crate) site: &'a Site,
    pub(crate) store: &'a Store,
    pub(crate) object: Arc<Object>,
    /// The object in the index, if `object` is a recoding of it.
    pub(crate) original: Option<Arc<Object>>,
    /// The head of a response that is recoded as it is sent, and its body.
    pub(crate) recoded: Option<Box<(StoredHead, Option<RecodedBody>)>>,
    /// Reads the body if it is still arriving.
    pub(crate) reader: Option<Reader>,
    pub(crate) request: &'a RequestHead<'a>,
    pub(crate) now: Timestamp,
    pub(crate) handling: &'a Handling,
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

/// A response whose head was sent.
pub(crate) struct Delivered {
    pub(crate) status: u16,
    /// The body, if one follows.
    pub(crate) body: Option<ObjectBody>,
}

/// The form of the object that the request gets.
enum Form {
    Whole,
    NotModified,
    Part(ByteRange, ContentRange),
    Parts(Vec<ByteRange>, u64),
    Unsatisfiable(u64),
}

impl Delivery<'_> {
    /// Passes the head of the response to `begin`.
    ///
    /// # Errors
    /// [`Fault::ResponseBroken`] if the body can no longer be read from its start. Nothing has begun then.
    pub(crate) fn begin(self, begin: impl FnOnce(Response<'_>)) -> Result<Delivered, Fault> {
        match self.form() {
            Form::Whole => self.whole(begin),
            Form::NotModified => Ok(self.not_modified(begin)),
            Form::Part(range, content_range) => self.part(begin, range, content_range),
            Form::Parts(ranges, complete) => Ok(self.parts(begin, &ranges, complete)),
            Form::Unsatisfiable(complete) => Ok(self.unsatisfiable(begin, complete)),
        }
    }

    /// The head that the client gets.
    fn head(&self) -> &StoredHead {
        self.recoded.as_ref().map_or_else(|| self.object.head(), |recoded| &recoded.0)
    }

    fn form(&self) -> Form {
        // One pass: most requests have neither a condition nor a range.
        let special = |name| {
            matches!(
                name,
                Name::IfNoneMatch
                    | Name::IfModifiedSince
                    | Name::IfMatch
                    | Name::IfUnmodifiedSince
                    | Name::Range
            )
        };
        let fields = self.request.fields;
        if !fields.iter().any(|field| special(field.id)) && self.object.range().is_none() {
            return Form::Whole;
        }
        let head = self.head();
        let received = self.object.received();
        let condition = conditional::evaluate(
            Role::Cache,
            self.request.method,
            fields,
            head.status(),
            head.shown(),
            received,
        );
        if condition == Evaluation::NotModified {
            return Form::NotModified;
        }
        // Only the body as it came has parts that can be told apart: a recoding has no strong tag (RFC 9110 §14.2).
        let has_parts = self.original.is_none() && self.recoded.is_none();
        let wanted = fields.get(Name::Range).filter(|_| has_parts && self.request.method == Method::Get);
        if let Some(held) = self.object.range() {
            return self.part_of_part(wanted, held);
        }
        let length = self.object.body().len();
        match (wanted, length) {
            (Some(value), Some(length))
                if head.status() == 200 && conditional::if_range_holds(fields, head.shown(), received) =>
            {
                match range::select(value, length) {
                    Selection::Whole => Form::Whole,
                    Selection::Single(range) => Form::Part(range, ContentRange::of(range, length)),
                    Selection::Several(ranges) if self.object.body().is_whole() => {
                        Form::Parts(ranges, length)
                    }
                    // An arriving body cannot be cut into parts out of order.
                    Selection::Several(_) => Form::Whole,
                    Selection::Unsatisfiable => Form::Unsatisfiable(length),
                }
            }
            _ => Form::Whole,
        }
    }

    /// A stored part answers what it was found to cover. It is sent as it was received if all of it is
    /// requested, or if its body does not have the length given by its Content-Range: such a body cannot be
    /// cut.
    fn part_of_part(&self, wanted: Option<&[u8]>, held: ContentRange) -> Form {
        let range = held.range;
        let spec = wanted.and_then(range::parse).and_then(|specs| specs.first().copied());
        let length = self.object.body().len();
        match spec.and_then(|spec| held.serves(&spec)) {
            Some(served) if served != range && length.is_none_or(|length| length == range.len()) => {
                Form::Part(served, ContentRange { range: served, ..held })
            }
            _ => Form::Whole,
        }
    }

    fn whole(self, begin: impl FnOnce(Response<'_>)) -> Result<Delivered, Fault> {
        let head = self.head();
        let body = self.object.body();
        let status = head.status();
        let bodiless = matches!(status, 204 | 304) || self.request.method == Method::Head;
        // Read once: an arriving body, announced as chunked, may end before the head is sent.
        let is_whole = body.is_whole();
        if !bodiless && !is_whole && self.reader.is_none() && self.recoded.is_none() {
            return Err(Fault::ResponseBroken);
        }
        let length = match body.len() {
            _ if head.shown().has(Name::ContentLength) || matches!(status, 204 | 304) => Length::Told,
            Some(length) if self.recoded.is_none() => Length::Known(length),
            _ if bodiless => Length::Told,
            _ => Length::Unknown,
        };
        let place = BlockPlace { store: self.store, object: &self.object, original: self.original.as_ref() };
        let place: &dyn StoredBlock = if self.recoded.is_some() { &NoPlace } else { &place };
        begin(self.response(status, b"", Base::Stored(head, place), length));
        let range = 0..body.len().filter(|_| is_whole).unwrap_or(u64::MAX);
        Ok(Delivered { status, body: if bodiless { None } else { Some(self.body(is_whole, range)) } })
    }

    /// The body in `range`.
    fn body(self, is_whole: bool, range: std::ops::Range<u64>) -> ObjectBody {
        if let Some(recoded) = self.recoded.and_then(|recoded| recoded.1) {
            return ObjectBody::Recoded(Box::new(recoded));
        }
        match self.reader {
            Some(reader) if !is_whole => {
                ObjectBody::Arriving(ArrivingBody::new(reader, range, self.trailers))
            }
            _ => ObjectBody::Whole { object: self.object, range },
        }
    }

    fn not_modified(self, begin: impl FnOnce(Response<'_>)) -> Delivered {
        let shown = self.head().shown();
        let has_etag = shown.has(Name::Etag);
        let keep = |field: &Field<'_>| {
            field.id != Name::ContentLength && conditional::in_not_modified(field, has_etag)
        };
        begin(self.response(304, b"Not Modified", Base::Selected(shown, &keep), Length::Told));
        Delivered { status: 304, body: None }
    }

    fn part(
        self,
        begin: impl FnOnce(Response<'_>),
        range: ByteRange,
        content_range: ContentRange,
    ) -> Result<Delivered, Fault> {
        let is_whole = self.object.body().is_whole();
        let bodiless = self.request.method == Method::Head;
        if !bodiless && !is_whole && self.reader.is_none() {
            return Err(Fault::ResponseBroken);
        }
        let mut value = Vec::with_capacity(MAX_CONTENT_RANGE);
        content_range.write(&mut value);
        self.begin_partial(begin, Name::ContentRange, &value, range.len());
        // The position within the held part of the representation.
        let start = range.first - self.object.range().map_or(0, |held| held.range.first);
        let range = start..start + range.len();
        Ok(Delivered { status: 206, body: if bodiless { None } else { Some(self.body(is_whole, range)) } })
    }

    fn parts(self, begin: impl FnOnce(Response<'_>), ranges: &[ByteRange], complete: u64) -> Delivered {
        let content_type = self.object.head().shown().get(Name::ContentType);
        // Two objects or two requests never share a boundary, and a body's author cannot know it.
        let seed = u128::from_le_bytes(self.object.key().to_bytes()) ^ u128::from(self.now.as_millis()) << 64;
        let multipart = Multipart::new(seed, content_type, complete);
        let mut value = Vec::new();
        multipart.content_type(&mut value);
        self.begin_partial(begin, Name::ContentType, &value, multipart.content_length(ranges));
        let mut parts = std::collections::VecDeque::with_capacity(2 * ranges.len() + 1);
        let text = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut text = Vec::new();
            write(&mut text);
            Part::Text(text.into())
        };
        for range in ranges {
            parts.push_back(text(&|out| multipart.part(*range, out)));
            parts.push_back(Part::Range(range.first..range.last + 1));
        }
        parts.push_back(text(&|out| multipart.end(out)));
        Delivered { status: 206, body: Some(ObjectBody::Parts { object: self.object, parts }) }
    }

    /// Begins a 206 whose body has `length` bytes. It has the stored fields, except that `name` has `value`.
    fn begin_partial(&self, begin: impl FnOnce(Response<'_>), name: Name, value: &[u8], length: u64) {
        let keep = |field: &Field<'_>| field.id != Name::ContentLength && field.id != name;
        let base = Base::Selected(self.object.head().shown(), &keep);
        let added = [(name, value)];
        let response = self.response(206, b"Partial Content", base, Length::Known(length));
        begin(Response { added: &added, ..response });
    }

    fn unsatisfiable(self, begin: impl FnOnce(Response<'_>), complete: u64) -> Delivered {
        let mut range = Vec::with_capacity(MAX_CONTENT_RANGE);
        ContentRange::write_unsatisfied(complete, &mut range);
        let date = date::format(self.now);
        let added = [(Name::ContentRange, &range[..]), (Name::Date, &date[..])];
        let base = Base::Selected(sandarac_message::Fields::default(), &|_| true);
        let response = self.response(416, b"Range Not Satisfiable", base, Length::Known(0));
        begin(Response { added: &added, ..response });
        Delivered { status: 416, body: None }
    }

    /// A response with the fields of this delivery alone.
    fn response<'r>(&'r self, status: u16, reason: &'r [u8], base: Base<'r>, length: Length) -> Response<'r> {
        let cache_status = self.site.config.cache.cache_status;
        Response {
            status,
            reason,
            base,
            added: &[],
            own: self.own,
            age: self.handling.age(&self.object, self.own, self.now),
            cache_status: cache_status.then(|| (self.handling.cache_status(), self.site.name())),
            hsts: None,
            length,
        }
    }
}

/// Answers from the store. `None` if the object became stale since it was found, or its body can no longer be read from
/// its start: look up again.
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

/// What reads the body of an object that is still arriving. `None` if it can no longer be read from its start.
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
    let delivery = Delivery {
        site: exchange.site,
        store: &exchange.core.shared.store,
        object,
        original,
        recoded,
        reader,
        request: &exchange.request,
        now: wall(),
        handling: &exchange.handling,
        own,
        trailers: exchange.trailers(),
    };
    let Delivered { status, body } = delivery.begin(|response| down.begin(response))?;
    exchange.count(None);
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
    exchange.count(None);
    let is_of_stored = matches!(exchange.handling.detail, Some(Detail::Fault(Fault::Undecodable(_))));
    let is_told = exchange.handling.forward.is_some() || is_of_stored;
    let reports = exchange.site.config.cache.cache_status && is_told;
    let cache_status = reports.then(|| (exchange.handling.cache_status(), exchange.site.name()));
    let method = exchange.request.method;
    let body = answer.begin(method, cache_status, wall(), |response| down.begin(response));
    let (_, end) = down.send(exchange.core, body).await;
    end.count(&exchange.core.counters);
    Sent { status: answer.status, bytes: answer.body.len() as u64 }
}
