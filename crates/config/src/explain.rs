//! An explanation of a configuration in plain words, and the list of changes that need a restart.

use std::fmt::Write;
use std::time::Duration;

use sandarac_balance::Algorithm;
use sandarac_message::Name;
use sandarac_message::caching::{CookieRule, PAGES_AND_ASSETS, Policy};
use sandarac_message::glob::Glob;
use sandarac_message::target::Scheme;
use sandarac_policy::{
    Action, ByteSize, CacheRule, CompressRule, Edits, FileRule, Forward, FragmentRule, Match, PoolId, Route,
    SharedUse, Symlinks,
};

use crate::config::{Config, Listener};
use crate::field::Token;
use crate::pool::PoolConfig;
use crate::section::LogTarget;
use crate::shared::{SharedConfig, SharedServers};
use crate::value::show_duration;

/// Begins another line about a route, below the first.
const NEXT: &str = "\n     ";

/// A description of `config` in plain words, for `sandarac check`.
pub fn explain(config: &Config) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    config.listeners.iter().for_each(|listener| line(explain_listener(listener)));
    config.pools.iter().for_each(|pool| line(explain_pool(pool)));
    line("Routes; the first that matches a request counts:".to_owned());
    for (at, route) in config.routes.all().iter().enumerate() {
        line(format!("  {}. {}", at + 1, explain_route(route, config)));
    }
    if config.routes.all().iter().all(|route| !route.matches.is_empty()) {
        line("  Anything else is answered with 404.".to_owned());
    }
    let status = if config.cache.cache_status { "with" } else { "without" };
    let profile = match config.cache.profile {
        sandarac_message::caching::Profile::Safe => "safe",
        sandarac_message::caching::Profile::Rfc => "rfc",
    };
    line(format!("Cache: up to {}, profile {profile}, {status} Cache-Status.", config.cache.memory));
    if let Some(path) = &config.cache.snapshot {
        line(format!("While no process runs, what is stored is kept in {}.", path.display()));
    }
    if let Some(shared) = &config.cache.shared {
        line(explain_shared(shared));
    }
    let networks: Vec<_> = config.purge.allow.iter().map(ToString::to_string).collect();
    if !networks.is_empty() {
        line(format!("PURGE is allowed from {}.", networks.join(", ")));
    }
    if let Some(user) = &config.user {
        line(format!("Started by root, it runs as user {}.", user.as_str()));
    }
    if let Some(listen) = &config.admin.listen {
        line(format!("Admin interface on {listen}."));
    }
    match &config.log.access {
        LogTarget::Off => line("No access log.".to_owned()),
        LogTarget::Stdout => line("Access log on standard output.".to_owned()),
        LogTarget::Stderr => line("Access log on standard error.".to_owned()),
        LogTarget::File(path) => line(format!("Access log in {}.", path.display())),
    }
    out
}

fn explain_listener(listener: &Listener) -> String {
    let mut text = format!("Listens on {}", listener.address);
    if let Some(mode) = listener.mode {
        let _ = write!(text, ", mode {mode:04o}");
    }
    if listener.proxy_protocol {
        text.push_str(", behind a proxy that speaks the PROXY protocol");
    }
    if listener.scheme == Scheme::Https {
        text.push_str(", reached by https");
    }
    if listener.redirect_to_https {
        text.push_str(", redirecting to https");
    }
    if !listener.trusted_proxies.is_empty() {
        let networks: Vec<_> = listener.trusted_proxies.iter().map(ToString::to_string).collect();
        let _ = write!(text, ", trusting X-Forwarded-* and Forwarded from {}", networks.join(", "));
    }
    text + "."
}

fn explain_pool(pool: &PoolConfig) -> String {
    let backends = pool.backends.iter().map(|backend| {
        let weight = (backend.weight != 1).then(|| format!("weight {}", backend.weight));
        let own_limit = backend.max_in_flight.filter(|_| backend.max_in_flight != pool.max_in_flight);
        let limit = own_limit.map(|limit| format!("at most {limit} in flight"));
        let notes: Vec<_> = weight.into_iter().chain(limit).collect();
        if notes.is_empty() {
            return backend.address.to_string();
        }
        format!("{} ({})", backend.address, notes.join(", "))
    });
    let found: Vec<_> = backends.chain(pool.discover.iter().map(ToString::to_string)).collect();
    let mut text = format!("Pool {}: {}", pool.name, found.join(", "));
    let several = pool.backends.len() > 1 || !pool.discover.is_empty();
    if several || pool.classifier.is_some() || pool.algorithm() != Algorithm::default() {
        let _ = write!(text, " ({}", pool.algorithm());
        if let Some(classifier) = &pool.classifier {
            let _ = write!(text, " by {classifier}");
        }
        text.push(')');
    }
    if let Some(limit) = pool.max_in_flight {
        let queue = pool.settings.queue_limit;
        let all = pool.backends.iter().all(|backend| backend.max_in_flight == Some(limit));
        let each = if all { "each" } else { "each other" };
        let _ = write!(text, ", at most {limit} requests in flight to {each}, then {queue} waiting");
    }
    if let Some(check) = &pool.check {
        let _ = write!(text, ", checked by {} every {}", check.path, show_duration(check.interval));
    }
    if let Some(sticky) = &pool.sticky {
        let _ = write!(text, ", sessions stick by the cookie {}", sticky.cookie);
    }
    text + "."
}

fn explain_shared(shared: &SharedConfig) -> String {
    let servers = match &shared.servers {
        SharedServers::Listed(servers) => {
            servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
        SharedServers::Discovered(source) => source.to_string(),
    };
    let mut text = format!("Shared tier: memcached at {servers}");
    if !shared.namespace.is_empty() {
        let _ = write!(text, ", namespace {}", shared.namespace);
    }
    match &shared.secret_files[..] {
        [] => text.push_str(", entries not sealed by a secret"),
        [file, rest @ ..] => {
            let _ = write!(text, ", entries sealed by the secret in {}", file.path().display());
            for old in rest {
                let _ = write!(text, ", those by the one in {} accepted too", old.path().display());
            }
        }
    }
    if let Some(login) = &shared.login {
        let _ = write!(text, ", as user {}", login.user);
    }
    let _ = write!(text, ", responses up to {}", shared.max_object);
    if !shared.compression {
        text.push_str(", not compressed");
    }
    let _ = write!(
        text,
        "{NEXT}copies in memory are compared with it every {}, and purges are remembered for {}",
        show_duration(shared.local_ttl),
        show_duration(shared.purge_memory)
    );
    let _ = write!(
        text,
        "{NEXT}a server may take {} to answer, and is ejected for {} to {} after {} failures in a row",
        show_duration(shared.timeout),
        show_duration(shared.ejection.first),
        show_duration(shared.ejection.longest),
        shared.ejection.failures
    );
    let _ = write!(
        text,
        "{NEXT}a request waits up to {} for the fetch of another node",
        show_duration(shared.wait)
    );
    text + "."
}

fn explain_route(route: &Route, config: &Config) -> String {
    let matches: Vec<_> = route.matches.iter().map(explain_match).collect();
    let mut text = if matches.is_empty() { "everything".to_owned() } else { matches.join(", or ") };
    match &route.action {
        Action::Forward(forward) => {
            let _ = write!(text, " → {}", explain_forward(forward, config));
        }
        Action::Files { rule, fallback } => {
            let _ = write!(text, " → {}", explain_files(rule));
            if let Some(forward) = fallback {
                let _ = write!(
                    text,
                    "{NEXT}without a file, or with other methods: {}",
                    explain_forward(forward, config)
                );
            }
        }
        Action::Internal(rule) => {
            let _ = write!(text, " → not for clients; X-Accel-Redirect leads to {}", explain_files(rule));
        }
        Action::Answer(answer) => {
            let _ = write!(text, " → answered here with {}", answer.status);
        }
        Action::Redirect(redirect) => {
            let _ = write!(text, " → redirected ({}) to {}", redirect.status, redirect.to);
        }
    }
    for (edits, of) in [
        (&route.request, "request"),
        (&route.response.all, "response"),
        (&route.response.stored, "stored response"),
        (&route.response.passed, "passed response"),
    ] {
        // That of a route with `hsts` is told below.
        let is_hsts = |name: &[u8]| route.hsts.is_some() && name == b"Strict-Transport-Security";
        let is_hsts_alone =
            edits.set.is_empty() && edits.add.is_empty() && edits.remove.iter().all(|name| is_hsts(name));
        if !edits.is_empty() && !is_hsts_alone {
            let _ = write!(text, "{NEXT}{of}: {}", explain_edits(edits));
            if of == "response" && edits.remove.iter().any(|name| Name::of(name) == Name::Via) {
                text.push_str(" (the Via of this proxy is added)");
            }
        }
    }
    if let Some(rule) = route.compress.as_ref().filter(|_| route.forward().is_some()) {
        let _ = write!(text, "{NEXT}{}", explain_compression(rule));
    }
    if let Some(rule) = route.fragments.filter(|_| route.forward().is_some()) {
        let pages = match rule {
            FragmentRule::Markup => "HTML and XML",
            FragmentRule::Announced => "pages that announce ESI",
        };
        let _ = write!(text, "{NEXT}{pages} assembled from fragments");
    }
    if let Some(hsts) = &route.hsts {
        let _ = write!(
            text,
            "{NEXT}clients by https get Strict-Transport-Security: {hsts}, in place of the backend's"
        );
    }
    if route.forward().is_some() {
        if route.upgrade != [Token::WEBSOCKET] {
            let protocols =
                if route.upgrade.is_empty() { "nothing".to_owned() } else { route.upgrade.join(", ") };
            let _ = write!(text, "{NEXT}may be upgraded to {protocols}");
        }
        if route.connect {
            text.push_str(&format!("{NEXT}CONNECT makes a tunnel"));
        }
    }
    text
}

fn explain_forward(forward: &Forward, config: &Config) -> String {
    let Forward { pool, unsafe_pool, cache } = forward;
    let name = |pool: PoolId| config.pools.get(pool.place()).map_or("?", |pool| &pool.name);
    let mut text = format!("pool {}, ", name(*pool));
    if let Some(pool) = unsafe_pool {
        let _ = write!(text, "other methods than GET, HEAD, OPTIONS and TRACE to pool {}, ", name(*pool));
    }
    match cache {
        None => text.push_str("bypassing the cache"),
        Some(rule) => {
            text.push_str(&explain_rule(rule));
            if config.cache.shared.is_some() {
                text.push_str(&explain_use(rule.shared));
            }
        }
    }
    text
}

fn explain_files(rule: &FileRule) -> String {
    let mut text = format!("files in {}", rule.root.display());
    if !matches!(&rule.names[..], [name] if name.is_path()) {
        let names: Vec<_> = rule.names.iter().map(ToString::to_string).collect();
        let _ = write!(text, "{NEXT}tried in order: {}", names.join(", "));
    }
    if let Some(page) = &rule.not_found {
        let _ = write!(text, "{NEXT}what is not there: 404 with {page}");
    }
    match (&rule.index[..], rule.listing) {
        ([], false) => {}
        ([], true) => text.push_str(&format!("{NEXT}directories are listed")),
        (index, listing) => {
            let _ = write!(text, "{NEXT}for a directory: {}", index.join(", "));
            if listing {
                text.push_str(", or else a list of its files");
            }
        }
    }
    match rule.symlinks {
        Symlinks::Never => text.push_str(&format!("{NEXT}symbolic links are not followed")),
        Symlinks::Inside if rule.also.is_empty() => {}
        Symlinks::Inside => {
            let also: Vec<_> = rule.also.iter().map(|also| also.display().to_string()).collect();
            let _ = write!(text, "{NEXT}symbolic links may also lead to {}", also.join(", "));
        }
    }
    if !rule.precompressed {
        text.push_str(&format!("{NEXT}compressed files beside others are not used"));
    }
    let _ = write!(text, "{NEXT}changes are seen after {}", show_duration(rule.valid));
    text
}

/// The use of the shared tier, where it differs from the default.
fn explain_use(shared: SharedUse) -> String {
    match shared {
        SharedUse::ReadWrite => String::new(),
        SharedUse::Read => format!("{NEXT}reads the shared tier, and writes nothing to it"),
        SharedUse::Off => format!("{NEXT}not in the shared tier"),
    }
}

fn explain_match(matcher: &Match) -> String {
    let mut parts = Vec::new();
    let joined = |items: Vec<String>| items.join(" or ");
    if !matcher.methods.is_empty() {
        parts.push(joined(matcher.methods.iter().map(|method| method.as_str().to_owned()).collect()));
    }
    if !matcher.hosts.is_empty() {
        parts.push(format!("on {}", joined(matcher.hosts.iter().map(ToString::to_string).collect())));
    }
    if !matcher.paths.is_empty() {
        parts.push(joined(matcher.paths.iter().map(ToString::to_string).collect()));
    }
    if parts.is_empty() { "everything".to_owned() } else { parts.join(" ") }
}

fn explain_rule(rule: &CacheRule) -> String {
    let CacheRule { policy, key, max_object, .. } = rule;
    let mut text = "from the cache, fresh for ".to_owned();
    match policy.forced_ttl {
        Some(ttl) => {
            let _ = write!(text, "{}", show_duration(ttl));
        }
        None => {
            text.push_str("what the backend says");
            if !policy.default_ttl.is_zero() {
                let _ = write!(
                    text,
                    ", else {} if it is {}",
                    show_duration(policy.default_ttl),
                    explain_types(policy)
                );
            }
        }
    }
    let bounds = [("at least", policy.min_ttl, Duration::ZERO), ("at most", policy.max_ttl, Duration::MAX)];
    for (words, bound, none) in bounds {
        if bound != none {
            let _ = write!(text, ", {words} {}", show_duration(bound));
        }
    }
    for (status, ttl) in &policy.ttl_by_status {
        let _ = write!(text, ", {status} for {}", show_duration(*ttl));
    }
    for (status, ttl) in &policy.forced_by_status {
        let but = if policy.forced_overrides { "" } else { " but no-store or private" };
        let _ = write!(text, ", {status} for {} whatever it says{but}", show_duration(*ttl));
    }
    text.push_str(&explain_stale(rule));
    text.push_str(&explain_cookies(policy));
    let ignored: Vec<_> =
        policy.ignored_cookies.iter().filter(|glob| !key.cookies.contains(glob)).cloned().collect();
    // Those that are keyed are named there, and no backend gets one with an underscore.
    let is_own = |glob: &&Glob| {
        let is_keyed = key.fields.iter().any(|name| name.to_ascii_lowercase() == glob.text());
        !is_keyed && glob.text() != b"*_*"
    };
    let harmless: Vec<_> = policy.harmless_fields.iter().filter(is_own).cloned().collect();
    let list = |globs: &[Glob]| listed(globs.iter().map(Glob::text), ", ");
    let fields = |names: &[Box<[u8]>]| listed(names.iter().map(|name| &**name), ", ");
    for (words, names) in [
        ("ignored cookies", list(&ignored)),
        ("ignored query parameters", list(&key.ignore_query)),
        ("also distinguished by the cookies", list(&key.cookies)),
        ("also distinguished by the fields", fields(&key.fields)),
        ("ignored in Vary", fields(&policy.vary.ignored)),
        ("requests with these fields bypass it", list(&policy.bypass_fields)),
        ("fields known to be harmless, beside those of browsers", list(&harmless)),
    ] {
        if !names.is_empty() {
            let _ = write!(text, "{NEXT}{words}: {names}");
        }
    }
    if policy.vary.raw_codings {
        text.push_str(&format!("{NEXT}Accept-Encoding unchanged"));
    }
    let _ = write!(text, "{NEXT}responses up to {}", ByteSize(max_object.0));
    text
}

/// Names, one after the other, with this between them.
fn listed<'a>(names: impl Iterator<Item = &'a [u8]>, between: &str) -> String {
    names.map(String::from_utf8_lossy).collect::<Vec<_>>().join(between)
}

/// The media types that have a lifetime by default.
fn explain_types(policy: &Policy) -> String {
    let types: Vec<_> =
        policy.guessed_types.iter().map(|known| String::from_utf8_lossy(known.text())).collect();
    if types == PAGES_AND_ASSETS {
        return "a page or an asset (HTML, style, script, image, font, audio, video, PDF, feed)".to_owned();
    }
    match &types[..] {
        [all] if all == "*" => "of any media type".to_owned(),
        types => types.join(" or "),
    }
}

/// The uses of a response that is no longer fresh.
fn explain_stale(CacheRule { policy, stale_after, .. }: &CacheRule) -> String {
    let mut text = String::new();
    if !policy.grace.is_zero() {
        let _ =
            write!(text, "{NEXT}stale for {} more while a new one is fetched", show_duration(policy.grace));
    }
    if !policy.stale_if_error.is_zero() {
        let time = show_duration(policy.stale_if_error);
        let _ = write!(text, "{NEXT}stale for {time} more in place of an error");
        if let Some(patience) = stale_after {
            let _ = write!(text, ", or of a response that takes longer than {}", show_duration(*patience));
        }
    }
    if !policy.keep.is_zero() {
        let _ = write!(text, "{NEXT}kept for {} more, to be validated", show_duration(policy.keep));
        if policy.stale_when_disconnected {
            text.push_str(" or to stand in when no backend can be reached");
        }
    }
    text
}

/// The names that frameworks give to the cookies of their sessions: PHP, Java, ASP.NET, Express, Django, Rails and Laravel.
const SESSION_COOKIES: [&str; 7] = [
    "PHPSESSID",
    "JSESSIONID",
    "ASP.NET_SessionId",
    "connect.sid",
    "sessionid",
    "_session_id",
    "laravel_session",
];

fn explain_cookies(policy: &Policy) -> String {
    let names_none = policy.bypass_cookies == CookieRule::Named(Vec::new());
    let bypasses_none = policy.bypass_cookies == CookieRule::Never
        || names_none
        || policy.ignored_cookies.iter().any(|glob| glob.text() == b"*");
    let mut text = match &policy.bypass_cookies {
        _ if bypasses_none => format!("{NEXT}whatever cookies a request has"),
        CookieRule::Never | CookieRule::Any => format!("{NEXT}requests with a cookie bypass it"),
        CookieRule::Named(globs) => {
            let names = listed(globs.iter().map(Glob::text), " or ");
            format!("{NEXT}requests with a cookie {names} bypass it")
        }
    };
    if policy.bypass_authorization {
        text.push_str(&match bypasses_none {
            true => format!("{NEXT}requests with Authorization bypass it"),
            false => ", and so do those with Authorization".to_owned(),
        });
    }
    if let (CookieRule::Named(globs), false) = (&policy.bypass_cookies, bypasses_none) {
        let is_named = |name: &&str| {
            globs.iter().chain(&policy.ignored_cookies).any(|glob| glob.matches(name.as_bytes()))
        };
        let others: Vec<_> = SESSION_COOKIES.into_iter().filter(|name| !is_named(name)).collect();
        text.push_str(&format!("{NEXT}other cookies are not forwarded"));
        if let Some((last, rest)) = others.split_last() {
            let rest = rest.join(", ");
            let names = if rest.is_empty() { (*last).to_owned() } else { format!("{rest} and {last}") };
            let _ = write!(text, "; of the usual ones of sessions, {names} are not named");
        }
    }
    if names_none {
        text.push_str(&format!("{NEXT}cookies are not forwarded"));
    }
    if policy.minds_fields {
        text.push_str(NEXT);
        text.push_str(match policy.harmless_fields.iter().any(|glob| glob.text() == b"*") {
            true => "requests share whatever other fields they have",
            false => "requests with a field that may identify somebody share only what is said to be for all",
        });
    }
    if policy.store_set_cookie {
        text.push_str(&format!("{NEXT}responses that set cookies are stored"));
    }
    text
}

fn explain_compression(rule: &CompressRule) -> String {
    let codings: Vec<_> = rule.codings.iter().map(|coding| coding.name()).collect();
    let private = if rule.private { ", private ones and those with cookies too" } else { "" };
    let types = match &rule.types {
        None => "text and the like".to_owned(),
        Some(types) => listed(types.iter().map(|pattern| pattern.text()), ", "),
    };
    format!("bodies from {} in {}: {types}{private}", ByteSize(rule.min_size), codings.join(", "))
}

fn explain_edits(edits: &Edits) -> String {
    let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let removed = edits.remove.iter().map(|field| format!("without {}", name(field)));
    let set =
        edits.set.iter().map(|(field, value)| format!("{} set to {:?}", name(field), value.to_string()));
    let added =
        edits.add.iter().map(|(field, value)| format!("{} {:?} added", name(field), value.to_string()));
    removed.chain(set).chain(added).collect::<Vec<_>>().join(", ")
}

impl Config {
    /// The names of the settings that differ from those of `running` and take effect only with a restart.
    pub fn needs_restart(&self, running: &Config) -> Vec<&'static str> {
        let changes = [
            ("user", self.user != running.user),
            ("threads", self.threads != running.threads),
            ("admin.listen", self.admin.listen != running.admin.listen),
            ("admin.mode", self.admin.mode != running.admin.mode),
            ("admin.group", self.admin.group != running.admin.group),
        ];
        changes.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }
}
