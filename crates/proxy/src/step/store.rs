//! Store: decides about the response to a flight, and about the object that it was to replace.

use crate::Fault;
use crate::core::Core;
use crate::report::handling::{Course, Detail, Handling, StandIn};
use crate::report::tally::NoStore;
use crate::request::received::Received;
use crate::request::response_edits::EditsForTarget;
use crate::request::tags::tags_of;
use crate::site::Site;
use crate::step::fetch::OriginResponse;
use crate::step::judge::Judge;
use crate::tier::Fill;
use sandarac_cache::{Flight, Mark, NewObject, Object, Reader, Tag};
use sandarac_message::caching::{
    Lifetimes, Reason, RequestDirectives, Storability, StoreUse, blames_request, delta_seconds, freshen,
    own_fields_of_update, resumable, store_use, stored_fields,
};
use sandarac_message::range::{ContentRange, RangeSpec};
use sandarac_message::vary::VarySpec;
use sandarac_message::{
    Field, Fields, FieldsBuf, Name, RequestHead, ResponseHead, ResponseHeadBuf, StoredHead, Timestamp,
    TooLarge, accel, date, tags,
};
use sandarac_policy::{CacheRule, PoolId};
use sandarac_tier::SharedCopy;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// How many waiters may try by themselves at once after a second fetch brought no response. The others wait
/// for one of them: an overloaded origin does not get all requests at once, and no waiter waits long.
pub(crate) const RELEASED: usize = 16;

/// The inputs to storing a response.
pub(crate) struct Landing<'a> {
    pub(crate) core: &'a Core,
    pub(crate) site: &'a Site,
    /// The request as it was fetched.
    pub(crate) request: &'a RequestHead<'a>,
    /// The part of the representation that the client wants, if it is a single range.
    pub(crate) wanted: Option<RangeSpec>,
    pub(crate) host: &'a [u8],
    pub(crate) path: &'a [u8],
    pub(crate) rule: &'a CacheRule,
    pub(crate) edits: EditsForTarget<'a>,
    pub(crate) directives: RequestDirectives,
    pub(crate) between_bytes: Duration,
    pub(crate) transaction: u64,
    /// The state of the entry in the shared tier that the response will have.
    pub(crate) copy: Option<Arc<SharedCopy>>,
    /// The way to tell the shared tier of the response.
    pub(crate) tier: Cell<Option<Fill>>,
}

/// The result of storing a response.
pub(crate) enum Landed {
    /// It is stored, or a stored one was freshened; the body may still be arriving. The fields, if any, are
    /// for the requesting client alone (`no-cache="…"`, RFC 9111 §5.2.2.4).
    Object(Arc<Object>, Option<Reader>, Option<FieldsBuf>),
    /// It is not stored, and goes to the requesting client.
    Relay(Box<OriginResponse>),
}

impl<'a> Landing<'a> {
    /// The inputs to storing the response to `request` under the key of `received` and `rule`. The whole
    /// representation is wanted, and the request has no directives for stored responses.
    #[expect(clippy::too_many_arguments, reason = "each is another thing that a response is stored with")]
    pub(crate) fn of(
        core: &'a Core,
        site: &'a Site,
        request: &'a RequestHead<'a>,
        received: &'a Received<'a>,
        path: &'a [u8],
        rule: &'a CacheRule,
        pool: PoolId,
        transaction: Option<u64>,
    ) -> Landing<'a> {
        Landing {
            core,
            site,
            request,
            wanted: None,
            host: &received.host,
            path,
            rule,
            edits: received.edits(path),
            directives: RequestDirectives::default(),
            between_bytes: site.pool_by_id(pool).timeouts.between_bytes,
            transaction: transaction.unwrap_or_default(),
            copy: None,
            tier: Cell::new(None),
        }
    }

    /// The same, for a response that the shared tier is told of.
    pub(crate) fn shared(self, tier: Option<Fill>) -> Landing<'a> {
        Landing { copy: tier.as_ref().map(|tier| tier.copy().clone()), tier: Cell::new(tier), ..self }
    }

    /// Takes a response: stores it, freshens the candidate with it, serves the candidate in its place, or
    /// relays it.
    ///
    /// # Errors
    /// [`Fault::HeadTooLarge`] if the route's edits make it so. No client gets a partly edited response.
    pub(crate) fn land(
        &self,
        flight: Flight,
        mut arrived: Box<OriginResponse>,
        handling: &mut Handling,
    ) -> Result<Landed, Fault> {
        let candidate = flight.candidate().cloned();
        let now = arrived.received;
        // A part answers only what it covers.
        let answers = |stored: &&Arc<Object>| stored.answers(self.wanted);
        if let Some(candidate) = candidate.as_ref().filter(answers) {
            if arrived.head.status == 304 {
                return Ok(self.refresh(flight, candidate.clone(), *arrived, handling));
            }
            let failed = matches!(arrived.head.status, 500 | 502 | 503 | 504);
            if failed && candidate.lifetimes().usable_on_error_status(&self.directives, now) {
                handling.course = Course::Stale;
                handling.detail = Some(Detail::StandIn(StandIn::Error));
                handling.ttl = Some(candidate.lifetimes().ttl(now));
                handling.forward_status = Some(arrived.head.status);
                flight.fail();
                arrived.link.close();
                return Ok(Landed::Object(candidate.clone(), None, None));
            }
        }
        if self.edit(&mut arrived.head).is_err() {
            return Err(self.refuse(flight, arrived, handling));
        }
        let cookies = self.take_cookies(&mut arrived.head);
        let announced = arrived.link.remaining();
        // Its length must match its Content-Range.
        let range = content_range(&arrived.head.view())
            .filter(|part| announced.is_none_or(|len| len == part.range.len()));
        let view = arrived.head.view();
        let judged = self.judge().response(&arrived, range, candidate.as_deref());
        match judged {
            Storability::Store(lifetimes) => {
                let vary = VarySpec::of(view.fields, &self.rule.policy.vary);
                let own = own_fields(view.fields);
                let (part, whole) = match range {
                    Some(range) if range.is_whole() => (None, Some(range)),
                    range => (range, None),
                };
                let Ok(head) = self.head_to_store(&arrived, whole.is_some()) else {
                    if !self.edits.edits.stored.is_empty()
                        || self.edit_unstored(&mut arrived.head, cookies).is_err()
                    {
                        return Err(self.refuse(flight, arrived, handling));
                    }
                    // The received head was already at the limit.
                    self.unstored(NoStore::HeadTooLarge, handling);
                    return Ok(Landed::Relay(arrived));
                };
                let tags = self.tags(view.fields);
                let len = announced.or(range.map(|range| range.range.len()));
                let new = self.new_object(head, lifetimes, &vary, &tags, part, len);
                let writer = flight.store(new);
                handling.ttl = Some(lifetimes.ttl(now));
                Ok(self.fill(writer, *arrived, own, handling))
            }
            Storability::NoStore(reason) => {
                if self.edit_unstored(&mut arrived.head, cookies).is_err() {
                    return Err(self.refuse(flight, arrived, handling));
                }
                self.leave(flight, arrived.head.status, reason, now);
                self.unstored(NoStore::Unusable(reason), handling);
                Ok(Landed::Relay(arrived))
            }
        }
    }

    pub(super) fn judge(&self) -> Judge<'_> {
        Judge { request: self.request, policy: &self.rule.policy }
    }

    /// Drops a response whose head the edits make too large. Each waiter tries by itself, because its own
    /// request may differ.
    fn refuse(&self, flight: Flight, arrived: Box<OriginResponse>, handling: &mut Handling) -> Fault {
        self.unstored(NoStore::HeadTooLarge, handling);
        arrived.link.close();
        flight.scatter();
        Fault::HeadTooLarge
    }

    /// Removes `Set-Cookie` if the route stores responses without it, and returns the original fields.
    pub(super) fn take_cookies(&self, head: &mut ResponseHeadBuf) -> Option<FieldsBuf> {
        if !self.edits.take_cookies() || !head.fields.view().has(Name::SetCookie) {
            return None;
        }
        let with_cookies = head.fields.clone();
        head.fields.remove(Name::SetCookie);
        Some(with_cookies)
    }

    /// Makes the edits of a response that is not stored, and restores its cookies.
    fn edit_unstored(
        &self,
        head: &mut ResponseHeadBuf,
        with_cookies: Option<FieldsBuf>,
    ) -> Result<(), TooLarge> {
        if let Some(fields) = with_cookies {
            head.fields = fields;
        }
        self.edits.make_passed(head)
    }

    /// Handles a response that is not stored: the waiters are released, and what it supersedes is not served
    /// again. An error supersedes nothing, because it means that the origin could not tell (RFC 9111 §4.3.3).
    /// Neither does a response that concerns this one request, or is not stored because of it.
    fn leave(&self, flight: Flight, status: u16, reason: Reason, now: Timestamp) {
        let is_of_request = reason.is_of_request() || self.is_apart();
        let stays = status >= 500 || blames_request(status) || is_of_request;
        let flight = if stays { flight.sparing() } else { flight };
        let reason = if status >= 500 { Reason::ServerError } else { reason };
        if let Some(tier) = self.tier.take().filter(|_| !blames_request(status)) {
            tier.unstored(reason);
        }
        match reason.marked_for() {
            _ if blames_request(status) || reason == Reason::ClientError => flight.scatter(),
            Some(time) if !is_of_request => flight.mark(Mark::HitForMiss, now.plus(time), now),
            _ => flight.release(RELEASED),
        }
    }

    /// Whether another request for the same target may well get another kind of response, because this one
    /// has a field that may say who asks.
    fn is_apart(&self) -> bool {
        matches!(store_use(self.request, &self.rule.policy), StoreUse::Apart(_))
    }

    /// Notes and counts why a response is not stored.
    pub(super) fn unstored(&self, reason: NoStore, handling: &mut Handling) {
        handling.detail = Some(Detail::Unstored(reason));
        self.core.counters.unstored.one(&reason);
    }

    /// 304: the stored body under a new head.
    fn refresh(
        &self,
        flight: Flight,
        candidate: Arc<Object>,
        mut arrived: OriginResponse,
        handling: &mut Handling,
    ) -> Landed {
        let now = arrived.received;
        handling.course = Course::Revalidated;
        handling.forward_status = Some(304);
        let edited = self.edit(&mut arrived.head);
        let cookies = self.take_cookies(&mut arrived.head);
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
        let judged = self.judge().update(&view, candidate.range(), &arrived);
        let vary = VarySpec::of(view.fields, &self.rule.policy.vary);
        let tags = self.tags(view.fields);
        arrived.link.finish();
        match judged {
            Storability::Store(lifetimes) => {
                // The lifetimes contain it now; a hit adds the current Age.
                fields.remove(Name::Age);
                add_date(&mut fields, now);
                let (status, reason) = (candidate.head().status(), candidate.head().reason());
                let Ok(head) = self.edits.stored_head(status, reason, &fields) else {
                    return Landed::Object(candidate, None, None);
                };
                handling.stored = true;
                handling.ttl = Some(lifetimes.ttl(now));
                let new = self.new_object(head, lifetimes, &vary, &tags, None, None);
                let refreshed = flight.refresh(new);
                if let Some(refreshed) = &refreshed {
                    self.carry_recodings(&candidate, refreshed);
                }
                if let (Some(tier), Some(object)) = (self.tier.take(), &refreshed) {
                    tier.validated(object.clone(), candidate.clone(), &self.rule.key);
                }
                let own =
                    for_client(own_fields_of_update(candidate.fields(), arrived.head.fields.view(), false));
                Landed::Object(refreshed.unwrap_or(candidate), None, own)
            }
            Storability::NoStore(reason) => {
                self.unstored(NoStore::Unusable(reason), handling);
                let update = cookies.as_ref().unwrap_or(&arrived.head.fields).view();
                let own = own_fields_of_update(candidate.fields(), update, cookies.is_some());
                let object = self.for_one_client(&candidate, fields, &own, now);
                self.leave(flight, 304, reason, now);
                Landed::Object(object.unwrap_or(candidate), None, None)
            }
        }
    }

    /// Keeps the body in other codings, which a 304 does not change.
    fn carry_recodings(&self, before: &Object, after: &Arc<Object>) {
        let Some(rule) = self.edits.compress else { return };
        let head = after.head();
        if rule.varies(head.status(), head.shown(), after.body().len()) {
            self.core.shared.store.carry_recodings(before, after, |coding| head.recoded(coding).ok());
        }
    }

    /// The stored body under the head that a 304 makes of it and that may not be stored, with the client's
    /// `own` fields and the edits of responses that are not stored.
    fn for_one_client(
        &self,
        stored: &Object,
        mut fields: FieldsBuf,
        own: &FieldsBuf,
        now: Timestamp,
    ) -> Result<Arc<Object>, TooLarge> {
        let age = fields.view().get(Name::Age).and_then(delta_seconds).unwrap_or_default();
        fields.remove(Name::Age);
        fields.extend(own.view(), |field| field.id != Name::Age)?;
        add_date(&mut fields, now);
        self.edits.edits.passed.apply(&mut fields, &self.edits.parts())?;
        let head = StoredHead::new(stored.head().status(), stored.head().reason(), &fields)?;
        let received = now.minus(Duration::from_secs(age.into()));
        let lifetimes = Lifetimes::fixed(received, Duration::ZERO, Duration::ZERO, Duration::ZERO);
        Ok(self.core.shared.store.under(stored, head, lifetimes))
    }

    /// Makes the edits of every response, before it is judged or stored.
    pub(super) fn edit(&self, head: &mut ResponseHeadBuf) -> Result<(), TooLarge> {
        self.edits.make(head, self.site.name())
    }

    /// The head as stored: without fields for this proxy only, and with a Date. A 206 that covers the `whole`
    /// becomes the equivalent 200 (RFC 9110 §15.3.7.3).
    fn head_to_store(&self, arrived: &OriginResponse, whole: bool) -> Result<StoredHead, TooLarge> {
        let mut fields = stored_fields(arrived.head.fields.view());
        fields.remove(Name::Age);
        // A stored body is sent with its length, so its trailers cannot be announced.
        fields.remove(Name::Trailer);
        add_date(&mut fields, arrived.received);
        if arrived.file.is_some() {
            // No client gets it, and all who share the object know that the body is a file.
            fields.push(accel::X_SENDFILE, b"1")?;
        }
        if whole {
            fields.remove(Name::ContentRange);
            return self.edits.stored_head(200, b"OK", &fields);
        }
        self.edits.stored_head(arrived.head.status, &arrived.head.reason, &fields)
    }

    /// The tags and groups by which a response with these fields can be purged.
    pub(super) fn tags(&self, fields: Fields<'_>) -> Vec<Tag> {
        tags_of(fields, self.host, self.path, &self.rule.key)
    }

    pub(super) fn new_object<'b>(
        &'b self,
        head: StoredHead,
        lifetimes: Lifetimes,
        vary: &VarySpec,
        tags: &'b [Tag],
        range: Option<ContentRange>,
        len: Option<u64>,
    ) -> NewObject<'b> {
        NewObject {
            resumable: resumable(self.request, &head.view(), lifetimes.received()),
            head,
            lifetimes,
            vary: vary.key(self.request.fields),
            host: self.host,
            path: self.path,
            tags,
            range,
            len,
            limit: Some(self.rule.max_object.0),
            copy: self.copy.clone(),
            transaction: self.transaction,
        }
    }
}

/// The fields that only the requesting client gets, if any: those withheld from the store, and the Age as
/// received. The caller adds the response delay (RFC 9111 §4.2.3).
fn own_fields(fields: Fields<'_>) -> Option<FieldsBuf> {
    let mut own = withheld_fields(fields).unwrap_or_default();
    if !own.view().has(Name::Age) {
        fields.all(Name::Age).try_for_each(|age| own.add(Name::Age, age)).ok()?;
    }
    for_client(own)
}

/// The fields that a client may see, if any.
fn for_client(mut own: FieldsBuf) -> Option<FieldsBuf> {
    own.retain_names(|name| !tags::is_surrogate_only(name));
    Some(own).filter(|own| !own.view().is_empty())
}

/// The end-to-end fields that are not stored, if any.
pub(super) fn withheld_fields(fields: Fields<'_>) -> Option<FieldsBuf> {
    // Only a directive with field names, that is with a quoted argument, withholds any.
    if !fields.all(Name::CacheControl).any(|value| value.contains(&b'"')) {
        return None;
    }
    let stored = stored_fields(fields);
    let is_own = |field: &Field<'_>| stored.view().all_named(field.name).next().is_none();
    let own: FieldsBuf = fields.iter().filter(is_own).map(|field| (field.name, field.value)).collect();
    Some(own).filter(|own| !own.view().is_empty())
}

/// Adds a Date if the origin sent none (RFC 9110 §6.6.1).
pub(crate) fn add_date(fields: &mut FieldsBuf, now: Timestamp) {
    if !fields.view().has(Name::Date) {
        // A full head stays without a Date.
        let _ = fields.add(Name::Date, &date::format(now));
    }
}

/// The part of the representation in a 206 with one range.
pub(super) fn content_range(head: &ResponseHead<'_>) -> Option<ContentRange> {
    if head.status != 206 {
        return None;
    }
    let mut lines = head.fields.all(Name::ContentRange);
    let only = lines.next().filter(|_| lines.next().is_none())?;
    ContentRange::parse(only)
}
