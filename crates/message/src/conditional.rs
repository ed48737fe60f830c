//! Conditional requests (RFC 9110 §13), both ways: answering a client's, and making one to validate what is stored.

use crate::{Field, Fields, FieldsBuf, Method, Name, Timestamp, TooLarge, date};

/// An entity tag (RFC 9110 §8.8.3). One without quotes, which some origins send, is taken as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityTag<'a> {
    /// Whether it is marked as weak.
    pub weak: bool,
    /// The rest, with its quotes.
    pub opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    /// Reads one tag. `W/` must be in upper case.
    pub fn parse(text: &'a [u8]) -> EntityTag<'a> {
        match text.strip_prefix(b"W/") {
            Some(opaque) => EntityTag { weak: true, opaque },
            None => EntityTag { weak: false, opaque: text },
        }
    }

    /// Strong comparison (RFC 9110 §8.8.3.2).
    pub fn is_same_strong(&self, other: &EntityTag<'_>) -> bool {
        !self.weak && !other.weak && self.opaque == other.opaque
    }

    /// Weak comparison (RFC 9110 §8.8.3.2).
    pub fn is_same_weak(&self, other: &EntityTag<'_>) -> bool {
        self.opaque == other.opaque
    }
}

/// The tags of If-Match or If-None-Match. A backslash in a tag is a plain byte there, so that
/// [`crate::members`] does not fit.
pub fn entity_tags(value: &[u8]) -> impl Iterator<Item = EntityTag<'_>> + Clone {
    let mut rest = value;
    std::iter::from_fn(move || {
        rest = &rest[rest.iter().position(|byte| !matches!(byte, b',' | b' ' | b'\t'))?..];
        let open = if rest.starts_with(b"W/") { 2 } else { 0 };
        let end = match rest.get(open) {
            Some(b'"') => memchr::memchr(b'"', &rest[open + 1..]).map(|at| open + 1 + at + 1),
            _ => memchr::memchr(b',', rest),
        };
        let (tag, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(EntityTag::parse(tag.trim_ascii_end()))
    })
}

/// Who evaluates a precondition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Whoever makes the response: all four fields count.
    Origin,
    /// A cache with a stored response: If-Match and If-Unmodified-Since are not for it (RFC 9111 §4.3.2).
    Cache,
}

/// What follows from the preconditions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answer as if there were none.
    Proceed,
    /// Answer 304, with the fields that [`in_not_modified`] keeps.
    NotModified,
    /// Answer 412.
    Failed,
}

/// Evaluates the preconditions of `request` against a response of `status` with the fields `response`, received (or
/// made) at `received`, in the order of RFC 9110 §13.2.2. If-Range is not among them: see [`if_range_holds`].
/// Malformed dates and repeated ones are ignored, and so is everything where the answer would be no success
/// (RFC 9110 §13.2.1).
pub fn evaluate(
    role: Role,
    method: Method,
    request: Fields<'_>,
    status: u16,
    response: Fields<'_>,
    received: Timestamp,
) -> Outcome {
    if !(200..300).contains(&status) || matches!(method, Method::Connect | Method::Options | Method::Trace) {
        return Outcome::Proceed;
    }
    let tag = response.get(Name::Etag).map(EntityTag::parse);
    // RFC 9111 §4.3.2: a cache takes Date, or the time of receipt, where there is no Last-Modified.
    let modified = || {
        let stated = |name| response.get(name).and_then(|value| date::parse(value, received));
        stated(Name::LastModified).or_else(|| match role {
            Role::Cache => Some(stated(Name::Date).unwrap_or(received)),
            Role::Origin => None,
        })
    };
    if role == Role::Origin {
        if request.has(Name::IfMatch) {
            let same = |other: &EntityTag<'_>| tag.is_some_and(|tag| tag.is_same_strong(other));
            if !lists(request, Name::IfMatch, same) {
                return Outcome::Failed;
            }
        } else if let Some(since) = single_date(request, Name::IfUnmodifiedSince, received)
            && modified().is_some_and(|modified| seconds(modified) > seconds(since))
        {
            return Outcome::Failed;
        }
    }
    let reads = matches!(method, Method::Get | Method::Head);
    if request.has(Name::IfNoneMatch) {
        let same = |other: &EntityTag<'_>| tag.is_some_and(|tag| tag.is_same_weak(other));
        return match (lists(request, Name::IfNoneMatch, same), reads) {
            (false, _) => Outcome::Proceed,
            (true, true) => Outcome::NotModified,
            (true, false) => Outcome::Failed,
        };
    }
    let since = reads.then(|| single_date(request, Name::IfModifiedSince, received)).flatten();
    match (since, since.and_then(|_| modified())) {
        (Some(since), Some(modified)) if seconds(modified) <= seconds(since) => Outcome::NotModified,
        _ => Outcome::Proceed,
    }
}

/// Whether a list of tags is `*` or has one that is the `same`.
fn lists(request: Fields<'_>, name: Name, same: impl Fn(&EntityTag<'_>) -> bool) -> bool {
    request.all(name).any(|value| value == b"*" || entity_tags(value).any(|tag| same(&tag)))
}

fn single_date(fields: Fields<'_>, name: Name, now: Timestamp) -> Option<Timestamp> {
    let mut lines = fields.all(name);
    let first = lines.next()?;
    if lines.next().is_some() { None } else { date::parse(first, now) }
}

/// HTTP dates have whole seconds; a time of receipt does not.
fn seconds(time: Timestamp) -> u64 {
    time.as_secs()
}

/// Whether a Range field is to be obeyed: there is no If-Range, or it names the `response` by a strong validator
/// (RFC 9110 §13.1.5). A Last-Modified is one only where Date lies a second or more after it (RFC 9110 §8.8.2.2).
pub fn if_range_holds(request: Fields<'_>, response: Fields<'_>, now: Timestamp) -> bool {
    let mut lines = request.all(Name::IfRange);
    let Some(condition) = lines.next() else {
        return true;
    };
    if lines.next().is_some() {
        return false;
    }
    if condition.starts_with(b"\"") || condition.starts_with(b"W/") {
        let tag = EntityTag::parse(condition);
        return response.get(Name::Etag).is_some_and(|value| EntityTag::parse(value).is_same_strong(&tag));
    }
    let stated = |name| response.get(name).and_then(|value| date::parse(value, now));
    match (date::parse(condition, now), stated(Name::LastModified), stated(Name::Date)) {
        (Some(condition), Some(modified), Some(date)) => condition == modified && modified < date,
        _ => false,
    }
}

/// Whether both responses carry the same strong validator, so that parts of them are parts of one representation
/// (RFC 9110 §15.3.7.3, RFC 9111 §3.4).
pub fn share_strong_validator(one: Fields<'_>, other: Fields<'_>, now: Timestamp) -> bool {
    match (one.get(Name::Etag), other.get(Name::Etag)) {
        (Some(one), Some(other)) => EntityTag::parse(one).is_same_strong(&EntityTag::parse(other)),
        (None, None) => {
            let strong = |fields: Fields<'_>| {
                let modified = date::parse(fields.get(Name::LastModified)?, now)?;
                (modified < date::parse(fields.get(Name::Date)?, now)?).then_some(modified)
            };
            strong(one).is_some_and(|modified| strong(other) == Some(modified))
        }
        _ => false,
    }
}

/// Whether a request has a precondition of any kind.
pub fn is_conditional(request: Fields<'_>) -> bool {
    request.iter().any(|field| is_condition(field.id))
}

fn is_condition(name: Name) -> bool {
    matches!(
        name,
        Name::IfMatch | Name::IfNoneMatch | Name::IfModifiedSince | Name::IfUnmodifiedSince | Name::IfRange
    )
}

/// Takes the client's preconditions and Range out of a request that is to fill the cache with a whole response.
pub fn make_unconditional(request: &mut FieldsBuf) {
    request.retain(|field| !is_condition(field.id) && field.id != Name::Range);
}

/// Makes the request one that validates a stored response with these fields (RFC 9111 §4.3.1): the client's
/// preconditions and Range give way to the stored validators, as they were received. Returns whether there was any; if
/// not, the request is unconditional.
pub fn make_validation(request: &mut FieldsBuf, stored: Fields<'_>) -> Result<bool, TooLarge> {
    make_unconditional(request);
    let (tag, modified) = (stored.get(Name::Etag), stored.get(Name::LastModified));
    if let Some(tag) = tag {
        request.add(Name::IfNoneMatch, tag)?;
    }
    if let Some(modified) = modified {
        request.add(Name::IfModifiedSince, modified)?;
    }
    Ok(tag.is_some() || modified.is_some())
}

/// Whether a 304 made from a stored response carries this field of it (RFC 9110 §15.4.5): all but those that describe a
/// body that is not sent. Last-Modified goes where there is an entity tag (`has_etag`).
pub fn in_not_modified(field: &Field<'_>, has_etag: bool) -> bool {
    match field.id {
        Name::ContentEncoding
        | Name::ContentLanguage
        | Name::ContentLength
        | Name::ContentRange
        | Name::ContentType
        | Name::AcceptRanges
        | Name::Trailer
        | Name::TransferEncoding => false,
        Name::LastModified => !has_etag,
        Name::Other => ![&b"content-md5"[..], b"content-digest", b"digest"].iter().any(|name| field.is(name)),
        _ => true,
    }
}
