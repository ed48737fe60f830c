//! Cookies that make requests bypass the cache, and the sentences of `check` about them.

use crate::{BASE, load};

/// The lines that `check` prints about cookies, for these rules.
fn explained(rules: &str) -> String {
    let config = load(&format!("{BASE}[[route]]\npool = \"app\"\ncache = {{ {rules} }}\n"));
    let text = sandarac_config::explain(&config);
    let about = |line: &&str| line.contains("cookie") || line.contains("Authorization");
    text.lines().filter(about).map(str::trim).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_check_says_of_cookies_is_true() {
    for (rules, expected) in [
        (
            "ignore_cookies = [\"*\"], bypass_cookies = [\"session\"]",
            "requests with a cookie session bypass it, and so do those with Authorization\n\
             other cookies are not forwarded; of the usual ones of sessions, PHPSESSID, JSESSIONID, ASP.NET_SessionId, \
             connect.sid, sessionid, _session_id and laravel_session are not named\nignored in Vary: cookie",
        ),
        (
            "ignore_cookies = [\"wp-settings-*\"], bypass_cookies = [\"wp-*\"]",
            "requests with a cookie wp-* bypass it, and so do those with Authorization\n\
             other cookies are not forwarded; of the usual ones of sessions, PHPSESSID, JSESSIONID, ASP.NET_SessionId, \
             connect.sid, sessionid, _session_id and laravel_session are not named\nignored cookies: wp-settings-*\nignored in Vary: cookie",
        ),
        (
            "ignore_cookies = [\"*\"]",
            "whatever cookies a request has\nrequests with Authorization bypass it\n\
             ignored cookies: *\nignored in Vary: cookie",
        ),
        (
            "bypass_cookies = \"none\"",
            "whatever cookies a request has\nrequests with Authorization bypass it\n\
             ignored cookies: *\nignored in Vary: cookie",
        ),
        (
            "bypass_cookies = []",
            "whatever cookies a request has\nrequests with Authorization bypass it\ncookies are not forwarded\n\
             ignored in Vary: cookie",
        ),
        (
            "bypass_cookies = \"none\", bypass_authorization = false",
            "whatever cookies a request has\nignored cookies: *\nignored in Vary: cookie",
        ),
    ] {
        assert_eq!(explained(rules), expected, "{rules}");
    }
}

/// Regression: visitors who were logged in got the page of the others.
#[test]
fn a_cookie_that_is_named_to_bypass_is_not_ignored() {
    use sandarac_message::glob::Glob;
    for (rules, ignored) in [
        ("ignore_cookies = [\"*\"], bypass_cookies = [\"session\"]", &[][..]),
        ("ignore_cookies = [\"s*\", \"_ga\"], bypass_cookies = [\"session*\", \"cart\"]", &["_ga"]),
        ("ignore_cookies = [\"wp-settings-*\"], bypass_cookies = [\"wp-*\"]", &["wp-settings-*"]),
        ("ignore_cookies = [\"*\"], bypass_cookies = [\"session\"], key_cookies = [\"lang\"]", &["lang"]),
        ("ignore_cookies = [\"*\"]", &["*"]),
    ] {
        let config = load(&format!("{BASE}[[route]]\npool = \"app\"\ncache = {{ {rules} }}\n"));
        let rule = config.routes.all()[0].forward().unwrap().cache.as_ref().unwrap();
        let ignored: Vec<_> = ignored.iter().map(Glob::new).collect();
        assert_eq!(rule.policy.ignored_cookies, ignored, "{rules}");
    }
}
