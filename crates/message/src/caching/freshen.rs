//! Updates of stored responses: the fields that are stored, the changes made by a validation, and the URIs
//! invalidated by an unsafe request.

use super::directives::withheld_names;
use crate::conditional::strong_validator;
use crate::hop::{HopByHop, NameSet};
use crate::range::ContentRange;
use crate::{Field, Fields, FieldsBuf, Method, Name, RequestHead, ResponseHead, Timestamp, TooLarge};

/// The fields of a response that may be stored (RFC 9111 §3.1): without those of the connection and those
/// named by `no-cache="…"` and `private="…"`. The latter may still be sent to the client that made the
/// request.
pub fn stored_fields(response: Fields<'_>) -> FieldsBuf {
    let storable = Storable::of(response);
    let mut fields = FieldsBuf::copy_of(response);
    fields.retain(|field| storable.has(&field));
    fields
}

struct Storable<'a> {
    hop_by_hop: HopByHop<'a>,
    withheld: NameSet<'a>,
}

impl<'a> Storable<'a> {
    fn of(response: Fields<'a>) -> Storable<'a> {
        Storable { hop_by_hop: HopByHop::of(response), withheld: withheld_names(response).collect() }
    }

    fn has(&self, field: &Field<'_>) -> bool {
        let proxy = matches!(
            field.id,
            Name::ProxyAuthenticate | Name::ProxyAuthenticationInfo | Name::ProxyAuthorization
        );
        !proxy && !self.hop_by_hop.has(field) && !self.withheld.has(field.name)
    }
}

/// The stored fields updated by a 304, or a 200 to HEAD (RFC 9111 §3.2, §4.3.4, §4.3.5): its fields replace
/// the stored ones of the same name, except those that describe the stored body. The stored Age is removed,
/// and so is the stored Date if the new response has none, because both refer to the older receipt.
pub fn freshen(stored: Fields<'_>, update: Fields<'_>) -> Result<FieldsBuf, TooLarge> {
    let storable = Storable { hop_by_hop: HopByHop::of(update), withheld: withheld(stored, update) };
    let updates = |field: &Field<'_>| !describes_body(field) && storable.has(field);
    let replaced: NameSet<'_> = update.iter().filter(updates).map(|field| field.name).collect();
    let mut fields = FieldsBuf::new();
    for field in stored.iter() {
        let stays = !replaced.has(field.name) && !storable.withheld.has(field.name);
        if stays && !matches!(field.id, Name::Age | Name::Date) {
            fields.push(field.name, field.value)?;
        }
    }
    for field in update.iter().filter(updates) {
        fields.push(field.name, field.value)?;
    }
    Ok(fields)
}

/// The names of fields of an update that are not stored. Names withheld by the stored response stay private
/// to one client even if the new response does not repeat them.
fn withheld<'a>(stored: Fields<'a>, update: Fields<'a>) -> NameSet<'a> {
    withheld_names(stored).chain(withheld_names(update)).collect()
}

/// The fields of an update that are sent only to the client that made the request: the withheld ones and, if
/// `cookies` is set because the stored response may not have them, cookies.
pub fn own_fields_of_update(stored: Fields<'_>, update: Fields<'_>, cookies: bool) -> FieldsBuf {
    let withheld = withheld(stored, update);
    let hop_by_hop = HopByHop::of(update);
    let own = |field: &Field<'_>| {
        !hop_by_hop.has(field) && (withheld.has(field.name) || (cookies && field.id == Name::SetCookie))
    };
    update.iter().filter(own).map(|field| (field.name, field.value)).collect()
}

/// The fields of two parts of a representation that together are `joined` (RFC 9111 §3.4, RFC 9110
/// §15.3.7.3): those of the stored part updated by the newer one, without fields that describe one part only.
pub fn combine(stored: Fields<'_>, newer: Fields<'_>, joined: &ContentRange) -> Result<FieldsBuf, TooLarge> {
    part_fields(freshen(stored, newer)?, joined)
}

/// The fields of a response that holds exactly the part `held` of its representation: with Content-Range and
/// Content-Length for it, and without digests of the bytes in a single message.
pub fn part_fields(mut fields: FieldsBuf, held: &ContentRange) -> Result<FieldsBuf, TooLarge> {
    fields.retain(|field| {
        field.id != Name::ContentRange
            && !PART_DIGESTS.iter().any(|name| field.id == Name::Other && field.is(name))
    });
    fields.set(Name::ContentLength, held.range.len().to_string().as_bytes())?;
    if !held.is_whole() {
        let mut value = Vec::new();
        held.write(&mut value);
        fields.add(Name::ContentRange, &value)?;
    }
    Ok(fields)
}

/// Whether the beginning of a response whose body breaks off may be kept as a part, to be completed by a
/// request for the rest (RFC 9111 §3.3, RFC 9110 §15.3.7): it responds to a GET, and has a strong validator
/// to match the rest by. `received` is the time of receipt.
pub fn resumable(request: &RequestHead<'_>, response: &ResponseHead<'_>, received: Timestamp) -> bool {
    request.method == Method::Get
        && matches!(response.status, 200 | 206)
        && strong_validator(response.fields, received).is_some()
        && !response.fields.list(Name::AcceptRanges).any(|unit| unit.eq_ignore_ascii_case(b"none"))
}

/// Digests of the bytes in a single message.
const PART_DIGESTS: [&[u8]; 2] = [b"content-md5", b"content-digest"];

/// Whether a 200 to a HEAD request confirms the stored response, so that it may be freshened (RFC 9111
/// §4.3.5): every validator it has, and its length, equal the stored ones. Otherwise the stored response is
/// outdated. `None` if it has no validator and no different length: other content may have the same length,
/// and the change would go unnoticed.
pub fn head_agrees(stored: Fields<'_>, head: Fields<'_>) -> Option<bool> {
    let agrees = |name: &Name| head.get(*name).is_none_or(|value| stored.get(*name) == Some(value));
    let agrees = [Name::Etag, Name::LastModified, Name::ContentLength].iter().all(agrees);
    let validates = head.has(Name::Etag) || head.has(Name::LastModified);
    (validates || !agrees).then_some(agrees)
}

/// Whether a field describes the bytes of the body, so that a response without them must not change it.
fn describes_body(field: &Field<'_>) -> bool {
    match field.id {
        Name::ContentEncoding | Name::ContentLength | Name::ContentRange | Name::ContentType | Name::Etag => {
            true
        }
        Name::Other => [&b"content-md5"[..], b"content-digest", b"repr-digest", b"digest"]
            .iter()
            .any(|name| field.is(name)),
        _ => false,
    }
}

/// Whether a response invalidates the stored responses for its target (RFC 9111 §4.4): it is no error, and
/// the request's method is not known to be safe. [`crate::target::invalidated`] returns the other targets.
pub fn invalidates(method: Method, status: u16) -> bool {
    !method.is_safe() && method != Method::Connect && method != Method::Purge && (200..400).contains(&status)
}
