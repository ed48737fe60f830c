//! The shared tier, from the file and from flags.

use std::time::Duration;

use sandarac_config::{Config, Flags, SharedConfig, SharedServers, Source};
use sandarac_policy::{ByteSize, SharedUse};

use crate::{BASE, load, refused, warnings};

const ROUTE: &str = "[[route]]\npool = \"app\"\n";

/// A whole configuration with `more` in `[cache.shared]`.
fn with_tier(more: &str) -> String {
    format!("{BASE}{ROUTE}[cache.shared]\n{more}\n")
}

fn tier(more: &str) -> SharedConfig {
    load(&with_tier(more)).cache.shared.unwrap()
}

/// The first error: its message, the text that is marked, and the help.
fn error(text: &str) -> (String, String, String) {
    let diagnostics = refused(text);
    let first = &diagnostics.errors()[0];
    let marked = first.place.clone().and_then(|place| text.get(place)).unwrap_or_default();
    (first.message.clone(), marked.to_owned(), first.help.clone().unwrap_or_default())
}

fn listed(shared: &SharedConfig) -> Vec<String> {
    match &shared.servers {
        SharedServers::Listed(servers) => servers.iter().map(ToString::to_string).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_the_table_there_is_no_tier() {
    let config = load(&format!("{BASE}{ROUTE}"));
    assert_eq!(config.cache.shared, None);
    assert_eq!(config.routes.all()[0].cache_rule().unwrap().shared, SharedUse::Off);
}

#[test]
fn a_list_of_servers_is_enough_on_one_machine() {
    let shared =
        tier("servers = [\"127.0.0.1\", \"[::1]:1\", \"localhost:2\", \"unix:/run/memcached.sock\"]");
    assert_eq!(listed(&shared), ["127.0.0.1:11211", "[::1]:1", "localhost:2", "unix:/run/memcached.sock"]);
    assert_eq!(&*shared.namespace, "");
    assert!(shared.secret_files.is_empty() && shared.login.is_none());
    assert_eq!(shared.local_ttl, Duration::from_secs(5));
    assert_eq!(shared.timeout, Duration::from_millis(50));
    assert_eq!(shared.ejection.failures, 3);
    assert_eq!(shared.ejection.first, Duration::from_secs(1));
    assert_eq!(shared.ejection.longest, Duration::from_secs(30));
    assert_eq!(shared.max_object, ByteSize(8 << 20));
    assert_eq!(shared.wait, Duration::from_secs(5));
    assert_eq!(shared.purge_memory, Duration::from_secs(3600));
    assert!(shared.compression);
}

#[test]
fn every_setting_is_read() {
    let shared = tier(
        "servers = \"cache1.example:11212\"
        namespace = \"shop-1.eu\"
        secret_file = [\"/etc/new\", \"/etc/old\"]
        user = \"sandarac\"
        password_file = \"/etc/password\"
        local_ttl = \"2s\"
        timeout = \"20ms\"
        ejection = { failures = 5, first = \"500ms\", longest = \"1m\" }
        max_object = \"1MiB\"
        wait = \"0s\"
        purge_memory = \"2h\"
        compression = false",
    );
    assert_eq!(listed(&shared), ["cache1.example:11212"]);
    assert_eq!(&*shared.namespace, "shop-1.eu");
    let files: Vec<_> = shared.secret_files.iter().map(|file| file.path().to_str().unwrap()).collect();
    assert_eq!(files, ["/etc/new", "/etc/old"]);
    let login = shared.login.unwrap();
    assert_eq!((&*login.user, login.password_file.path().to_str().unwrap()), ("sandarac", "/etc/password"));
    assert_eq!((shared.local_ttl, shared.timeout), (Duration::from_secs(2), Duration::from_millis(20)));
    assert_eq!((shared.ejection.failures, shared.ejection.longest), (5, Duration::from_secs(60)));
    assert_eq!(shared.max_object, ByteSize(1 << 20));
    assert_eq!((shared.wait, shared.purge_memory), (Duration::ZERO, Duration::from_secs(7200)));
    assert!(!shared.compression);
}

#[test]
fn servers_come_from_the_sources_of_pools() {
    let source =
        |text: &str| match tier(&format!("secret_file = \"/etc/secret\"\ndiscover = {{ {text} }}")).servers {
            SharedServers::Discovered(source) => source,
            other => panic!("{other:?}"),
        };
    assert_eq!(source("file = \"/etc/servers\""), Source::File("/etc/servers".into()));
    assert_eq!(
        source("dns = \"Cache.internal\""),
        Source::Dns { name: "cache.internal".into(), port: 11_211 }
    );
    assert_eq!(source("srv = \"_memcache._tcp.a\""), Source::Srv("_memcache._tcp.a".into()));
    let zookeeper = source("zookeeper = { servers = \"a\", path = \"/cache\" }");
    assert!(matches!(zookeeper, Source::ZooKeeper { .. }), "{zookeeper:?}");
    let etcd = source("etcd = { endpoints = \"http://a\", prefix = \"/cache\" }");
    assert!(matches!(etcd, Source::Etcd { .. }), "{etcd:?}");
}

#[test]
fn a_server_that_others_can_reach_needs_a_secret_or_a_dangerous_word() {
    for server in ["10.0.0.1:11211", "[2001:db8::1]:11211", "cache1.example:11211", "[::ffff:10.0.0.1]:1"] {
        let servers = format!("servers = [\"127.0.0.1\", {server:?}]\n");
        let (message, marked, help) = error(&with_tier(&servers));
        assert!(
            message.starts_with(&format!("other machines may reach {server}, and there is no secret")),
            "{message}"
        );
        assert_eq!(marked, format!("{server:?}"));
        for remedy in ["`secret_file`", "--shared-secret FILE", "`dangerous_unauthenticated = true`"] {
            assert!(help.contains(remedy), "{help}");
        }
        tier(&format!("{servers}secret_file = \"/etc/secret\""));
        tier(&format!("{servers}dangerous_unauthenticated = true"));
    }
    // A secret that was not understood is not missing.
    assert_eq!(refused(&with_tier("servers = \"a\"\nsecret_file = \"b\"")).errors().len(), 1);
    let (message, marked, _) = error(&with_tier("discover = { file = \"/a\" }"));
    assert!(message.starts_with("other machines may reach the servers that a source lists"), "{message}");
    assert_eq!(marked, "{ file = \"/a\" }");
}

#[test]
fn what_does_not_fit_together_is_refused_with_its_place() {
    let local = "servers = \"127.0.0.1\"\n";
    for (text, message, marked) in [
        ("servers = [\"a:1\", \"A:1\"]", "the server a:1 is listed twice", "\"A:1\""),
        ("servers = []", "the shared tier has no servers", ""),
        ("namespace = \"a\"", "the shared tier has no servers", ""),
        (
            "servers = \"a\"\ndiscover = { dns = \"b\" }",
            "the shared tier has `servers` or a `discover`, not both",
            "{ dns = \"b\" }",
        ),
        (
            "discover = { dns = \"b\", srv = \"_a._tcp.b\" }",
            "the servers come from one source, not from two",
            "\"_a._tcp.b\"",
        ),
        ("discover = {}", "a source of servers needs a `file`, `dns`, `srv`, `zookeeper` or `etcd`", "{}"),
        ("discover = { dns = \"10.0.0.1\" }", "\"10.0.0.1\" has no name to look up", "\"10.0.0.1\""),
        ("secret_file = [\"/a\", \"/a\"]", "the same file twice", "\"/a\""),
        (
            "secret_file = [\"/a\", \"/b\", \"/c\"]",
            "there are at most two secrets, the new one and the old",
            "\"/c\"",
        ),
        ("secret_file = \"a\"", "\"a\" is not a path from the root, such as \"/run/app\"", "\"a\""),
        ("user = \"a\"", "a `user` needs a `password_file`", "\"a\""),
        ("password_file = \"/a\"", "a `password_file` needs a `user`", "\"/a\""),
        (
            "password_file = \"/a\"\nuser = \"a:b\"",
            "\"a:b\" cannot be a user: white space, a control byte or a colon in user or password",
            "\"a:b\"",
        ),
        (
            "namespace = \"a b\"",
            "\"a b\" is not a name of at most 64 letters, digits, `-`, `_` and `.`, such as \"shop\"",
            "\"a b\"",
        ),
        ("local_ttl = \"10ms\"", "\"10ms\" is out of bounds: from 100ms to 1h", "\"10ms\""),
        ("timeout = \"11s\"", "\"11s\" is out of bounds: from 1ms to 10s", "\"11s\""),
        ("wait = \"1h\"", "\"1h\" is out of bounds: from 0s to 5m", "\"1h\""),
        ("purge_memory = \"1s\"", "\"1s\" is out of bounds: from 1m to 1w", "\"1s\""),
        ("max_object = \"2GiB\"", "\"2GiB\" is out of bounds: from 1KiB to 1GiB", "\"2GiB\""),
        ("ejection = { failures = 0 }", "0 is not a number from 1 to 1000000", "0"),
        ("ejection = { first = \"1m\" }", "`first` is more than `longest`", "{ first = \"1m\" }"),
    ] {
        let lists =
            text.starts_with("servers") || text.starts_with("discover") || text == "namespace = \"a\"";
        let whole = with_tier(&format!("{}{text}", if lists { "" } else { local }));
        let diagnostics = refused(&whole);
        let found = diagnostics.errors().iter().find(|error| error.message == message);
        let found = found.unwrap_or_else(|| panic!("{text}:\n{diagnostics}"));
        let place = found.place.clone().unwrap();
        assert!(marked.is_empty() || whole[place.clone()] == *marked, "{text}: {}", &whole[place]);
    }
    let together = with_tier("servers = \"127.0.0.1\"\nlocal_ttl = \"1m\"\npurge_memory = \"1m\"");
    assert!(error(&together).0.starts_with("`local_ttl` is not less than `purge_memory`"));
}

#[test]
fn a_password_beside_a_mistake_is_not_shown() {
    let etcd = |password: &str, rest: &str| {
        with_tier(&format!(
            "discover = {{ etcd = {{ endpoints = \"http://a\", user = \"u\", password = {password}{rest} }} }}"
        ))
    };
    let shown = refused(&etcd("\"hüntér2\"", ", prefx = \"/a\"")).to_string();
    assert!(shown.contains("password = \"*********\", prefx"), "{shown}");
    assert!(!shown.contains("hünt"), "{shown}");
    let number = refused(&etcd("1234567", "")).to_string();
    assert!(number.contains("strings need quotes") && !number.contains("1234567"), "{number}");
    let token = refused(&format!("{BASE}{ROUTE}[admin]\ntoken = \"hunter2\"\n")).to_string();
    assert!(token.contains("token = \"*******\"") && !token.contains("hunter2"), "{token}");
    let lines = refused("[admin]\ntoken = \"\"\"\nhunter2\n\"\"\"\nlisten = 1\n").to_string();
    assert!(lines.contains("sandarac.toml:5:10") && !lines.contains("hunter2"), "{lines}");
}

#[test]
fn slips_get_a_suggestion() {
    for (text, help) in [
        ("server = \"127.0.0.1\"", "did you mean `servers`?"),
        ("shared_max = \"1MiB\"", "here it is called `max_object`"),
        ("shared_wait = \"1s\"", "here it is called `wait`"),
        ("local-ttl = \"1s\"", "did you mean `local_ttl`?"),
        ("secret = \"x\"", "did you mean `secret_file`?"),
        ("timeout = \"50\"", "\"50ms\"?"),
        ("servers = \"memcached://10.0.0.1\"", "did you mean \"10.0.0.1\"?"),
        ("servers = \"/run/memcached.sock\"", "did you mean \"unix:/run/memcached.sock\"?"),
        ("servers = \"::1\"", "did you mean \"[::1]:11211\"?"),
    ] {
        assert_eq!(error(&with_tier(text)).2, help, "{text}");
    }
    let (message, _, help) = error(&format!("{BASE}{ROUTE}shared = \"reed\"\n"));
    assert_eq!(message, "expected true or false, or \"read\", found a string");
    assert_eq!(help, "did you mean \"read\"?");
    assert_eq!(error(&format!("{BASE}{ROUTE}shared = \"true\"\n")).2, "without quotes: true");
}

#[test]
fn settings_without_effect_get_a_warning() {
    let local = "servers = \"127.0.0.1\"\n";
    for (text, message) in [
        (
            "secret_file = \"/a\"\ndangerous_unauthenticated = true",
            "`dangerous_unauthenticated` has no effect beside a `secret_file`",
        ),
        (
            "dangerous_unauthenticated = true",
            "`dangerous_unauthenticated` has no effect: only this machine can reach the servers",
        ),
        ("max_object = \"512MiB\"", "`max_object` is more than the whole cache may hold in memory, 256MiB"),
    ] {
        assert_eq!(warnings(&with_tier(&format!("{local}{text}"))), [message]);
    }
    assert!(warnings(&with_tier(local)).is_empty());
    let none = "`shared` has no effect without [cache.shared]";
    assert_eq!(warnings(&format!("{BASE}{ROUTE}shared = \"read\"\n")), [none]);
    let tier = format!("[cache.shared]\n{local}");
    let of_route =
        |route: &str| warnings(&format!("{BASE}[[route]]\nmatch = \"/a\"\n{route}\n{ROUTE}{tier}"));
    assert_eq!(
        of_route("pool = \"app\"\ncache = \"pass\"\nshared = true"),
        ["`shared` has no effect on a route with cache = \"pass\""]
    );
    assert_eq!(
        of_route("answer = { status = 403 }\nshared = true"),
        ["`shared` has no effect on a route without a `pool`"]
    );
    assert_eq!(
        warnings(&format!("{BASE}{ROUTE}cache = \"pass\"\n{tier}")),
        ["no route uses the shared tier"]
    );
}

#[test]
fn a_route_uses_the_tier_or_only_reads_it_or_stays_out() {
    let config = load(&format!(
        "{BASE}[[route]]\nmatch = \"/a\"\npool = \"app\"\nshared = false
        [[route]]\nmatch = \"/b\"\npool = \"app\"\nshared = \"read\"\ncache = {{ ttl = \"1s\" }}
        [[route]]\nmatch = \"/c\"\npool = \"app\"\nshared = true
        {ROUTE}[cache.shared]\nservers = \"localhost\"\n"
    ));
    let uses: Vec<_> = config.routes.all().iter().map(|route| route.cache_rule().unwrap().shared).collect();
    assert_eq!(uses, [SharedUse::Off, SharedUse::Read, SharedUse::ReadWrite, SharedUse::ReadWrite]);
}

#[test]
fn flags_make_a_tier_or_replace_the_servers_of_the_file() {
    let flags = Flags {
        listen: vec![":8080".to_owned()],
        backends: vec!["http://localhost:8000".to_owned()],
        memcached: vec!["10.0.0.1".to_owned(), "unix:/run/memcached.sock".to_owned()],
        shared_secret: Some("/etc/secret".to_owned()),
        ..Flags::default()
    };
    let (config, warnings) = Config::from_flags(&flags).unwrap();
    assert!(warnings.is_empty());
    let file = "[[listen]]\naddress = \":8080\"\n[pool.default]\nbackends = \"http://localhost:8000\"\n[[route]]\npool = \"default\"\n\
         [cache.shared]\nservers = [\"10.0.0.1:11211\", \"unix:/run/memcached.sock\"]\nsecret_file = \"/etc/secret\"\n";
    assert_eq!(format!("{config:?}"), format!("{:?}", load(file)));

    let file = with_tier("discover = { dns = \"a\" }\nsecret_file = [\"/a\", \"/b\"]\ntimeout = \"10ms\"");
    let (config, _) = Config::from_toml_and_flags("sandarac.toml", &file, &flags).unwrap();
    let shared = config.cache.shared.unwrap();
    assert_eq!(listed(&shared), ["10.0.0.1:11211", "unix:/run/memcached.sock"]);
    assert_eq!(shared.secret_files.len(), 1);
    assert_eq!(shared.timeout, Duration::from_millis(10));

    let refused = |flags: &Flags| Config::from_flags(flags).unwrap_err().to_string();
    let open = refused(&Flags { shared_secret: None, ..flags.clone() });
    assert!(open.starts_with("error: other machines may reach 10.0.0.1:11211"), "{open}");
    assert!(open.contains("--shared-secret FILE") && open.contains("dangerous_unauthenticated"), "{open}");
    let alone = refused(&Flags { memcached: Vec::new(), ..flags.clone() });
    assert!(alone.starts_with("error: --shared-secret: there is no shared tier"), "{alone}");
    assert!(alone.contains("--memcached 127.0.0.1:11211"), "{alone}");
    let wrong = refused(&Flags { memcached: vec!["http://a".to_owned()], ..flags.clone() });
    assert!(wrong.starts_with("error: --memcached: \"http://a\" is not the address of a server"), "{wrong}");
    let relative = refused(&Flags { shared_secret: Some("secret".to_owned()), ..flags });
    assert!(relative.starts_with("error: --shared-secret: \"secret\" is not a path"), "{relative}");
}

#[test]
fn a_shared_tier_is_explained_in_plain_words() {
    let config = load(&format!(
        "{BASE}[[route]]\nmatch = \"/a\"\npool = \"app\"\nshared = false
        [[route]]\nmatch = \"/b\"\npool = \"app\"\nshared = \"read\"
        {ROUTE}[cache.shared]\nservers = [\"10.0.0.1\", \"unix:/run/memcached.sock\"]\nnamespace = \"shop\"
        secret_file = [\"/etc/new\", \"/etc/old\"]\nuser = \"sandarac\"\npassword_file = \"/etc/password\"\n\
        compression = false\n"
    ));
    let explained = sandarac_config::explain(&config);
    let expected = "\
Shared tier: memcached at 10.0.0.1:11211, unix:/run/memcached.sock, namespace shop, entries sealed by the secret in /etc/new, those by the one in /etc/old accepted too, as user sandarac, responses up to 8MiB, not compressed
     copies in memory are compared with it every 5s, and purges are remembered for 1h
     a server may take 50ms to answer, and is ejected for 1s to 30s after 3 failures in a row
     a request waits up to 5s for the fetch of another node.
";
    assert!(explained.contains(expected), "{explained}");
    let lines: Vec<_> =
        explained.lines().map(str::trim).filter(|line| line.contains("the shared tier")).collect();
    assert_eq!(lines, ["not in the shared tier", "reads the shared tier, and writes nothing to it"]);
    let open = "discover = { dns = \"cache.internal\" }\ndangerous_unauthenticated = true";
    let explained = sandarac_config::explain(&load(&with_tier(open)));
    let expected =
        "Shared tier: memcached at addresses of cache.internal, port 11211, entries not sealed by a secret";
    assert!(explained.contains(expected), "{explained}");
    assert!(!sandarac_config::explain(&load(&format!("{BASE}{ROUTE}"))).contains("hared tier"));
}
