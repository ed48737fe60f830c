//! The policy of one route: the choices that RFC 9111 leaves to a cache.

use std::time::Duration;

use super::RequestDirectives;
use crate::cookies;
use crate::glob::Glob;
use crate::name::NameSet;
use crate::request_field::{self, FieldKind};
use crate::vary::VaryRule;
use crate::{Field, Fields, Method, Name, RequestHead};

/// A profile for the choices that RFC 9111 leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Keeps real sites from leaking one user's page to another, like Varnish's built-in VCL.
    #[default]
    Safe,
    /// Everything that RFC 9111 allows is looked up and stored.
    Rfc,
}

/// The cookies that make a request bypass the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CookieRule {
    /// None: cookies are not a reason to bypass.
    Never,
    /// All but those in [`Policy::ignored_cookies`].
    Any,
    /// Those that match one of these.
    Named(Vec<Glob>),
}

/// Heuristic freshness from Last-Modified (RFC 9111 §4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristics {
    /// The percentage of the time since the last modification for which a response is fresh.
    pub percent: u32,
    /// The longest lifetime to assume.
    pub cap: Duration,
}

/// The cache rules of a route. [`Policy::safe`] and [`Policy::rfc`] give every default with its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The profile that applies where the settings below do not.
    pub profile: Profile,
    /// Requests with Authorization bypass the cache.
    pub bypass_authorization: bool,
    /// The cookies that make a request bypass the cache.
    pub bypass_cookies: CookieRule,
    /// Cookies treated as not sent: they neither bypass nor are they forwarded.
    pub ignored_cookies: Vec<Glob>,
    /// Whether a request field that may identify somebody, or that selects a form of the page, keeps the request from
    /// sharing what is not said to be for all ([`StoreUse::Apart`]).
    pub minds_fields: bool,
    /// Fields that are no such reason, by their names in lower case. Those that are part of the key are among them.
    pub harmless_fields: Vec<Glob>,
    /// Fields that make a request bypass the cache, by their names in lower case.
    pub bypass_fields: Vec<Glob>,
    /// Whether Cache-Control and Pragma of requests are obeyed (RFC 9111 §5.2.1).
    pub request_directives: bool,
    /// Whether a response with Set-Cookie is stored when it is explicitly fresh or `forced_ttl` is set.
    pub store_set_cookie: bool,
    /// Freshness that overrides the origin's, including `no-cache` and `must-revalidate`; `no-store`,
    /// `private` and the Authorization rule still apply.
    pub forced_ttl: Option<Duration>,
    /// The same by status, for any status. It precedes `forced_ttl`.
    pub forced_by_status: Vec<(u16, Duration)>,
    /// Whether those by status count for responses with `no-store` or `private` too.
    pub forced_overrides: bool,
    /// Freshness if neither the origin nor `ttl_by_status` nor a heuristic determines it, for statuses that
    /// may be cached heuristically.
    pub default_ttl: Duration,
    /// The media types, in lower case and without parameters, for which the cache may estimate a lifetime.
    pub guessed_types: Vec<Glob>,
    /// Freshness by status if the origin does not set it, for any status: negative caching.
    pub ttl_by_status: Vec<(u16, Duration)>,
    /// Shorter lifetimes are raised to this, unless the origin sends `no-cache`.
    pub min_ttl: Duration,
    /// Longer lifetimes are cut to this.
    pub max_ttl: Duration,
    /// Heuristic freshness, if any.
    pub heuristics: Option<Heuristics>,
    /// How long past freshness a response may be served while a background fetch runs, if the origin does not
    /// specify it.
    pub grace: Duration,
    /// How long past freshness a response may replace a 500, 502, 503 or 504, if the origin does not specify
    /// it.
    pub stale_if_error: Duration,
    /// How long past freshness a response is kept for validation and for a disconnected origin.
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
            // A login uses a cookie or an Authorization field. Such pages belong to one user, unless a rule
            // overrides this.
            bypass_authorization: true,
            bypass_cookies: CookieRule::Any,
            ignored_cookies: Vec::new(),
            // An API knows its users by fields of any name. RFC 9111 §3.5 protects only those of Authorization.
            minds_fields: true,
            harmless_fields: Vec::new(),
            bypass_fields: Vec::new(),
            // RFC 9111 §5.2.1 calls them advisory. Otherwise any client could load the origin by reloading.
            request_directives: false,
            store_set_cookie: false,
            forced_ttl: None,
            forced_by_status: Vec::new(),
            forced_overrides: false,
            // Varnish's default_ttl: long enough for a rush, short enough not to surprise anyone later.
            default_ttl: Duration::from_secs(120),
            guessed_types: PAGES_AND_ASSETS.map(Glob::new).into(),
            ttl_by_status: Vec::new(),
            min_ttl: Duration::ZERO,
            max_ttl: Duration::MAX,
            // An old Last-Modified does not show how soon an edit should be visible; default_ttl bounds that.
            heuristics: None,
            // RFC 9111 §4.2.4: no stale responses unless explicitly allowed.
            grace: Duration::ZERO,
            stale_if_error: Duration::ZERO,
            keep: Duration::from_secs(3600),
            // The same section allows it to a disconnected cache, and an old page is better than an error.
            stale_when_disconnected: true,
            // Requests with cookies that matter bypass the cache: stored responses were made without any.
            vary: VaryRule {
                ignored: vec![b"cookie"[..].into()],
                of_allowed_origin: true,
                ..VaryRule::default()
            },
        }
    }

    /// Everything that RFC 9111 allows, with no lifetime but the origin's and the heuristic that the RFC
    /// suggests.
    pub fn rfc() -> Policy {
        Policy {
            profile: Profile::Rfc,
            bypass_authorization: false,
            bypass_cookies: CookieRule::Never,
            minds_fields: false,
            request_directives: true,
            store_set_cookie: true,
            default_ttl: Duration::ZERO,
            guessed_types: vec![Glob::new("*")],
            vary: VaryRule::default(),
            // RFC 9111 §4.2.2 suggests a tenth; at most a day, as in Apache and Traffic Server.
            heuristics: Some(Heuristics { percent: 10, cap: Duration::from_secs(86_400) }),
            ..Policy::safe()
        }
    }

    /// The directives of a request that this policy obeys.
    pub fn directives(&self, fields: Fields<'_>) -> RequestDirectives {
        if self.request_directives { RequestDirectives::of(fields) } else { RequestDirectives::default() }
    }
}

/// The media types of pages and of what they are made of. Data that says nothing of its lifetime may change with the
/// next request.
pub const PAGES_AND_ASSETS: [&str; 19] = [
    "text/html",
    "application/xhtml+xml",
    "text/css",
    "text/javascript",
    "application/javascript",
    "application/x-javascript",
    "text/vtt",
    "image/*",
    "font/*",
    "application/font-*",
    "application/x-font-*",
    "application/vnd.ms-fontobject",
    "audio/*",
    "video/*",
    "application/wasm",
    "application/pdf",
    "application/manifest+json",
    "application/rss+xml",
    "application/atom+xml",
];

/// Why a request bypasses the cache: no stored response answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BypassReason {
    /// Neither GET nor HEAD.
    Method,
    /// It has a body, which is not part of the key.
    Body,
    /// It has a cookie that may select the response.
    Cookie,
    /// It has an Authorization field.
    Authorization,
    /// It has the directive `no-store` (RFC 9111 §5.2.1.5).
    NoStore,
    /// It has a field of [`Policy::bypass_fields`].
    BypassField,
    /// It has a field that may identify somebody, and what is stored is not said to be for all.
    UnknownField,
    /// It has a field that selects one of several forms of the page.
    FormField,
    /// It accepts another media type than that of a page whose lifetime nobody stated.
    Accept,
}

impl BypassReason {
    /// Every reason.
    pub const ALL: [BypassReason; 9] = [
        BypassReason::Method,
        BypassReason::Body,
        BypassReason::Cookie,
        BypassReason::Authorization,
        BypassReason::NoStore,
        BypassReason::BypassField,
        BypassReason::UnknownField,
        BypassReason::FormField,
        BypassReason::Accept,
    ];

    /// The reason as written in the Cache-Status `detail`, logs and counters.
    pub const fn text(self) -> &'static str {
        match self {
            BypassReason::Method => "method",
            BypassReason::Body => "request-body",
            BypassReason::Cookie => "cookie",
            BypassReason::Authorization => "authorization",
            BypassReason::NoStore => "request-no-store",
            BypassReason::BypassField => "bypass-field",
            BypassReason::UnknownField => "unknown-field",
            BypassReason::FormField => "form-field",
            BypassReason::Accept => "accept",
        }
    }
}

/// How a request may use the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreUse {
    /// It is looked up, waits for others and fetches for others.
    Shared,
    /// It has fields for which only some stored responses answer it: those that [`bar`] lets pass. It fetches for
    /// itself. The reason is that of the first such field.
    Apart(BypassReason),
    /// It is neither looked up nor is its response stored.
    Bypass(BypassReason),
}

/// How a request may use the store; where it bypasses it, much as in Varnish's built-in VCL.
pub fn store_use(request: &RequestHead<'_>, policy: &Policy) -> StoreUse {
    if !matches!(request.method, Method::Get | Method::Head) {
        return StoreUse::Bypass(BypassReason::Method);
    }
    // Nearly all fields are of names that no policy minds.
    let unminded = if policy.bypass_fields.is_empty() { UNMINDED } else { NameSet::EMPTY };
    let mut apart = None;
    for field in request.fields.without(unminded) {
        if let Some(why) = bypass(&field, policy) {
            return StoreUse::Bypass(why);
        }
        if apart.is_none() {
            apart = telling(&field, policy);
        }
    }
    apart.map_or(StoreUse::Shared, StoreUse::Apart)
}

/// Names that are no reason to bypass the store nor to share less, unless [`Policy::bypass_fields`] has them.
const UNMINDED: NameSet = NameSet::known_but(&[
    Name::TransferEncoding,
    Name::ContentLength,
    Name::Authorization,
    Name::ProxyAuthorization,
    Name::Cookie,
    Name::CacheControl,
]);

/// Whether a request bypasses the cache for another reason than its method or its body. The response may then
/// be private to one client.
pub fn is_personal(request: &RequestHead<'_>, policy: &Policy) -> bool {
    request.fields.iter().filter_map(|field| bypass(&field, policy)).any(|why| why != BypassReason::Body)
}

/// The first field of a request for which a response does not answer it, and the reason; `None` if there is none.
/// `is_for_all`: what the response says of itself ([`Lifetimes::is_for_all`](super::Lifetimes::is_for_all));
/// `varies_on`: whether its Vary names a field, in lower case, so that it was selected by the field's value.
pub fn bar<'a>(
    request: Fields<'a>,
    policy: &Policy,
    is_for_all: bool,
    varies_on: impl Fn(&[u8]) -> bool,
) -> Option<(Field<'a>, BypassReason)> {
    request.iter().find_map(|field| {
        let why = telling(&field, policy)?;
        let answers =
            (is_for_all && why == BypassReason::UnknownField) || varies_on(&field.name.to_ascii_lowercase());
        (!answers).then_some((field, why))
    })
}

/// The reason for which a field keeps its request from sharing what is not said to be for all.
#[inline]
fn telling(field: &Field<'_>, policy: &Policy) -> Option<BypassReason> {
    if !policy.minds_fields {
        return None;
    }
    let why = match request_field::kind(field.id, field.name, field.value) {
        FieldKind::Harmless | FieldKind::Withheld => return None,
        FieldKind::Form => BypassReason::FormField,
        FieldKind::Unknown => BypassReason::UnknownField,
    };
    (!is_one_of(&policy.harmless_fields, field)).then_some(why)
}

fn is_one_of(names: &[Glob], field: &Field<'_>) -> bool {
    !names.is_empty() && {
        let lower = field.name.to_ascii_lowercase();
        names.iter().any(|name| name.matches(&lower))
    }
}

fn bypass(field: &Field<'_>, policy: &Policy) -> Option<BypassReason> {
    if is_one_of(&policy.bypass_fields, field) {
        return Some(BypassReason::BypassField);
    }
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
