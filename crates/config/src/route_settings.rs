//! Conversion of a route's settings to a [`Route`].

use sandarac_message::Name;
use sandarac_message::glob::Glob;
use sandarac_policy::{
    Action, CacheRule, DigestOnce, FixedAnswer, Forward, Match, PoolId, Redirect, ResponseEdits, Route,
};
use std::sync::Arc;

use crate::compress::{ask_for_one_form, compress_rule};
use crate::edits::{EditSettings, edits, refusal, warn_of_variables};
use crate::field::FieldName;
use crate::file::{AnswerSettings, CacheChoice, RedirectSettings, RouteSettings};
use crate::files::{file_rule, warn_of_settings_without_files};
use crate::fragments::{ask_for_plain_bodies, check_fragments};
use crate::pool::PoolName;
use crate::report::{At, Place, Report};
use crate::rules::CacheSettings;
use crate::shared::shared_use;
use crate::template::place_in;

/// The route that `settings` describe; `None` on an error. `find` looks up a pool and reports a missing one.
pub(crate) fn route(
    settings: &At<RouteSettings>,
    cache: &CacheSettings,
    find: &impl Fn(&At<PoolName>, &mut Report) -> Option<PoolId>,
    report: &mut Report,
) -> Option<Route> {
    let At { value: route, place } = settings;
    let forward = |pool: PoolId, report: &mut Report| Forward {
        pool,
        unsafe_pool: route.unsafe_pool.as_ref().and_then(|pool| find(pool, report)),
        cache: cache_rule(route, cache, report).map(Box::new),
    };
    let action = match (&route.pool, &route.answer, &route.redirect, &route.files) {
        (Some(pool), None, None, None) => {
            find(pool, report).map(|pool| Action::Forward(forward(pool, report)))
        }
        (None, Some(settings), None, None) => Some(Action::Answer(answer(settings, report))),
        (None, None, Some(settings), None) => redirect(settings, report).map(Action::Redirect),
        (None, None, None, Some(_)) => {
            file_rule(route, find, report).and_then(|(rule, pool)| match (route.internal.value, pool) {
                (false, pool) => Some(Action::Files {
                    rule: Arc::new(rule),
                    fallback: pool.map(|pool| forward(pool, report)),
                }),
                (true, None) => Some(Action::Internal(Arc::new(rule))),
                (true, Some(_)) => {
                    let message = "an internal route has no pool: a pool leads to it";
                    report.error(route.internal.place.clone(), message);
                    None
                }
            })
        }
        (None, None, None, None) => {
            report.missing(
                place.clone(),
                "a route needs a `pool`, `files`, `php`, an `answer` or a `redirect`",
                "pool = \"app\"",
            );
            None
        }
        _ => {
            let places = [
                route.pool.as_ref().map(|at| at.place.clone()),
                route.answer.as_ref().map(|at| at.place.clone()),
                route.redirect.as_ref().map(|at| at.place.clone()),
                route.files.as_ref().map(|at| at.place.clone()),
            ];
            let mut places: Vec<_> = places.into_iter().flatten().flatten().collect();
            places.sort_by_key(|place| place.start);
            let message = "a route has only one of `pool`, `files`, `answer` and `redirect`";
            let error = report.error(places.get(1).cloned(), message);
            error.also = places.first().cloned().map(|place| (place, "the other".to_owned()));
            if let (Some(pool), Some(_)) = (&route.pool, &route.files) {
                let help =
                    format!("for requests without a file: try = [\"{{path}}\", \"pool:{}\"]", pool.value.0);
                error.help = Some(help);
            }
            None
        }
    };
    if route.files.is_none() {
        warn_of_settings_without_files(route, report);
        if route.internal.value {
            let message = "only a route with `files` can be internal";
            report.error(route.internal.place.clone(), message);
        }
    }
    let request = edits(&route.request, true, report);
    let response = ResponseEdits {
        all: edits(&route.response, false, report),
        stored: edits(&route.stored_response, false, report),
        passed: edits(&route.passed_response, false, report),
    };
    let upgrade = upgrades(route, report);
    let has_files = matches!(action, Some(Action::Files { .. } | Action::Internal(_)));
    if let Some(
        Action::Files { fallback: None, .. } | Action::Internal(_) | Action::Answer(_) | Action::Redirect(_),
    ) = action
    {
        warn_of_idle_settings(settings, !request.is_empty(), &response, has_files, report);
    }
    let compress = compress_rule(&route.compress, report).map(Box::new);
    check_fragments(&route.fragments, &route.compress, report);
    let hsts = route.hsts.as_ref().map(|hsts| hsts.value.field_value());
    let matches = route.r#match.iter().map(|matcher| Match {
        hosts: matcher.0.host.clone(),
        paths: matcher.0.path.clone(),
        methods: matcher.0.method.clone(),
    });
    let mut made = Route {
        matches: matches.collect(),
        action: action?,
        request,
        response,
        compress,
        fragments: route.fragments.value.0,
        hsts,
        upgrade,
        connect: route.connect,
        paths: route.paths,
        gather: route.gather,
        digest: DigestOnce::default(),
    };
    let written = made.request.of_one_request().map(Box::from).collect();
    // The backend does not get what the client sent.
    let replaced = made.request.remove.iter().chain(made.request.set.iter().map(|(name, _)| name));
    let replaced: Vec<_> = replaced.map(|name| Glob::new(name.to_ascii_lowercase())).collect();
    if let Some(Forward { cache: Some(rule), .. }) = made.forward_mut() {
        rule.policy.vary.written = written;
        rule.policy.harmless_fields.extend(replaced);
        ask_for_one_form(&route.compress.value, rule);
        ask_for_plain_bodies(route.fragments.value, rule);
        refuse_fields_of_cache(&route.request, report);
        warn_of_edits_for_all(&route.response, has_files, report);
    }
    if made.hsts.is_some() && made.forward().is_some() {
        // Ours is in place of it, and a response has one only (RFC 6797 §7.1).
        made.response.all.remove.push(b"Strict-Transport-Security"[..].into());
    }
    Some(made)
}

/// The cache rule of a route with a pool; `None` if it bypasses the cache.
fn cache_rule(route: &RouteSettings, cache: &CacheSettings, report: &mut Report) -> Option<CacheRule> {
    let is_cached = route.cache.value != CacheChoice::Pass;
    let shared = shared_use(&route.shared, is_cached, cache.store.shared.is_some(), report);
    match &route.cache.value {
        CacheChoice::Pass => None,
        CacheChoice::Lookup => Some(cache.rules.rule(&cache.store, shared)),
        CacheChoice::Rules(rules) => {
            Some(rules.as_ref().clone().over(&cache.rules).rule(&cache.store, shared))
        }
    }
}

/// Warns of settings without effect on a route that forwards nothing.
fn warn_of_idle_settings(
    settings: &At<RouteSettings>,
    request: bool,
    response: &ResponseEdits,
    has_files: bool,
    report: &mut Report,
) {
    let At { value: route, place } = settings;
    let idle = [
        ("unsafe_pool", route.unsafe_pool.is_some()),
        ("cache", route.cache.place.is_some()),
        ("shared", route.shared.is_some()),
        ("request", request),
        ("response", !response.all.is_empty() && !has_files),
        ("stored_response", !response.stored.is_empty()),
        ("passed_response", !response.passed.is_empty()),
        ("compress", route.compress.place.is_some()),
        ("fragments", route.fragments.value.0.is_some()),
        ("connect", route.connect),
        ("gather", route.gather.is_some()),
        ("upgrade", route.upgrade.iter().any(|protocol| protocol.place.is_some())),
    ];
    for (name, _) in idle.into_iter().filter(|(_, written)| *written) {
        report.warning(place.clone(), format!("`{name}` has no effect on a route without a `pool`"));
    }
}

/// Fields by which a request asks for something other than the whole response, or for its validation.
fn refuse_fields_of_cache(request: &EditSettings, report: &mut Report) {
    let written =
        request.set.0.iter().map(|(name, _)| name).chain(request.add.0.iter().map(|(name, _)| name));
    for name in written {
        let why = match Name::of(name.value.as_str().as_bytes()) {
            Name::Range | Name::IfRange => "a part would be stored in place of the whole",
            Name::IfNoneMatch | Name::IfModifiedSince | Name::IfMatch | Name::IfUnmodifiedSince => {
                "a 304 or 412 to it would be taken for the answer to the cache's own condition"
            }
            _ => continue,
        };
        let message = format!("`{}` cannot be set on a route with a cache: {why}", name.value.as_str());
        report.error(name.place.clone(), message).help =
            Some("cache = \"pass\" on this route, if none of its responses should be stored".to_owned());
    }
}

/// Warns of edits meant for shared pages that also apply to personal ones.
fn warn_of_edits_for_all(response: &EditSettings, has_files: bool, report: &mut Report) {
    let help = match has_files {
        true => {
            "it applies to the responses of the pool in `try` too; a route for the files alone can set it"
        }
        false => "`stored_response` edits only what is stored",
    };
    let mut warn = |name: &At<FieldName>, what: &str| {
        let warning =
            report.warning(name.place.clone(), format!("{what}, of responses that are not stored, too"));
        warning.help = Some(help.to_owned());
    };
    let is = |name: &At<FieldName>, other: &str| name.value.as_str().eq_ignore_ascii_case(other);
    response.remove.iter().filter(|name| is(name, "Set-Cookie")).for_each(|name| {
        warn(name, "this removes cookies that log visitors in");
    });
    for (name, value) in &response.set.0 {
        if is(name, "Cache-Control")
            && !value.as_str().contains("private")
            && !value.as_str().contains("no-store")
        {
            warn(name, "this lets browsers and other caches keep personal pages");
        }
    }
}

fn upgrades(route: &RouteSettings, report: &mut Report) -> Vec<String> {
    let mut protocols = Vec::new();
    for protocol in &route.upgrade {
        let name = protocol.value.as_str().to_ascii_lowercase();
        if name == "h2c" {
            let error = report.error(protocol.place.clone(), "h2c cannot be allowed");
            error.help = Some("its requests would bypass all rules of this file".to_owned());
        }
        protocols.push(name);
    }
    protocols
}

fn answer(settings: &At<AnswerSettings>, report: &mut Report) -> FixedAnswer {
    let At { value: AnswerSettings { status, fields, body }, place } = settings;
    let status = status.get() as u16;
    if matches!(status, 204 | 205 | 304) && !body.is_empty() {
        report.error(place.clone(), format!("an answer with status {status} has no body (RFC 9110 §15)"));
    }
    warn_of_places(body, place, report);
    let mut named = Vec::new();
    for (name, value) in &fields.0 {
        warn_of_places(value.as_str(), &name.place, report);
        let bytes = name.value.as_str().as_bytes();
        if let Some(why) = refusal(Name::of(bytes), false, true) {
            report.error(name.place.clone(), format!("`{}` cannot be given: {why}", name.value.as_str()));
        }
        named.push((Box::from(bytes), Box::from(value.as_str().as_bytes())));
    }
    let typed = fields.0.iter().any(|(name, _)| name.value.as_str().eq_ignore_ascii_case("Content-Type"));
    if !typed && !body.is_empty() {
        named.push((b"Content-Type"[..].into(), b"text/plain; charset=utf-8"[..].into()));
    }
    FixedAnswer { status, fields: named, body: body.clone() }
}

/// Braces are common in bodies: the warning covers only words that are templates elsewhere.
fn warn_of_places(text: &str, at: &Option<Place>, report: &mut Report) {
    if let Some(place) = place_in(text) {
        let message = format!("{place} is not replaced here: an answer is the same for all requests");
        report.warning(at.clone(), message);
    }
}

fn redirect(settings: &At<RedirectSettings>, report: &mut Report) -> Option<Redirect> {
    let At { value: RedirectSettings { to, status }, place } = settings;
    match to {
        Some(to) => {
            warn_of_variables(&to.to_string(), place, report);
            Some(Redirect { status: status.0, to: to.clone() })
        }
        None => {
            report.missing(
                place.clone(),
                "a redirect needs a `to`",
                "redirect = { to = \"https://{host}{target}\" }",
            );
            None
        }
    }
}
