//! May this response be stored, and for how long is it fresh? (RFC 9111 §3, §4.2)

use std::time::Duration;

use super::directives::{ResponseDirectives, delta_seconds, withheld_names};
use super::lifetimes::{
    DISCONNECTED, IMMUTABLE, Lifetimes, NEVER_STALE, NO_CACHE, OPERATORS_WINDOW, seconds,
};
use super::targeted::targeted;
use super::{Policy, Profile};
use crate::range::ContentRange;
use crate::vary::VarySpec;
use crate::{Fields, Method, Name, RequestHead, ResponseHead, Timestamp, date, target};

/// The verdict on a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storability {
    /// It may be stored and used for these times.
    Store(Lifetimes),
    /// It may not, or it would be of no use.
    NoStore(Reason),
}

/// Why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The request's method is not GET, nor a POST whose response stands for its target (RFC 9110 §9.3.3).
    Method,
    /// A client error other than 404, 410 and 451, which one request's fields may have caused, and no rule
    /// names its status.
    ClientError,
    /// An interim response, a 304, or one about a range or a precondition of its request: no representation.
    Status,
    /// A 206 that does not say which part of a representation it carries, or carries several.
    Partial,
    /// The request said `no-store`.
    RequestNoStore,
    /// The response said `no-store`.
    NoStore,
    /// The response said `private`.
    Private,
    /// The response said `must-understand` and its status is not known here (RFC 9111 §5.2.2.3).
    NotUnderstood,
    /// The request had Authorization and the response allows no sharing (RFC 9111 §3.5).
    Authorization,
    /// The response sets a cookie.
    SetCookie,
    /// The response varies on something no request shows (`Vary: *`).
    VaryStar,
    /// The response must be validated before each use and has nothing to validate it by.
    NoValidator,
    /// The response was stale on arrival and has nothing to validate it by.
    Stale,
    /// Nothing says how long it is fresh, and there is nothing to validate it by.
    NoFreshness,
    /// The same of a status of 500 and above, which tells more about the origin's state than about the
    /// resource.
    ServerError,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 15] = [
        Reason::Method,
        Reason::ClientError,
        Reason::Status,
        Reason::Partial,
        Reason::RequestNoStore,
        Reason::NoStore,
        Reason::Private,
        Reason::NotUnderstood,
        Reason::Authorization,
        Reason::SetCookie,
        Reason::VaryStar,
        Reason::NoValidator,
        Reason::Stale,
        Reason::NoFreshness,
        Reason::ServerError,
    ];

    /// The reason as Cache-Status `detail`, logs and counters write it.
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
            Reason::SetCookie => "set-cookie",
            Reason::VaryStar => "vary-star",
            Reason::NoValidator => "no-validator",
            Reason::Stale => "stale",
            Reason::NoFreshness => "no-freshness",
            Reason::ServerError => "server-error",
        }
    }

    /// Whether the reason lies in the request: another one's response might be stored, and what is stored may
    /// still be right.
    pub const fn is_of_request(self) -> bool {
        matches!(
            self,
            Reason::Method
                | Reason::ClientError
                | Reason::RequestNoStore
                | Reason::Status
                | Reason::Authorization
        )
    }

    /// How long the next responses to this key are likely to be as useless, so that requests should not queue
    /// for them: the time of a hit-for-miss mark. `None` where the reason lies in this one request.
    ///
    /// What the origin says of a resource holds for Varnish's two minutes. An error says something of this
    /// moment: its mark is short, so that soon one request again asks for all.
    pub const fn marked_for(self) -> Option<Duration> {
        match self {
            Reason::Method | Reason::ClientError | Reason::RequestNoStore | Reason::Status => None,
            Reason::Partial | Reason::ServerError => Some(Duration::from_secs(5)),
            Reason::NoStore
            | Reason::Private
            | Reason::NotUnderstood
            | Reason::Authorization
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
/// `part` is what a 206 carries of its representation; with it, 206 is a status like others (RFC 9111 §3.3).
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
    // A rule for a status counts before one for all; and what says that the origin failed is not to be kept
    // for as long as a page.
    let named = || policy.ttl_by_status.iter().any(|(status, _)| *status == response.status);
    if policy.forced_ttl.is_some() && (blames_request(response.status) || response.status >= 500 || named()) {
        let policy = Policy { forced_ttl: None, ..policy.clone() };
        return storability(request, response, part, &policy, requested, received);
    }
    let fields = response.fields;
    let targeted = targeted(fields);
    let directives = targeted.unwrap_or_else(|| ResponseDirectives::of(fields));
    let stated = match (policy.forced_ttl, targeted) {
        (Some(_), _) => None,
        (None, Some(directives)) => directives.lifetime(),
        (None, None) => directives.lifetime().or_else(|| expires(fields, received)),
    };
    if let Some(reason) = refusal(request, response, policy, &directives, stated.is_some()) {
        return Storability::NoStore(reason);
    }

    let initial_age = initial_age(fields, requested, received);
    let no_cache = directives.no_cache && policy.forced_ttl.is_none();
    let validator = fields.has(Name::Etag) || fields.has(Name::LastModified);
    let freshness = match (policy.forced_ttl, stated) {
        // A rule counts from now, whatever age the response comes with.
        (Some(ttl), _) => Some(ttl.saturating_add(Duration::from_millis(initial_age))),
        (None, stated) => stated
            .or_else(|| guessed(response, policy, &directives, received))
            .map(|ttl| if no_cache { ttl } else { ttl.max(policy.min_ttl).min(policy.max_ttl) }),
    };
    if freshness.is_none() && !(validator && heuristically_cacheable(response.status, &directives)) {
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
        flags: 0,
        grace: 0,
        stale_if_error: 0,
        keep: 0,
    };
    let lifetimes = with_windows(lifetimes, &directives, policy, validator);

    let stale_use = lifetimes.grace.max(lifetimes.stale_if_error) > 0
        // max-stale can ask for what was fresh once.
        || (policy.request_directives && !lifetimes.must_revalidate() && lifetimes.freshness > 0);
    if validator || (!no_cache && (lifetimes.is_fresh(received) || stale_use)) {
        Storability::Store(lifetimes)
    } else if no_cache {
        Storability::NoStore(Reason::NoValidator)
    } else {
        Storability::NoStore(Reason::Stale)
    }
}

/// Adds to the freshness of a response what it may be used for after it.
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
    // RFC 9111 §4.2.4 lets s-maxage forbid stale reuse. An origin that writes stale-while-revalidate beside
    // it means the shared cache; outside the strict profile it is taken at its word.
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

/// What forbids to store the response, whatever its lifetime.
fn refusal(
    request: &RequestHead<'_>,
    response: &ResponseHead<'_>,
    policy: &Policy,
    directives: &ResponseDirectives,
    explicit: bool,
) -> Option<Reason> {
    let fields = response.fields;
    let status = response.status;
    // 412, 416 and 417 answer fields of this request that are no part of the key.
    // What is above 599 says nothing that is known (RFC 9110 §15).
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
    if blames_request_for(status, policy) {
        return Some(Reason::ClientError);
    }
    if directives.must_understand && !understood(status) {
        return Some(Reason::NotUnderstood);
    }
    if directives.no_store && !directives.must_understand {
        return Some(Reason::NoStore);
    }
    if directives.private {
        return Some(Reason::Private);
    }
    let shared = directives.public || directives.must_revalidate || directives.s_maxage.is_some();
    if request.fields.has(Name::Authorization) && !shared {
        return Some(Reason::Authorization);
    }
    let sets_cookie = fields.has(Name::SetCookie)
        && !withheld_names(fields).any(|name| name.eq_ignore_ascii_case(b"set-cookie"));
    if sets_cookie && !(policy.store_set_cookie && (explicit || policy.forced_ttl.is_some())) {
        return Some(Reason::SetCookie);
    }
    if VarySpec::of(fields, &policy.vary) == VarySpec::Star {
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

/// The freshness lifetime by Expires (RFC 9111 §5.3): zero where it is invalid or there are several.
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

/// The cache's own guess of a lifetime: by status, by Last-Modified, by default (RFC 9111 §4.2.2).
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
    if let Some((_, ttl)) = policy.ttl_by_status.iter().find(|(status, _)| *status == response.status) {
        return Some(*ttl);
    }
    // RFC 9111 §5.4 gives Pragma no meaning in a response; whoever writes it alone wants no cache, and
    // nothing but our own guess would be at stake.
    let pragma = || {
        !fields.has(Name::CacheControl)
            && fields.list(Name::Pragma).any(|member| member.eq_ignore_ascii_case(b"no-cache"))
    };
    if !heuristically_cacheable(response.status, directives) || pragma() {
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

/// Whether a response without explicit freshness may be cached: by its status (RFC 9110 §15.1) or because it
/// says `public` (RFC 9111 §4.2.2).
fn heuristically_cacheable(status: u16, directives: &ResponseDirectives) -> bool {
    directives.public
        || matches!(status, 200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// Whether a status may answer what one client sent besides the target, such as Accept, or too many fields,
/// or who he is: kept for all, it would take the target away from them (cache-poisoned denial of service).
/// The others of 4xx are about the target.
pub fn blames_request(status: u16) -> bool {
    (400..500).contains(&status) && !matches!(status, 404 | 405 | 410 | 414 | 451)
}

/// Whether a status is stored only where a rule names it. A firewall in front of the origin answers 403
/// because of one request's fields, a server 400, whatever `Cache-Control` is set for all responses.
fn blames_request_for(status: u16, policy: &Policy) -> bool {
    policy.profile == Profile::Safe
        && (400..500).contains(&status)
        && !matches!(status, 404 | 410 | 451)
        && !policy.ttl_by_status.iter().any(|(named, _)| *named == status)
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
        // Date names a whole second: up to one of difference is its grain, not age.
        received.as_millis().saturating_sub(date.as_millis().saturating_add(999))
    });
    corrected.max(apparent)
}

/// The age that the response states, in seconds. Of several values the first counts, parameters are passed
/// over, and what is no number is ignored.
fn stated_age(fields: Fields<'_>) -> u64 {
    let first = fields.get(Name::Age).unwrap_or_default();
    let end = first.iter().position(|byte| matches!(byte, b',' | b';')).unwrap_or(first.len());
    u64::from(delta_seconds(first[..end].trim_ascii()).unwrap_or(0))
}
