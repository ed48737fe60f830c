//! Pools: several backends, connections kept and lost.

use sandarac_test_support::{Listener, Origin, Reply, Sandarac, TempDir, get, post, reply, request};

use crate::{before, sandarac, site};

#[test]
fn several_backends_share_the_work() {
    let origins: Vec<Origin> = (0..3).map(|_| Origin::new(|_| reply(200).cache("no-store"))).collect();
    let proxy = origins.iter().fold(sandarac(), |setup, origin| setup.before(origin)).start();
    let mut client = proxy.connect();
    for number in 0..60 {
        client.get(&format!("/{number}")).expect(200);
    }
    let counts: Vec<usize> = origins.iter().map(Origin::count).collect();
    assert_eq!(counts.iter().sum::<usize>(), 60);
    assert!(counts.iter().all(|&count| count >= 5), "{counts:?}");
}

#[test]
fn round_robin_takes_each_in_turn() {
    let origins: Vec<Origin> = (0..3)
        .map(|number| Origin::new(move |_| reply(200).cache("no-store").body(number.to_string())))
        .collect();
    let backends: Vec<String> = origins.iter().map(|origin| format!("\"{}\"", origin.url())).collect();
    let text = format!(
        "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[pool.app]\nbalance = \"round_robin\"\nbackends = [{}]\n[[route]]\npool = \"app\"\n",
        backends.join(", ")
    );
    let proxy = sandarac().config(text).start();
    let mut client = proxy.connect();
    let seen: Vec<String> = (0..9).map(|number| client.get(&format!("/{number}")).text()).collect();
    assert_eq!(&seen[..3], &seen[3..6]);
    assert_eq!(&seen[..3], &seen[6..]);
    assert_ne!(seen[0], seen[1]);
}

#[test]
fn a_dead_backend_is_passed_over() {
    let dir = TempDir::new();
    let dead = format!("unix:{}", dir.join("nobody").display());
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let proxy = sandarac().option("--backend", dead).before(&origin).start();
    let mut client = proxy.connect();
    for number in 0..30 {
        client.get(&format!("/{number}")).expect(200);
    }
    for number in 0..10 {
        client.exchange(&post(&format!("/post/{number}"), "x")).expect(200);
    }
    assert_eq!(origin.count(), 40, "a request of which nothing was sent can always go elsewhere");
}

#[test]
fn backends_that_died_together_are_passed_over_together() {
    let dir = TempDir::new();
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let dead = (0..5).map(|number| format!("unix:{}", dir.join(&number.to_string()).display()));
    // `fallback` tries backends in their order, so the one that serves is tried last.
    let setup =
        dead.fold(sandarac().option("--balance", "fallback"), |setup, url| setup.option("--backend", url));
    let proxy = setup.before(&origin).start();
    let mut client = proxy.connect();
    client.get("/first").expect(200);
    client.exchange(&post("/post", "x")).expect(200);
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_directory_of_sockets_needs_no_file() {
    let dir = TempDir::new();
    let on = |name: &str| Origin::on(Listener::on_unix(&dir.join(name)), |_| reply(200).cache("no-store"));
    let _first = on("worker-0.sock");
    let proxy = sandarac().option("--sockets", dir.path().to_str().expect("in UTF-8")).start();
    proxy.get("/").expect(200);
    let backends =
        || proxy.admin_json(&["status", "--json"])["pools"][0]["backends"].as_array().map(Vec::len);
    assert_eq!(backends(), Some(1));
    let _second = on("worker-1.sock");
    sandarac_test_support::within("the second to be found", || (backends() == Some(2)).then_some(()));
}

#[test]
fn a_directory_that_is_empty_is_obeyed_unless_that_empties_the_pool() {
    let (old, new) = (TempDir::new(), TempDir::new());
    let on = |dir: &TempDir| Origin::on(Listener::on_unix(&dir.join("worker-0.sock")), |_| reply(200));
    let first = on(&old);
    let directory = |dir: &TempDir| format!("{{ directory = \"{}\" }}", dir.path().display());
    let pool = format!("discover = [{}, {}]", directory(&old), directory(&new));
    let proxy = sandarac().config(site("unused", "", "").replace("backends = [\"unused\"]", &pool)).start();
    let backends = || {
        let pools = proxy.admin_json(&["status", "--json"])["pools"].clone();
        let backends = pools[0]["backends"].as_array().expect("a pool has backends");
        backends.iter().filter_map(|one| one["address"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let [old, new] = [&old, &new].map(|dir| dir.join("worker-0.sock"));
    let second = Origin::on(Listener::on_unix(&new), |_| reply(200));
    sandarac_test_support::within("both to be found", || (backends().len() == 2).then_some(()));
    drop(first);
    std::fs::remove_file(&old).expect("the socket is there");
    let left = [format!("unix:{}", new.display())];
    sandarac_test_support::within("the first to go", || (backends() == left).then_some(()));
    drop(second);
    std::fs::remove_file(&new).expect("the socket is there");
    proxy.says("it names no backend; those that it named last stay");
    assert_eq!(backends(), left);
}

#[test]
fn a_backend_that_is_dead_and_alone_is_not_called_healthy() {
    let dir = TempDir::new();
    let path = dir.join("app.sock");
    let proxy = sandarac().option("--backend", format!("unix:{}", path.display())).start();
    let state = || proxy.admin_json(&["status", "--json"])["pools"][0]["backends"][0]["state"].clone();
    assert_eq!(state(), "untried");
    drop(proxy.get("/").expect(502));
    assert_eq!(state(), "failing");
    (0..2).for_each(|_| drop(proxy.get("/").expect(502)));
    assert_eq!(state(), "failing");
    let _back = Origin::on(Listener::on_unix(&path), |_| reply(200).cache("no-store"));
    proxy.get("/").expect(200);
    assert_eq!(state(), "healthy");
}

#[test]
fn a_request_that_meets_a_closed_connection_is_sent_again() {
    let (proxy, origin) = before(|_| reply(200).cache("no-store").body("ok"));
    let mut client = proxy.connect();
    for round in 0..5 {
        assert_eq!(client.get(&format!("/{round}")).expect(200).text(), "ok");
        origin.close_idle();
    }
    assert_eq!(origin.count(), 5);
    assert_eq!(origin.connections(), 5);
}

#[test]
fn an_idempotent_request_that_dies_on_a_kept_connection_is_sent_again() {
    let origin = Origin::new(|request| match (request.path(), request.serial) {
        ("/dies", 2) => Reply::none(),
        _ => reply(200).cache("no-store").body("ok"),
    });
    let proxy = sandarac().before(&origin).start();
    let mut client = proxy.connect();
    client.get("/first").expect(200);
    assert_eq!(client.exchange(&request("PUT", "/dies").body("again")).expect(200).text(), "ok");
    assert_eq!(origin.count_of("/dies"), 2);
    assert_eq!(origin.last().text(), "again");
}

#[test]
fn a_request_that_is_not_idempotent_is_sent_once() {
    let origin = Origin::new(|request| match request.path() {
        "/dies" => Reply::none(),
        _ => reply(200).cache("no-store"),
    });
    let proxy = sandarac().before(&origin).start();
    let mut client = proxy.connect();
    client.get("/first").expect(200);
    client.exchange(&post("/dies", "once")).expect(502);
    assert_eq!(origin.count_of("/dies"), 1);
}

#[test]
fn a_connection_with_bytes_nobody_asked_for_is_not_used() {
    let listener = Listener::new();
    let proxy = sandarac().before_listener(&listener).option("--threads", "1").start();
    let mut client = proxy.connect();
    client.send(get("/1").to_bytes());
    let mut origin = listener.accept();
    origin.request();
    origin.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
    assert_eq!(client.response().text(), "a");
    client.send(get("/2").to_bytes());
    let mut second = listener.accept();
    assert_eq!(second.request().target, "/2");
    second.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 1\r\n\r\nb");
    assert_eq!(client.response().text(), "b");
}

/// Sandarac before a backend that takes one request at a time; `queue` has the settings of the queue. There is one core, so
/// that a connection that has become free is the one used next.
fn before_one_at_a_time(listener: &Listener, queue: &str) -> Sandarac {
    let url = listener.url();
    let text = format!(
        "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[pool.app]\nmax_in_flight = 1\n{queue}\nbackends = [\"{url}\"]\n[[route]]\npool = \"app\"\ncache = \"pass\"\n"
    );
    sandarac().config(text).start()
}

#[test]
fn a_full_pool_without_a_queue_is_told_at_once() {
    let listener = Listener::new();
    let proxy = before_one_at_a_time(&listener, "queue = 0");
    let mut busy = proxy.connect();
    busy.send(get("/busy").to_bytes());
    let mut origin = listener.accept();
    origin.request();
    let refused = proxy.get("/refused").expect(503);
    assert!(refused.fields.has("proxy-status"), "{refused:?}");
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    busy.response().expect(200);
}

#[test]
fn requests_wait_their_turn_before_a_full_pool() {
    let listener = Listener::new();
    let proxy = before_one_at_a_time(&listener, "");
    let (mut first, mut second) = (proxy.connect(), proxy.connect());
    first.send(get("/first").to_bytes());
    let mut origin = listener.accept();
    assert_eq!(origin.request().path(), "/first");
    second.send(get("/second").to_bytes());
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    first.response().expect(200);
    assert_eq!(origin.request().path(), "/second");
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    second.response().expect(200);
}

#[test]
fn a_request_that_waits_too_long_before_a_full_pool_is_503() {
    let listener = Listener::new();
    let proxy = before_one_at_a_time(&listener, "queue_timeout = \"50ms\"");
    let mut busy = proxy.connect();
    busy.send(get("/busy").to_bytes());
    let mut origin = listener.accept();
    origin.request();
    let refused = proxy.get("/late").expect(503);
    assert!(refused.fields.has("retry-after") && refused.fields.has("proxy-status"), "{refused:?}");
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    busy.response().expect(200);
}

#[test]
fn a_backend_by_name_is_found() {
    let origin = Origin::new(|_| reply(200).body("named"));
    let url = format!("http://localhost:{}", origin.address().port());
    let proxy = sandarac().option("--backend", url).start();
    assert_eq!(proxy.get("/").expect(200).text(), "named");
}

#[test]
fn the_varnish_names_of_options_are_understood() {
    let origin = Origin::new(|_| reply(200).body("ok"));
    let backend = origin.address().to_string();
    let proxy =
        sandarac().option("-a", "127.0.0.1:0").option("-b", backend).option("-s", "malloc,64m").start();
    assert_eq!(proxy.get("/").expect(200).text(), "ok");
    let limit = &proxy.admin_json(&["status", "--json"])["cache"]["limit_bytes"];
    assert_eq!(limit.as_u64(), Some(64 << 20));
}

#[test]
fn connections_to_backends_are_let_go_when_idle() {
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let text = site(&origin.url(), "", "").replace("[pool.app]", "[pool.app]\nidle_timeout = \"1s\"");
    let proxy = sandarac().config(text).start();
    proxy.get("/").expect(200);
    sandarac_test_support::within("the idle connection to close", || {
        (origin.open_connections() == 0).then_some(())
    });
}

#[test]
fn a_socket_that_is_not_there_is_told_as_such() {
    let proxy = sandarac().option("--backend", "unix:/nowhere/app.sock").start();
    let response = proxy.get("/").expect(502);
    assert!(response.text().contains("the backend's socket does not exist"), "{response:?}");
}
