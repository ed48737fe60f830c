//! Storability: whether a response may be stored, and for how long it is fresh (RFC 9111 §3, §4.2).

use std::time::Duration;

use super::directives::{ResponseDirectives, delta_seconds, withheld_names};
use super::lifetimes::{
    DISCONNECTED, FOR_ALL, GUESSED, IMMUTABLE, Lifetimes, NEVER_STALE, NO_CACHE, OPERATORS_WINDOW, seconds,
};
use super::policy::bar;
use super::targeted::targeted;
use super::{BypassReason, Policy, Profile};
use crate::range::ContentRange;
use crate::vary::VarySpec;
use crate::{Fields, Method, Name, RequestHead, ResponseHead, Timestamp, date, media_type, target};

/// The verdict on a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storability {
    /// It may be stored, with these lifetimes.
    Store(Lifetimes),
    /// It may not be stored, or would be of no use.
    NoStore(Reason),
}

/// Why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The request's method is not GET, nor a POST whose response represents its target (RFC 9110 §9.3.3).
    Method,
    /// A client error other than 404, 410 and 451: fields of this one request may have caused it, and no rule
    /// names its status.
    ClientError,
    /// An interim response, a 304, or a response about a range or a precondition: no representation.
    Status,
    /// A 206 that does not specify which part of a representation it carries, or carries several.
    Partial,
    /// The request has `no-store`.
    RequestNoStore,
    /// The response has `no-store`.
    NoStore,
    /// The response has `private`.
    Private,
    /// The response has `must-understand` and its status is not known here (RFC 9111 §5.2.2.3).
    NotUnderstood,
    /// The request has Authorization and the response does not allow sharing (RFC 9111 §3.5).
    Authorization,
    /// The request has a field that may identify somebody, and the response is not said to be for all.
    UnknownField,
    /// The request has a field that selects one of several forms of the page, and the response does not vary on it.
    FormField,
    /// Nobody stated a lifetime, and the client does not accept the media type of the response.
    Accept,
    /// The response is a stream: of events, of images, or of a call.
    Stream,
    /// The response names a file in place of its body that its backend may not have sent.
    UnsentFile,
    /// The response sets a cookie.
    SetCookie,
    /// The response varies on something that is not in requests (`Vary: *`).
    VaryStar,
    /// The response must be validated before each use and has no validator.
    NoValidator,
    /// The response was stale on arrival and has no validator.
    Stale,
    /// Its freshness is unspecified, and it is neither a page nor an asset, or has no validator.
    NoFreshness,
    /// A status of 500 and above that no rule names, or under `rfc` without freshness: it describes the state of
    /// the origin rather than the resource.
    ServerError,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 20] = [
        Reason::Method,
        Reason::ClientError,
        Reason::Status,
        Reason::Partial,
        Reason::RequestNoStore,
        Reason::NoStore,
        Reason::Private,
        Reason::NotUnderstood,
        Reason::Authorization,
        Reason::UnknownField,
        Reason::FormField,
        Reason::Accept,
        Reason::Stream,
        Reason::UnsentFile,
        Reason::SetCookie,
        Reason::VaryStar,
        Reason::NoValidator,
        Reason::Stale,
        Reason::NoFreshness,
        Reason::ServerError,
    ];

    /// The reason as written in the Cache-Status `detail`, logs and counters.
    pub const fn text(self) -> &'static str {
        match self {
            Reason::Method => "method",
            Reason::ClientError => "client-error",
            Reason::Status => "status",
            Reason::Partial => "partial",
            Reason::RequestNoStore => "request-no-store",
            Reason::NoStore => "no-store",
            Reason::Private => "private",
            Reason::NotUnderstood => "must-understand",
            Reason::Authorization => "authorization",
            Reason::UnknownField => BypassReason::UnknownField.text(),
            Reason::FormField => BypassReason::FormField.text(),
            Reason::Accept => BypassReason::Accept.text(),
            Reason::Stream => "stream",
            Reason::UnsentFile => "unsent-file",
            Reason::SetCookie => "set-cookie",
            Reason::VaryStar => "vary-star",
            Reason::NoValidator => "no-validator",
            Reason::Stale => "stale",
            Reason::NoFreshness => "no-freshness",
            Reason::ServerError => "server-error",
        }
    }

    /// Whether the request is the reason. The response to another request might be stored, and a stored
    /// response may still be right.
    pub const fn is_of_request(self) -> bool {
        matches!(
            self,
            Reason::Method
                | Reason::ClientError
                | Reason::RequestNoStore
                | Reason::Status
                | Reason::Authorization
                | Reason::UnknownField
                | Reason::FormField
                | Reason::Accept
        )
    }

    /// How long the next responses to this key are likely to be unstorable too, so that requests should not
    /// wait for them: the duration of a hit-for-miss mark. `None` if this one request is the reason.
    ///
    /// A property of the resource lasts for Varnish's two minutes. An error is about this moment: its mark is
    /// short, so that requests soon share one fetch again.
    pub const fn marked_for(self) -> Option<Duration> {
        match self {
            Reason::Method
            | Reason::ClientError
            | Reason::RequestNoStore
            | Reason::Status
            | Reason::UnknownField
            | Reason::FormField
            | Reason::Accept => None,
            Reason::Partial | Reason::ServerError => Some(Duration::from_secs(5)),
            Reason::NoStore
            | Reason::Private
            | Reason::NotUnderstood
            | Reason::Authorization
            | Reason::Stream
            | Reason::UnsentFile
            | Reason::SetCookie
            | Reason::VaryStar
            | Reason::NoValidator
            | Reason::Stale
            | Reason::NoFreshness => Some(Duration::from_secs(120)),
        }
    }
}

/// Judges the response to a request that was sent at `requested` and whose head arrived at `received`. To
/// judge a stored response that a 304 freshened, pass the freshened fields with the stored status and the
/// times of the 304.
///
/// `part` is the part of the representation that a 206 carries; with it, a 206 is treated like other statuses
/// (RFC 9111 §3.3).
pub fn storability(
    request: &RequestHead<'_>,
    response: &ResponseHead<'_>,
    part: Option<ContentRange>,
    policy: &Policy,
    requested: Timestamp,
    received: Timestamp,
) -> Storability {
    if response.status == 206 && part.is_none() {
        return Storability::NoStore(Reason::Partial);
    }
    // A rule for a status precedes one for all. A response that reports a failure must not be kept as long as
    // a page.
    let is_excepted = blames_request(response.status)
        || response.status >= 500
        || of_status(&policy.ttl_by_status, response.status).is_some();
    match of_status(&policy.forced_by_status, response.status) {
        Some(ttl) => {
            let policy = Policy {
                forced_ttl: Some(ttl),
                // A rule names it.
                ttl_by_status: vec![(response.status, ttl)],
                ..policy.clone()
            };
            judge(request, response, &policy, requested, received)
        }
        None if policy.forced_ttl.is_some() && is_excepted => {
            judge(request, response, &Policy { forced_ttl: None, ..policy.clone() }, requested, received)
        }
        None => judge(request, response, policy, requested, received),
    }
}

/// The same, where a forced lifetime is that of the status.
fn judge(
    request: &RequestHead<'_>,
    response: &ResponseHead<'_>,
    policy: &Policy,
    requested: Timestamp,
    received: Timestamp,
) -> Storability {
    let fields = response.fields;
    let targeted = targeted(fields);
    let directives = targeted.unwrap_or_else(|| ResponseDirectives::of(fields));
    let stated = match (policy.forced_ttl, targeted) {
        (Some(_), _) => None,
        (None, Some(directives)) => directives.lifetime(),
        (None, None) => directives.lifetime().or_else(|| expires(fields, received)),
    };
    // A response that is stale at once is for nobody but the one who validates it: public, max-age=0 is how
    // some frameworks send pages that they know nothing of.
    let is_ever_fresh = !stated.is_some_and(|ttl| ttl.is_zero());
    let is_public = is_ever_fresh && (targeted.is_some() || says_public(policy, &directives));
    if let Some(reason) = refusal(request, response, policy, &directives, stated.is_some(), is_public) {
        return Storability::NoStore(reason);
    }
    // An asset that was fetched without a telling field is the same for all who see the page.
    let is_for_all = is_public || (is_ever_fresh && stated.is_some() && is_asset(fields));

    let initial_age = initial_age(fields, requested, received);
    let no_cache = directives.no_cache && policy.forced_ttl.is_none();
    let validator = fields.has(Name::Etag) || fields.has(Name::LastModified);
    // An origin that wants each use validated, and says no more, sends what may change with the next request.
    let validates = policy.profile == Profile::Safe && directives.must_revalidate && validator;
    let is_guessed = policy.profile == Profile::Safe
        && policy.forced_ttl.is_none()
        && stated.is_none()
        && of_status(&policy.ttl_by_status, response.status).is_none();
    let accepts = |content_type| media_type::is_accepted(request.fields, content_type);
    if is_guessed && response.status == 204 && is_prefetch(request.fields) {
        return Storability::NoStore(Reason::FormField);
    }
    if is_guessed && !fields.get(Name::ContentType).is_none_or(accepts) {
        return Storability::NoStore(Reason::Accept);
    }
    let freshness = match (policy.forced_ttl, stated) {
        // A rule counts from now, whatever the age of the response.
        (Some(ttl), _) => Some(ttl.saturating_add(Duration::from_millis(initial_age))),
        (None, stated) => stated
            .or_else(|| guessed(response, policy, &directives, received).filter(|_| !validates))
            .map(|ttl| if no_cache { ttl } else { ttl.max(policy.min_ttl).min(policy.max_ttl) }),
    };
    let is_cacheable = heuristically_cacheable(response.status, &directives)
        && (no_cache || validates || may_be_guessed(response, policy, &directives));
    if freshness.is_none() && !(validator && is_cacheable) {
        return Storability::NoStore(match response.status {
            500.. => Reason::ServerError,
            _ if no_cache => Reason::NoValidator,
            _ => Reason::NoFreshness,
        });
    }
    let lifetimes = Lifetimes {
        received,
        initial_age,
        freshness: u64::try_from(freshness.unwrap_or(Duration::ZERO).as_millis()).unwrap_or(u64::MAX),
        flags: if is_for_all { FOR_ALL } else { 0 } | if is_guessed { GUESSED } else { 0 },
        grace: 0,
        stale_if_error: 0,
        keep: 0,
    };
    let lifetimes = with_windows(lifetimes, &directives, policy, validator);

    let stale_use = lifetimes.grace.max(lifetimes.stale_if_error) > 0
        // max-stale can permit a response that was fresh once.
        || (policy.request_directives && !lifetimes.must_revalidate() && lifetimes.freshness > 0);
    if validator || (!no_cache && (lifetimes.is_fresh(received) || stale_use)) {
        Storability::Store(lifetimes)
    } else if no_cache {
        Storability::NoStore(Reason::NoValidator)
    } else {
        Storability::NoStore(Reason::Stale)
    }
}

/// Whether the origin states how long a response is fresh, were it for no time at all.
pub fn states_freshness(fields: Fields<'_>, received: Timestamp) -> bool {
    match targeted(fields) {
        Some(directives) => directives.lifetime().is_some(),
        None => ResponseDirectives::of(fields).lifetime().or_else(|| expires(fields, received)).is_some(),
    }
}

/// Adds the windows after freshness.
fn with_windows(
    fresh: Lifetimes,
    directives: &ResponseDirectives,
    policy: &Policy,
    validator: bool,
) -> Lifetimes {
    let forced = policy.forced_ttl.is_some();
    let no_cache = directives.no_cache && !forced;
    let strict = no_cache || (!forced && (directives.must_revalidate || directives.proxy_revalidate));
    let never_stale = strict || (!forced && directives.s_maxage.is_some());
    // RFC 9111 §4.2.4 lets s-maxage forbid stale reuse. But an origin that sends stale-while-revalidate
    // beside it means the shared cache; outside the strict profile it is obeyed.
    let window = |stated: Option<u32>, configured: Duration| match stated {
        Some(window) if !strict && (!never_stale || policy.profile == Profile::Safe) => window,
        None if !never_stale => seconds(configured),
        _ => 0,
    };
    let disconnected = policy.stale_when_disconnected && !never_stale;
    let kept = validator || disconnected || (policy.request_directives && !never_stale);
    let flags = [
        (NO_CACHE, no_cache),
        (NEVER_STALE, never_stale),
        (DISCONNECTED, disconnected),
        (IMMUTABLE, directives.immutable),
        (OPERATORS_WINDOW, directives.stale_if_error.is_none() && !policy.stale_if_error.is_zero()),
    ];
    Lifetimes {
        grace: window(directives.stale_while_revalidate, policy.grace),
        stale_if_error: window(directives.stale_if_error, policy.stale_if_error),
        keep: if kept { seconds(policy.keep) } else { 0 },
        flags: flags.into_iter().filter(|(_, set)| *set).fold(fresh.flags, |flags, (flag, _)| flags | flag),
        ..fresh
    }
}

/// The lifetime that rules by status give to one.
fn of_status(rules: &[(u16, Duration)], status: u16) -> Option<Duration> {
    rules.iter().find(|(named, _)| *named == status).map(|(_, ttl)| *ttl)
}

/// Whether a response is said to be for everybody, whatever fields their requests have.
fn says_public(policy: &Policy, directives: &ResponseDirectives) -> bool {
    directives.public || directives.s_maxage.is_some() || policy.forced_ttl.is_some()
}

/// Whether a browser asks for a page that its user may never see. Some applications refuse that with 204.
fn is_prefetch(request: Fields<'_>) -> bool {
    let names: [&[u8]; 4] = [b"Sec-Purpose", b"Purpose", b"X-Purpose", b"X-Moz"];
    names.into_iter().any(|name| request.all_named(name).next().is_some())
}

/// Whether a response is a style, a script, an image or a font, whichever of its media types counts.
fn is_asset(fields: Fields<'_>) -> bool {
    let mut types = fields.all(Name::ContentType).peekable();
    types.peek().is_some() && types.all(media_type::is_asset)
}

/// The reason that forbids storing the response regardless of its lifetime, if any.
fn refusal(
    request: &RequestHead<'_>,
    response: &ResponseHead<'_>,
    policy: &Policy,
    directives: &ResponseDirectives,
    explicit: bool,
    is_public: bool,
) -> Option<Reason> {
    let fields = response.fields;
    let status = response.status;
    // 412, 416 and 417 respond to request fields that are not part of the key. Statuses above 599 have no
    // known meaning (RFC 9110 §15).
    if !(200..600).contains(&status) || matches!(status, 304 | 412 | 416 | 417) {
        return Some(Reason::Status);
    }
    let method = match request.method {
        Method::Get => true,
        Method::Post => explicit && status == 200 && target::content_location_is_target(request, fields),
        _ => false,
    };
    if !method {
        return Some(Reason::Method);
    }
    if policy.directives(request.fields).no_store {
        return Some(Reason::RequestNoStore);
    }
    if let Some(reason) = error_reason(status, policy) {
        return Some(reason);
    }
    if directives.must_understand && !understood(status) {
        return Some(Reason::NotUnderstood);
    }
    let is_overridden = policy.forced_overrides && of_status(&policy.forced_by_status, status).is_some();
    if directives.no_store && !directives.must_understand && !is_overridden {
        return Some(Reason::NoStore);
    }
    if directives.private && !is_overridden {
        return Some(Reason::Private);
    }
    let shared = directives.public || directives.must_revalidate || directives.s_maxage.is_some();
    if request.fields.has(Name::Authorization) && !shared {
        return Some(Reason::Authorization);
    }
    if fields.all(Name::ContentType).any(media_type::is_stream) {
        return Some(Reason::Stream);
    }
    let vary = VarySpec::of(fields, &policy.vary);
    // An error may be the answer to that field.
    let is_public = is_public && status < 400;
    match bar(request.fields, policy, is_public, |name| vary.has_name(name)) {
        Some((_, BypassReason::FormField)) => return Some(Reason::FormField),
        Some(_) => return Some(Reason::UnknownField),
        None => {}
    }
    let sets_cookie = fields.has(Name::SetCookie)
        && !withheld_names(fields).any(|name| name.eq_ignore_ascii_case(b"set-cookie"));
    if sets_cookie && !(policy.store_set_cookie && (explicit || policy.forced_ttl.is_some())) {
        return Some(Reason::SetCookie);
    }
    if vary == VarySpec::Star {
        return Some(Reason::VaryStar);
    }
    None
}

impl ResponseDirectives {
    /// The freshness lifetime for a shared cache (RFC 9111 §4.2.1).
    fn lifetime(&self) -> Option<Duration> {
        self.s_maxage.or(self.max_age).map(|seconds| Duration::from_secs(seconds.into()))
    }
}

/// The freshness lifetime by Expires (RFC 9111 §5.3): zero if it is invalid or repeated.
fn expires(fields: Fields<'_>, received: Timestamp) -> Option<Duration> {
    let mut lines = fields.all(Name::Expires);
    let first = lines.next()?;
    if lines.next().is_some() {
        return Some(Duration::ZERO);
    }
    let Some(expires) = date::parse(first, received) else {
        return Some(Duration::ZERO);
    };
    let date = fields.get(Name::Date).and_then(|value| date::parse(value, received)).unwrap_or(received);
    Some(expires.since(date))
}

/// The cache's own estimate of a lifetime: by status, by Last-Modified, by default (RFC 9111 §4.2.2).
fn guessed(
    response: &ResponseHead<'_>,
    policy: &Policy,
    directives: &ResponseDirectives,
    received: Timestamp,
) -> Option<Duration> {
    let fields = response.fields;
    if directives.no_cache {
        return None;
    }
    if let Some(ttl) = of_status(&policy.ttl_by_status, response.status) {
        return Some(ttl);
    }
    // RFC 9111 §5.4 gives Pragma no meaning in a response. But an origin that sends it alone wants no
    // caching, and obeying it only overrides our own estimate.
    let pragma = || {
        !fields.has(Name::CacheControl)
            && fields.list(Name::Pragma).any(|member| member.eq_ignore_ascii_case(b"no-cache"))
    };
    if !heuristically_cacheable(response.status, directives)
        || !may_be_guessed(response, policy, directives)
        || pragma()
    {
        return None;
    }
    let by_modification = policy.heuristics.and_then(|heuristics| {
        let modified = date::parse(fields.get(Name::LastModified)?, received)?;
        let date = fields.get(Name::Date).and_then(|value| date::parse(value, received)).unwrap_or(received);
        let lifetime = date.since(modified).saturating_mul(heuristics.percent) / 100;
        Some(lifetime.min(heuristics.cap))
    });
    by_modification.or((!policy.default_ttl.is_zero()).then_some(policy.default_ttl))
}

/// Whether the policy allows a response without explicit freshness to be kept as long as the cache estimates: a page or
/// an asset, or what calls itself `public`. Some statuses come without a body, and need no type.
fn may_be_guessed(response: &ResponseHead<'_>, policy: &Policy, directives: &ResponseDirectives) -> bool {
    directives.public
        || match response.fields.get(Name::ContentType) {
            // Of several, readers take different ones.
            Some(_) if response.fields.all(Name::ContentType).count() > 1 => false,
            Some(content_type) => media_type::is_one_of(content_type, &policy.guessed_types),
            None => {
                matches!(response.status, 204 | 301 | 308 | 404 | 410)
                    || policy.guessed_types.iter().any(|known| known.text() == b"*")
            }
        }
}

/// Whether a response without explicit freshness may be cached: by its status (RFC 9110 §15.1) or because it
/// has `public` (RFC 9111 §4.2.2).
fn heuristically_cacheable(status: u16, directives: &ResponseDirectives) -> bool {
    directives.public
        || matches!(status, 200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// Whether a status may be caused by other properties of one request than its target: a field such as Accept,
/// too many fields, or the client's identity. Stored for all, such a response would make the target
/// unavailable (cache-poisoned denial of service). The other 4xx statuses are about the target.
pub fn blames_request(status: u16) -> bool {
    (400..500).contains(&status) && !matches!(status, 404 | 405 | 410 | 414 | 451)
}

/// The reason not to store an error that no rule names; `None` for other statuses. One request's fields may
/// have caused it: a firewall in front of the origin sends 403, a server 400 and an application 500, even if
/// `Cache-Control` is set for all responses.
fn error_reason(status: u16, policy: &Policy) -> Option<Reason> {
    if policy.profile != Profile::Safe || of_status(&policy.ttl_by_status, status).is_some() {
        return None;
    }
    match status {
        404 | 410 | 451 => None,
        400..500 => Some(Reason::ClientError),
        500.. => Some(Reason::ServerError),
        _ => None,
    }
}

/// The final statuses whose caching rules this crate knows (RFC 9110 §15), for `must-understand`.
fn understood(status: u16) -> bool {
    matches!(status, 200..=206 | 300..=303 | 305 | 307 | 308 | 400..=411 | 413..=415 | 421 | 422 | 426 | 500..=505)
}

/// `corrected_initial_age` in milliseconds (RFC 9111 §4.2.3).
fn initial_age(fields: Fields<'_>, requested: Timestamp, received: Timestamp) -> u64 {
    let delay = received.since(requested).as_millis() as u64;
    let corrected = stated_age(fields).saturating_mul(1000).saturating_add(delay);
    let apparent = fields.get(Name::Date).and_then(|value| date::parse(value, received)).map_or(0, |date| {
        // Date has whole seconds: a difference of up to one is rounding, not age.
        received.as_millis().saturating_sub(date.as_millis().saturating_add(999))
    });
    corrected.max(apparent)
}

/// The Age of the response, in seconds. The first of several values counts, parameters are skipped, and a
/// value that is not a number is ignored.
fn stated_age(fields: Fields<'_>) -> u64 {
    let first = fields.get(Name::Age).unwrap_or_default();
    let end = first.iter().position(|byte| matches!(byte, b',' | b';')).unwrap_or(first.len());
    u64::from(delta_seconds(first[..end].trim_ascii()).unwrap_or(0))
}
