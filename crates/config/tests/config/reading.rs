//! Reading of files into the configuration.

use std::time::Duration;

use sandarac_config::{Config, ListenAddress, LogFormat, LogTarget, Network};
use sandarac_message::caching::{CookieRule, Policy, Profile};
use sandarac_message::glob::Glob;
use sandarac_policy::{Action, ByteSize, CacheRule, Forward, RequestParts};

use crate::{BASE, load};

fn rule(config: &Config, route: usize) -> &CacheRule {
    match &config.routes.all()[route].action {
        Action::Forward(Forward { cache: Some(rule), .. }) => rule,
        other => panic!("{other:?}"),
    }
}

/// No backend gets fields with underscores, unless `[forwarded]` says so.
fn without_underscores(policy: Policy) -> Policy {
    Policy { harmless_fields: vec![Glob::new("*_*")], ..policy }
}

#[test]
fn one_listener_one_pool_and_one_route_make_a_whole() {
    let config = load(&format!("{BASE}[[route]]\npool = \"app\"\n"));
    assert_eq!(config.listeners[0].address, ListenAddress::Any(8080));
    assert_eq!(config.pools[0].name, "app");
    assert_eq!(config.pools[0].backends[0].address.to_string(), "http://127.0.0.1:8000");
    assert_eq!(config.pools[0].retries, 2);
    assert_eq!(rule(&config, 0).policy, without_underscores(Policy::safe()));
    assert_eq!(rule(&config, 0).max_object, ByteSize(32 << 20));
    assert_eq!(config.cache.memory, ByteSize(256 << 20));
    assert_eq!(config.routes.all()[0].upgrade, ["websocket"]);
    assert!(!config.routes.all()[0].connect);
    assert!(config.purge.allow.is_empty());
    assert_eq!(config.threads, None);
}

#[test]
fn the_rfc_profile_is_the_policy_of_that_name() {
    let config = load(&format!("{BASE}[[route]]\npool = \"app\"\n[cache]\nprofile = \"rfc\"\n"));
    assert_eq!(config.cache.profile, Profile::Rfc);
    assert_eq!(rule(&config, 0).policy, without_underscores(Policy::rfc()));
}

#[test]
fn a_route_overrides_the_cache_table_and_inherits_the_rest() {
    let config = load(&format!(
        "{BASE}
        [cache]
        grace = \"30s\"
        default_ttl = \"5m\"
        ignore_query = \"utm_*\"
        [[route]]
        match = \"/a\"
        pool = \"app\"
        cache = \"pass\"
        [[route]]
        match = \"/b\"
        pool = \"app\"
        [route.cache]
        ttl = \"1h\"
        grace = \"0s\"
        stale_if_error = \"1d\"
        bypass_cookies = [\"session*\"]
        key_cookies = \"theme\"
        key_fields = [\"X-Country\"]
        ignore_cookies = [\"_ga*\"]
        status_ttl = {{ 404 = \"10s\", 301 = \"1h\" }}
        store_set_cookie = true
        max_object = \"1MiB\"
        heuristic_percent = 10
        [[route]]
        pool = \"app\"
        cache = \"lookup\"
        "
    ));
    assert!(matches!(config.routes.all()[0].action, Action::Forward(Forward { cache: None, .. })));
    let own = rule(&config, 1);
    let policy = &own.policy;
    assert_eq!(policy.forced_ttl, Some(Duration::from_secs(3600)));
    assert_eq!(policy.default_ttl, Duration::from_secs(300));
    assert_eq!(policy.grace, Duration::ZERO);
    assert_eq!(policy.stale_if_error, Duration::from_secs(86_400));
    assert_eq!(policy.bypass_cookies, CookieRule::Named(vec![Glob::new("session*")]));
    assert_eq!(policy.ignored_cookies, [Glob::new("_ga*"), Glob::new("theme")]);
    assert_eq!(policy.ttl_by_status, [(404, Duration::from_secs(10)), (301, Duration::from_secs(3600))]);
    assert!(policy.store_set_cookie);
    assert_eq!(policy.heuristics.map(|heuristics| heuristics.cap), Some(Duration::from_secs(86_400)));
    assert_eq!(own.key.ignore_query, [Glob::new("utm_*")]);
    assert_eq!(own.key.cookies, [Glob::new("theme")]);
    assert_eq!(own.key.fields, [b"X-Country"[..].into()]);
    assert_eq!(own.max_object, ByteSize(1 << 20));
    assert_eq!(rule(&config, 2).policy.grace, Duration::from_secs(30));
}

#[test]
fn listeners_logs_limits_and_the_rest_are_read() {
    let config = load(
        "threads = 2
        [[listen]]
        address = \"127.0.0.1:0\"
        trusted_proxies = [\"10.0.0.0/8\", \"unix\"]
        [[listen]]
        address = \"unix:/run/a.sock\"
        mode = \"0660\"
        proxy_protocol = true
        [pool.b]
        backends = \"unix:/run/b.sock\"
        balance = \"round_robin\"
        max_in_flight = 3
        queue = 7
        queue_timeout = \"2s\"
        retries = 0
        [[route]]
        pool = \"b\"
        [limits]
        head = \"60KiB\"
        body = \"1GB\"
        connections = 100
        [timeouts]
        idle = \"1m30s\"
        [purge]
        allow = \"127.0.0.1\"
        [admin]
        listen = \"127.0.0.1:9000\"
        token = \"0123456789abcdef\"
        [log]
        access = \"/var/log/a.log\"
        format = \"json\"
        [forwarded]
        forwarded = false
        name = \"edge-1\"
        ",
    );
    assert_eq!(config.threads, Some(2));
    assert_eq!(config.listeners[0].address, ListenAddress::Tcp("127.0.0.1:0".parse().unwrap()));
    assert_eq!(config.listeners[0].trusted_proxies[1], Network::Unix);
    assert_eq!(config.listeners[1].mode, Some(0o660));
    assert!(config.listeners[1].proxy_protocol);
    let pool = &config.pools[0];
    assert_eq!(pool.algorithm().name(), "round_robin");
    assert_eq!(pool.max_in_flight, Some(3));
    assert_eq!(pool.retries, 0);
    assert_eq!(pool.queue_timeout, Duration::from_secs(2));
    assert_eq!(pool.build(1).backends().len(), 1);
    assert_eq!(pool.build(1).queue_report().limit, 7);
    assert_eq!(config.limits.head.get(), 60 << 10);
    assert_eq!(config.limits.body, Some(ByteSize(1_000_000_000)));
    assert_eq!(config.limits.connections.map(|limit| limit.get()), Some(100));
    assert_eq!(*config.timeouts.idle, Duration::from_secs(90));
    assert!(sandarac_config::contains(&config.purge.allow, Some("127.0.0.1".parse().unwrap())));
    assert_eq!(config.admin.token.as_deref(), Some("0123456789abcdef"));
    assert_eq!(config.log.access, LogTarget::File("/var/log/a.log".into()));
    assert_eq!(config.log.format, LogFormat::Json);
    assert!(!config.forwarded.forwarded && config.forwarded.x_forwarded);
    assert_eq!(config.forwarded.name.as_str(), "edge-1");
}

#[test]
fn the_token_shows_nowhere() {
    let config =
        load(&format!("{BASE}[[route]]\npool = \"app\"\n[admin]\ntoken = \"s3cr3t-s3cr3t-s3cr3t\"\n"));
    assert!(!format!("{config:?}{}", sandarac_config::explain(&config)).contains("s3cr3t"));
}

#[test]
fn answers_redirects_and_edits_are_read() {
    let config = load(&format!(
        "{BASE}
        [[route]]
        match = \"=/no\"
        answer = {{ status = 403, body = \"no\\n\", fields = {{ X-Why = \"because\" }} }}
        [[route]]
        match = \"www.example.com\"
        redirect.to = \"https://example.com{{target}}\"
        [[route]]
        pool = \"app\"
        request.set.Host = \"app.internal\"
        request.remove = [\"X-Evil\"]
        response.add = {{ Link = [\"</a>\", \"</b>\"] }}
        "
    ));
    let routes = config.routes.all();
    let Action::Answer(answer) = &routes[0].action else { panic!() };
    assert_eq!(answer.status, 403);
    assert_eq!(&*answer.body, "no\n");
    let names: Vec<_> = answer.fields.iter().map(|(name, _)| String::from_utf8_lossy(name)).collect();
    assert_eq!(names, ["X-Why", "Content-Type"]);
    let Action::Redirect(redirect) = &routes[1].action else { panic!() };
    let parts = RequestParts { target: b"/x?y", ..RequestParts::default() };
    assert_eq!(redirect.status, 308);
    assert_eq!(*redirect.to.fill(&parts), *b"https://example.com/x?y");

    let lines = [("host", "example.com"), ("A", "1"), ("x-evil", "1")];
    let mut request: sandarac_message::FieldsBuf = lines.into_iter().collect();
    routes[2].request.apply(&mut request, &parts).unwrap();
    let mut out = Vec::new();
    request.encode(&mut out);
    assert_eq!(out, b"Host: app.internal\r\nA: 1\r\n");
    let mut response = sandarac_message::FieldsBuf::new();
    routes[2].response.all.apply(&mut response, &parts).unwrap();
    assert_eq!(response.view().all_named(b"link").collect::<Vec<_>>(), [b"</a>", b"</b>"]);
}

#[test]
fn what_needs_a_restart_is_named() {
    let with = |more: &str| load(&format!("{more}\n{BASE}[[route]]\npool = \"app\"\n"));
    let running = with("");
    assert!(with("cache.memory = \"1GiB\"").needs_restart(&running).is_empty());
    let other = with("user = \"33\"\nthreads = 3\nadmin.listen = \"unix:/run/x.sock\"");
    assert_eq!(other.needs_restart(&running), ["user", "threads", "admin.listen"]);
}

#[test]
fn a_configuration_is_explained_in_plain_words() {
    let config = load(&format!(
        "{BASE}
        [[route]]
        match = [\"/wp-admin\", {{ host = \"*.example.com\", method = [\"POST\", \"PUT\"] }}]
        pool = \"app\"
        cache = \"pass\"
        [[route]]
        match = \"/\"
        pool = \"app\"
        cache = {{ grace = \"30s\", stale_if_error = \"10m\", bypass_cookies = [\"session*\"], ignore_query = [\"utm_*\"] }}
        response = {{ set = {{ X-A = \"1\" }}, remove = [\"Via\"] }}
        "
    ));
    let expected = "\
Listens on :8080.
Pool app: http://127.0.0.1:8000.
Routes; the first that matches a request counts:
  1. /wp-admin, or POST or PUT on *.example.com → pool app, bypassing the cache
  2. / → pool app, from the cache, fresh for what the backend says, else 2m if it is a page or an asset (HTML, style, script, image, font, audio, video, PDF, feed)
     stale for 30s more while a new one is fetched
     stale for 10m more in place of an error, or of a response that takes longer than 1s
     kept for 1h more, to be validated or to stand in when no backend can be reached
     requests with a cookie session* bypass it, and so do those with Authorization
     other cookies are not forwarded; of the usual ones of sessions, PHPSESSID, JSESSIONID, ASP.NET_SessionId, connect.sid, _session_id and laravel_session are not named
     requests with a field that may identify somebody share only what is said to be for all
     ignored query parameters: utm_*
     ignored in Vary: cookie
     responses up to 32MiB
     response: without Via, X-A set to \"1\" (the Via of this proxy is added)
  Anything else is answered with 404.
Cache: up to 256MiB, profile safe, with Cache-Status.
No access log.
";
    assert_eq!(sandarac_config::explain(&config), expected);
}

#[test]
fn lifetimes_after_freshness_are_explained() {
    let lines = |rules: &str| {
        let config = load(&format!("{BASE}[[route]]\npool = \"app\"\n[cache]\n{rules}\n"));
        let explained = sandarac_config::explain(&config);
        let is_of_time = |line: &&str| line.contains(" more");
        explained.lines().map(str::trim).filter(is_of_time).map(str::to_owned).collect::<Vec<_>>()
    };
    let stand_in = "kept for 1h more, to be validated or to stand in when no backend can be reached";
    assert_eq!(lines(""), [stand_in]);
    assert_eq!(
        lines("keep = \"1d\"\nstale_when_disconnected = false"),
        ["kept for 1d more, to be validated"]
    );
    assert!(lines("keep = \"0s\"").is_empty());
    assert_eq!(
        lines("stale_if_error = \"5m\"\nprofile = \"rfc\""),
        ["stale for 5m more in place of an error", stand_in]
    );
    assert_eq!(
        lines("stale_if_error = \"5m\"\nstale_after = \"200ms\"")[0],
        "stale for 5m more in place of an error, or of a response that takes longer than 200ms"
    );
}
