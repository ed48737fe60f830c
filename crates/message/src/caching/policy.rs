//! The policy of one route: the choices that RFC 9111 leaves to a cache.

use std::time::Duration;

use super::RequestDirectives;
use crate::cookies;
use crate::glob::Glob;
use crate::vary::VaryRule;
use crate::{Field, Fields, Method, Name, RequestHead};

/// Which side a choice that RFC 9111 leaves open falls on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// What keeps real sites from leaking one user's page to another: as Varnish's built-in VCL.
    #[default]
    Safe,
    /// Everything that RFC 9111 allows is looked up and stored.
    Rfc,
}

/// Which cookies of a request make it bypass the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CookieRule {
    /// None: cookies are no reason to bypass.
    Never,
    /// All but those in [`Policy::ignored_cookies`].
    Any,
    /// Those that fit one of these.
    Named(Vec<Glob>),
}

/// Heuristic freshness from Last-Modified (RFC 9111 §4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristics {
    /// The part, in hundredths, of the time since the last modification for which a response is fresh.
    pub percent: u32,
    /// The longest lifetime that is guessed.
    pub cap: Duration,
}

/// The cache rules of a route. [`Policy::safe`] and [`Policy::rfc`] give every default with its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Which profile it follows where nothing below speaks.
    pub profile: Profile,
    /// Requests with Authorization bypass the cache.
    pub bypass_authorization: bool,
    /// Which cookies of a request bypass the cache.
    pub bypass_cookies: CookieRule,
    /// Cookies that count as not sent: they neither bypass nor are they forwarded.
    pub ignored_cookies: Vec<Glob>,
    /// Whether Cache-Control and Pragma of requests are obeyed (RFC 9111 §5.2.1).
    pub request_directives: bool,
    /// Whether a response with Set-Cookie is stored when it is explicitly fresh or `forced_ttl` is set.
    pub store_set_cookie: bool,
    /// Freshness in place of whatever the origin says, `no-cache` and `must-revalidate` included; `no-store`,
    /// `private` and the Authorization rule still hold.
    pub forced_ttl: Option<Duration>,
    /// Freshness where the origin and `ttl_by_status` say nothing and no heuristic applies, for statuses that
    /// may be cached heuristically.
    pub default_ttl: Duration,
    /// Freshness by status where the origin says nothing, for any status: negative caching.
    pub ttl_by_status: Vec<(u16, Duration)>,
    /// Shorter lifetimes are raised to this, save where the origin says `no-cache`.
    pub min_ttl: Duration,
    /// Longer lifetimes are cut to this.
    pub max_ttl: Duration,
    /// Heuristic freshness, if any.
    pub heuristics: Option<Heuristics>,
    /// How long past freshness it may be served while a background fetch runs, where the origin does not say.
    pub grace: Duration,
    /// How long past freshness it may stand in for an answer of 500, 502, 503 or 504, where the origin does
    /// not say.
    pub stale_if_error: Duration,
    /// How long past freshness it is kept for validation and for a disconnected origin.
    pub keep: Duration,
    /// Whether a kept response is served when the origin cannot be reached at all (RFC 9111 §4.2.4).
    pub stale_when_disconnected: bool,
    /// How Vary is read.
    pub vary: VaryRule,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy::safe()
    }
}

impl Policy {
    /// The default rules, as a Varnish user expects them.
    pub fn safe() -> Policy {
        Policy {
            profile: Profile::Safe,
            // A login is a cookie or an Authorization field: such pages belong to one user until a rule says
            // otherwise.
            bypass_authorization: true,
            bypass_cookies: CookieRule::Any,
            ignored_cookies: Vec::new(),
            // RFC 9111 §5.2.1 calls them advisory. A reload would let any client put load on the origin.
            request_directives: false,
            store_set_cookie: false,
            forced_ttl: None,
            // Varnish's default_ttl: long enough to carry a rush, short enough to be forgotten about.
            default_ttl: Duration::from_secs(120),
            ttl_by_status: Vec::new(),
            min_ttl: Duration::ZERO,
            max_ttl: Duration::MAX,
            // An old Last-Modified says nothing about when an edit should be seen; default_ttl bounds that.
            heuristics: None,
            // RFC 9111 §4.2.4: nothing stale unless someone allowed it.
            grace: Duration::ZERO,
            stale_if_error: Duration::ZERO,
            keep: Duration::from_secs(3600),
            // The same section allows it to a disconnected cache, and an old page beats an error.
            stale_when_disconnected: true,
            // Whatever has a cookie that matters bypasses the cache: what is stored was made without any.
            vary: VaryRule { ignored: vec![b"cookie"[..].into()], ..VaryRule::default() },
        }
    }

    /// Whatever RFC 9111 allows, with no lifetime but the origin's and the heuristic the RFC suggests.
    pub fn rfc() -> Policy {
        Policy {
            profile: Profile::Rfc,
            bypass_authorization: false,
            bypass_cookies: CookieRule::Never,
            request_directives: true,
            store_set_cookie: true,
            default_ttl: Duration::ZERO,
            vary: VaryRule::default(),
            // RFC 9111 §4.2.2 names a tenth; a day at most, as Apache and Traffic Server have it.
            heuristics: Some(Heuristics { percent: 10, cap: Duration::from_secs(86_400) }),
            ..Policy::safe()
        }
    }

    /// The directives of a request, as far as this policy obeys them.
    pub fn directives(&self, fields: Fields<'_>) -> RequestDirectives {
        if self.request_directives { RequestDirectives::of(fields) } else { RequestDirectives::default() }
    }
}

/// Why a request does not look into the cache and leaves nothing there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BypassReason {
    /// Neither GET nor HEAD.
    Method,
    /// It carries a body, which is no part of the key.
    Body,
    /// It carries a cookie that may select the response.
    Cookie,
    /// It carries Authorization.
    Authorization,
    /// It asks that nothing be stored (RFC 9111 §5.2.1.5).
    NoStore,
}

impl BypassReason {
    /// Every reason.
    pub const ALL: [BypassReason; 5] = [
        BypassReason::Method,
        BypassReason::Body,
        BypassReason::Cookie,
        BypassReason::Authorization,
        BypassReason::NoStore,
    ];

    /// The reason as Cache-Status `detail`, logs and counters write it.
    pub const fn text(self) -> &'static str {
        match self {
            BypassReason::Method => "method",
            BypassReason::Body => "request-body",
            BypassReason::Cookie => "cookie",
            BypassReason::Authorization => "authorization",
            BypassReason::NoStore => "request-no-store",
        }
    }
}

/// Whether a request goes past the cache, as in Varnish's built-in VCL, and why.
pub fn lookup_bypass(request: &RequestHead<'_>, policy: &Policy) -> Option<BypassReason> {
    if !matches!(request.method, Method::Get | Method::Head) {
        return Some(BypassReason::Method);
    }
    request.fields.iter().find_map(|field| bypass(&field, policy))
}

/// Whether a request goes past the cache for more than its method and its body: what answers it may be for
/// one client alone.
pub fn is_personal(request: &RequestHead<'_>, policy: &Policy) -> bool {
    request.fields.iter().filter_map(|field| bypass(&field, policy)).any(|why| why != BypassReason::Body)
}

fn bypass(field: &Field<'_>, policy: &Policy) -> Option<BypassReason> {
    match field.id {
        Name::TransferEncoding => Some(BypassReason::Body),
        Name::ContentLength if field.value != b"0" => Some(BypassReason::Body),
        Name::Authorization if policy.bypass_authorization => Some(BypassReason::Authorization),
        Name::Cookie if bypasses(field.value, policy) => Some(BypassReason::Cookie),
        Name::CacheControl
            if policy.request_directives
                && crate::members(field.value).any(|member| member.eq_ignore_ascii_case(b"no-store")) =>
        {
            Some(BypassReason::NoStore)
        }
        _ => None,
    }
}

fn bypasses(value: &[u8], policy: &Policy) -> bool {
    let ignored = |name: &[u8]| policy.ignored_cookies.iter().any(|glob| glob.matches(name));
    match &policy.bypass_cookies {
        CookieRule::Never => false,
        CookieRule::Any => cookies::pairs(value).any(|cookie| !ignored(cookie.name)),
        CookieRule::Named(globs) => cookies::pairs(value)
            .any(|cookie| !ignored(cookie.name) && globs.iter().any(|glob| glob.matches(cookie.name))),
    }
}
