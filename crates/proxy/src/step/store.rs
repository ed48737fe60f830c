//! Store: what becomes of a response that came by a flight, and of the object it was to replace.

use crate::handling::Handling;
use crate::record::Outcome;
use crate::site::Site;
use crate::step::fetch::{Arrived, Link};
use crate::step::lookup;
use crate::tally::NoStore;
use crate::{Counter, Counters};
use sandarac_cache::{Arrival, Filling, Flight, Mark, Object, Purge, Reader, Store, Tag};
use sandarac_config::CacheRule;
use sandarac_message::caching::{
    Reason, RequestDirectives, Storability, freshen, storability, stored_fields,
};
use sandarac_message::range::ContentRange;
use sandarac_message::vary::VarySpec;
use sandarac_message::{
    Field, Fields, FieldsBuf, Name, RequestHead, ResponseHead, ResponseHeadBuf, StoredHead, Timestamp, date,
    hop, tags,
};
use sandarac_net::{BodyStep, Framer, Timer};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// What a response is stored under and with.
pub(crate) struct Landing<'a> {
    pub(crate) store: &'a Arc<Store>,
    pub(crate) site: &'a Site,
    pub(crate) counters: &'a Counters,
    pub(crate) request: &'a RequestHead<'a>,
    pub(crate) host: &'a [u8],
    pub(crate) path: &'a [u8],
    pub(crate) rule: &'a CacheRule,
    pub(crate) edits: &'a sandarac_config::Edits,
    pub(crate) directives: RequestDirectives,
    pub(crate) between_bytes: Duration,
    pub(crate) transaction: u64,
}

/// What became of it.
pub(crate) enum Landed {
    /// It is stored, or freshened what was; the body may still be arriving. With it go the fields, if any, that are for
    /// the one who asked alone (`no-cache="…"`, RFC 9111 §5.2.2.4).
    Object(Arc<Object>, Option<Reader>, Option<FieldsBuf>),
    /// It is not stored, and goes to the one who asked.
    Relay(Box<Arrived>),
}

impl Landing<'_> {
    /// Takes a response: stores it, freshens the candidate with it, puts the candidate in its place, or lets it pass.
    pub(crate) fn land(&self, flight: Flight, mut arrived: Box<Arrived>, handling: &mut Handling) -> Landed {
        let candidate = flight.candidate().cloned();
        let now = arrived.received;
        // A part answers no more than what it covers.
        let answers = |stored: &&Arc<Object>| stored.answers(lookup::single_range(self.request));
        if let Some(candidate) = candidate.as_ref().filter(answers) {
            if arrived.head.status == 304 {
                return self.refresh(flight, candidate.clone(), *arrived, handling);
            }
            let failed = matches!(arrived.head.status, 500 | 502 | 503 | 504);
            if failed && candidate.lifetimes().usable_on_error_status(&self.directives, now) {
                handling.outcome = Outcome::Stale;
                handling.reason = Some("stale-if-error");
                handling.ttl = Some(candidate.lifetimes().ttl(now));
                handling.forward_status = Some(arrived.head.status);
                flight.fail();
                arrived.link.close();
                return Landed::Object(candidate.clone(), None, None);
            }
        }
        if self.edit(&mut arrived.head).is_err() {
            self.unstored(NoStore::HeadTooLarge, handling);
            return Landed::Relay(arrived);
        }
        let range = content_range(&arrived.head.view());
        let view = arrived.head.view();
        let policy = &self.rule.policy;
        match storability(self.request, &view, range, policy, arrived.requested, now) {
            Storability::Store(lifetimes) => {
                let vary = VarySpec::of(view.fields, &policy.ignored_vary);
                let own = own_fields(view.fields);
                let Ok(head) = self.stored_head(&arrived) else {
                    self.unstored(NoStore::HeadTooLarge, handling);
                    return Landed::Relay(arrived);
                };
                let tags = tags_of(view.fields, self.host);
                let len = arrived.body.remaining();
                let arrival = self.arrival(head, lifetimes, &vary, &tags, range, len);
                let filling = flight.store(arrival);
                handling.ttl = Some(lifetimes.ttl(now));
                self.fill(filling, *arrived, own, handling)
            }
            Storability::NoStore(reason) => {
                self.leave(flight, candidate.as_deref(), reason, now);
                self.unstored(NoStore::Unusable(reason), handling);
                Landed::Relay(arrived)
            }
        }
    }

    /// A response that is not stored: whoever waits is not kept waiting, and what it supersedes is not served again.
    fn leave(&self, flight: Flight, candidate: Option<&Object>, reason: Reason, now: Timestamp) {
        if let Some(time) = reason.marked_for() {
            flight.mark(Mark::HitForMiss, now.plus(time), now);
        } else if let Some(candidate) = candidate {
            self.store.purge(candidate.key(), Purge::Hard, now);
        }
    }

    /// Says and counts why a response is not stored.
    fn unstored(&self, reason: NoStore, handling: &mut Handling) {
        handling.reason = Some(reason.text());
        self.counters.unstored.one(&reason);
    }

    /// 304: the stored body under a new head.
    fn refresh(
        &self,
        flight: Flight,
        candidate: Arc<Object>,
        mut arrived: Arrived,
        handling: &mut Handling,
    ) -> Landed {
        let now = arrived.received;
        handling.outcome = Outcome::Revalidated;
        handling.forward_status = Some(304);
        let edited = self.edit(&mut arrived.head);
        let fields = edited.and_then(|()| freshen(candidate.fields(), arrived.head.fields.view()));
        let Ok(mut fields) = fields else {
            self.unstored(NoStore::HeadTooLarge, handling);
            arrived.link.finish();
            return Landed::Object(candidate, None, None);
        };
        let view = ResponseHead {
            status: candidate.head().status(),
            reason: candidate.head().reason(),
            version: arrived.head.version,
            fields: fields.view(),
        };
        let policy = &self.rule.policy;
        let storable = storability(self.request, &view, candidate.range(), policy, arrived.requested, now);
        let vary = VarySpec::of(view.fields, &policy.ignored_vary);
        let tags = tags_of(view.fields, self.host);
        arrived.link.finish();
        match storable {
            Storability::Store(lifetimes) => {
                // It is in the lifetimes now; what goes out with a hit counts on.
                fields.remove(Name::Age);
                add_date(&mut fields, now);
                let (status, reason) = (candidate.head().status(), candidate.head().reason());
                let Ok(head) = StoredHead::new(status, reason, &fields) else {
                    return Landed::Object(candidate, None, None);
                };
                handling.stored = true;
                handling.ttl = Some(lifetimes.ttl(now));
                let arrival = self.arrival(head, lifetimes, &vary, &tags, None, None);
                let refreshed = flight.refresh(arrival);
                Landed::Object(refreshed.unwrap_or(candidate), None, None)
            }
            Storability::NoStore(reason) => {
                self.unstored(NoStore::Unusable(reason), handling);
                self.leave(flight, Some(&candidate), reason, now);
                Landed::Object(candidate, None, None)
            }
        }
    }

    /// Makes the edits that the route asks for, before anything is judged or stored, and adds Via.
    pub(super) fn edit(&self, head: &mut ResponseHeadBuf) -> Result<(), sandarac_message::TooLarge> {
        self.edits.apply(&mut head.fields)?;
        hop::add_via(&mut head.fields, head.version, self.site.name())
    }

    /// The head as it is stored: nothing that is for this proxy only, and a Date.
    fn stored_head(&self, arrived: &Arrived) -> Result<StoredHead, sandarac_message::TooLarge> {
        let mut fields = stored_fields(arrived.head.fields.view());
        fields.remove(Name::Age);
        add_date(&mut fields, arrived.received);
        StoredHead::new(arrived.head.status, &arrived.head.reason, &fields)
    }

    pub(super) fn arrival<'b>(
        &'b self,
        head: StoredHead,
        lifetimes: sandarac_message::caching::Lifetimes,
        vary: &'b VarySpec,
        tags: &'b [Tag],
        range: Option<ContentRange>,
        len: Option<u64>,
    ) -> Arrival<'b> {
        Arrival {
            head,
            lifetimes,
            vary,
            request: self.request.fields,
            host: self.host,
            path: self.path,
            tags,
            range,
            len,
            limit: Some(self.rule.max_object.0),
            transaction: self.transaction,
        }
    }

    /// Fills the object with what has arrived already; the rest comes by a task of its own, so that it comes at the
    /// origin's pace whatever becomes of the client that asked first.
    pub(super) fn fill(
        &self,
        mut filling: Filling,
        arrived: Arrived,
        own: Option<FieldsBuf>,
        handling: &mut Handling,
    ) -> Landed {
        let Arrived { mut link, mut body, .. } = arrived;
        let announced = body.remaining().is_some();
        let object = filling.object().clone();
        let reader = filling.reader();
        loop {
            match body.step(&mut link.conn) {
                Ok(Some(BodyStep::Data(range))) => {
                    self.counters.add(Counter::BytesFromOrigins, range.len() as u64);
                    filling.append(&link.conn.data()[range.clone()]);
                    link.conn.consume(range.end);
                }
                Ok(Some(BodyStep::End(trailers))) => {
                    link.finish();
                    let trailers = Some(&trailers).filter(|trailers| !trailers.view().is_empty());
                    if let Some(unstored) = filling.unstored() {
                        self.unstored(NoStore::Unkept(unstored), handling);
                    }
                    let finished = filling.finish(trailers);
                    // What is stored is another object: the arriving one made whole.
                    handling.stored = !Arc::ptr_eq(&object, &finished);
                    return Landed::Object(finished, reader, own);
                }
                Ok(None) => break,
                Err(_) => {
                    self.counters.one(Counter::BodiesTruncated);
                    link.broken();
                    return Landed::Object(object, reader, own);
                }
            }
        }
        if let Some(unstored) = filling.unstored() {
            self.unstored(NoStore::Unkept(unstored), handling);
        }
        // Whether a body of unknown length will be stored, nobody can say yet.
        handling.stored = announced && filling.is_stored();
        tokio::task::spawn_local(fill(filling, link, body, self.between_bytes));
        Landed::Object(object, reader, own)
    }
}

/// Receives the rest of a body into its object.
async fn fill(mut filling: Filling, mut link: Link, mut body: Framer, between_bytes: Duration) {
    let mut timer = Timer::new();
    timer.set(between_bytes);
    let mut held_up = false;
    let trailers = poll_fn(|cx| {
        loop {
            if !filling.is_wanted() {
                return Poll::Ready(None);
            }
            let now = sandarac_net::wall();
            if filling.poll_room(cx, now).is_pending() {
                // Readers decide the pace now, for as long as the store lets them: then the next poll cuts them off.
                held_up = true;
                timer.set(filling.deadline().map_or(between_bytes, |deadline| deadline.since(now)));
                std::task::ready!(timer.poll(cx));
                continue;
            }
            if std::mem::take(&mut held_up) {
                timer.set(between_bytes);
            }
            match read(&mut filling, &mut link, &mut body, cx) {
                Poll::Ready(Ok(None)) => timer.set(between_bytes),
                Poll::Ready(Ok(Some(trailers))) => return Poll::Ready(Some(trailers)),
                Poll::Ready(Err(())) => return Poll::Ready(None),
                Poll::Pending => {
                    std::task::ready!(timer.poll(cx));
                    return Poll::Ready(None);
                }
            }
        }
    })
    .await;
    match trailers {
        Some(trailers) => {
            link.finish();
            filling.finish(Some(&trailers).filter(|trailers| !trailers.view().is_empty()));
        }
        // Dropping the filling tells those who read it.
        None => link.broken(),
    }
}

/// Reads once: straight into the object where the body is framed by its length, else by way of the buffer. Ready with
/// the trailers at the end.
fn read(
    filling: &mut Filling,
    link: &mut Link,
    body: &mut Framer,
    cx: &mut std::task::Context<'_>,
) -> Poll<Result<Option<FieldsBuf>, ()>> {
    if let Framer::Length(_) = body
        && link.conn.data().is_empty()
    {
        let direct = filling.read_with(|memory| match link.conn.poll_read_into(cx, memory) {
            Poll::Ready(Ok(n)) => (n, Poll::Ready(Ok(n))),
            Poll::Ready(Err(error)) => (0, Poll::Ready(Err(error))),
            Poll::Pending => (0, Poll::Pending),
        });
        match direct {
            Some(Poll::Ready(Ok(0) | Err(_))) => return Poll::Ready(Err(())),
            Some(Poll::Ready(Ok(n))) => {
                body.taken(n as u64);
                return Poll::Ready(Ok(body.is_ended().then(FieldsBuf::new)));
            }
            Some(Poll::Pending) => return Poll::Pending,
            None => {}
        }
    }
    match std::task::ready!(body.poll_step(&mut link.conn, cx)) {
        Ok(BodyStep::Data(range)) => {
            filling.append(&link.conn.data()[range.clone()]);
            link.conn.consume(range.end);
            Poll::Ready(Ok(None))
        }
        Ok(BodyStep::End(trailers)) => Poll::Ready(Ok(Some(trailers))),
        Err(_) => Poll::Ready(Err(())),
    }
}

/// The fields that are not stored although they are end to end, if there are any.
pub(super) fn own_fields(fields: Fields<'_>) -> Option<FieldsBuf> {
    // Only a directive with field names, hence an argument in quotes, withholds any.
    if !fields.all(Name::CacheControl).any(|value| value.contains(&b'"')) {
        return None;
    }
    let stored = stored_fields(fields);
    let is_own = |field: &Field<'_>| stored.view().all_named(field.name).next().is_none();
    let own: FieldsBuf = fields.iter().filter(is_own).map(|field| (field.name, field.value)).collect();
    Some(own).filter(|own| !own.view().is_empty())
}

/// Adds a Date where the origin sent none (RFC 9110 §6.6.1).
pub(crate) fn add_date(fields: &mut FieldsBuf, now: Timestamp) {
    if !fields.view().has(Name::Date) {
        // A head that is full goes without.
        let _ = fields.add(Name::Date, &date::format(now));
    }
}

/// The part of the representation that a 206 with one range carries.
pub(super) fn content_range(head: &ResponseHead<'_>) -> Option<ContentRange> {
    if head.status != 206 {
        return None;
    }
    ContentRange::parse(head.fields.get(Name::ContentRange)?)
}

/// The tags and groups that a response can be purged by.
pub(crate) fn tags_of(fields: Fields<'_>, host: &[u8]) -> Vec<Tag> {
    let groups = tags::groups(fields, Name::CacheGroups);
    tags::tags(fields)
        .map(Tag::new)
        .chain(groups.iter().map(|group| Tag::group(host, group.as_bytes())))
        .collect()
}
