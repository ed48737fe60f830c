//! Conditional requests (RFC 9110 §13), both ways: evaluating a client's, and making one to validate a stored
//! response.

use crate::range::RangeSpec;
use crate::{Field, Fields, FieldsBuf, Method, Name, Timestamp, TooLarge, date};

/// An entity tag (RFC 9110 §8.8.3). A tag without quotes, which some origins send, is taken as it is.
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

/// The tags of If-Match or If-None-Match. A backslash in a tag is an ordinary byte, so [`crate::members`]
/// cannot be used.
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

/// The party that evaluates a precondition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The maker of the response: all four fields apply.
    Origin,
    /// A cache with a stored response: it ignores If-Match and If-Unmodified-Since (RFC 9111 §4.3.2).
    Cache,
}

/// The outcome of a request's preconditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evaluation {
    /// Respond as if there were none.
    Proceed,
    /// Respond with 304, with the fields that [`in_not_modified`] keeps.
    NotModified,
    /// Respond with 412.
    Failed,
}

/// Evaluates the preconditions of `request` against a response of `status` with the fields `response`,
/// received (or made) at `received`, in the order of RFC 9110 §13.2.2. If-Range is not among them: see
/// [`if_range_holds`]. Malformed and repeated dates are ignored. All preconditions are ignored if the
/// response is no success (RFC 9110 §13.2.1).
pub fn evaluate(
    role: Role,
    method: Method,
    request: Fields<'_>,
    status: u16,
    response: Fields<'_>,
    received: Timestamp,
) -> Evaluation {
    if !(200..300).contains(&status) || matches!(method, Method::Connect | Method::Options | Method::Trace) {
        return Evaluation::Proceed;
    }
    let tag = response.get(Name::Etag).map(EntityTag::parse);
    // RFC 9111 §4.3.2: without Last-Modified, a cache uses Date or the time of receipt.
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
                return Evaluation::Failed;
            }
        } else if let Some(since) = single_date(request, Name::IfUnmodifiedSince, received)
            && modified().is_some_and(|modified| seconds(modified) > seconds(since))
        {
            return Evaluation::Failed;
        }
    }
    let reads = matches!(method, Method::Get | Method::Head);
    if request.has(Name::IfNoneMatch) {
        let same = |other: &EntityTag<'_>| tag.is_some_and(|tag| tag.is_same_weak(other));
        return match (lists(request, Name::IfNoneMatch, same), reads) {
            (false, _) => Evaluation::Proceed,
            (true, true) => Evaluation::NotModified,
            (true, false) => Evaluation::Failed,
        };
    }
    let since = reads.then(|| single_date(request, Name::IfModifiedSince, received)).flatten();
    match (since, since.and_then(|_| modified())) {
        (Some(since), Some(modified)) if seconds(modified) <= seconds(since) => Evaluation::NotModified,
        _ => Evaluation::Proceed,
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

/// Whether to obey a Range field: there is no If-Range, or it matches the `response` by a strong validator
/// (RFC 9110 §13.1.5). A Last-Modified is strong only if Date is a second or more after it (RFC 9110
/// §8.8.2.2); without a Date, the response was made `now`.
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
    let made = stated(Name::Date).unwrap_or(Timestamp::from_secs(now.as_secs()));
    match (date::parse(condition, now), stated(Name::LastModified)) {
        (Some(condition), Some(modified)) => condition == modified && modified < made,
        _ => false,
    }
}

/// The strong validator of a response, for If-Range: a strong entity tag, or, without any entity tag, a
/// Last-Modified that is a second or more before Date (RFC 9110 §8.8.1, §8.8.2.2).
pub fn strong_validator<'a>(response: Fields<'a>, now: Timestamp) -> Option<&'a [u8]> {
    match response.get(Name::Etag) {
        Some(tag) => tag.starts_with(b"\"").then_some(tag),
        None => strong_modified(response, now).and(response.get(Name::LastModified)),
    }
}

fn strong_modified(response: Fields<'_>, now: Timestamp) -> Option<Timestamp> {
    let modified = date::parse(response.get(Name::LastModified)?, now)?;
    (modified < date::parse(response.get(Name::Date)?, now)?).then_some(modified)
}

/// Whether both responses carry the same strong validator, so that parts of them are parts of one
/// representation (RFC 9110 §15.3.7.3, RFC 9111 §3.4).
pub fn share_strong_validator(one: Fields<'_>, other: Fields<'_>, now: Timestamp) -> bool {
    match (one.get(Name::Etag), other.get(Name::Etag)) {
        (Some(one), Some(other)) => EntityTag::parse(one).is_same_strong(&EntityTag::parse(other)),
        (None, None) => {
            strong_modified(one, now).is_some_and(|modified| strong_modified(other, now) == Some(modified))
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

/// Removes the client's preconditions and Range from a request, so that it fills the cache with a whole
/// response.
pub fn make_unconditional(request: &mut FieldsBuf) {
    request.retain(|field| !is_condition(field.id) && field.id != Name::Range);
}

/// Makes the request validate a stored response with these fields (RFC 9111 §4.3.1): the stored validators,
/// as received, replace the client's preconditions and Range. Returns whether there were any validators; if
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

/// Makes the request fetch the bytes that a stored part with these fields `lacks`. They are sent only if the
/// representation is still the same, else all of it (RFC 9110 §13.1.5). The client's preconditions and Range
/// are replaced. The part MUST have a [`strong_validator`]; without one the request is for the whole.
pub fn make_continuation(
    request: &mut FieldsBuf,
    stored: Fields<'_>,
    lacks: RangeSpec,
    now: Timestamp,
) -> Result<(), TooLarge> {
    make_unconditional(request);
    if let Some(validator) = strong_validator(stored, now) {
        let mut range = Vec::new();
        lacks.write(&mut range);
        request.add(Name::Range, &range)?;
        request.add(Name::IfRange, validator)?;
    }
    Ok(())
}

/// Whether a 304 made from a stored response includes this field (RFC 9110 §15.4.5): all but those that
/// describe the body, which is not sent. Last-Modified is omitted if there is an entity tag (`has_etag`).
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::written::fields;

    const RECEIVED: Timestamp = Timestamp::from_secs(1_795_219_200);
    const EARLY: &str = "Sun, 01 Nov 2026 00:00:00 GMT";
    const LATE: &str = "Tue, 10 Nov 2026 00:00:00 GMT";
    /// 21 November 2026, when the response was received.
    const DATE: &str = "Sat, 21 Nov 2026 00:00:00 GMT";

    fn outcome(role: Role, method: &str, request: &str, response: &str) -> Evaluation {
        let method = Method::of(method.as_bytes());
        evaluate(role, method, fields(request).view(), 200, fields(response).view(), RECEIVED)
    }

    #[test]
    fn entity_tags_are_told_apart_in_lists() {
        let tags = |value: &'static str| {
            entity_tags(value.as_bytes())
                .map(|tag| (tag.weak, std::str::from_utf8(tag.opaque).unwrap()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            tags("\"a\", W/\"b,c\" ,\"d\\\",\"e\""),
            [(false, "\"a\""), (true, "\"b,c\""), (false, "\"d\\\""), (false, "\"e\"")]
        );
        assert_eq!(tags(" ,, abc , w/\"x\",\"open"), [(false, "abc"), (false, "w/\"x\""), (false, "\"open")]);
        assert_eq!(tags("W/"), [(true, "")]);
        assert_eq!(tags(""), []);
    }

    #[test]
    fn if_none_match_compares_weakly() {
        // RFC 9110 §13.1.2; the public tests' conditional-etag group.
        for (request, etag, expected) in [
            ("\"abcdef\"", "\"abcdef\"", true),
            ("W/\"abcdef\"", "\"abcdef\"", true),
            ("\"abcdef\"", "W/\"abcdef\"", true),
            ("W/\"abcdef\"", "W/\"abcdef\"", true),
            ("\"abcdef\", \"1234\", \"5678\"", "\"abcdef\"", true),
            ("\"1234\", \"abcdef\", \"5678\"", "\"abcdef\"", true),
            ("\"1234\", \"5678\", \"abcdef\"", "\"abcdef\"", true),
            ("\"1234\"\nIf-None-Match: \"abcdef\"", "\"abcdef\"", true),
            ("abcdef", "abcdef", true),
            ("*", "\"abcdef\"", true),
            ("\"abc\"", "\"abcdef\"", false),
            ("abcdef", "\"abcdef\"", false),
            ("w/\"abcdef\"", "\"abcdef\"", false),
            ("\"ABCDEF\"", "\"abcdef\"", false),
            ("", "\"abcdef\"", false),
        ] {
            let response = format!("ETag: {etag}");
            let of = |method| outcome(Role::Cache, method, &format!("If-None-Match: {request}"), &response);
            let hit = |outcome| if expected { outcome } else { Evaluation::Proceed };
            assert_eq!(of("GET"), hit(Evaluation::NotModified), "{request} {etag}");
            assert_eq!(of("HEAD"), hit(Evaluation::NotModified), "{request} {etag}");
            assert_eq!(of("PUT"), hit(Evaluation::Failed), "{request} {etag}");
        }
        assert_eq!(outcome(Role::Cache, "GET", "If-None-Match: \"a\"", "A: 1"), Evaluation::Proceed);
    }

    #[test]
    fn if_modified_since_compares_times() {
        // RFC 9110 §13.1.3, RFC 9111 §4.3.2
        for (since, response, expected) in [
            (EARLY, format!("Last-Modified: {EARLY}"), true),
            (LATE, format!("Last-Modified: {EARLY}"), true),
            (EARLY, format!("Last-Modified: {LATE}"), false),
            ("Sunday, 01-Nov-26 00:00:00 GMT", format!("Last-Modified: {EARLY}"), true),
            ("yesterday", format!("Last-Modified: {EARLY}"), false),
            ("2026-11-10\nIf-Modified-Since: 2026", format!("Last-Modified: {EARLY}"), false),
            // Without Last-Modified, a cache uses Date, then the time of receipt.
            (EARLY, format!("Date: {LATE}"), false),
            (LATE, format!("Date: {LATE}"), true),
            (LATE, "A: 1".to_owned(), false),
            (DATE, "A: 1".to_owned(), true),
        ] {
            let expected = if expected { Evaluation::NotModified } else { Evaluation::Proceed };
            let request = format!("If-Modified-Since: {since}");
            assert_eq!(outcome(Role::Cache, "GET", &request, &response), expected, "{since} {response}");
            assert_eq!(outcome(Role::Cache, "PUT", &request, &response), Evaluation::Proceed);
        }
        let date_only = format!("Date: {LATE}");
        let since = format!("If-Modified-Since: {LATE}");
        assert_eq!(outcome(Role::Origin, "GET", &since, &date_only), Evaluation::Proceed);
    }

    #[test]
    fn preconditions_take_precedence_in_order() {
        // RFC 9110 §13.2.2
        let response = format!("ETag: \"a\"\nLast-Modified: {LATE}");
        for (role, request, expected) in [
            (Role::Origin, "If-Match: \"a\"".to_owned(), Evaluation::Proceed),
            (Role::Origin, "If-Match: *".to_owned(), Evaluation::Proceed),
            (Role::Origin, "If-Match: W/\"a\"".to_owned(), Evaluation::Failed),
            (Role::Origin, "If-Match: \"b\"".to_owned(), Evaluation::Failed),
            (Role::Cache, "If-Match: \"b\"".to_owned(), Evaluation::Proceed),
            (Role::Origin, format!("If-Unmodified-Since: {EARLY}"), Evaluation::Failed),
            (Role::Origin, format!("If-Unmodified-Since: {LATE}"), Evaluation::Proceed),
            (Role::Origin, "If-Unmodified-Since: x".to_owned(), Evaluation::Proceed),
            (Role::Cache, format!("If-Unmodified-Since: {EARLY}"), Evaluation::Proceed),
            (Role::Origin, format!("If-Match: \"a\"\nIf-Unmodified-Since: {EARLY}"), Evaluation::Proceed),
            (Role::Origin, "If-Match: \"a\"\nIf-None-Match: \"a\"".to_owned(), Evaluation::NotModified),
            (Role::Origin, "If-Match: \"b\"\nIf-None-Match: \"a\"".to_owned(), Evaluation::Failed),
            (
                Role::Cache,
                format!("If-None-Match: \"a\"\nIf-Modified-Since: {EARLY}"),
                Evaluation::NotModified,
            ),
            (Role::Cache, format!("If-None-Match: \"b\"\nIf-Modified-Since: {LATE}"), Evaluation::Proceed),
        ] {
            assert_eq!(outcome(role, "GET", &request, &response), expected, "{role:?} {request}");
        }
    }

    #[test]
    fn only_successes_have_preconditions() {
        let (request, response) = (fields("If-None-Match: \"a\""), fields("ETag: \"a\""));
        let of =
            |method, status| evaluate(Role::Cache, method, request.view(), status, response.view(), RECEIVED);
        assert_eq!(of(Method::Get, 404), Evaluation::Proceed);
        assert_eq!(of(Method::Get, 301), Evaluation::Proceed);
        assert_eq!(of(Method::Get, 203), Evaluation::NotModified);
        assert_eq!(of(Method::Options, 200), Evaluation::Proceed);
    }

    #[test]
    fn if_range_needs_a_strong_validator() {
        // RFC 9110 §13.1.5
        let response = fields(&format!("ETag: \"a\"\nLast-Modified: {EARLY}\nDate: {LATE}"));
        let just_modified = fields(&format!("ETag: W/\"a\"\nLast-Modified: {LATE}\nDate: {LATE}"));
        for (request, of_response, of_just_modified) in [
            ("A: 1".to_owned(), true, true),
            ("If-Range: \"a\"".to_owned(), true, false),
            ("If-Range: W/\"a\"".to_owned(), false, false),
            ("If-Range: \"b\"".to_owned(), false, false),
            (format!("If-Range: {EARLY}"), true, false),
            (format!("If-Range: {LATE}"), false, false),
            ("If-Range: x".to_owned(), false, false),
            ("If-Range:".to_owned(), false, false),
            ("If-Range: \"a\"\nIf-Range: \"a\"".to_owned(), false, false),
        ] {
            let request_fields = fields(&request);
            let holds =
                |response: &FieldsBuf| if_range_holds(request_fields.view(), response.view(), RECEIVED);
            assert_eq!(holds(&response), of_response, "{request}");
            assert_eq!(holds(&just_modified), of_just_modified, "{request}");
        }
    }

    #[test]
    fn parts_belong_together_by_a_strong_validator() {
        let dated = format!("Last-Modified: {EARLY}\nDate: {LATE}");
        let fresh = format!("Last-Modified: {LATE}\nDate: {LATE}");
        for (one, other, expected) in [
            ("ETag: \"a\"", "ETag: \"a\"", true),
            ("ETag: \"a\"", "ETag: \"b\"", false),
            ("ETag: W/\"a\"", "ETag: W/\"a\"", false),
            ("ETag: \"a\"", "A: 1", false),
            (&dated, &dated, true),
            (&fresh, &fresh, false),
            ("A: 1", "A: 1", false),
        ] {
            let (one, other) = (fields(one), fields(other));
            assert_eq!(
                share_strong_validator(one.view(), other.view(), RECEIVED),
                expected,
                "{one:?} {other:?}"
            );
        }
    }

    #[test]
    fn a_validation_carries_the_stored_validators_only() {
        // RFC 9111 §4.3.1; tags go back as they came, quotes or not.
        let client = "Host: a\nIf-None-Match: \"x\"\nIf-Modified-Since: y\nIf-Match: *\nIf-Unmodified-Since: z\n\
                      If-Range: \"r\"\nRange: bytes=0-1\nCookie: c";
        for (stored, validators, expected) in [
            (
                "ETag: \"a\"\nLast-Modified: m",
                true,
                "Host: a\nCookie: c\nIf-None-Match: \"a\"\nIf-Modified-Since: m",
            ),
            ("ETag: W/\"a\"", true, "Host: a\nCookie: c\nIf-None-Match: W/\"a\""),
            ("ETag: abc", true, "Host: a\nCookie: c\nIf-None-Match: abc"),
            ("Last-Modified: m", true, "Host: a\nCookie: c\nIf-Modified-Since: m"),
            ("A: 1", false, "Host: a\nCookie: c"),
        ] {
            let mut request = fields(client);
            assert!(is_conditional(request.view()));
            assert_eq!(make_validation(&mut request, fields(stored).view()), Ok(validators));
            let mut out = Vec::new();
            request.encode(&mut out);
            assert_eq!(String::from_utf8(out).unwrap().replace("\r\n", "\n").trim_end(), expected);
        }
    }

    #[test]
    fn a_continuation_asks_for_what_is_missing_of_the_same_representation() {
        // RFC 9110 §13.1.5
        let client = "Host: a\nIf-None-Match: \"x\"\nIf-Range: \"r\"\nRange: bytes=0-1";
        let modified = format!("Last-Modified: {EARLY}\nDate: {LATE}");
        for (stored, validator) in [
            ("ETag: \"a\"\nLast-Modified: m", Some("\"a\"")),
            (&*modified, Some(EARLY)),
            (&*format!("ETag: W/\"a\"\n{modified}"), None),
            ("ETag: a", None),
            (&*format!("Last-Modified: {EARLY}"), None),
            ("A: 1", None),
        ] {
            let mut request = fields(client);
            let stored = fields(stored);
            make_continuation(&mut request, stored.view(), RangeSpec::From(5, None), RECEIVED).unwrap();
            assert_eq!(request.view().get(Name::IfRange), validator.map(str::as_bytes));
            assert_eq!(request.view().get(Name::Range), validator.map(|_| &b"bytes=5-"[..]));
            assert!(!request.view().has(Name::IfNoneMatch));
        }
    }

    #[test]
    fn a_304_carries_all_but_what_describes_the_body() {
        // RFC 9110 §15.4.5
        let response = fields(
            "Cache-Control: a\nContent-Location: b\nDate: c\nETag: d\nExpires: e\nVary: f\nX-Frame-Options: g\n\
             Content-Security-Policy: h\nLast-Modified: i\nContent-Length: 1\nContent-Type: j\nContent-Encoding: k\n\
             Content-Language: l\nContent-Range: m\nContent-MD5: n\nAccept-Ranges: o",
        );
        let carried =
            |has_etag| response.view().iter().filter(|field| in_not_modified(field, has_etag)).count();
        assert_eq!(carried(true), 8);
        assert_eq!(carried(false), 9);
    }

    proptest! {
        #[test]
        fn no_value_panics(request in "[ -~]{0,30}", etag in "[ -~]{0,30}") {
            for name in ["If-Match", "If-None-Match", "If-Modified-Since", "If-Range"] {
                let request: FieldsBuf = [(name, request.trim())].into_iter().collect();
                let response: FieldsBuf = [("ETag", etag.trim())].into_iter().collect();
                evaluate(Role::Origin, Method::Get, request.view(), 200, response.view(), RECEIVED);
                if_range_holds(request.view(), response.view(), RECEIVED);
            }
        }

        #[test]
        fn a_listed_tag_is_found(tags in proptest::collection::vec("(W/)?\"[!#-~]{0,5}\"", 1..5)) {
            let value = tags.join(", ");
            let read: Vec<_> = entity_tags(value.as_bytes()).collect();
            prop_assert_eq!(read, tags.iter().map(|tag| EntityTag::parse(tag.as_bytes())).collect::<Vec<_>>());
        }
    }
}
