//! The query that a request makes of the store, and the reason to forward a request that the store cannot
//! answer.

use sandarac_cache::{Intent, Key, Object, Query, Store};
use sandarac_message::caching::{Profile, RequestDirectives};
use sandarac_message::range::{self, RangeSpec};
use sandarac_message::status_fields::Forward;
use sandarac_message::{Fields, Method, Name, RequestHead};
use sandarac_net::wall;
use sandarac_policy::CacheRule;

/// The query that a request makes of the store.
pub(crate) fn query<'a>(
    request: &RequestHead<'a>,
    rule: &CacheRule,
    directives: &'a RequestDirectives,
) -> Query<'a> {
    let fills = fills(request, rule) && !directives.only_if_cached;
    Query {
        fields: request.fields,
        directives,
        part: single_range(request),
        intent: if fills { Intent::Fill } else { Intent::Peek },
    }
}

/// Whether a request that finds nothing fetches for the store. Under the profile safe a HEAD does, by GET, as
/// in Varnish and nginx: some origins send a body in response to HEAD, which would be read as the response to
/// the next request. Under rfc it is forwarded unchanged, and nothing is stored.
pub(crate) fn fills(request: &RequestHead<'_>, rule: &CacheRule) -> bool {
    request.method != Method::Head || rule.policy.profile == Profile::Safe
}

/// The requested part of the representation, if it is a single range.
pub(crate) fn single_range(request: &RequestHead<'_>) -> Option<RangeSpec> {
    if request.method != Method::Get || request.fields.has(Name::IfRange) {
        return None;
    }
    let specs = range::parse(request.fields.get(Name::Range)?)?;
    match specs[..] {
        [spec] => Some(spec),
        _ => None,
    }
}

/// The range to request from the origin. A range from the start is sent by clients that will want the whole,
/// or by players out of habit: the whole is fetched, and serves both. Any other range is requested as it is,
/// because the whole may be large.
pub(crate) fn part_to_fetch(wanted: Option<RangeSpec>, candidate: Option<&Object>) -> Option<RangeSpec> {
    let whole = candidate.is_some_and(|object| object.range().is_none());
    wanted.filter(|spec| !whole && !spec.is_whole())
}

/// Why a request is forwarded; `candidate` is what is stored for it.
pub(crate) fn forward(
    store: &Store,
    key: Key,
    request: Fields<'_>,
    candidate: Option<&Object>,
    directives: &RequestDirectives,
) -> Forward {
    let Some(candidate) = candidate else {
        // A response may have been stored since the lookup, for example by the fetch that the request waited
        // for.
        let variants = store.variants(key);
        let others = !variants.is_empty() && variants.iter().all(|object| !object.vary().matches(request));
        return if others { Forward::VaryMiss } else { Forward::UriMiss };
    };
    if candidate.range().is_some() {
        Forward::Partial
    } else if candidate.lifetimes().is_fresh(wall()) && *directives != RequestDirectives::default() {
        Forward::Request
    } else {
        Forward::Stale
    }
}
