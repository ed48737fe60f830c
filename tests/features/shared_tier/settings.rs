//! The settings of the tier: what is shared with whom, and how it is set up.

use sandarac_test_support::{Memcached, Origin, Sandarac, TempDir, get, reply, within};

use super::{Fleet, SHARED, Settings, config, entries, has_entries, is_shared, node};
use crate::{numbered, sandarac, site};

/// An origin with pages that are fresh for long, and a server.
fn origin_and_server() -> (Origin, Memcached) {
    (Origin::new(numbered(|_| reply(200).cache("max-age=600"))), Memcached::start(&[]))
}

#[test]
fn a_route_can_stay_out_of_the_tier() {
    let settings = Settings { route: "shared = false", ..Settings::default() };
    let fleet = Fleet::with(&settings, numbered(|_| reply(200).cache("max-age=600")));
    assert_eq!([fleet.first.get("/page").text(), fleet.second.get("/page").text()], ["1", "2"]);
    assert_eq!([fleet.first.get("/page").text(), fleet.second.get("/page").text()], ["1", "2"]);
    assert_eq!(entries(&fleet.server), 0);
}

#[test]
fn a_route_can_read_and_write_nothing() {
    let (origin, server) = origin_and_server();
    let writer = node(&origin, &[&server], &Settings::default());
    let reader = node(&origin, &[&server], &Settings { route: "shared = \"read\"", ..Settings::default() });
    writer.get("/written").expect(200);
    has_entries(&server, 1);
    assert!(is_shared(&reader.get("/written").expect(200)));
    assert_eq!(reader.get("/read").text(), "2");
    assert_eq!(reader.get("/read").text(), "2");
    assert_eq!(writer.get("/read").text(), "3");
    has_entries(&server, 2);
}

#[test]
fn namespaces_share_nothing() {
    let (origin, server) = origin_and_server();
    let of = |namespace: &str| {
        let shared = format!("{SHARED}\nnamespace = \"{namespace}\"");
        node(&origin, &[&server], &Settings { shared: &shared, ..Settings::default() })
    };
    let (shop, blog, other_shop) = (of("shop"), of("blog"), of("shop"));
    assert_eq!(shop.get("/page").text(), "1");
    has_entries(&server, 1);
    assert_eq!(blog.get("/page").text(), "2");
    has_entries(&server, 2);
    assert_eq!(other_shop.get("/page").text(), "1");
    blog.admin(&["purge", "--all"]).success();
    assert_eq!(blog.get("/page").text(), "3");
    assert_eq!([shop.get("/page").text(), other_shop.get("/page").text()], ["1", "1"]);
}

/// A node whose `secret_file` lists files with these bytes, repeated.
fn with_secrets(origin: &Origin, server: &Memcached, dir: &TempDir, secrets: &[char]) -> Sandarac {
    let files: Vec<String> = secrets.iter().map(|secret| secret_file(dir, *secret, 32)).collect();
    let shared = format!("{SHARED}\nsecret_file = {files:?}");
    node(origin, &[server], &Settings { shared: &shared, ..Settings::default() })
}

fn secret_file(dir: &TempDir, secret: char, length: usize) -> String {
    let path = dir.join(&format!("{secret}-{length}"));
    std::fs::write(&path, secret.to_string().repeat(length)).expect("a secret");
    path.display().to_string()
}

#[test]
fn nodes_with_one_secret_share_and_nodes_with_another_do_not() {
    let (origin, server) = origin_and_server();
    let dir = TempDir::new();
    let first = with_secrets(&origin, &server, &dir, &['a']);
    assert_eq!(first.get("/page").expect(200).text(), "1");
    has_entries(&server, 1);
    assert!(is_shared(&with_secrets(&origin, &server, &dir, &['a']).get("/page").expect(200)));
    for secrets in [&['b'][..], &[]] {
        let other = if secrets.is_empty() {
            node(&origin, &[&server], &Settings::default())
        } else {
            with_secrets(&origin, &server, &dir, secrets)
        };
        for page in ["/page", "/other"] {
            assert!(!other.get(page).expect(200).is_hit(), "{secrets:?}");
            assert!(other.get(page).expect(200).is_hit(), "{secrets:?}");
        }
        assert_eq!(first.get("/page").expect(200).text(), "1");
    }
    assert!(first.get("/new").expect(200).cache_parameter("stored").is_some());
}

#[test]
fn a_node_with_the_old_secret_and_the_new_shares_with_nodes_that_have_the_old() {
    let (origin, server) = origin_and_server();
    let dir = TempDir::new();
    let old = with_secrets(&origin, &server, &dir, &['a']);
    let both = with_secrets(&origin, &server, &dir, &['a', 'b']);
    old.get("/page").expect(200);
    has_entries(&server, 1);
    assert!(is_shared(&both.get("/page").expect(200)));
    both.get("/other").expect(200);
    has_entries(&server, 2);
    assert!(is_shared(&old.get("/other").expect(200)));
}

/// Regression: the fault of a log was shown after the log had gone.
#[test]
fn a_log_with_a_secret_and_a_node_without_are_told_apart_until_the_server_is_emptied() {
    let origin = Origin::new(numbered(|_| reply(200).cache("max-age=600")));
    let dir = TempDir::new();
    let shared = format!("{SHARED}\nsecret_file = {:?}", secret_file(&dir, 'a', 32));
    let (plain, sealed) = (Settings::default(), Settings { shared: &shared, ..Settings::default() });
    for (before, after, fault) in [
        (&plain, &sealed, "its purge log cannot be used: not sealed, and this node has a secret"),
        (&sealed, &plain, "its purge log cannot be used: sealed, and this node has no secret"),
    ] {
        let server = Memcached::start(&[]);
        let status = |node: &Sandarac, word: &str| {
            within(word, || node.admin(&["status"]).success().stdout.contains(word).then_some(()));
        };
        status(&node(&origin, &[&server], before), "  used  ");
        let node = node(&origin, &[&server], after);
        status(&node, fault);
        node.says(fault);
        server.ask("flush_all\r\n", "OK\r\n");
        status(&node, "  used  ");
    }
}

/// What `sandarac check` says to `[cache.shared]` with these keys.
fn check(shared: &str) -> (bool, String) {
    let text = site("http://127.0.0.1:9", "", &format!("[cache.shared]\n{shared}"));
    let output = sandarac().arg("check").config(text).run();
    (output.status.success(), output.stdout + &output.stderr)
}

#[test]
fn servers_that_others_reach_need_a_secret() {
    for server in ["192.0.2.1:11211", "[2001:db8::1]:11211", "cache.example"] {
        let servers = format!("servers = [\"127.0.0.1:11211\", \"{server}\"]");
        let (is_right, said) = check(&servers);
        assert!(!is_right && said.contains("secret_file"), "{said}");
        let (is_right, said) = check(&format!("{servers}\ndangerous_unauthenticated = true"));
        assert!(is_right, "{said}");
        let dir = TempDir::new();
        let (is_right, said) = check(&format!("{servers}\nsecret_file = {:?}", secret_file(&dir, 'a', 32)));
        assert!(is_right, "{said}");
    }
    for server in ["127.0.0.1:11211", "127.0.0.2", "[::1]:11211", "unix:/run/memcached.sock"] {
        let (is_right, said) = check(&format!("servers = [\"{server}\"]"));
        assert!(is_right, "{server}: {said}");
    }
}

#[test]
fn settings_that_cannot_work_are_errors() {
    let dir = TempDir::new();
    let one = "servers = [\"127.0.0.1:11211\"]";
    let short = format!("{one}\nsecret_file = {:?}", secret_file(&dir, 'a', 31));
    let long_life = format!("{one}\nlocal_ttl = \"1h\"\npurge_memory = \"1h\"");
    for (settings, word) in [
        ("", "servers"),
        ("servers = []", "servers"),
        ("servers = [\"127.0.0.1:11211\", \"127.0.0.1:11211\"]", "127.0.0.1:11211"),
        (&long_life, "purge_memory"),
    ] {
        let (is_right, said) = check(settings);
        assert!(!is_right && said.contains(word), "{settings}: {said}");
    }
    // The file is read when the node starts.
    let text = site("http://127.0.0.1:9", "", &format!("[cache.shared]\n{short}"));
    let mut begun = sandarac().config(text).begin();
    begun.says("32");
    assert!(!begun.wait().success());
}

#[test]
fn responses_above_max_object_are_served_and_not_shared() {
    let shared = format!("{SHARED}\nmax_object = \"10KiB\"");
    let settings = Settings { shared: &shared, ..Settings::default() };
    let fleet = Fleet::with(&settings, |request| {
        let size = request.path()[1..].parse().expect("a size");
        reply(200).cache("max-age=600").with("Content-Type", "image/png").body(vec![b'x'; size])
    });
    for target in ["/20000", "/1000"] {
        let size: usize = target[1..].parse().expect("a size");
        assert_eq!(fleet.first.get(target).expect(200).body.len(), size);
        assert!(fleet.first.get(target).expect(200).is_hit());
        // The larger one leaves a mark.
        within("the fill", || (!fleet.server.items("sandarac:e1:").is_empty()).then_some(()));
    }
    has_entries(&fleet.server, 2);
    assert!(fleet.server.items("sandarac:e1:").iter().all(|item| item.size < 10_000));
    assert!(is_shared(&fleet.second.get("/1000").expect(200)));
    let large = fleet.second.get("/20000").expect(200);
    assert_eq!(large.body.len(), 20_000);
    assert!(!large.is_hit(), "{}", large.cache_status());
    assert!(fleet.second.get("/20000").expect(200).is_hit());
}

/// Regression: an entry was inflated up to the limit of memory, and on a server without a secret anyone can forge one.
#[test]
fn an_entry_above_max_object_is_not_read_however_small_it_is_at_rest() {
    let fleet = Fleet::new(|_| {
        reply(200).cache("max-age=600").with("Content-Type", "text/plain").body("a".repeat(50_000))
    });
    fleet.first.get("/page").expect(200);
    has_entries(&fleet.server, 1);
    assert!(fleet.server.items("sandarac:e1:")[0].size < 10_000);
    let shared = format!("{SHARED}\nmax_object = \"10KiB\"");
    let strict = node(&fleet.origin, &[&fleet.server], &Settings { shared: &shared, ..Settings::default() });
    let response = strict.get("/page").expect(200);
    assert!(!response.is_hit(), "{response:?}");
    assert_eq!(response.text(), "a".repeat(50_000));
}

#[test]
fn text_can_stay_uncompressed() {
    let shared = format!("{SHARED}\ncompression = false");
    let settings = Settings { shared: &shared, ..Settings::default() };
    let fleet = Fleet::with(&settings, |_| {
        reply(200).cache("max-age=600").with("Content-Type", "text/plain").body("a".repeat(50_000))
    });
    fleet.first.get("/page").expect(200);
    has_entries(&fleet.server, 1);
    assert!(fleet.server.items("sandarac:e1:")[0].size >= 50_000);
    // A node reads what another wrote by other settings.
    let compressing = node(&fleet.origin, &[&fleet.server], &Settings::default());
    for reader in [&fleet.second, &compressing] {
        let response = reader.get("/page").expect(200);
        assert!(is_shared(&response), "{response:?}");
        assert_eq!(response.text(), "a".repeat(50_000));
    }
}

#[test]
fn nodes_with_other_lifetimes_share_and_nodes_that_change_what_is_stored_do_not() {
    let (origin, server) = origin_and_server();
    let by = |route: &str, cache: &str| node(&origin, &[&server], &Settings { route, cache, shared: SHARED });
    let plain = by("", "");
    plain.get("/page").expect(200);
    has_entries(&server, 1);
    assert_eq!(by("", "grace = \"1m\"\nkeep = \"2h\"").get("/page").text(), "1");
    let edited = by("response = { set = { X-Edited = \"yes\" } }", "").get("/page");
    assert_eq!((edited.text().as_str(), edited.field("x-edited")), ("2", Some("yes")));
    let keyed = by("cache = { key_fields = [\"X-Country\"] }", "");
    assert_eq!(keyed.exchange(&get("/page").with("X-Country", "de")).text(), "3");
    assert_eq!(plain.get("/page").field("x-edited"), None);
}

#[test]
fn servers_on_tcp_and_ipv6_are_used() {
    let origin = Origin::new(numbered(|_| reply(200).cache("max-age=600")));
    for host in ["127.0.0.1", "::1"] {
        let (_server, address) = Memcached::on_tcp(host);
        let by_flags = || sandarac().before(&origin).option("--memcached", address.to_string()).start();
        let (first, second) = (by_flags(), by_flags());
        shares(&first, &second);
    }
}

#[test]
fn a_node_logs_in_where_the_server_wants_it() {
    let (origin, server) = (
        Origin::new(numbered(|_| reply(200).cache("max-age=600"))),
        Memcached::with_login("sandarac", "password"),
    );
    let dir = TempDir::new();
    std::fs::write(dir.join("password"), "password\n").expect("a password");
    let shared = format!("{SHARED}\nuser = \"sandarac\"\npassword_file = {:?}", dir.join("password"));
    let settings = Settings { shared: &shared, ..Settings::default() };
    let (first, second) = (node(&origin, &[&server], &settings), node(&origin, &[&server], &settings));
    shares(&first, &second);
}

/// Waits until `second` serves from the tier what `first` fetched.
#[track_caller]
fn shares(first: &Sandarac, second: &Sandarac) {
    let mut number = 0;
    within("a hit in the shared tier", || {
        number += 1;
        let target = format!("/try/{number}");
        let fetched = first.get(&target).expect(200).text();
        let response = second.get(&target).expect(200);
        (is_shared(&response) && response.text() == fetched).then_some(())
    });
}

#[test]
fn servers_are_found_in_a_file() {
    let (origin, server) = origin_and_server();
    let dir = TempDir::new();
    let file = dir.join("servers");
    std::fs::write(&file, "# none yet\n").expect("a list");
    let secret = secret_file(&dir, 'a', 32);
    let tables =
        format!("[cache.shared]\n{SHARED}\nsecret_file = {secret:?}\ndiscover = {{ file = {file:?} }}");
    let start = || sandarac().config(site(&origin.url(), "", &tables)).start();
    let (first, second) = (start(), start());
    assert_eq!([first.get("/page").text(), second.get("/page").text()], ["1", "2"]);
    std::fs::write(&file, format!("{}\n", server.url())).expect("a list");
    shares(&first, &second);
}

#[test]
fn the_tier_is_taken_out_and_put_in_by_a_reload() {
    let (origin, server) = origin_and_server();
    let with = config(&origin, &[&server], &Settings::default());
    let without = site(&origin.url(), "", "");
    let start = || sandarac().config(without.clone()).start();
    let (first, second) = (start(), start());
    assert_eq!([first.get("/page").text(), second.get("/page").text()], ["1", "2"]);
    for round in 0..2 {
        first.reload(&with).success();
        second.reload(&with).success();
        shares(&first, &second);
        assert_eq!(first.get("/page").expect(200).text().len(), 1, "round {round}: it serves on");
        first.reload(&without).success();
        second.reload(&without).success();
        let target = format!("/out/{round}");
        assert!(!first.get(&target).expect(200).is_hit());
        assert!(!second.get(&target).expect(200).is_hit());
        assert!(first.get(&target).expect(200).is_hit());
    }
}

#[test]
fn a_server_is_added_by_a_reload() {
    let (origin, server) = origin_and_server();
    let added = Memcached::start(&[]);
    let one = config(&origin, &[&server], &Settings::default());
    let two = config(&origin, &[&added, &server], &Settings::default());
    let start = || sandarac().config(one.clone()).start();
    let (first, second) = (start(), start());
    first.get("/page").expect(200);
    has_entries(&server, 1);
    for node in [&first, &second] {
        node.reload(&two).success();
    }
    let mut number = 0;
    within("an entry on the new server", || {
        number += 1;
        first.get(&format!("/{number}")).expect(200);
        (entries(&added) > 0).then_some(())
    });
    shares(&first, &second);
    assert_eq!(first.get("/page").expect(200).text(), "1");
    assert!(second.admin(&["purge", "--all"]).success().stderr.is_empty());
    assert!(!second.get("/1").expect(200).is_hit());
}
