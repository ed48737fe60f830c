//! Conversion of settings to a [`Config`]: required settings, settings that must fit together, and probable mistakes.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use sandarac_message::caching::Profile;
use sandarac_message::glob::Glob;
use sandarac_message::target::Scheme;
use sandarac_policy::{Forward, PoolId, Route, Routes};
use toml::de::{DeTable, DeValue};

use crate::address::{ListenAddress, Network};
use crate::config::{Cache, Config, Listener, SpoolConfig};
use crate::definition::Section;
use crate::diagnostics::{COMMAND_LINE, Diagnostics, SourceText, Warning, judge};
use crate::field::FieldName;
use crate::file::{File, ListenSettings, RouteSettings};
use crate::flags::{Flags, overlay, port_80_for_acme};
use crate::other_words::other_program;
use crate::php::expand_php;
use crate::pool::{PoolConfig, PoolName, pool_config};
use crate::report::{At, Place, Report};
use crate::route_settings::route;
use crate::rules::{ForcedTtl, StoreSettings};
use crate::section::Admin;
use crate::shared::{shared_config, warn_of_unused_tier};
use crate::suggest::closest;
use crate::tls::listener_tls;
use crate::warnings::{
    warn_of_lost_cookies, warn_of_missing_https, warn_of_names, warn_of_removed_cookies, warn_of_shared,
};

impl Config {
    /// Reads the text of the file called `name`.
    pub fn from_toml(name: &str, text: &str) -> Result<(Config, Vec<Warning>), Diagnostics> {
        Config::from_toml_and_flags(name, text, &Flags::default())
    }

    /// The configuration from command-line flags alone.
    pub fn from_flags(flags: &Flags) -> Result<(Config, Vec<Warning>), Diagnostics> {
        Config::from_toml_and_flags(COMMAND_LINE, "", flags)
    }

    /// Reads the bytes of the file called `name`, which must be UTF-8 by the rules of TOML, and overrides it with
    /// `flags`.
    pub fn from_bytes_and_flags(
        name: &str,
        bytes: &[u8],
        flags: &Flags,
    ) -> Result<(Config, Vec<Warning>), Diagnostics> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Config::from_toml_and_flags(name, text, flags),
            Err(error) => {
                let mut report = Report::new(File::settings());
                let text = String::from_utf8_lossy(bytes);
                // The text is the same up to the error; one replacement character follows.
                let start = error.valid_up_to();
                let place = start..start + char::REPLACEMENT_CHARACTER.len_utf8();
                report.error(Some(place), format!("byte {:#04x} is not UTF-8", bytes[start])).help =
                    Some("save the file as UTF-8".to_owned());
                judge(SourceText::new(name, &text, &[]), report.found, None)
            }
        }
    }

    /// Reads the text of the file called `name`; flags override the file.
    pub fn from_toml_and_flags(
        name: &str,
        text: &str,
        flags: &Flags,
    ) -> Result<(Config, Vec<Warning>), Diagnostics> {
        let mut report = Report::new(File::settings());
        let (table, syntax) = DeTable::parse_recoverable(text);
        let other = other_program(text).filter(|_| !syntax.is_empty());
        if let Some((place, program, page)) = &other {
            let message = format!("this is a file of {program}, and Sandarac reads TOML");
            report.error(Some(place.clone()), message).help = Some(format!("{page} shows the move"));
        }
        for error in syntax.iter().filter(|_| other.is_none()) {
            // An error at the end of the file is marked at its last character.
            let place = error.span().map(|place| place.start.min(text.len())..place.end.min(text.len()));
            let message = error.message().trim_end_matches(", expected nothing");
            let shown = message == DUPLICATE && report.found.len() < 20;
            let first = place.as_ref().filter(|_| shown);
            let first = first.and_then(|place| first_of_two(text, place));
            report.error(place, message).also = first.map(|first| (first, "here already".to_owned()));
        }
        let file = syntax.is_empty().then(|| {
            let mut file: File = report.table(table.get_ref());
            overlay(&mut file, flags, &mut report);
            report.read_is_over();
            expand_php(&mut file, flags.php_fpm.as_deref(), &mut report);
            file
        });
        let source = SourceText::new(name, text, &report.secrets);
        let mut config = file.map(|file| config(file, &source, &mut report));
        if let Some(config) = &mut config {
            let port_80 = port_80_for_acme(flags, &config.listeners);
            config.listeners.extend(port_80);
        }
        judge(source, report.found, config)
    }
}

/// The TOML parser's message for a duplicate key.
const DUPLICATE: &str = "duplicate key";

/// The first place of the key repeated at `second`. Candidates are earlier keys of that name; the right one is the one
/// whose renaming makes the error disappear.
fn first_of_two(text: &str, second: &Place) -> Option<Place> {
    /// The most candidates to try: each costs a parse.
    const TRIED: usize = 16;
    let name = text.get(second.clone())?;
    let before = text.get(..second.start)?;
    let mut places = Vec::new();
    places_of(name, before, DeTable::parse_recoverable(before).0.get_ref(), &mut places);
    places.sort_by_key(|place| place.start);
    places.into_iter().rev().take(TRIED).find(|place| {
        // A name of the same length keeps all places; no configuration uses this one.
        let other = "-".repeat(place.len());
        let renamed = [&text[..place.start], &other, &text[place.end..]].concat();
        let (_, errors) = DeTable::parse_recoverable(&renamed);
        !errors.iter().any(|error| error.span().as_ref() == Some(second) && error.message() == DUPLICATE)
    })
}

fn places_of(name: &str, text: &str, table: &DeTable<'_>, found: &mut Vec<Place>) {
    for (key, value) in table.iter() {
        if text.get(key.span()) == Some(name) {
            found.push(key.span());
        }
        places_in(name, text, value.get_ref(), found);
    }
}

fn places_in(name: &str, text: &str, value: &DeValue<'_>, found: &mut Vec<Place>) {
    match value {
        DeValue::Table(table) => places_of(name, text, table, found),
        DeValue::Array(items) => items.iter().for_each(|item| places_in(name, text, item.get_ref(), found)),
        _ => {}
    }
}

fn config(file: File, source: &Arc<SourceText>, report: &mut Report) -> Config {
    let listeners = listeners(&file, report);
    let (names, pools): (Vec<_>, Vec<_>) =
        file.pool.0.iter().map(|pool| (&pool.0, pool_config(pool, report))).unzip();
    warn_of_missing_https(&file, &listeners, report);
    check_cache(&file, report);
    check_others(&file, report);
    let mut routes = routes(&file, &names, &pools, report);
    routes.iter_mut().for_each(|route| overlook_sticky_cookies(route, &pools));
    check_sticky_cookies(&routes, &names, &pools, report);
    check_skills_files(&file, &pools, report);
    let memory = file.cache.store.memory.size();
    let tier = file.cache.store.shared.as_ref();
    let shared = tier.and_then(|settings| {
        warn_of_unused_tier(settings, &routes, report);
        shared_config(settings, memory, source, report)
    });
    Config {
        listeners,
        pools,
        routes: Routes::new(routes),
        cache: Cache {
            memory,
            profile: file.cache.store.profile,
            cache_status: file.cache.store.cache_status,
            snapshot: snapshot(&file.cache.store, report),
            shared,
        },
        timeouts: file.timeouts,
        limits: file.limits,
        spool: SpoolConfig { directory: file.spool.directory.to_path(), disk: file.spool.disk.0 },
        forwarded: file.forwarded,
        dns: file.dns,
        purge: file.purge,
        admin: file.admin,
        log: file.log,
        user: file.user,
        threads: file.threads.map(|threads| threads.get()),
    }
}

fn listeners(file: &File, report: &mut Report) -> Vec<Listener> {
    if file.listen.is_empty() {
        let help = "add [[listen]] with address = \":8080\", or give --listen :8080";
        report.missing(None, "nothing to listen on", help);
    }
    let mut seen: Vec<&At<ListenAddress>> = Vec::new();
    let mut listeners = Vec::new();
    for At { value: listener, place } in &file.listen {
        let ListenSettings {
            address,
            mode,
            proxy_protocol,
            scheme,
            trusted_proxies,
            tls,
            http2,
            redirect_to_https,
        } = listener;
        let Some(address) = address else {
            report.missing(place.clone(), "a listener needs an `address`", "address = \":8080\"");
            continue;
        };
        if let Some(first) = seen.iter().find(|other| overlap(&other.value, &address.value)) {
            let message = match first.value == address.value {
                true => format!("{} is listened on twice", address.value),
                false => format!("{} and {} cannot both be listened on", first.value, address.value),
            };
            let error = report.error(address.place.clone(), message);
            error.also = first.place.clone().map(|place| (place, "here already".to_owned()));
        }
        seen.push(address);
        if let Some(mode) = mode
            && !matches!(address.value, ListenAddress::Unix(_))
        {
            report.error(mode.place.clone(), "only a Unix socket has a mode");
        }
        if let Some(network) = trusted_proxies.iter().find(|network| is_everyone(network)) {
            let message = format!("`trusted_proxies` holds {network}: any client can claim any address");
            report.warning(address.place.clone(), message);
        }
        let tls = tls.as_ref().map(|tls| listener_tls(tls, report));
        if tls.is_some() && scheme.place.is_some() && scheme.value == Scheme::Http {
            let message = "clients reach a listener with `tls` by https";
            report.error(scheme.place.clone(), message).help = Some("leave out `scheme`".to_owned());
        }
        if redirect_to_https.value && tls.is_some() {
            let message = "`redirect_to_https` has no effect on a listener with `tls`";
            report.warning(redirect_to_https.place.clone(), message);
        }
        listeners.push(Listener {
            address: address.value.clone(),
            mode: mode.as_ref().map(|mode| mode.value.0),
            proxy_protocol: *proxy_protocol,
            scheme: if tls.is_some() { Scheme::Https } else { scheme.value },
            trusted_proxies: trusted_proxies.clone(),
            http2: http2.unwrap_or(tls.is_some()),
            tls,
            redirect_to_https: redirect_to_https.value,
            is_optional: false,
        });
    }
    listeners
}

/// Whether two listeners would accept the same connections: their addresses are equal, or one has all addresses and the
/// same port. With port 0 the system chooses.
fn overlap(one: &ListenAddress, other: &ListenAddress) -> bool {
    use ListenAddress::{Any, Tcp};
    match (one, other) {
        (Any(port), Any(other)) => port == other && *port != 0,
        (Any(port), Tcp(address)) | (Tcp(address), Any(port)) => *port == address.port() && *port != 0,
        (Tcp(one), Tcp(other)) => {
            // `[::]` takes IPv4 as well.
            let takes = |all: &SocketAddr, one: &SocketAddr| {
                all.ip().is_unspecified() && (all.is_ipv6() || one.is_ipv4())
            };
            let same = one.ip() == other.ip() || takes(one, other) || takes(other, one);
            same && one.port() == other.port() && one.port() != 0
        }
        _ => one == other,
    }
}

fn is_everyone(network: &Network) -> bool {
    matches!(network, Network::Ip { bits: 0, .. })
}

fn routes(
    file: &File,
    pools: &[&At<PoolName>],
    configured: &[PoolConfig],
    report: &mut Report,
) -> Vec<Route> {
    if file.route.is_empty() {
        let pool = pools.first().map_or("app", |name| &name.value.0);
        let help = match pools {
            [] => "add [pool.app] with backends = [\"http://127.0.0.1:8000\"] and [[route]] with pool = \"app\", or give --backend"
                .to_owned(),
            _ => format!("add [[route]] with pool = {pool:?}"),
        };
        report.missing(None, "there is no route", help);
    }
    let find = |name: &At<PoolName>, report: &mut Report| {
        let known = pools.iter().position(|pool| pool.value == name.value).map(PoolId::at);
        if known.is_none() {
            let names: Vec<&str> = pools.iter().map(|pool| pool.value.0.as_str()).collect();
            let error =
                report.error(name.place.clone(), format!("there is no pool called `{}`", name.value.0));
            error.help = Some(match (closest(&name.value.0, &names), &names[..]) {
                (Some(meant), _) => format!("did you mean \"{meant}\"?"),
                (None, []) => {
                    format!("add [pool.{}] with backends = [\"http://127.0.0.1:8000\"]", name.value.0)
                }
                (None, names) => format!("pools: {}", names.join(", ")),
            });
        }
        known
    };
    let mut made: Vec<(Route, &At<RouteSettings>)> = file
        .route
        .iter()
        .filter_map(|settings| route(settings, &file.cache, &find, report).map(|route| (route, settings)))
        .collect();
    if !file.forwarded.underscores {
        // No backend gets a field with such a name.
        let rules = made.iter_mut().filter_map(|(route, _)| route.forward_mut()?.cache.as_mut());
        rules.for_each(|rule| rule.policy.harmless_fields.push(Glob::new("*_*")));
    }
    if made.len() == file.route.len() {
        warn_of_unused(&made, pools, report);
        warn_of_unreachable(&made, report);
        warn_of_unnamed_files(&made, file, report);
        warn_of_ungathered(&made, configured, report);
        warn_of_removed_cookies(&made, report);
        warn_of_lost_cookies(&made, report);
    }
    made.into_iter().map(|(route, _)| route).collect()
}

/// On a route with two pools, a session sticks to a backend of each: one cookie cannot name both.
fn check_sticky_cookies(
    routes: &[Route],
    names: &[&At<PoolName>],
    pools: &[PoolConfig],
    report: &mut Report,
) {
    let cookie = |pool: PoolId| Some(pools[pool.place()].sticky.as_ref()?.cookie.as_str());
    let both = routes.iter().filter_map(|route| {
        let Forward { pool, unsafe_pool, .. } = route.forward()?;
        Some((*pool, unsafe_pool.filter(|other| other != pool)?))
    });
    for (pool, other) in both.collect::<BTreeSet<_>>() {
        if let Some(shared) = cookie(pool).filter(|cookie_of_pool| cookie(other) == Some(cookie_of_pool)) {
            let message = format!(
                "sessions of the pools `{}` and `{}`, which have a route in common, would be in one cookie, {shared}",
                pools[pool.place()].name,
                pools[other.place()].name
            );
            let help = format!("give one of them another: sticky = {{ cookie = \"{shared}_2\" }}");
            report.error(names[other.place()].place.clone(), message).help = Some(help);
        }
    }
}

/// Cookies of sticky sessions do not make requests bypass the cache, and are never part of a key.
fn overlook_sticky_cookies(route: &mut Route, pools: &[PoolConfig]) {
    if let Some(Forward { pool, unsafe_pool, cache: Some(rule) }) = route.forward_mut() {
        let used = [Some(*pool), *unsafe_pool].into_iter().flatten();
        let sticky = used.filter_map(|pool| pools[pool.place()].sticky.as_ref());
        rule.policy.ignored_cookies.extend(sticky.map(|sticky| Glob::new(sticky.cookie.as_str())));
    }
}

/// The file for what is stored. With a shared tier, a purge that other nodes made meanwhile would be missed.
fn snapshot(store: &StoreSettings, report: &mut Report) -> Option<PathBuf> {
    let path = store.snapshot.as_ref()?;
    if store.shared.is_some() {
        let message = "`snapshot` has no effect with a shared tier, which has the responses after a restart";
        report.warning(path.place.clone(), message);
        return None;
    }
    Some(path.value.to_path())
}

/// Each pool needs its own skills file: two pools with one file would overwrite each other's skills.
fn check_skills_files(file: &File, pools: &[PoolConfig], report: &mut Report) {
    for (at, (_, settings)) in file.pool.0.iter().enumerate() {
        let Some(path) = &pools[at].skills_file else { continue };
        let other = pools[..at].iter().find(|other| other.skills_file.as_ref() == Some(path));
        let place = settings.resume.value.skills_file.as_ref().map(|path| path.place.clone());
        if let (Some(other), Some(place)) = (other, place) {
            let message = format!("the skills of the pool `{}` are kept in this file already", other.name);
            report.error(place, message).help = Some("each pool needs a file of its own".to_owned());
        }
    }
}

fn warn_of_unused(routes: &[(Route, &At<RouteSettings>)], pools: &[&At<PoolName>], report: &mut Report) {
    for (place, name) in pools.iter().enumerate() {
        let at = PoolId::at(place);
        let uses = |route: &Route| {
            route.forward().is_some_and(|forward| forward.pool == at || forward.unsafe_pool == Some(at))
        };
        if !routes.is_empty() && !routes.iter().any(|(route, _)| uses(route)) {
            report.warning(name.place.clone(), format!("no route uses the pool `{}`", name.value.0));
        }
    }
}

/// Warns of request bodies that are not gathered although a route says so.
fn warn_of_ungathered(routes: &[(Route, &At<RouteSettings>)], pools: &[PoolConfig], report: &mut Report) {
    for (route, settings) in routes {
        let (Some(forward), Some(true)) = (route.forward(), route.gather) else { continue };
        for pool in std::iter::once(forward.pool).chain(forward.unsafe_pool) {
            let pool = &pools[pool.place()];
            let Some(backend) = pool.backends.iter().find(|backend| backend.address.is_http2()) else {
                continue;
            };
            let message = format!(
                "`gather` has no effect with the pool `{}`: bodies for a pool with a backend at an h2:// address stream ({})",
                pool.name, backend.address
            );
            let warning = report.warning(settings.place.clone(), message);
            let help =
                "leave `gather` out here, or give the pool only backends at http:// or https:// addresses";
            warning.help = Some(help.to_owned());
        }
    }
}

/// Warns if only one side of `X-Accel-Redirect` is configured.
fn warn_of_unnamed_files(routes: &[(Route, &At<RouteSettings>)], file: &File, report: &mut Report) {
    let internal = routes.iter().find(|(_, settings)| settings.value.internal.value);
    let leads = file.pool.0.iter().find(|(_, pool)| pool.x_accel_redirect.value);
    match (internal, leads) {
        (Some((_, settings)), None) => {
            let place = settings.value.internal.place.clone();
            let warning = report.warning(place, "no pool may lead to this internal route");
            warning.help = Some("x_accel_redirect = true in a pool".to_owned());
        }
        (None, Some((_, pool))) => {
            let place = pool.x_accel_redirect.place.clone();
            let warning = report.warning(place, "`x_accel_redirect` leads to no file: no route is internal");
            warning.help = Some("internal = true in a route with `files`".to_owned());
        }
        _ => {}
    }
}

fn warn_of_unreachable(routes: &[(Route, &At<RouteSettings>)], report: &mut Report) {
    for (at, (route, settings)) in routes.iter().enumerate() {
        let Some((first, _)) =
            routes[..at].iter().enumerate().find(|(_, (earlier, _))| earlier.covers(route))
        else {
            continue;
        };
        let message = format!("route {} is never used: route {} takes all its requests", at + 1, first + 1);
        let warning = report.warning(settings.place.clone(), message);
        warning.also = routes[first]
            .1
            .place
            .clone()
            .map(|place| (place, "the first route that matches counts".to_owned()));
    }
}

fn check_cache(file: &File, report: &mut Report) {
    let memory = file.cache.store.memory.size();
    let all = file.route.iter().filter_map(|route| match &route.value.cache {
        At { value: crate::file::CacheChoice::Rules(rules), place } => Some((&**rules, place.clone())),
        _ => None,
    });
    for (rules, place) in std::iter::once((&file.cache.rules, None)).chain(all) {
        if matches!(rules.ttl, Some(ForcedTtl::All(_))) && rules.default_ttl.is_some() {
            let message = "`default_ttl` has no effect beside `ttl`, which overrides the backend";
            report.warning(place.clone(), message);
        }
        warn_of_names(rules, &place, report);
        warn_of_shared(rules, &place, report);
        let is_cookie = |name: &FieldName| name.as_str().eq_ignore_ascii_case("cookie");
        if file.cache.store.profile == Profile::Safe && rules.key_fields.iter().flatten().any(is_cookie) {
            report
                .error(place.clone(), "`key_fields` names Cookie, and requests with cookies bypass the cache")
                .help = Some("name the cookies that make a difference: key_cookies = [\"theme\"]".to_owned());
        }
        let rules = rules.clone().over(&file.cache.rules);
        if let (Some(min), Some(max)) = (rules.min_ttl, rules.max_ttl)
            && min > max
        {
            report.error(place.clone(), "`min_ttl` is more than `max_ttl`");
        }
        if rules.max_object.is_some_and(|largest| largest > memory) {
            report.warning(place, format!("`max_object` is more than the whole cache may hold, {memory}"));
        }
    }
}

/// Checks that the settings of the admin interface do not admit too many callers.
fn check_callers(admin: &Admin, report: &mut Report) {
    let on_tcp = admin.listen.as_ref().is_some_and(|listen| !matches!(listen, ListenAddress::Unix(_)));
    if on_tcp && (admin.mode.is_some() || admin.group.is_some()) {
        report.error(None, "[admin] has a `mode` or a `group`, which only a Unix socket has");
    }
    if let Some(mode) = admin.mode.filter(|mode| mode.0 & 0o007 != 0) {
        let message =
            format!("[admin] mode = \"{:04o}\" lets every user of the machine purge and reload", mode.0);
        report.error(None, message).help =
            Some("give it to a group: mode = \"0660\", group = \"adm\"".to_owned());
    }
    if admin.read_token.is_some() && admin.read_token == admin.token {
        report.error(None, "[admin] read_token is the `token`, which may do everything");
    } else if admin.read_token.is_some() && !on_tcp {
        report.warning(None, "[admin] read_token has no effect: whoever may open the Unix socket needs none");
    }
}

fn check_others(file: &File, report: &mut Report) {
    let tcp = |address: &ListenAddress| !matches!(address, ListenAddress::Unix(_));
    check_callers(&file.admin, report);
    if let Some(listen) = &file.admin.listen {
        if tcp(listen) && file.admin.token.is_none() && file.admin.read_token.is_none() {
            let message = format!(
                "the admin interface on {listen} needs a `token`: whoever reaches it rules the proxy"
            );
            report.error(None, message).help = Some(
                "give it in --admin-token-file FILE, the environment variable SANDARAC_TOKEN or [admin] token; or \
                 listen on a Unix socket, which only its owner may open"
                    .to_owned(),
            );
        }
        let clients = file.listen.iter().filter_map(|listener| listener.value.address.as_ref());
        let free_port = matches!(listen, ListenAddress::Tcp(address) if address.port() == 0);
        if let Some(same) =
            clients.into_iter().find(|address| address.value == *listen).filter(|_| !free_port)
        {
            let message = format!("{listen} is listened on for clients and as the admin interface");
            report.error(same.place.clone(), message);
        }
    }
    if let Some(network) = file.purge.allow.iter().find(|network| is_everyone(network)) {
        report.warning(None, format!("[purge] allow holds {network}: anyone can empty the cache"));
    } else {
        warn_of_purging_proxies(file, report);
    }
    if file.limits.target.get() > file.limits.head.get() {
        report.error(None, "[limits] target is more than head, of which it is a part");
    }
}

/// A purge that a proxy passes on comes from the proxy's address.
fn warn_of_purging_proxies(file: &File, report: &mut Report) {
    for At { value: listener, .. } in &file.listen {
        let shared = file.purge.allow.iter().find_map(|allowed| {
            listener.trusted_proxies.iter().find_map(|trusted| allowed.intersection(trusted))
        });
        if let (Some(network), Some(address)) = (shared, &listener.address) {
            let message = format!(
                "[purge] allow holds {network}, and so do the trusted_proxies of {}: anyone whose requests that proxy \
                 passes on can purge",
                address.value
            );
            report.warning(address.place.clone(), message);
        }
    }
}
