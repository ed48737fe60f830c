//! The cache rules of a route, as settings for the choices that RFC 9111 leaves open.

use std::time::Duration;

use sandarac_message::caching::{CookieRule, Heuristics, Policy, Profile};
use sandarac_message::glob::Glob;
use sandarac_message::vary::VaryRule;
use sandarac_policy::{ByteSize, CacheRule, KeyRule, SharedUse};

use crate::definition::{Section, Value, in_order, settings};
use crate::field::{FieldName, Status};
use crate::limited::{Bounded, BoundedSize};
use crate::path::AbsolutePath;
use crate::report::{At, Complaint, Node, Report};
use crate::setting::Kind;
use crate::shared::SharedSettings;
use crate::value::{Map, Text, choice};

settings! {
    /// The rules in `[cache]` for all routes, and in a route for itself.
    pub(crate) struct RuleSettings {
        /// How long a response is fresh, overriding the backend. It applies to redirects and to the errors 404, 410 and
        /// 451 (under the profile rfc also 405 and 414), but not to other 4xx, which one client's fields may have
        /// caused, to 5xx, or to statuses in `status_ttl`. `no-store` and `private` still apply. A table gives each
        /// status its own, for any status; with `override = true` in it, also to responses with `no-store` or
        /// `private`.
        ttl: Option<ForcedTtl> = None, unset "the lifetime from the backend" "{ 404 = \"1m\" }";
        /// How long a response is fresh if the backend gives no lifetime: a page or an asset of one of the
        /// `default_ttl_types`.
        default_ttl: Option<Duration> = None, unset "2m; under the profile rfc 0s" "\"10m\"";
        /// The media types to which `default_ttl` and `heuristic_percent` apply. A star matches any run of characters.
        /// Responses that say `public` count as listed, and 204, 301, 308, 404 and 410 without a type. What is of
        /// another type and gives no lifetime is not stored.
        default_ttl_types: Option<Vec<MediaPattern>> = None,
            unset "pages, styles, scripts, images, fonts, audio, video, PDF and feeds (docs/manual/caching.md); under the profile rfc all"
            "[\"text/html\", \"image/*\"]";
        /// Shorter lifetimes are raised to this, unless the backend sends `no-cache`.
        min_ttl: Option<Duration> = None, unset "0s" "\"1s\"";
        /// Longer lifetimes are cut to this.
        max_ttl: Option<Duration> = None, unset "no limit" "\"1d\"";
        /// How long responses of a status are fresh if the backend gives no lifetime: negative caching. Under the
        /// profile safe, no 4xx but 404, 410 and 451 is stored unless it is listed here.
        status_ttl: Option<Map<Status, Duration>> = None, unset "none" "{ 404 = \"10s\", 301 = \"1h\" }";
        /// How long past freshness a response is served while a new one is fetched in the background, unless the
        /// backend sets it (RFC 5861 §3).
        grace: Option<Duration> = None, unset "0s" "\"30s\"";
        /// How long past freshness a response replaces an error of the backend, unless the backend sets it (RFC 5861
        /// §4).
        stale_if_error: Option<Duration> = None, unset "0s" "\"10m\"";
        /// How long a request waits for a fetch in progress before a stale response within `stale_if_error` is served
        /// instead. If the last fetch timed out, no request waits. Not under the profile rfc.
        stale_after: Option<Duration> = None, unset "1s" "\"200ms\"";
        /// How long past freshness a response is kept, to be validated or to be served when no backend can be reached.
        keep: Option<Duration> = None, unset "1h" "\"1d\"";
        /// Whether a kept response is served when no backend can be reached at all (RFC 9111 §4.2.4).
        stale_when_disconnected: Option<bool> = None, unset "true" "false";
        /// The cookies that make a request bypass the cache: names (a star matches any run of characters), `"any"` or
        /// `"none"`. If names are given, all other cookies are ignored, and not forwarded with requests that may be
        /// cached; with `"none"` no cookie is, except under the profile rfc. A name that is here bypasses the cache even if `ignore_cookies` covers it, as `"*"` does.
        bypass_cookies: Option<BypassCookies> = None, unset "\"any\"; under the profile rfc \"none\"" "[\"session*\", \"wp-*\"]";
        /// Cookies that are treated as not sent: they do not make a request bypass the cache, and are not forwarded
        /// with requests that may be cached. With a request that bypasses the cache for another reason they are
        /// forwarded. A star matches any run of characters. `bypass_cookies` and `key_cookies` take precedence; an
        /// exception from a name with a star in `bypass_cookies` is possible: `"wp-settings-*"` from `"wp-*"`.
        ignore_cookies: Option<Vec<Pattern>> = None, unset "none" "[\"_ga*\", \"_utm*\"]";
        /// Whether requests with `Authorization` bypass the cache.
        bypass_authorization: Option<bool> = None, unset "true; under the profile rfc false" "false";
        /// Request fields that say nothing of who asks, so that requests with them share responses. Unless it is known
        /// to be harmless or in `key_fields`, a field lets its request share only what is said to be for all: by
        /// `public`, `s-maxage`, a targeted field, or a `ttl` here (docs/manual/caching.md). A star matches any run of
        /// characters.
        harmless_fields: Option<Vec<FieldPattern>> = None, unset "none" "[\"X-App-Version\", \"X-Acme-*\"]";
        /// Request fields that make a request bypass the cache. A star matches any run of characters.
        bypass_fields: Option<Vec<FieldPattern>> = None, unset "none" "[\"X-Preview\"]";
        /// Whether `Cache-Control` and `Pragma` of requests are obeyed (RFC 9111 §5.2.1). A browser reload then reaches
        /// the backend.
        request_directives: Option<bool> = None, unset "false; under the profile rfc true" "true";
        /// Whether responses with `Set-Cookie` are stored if they are explicitly fresh. Every client that is served
        /// such a response gets that cookie.
        store_set_cookie: Option<bool> = None, unset "false; under the profile rfc true" "true";
        /// The lifetime, in percent of the time since `Last-Modified`, of a response without any other freshness
        /// information (RFC 9111 §4.2.2); 0 turns it off.
        heuristic_percent: Option<Bounded<0, 100>> = None, unset "0; under the profile rfc 10" "10";
        /// The longest lifetime that `heuristic_percent` gives.
        heuristic_max: Option<Duration> = None, unset "1d" "\"1h\"";
        /// Fields in `Vary` that make no difference.
        ignore_vary: Option<Vec<FieldName>> = None, unset "none" "[\"User-Agent\"]";
        /// Whether `Accept-Encoding` is forwarded unchanged, and each list of content codings is a separate variant. By
        /// default, a response to be stored is requested with those of gzip, br and zstd that the client accepts, or
        /// with `identity`.
        raw_accept_encoding: Option<bool> = None, unset "false" "true";
        /// Query parameters that make no difference: they are left out of the key, and not forwarded with requests that
        /// may be cached. A star matches any run of characters.
        ignore_query: Option<Vec<Pattern>> = None, unset "none" "[\"utm_*\", \"fbclid\"]";
        /// Request fields that make a difference: their values are part of the key. `Client-Cert` stands for the verified
        /// certificate of the client's own connection; each client then has responses of its own.
        key_fields: Option<Vec<FieldName>> = None, unset "none" "[\"X-Country\"]";
        /// Cookies that make a difference: their values are part of the key, and they do not make requests bypass the
        /// cache.
        key_cookies: Option<Vec<Pattern>> = None, unset "none" "[\"theme\"]";
        /// The largest response that is stored; larger ones are streamed through.
        max_object: Option<ByteSize> = None, unset "an eighth of `memory`" "\"16MiB\"";
    }

    /// The cache that all routes share, and the rules for routes without their own.
    pub(crate) struct StoreSettings {
        /// The most memory for stored responses, including heads, keys and index.
        // Enough for thousands of pages, and acceptable on a small machine; Varnish has the same default.
        memory: BoundedSize<{ 1 << 20 }, { u64::MAX }> = BoundedSize::of::<{ 256 << 20 }>();
        /// A file for what is stored, from an orderly end of the process until the next start reads it, and removes it. It takes as
        /// much as the memory. Nobody else may write to it. Without effect with a shared tier, which outlives the process.
        snapshot: Option<At<AbsolutePath>> = None, unset "the cache is empty after a restart" "\"/var/lib/sandarac/cache\"";
        /// `safe`: what a Varnish user expects; cookies and `Authorization` bypass the cache. `rfc`: everything that
        /// RFC 9111 allows is looked up and stored, and only the backend sets lifetimes.
        profile: Profile = Profile::Safe;
        /// Whether responses have `Cache-Status` (RFC 9211), which explains how they were produced.
        cache_status: bool = true;
        /// The shared tier: memcached servers behind the memory of each node, so that a response fetched by
        /// one node is a hit on all. A server that does not answer costs its share of the keys and nothing
        /// more (docs/manual/shared.md).
        shared: Option<At<SharedSettings>> = None, unset "each node has only its own memory"
            "{ servers = [\"127.0.0.1:11211\"] }";
    }
}

choice!(Profile { "safe" => Profile::Safe, "rfc" => Profile::Rfc });

/// The table `[cache]`: the store, and the rules for all routes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CacheSettings {
    pub(crate) store: StoreSettings,
    pub(crate) rules: RuleSettings,
}

impl Section for CacheSettings {
    fn settings() -> Vec<crate::setting::Setting> {
        let mut settings = StoreSettings::settings();
        settings.extend(RuleSettings::settings());
        settings
    }

    fn set(&mut self, key: &str, node: &Node<'_>, report: &mut Report) -> bool {
        self.store.set(key, node, report) || self.rules.set(key, node, report)
    }
}

impl Value for CacheSettings {
    fn kind() -> Kind {
        Kind::Table(CacheSettings::settings())
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<CacheSettings> {
        report.section(node)
    }

    fn show(&self) -> Option<String> {
        None
    }
}

/// A lifetime that overrides the backend's.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ForcedTtl {
    /// Of all responses.
    All(Duration),
    /// By status, and whether these count for what says `no-store` or `private` too.
    ByStatus(Map<Status, Duration>, bool),
}

impl Value for ForcedTtl {
    fn kind() -> Kind {
        Kind::Either(vec![<Duration as Value>::kind(), <Map<Status, Duration> as Value>::kind()])
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<ForcedTtl> {
        let Some(table) = node.get_ref().as_table() else {
            return <Duration as Value>::read(node, report).map(ForcedTtl::All);
        };
        let (overrides, statuses): (Vec<_>, Vec<_>) =
            in_order(table).into_iter().partition(|(key, _)| key.get_ref() == "override");
        let overrides = match overrides.first() {
            Some((_, node)) => bool::read(node, report)?,
            None => false,
        };
        Some(ForcedTtl::ByStatus(Map::of(statuses, report), overrides))
    }

    fn show(&self) -> Option<String> {
        None
    }
}

/// A name with stars.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pattern(pub(crate) Glob);

impl Text for Pattern {
    fn form() -> Kind {
        Kind::Text {
            name: "name with stars",
            form: "a name, in which a star matches any run of characters",
            examples: &["utm_*"],
        }
    }

    fn from_text(text: &str) -> Result<Pattern, Complaint> {
        if text.is_empty() || text.len() > 256 || text.chars().any(|c| c.is_control() || " ;=&".contains(c)) {
            return Err(Complaint::new(format!("{text:?} is not {}", Pattern::form().words())));
        }
        Ok(Pattern(Glob::new(text)))
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(self.0.text()).into_owned()
    }
}

/// The name of a field with stars.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldPattern(Box<str>);

impl FieldPattern {
    /// The pattern for names in lower case.
    fn glob(&self) -> Glob {
        Glob::new(self.0.to_ascii_lowercase())
    }
}

impl Text for FieldPattern {
    fn form() -> Kind {
        Kind::Text {
            name: "field name with stars",
            form: "the name of a field, in which a star matches any run of characters",
            examples: &["X-Acme-*"],
        }
    }

    fn from_text(text: &str) -> Result<FieldPattern, Complaint> {
        // Their own rules know what they are worth.
        let own = [("authorization", "bypass_authorization"), ("cookie", "bypass_cookies")];
        if let Some((_, setting)) = own.iter().find(|(name, _)| text.eq_ignore_ascii_case(name)) {
            return Err(Complaint::new(format!("{text} has a setting of its own: `{setting}`")));
        }
        // A star is a character of tokens.
        match sandarac_message::is_token(text.as_bytes()) && text.len() <= sandarac_message::MAX_NAME {
            true => Ok(FieldPattern(text.into())),
            false => Err(Complaint::new(format!("{text:?} is not {}", FieldPattern::form().words()))),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// A media type with stars.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MediaPattern(Glob);

impl Text for MediaPattern {
    fn form() -> Kind {
        Kind::Text {
            name: "media type with stars",
            form: "a media type without parameters, in which a star matches any run of characters",
            examples: &["image/*"],
        }
    }

    fn from_text(text: &str) -> Result<MediaPattern, Complaint> {
        let is_type = text.split_once('/').is_some_and(|(main, sub)| {
            sandarac_message::is_token(main.as_bytes()) && sandarac_message::is_token(sub.as_bytes())
        });
        match is_type || text == "*" {
            true => Ok(MediaPattern(Glob::new(text.to_ascii_lowercase()))),
            false => Err(Complaint::new(format!("{text:?} is not {}", MediaPattern::form().words()))),
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(self.0.text()).into_owned()
    }
}

/// The cookies that make a request bypass the cache.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BypassCookies(pub(crate) CookieRule);

impl Value for BypassCookies {
    fn kind() -> Kind {
        Kind::Either(vec![Kind::Choice(vec!["any", "none"]), <Vec<Pattern> as Value>::kind()])
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<BypassCookies> {
        Some(BypassCookies(match node.get_ref().as_str() {
            Some("any") => CookieRule::Any,
            Some("none") => CookieRule::Never,
            _ => CookieRule::Named(globs(&<Vec<Pattern> as Value>::read(node, report)?)),
        }))
    }

    fn show(&self) -> Option<String> {
        None
    }
}

fn globs(patterns: &[Pattern]) -> Vec<Glob> {
    patterns.iter().map(|pattern| pattern.0.clone()).collect()
}

impl RuleSettings {
    /// These settings, with those of `base` as defaults.
    pub(crate) fn over(self, base: &RuleSettings) -> RuleSettings {
        macro_rules! first {
            ($($name:ident),*) => {
                RuleSettings { $($name: self.$name.or_else(|| base.$name.clone()),)* }
            };
        }
        first!(
            ttl,
            default_ttl,
            default_ttl_types,
            min_ttl,
            max_ttl,
            status_ttl,
            grace,
            stale_if_error,
            stale_after,
            keep,
            stale_when_disconnected,
            bypass_cookies,
            ignore_cookies,
            bypass_authorization,
            harmless_fields,
            bypass_fields,
            request_directives,
            store_set_cookie,
            heuristic_percent,
            heuristic_max,
            ignore_vary,
            raw_accept_encoding,
            ignore_query,
            key_fields,
            key_cookies,
            max_object
        )
    }

    /// The rule that these settings describe, with the store's profile and memory, and this use of the shared
    /// tier.
    pub(crate) fn rule(&self, store: &StoreSettings, shared: SharedUse) -> CacheRule {
        let base = match store.profile {
            Profile::Safe => Policy::safe(),
            Profile::Rfc => Policy::rfc(),
        };
        let names = |names: &Option<Vec<FieldName>>| {
            let bytes = |name: &FieldName| Box::from(name.as_str().as_bytes());
            names.iter().flatten().map(bytes).collect::<Vec<_>>()
        };
        let patterns = |patterns: &Option<Vec<Pattern>>| globs(patterns.as_deref().unwrap_or_default());
        let day = Duration::from_secs(86_400);
        let known = base.heuristics.unwrap_or(Heuristics { percent: 0, cap: day });
        let heuristics = Heuristics {
            percent: self.heuristic_percent.map_or(known.percent, Bounded::get),
            cap: self.heuristic_max.unwrap_or(known.cap),
        };
        let ttl = |(status, ttl): &(At<Status>, Duration)| (status.value.0, *ttl);
        // A keyed cookie does not make a request bypass the cache. It is still forwarded, because it is part of the
        // key.
        let mut bypass_cookies = self.bypass_cookies.clone().map_or(base.bypass_cookies, |rule| rule.0);
        let mut ignored_cookies = patterns(&self.ignore_cookies);
        if bypass_cookies == CookieRule::Never && store.profile == Profile::Safe {
            // A page that is shared was made without the cookies of the visitor who came first.
            (bypass_cookies, ignored_cookies) = (CookieRule::Any, vec![Glob::new("*")]);
        }
        if let CookieRule::Named(named) = &bypass_cookies {
            // A pattern that covers one of these would undo it. All cookies but these are ignored anyway.
            ignored_cookies.retain(|ignored| !named.iter().any(|name| ignored.matches(name.text())));
        }
        ignored_cookies.extend(patterns(&self.key_cookies));
        let fields = |patterns: &Option<Vec<FieldPattern>>| {
            patterns.iter().flatten().map(FieldPattern::glob).collect::<Vec<_>>()
        };
        // Each value of a keyed field has responses of its own.
        let mut harmless_fields = fields(&self.harmless_fields);
        harmless_fields.extend(
            self.key_fields.iter().flatten().map(|name| Glob::new(name.as_str().to_ascii_lowercase())),
        );
        let raw_codings = self.raw_accept_encoding.unwrap_or(base.vary.raw_codings);
        let mut vary = VaryRule { ignored: names(&self.ignore_vary), raw_codings, ..base.vary };
        if bypass_cookies != CookieRule::Never {
            // Requests with a relevant cookie bypass the cache, and the others are keyed or not forwarded: the backend
            // never saw the cookies that `Vary: Cookie` would distinguish.
            vary.ignored.push(b"cookie"[..].into());
        }
        let policy = Policy {
            profile: store.profile,
            bypass_authorization: self.bypass_authorization.unwrap_or(base.bypass_authorization),
            bypass_cookies,
            ignored_cookies,
            minds_fields: base.minds_fields,
            harmless_fields,
            bypass_fields: fields(&self.bypass_fields),
            request_directives: self.request_directives.unwrap_or(base.request_directives),
            store_set_cookie: self.store_set_cookie.unwrap_or(base.store_set_cookie),
            forced_ttl: match &self.ttl {
                Some(ForcedTtl::All(ttl)) => Some(*ttl),
                _ => base.forced_ttl,
            },
            forced_by_status: match &self.ttl {
                Some(ForcedTtl::ByStatus(map, _)) => map.0.iter().map(ttl).collect(),
                _ => base.forced_by_status,
            },
            forced_overrides: matches!(self.ttl, Some(ForcedTtl::ByStatus(_, true))),
            default_ttl: self.default_ttl.unwrap_or(base.default_ttl),
            guessed_types: match &self.default_ttl_types {
                Some(types) => types.iter().map(|known| known.0.clone()).collect(),
                None => base.guessed_types,
            },
            ttl_by_status: match &self.status_ttl {
                Some(map) => map.0.iter().map(ttl).collect(),
                None => base.ttl_by_status,
            },
            min_ttl: self.min_ttl.unwrap_or(base.min_ttl),
            max_ttl: self.max_ttl.unwrap_or(base.max_ttl),
            heuristics: (heuristics.percent > 0).then_some(heuristics),
            grace: self.grace.unwrap_or(base.grace),
            stale_if_error: self.stale_if_error.unwrap_or(base.stale_if_error),
            keep: self.keep.unwrap_or(base.keep),
            stale_when_disconnected: self.stale_when_disconnected.unwrap_or(base.stale_when_disconnected),
            vary,
        };
        let key = KeyRule {
            ignore_query: patterns(&self.ignore_query),
            fields: names(&self.key_fields),
            cookies: patterns(&self.key_cookies),
        };
        let stale_after = self.stale_after.unwrap_or(Duration::from_secs(1));
        CacheRule {
            policy,
            key,
            max_object: self.max_object.unwrap_or(ByteSize(store.memory.size().0 / 8)),
            // A slow response is not an error (RFC 5861 §4).
            stale_after: (store.profile == Profile::Safe).then_some(stale_after),
            accept_encoding: None,
            shared,
        }
    }
}
