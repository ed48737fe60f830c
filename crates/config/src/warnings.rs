//! Warns of settings that are read otherwise than their authors probably meant.

use sandarac_message::caching::CookieRule;
use sandarac_message::target::Scheme;
use sandarac_policy::Route;

use crate::config::Listener;
use crate::file::{File, RouteSettings};
use crate::report::{At, Place, Report};
use crate::rules::{ForcedTtl, Pattern, RuleSettings};
use crate::value::Text;

/// Warns of names that are regular expressions, and of cookies that are both to bypass the cache and to be ignored.
pub(crate) fn warn_of_names(rules: &RuleSettings, place: &Option<Place>, report: &mut Report) {
    let text = |pattern: &Pattern| String::from_utf8_lossy(pattern.0.text()).into_owned();
    let ignored = rules.ignore_cookies.iter().flatten();
    let named = [&rules.ignore_query, &rules.key_cookies].into_iter().flatten().flatten();
    for name in ignored.clone().chain(named).map(text) {
        let is_expression = name.starts_with('^') || name.ends_with('$') || name.contains(".*");
        if is_expression {
            let message =
                format!("{name:?} is taken literally except for stars: names are no regular expressions");
            let plain = name.trim_start_matches('^').trim_end_matches('$').replace(".*", "*");
            report.warning(place.clone(), message).help = Some(format!("did you mean {plain:?}?"));
        }
    }
    if let Some(CookieRule::Named(bypassing)) = rules.bypass_cookies.as_ref().map(|rule| &rule.0) {
        for name in ignored.filter(|pattern| bypassing.contains(&pattern.0)).map(text) {
            let message = format!(
                "`{name}` is in `bypass_cookies` and in `ignore_cookies`: requests with it bypass the cache"
            );
            report.warning(place.clone(), message);
        }
    }
}

/// Warns of settings by which responses that are for one visitor are shared.
pub(crate) fn warn_of_shared(rules: &RuleSettings, place: &Option<Place>, report: &mut Report) {
    if rules.harmless_fields.iter().flatten().any(|name| name.text() == "*") {
        let message = "every field counts as harmless: an application that knows its users by a key or by a field of a login proxy \
                       has their pages shared";
        report.warning(place.clone(), message);
    }
    if let Some(ForcedTtl::ByStatus(statuses, true)) = &rules.ttl {
        for (status, _) in statuses.0.iter().filter(|(status, _)| status.value.0 < 400) {
            let message = format!(
                "responses with status {} are shared although they say `private` or `no-store`",
                status.value.0
            );
            report.warning(status.place.clone(), message);
        }
    }
}

/// Warns of routes that remove `Cookie` from requests that have bypassed the cache because of it.
pub(crate) fn warn_of_removed_cookies(routes: &[(Route, &At<RouteSettings>)], report: &mut Report) {
    for (route, settings) in routes {
        let Some(rule) = route.forward().and_then(|forward| forward.cache.as_ref()) else { continue };
        let ignores_all = rule.policy.ignored_cookies.iter().any(|glob| glob.text() == b"*");
        if rule.policy.bypass_cookies != CookieRule::Any || ignores_all {
            continue;
        }
        let removed = &settings.value.request.remove;
        if let Some(name) = removed.iter().find(|name| name.value.as_str().eq_ignore_ascii_case("cookie")) {
            let message =
                "requests with cookies bypass the cache all the same: this edits what the backend gets";
            let warning = report.warning(name.place.clone(), message);
            warning.help = Some("cache = { ignore_cookies = [\"*\"] }".to_owned());
        }
    }
}

/// Warns of routes that store pages without the cookies that they set: what is in the page, such as the token of a form,
/// belongs to the session of the visitor who came first.
pub(crate) fn warn_of_lost_cookies(routes: &[(Route, &At<RouteSettings>)], report: &mut Report) {
    for (route, settings) in routes {
        if route.cache_rule().is_none() {
            continue;
        }
        let removed = &settings.value.stored_response.remove;
        if let Some(name) = removed.iter().find(|name| name.value.as_str().eq_ignore_ascii_case("set-cookie"))
        {
            let message = "pages that set a cookie are stored without it, and the first visitor does not get it either: that is \
                           right only where no page has a form with a token, and nobody logs in";
            report.warning(name.place.clone(), message);
        }
    }
}

/// Warns of settings for https where no client can come by it: neither a listener nor a proxy in front has TLS.
pub(crate) fn warn_of_missing_https(file: &File, listeners: &[Listener], report: &mut Report) {
    let may_be_https = |listener: &Listener| {
        listener.scheme == Scheme::Https || !listener.trusted_proxies.is_empty() || listener.proxy_protocol
    };
    if listeners.iter().any(may_be_https) {
        return;
    }
    let redirects = file.listen.iter().map(|listen| &listen.value.redirect_to_https);
    if let Some(redirects) = redirects.into_iter().find(|redirects| redirects.value) {
        let message = "`redirect_to_https` leads to nothing: no listener has `tls`";
        report.warning(redirects.place.clone(), message);
    }
    if let Some(hsts) = file.route.iter().find_map(|route| route.value.hsts.as_ref()) {
        let message = "`hsts` has no effect: no client comes by https, because no listener has `tls`";
        report.warning(hsts.place.clone(), message);
    }
}
