//! A pool: its backends, how one is chosen, and what is refused.

use std::time::Duration;

use sandarac_balance::{Algorithm, Checks, Ejection, ResumeSettings, Settings, SkillSource};
use sandarac_config::{Config, PoolConfig, RetryBudgetConfig, SameSite, Source};
use sandarac_message::glob::Glob;
use sandarac_policy::{Action, Forward};

use crate::{load, refused, warnings};

/// A whole configuration of one pool with these settings.
fn whole(settings: &str) -> String {
    let backends = if settings.contains("backends") || settings.contains("discover") {
        ""
    } else {
        "backends = \"http://a\"\n"
    };
    format!(
        "listen = [{{ address = \":1\" }}]\nroute = [{{ pool = \"app\" }}]\n[pool.app]\n{backends}{settings}\n"
    )
}

fn pool(settings: &str) -> PoolConfig {
    load(&whole(settings)).pools.remove(0)
}

/// The first error's message, the text that is marked, and the help.
fn told(settings: &str) -> (String, String, String) {
    let text = whole(settings);
    let diagnostics = refused(&text);
    let first = &diagnostics.errors()[0];
    let marked = first.place.clone().and_then(|place| text.get(place)).unwrap_or_default();
    (first.message.clone(), marked.to_owned(), first.help.clone().unwrap_or_default())
}

#[test]
fn a_pool_of_which_nothing_is_said_has_the_defaults_of_the_balancer() {
    let pool = pool("");
    assert_eq!(pool.settings, Settings::default());
    assert_eq!(pool.classifier, None);
    assert_eq!(pool.check, None);
    assert_eq!(pool.sticky, None);
    assert_eq!(pool.hedge_after, None);
    assert_eq!(pool.retry_budget, RetryBudgetConfig { percent: 20, per_second: 10 });
    assert!(pool.discover.is_empty() && pool.skills_file.is_none());
}

#[test]
fn every_algorithm_can_be_chosen_by_its_name() {
    for algorithm in Algorithm::ALL {
        let pool = pool(&format!("balance = \"{algorithm}\""));
        assert_eq!(pool.algorithm(), algorithm);
        assert_eq!(pool.build(7).algorithm(), algorithm);
        let by_class = matches!(algorithm, Algorithm::Resume | Algorithm::ConsistentHash | Algorithm::Maglev);
        assert_eq!(pool.classifier.is_some(), by_class, "{algorithm}");
    }
}

#[test]
fn a_pool_whose_backends_are_yet_to_be_found_can_be_built() {
    for algorithm in Algorithm::ALL {
        let pool = pool(&format!("balance = \"{algorithm}\"\ndiscover.directory = \"/run/app\""));
        assert!(pool.build(1).pick(Some(b"a"), Duration::ZERO, &[]).is_err(), "{algorithm}");
        let found = pool.discovered("unix:/run/app/1".parse().unwrap());
        let built = pool.of_backends(vec![found.build()], 2, Some(&pool.build(1)));
        assert!(built.pick(Some(b"a"), Duration::ZERO, &[]).is_ok(), "{algorithm}");
    }
}

#[test]
fn backends_are_strings_or_tables() {
    let pool = pool(
        "max_in_flight = 64
        backends = [\"http://a\", { address = \"unix:/b\", weight = 3, max_in_flight = 8 }, { address = \"http://c\" }]",
    );
    let read: Vec<_> = pool
        .backends
        .iter()
        .map(|backend| (backend.address.to_string(), backend.weight, backend.max_in_flight))
        .collect();
    let expected = [("http://a", 1, Some(64)), ("unix:/b", 3, Some(8)), ("http://c", 1, Some(64))];
    assert_eq!(read, expected.map(|(address, weight, limit)| (address.to_owned(), weight, limit)));
    let built = pool.build(1);
    assert_eq!(built.backends().iter().map(|backend| backend.weight()).collect::<Vec<_>>(), [1, 3, 1]);
    assert_eq!(pool.discovered("unix:/b".parse().unwrap()).weight, 3);
    let found = pool.discovered("http://d".parse().unwrap());
    assert_eq!(found.weight, 1);
    assert_eq!(found.max_in_flight, Some(64));
}

#[test]
fn everything_of_a_pool_is_read() {
    let pool = pool(
        "balance = \"resume\"
        class = \"path_segment(2)\"
        slow_start = \"30s\"
        single_version = true
        hedge_after = \"500ms\"
        retry_budget = { percent = 5, per_second = 0 }
        [pool.app.resume]
        variance = 2.5
        backlog_history = 20
        exploration = 0
        concurrency = 4
        max_classes = 500
        skills = \"inferred\"
        skills_file = \"/var/lib/skills\"
        [pool.app.check]
        path = \"/health?deep=1\"
        host = \"www.example.com:81\"
        status = [204, \"300-302\"]
        interval = \"1s\"
        timeout = \"500ms\"
        rise = 1
        fall = 5
        [pool.app.ejection]
        failures = 7
        fault_percent = 50
        first = \"2s\"
        longest = \"2s\"
        max_percent = 30
        [pool.app.sticky]
        cookie = \"lb\"
        max_age = \"1h\"
        path = \"/shop\"
        secure = true
        same_site = \"none\"",
    );
    let classifier = pool.classifier.clone().unwrap();
    assert_eq!(
        pool.settings,
        Settings {
            algorithm: Algorithm::Resume,
            slow_start: Duration::from_secs(30),
            single_version: true,
            resume: ResumeSettings {
                variance: 2.5,
                backlog_history: 20,
                exploration: 0.0,
                concurrency: 4,
                max_classes: 500,
                skills: SkillSource::Inferred,
                classifier: classifier.fingerprint(),
            },
            checks: Checks { rise: 1, fall: 5 },
            ejection: Ejection {
                failures: 7,
                fault_percent: 50,
                first: Duration::from_secs(2),
                longest: Duration::from_secs(2),
                max_percent: 30,
            },
            ..Settings::default()
        }
    );
    assert_eq!(pool.hedge_after, Some(Duration::from_millis(500)));
    assert_eq!(pool.retry_budget, RetryBudgetConfig { percent: 5, per_second: 0 });
    assert_eq!(pool.skills_file.as_deref(), Some("/var/lib/skills".as_ref()));
    let check = pool.check.unwrap();
    assert_eq!(check.path, "/health?deep=1");
    assert_eq!(check.host.as_deref(), Some("www.example.com:81"));
    assert_eq!(check.interval, Duration::from_secs(1));
    assert_eq!(check.timeout, Duration::from_millis(500));
    let passing: Vec<u16> = (100..600).filter(|&status| check.passes(status)).collect();
    assert_eq!(passing, [204, 300, 301, 302]);
    let sticky = pool.sticky.unwrap();
    assert_eq!(sticky.cookie.as_str(), "lb");
    assert_eq!(sticky.path, "/shop");
    assert_eq!(sticky.max_age, Some(Duration::from_secs(3600)));
    assert_eq!(sticky.secure, Some(true));
    assert_eq!(sticky.same_site.attribute(), "None");
}

#[test]
fn tables_that_are_there_but_empty_turn_on_what_they_are_about() {
    let pool = pool("check = {}\nsticky = {}\nbalance = \"consistent_hash\"\nload_factor = 2");
    let check = pool.check.unwrap();
    assert!(check.passes(200) && check.passes(399) && !check.passes(404) && !check.passes(101));
    assert_eq!(check.path, "/");
    assert_eq!(check.interval, Duration::from_secs(5));
    let sticky = pool.sticky.unwrap();
    assert_eq!(sticky.cookie.as_str(), "sandarac_backend");
    assert_eq!(sticky.secure, None);
    assert_eq!(sticky.same_site, SameSite::Lax);
    assert_eq!(sticky.path, "/");
    assert_eq!(pool.settings.load_factor, 2.0);
}

#[test]
fn backends_are_found_in_one_place_or_in_several() {
    assert_eq!(pool("discover.directory = \"/run/app\"").discover, [Source::Directory("/run/app".into())]);
    let several = pool(
        "backends = \"http://a\"
        [[pool.app.discover]]
        file = \"/etc/backends\"
        [[pool.app.discover]]
        dns = \"http://App.internal:8000\"
        [[pool.app.discover]]
        srv = \"_http._tcp.app.internal\"
        [[pool.app.discover]]
        zookeeper = { servers = [\"10.0.0.1\", \"[::1]:2182\", \"zk:2183\"], path = \"/app\", session_timeout = \"6s\" }
        [[pool.app.discover]]
        etcd = { endpoints = \"http://127.0.0.1:2379\", prefix = \"/app/\", user = \"u\", password = \"top secret\" }",
    );
    assert_eq!(several.discover[0], Source::File("/etc/backends".into()));
    assert_eq!(several.discover[1], Source::Dns { name: "app.internal".into(), port: 8000 });
    assert_eq!(several.discover[2], Source::Srv("_http._tcp.app.internal".into()));
    let Source::ZooKeeper { servers, path, session_timeout } = &several.discover[3] else { panic!() };
    let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
    assert_eq!(servers, ["10.0.0.1:2181", "[::1]:2182", "zk:2183"]);
    assert_eq!(&**path, "/app");
    assert_eq!(*session_timeout, Duration::from_secs(6));
    let Source::Etcd { endpoints, prefix, login: Some((user, password)) } = &several.discover[4] else {
        panic!()
    };
    assert_eq!(endpoints.len(), 1);
    assert_eq!(&**prefix, "/app/");
    assert_eq!(user, "u");
    assert_eq!(&**password, "top secret");
    assert!(!format!("{several:?}").contains("top secret"));
}

#[test]
fn what_cannot_be_is_marked_and_told() {
    for (settings, message, marked) in [
        ("backends = []", "the pool `app` has no backends", "app"),
        ("backends = [{ weight = 2 }]", "a backend needs an `address`", "{ weight = 2 }"),
        (
            "backends = [\"http://a\", { address = \"http://a:80\" }]",
            "the backend http://a is listed twice",
            "\"http://a:80\"",
        ),
        ("backends = [{ address = \"http://a\", weight = 0 }]", "0 is not a number from 1 to 1000", "0"),
        (
            "backends = [{ address = \"http://a\", weight = 1001 }]",
            "1001 is not a number from 1 to 1000",
            "1001",
        ),
        (
            "single_version = true",
            "`single_version` needs the résumés of workers, and balance = \"least_requests\" uses none",
            "true",
        ),
        (
            "balance = \"resume\"\nresume.skills_file = \"/a\"",
            "`skills_file` is for inferred skills; workers keep reported ones",
            "\"/a\"",
        ),
        ("resume.skills_file = \"a\"", "\"a\" is not a path from the root, such as \"/run/app\"", "\"a\""),
        ("resume.variance = 0", "0 is not a number from 0.1 to 1000, with a fraction or not", "0"),
        ("resume.variance = nan", "NaN is not a number from 0.1 to 1000, with a fraction or not", "nan"),
        ("resume.variance = inf", "inf is not a number from 0.1 to 1000, with a fraction or not", "inf"),
        ("resume.exploration = 1.5", "1.5 is not a number from 0 to 1, with a fraction or not", "1.5"),
        ("load_factor = 0.9", "0.9 is not a number from 1 to 1000, with a fraction or not", "0.9"),
        ("check.path = \"health\"", "\"health\" is not a path, such as \"/\"", "\"health\""),
        ("check.path = \"/a b\"", "\"/a b\" is not a path, such as \"/\"", "\"/a b\""),
        (
            "check.status = [\"399-200\"]",
            "\"399-200\" is not a range of status codes, such as \"200-399\"",
            "\"399-200\"",
        ),
        ("check.status = 600", "600 is not a number from 100 to 599", "600"),
        (
            "check.host = \"a/b\"",
            "\"a/b\" is not a host with or without a port, such as \"www.example.com\"",
            "\"a/b\"",
        ),
        ("slow_start = \"99999999w\"", "\"99999999w\" is more than a hundred years", "\"99999999w\""),
        (
            "slow_start = \"99999999999999999999s\"",
            "\"99999999999999999999s\" is more than a hundred years",
            "\"99999999999999999999s\"",
        ),
        ("check.rise = 0", "0 is not a number from 1 to 1000", "0"),
        ("ejection = { first = \"2m\" }", "`first` is more than `longest`", "{ first = \"2m\" }"),
        ("ejection.max_percent = 101", "101 is not a number from 0 to 100", "101"),
        (
            "sticky = { same_site = \"none\" }",
            "browsers refuse a cookie with `same_site = \"none\"` that is not secure",
            "{ same_site = \"none\" }",
        ),
        (
            "sticky = { max_age = \"500ms\" }",
            "browsers count `max_age` in whole seconds, and delete a cookie with less than one",
            "{ max_age = \"500ms\" }",
        ),
        (
            "sticky = { cookie = \"__Host-x\", path = \"/shop\" }",
            "browsers refuse a cookie named __Host-x that is not set with path = \"/\", secure = true",
            "{ cookie = \"__Host-x\", path = \"/shop\" }",
        ),
        (
            "sticky = { cookie = \"__Secure-x\", secure = false }",
            "browsers refuse a cookie named __Secure-x that is not set with secure = true",
            "{ cookie = \"__Secure-x\", secure = false }",
        ),
        ("check.status = []", "no backend of the pool `app` passes a check with `status = []`", "app"),
        ("sticky.path = \"/a;b\"", "\"/a;b\" is not the path of a cookie, such as \"/\"", "\"/a;b\""),
        ("hedge_after = \"0s\"", "a timeout must be more than 0s", "\"0s\""),
        ("retry_budget.percent = 1001", "1001 is not a number from 0 to 1000", "1001"),
        (
            "discover = {}",
            "a source needs a `directory`, a `file`, `dns`, `srv`, `zookeeper` or `etcd`",
            "{}",
        ),
        (
            "discover = { directory = \"/a\", srv = \"_a._tcp.b\" }",
            "a source is one of several kinds, not two at once",
            "\"_a._tcp.b\"",
        ),
        (
            "discover.directory = \"run\"",
            "\"run\" is not a path from the root, such as \"/run/app\"",
            "\"run\"",
        ),
        (
            "discover.dns = \"http://10.0.0.1\"",
            "\"http://10.0.0.1\" has no name to look up",
            "\"http://10.0.0.1\"",
        ),
        ("discover.zookeeper = { path = \"/a\" }", "ZooKeeper needs `servers`", "{ path = \"/a\" }"),
        ("discover.zookeeper = { servers = \"a\" }", "ZooKeeper needs a `path`", "{ servers = \"a\" }"),
        (
            "discover.zookeeper.servers = \"a:0\"",
            "\"a:0\" is not a host with or without a port, such as \"127.0.0.1:2181\"",
            "\"a:0\"",
        ),
        (
            "discover.zookeeper.path = \"/a//b\"",
            "\"/a//b\" is not the path of a node, such as \"/app\"",
            "\"/a//b\"",
        ),
        ("discover.etcd = { prefix = \"/a\" }", "etcd needs `endpoints`", "{ prefix = \"/a\" }"),
        (
            "discover.etcd = { endpoints = \"http://a\" }",
            "etcd needs a `prefix`",
            "{ endpoints = \"http://a\" }",
        ),
        ("discover.etcd.prefix = \"\"", "a prefix has 1 to 1024 bytes", "\"\""),
        (
            "discover.etcd = { endpoints = \"unix:/a\", prefix = \"b\" }",
            "etcd is reached by http://, not by a Unix socket",
            "\"unix:/a\"",
        ),
        (
            "discover.etcd = { endpoints = \"http://a\", prefix = \"b\", user = \"c\" }",
            "a `user` needs a `password`",
            "\"c\"",
        ),
    ] {
        let (was, was_marked, _) = told(settings);
        assert_eq!(was, message, "{settings}");
        assert_eq!(was_marked, marked, "{settings}");
    }
}

#[test]
fn slips_in_a_pool_get_a_suggestion() {
    for (settings, help) in [
        ("balance = \"resumé\"", "did you mean \"resume\"?"),
        (
            "balance = \"least_conn\"",
            "here it is \"least_requests\", which counts requests, because connections are kept",
        ),
        (
            "balance = \"ip_hash\"",
            "addresses of clients are not hashed; `sticky` keeps a session at its backend",
        ),
        ("balance = \"consistent-hash\"", "did you mean \"consistent_hash\"?"),
        (
            "backends = [\"http://a\", \"http://a\"]",
            "to give it more of the load, write { address = …, weight = 2 }",
        ),
        ("single_version = true", "balance = \"resume\""),
        ("resume.skills_file = \"/a\"", "skills = \"inferred\""),
        ("resume.variance = \"4\"", "without quotes: 4"),
        ("check.path = \"health\"", "a path begins with a slash: \"/health\""),
        ("check.status = \"200\"", "without quotes: 200"),
        ("check.status = \"399-200\"", "did you mean \"200-399\"?"),
        ("sticky = { same_site = \"none\" }", "add secure = true"),
        ("sticky.same_site = \"Lax\"", "did you mean \"lax\"?"),
        ("discover.directry = \"/a\"", "did you mean `directory`?"),
        ("discover.dns = \"http://10.0.0.1\"", "write it among the `backends`"),
        ("discover.srv = \"app.internal\"", "did you mean \"_http._tcp.app.internal\"?"),
        ("discover.zookeeper.servers = \"http://zk:2181\"", "did you mean \"zk:2181\"?"),
        ("discover.zookeeper.path = \"/app/\"", "did you mean \"/app\"?"),
        ("skills_file = \"/a\"", "`skills_file` belongs to [pool.NAME.resume]"),
        ("interval = \"1s\"", "`interval` belongs to [pool.NAME.check]"),
    ] {
        assert_eq!(told(settings).2, help, "{settings}: {}", told(settings).0);
    }
}

#[test]
fn a_duration_may_be_a_hundred_years_and_no_more() {
    let years = std::time::Duration::from_secs(36_600 * 86_400);
    assert_eq!(sandarac_config::duration("36600d"), Ok(years));
    assert!(
        sandarac_config::duration("36600d 1ms").is_err_and(|why| why.contains("more than a hundred years"))
    );
}

#[test]
fn what_an_algorithm_has_no_use_for_is_warned_of() {
    for (settings, warning) in [
        ("class = \"path_segment(1)\"", "`class` has no effect with balance = \"least_requests\""),
        ("balance = \"maglev\"\nload_factor = 2", "`load_factor` has no effect with balance = \"maglev\""),
        ("balance = \"random\"\nresume.variance = 5", "`resume` has no effect with balance = \"random\""),
        (
            "balance = \"fallback\"\nbackends = [\"http://a\", { address = \"http://b\", weight = 2 }]",
            "`weight` has no effect with balance = \"fallback\": the order decides",
        ),
        (
            "balance = \"maglev\"\nclass = \"host\"\nslow_start = \"10s\"",
            "`slow_start` of the pool `app` has no effect with balance = \"maglev\"",
        ),
        ("queue = 5", "`queue` of the pool `app` has no effect without `max_in_flight`"),
        ("queue_timeout = \"1m\"", "`queue_timeout` of the pool `app` has no effect without `max_in_flight`"),
        (
            "retries = 0\nretry_budget.percent = 5",
            "`retry_budget` of the pool `app` has no effect with `retries = 0`",
        ),
    ] {
        assert_eq!(warnings(&whole(settings)), [warning], "{settings}");
    }
    let no_warning: [String; 0] = [];
    for settings in [
        "balance = \"resume\"\nclass = \"path_segment(1)\"\nresume.variance = 5",
        "balance = \"consistent_hash\"\nclass = \"{path}\"\nload_factor = 2",
        "class = \"host\"\nload_factor = 1.25\nresume.variance = 4",
    ] {
        assert_eq!(warnings(&whole(settings)), no_warning, "{settings}");
    }
}

/// Two pools, and a route to the first with `more`.
fn two_pools(more: &str) -> String {
    format!(
        "listen = [{{ address = \":1\" }}]\n[pool.app]\nbackends = \"http://a\"\n[pool.primary]\nbackends = \"http://b\"\n\
         sticky = {{}}\n[[route]]\n{more}\n"
    )
}

#[test]
fn a_route_may_send_unsafe_methods_to_another_pool() {
    let text = two_pools("pool = \"app\"\nunsafe_pool = \"primary\"");
    let (config, found) = Config::from_toml("sandarac.toml", &text).unwrap();
    assert!(found.is_empty(), "{}", found[0]);
    assert!(matches!(
        config.routes.all()[0].action,
        Action::Forward(Forward { pool, unsafe_pool: Some(other), cache: Some(_) })
            if pool.place() == 0 && other.place() == 1
    ));
    let explained = sandarac_config::explain(&config);
    assert!(
        explained.contains("→ pool app, other methods than GET, HEAD, OPTIONS and TRACE to pool primary, "),
        "{explained}"
    );
    let unknown = refused(&two_pools("pool = \"app\"\nunsafe_pool = \"primry\""));
    assert_eq!(unknown.errors()[0].message, "there is no pool called `primry`");
    assert_eq!(unknown.errors()[0].help.as_deref(), Some("did you mean \"primary\"?"));
    let shared = text.replace("\"http://a\"\n", "\"http://a\"\nsticky = {}\n");
    assert_eq!(
        refused(&shared).errors()[0].message,
        "sessions of the pools `app` and `primary`, which have a route in common, would be in one cookie, sandarac_backend"
    );
    let idle = warnings(&two_pools("answer = {}\nunsafe_pool = \"primary\""));
    assert!(idle.contains(&"`unsafe_pool` has no effect on a route without a `pool`".to_owned()), "{idle:?}");
}

#[test]
fn the_cookie_of_a_session_that_sticks_is_none_of_the_caches_concern() {
    for (route, ignored) in
        [("pool = \"primary\"", 1), ("pool = \"app\"\nunsafe_pool = \"primary\"", 1), ("pool = \"app\"", 0)]
    {
        let config = load(&two_pools(route));
        let Action::Forward(Forward { cache: Some(rule), .. }) = &config.routes.all()[0].action else {
            panic!()
        };
        assert_eq!(rule.policy.ignored_cookies, vec![Glob::new("sandarac_backend"); ignored], "{route}");
    }
}

#[test]
fn two_pools_do_not_keep_their_skills_in_one_file() {
    let keys = "backends = \"http://a\"\nbalance = \"resume\"\nresume = { skills = \"inferred\", skills_file = \"/skills\" }";
    let text = format!(
        "[[listen]]\naddress = \":0\"\n[pool.one]\n{keys}\n[pool.two]\n{keys}\n[[route]]\npool = \"one\"\n"
    );
    let said = refused(&text).to_string();
    assert!(said.contains("the skills of the pool `one` are kept in this file already"), "{said}");
}

#[test]
fn a_pool_with_one_backend_is_explained_with_its_algorithm() {
    let config = load(&whole("balance = \"resume\"\nclass = \"host\"\nbackends = [\"http://a\"]"));
    let explained = sandarac_config::explain(&config);
    assert!(explained.contains("Pool app: http://a (resume by host).\n"), "{explained}");
}

#[test]
fn a_pool_is_explained_in_plain_words() {
    let config = load(&whole(
        "balance = \"consistent_hash\"
        class = \"{host}/{segment:1}\"
        backends = [\"http://a\", { address = \"http://b\", weight = 2, max_in_flight = 99 }]
        max_in_flight = 8
        check.path = \"/health\"
        sticky = {}
        [[pool.app.discover]]
        directory = \"/run/app\"",
    ));
    let explained = sandarac_config::explain(&config);
    let expected = "Pool app: http://a, http://b (weight 2, at most 99 in flight), sockets in /run/app (consistent_hash by {host}/{segment:1}), \
                    at most 8 requests in flight to each other, then 1000 waiting, checked by /health every 5s, sessions stick by \
                    the cookie sandarac_backend.\n";
    assert!(explained.contains(expected), "{explained}");
}

#[test]
fn fastcgi_has_the_usual_defaults_and_its_own_addresses() {
    let pool = pool("backends = \"fcgi+unix:/run/php/php-fpm.sock\"\nfastcgi.root = \"/srv/wiki\"");
    let fastcgi = pool.fastcgi.expect("it speaks FastCGI");
    assert!(
        pool.backends[0].address.is_fastcgi() && fastcgi.local && fastcgi.real_path && !fastcgi.keep_alive
    );
    assert_eq!((fastcgi.root.to_str(), &*fastcgi.index), (Some("/srv/wiki"), "index.php"));
    assert_eq!((fastcgi.extensions, fastcgi.front_controller), (vec![".php".to_owned()], None));
    assert_eq!((fastcgi.max_idle, &fastcgi.params), (4, &vec![]));
}

#[test]
fn fastcgi_takes_parameters_and_a_front_controller() {
    let settings = "backends = \"fcgi://php:9000\"\n[pool.app.fastcgi]\nroot = \"/app\"\nlocal = false\n\
        front_controller = \"/public/index.php\"\nparams = { APP_ENV = \"prod\", SERVER_NAME = \"\" }";
    let fastcgi = pool(settings).fastcgi.expect("it speaks FastCGI");
    assert_eq!(fastcgi.front_controller.as_deref(), Some("/public/index.php"));
    assert!(!fastcgi.local && !fastcgi.real_path);
    let param = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(fastcgi.params, [param("APP_ENV", "prod"), param("SERVER_NAME", "")]);
}

#[test]
fn a_backend_that_does_not_speak_what_its_pool_speaks_is_refused() {
    for (settings, message, help) in [
        (
            "backends = \"fcgi://a\"",
            "the pool has no `fastcgi`, which the backend fcgi://a needs",
            "fastcgi = { root = \"/srv/wiki\" }",
        ),
        (
            "backends = \"unix:/run/a.sock\"\nfastcgi.root = \"/a\"",
            "the pool has `fastcgi`, which the backend unix:/run/a.sock does not speak",
            "did you mean \"fcgi+unix:/run/a.sock\"?",
        ),
        ("backends = \"fcgi://a\"\nfastcgi = {}", "`fastcgi` needs a `root`", ""),
        (
            "backends = \"fcgi://a\"\nfastcgi = { root = \"/a\", local = false }",
            "with `local = false` it is not known which files are scripts",
            "front_controller = \"/index.php\"",
        ),
        (
            "backends = \"fcgi://a\"\nfastcgi = { root = \"/a\", extensions = \"php\" }",
            "\"php\" is not the end of a file's name, with its dot, such as \".php\"",
            "\".php\"?",
        ),
        (
            "backends = \"fcgi://a\"\nfastcgi = { root = \"/a\", params = { HTTP_PROXY = \"x\" } }",
            "`HTTP_PROXY` is never sent",
            "",
        ),
        (
            "backends = \"fcgi://a\"\nfastcgi = { root = \"/a\", front_controller = \"/../x.php\" }",
            "\"/../x.php\" is not the path of a script below the root, such as \"/index.php\"",
            "",
        ),
    ] {
        let (told_message, _, told_help) = told(settings);
        assert_eq!(told_message, message, "{settings}");
        assert!(help.is_empty() || told_help.contains(help), "{settings}: {told_help}");
    }
}
