//! Request fields that may say who asks, or select a form of the page.

use sandarac_test_support::{Gate, Origin, Reply, get, head, reply, within};

use super::with;
use crate::{before, labelled, numbered, sandarac, site};

/// Regression: an API that knows its users by X-API-Key served one user's balance to another, and to strangers.
#[test]
fn what_a_key_selects_goes_to_its_owner_alone() {
    let (proxy, origin) = before(|request| {
        reply(200).cache("max-age=60").body(format!("balance of {:?}", request.field("x-api-key")))
    });
    let ask = |key: &str| proxy.exchange(&with("/balance", &[("X-API-Key", key)]));
    assert_eq!(ask("ann").text(), "balance of Some(\"ann\")");
    let bob = ask("bob");
    assert_eq!(bob.text(), "balance of Some(\"bob\")");
    assert_eq!(bob.cache_status(), "sandarac; fwd=bypass; detail=unknown-field");
    assert_eq!(proxy.get("/balance").text(), "balance of None");
    // The stranger's response is nothing for those with a key.
    assert_eq!(proxy.get("/balance").text(), "balance of None");
    assert_eq!(origin.count(), 3);
    assert_eq!(ask("ann").text(), "balance of Some(\"ann\")");
    assert_eq!(origin.count(), 4);
}

#[test]
fn what_is_said_to_be_for_all_is_shared_whatever_fields_a_request_has() {
    for (field, value) in [
        ("Cache-Control", "public, max-age=60"),
        ("Cache-Control", "s-maxage=60"),
        ("CDN-Cache-Control", "max-age=60"),
        ("Surrogate-Control", "max-age=60"),
    ] {
        let origin = Origin::new(numbered(move |_| reply(200).with(field, value)));
        let proxy = sandarac().before(&origin).start();
        let first = proxy.exchange(&with("/", &[("X-App-Version", "3")]));
        assert_eq!(first.text(), "1", "{value}");
        assert!(first.cache_status().contains("; stored; detail=unknown-field"), "{}", first.cache_status());
        for fields in [&[][..], &[("X-App-Version", "4")], &[("X-App-Version", "3"), ("X-Other", "x")]] {
            let again = proxy.exchange(&with("/", fields));
            assert!(again.is_hit() && again.text() == "1", "{value}: {}", again.cache_status());
        }
    }
}

/// Behind a carrier's or an office's gateway all requests have a field. Pictures and scripts that others fetched are theirs
/// too; what they fetch themselves may be a user's own.
#[test]
fn assets_that_were_fetched_without_such_a_field_are_for_all() {
    let origin = Origin::new(numbered(|request| match request.path() {
        "/style" => reply(200).with("Content-Type", "text/css; charset=utf-8").cache("max-age=60"),
        "/logo" => reply(200).with("Content-Type", "image/png"),
        _ => reply(200).with("Content-Type", "text/html").cache("max-age=60"),
    }));
    let proxy = sandarac().before(&origin).start();
    let ask = |target: &str| proxy.exchange(&with(target, &[("X-Msisdn", "49170")])).text();
    assert_eq!([ask("/style"), proxy.get("/style").text(), ask("/style")], ["1", "2", "2"]);
    assert_eq!([proxy.get("/logo").text(), ask("/logo")], ["3", "4"]);
    assert_eq!([proxy.get("/page").text(), ask("/page")], ["5", "6"]);
}

/// Regression: a user's own picture, fetched with the field of a login proxy, went to everybody.
#[test]
fn a_picture_that_was_fetched_with_such_a_field_is_for_its_owner() {
    let (proxy, _origin) = before(|request| match request.field("x-forwarded-user") {
        Some(user) => reply(200).with("Content-Type", "image/jpeg").cache("max-age=60").body(user),
        None => reply(403),
    });
    assert_eq!(proxy.exchange(&with("/me.jpg", &[("X-Forwarded-User", "ann")])).text(), "ann");
    proxy.get("/me.jpg").expect(403);
    assert_eq!(proxy.exchange(&with("/me.jpg", &[("X-Forwarded-User", "bob")])).text(), "bob");
}

/// Regression: in grace, nobody with such a field fetched, and the page stayed old as long as only they came.
#[test]
fn a_request_with_a_key_does_not_get_what_is_stale_unless_the_backend_fails() {
    let gate = Gate::new();
    let hold = gate.clone();
    let origin = Origin::new(move |request| match request.serial {
        1 => reply(200)
            .cache("public, max-age=0, s-maxage=1, stale-while-revalidate=600")
            .with("Age", "2")
            .body("old"),
        2 => reply(200).cache("no-store").body("new"),
        _ => Reply::none().hold(&hold),
    });
    gate.open();
    let rule = "cache = { stale_if_error = \"1h\" }";
    let proxy = sandarac().config(site(&origin.url(), rule, "")).start();
    assert_eq!(proxy.get("/").text(), "old");
    assert_eq!(proxy.exchange(&with("/", &[("X-App", "1")])).text(), "new");
    let failed = proxy.exchange(&with("/", &[("X-App", "1")]));
    assert_eq!((failed.status, failed.text().as_str()), (200, "old"), "{failed:?}");
}

#[test]
fn a_rule_with_a_ttl_says_that_its_responses_are_for_all() {
    let origin = Origin::new(numbered(|_| reply(200).cache("max-age=1")));
    let proxy = sandarac().config(site(&origin.url(), "cache = { ttl = \"1m\" }", "")).start();
    let ask = |key: &str| proxy.exchange(&with("/", &[("X-API-Key", key)])).text();
    assert_eq!([ask("a"), ask("b")], ["1", "1"]);
}

/// A key may have been what caused it.
#[test]
fn an_error_for_a_request_with_a_key_is_not_stored_whatever_it_says() {
    let (proxy, origin) = before(|request| match request.field("x-api-key") {
        Some(_) => reply(404).cache("public, max-age=60").body("no such thing for you"),
        None => reply(200).cache("public, max-age=60").body("the thing"),
    });
    assert_eq!(proxy.exchange(&with("/", &[("X-API-Key", "a")])).status, 404);
    assert_eq!(proxy.get("/").text(), "the thing");
    // It is for all, so also for those with a key.
    assert_eq!(proxy.exchange(&with("/", &[("X-API-Key", "a")])).text(), "the thing");
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_request_with_a_key_waits_for_nobody_and_nobody_for_it() {
    let (gate, held) = (Gate::new(), Gate::new());
    let (open, hold) = (gate.clone(), held.clone());
    let (proxy, origin) = before(move |request| {
        let answer = reply(200).cache("max-age=60").body(format!("{:?}", request.field("x-api-key")));
        answer.hold(if request.field("x-api-key").is_some() { &hold } else { &open })
    });
    let mut keyed = proxy.connect();
    keyed.send(with("/", &[("X-API-Key", "a")]).to_bytes());
    origin.reached(1);
    let mut plain = proxy.connect();
    plain.send(get("/").to_bytes());
    origin.reached(2);
    let mut other = proxy.connect();
    other.send(with("/", &[("X-API-Key", "b")]).to_bytes());
    origin.reached(3);
    gate.open();
    assert_eq!(plain.response().text(), "None");
    held.open();
    assert_eq!(keyed.response().text(), "Some(\"a\")");
    assert_eq!(other.response().text(), "Some(\"b\")");
    assert_eq!(proxy.get("/").text(), "None");
    assert_eq!(origin.count(), 3);
}

/// Regression: a hundred requests with made-up keys kept all places at the backend, long after their clients had left.
#[test]
fn a_request_with_a_key_ends_with_its_client() {
    let gate = Gate::new();
    let hold = gate.clone();
    let (proxy, origin) = before(move |_| reply(200).cache("max-age=60").hold(&hold));
    for (number, field) in ["X-API-Key", "HX-Request"].iter().enumerate() {
        let mut client = proxy.connect();
        client.send(with("/", &[(field, "a")]).to_bytes());
        origin.reached(number + 1);
        client.reset();
    }
    within("the connections to the backend to be closed", || (origin.open_connections() == 0).then_some(()));
    assert_eq!(crate::stat(&proxy, "fetches_detached"), 0);
    gate.open();
}

/// Its response says nothing of what others get.
#[test]
fn a_request_with_a_key_leaves_no_mark() {
    let gate = Gate::new();
    let hold = gate.clone();
    let (proxy, origin) = before(move |request| match request.field("x-api-key") {
        Some(_) => reply(200).cache("no-store"),
        None => reply(200).cache("max-age=60").hold(&hold),
    });
    proxy.exchange(&with("/", &[("X-API-Key", "a")]));
    let mut waiting: Vec<_> = (0..3).map(|_| proxy.connect()).collect();
    for client in &mut waiting {
        client.send(get("/").to_bytes());
    }
    within("the others to wait", || (crate::stat(&proxy, "coalesced") == 2).then_some(()));
    gate.open();
    for client in &mut waiting {
        client.response().expect(200);
    }
    assert_eq!(origin.count(), 2);
}

/// What is asked for in part or on a condition reaches the application so, like every request that bypasses the cache.
#[test]
fn a_request_with_a_key_keeps_its_conditions_range_method_and_fields() {
    let (proxy, origin) = before(|_| reply(200).cache("max-age=60"));
    proxy.exchange(&with("/a", &[("X-API-Key", "a"), ("If-None-Match", "\"x\"")]));
    assert_eq!(origin.last().field("if-none-match"), Some("\"x\""));
    proxy.exchange(&with("/a", &[("X-API-Key", "a"), ("Range", "bytes=0-1")]));
    assert_eq!(origin.last().field("range"), Some("bytes=0-1"));
    proxy.exchange(&with("/a", &[("X-API-Key", "a"), ("CF-IPCountry", "DE")]));
    assert_eq!(origin.last().field("cf-ipcountry"), Some("DE"));
    proxy.exchange(&head("/a").with("X-API-Key", "a"));
    assert_eq!(origin.last().method, "HEAD");
}

/// Regression: `HX-Request: true` on a page with max-age put the fragment in front of plain visitors.
#[test]
fn a_form_of_a_page_is_not_the_page() {
    let (proxy, origin) = before(|request| {
        let form = if request.field("hx-request").is_some() { "fragment" } else { "page" };
        reply(200).with("Content-Type", "text/html").cache("public, max-age=60").body(form)
    });
    let fragment = || proxy.exchange(&with("/", &[("HX-Request", "true")]));
    assert_eq!(fragment().text(), "fragment");
    assert_eq!(proxy.get("/").text(), "page");
    let told = fragment();
    assert_eq!(told.text(), "fragment");
    assert_eq!(told.cache_status(), "sandarac; fwd=bypass; detail=form-field");
    assert_eq!(proxy.get("/").text(), "page");
    assert_eq!(origin.count(), 3);
}

#[test]
fn a_form_that_vary_names_or_a_rule_keys_is_stored_for_itself() {
    let origin = Origin::new(numbered(|_| reply(200).cache("max-age=60").with("Vary", "HX-Request")));
    let varied = sandarac().before(&origin).start();
    let fragment = with("/", &[("HX-Request", "true")]);
    let texts = [varied.exchange(&fragment), varied.get("/"), varied.exchange(&fragment), varied.get("/")];
    assert_eq!(texts.map(|response| response.text()), ["1", "2", "1", "2"]);

    let origin = Origin::new(numbered(|_| reply(200).cache("max-age=60")));
    let rule = "cache = { key_fields = [\"HX-Request\"] }";
    let keyed = sandarac().config(site(&origin.url(), rule, "")).start();
    let texts = [keyed.exchange(&fragment), keyed.get("/"), keyed.exchange(&fragment), keyed.get("/")];
    assert_eq!(texts.map(|response| response.text()), ["1", "2", "1", "2"]);
}

#[test]
fn x_requested_with_is_a_form_only_from_scripts() {
    let origin = Origin::new(numbered(|_| reply(200).cache("max-age=60")));
    let proxy = sandarac().before(&origin).start();
    let ask = |value: &str| proxy.exchange(&with("/", &[("X-Requested-With", value)])).text();
    assert_eq!(ask("com.android.browser"), "1");
    assert_eq!(ask("XMLHttpRequest"), "2");
    // Applications look for the word anywhere, or only for the field.
    for (number, value) in ["x, XMLHttpRequest", "XMLHttpRequest;x", "fetch", "swup", "1"].iter().enumerate()
    {
        assert_eq!(ask(value), (number + 3).to_string(), "{value}");
    }
    assert_eq!([ask("org.example.app"), proxy.get("/").text()], ["1", "1"]);
}

#[test]
fn fields_that_are_named_harmless_share_and_those_that_are_named_to_bypass_do_not() {
    let origin = Origin::new(numbered(|_| reply(200).cache("max-age=60")));
    let rule = "cache = { harmless_fields = [\"x-acme-*\", \"HX-Request\"], bypass_fields = [\"X-Preview*\", \"DNT\"] }";
    let proxy = sandarac().config(site(&origin.url(), rule, "")).start();
    let ask = |name: &str| proxy.exchange(&with("/", &[(name, "1")]));
    assert_eq!(ask("X-Acme-Build").text(), "1");
    assert_eq!([ask("x-ACME-x").text(), ask("HX-Request").text(), proxy.get("/").text()], ["1", "1", "1"]);
    assert_eq!(ask("X-Preview-Token").cache_parameter("detail").as_deref(), Some("bypass-field"));
    assert_eq!(ask("DNT").cache_parameter("detail").as_deref(), Some("bypass-field"));
    assert_eq!(ask("X-Acme").cache_parameter("detail").as_deref(), Some("unknown-field"));
}

#[test]
fn what_browsers_and_proxies_send_is_no_reason() {
    let origin = Origin::new(numbered(|_| reply(200).cache("max-age=60")));
    let proxy = sandarac().before(&origin).start();
    assert_eq!(proxy.get("/").text(), "1");
    let of_chrome = [
        ("sec-ch-ua", "\"Chromium\";v=\"140\""),
        ("sec-ch-ua-mobile", "?0"),
        ("sec-ch-ua-platform", "\"Linux\""),
        ("Upgrade-Insecure-Requests", "1"),
        ("User-Agent", "Mozilla/5.0"),
        ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8"),
        ("Sec-Fetch-Site", "none"),
        ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-User", "?1"),
        ("Sec-Fetch-Dest", "document"),
        ("Accept-Language", "de"),
        ("Priority", "u=0, i"),
        ("DNT", "1"),
        ("Origin", "https://a.example"),
        ("Referer", "https://a.example/"),
        ("CF-Ray", "1"),
        ("CF-Connecting-IP", "192.0.2.1"),
        ("traceparent", "00-1-1-00"),
        ("some_name", "no application gets it"),
    ];
    assert!(proxy.exchange(&with("/", &of_chrome)).is_hit());
}

/// Applications that get fields with underscores know users by them too.
#[test]
fn underscores_are_harmless_only_while_nobody_gets_them() {
    let origin = Origin::new(numbered(|_| reply(200).cache("max-age=60")));
    let proxy = sandarac().config(site(&origin.url(), "", "[forwarded]\nunderscores = true")).start();
    let ask = |key: &str| proxy.exchange(&with("/", &[("api_key", key)])).text();
    assert_eq!([ask("a"), ask("b"), proxy.get("/").text()], ["1", "2", "3"]);
}

/// Regression: one origin's response, with its name in Access-Control-Allow-Origin, was sent to another.
#[test]
fn a_response_that_lets_one_origin_read_it_varies_by_origin() {
    let (proxy, origin) = before(|request| {
        let answer = reply(200).cache("max-age=60");
        match request.field("origin") {
            Some(origin) => answer.with("Access-Control-Allow-Origin", origin),
            None => answer,
        }
    });
    let allowed = |from: &str| {
        let response = proxy.exchange(&with("/", &[("Origin", from)]));
        response.field("access-control-allow-origin").unwrap_or_default().to_owned()
    };
    for _ in 0..2 {
        assert_eq!(allowed("https://a.example"), "https://a.example");
        assert_eq!(allowed("https://b.example"), "https://b.example");
    }
    assert_eq!(origin.count(), 2);
}

#[test]
fn the_name_of_a_new_field_is_logged_once_and_counted() {
    let (proxy, _origin) = before(|_| reply(200).cache("max-age=60"));
    for _ in 0..3 {
        proxy.exchange(&with("/", &[("X-Acme-User", "a")]));
    }
    proxy.exchange(&get("/").with("HX-Request", "true"));
    assert_eq!(labelled(&proxy, "bypassing_fields", "x-acme-user"), 3);
    assert_eq!(labelled(&proxy, "bypassing_fields", "hx-request"), 1);
    assert_eq!(labelled(&proxy, "passes", "unknown-field"), 3);
    let log = proxy.stderr();
    assert_eq!(log.matches("requests with the field x-acme-user share only").count(), 1, "{log}");
    assert_eq!(log.matches("requests with the field hx-request select a form").count(), 1, "{log}");
}

/// Regression: a site whose session is called PHPSESSID logged its visitors out without a word.
#[test]
fn a_session_that_bypass_cookies_does_not_name_is_logged_once() {
    let origin = Origin::new(|_| reply(200).cache("max-age=60"));
    let rule = "cache = { bypass_cookies = [\"session*\"], ignore_cookies = [\"login_hint\"] }";
    let proxy = sandarac().config(site(&origin.url(), rule, "")).start();
    for (number, cookies) in
        ["theme=dark", "login_hint=a", "PHPSESSID=1", "a=b; PHPSESSID=2"].iter().enumerate()
    {
        proxy.exchange(&with(&format!("/{number}"), &[("Cookie", cookies)]));
        assert_eq!(origin.last().field("cookie"), None);
    }
    let log = proxy.stderr();
    assert_eq!(log.matches("is not forwarded with requests that may be cached").count(), 1, "{log}");
    assert!(log.contains("the cookie PHPSESSID is not forwarded"), "{log}");
}

/// Regression: cookies were forwarded, and what came of them was shared.
#[test]
fn without_any_cookie_that_matters_none_is_forwarded() {
    let (origin, rule) =
        (Origin::new(|_| reply(200).cache("max-age=60")), "cache = { bypass_cookies = \"none\" }");
    let proxy = sandarac().config(site(&origin.url(), rule, "")).start();
    proxy.exchange(&with("/", &[("Cookie", "session=ann")]));
    assert_eq!(origin.last().field("cookie"), None);
    assert!(proxy.get("/").is_hit());
}
