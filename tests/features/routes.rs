//! Routes: where requests go, and how they are edited on the way.

use sandarac_test_support::{Origin, get, post, reply, request};

use crate::{numbered, sandarac, site, stat};

fn named(name: &'static str) -> Origin {
    Origin::new(move |_| reply(200).cache("no-store").body(name))
}

#[test]
fn the_first_route_that_matches_counts() {
    let (blog, shop, rest) = (named("blog"), named("shop"), named("rest"));
    let pools = [("blog", &blog), ("shop", &shop), ("rest", &rest)];
    let pools: String = pools
        .iter()
        .map(|(name, origin)| format!("[pool.{name}]\nbackends = [\"{}\"]\n", origin.url()))
        .collect();
    let proxy = sandarac()
        .config(format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n{pools}
             [[route]]\nmatch = \"/closed\"\nanswer = {{ status = 403, body = \"Not here.\", fields = {{ X-Why = \"closed\" }} }}
             [[route]]\nmatch = \"old.example\"\nredirect = {{ to = \"https://new.example{{target}}\", status = 301 }}
             [[route]]\nmatch = \"POST /comments\"\npool = \"blog\"
             [[route]]\nmatch = [\"/blog\", \"*.blog.example\"]\npool = \"blog\"
             [[route]]\nmatch = {{ host = \"shop.example\", path = [\"/cart/\", \"/*.php\"] }}\npool = \"shop\"
             [[route]]\npool = \"rest\"\n"
        ))
        .start();
    let ask = |host: &str, target: &str| proxy.exchange(&get(target).host(host)).text();
    assert_eq!(ask("www.example", "/blog"), "blog");
    assert_eq!(ask("www.example", "/blog/2026"), "blog");
    assert_eq!(ask("www.example", "/blogs"), "rest");
    assert_eq!(ask("me.blog.example", "/"), "blog");
    assert_eq!(ask("SHOP.example:8080", "/cart/1"), "shop");
    assert_eq!(ask("shop.example", "/a/b/index.php"), "shop");
    assert_eq!(ask("shop.example", "/about"), "rest");
    assert_eq!(proxy.exchange(&post("/comments", "x")).text(), "blog");
    assert_eq!(ask("www.example", "/comments"), "rest");
    let closed = proxy.get("/closed/door").expect(403);
    assert_eq!(closed.text(), "Not here.");
    assert_eq!(closed.field("x-why"), Some("closed"));
    let moved = proxy.exchange(&get("/a?b=c").host("old.example")).expect(301);
    assert_eq!(moved.field("location"), Some("https://new.example/a?b=c"));
}

#[test]
fn answers_of_routes_stand_in_their_place_among_pipelined_ones() {
    let origin = Origin::new(|request| reply(200).cache("max-age=60").body(&request.target));
    let route = "[[route]]\nmatch = \"/fixed\"\nanswer = { status = 403, body = \"fixed\" }\n\
                 [[route]]\nmatch = \"/moved\"\nredirect = { to = \"https://{host}{target}\" }\n[[route]]";
    let proxy = sandarac().config(site(&origin.url(), "", "").replacen("[[route]]", route, 1)).start();
    proxy.get("/stored").expect(200);
    let mut client = proxy.connect();
    let targets = ["/stored", "/fixed/1", "/fetched", "/fixed/2", "/moved/x", "/stored", "/fixed/3"];
    for round in 0..20 {
        let requests: Vec<Vec<u8>> = targets.iter().map(|target| get(target).to_bytes()).collect();
        client.send(requests.concat());
        for target in targets {
            let response = client.response();
            let status = if target.starts_with("/fixed") { 403 } else { 200 };
            match target {
                "/moved/x" => {
                    let response = response.expect(308);
                    assert_eq!(response.field("location"), Some("https://www.example/moved/x"));
                }
                _ => {
                    let text = if status == 403 { "fixed" } else { target };
                    assert_eq!(response.expect(status).text(), text, "round {round}");
                }
            }
        }
    }
    assert_eq!(origin.count(), 2);
    // A request with a body is answered once the body has been read.
    let mut uploading = proxy.connect();
    assert_eq!(uploading.exchange(&post("/fixed", "content")).expect(403).text(), "fixed");
    assert_eq!(uploading.get("/stored").expect(200).text(), "/stored");
    assert_eq!(stat(&proxy, "synthetic"), 20 * 4 + 1);
}

#[test]
fn routes_match_what_a_path_means_and_forward_what_it_was() {
    let origin = Origin::new(|_| reply(200).cache("no-store").body("open"));
    let tables = "[[route]]\npool = \"app\"";
    let route = "match = \"/open\"\n[[route]]\nmatch = \"/admin\"\nanswer = { status = 403 }";
    let text = site(&origin.url(), route, tables);
    let proxy = sandarac().config(text).start();
    for target in
        ["/admin", "/%61dmin", "/open/../admin", "/open/%2e%2e/admin", "/x/./../admin/y", "/%61%64min/z"]
    {
        let status = proxy.get(target).status;
        assert!(matches!(status, 403 | 400), "{target} is answered with {status}");
    }
    assert_eq!(origin.count(), 0);
    proxy.get("/op%65n/%7Eme").expect(200);
    assert_eq!(origin.last().target, "/op%65n/%7Eme");
}

#[test]
fn what_no_route_matches_is_404() {
    let origin = named("app");
    let proxy = sandarac().config(site(&origin.url(), "match = \"/app\"", "")).start();
    proxy.get("/other").expect(404);
    proxy.get("/app").expect(200);
    assert_eq!(origin.count(), 1);
}

#[test]
fn fields_are_edited_both_ways() {
    let origin = Origin::new(|_| {
        reply(200)
            .cache("max-age=60")
            .with("Server", "old/1")
            .with("X-Powered-By", "x")
            .with("X-Kept", "1")
            .with("X-Added", "0")
    });
    let route = "request = { remove = [\"X-Secret\"], set = { X-Set = \"ours\" }, add = { X-Added = [\"1\", \"2\"] } }\n\
                 response = { remove = [\"X-Powered-By\"], set = { Server = \"new\" }, add = { X-Added = [\"1\"] } }\n\
                 cache = { harmless_fields = [\"X-Added\", \"X-Other\"] }";
    let proxy = sandarac().config(site(&origin.url(), route, "")).start();
    let ask =
        get("/").with("X-Secret", "1").with("X-Set", "theirs").with("X-Added", "0").with("X-Other", "1");
    for round in 0..2 {
        let response = proxy.exchange(&ask).expect(200);
        assert_eq!(response.is_hit(), round == 1);
        assert_eq!(response.fields.all("server"), ["new"]);
        assert_eq!(response.fields.all("x-added"), ["0", "1"]);
        assert_eq!(response.field("x-powered-by"), None);
        assert_eq!(response.field("x-kept"), Some("1"));
    }
    let request = origin.last();
    assert_eq!(request.fields.all("x-set"), ["ours"]);
    assert_eq!(request.fields.all("x-added"), ["0", "1", "2"]);
    assert_eq!(request.field("x-secret"), None);
    assert_eq!(request.field("x-other"), Some("1"));
}

#[test]
fn pass_never_uses_the_cache() {
    let origin = Origin::new(numbered(|_| reply(200).cache("max-age=60")));
    let proxy = sandarac().config(site(&origin.url(), "cache = \"pass\"", "")).start();
    assert_eq!([proxy.get("/").text(), proxy.get("/").text()], ["1", "2"]);
}

#[test]
fn lifetimes_can_be_ruled() {
    let origin = Origin::new(numbered(|request| match request.path() {
        "/forever" => reply(200).cache("max-age=315360000"),
        "/never" => reply(200).cache("max-age=0"),
        "/missing" => reply(404),
        "/error" => reply(500),
        "/secret" => reply(200).cache("no-store"),
        _ => reply(200).with("Content-Type", "text/html"),
    }));
    let route =
        "cache = { default_ttl = \"10m\", max_ttl = \"1h\", status_ttl = { 404 = \"2m\", 500 = \"1m\" } }";
    let proxy = sandarac().config(site(&origin.url(), route, "")).start();
    for (path, reused, ttl) in [
        ("/forever", true, 3600),
        ("/plain", true, 600),
        ("/missing", true, 120),
        ("/error", true, 60),
        ("/never", false, 0),
        ("/secret", false, 0),
    ] {
        let first = proxy.get(path);
        let second = proxy.get(path);
        assert_eq!(first.text() == second.text(), reused, "{path}");
        if reused {
            let told: i64 = second.cache_parameter("ttl").unwrap().parse().unwrap();
            assert!((ttl - 30..=ttl).contains(&told), "{path}: {told}");
        }
    }
}

#[test]
fn a_forced_lifetime_counts_whatever_the_origin_says_of_freshness() {
    let origin = Origin::new(numbered(|request| match request.path() {
        "/private" => reply(200).cache("private"),
        "/no-store" => reply(200).cache("no-store"),
        _ => reply(200).cache("max-age=0, must-revalidate"),
    }));
    let proxy = sandarac().config(site(&origin.url(), "cache = { ttl = \"10m\" }", "")).start();
    assert_eq!([proxy.get("/").text(), proxy.get("/").text()], ["1", "1"]);
    for path in ["/private", "/no-store"] {
        assert_ne!(proxy.get(path).text(), proxy.get(path).text(), "{path}");
    }
}

#[test]
fn cookies_that_matter_are_told_from_those_that_do_not() {
    let origin = Origin::new(numbered(|_| reply(200).cache("max-age=60")));
    let route =
        "cache = { bypass_cookies = [\"session*\"], ignore_cookies = [\"_ga*\"], key_cookies = [\"theme\"] }";
    let proxy = sandarac().config(site(&origin.url(), route, "")).start();
    let ask = |cookies: &str| proxy.exchange(&get("/").with("Cookie", cookies)).text();
    assert_eq!(proxy.get("/").text(), "1");
    assert_eq!(ask("_ga=1; _gat=2"), "1");
    assert_eq!(ask("session_id=x"), "2");
    assert_eq!(ask("a=b; session_id=x"), "3");
    assert_eq!(ask("theme=dark"), "4");
    assert_eq!(origin.last().field("cookie"), Some("theme=dark"));
    assert_eq!(ask("_ga=9; theme=dark"), "4");
    assert_eq!(ask("theme=light"), "5");
}

#[test]
fn a_cookie_that_makes_no_difference_does_not_reach_what_is_cached() {
    let origin =
        Origin::new(|request| reply(200).cache("max-age=60").body(request.field("cookie").unwrap_or("none")));
    let proxy = sandarac().config(site(&origin.url(), "cache = { ignore_cookies = [\"_ga\"] }", "")).start();
    assert_eq!(proxy.exchange(&get("/").with("Cookie", "_ga=secret")).text(), "none");
    assert_eq!(proxy.get("/").text(), "none");
}

#[test]
fn cookies_that_stay_here_do_not_split_what_varies_on_cookies() {
    let origin = Origin::new(|_| reply(200).cache("s-maxage=60").with("Vary", "Cookie"));
    let route = "cache = { bypass_cookies = [\"session\"], key_cookies = [\"theme\"] }";
    let proxy = sandarac().config(site(&origin.url(), route, "")).start();
    for cookie in ["_ga=1", "_ga=2", "_ga=3; other=4"] {
        proxy.exchange(&get("/").with("Cookie", cookie)).expect(200);
    }
    assert_eq!(origin.count(), 1);
    proxy.exchange(&get("/").with("Cookie", "theme=dark; _ga=1")).expect(200);
    proxy.exchange(&get("/").with("Cookie", "_ga=2; theme=dark")).expect(200);
    assert_eq!(origin.count(), 2);
    proxy.exchange(&get("/").with("Cookie", "session=1")).expect(200);
    assert_eq!(origin.count(), 3);
}

#[test]
fn query_parameters_that_make_no_difference_are_left_out_of_the_key() {
    let origin = Origin::new(numbered(|_| reply(200).cache("max-age=60")));
    let proxy = sandarac()
        .config(site(&origin.url(), "cache = { ignore_query = [\"utm_*\", \"fbclid\"] }", ""))
        .start();
    assert_eq!(proxy.get("/?a=1&utm_source=x&b=2").text(), "1");
    assert_eq!(origin.last().target, "/?a=1&b=2", "what is not keyed cannot shape what is stored");
    assert_eq!(proxy.get("/?a=1&b=2").text(), "1");
    assert_eq!(proxy.get("/?fbclid=9&a=1&b=2&utm_medium=y").text(), "1");
    assert_eq!(proxy.get("/?a=1").text(), "2");
    assert_eq!(proxy.get("/").text(), "3");
    assert_eq!(proxy.get("/?utm_source=x").text(), "3");
}

#[test]
fn fields_can_be_part_of_the_key() {
    let origin = Origin::new(numbered(|_| reply(200).cache("max-age=60")));
    let proxy =
        sandarac().config(site(&origin.url(), "cache = { key_fields = [\"X-Country\"] }", "")).start();
    let ask = |country: &str| proxy.exchange(&get("/").with("X-Country", country)).text();
    assert_eq!([ask("de"), ask("at"), ask("de"), proxy.get("/").text()], ["1", "2", "1", "3"]);
}

#[test]
fn fields_in_vary_can_be_ruled_out() {
    let origin = Origin::new(numbered(|_| reply(200).cache("max-age=60").with("Vary", "User-Agent, Foo")));
    let proxy =
        sandarac().config(site(&origin.url(), "cache = { ignore_vary = [\"User-Agent\"] }", "")).start();
    let ask =
        |agent: &str, foo: &str| proxy.exchange(&get("/").with("User-Agent", agent).with("Foo", foo)).text();
    assert_eq!([ask("a", "1"), ask("b", "1"), ask("a", "2")], ["1", "1", "2"]);
}

#[test]
fn set_cookie_is_stored_where_a_rule_says_so() {
    let origin = Origin::new(|_| reply(200).cache("max-age=60").with("Set-Cookie", "country=de"));
    let proxy = sandarac().config(site(&origin.url(), "cache = { store_set_cookie = true }", "")).start();
    proxy.get("/");
    assert_eq!(proxy.get("/").field("set-cookie"), Some("country=de"));
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_response_beyond_the_limit_of_its_route_is_streamed_through() {
    let origin = Origin::new(|request| match request.path() {
        "/known" => reply(200).cache("max-age=60").body("x".repeat(20_000)),
        "/chunked" => {
            reply(200).cache("max-age=60").chunked().body("x".repeat(15_000)).body("x".repeat(5_000))
        }
        _ => reply(200).cache("max-age=60").body("small"),
    });
    let proxy = sandarac().config(site(&origin.url(), "cache = { max_object = \"16KiB\" }", "")).start();
    for path in ["/known", "/chunked", "/small"] {
        let (first, second) = (proxy.get(path).expect(200), proxy.get(path).expect(200));
        assert_eq!(first.body, second.body);
        assert_eq!(second.is_hit(), path == "/small", "{path}");
        // `stored` appears only when the response is certainly stored, and `detail` says when it is too large.
        assert_eq!(
            first.cache_parameter("stored").is_some(),
            path == "/small",
            "{path}: {}",
            first.cache_status()
        );
        if path == "/known" {
            assert_eq!(first.cache_parameter("detail").as_deref(), Some("too-large"));
        }
    }
    assert_eq!(origin.count(), 5);
}

#[test]
fn purge_by_http_is_for_those_allowed() {
    let origin = Origin::new(numbered(|_| reply(200).cache("max-age=60")));
    let allowed = sandarac().config(site(&origin.url(), "", "[purge]\nallow = [\"127.0.0.1\"]")).start();
    assert_eq!(allowed.get("/a").text(), "1");
    assert_eq!(allowed.exchange(&request("PURGE", "/a")).status / 100, 2);
    assert_eq!(allowed.get("/a").text(), "2");
    let closed = sandarac().config(site(&origin.url(), "", "[purge]\nallow = [\"10.0.0.0/8\"]")).start();
    assert_eq!(closed.get("/a").text(), "3");
    closed.exchange(&request("PURGE", "/a").with("X-Forwarded-For", "10.0.0.1")).expect(403);
    assert_eq!(closed.get("/a").text(), "3");
    assert_eq!(origin.count(), 3);
}

#[test]
fn purge_by_http_is_closed_by_default() {
    let origin = Origin::new(numbered(|_| reply(200).cache("max-age=60")));
    let proxy = sandarac().before(&origin).start();
    proxy.get("/a");
    proxy.exchange(&request("PURGE", "/a")).expect(405);
    assert_eq!(proxy.get("/a").text(), "1");
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_redirect_to_the_host_of_a_request_needs_one() {
    let origin = Origin::new(|_| reply(200));
    let redirect = "[[route]]\nmatch = \"/old\"\nredirect.to = \"https://{host}{target}\"\n[[route]]";
    let proxy = sandarac().config(site(&origin.url(), "", "").replace("[[route]]", redirect)).start();
    let moved = proxy.get("/old/page").expect(308);
    assert_eq!(moved.field("location"), Some("https://www.example/old/page"));
    proxy.exchange(&get("/old").http10().without_host()).expect(400);
    proxy.exchange(&get("/").http10().without_host()).expect(200);
}
