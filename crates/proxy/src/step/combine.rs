//! Combine: a part of a representation completes another that is stored (RFC 9111 §3.4).

use crate::report::handling::Handling;
use crate::step::fetch::OriginResponse;
use crate::step::store::{Landed, Landing, add_date, content_range, withheld_fields};
use sandarac_cache::{Combination, Flight, Object, Store};
use sandarac_message::caching::{Lifetimes, Storability, combine};
use sandarac_message::conditional::{share_strong_validator, strong_validator};
use sandarac_message::range::{ContentRange, RangeSpec};
use sandarac_message::vary::VarySpec;
use sandarac_message::{FieldsBuf, Name, ResponseHead, StoredHead};
use sandarac_policy::CacheRule;
use std::sync::Arc;

/// The missing rest of the part that is `wanted`, if the origin can be asked for just that: the rest adjoins
/// the stored part, the part has a strong validator to identify it, and both together may be stored.
pub(crate) fn rest_to_fetch(
    wanted: Option<RangeSpec>,
    stored: &Object,
    store: &Store,
    rule: &CacheRule,
) -> Option<RangeSpec> {
    let held = stored.range()?;
    let lacks = held.lacks(wanted)?;
    // If the length is unknown, it is checked when the rest arrives.
    let rest = held.complete.map_or(Some(0), |complete| Some(lacks.resolve(complete)?.len()))?;
    let completes = strong_validator(stored.fields(), stored.received()).is_some()
        && stored.body().len() == Some(held.range.len())
        && store.takes(held.range.len() + rest, Some(rule.max_object.0));
    completes.then_some(lacks)
}

/// A stored part and an arriving part that fits it, as one response.
pub(crate) struct CombinedResponse {
    combination: Combination,
    head: StoredHead,
    lifetimes: Lifetimes,
    fields: FieldsBuf,
    /// `None` if both together are the whole representation.
    range: Option<ContentRange>,
    /// Fields for the requesting client alone.
    own: Option<FieldsBuf>,
}

impl Landing<'_> {
    /// The combination of a 206 and the stored part. `None` if a strong validator does not identify them as
    /// parts of one representation, or if they do not touch, do not answer the request together, or may not
    /// be stored.
    pub(crate) fn combined(
        &self,
        stored: &Arc<Object>,
        arrived: &OriginResponse,
    ) -> Option<CombinedResponse> {
        let now = arrived.received;
        let part = content_range(&arrived.head.view())?;
        let combined = stored.range()?.union(&part)?;
        let combination = Combination::of(stored.clone(), part.range)?;
        let fits = combined.answers(self.wanted)
            && arrived.link.remaining().is_none_or(|len| len == part.range.len())
            && self.core.shared.store.takes(combined.range.len(), Some(self.rule.max_object.0));
        let mut newer = arrived.head.clone();
        self.edit(&mut newer).ok()?;
        self.take_cookies(&mut newer);
        let newer = newer.fields.view();
        if !fits || !share_strong_validator(stored.fields(), newer, now) {
            return None;
        }
        let mut fields = combine(stored.fields(), newer, &combined).ok()?;
        let whole = combined.is_whole();
        let (status, reason) = if whole { (200, &b"OK"[..]) } else { (206, &b"Partial Content"[..]) };
        let version = arrived.head.version;
        let head = ResponseHead { status, reason, version, fields: fields.view() };
        let range = (!whole).then_some(combined);
        let Storability::Store(lifetimes) = self.judge().update(&head, range, arrived) else { return None };
        fields.remove(Name::Age);
        add_date(&mut fields, now);
        let head = self.edits.stored_head(status, reason, &fields).ok()?;
        let own = withheld_fields(newer);
        Some(CombinedResponse { combination, head, lifetimes, fields, range, own })
    }

    /// Stores the combination in place of the stored part.
    pub(crate) fn combine(
        &self,
        flight: Flight,
        arrived: OriginResponse,
        combined: CombinedResponse,
        handling: &mut Handling,
    ) -> Landed {
        let CombinedResponse { combination, head, lifetimes, fields, range, own } = combined;
        let vary = VarySpec::of(fields.view(), &self.rule.policy.vary);
        let tags = self.tags(fields.view());
        let new = self.new_object(head, lifetimes, &vary, &tags, range, None);
        let writer = flight.combine(new, combination);
        handling.ttl = Some(lifetimes.ttl(arrived.received));
        handling.forward_status = Some(arrived.head.status);
        self.fill(writer, arrived, own, handling)
    }
}
