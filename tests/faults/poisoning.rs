//! Cache poisoning and deception: one client's request must not decide another client's response.

use sandarac_test_support::{Origin, Request, Sandarac, get, head, post, reply, request};

use crate::{before, sandarac};

/// A listener's setting that trusts the tests as a proxy.
const TRUSTING: &str = "trusted_proxies = [\"127.0.0.1\"]";

/// A proxy before `origin`, with the keys `listener` and `route`.
fn start(origin: &Origin, listener: &str, route: &str) -> Sandarac {
    let config = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n{listener}\n[pool.app]\nbackends = [\"{}\"]\n\
         [[route]]\npool = \"app\"\n{route}\n",
        origin.url()
    );
    sandarac().config(config).start()
}

/// An origin that shows the value of a field in a page that any cache may store.
fn echo(field: &'static str) -> impl Fn(&Request) -> sandarac_test_support::Reply + Send + Sync + 'static {
    move |request| reply(200).cache("max-age=60").body(request.fields.list(field))
}

#[test]
fn forwarding_fields_of_a_client_do_not_reach_a_cached_page() {
    for field in ["X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-For", "Forwarded"] {
        let (proxy, _origin) = before(echo(field));
        proxy.exchange(&get("/").with(field, "evil.example"));
        let seen = proxy.get("/").text();
        assert!(!seen.contains("evil"), "{field}: {seen}");
    }
}

#[test]
fn fields_that_override_the_target_do_not_reach_the_origin_unnoticed() {
    for field in [
        "X-Original-URL",
        "X-Rewrite-URL",
        "X-HTTP-Method-Override",
        "X-Method-Override",
        "X-Forwarded-Scheme",
        "X-Forwarded-Server",
        "X-Forwarded-Prefix",
        "X-Host",
        "X-Forwarded-Port",
        "X-Forwarded-Host-Override",
        "X-Original-Scheme",
        "X-Forwarded-Context",
        "X-Ingress-Path",
        "Request-Uri",
        "Wl-Proxy-SSL",
    ] {
        let (proxy, _origin) = before(echo(field));
        proxy.exchange(&get("/").with(field, "evil"));
        let seen = proxy.get("/").text();
        assert!(!seen.contains("evil"), "{field}: {seen}");
    }
}

#[test]
fn host_decides_whose_page_it_is() {
    let (proxy, _origin) = before(echo("host"));
    assert_eq!(proxy.exchange(&get("/").host("evil.example")).text(), "evil.example");
    assert_eq!(proxy.get("/").text(), "www.example");
    let absolute = get("http://evil.example/other").host("www.example");
    assert_eq!(proxy.exchange(&absolute).text(), "evil.example");
    assert_eq!(proxy.get("/other").text(), "www.example");
}

#[test]
fn the_body_of_a_get_does_not_reach_a_cached_page() {
    let (proxy, _origin) = before(|request| reply(200).cache("max-age=60").body(&request.body));
    proxy.exchange(&get("/").body("evil"));
    assert_eq!(proxy.get("/").text(), "");
}

#[test]
fn the_method_decides_what_is_answered() {
    let (proxy, _origin) = before(|request| reply(200).cache("max-age=60").body(&request.method));
    proxy.exchange(&post("/", "x"));
    proxy.exchange(&request("OPTIONS", "/"));
    proxy.exchange(&head("/"));
    assert_eq!(proxy.get("/").text(), "GET");
}

#[test]
fn a_range_or_a_condition_of_one_client_does_not_shorten_the_page_of_another() {
    let (proxy, _origin) = before(|request| match (request.field("range"), request.field("if-none-match")) {
        (Some(_), _) => reply(206).cache("max-age=60").with("Content-Range", "bytes 0-0/4").body("p"),
        (_, Some(_)) => reply(304).cache("max-age=60").with("ETag", "\"v\""),
        _ => reply(200).cache("max-age=60").with("ETag", "\"v\"").body("page"),
    });
    proxy.exchange(&get("/a").with("Range", "bytes=0-0"));
    assert_eq!(proxy.get("/a").expect(200).text(), "page");
    proxy.exchange(&get("/b").with("If-None-Match", "\"v\""));
    assert_eq!(proxy.get("/b").expect(200).text(), "page");
    proxy.exchange(&get("/c").with("If-Match", "\"other\""));
    assert_eq!(proxy.get("/c").expect(200).text(), "page");
    proxy.exchange(&get("/d").with("If-Range", "\"v\"").with("Range", "bytes=0-0"));
    assert_eq!(proxy.get("/d").expect(200).text(), "page");
}

#[test]
fn an_error_caused_by_one_client_is_not_kept_for_others() {
    let (proxy, origin) = before(|request| match request.field("x-oversize") {
        Some(_) => reply(400).body("bad"),
        None => reply(200).cache("max-age=60").body("page"),
    });
    proxy.exchange(&get("/").with("X-Oversize", "1"));
    assert_eq!(proxy.get("/").expect(200).text(), "page");
    assert_eq!(origin.count(), 2);
}

#[test]
fn targets_that_are_written_otherwise_are_other_pages() {
    let (proxy, origin) = before(|request| reply(200).cache("max-age=60").body(&request.target));
    let targets =
        ["/a/b", "/a/%62", "/a//b", "/a/./b", "/a/x/../b", "/A/b", "/a/b/", "/a/b?", "/a%2fb", "/a/b;x"];
    for _ in 0..2 {
        for target in targets {
            let response = proxy.get(target);
            if response.status == 200 {
                assert_eq!(response.text(), target, "the key and the forwarded target differ");
            } else {
                assert_eq!(response.status, 400, "{target}");
            }
        }
    }
    assert!(origin.requests().iter().all(|request| targets.contains(&request.target.as_str())));
}

#[test]
fn an_ambiguous_path_is_refused() {
    let (proxy, origin) = before(|_| reply(200));
    for target in ["/%", "/%zz", "/a%0", "/%00", "/a%2", "/../../etc/passwd", "/..%2f..%2fetc"] {
        proxy.get(target).expect(400);
    }
    assert_eq!(origin.count(), 0);
}

#[test]
fn a_private_page_with_a_public_looking_name_stays_private() {
    let (proxy, _origin) = before(|request| {
        let page = reply(200).body(format!("account of {}", request.field("cookie").unwrap_or("nobody")));
        if request.fields.has("cookie") { page.cache("private") } else { page.cache("max-age=60") }
    });
    for target in ["/account/style.css", "/account;x.js", "/account%2fpicture.png", "/account?.css"] {
        let own = proxy.exchange(&get(target).with("Cookie", "alice")).expect(200);
        assert_eq!(own.text(), "account of alice");
        assert_eq!(proxy.get(target).text(), "account of nobody");
        assert_eq!(proxy.exchange(&get(target).with("Cookie", "bob")).text(), "account of bob");
    }
}

#[test]
fn a_careless_origin_leaks_nothing_in_the_safe_profile() {
    let (proxy, _origin) = before(|request| {
        let user = request.field("cookie").or(request.field("authorization")).unwrap_or("nobody");
        reply(200).cache("public, max-age=60").body(user)
    });
    for (name, value) in [("Cookie", "alice"), ("Authorization", "Basic alice")] {
        let target = format!("/{name}");
        assert_eq!(proxy.exchange(&get(&target).with(name, value)).text(), value);
        assert_eq!(proxy.get(&target).text(), "nobody");
        assert_eq!(proxy.exchange(&get(&target).with(name, "other")).text(), "other");
    }
}

#[test]
fn clients_that_wait_together_get_no_page_made_for_one_of_them() {
    let gate = sandarac_test_support::Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |request| {
        let page = reply(200)
            .cache("max-age=60")
            .with("Set-Cookie", &format!("id={}", request.serial))
            .body(request.serial.to_string());
        if request.serial == 1 { page.hold(&held) } else { page }
    });
    let proxy = sandarac().before(&origin).start();
    let mut clients: Vec<_> = (0..10).map(|_| proxy.connect()).collect();
    for client in &mut clients {
        client.send(get("/").to_bytes());
    }
    gate.reached(1);
    proxy.counts("cache_waiters", 9);
    gate.open();
    let mut cookies: Vec<String> =
        clients.iter_mut().map(|client| client.response().fields.list("set-cookie")).collect();
    cookies.sort();
    cookies.dedup();
    assert_eq!(cookies.len(), 10, "a session was shared");
}

#[test]
fn fields_with_underscores_pass_for_no_others() {
    // CGI and WSGI hand X_Forwarded_Host to applications as X-Forwarded-Host.
    for (field, path) in [
        ("X_Forwarded_Host", "/"),
        ("X_Forwarded-For", "/"),
        ("X_Original_URL", "/"),
        ("Accept_Language", "/"),
        ("X_Of_The_Client", "/"),
        ("X_Forwarded_Host", "/passed"),
        ("Content_Length", "/passed"),
    ] {
        let (proxy, origin) = before(echo("host"));
        let request = get(path).with(field, "evil");
        let passed = path == "/passed";
        proxy.exchange(&if passed { request.with("Cookie", "session=1") } else { request }).expect(200);
        assert!(!origin.last().fields.has(field), "{field} reached the origin of {path}");
    }
    // Names with underscores are also dropped where a rule removes or sets the field, unless `underscores` is set.
    let request =
        || get("/").with("Api_Key", "1").with("X_Forwarded_Host", "evil").with("Cookie", "session=1");
    let (proxy, origin) = before(echo("host"));
    proxy.exchange(&request()).expect(200);
    assert!(!origin.last().fields.has("api_key"));
    let origin = Origin::new(echo("host"));
    let proxy = start(&origin, "", "[forwarded]\nunderscores = true");
    proxy.exchange(&request()).expect(200);
    assert_eq!(origin.last().field("api_key"), Some("1"), "for this client alone");
    assert!(!origin.last().fields.has("x_forwarded_host"));
}

#[test]
fn what_a_client_says_of_itself_is_replaced_and_what_chooses_for_all_stays_here() {
    let (proxy, origin) = before(echo("host"));
    let unkeyed = [
        "X-Forwarded-Protocol",
        "X-Url-Scheme",
        "X-Original-URI",
        "X-HTTP-Host-Override",
        "Front-End-Https",
        "X-Scheme",
        "X-Rewrite-Host",
    ];
    let claims = |target: &str| {
        let claims = unkeyed.iter().fold(get(target), |request, name| request.with(name, "evil"));
        claims.with("X-Real-IP", "192.0.2.1").with("X-Real-IP", "192.0.2.2").with("Proxy", "http://evil/")
    };
    proxy.exchange(&claims("/")).expect(200);
    let stored = origin.last();
    unkeyed.iter().for_each(|name| assert!(!stored.fields.has(name), "{name}"));
    proxy.exchange(&claims("/passed").with("Cookie", "session=1")).expect(200);
    for request in [stored, origin.last()] {
        assert_eq!(request.fields.all("x-real-ip"), ["127.0.0.1"]);
        assert!(!request.fields.has("proxy"));
    }
    proxy.get("/without").expect(200);
    assert!(!origin.last().fields.has("x-real-ip"));
    // X-Real-IP from a trusted proxy is forwarded.
    let origin = Origin::new(echo("host"));
    let proxy = start(&origin, TRUSTING, "");
    proxy.exchange(&get("/").with("X-Real-IP", "192.0.2.1").with("Cookie", "session=1")).expect(200);
    assert_eq!(origin.last().fields.all("x-real-ip"), ["192.0.2.1"]);
}

/// Regression: with X-Sendfile-Type and X-Accel-Mapping, a client had Rack name any file.
#[test]
fn no_client_tells_an_application_how_files_are_sent() {
    let names = ["X-Sendfile-Type", "X-Accel-Mapping", "x-accel-redirect", "X-ACCEL-Anything"];
    let claims =
        |target: &str| names.iter().fold(get(target), |request, name| request.with(name, "/=/protected/"));
    let route = "cache = { key_fields = [\"X-Accel-Mapping\"] }";
    for route in ["", route] {
        let origin = Origin::new(echo("host"));
        let proxy = start(&origin, "", route);
        for request in [claims("/"), claims("/passed").with("Cookie", "session=1")] {
            proxy.exchange(&request).expect(200);
            names.iter().for_each(|name| assert!(!origin.last().fields.has(name), "{name} {route}"));
        }
    }
    // A proxy before us, or the route, may know.
    let origin = Origin::new(echo("host"));
    let proxy = start(&origin, TRUSTING, "request.set = { X-Accel-Mapping = \"/srv/=/protected/\" }");
    proxy.exchange(&claims("/").with("Cookie", "session=1")).expect(200);
    assert_eq!(origin.last().fields.all("x-accel-mapping"), ["/srv/=/protected/"]);
    assert_eq!(origin.last().fields.all("x-sendfile-type"), ["/=/protected/"]);
}

#[test]
fn a_field_with_underscores_that_is_keyed_goes_on() {
    let origin = Origin::new(|request| reply(200).cache("max-age=60").body(request.fields.list("api_key")));
    let proxy = start(&origin, "", "cache = { key_fields = [\"Api_Key\"] }");
    for key in ["one", "two", "one"] {
        assert_eq!(proxy.exchange(&get("/").with("Api_Key", key)).text(), key);
    }
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_host_is_told_to_the_origin_of_a_shared_page_as_it_is_keyed() {
    for host in ["www.example:80", "WWW.example", "www.example:0080"] {
        for field in ["host", "x-forwarded-host"] {
            let (proxy, _origin) = before(echo(field));
            assert_eq!(proxy.exchange(&get("/").host(host)).text(), "www.example");
            assert_eq!(proxy.get("/").text(), "www.example");
        }
    }
}

#[test]
fn the_answer_to_one_clients_post_is_not_the_page_of_others() {
    let (proxy, _origin) = before(|request| {
        let of =
            request.field("cookie").or(request.field("authorization")).or(request.field("x-original-url"));
        reply(200).cache("max-age=60, public").with("Content-Location", "/form").body(of.unwrap_or("nobody"))
    });
    for (name, value) in [("Cookie", "alice"), ("Authorization", "alice"), ("X-Original-URL", "/admin")] {
        proxy.exchange(&post("/form", "x").with(name, value)).expect(200);
        assert_eq!(proxy.get("/form").text(), "nobody", "{name}");
        proxy.exchange(&post("/form", "x").with("Cookie", "a=1")).expect(200);
    }
}

#[test]
fn the_answer_to_one_clients_head_does_not_change_the_page_of_others() {
    let hostile = [
        head("/").with("X-Forwarded-Port", "1337"),
        head("/").with("X_Forwarded_Port", "1337"),
        head("/").host("www.example:80"),
    ];
    for hostile in hostile {
        let (proxy, _origin) = before(|request| {
            let port = request.field("x-forwarded-port").or(request.field("x_forwarded_port"));
            let host = format!("{}:{}", request.field("host").unwrap_or_default(), port.unwrap_or("none"));
            let fresh = if request.method == "HEAD" { "max-age=60" } else { "max-age=0" };
            reply(200).cache(fresh).with("ETag", "\"v\"").with("Link", &host)
        });
        proxy.get("/");
        proxy.exchange(&hostile).expect(200);
        assert_eq!(proxy.get("/").field("link"), Some("www.example:none"));
        assert_eq!(
            proxy.exchange(&get("/").with("Cache-Control", "max-stale")).field("link"),
            Some("www.example:none")
        );
    }
}

#[test]
fn a_trusted_proxy_hands_on_nothing_of_its_client_that_is_not_keyed() {
    for (field, value, seen) in [
        ("X-Forwarded-Host", "evil.example", "www.example"),
        ("X-Forwarded-Proto", "evil, http", "http"),
        ("X-Original-URL", "/evil", ""),
        ("X-Forwarded-Prefix", "/evil", ""),
    ] {
        let origin = Origin::new(echo(field));
        let proxy = start(&origin, TRUSTING, "");
        assert_eq!(proxy.exchange(&get("/").with(field, value)).text(), seen, "{field}");
        assert_eq!(proxy.get("/").text(), seen, "{field}");
        let keyed = start(&origin, TRUSTING, &format!("cache = {{ key_fields = [\"{field}\"] }}"));
        assert_eq!(keyed.exchange(&get("/").with(field, value)).text(), value, "{field}");
        assert_ne!(keyed.get("/").text(), value, "{field}");
    }
    let origin = Origin::new(echo("forwarded"));
    let proxy = start(&origin, TRUSTING, "");
    let response = proxy.exchange(&get("/").with("Forwarded", "for=1.1.1.1;host=evil.example"));
    assert_eq!(response.text(), "for=127.0.0.1;proto=http;host=www.example");
}

#[test]
fn a_lifetime_by_rule_does_not_keep_what_one_clients_fields_caused() {
    let origin = Origin::new(|request| match (request.field("accept"), request.field("x-big")) {
        (Some("x/y"), _) => reply(406),
        (_, Some(_)) => reply(431),
        _ if request.target == "/absent" => reply(404),
        _ => reply(200).body("page"),
    });
    let proxy = start(&origin, "", "cache = { ttl = \"10m\" }");
    proxy.exchange(&get("/").with("Accept", "x/y")).expect(406);
    proxy.exchange(&get("/").with("X-Big", "1")).expect(431);
    assert_eq!(proxy.get("/").expect(200).text(), "page");
    proxy.get("/absent").expect(404);
    assert!(proxy.get("/absent").expect(404).is_hit());
}

#[test]
fn a_keyed_field_in_another_spelling_does_not_pass_for_it() {
    for (keyed, sent) in [("X_Tenant", "X-Tenant"), ("X-Tenant", "X_Tenant")] {
        let origin = Origin::new(echo(sent));
        let proxy = start(&origin, "", &format!("cache = {{ key_fields = [\"{keyed}\"] }}"));
        let sender = proxy.exchange(&get("/").with(sent, "evil")).text();
        // One that may say who asks is forwarded, and its response is for its client alone.
        assert_eq!(sender, if sent == "X-Tenant" { "evil" } else { "" });
        assert_eq!(proxy.get("/").text(), "", "{sent}");
    }
}

#[test]
fn a_trusted_proxy_may_tell_the_scheme_in_forwarded() {
    let origin = Origin::new(echo("x-forwarded-proto"));
    let proxy = start(&origin, TRUSTING, "");
    let secure = get("/").with("Forwarded", "for=192.0.2.7;proto=https");
    assert_eq!([proxy.exchange(&secure).text(), proxy.get("/").text()], ["https", "http"]);
}

/// Regression: with a server that sets Cache-Control on every response, one client's error was stored for all clients.
#[test]
fn an_error_that_one_clients_fields_provoked_is_not_stored() {
    let (proxy, origin) = before(|request| {
        let status = request.field("referer").and_then(|status| status.parse().ok()).unwrap_or(200);
        reply(status).cache("max-age=60").body("page")
    });
    for status in ["400", "401", "403", "405", "406", "413", "414", "429", "431"] {
        let target = format!("/{status}");
        let provoking = get(&target).with("Referer", status);
        assert_eq!(proxy.exchange(&provoking).status.to_string(), status);
        let response = proxy.get(&target).expect(200);
        assert_eq!(response.text(), "page", "{status}");
    }
    for status in ["404", "410", "451"] {
        let target = format!("/{status}");
        proxy.exchange(&get(&target).with("Referer", status));
        let before = origin.count();
        assert_eq!(proxy.get(&target).status.to_string(), status);
        assert_eq!(origin.count(), before);
    }
    let origin = Origin::new(|_| reply(403).cache("max-age=60").body("page"));
    let proxy = start(&origin, "", "cache = { status_ttl = { 403 = \"5s\" } }");
    (0..2).for_each(|_| drop(proxy.get("/").expect(403)));
    assert_eq!(origin.count(), 1);
}

/// Regression: malformed directives in Cache-Control counted as absent, so that a default lifetime applied.
#[test]
fn a_sloppy_origins_private_pages_are_not_shared() {
    let (proxy, origin) = before(|request| {
        reply(200).cache(&request.target[1..].replace('_', " ").replace("%22", "\"")).body("page")
    });
    for control in [
        "private;max-age=60",
        "no-store;max-age=60",
        "%22private%22",
        "private=x",
        "private:_x",
        "max-age=60,_private:",
    ] {
        let target = format!("/{control}");
        let before = origin.count();
        (0..2).for_each(|_| drop(proxy.get(&target).expect(200)));
        assert_eq!(origin.count(), before + 2, "{control}");
    }
}

/// Regression: gunicorn and Go's mux run `/admin/users` for paths that no route recognised as that.
#[test]
fn a_path_that_a_backend_may_read_otherwise_evades_no_route() {
    let origin = Origin::new(|request| reply(200).body(&request.target));
    let routes = |paths: &str| {
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[pool.app]\nbackends = [\"{}\"]\n\
             [[route]]\nmatch = [\"/admin\", \"/private/\"]\npool = \"app\"\ncache = \"pass\"\n{paths}\n\
             [[route]]\npool = \"app\"\n{paths}\n",
            origin.url()
        )
    };
    let evading = [
        "/admin%2fusers",
        "/admin%2Fusers",
        "/admin%5cusers",
        "/admin\\users",
        "/admin;x/users",
        "/admin;",
        "/admin.",
        "/admin%20",
        "/admin./users",
        "/%2561dmin",
        "/x%2f..%2fprivate%2fa",
        "/private%252fa",
        "/private;a%2fb",
    ];
    let proxy = sandarac().config(routes("")).start();
    for target in evading {
        let refused = proxy.get(target).expect(400);
        assert!(refused.field("proxy-status").is_some_and(|why| why.contains("path")), "{target}");
    }
    assert_eq!(origin.count(), 0);
    // If all readings of a path have the same route, the path is forwarded unchanged.
    for target in
        ["/a%2fb", "/a;b/c", "/a.", "/a//b", "/admin/a%2fb", "/admin;x".replace("admin", "other").as_str()]
    {
        assert_eq!(proxy.get(target).expect(200).text(), target);
    }
    let proxy = sandarac().config(routes("paths = \"raw\"")).start();
    for target in ["/admin%2fusers", "/admin;x/users", "/admin."] {
        assert_eq!(proxy.get(target).expect(200).text(), target);
    }
}
