//! More connections than file descriptors.

use std::time::{Duration, Instant};

use sandarac_test_support::http2::Http2;
use sandarac_test_support::{Conn, Origin, Sandarac, TempDir, get, reply, within};

use crate::holding::closed;
use crate::{begin_another, end_another, sandarac, site};

/// How long the test waits for the responses to simultaneous requests. Some get none, because their connections are not
/// accepted.
const TOGETHER: Duration = Duration::from_secs(2);

/// Sends a request on each of `clients`, and returns the clients that got a response, and the statuses.
fn ask_all(clients: Vec<Conn>, target: impl Fn(usize) -> String) -> (Vec<Conn>, Vec<u16>) {
    let mut clients = clients;
    for (number, client) in clients.iter_mut().enumerate() {
        let _ = client.try_send(get(&target(number)).to_bytes());
    }
    let until = Instant::now() + TOGETHER;
    let mut statuses = Vec::new();
    let asked = clients.into_iter().map(|client| {
        let mut client = client.patient_for(until.saturating_duration_since(Instant::now()));
        statuses.extend(client.try_response("GET").map(|response| response.status));
        client
    });
    (asked.collect(), statuses)
}

#[track_caller]
fn serves_again(proxy: &Sandarac) {
    within("new connections to be served", || {
        let mut client = proxy.connect().patient_for(TOGETHER);
        let _ = client.try_send(get("/page").to_bytes());
        client.try_response("GET").is_ok_and(|response| response.status == 200).then_some(())
    });
}

#[test]
fn running_out_of_descriptors_is_survived() {
    let origin = Origin::new(|_| reply(200).cache("max-age=60").body("page"));
    let mut proxy = sandarac().before(&origin).option("--threads", "2").descriptors(80).start();
    let mut first = proxy.connect();
    first.get("/page").expect(200);
    begin_another(&mut first);
    let resting = proxy.open_descriptors();
    let clients = (0..200).map(|_| proxy.connect()).collect();
    let (clients, statuses) = ask_all(clients, |_| "/page".to_owned());
    let warned = "the limit on open files, 80, leaves room for ";
    assert!(proxy.stderr().contains(warned), "{}", proxy.stderr());
    assert!(statuses.contains(&200), "nobody was served");
    assert!(statuses.iter().all(|status| matches!(status, 200 | 503)), "{statuses:?}");
    assert!(proxy.is_running());
    end_another(&mut first);
    assert_eq!(first.get("/page").expect(200).text(), "page", "an established connection is not disturbed");
    drop(clients);
    serves_again(&proxy);
    within("the descriptors to be given back", || (proxy.open_descriptors() <= resting + 2).then_some(()));
}

/// Regression: only the start said so, and on standard error.
#[test]
fn more_connections_than_the_system_allows_are_warned_of_by_check_and_by_reload() {
    let text = |limits: &str| {
        format!(
            "threads = 2\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nanswer = {{ status = 200 }}\n{limits}"
        )
    };
    let many = text("[limits]\nconnections = 100000\n");
    let warned =
        "the limit on open files, 2000, leaves room for 962 client connections at a time; 100000 take";
    let checked = sandarac().config(many.clone()).arg("check").descriptors(2000).run().success();
    assert!(checked.stderr.contains(warned), "{checked:?}");
    let proxy = sandarac().config(text("")).descriptors(2000).start();
    let reloaded = proxy.reload(&many).success();
    assert!(reloaded.stderr.contains(warned), "{reloaded:?}");
}

#[test]
fn an_origin_that_cannot_be_reached_for_want_of_descriptors_is_an_error_and_no_crash() {
    let origin = Origin::new(|_| reply(200).cache("no-store").body("page"));
    let mut proxy = sandarac().before(&origin).option("--threads", "2").descriptors(64).start();
    for round in 0..3 {
        let clients = (0..100).map(|_| proxy.connect()).collect();
        let (_clients, statuses) = ask_all(clients, |number| format!("/{round}/{number}"));
        assert!(statuses.iter().all(|status| matches!(status, 200 | 502 | 503)), "{statuses:?}");
        assert!(proxy.is_running());
    }
    serves_again(&proxy);
}

/// Regression: the lack of descriptors counted as a failure of the backend, which was ejected, and the error had no name.
#[test]
fn that_no_descriptor_is_left_is_not_held_against_a_backend() {
    let origins = [0; 2].map(|_| Origin::new(|_| reply(200).cache("no-store").with("Connection", "close")));
    let keys =
        "check = { path = \"/\", interval = \"10ms\", rise = 1, fall = 1 }\nejection = { failures = 1 }";
    let config = site(&origins.each_ref().map(Origin::url).join("\", \""), keys, "");
    let proxy = sandarac().config(config).start();
    let mut client = proxy.connect();
    client.get("/").expect(200);
    proxy.limit_descriptors(3);
    for _ in 0..5 {
        let refused = client.get("/").expect(503);
        assert!(refused.field("proxy-status").unwrap().contains("too many files are open"), "{refused:?}");
    }
    proxy.limit_descriptors(500);
    client.get("/").expect(200);
    assert_eq!(proxy.metric("backend_connect_failures") + proxy.metric("backend_ejections"), 0);
    assert!(!proxy.stderr().contains("is down"), "{}", proxy.stderr());
}

/// Regression: files that nobody takes were counted nowhere, and took the descriptors of all others.
#[test]
fn files_that_are_asked_for_and_not_taken_have_a_share_of_the_descriptors() {
    let tree = TempDir::new();
    std::fs::create_dir(tree.join("files")).unwrap();
    for number in 0..400 {
        std::fs::write(tree.join(&format!("files/{number}.bin")), vec![b'x'; 200_000]).unwrap();
    }
    let origin = Origin::new(|request| match request.path() {
        "/stored" => reply(200).cache("max-age=600").body("stored"),
        _ => reply(200).cache("no-store").body("passed"),
    });
    let config = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nhttp2 = true\n\n[pool.app]\nbackends = [\"{}\"]\n\n[[route]]\nmatch = \"/files/\"\n\
         files = {:?}\n\n[[route]]\npool = \"app\"\n",
        origin.url(),
        tree.path().display().to_string()
    );
    let proxy = sandarac().config(config).descriptors(500).start();
    proxy.get("/stored").expect(200);
    let clients: Vec<Http2> = (0..4)
        .map(|client| {
            let mut http2 = closed(&proxy);
            (0..100).for_each(|at| _ = http2.get(&format!("/files/{}.bin", 100 * client + at), &[]));
            http2
        })
        .collect();
    let of = |name: &str| proxy.metric_of(name, "files");
    within("all places to be taken", || (of("descriptors") == of("descriptors_limit")).then_some(()));
    let refused =
        within("one to be refused", || Some(proxy.get("/files/399.bin")).filter(|it| it.status == 503));
    assert!(refused.text().contains("too many files are open"), "{}", refused.text());
    for _ in 0..60 {
        assert_eq!(proxy.get("/stored").expect(200).text(), "stored");
        assert_eq!(proxy.get("/passed").expect(200).text(), "passed");
    }
    assert!(proxy.admin(&["status"]).status.success());
    drop(clients);
    within("a place to be free", || (proxy.get("/files/399.bin").status == 200).then_some(()));
}

/// Regression: each refused connection was kept for 200 ms, however many there were, and used descriptors reserved for
/// backends.
#[test]
fn clients_that_are_turned_away_hold_few_descriptors() {
    let origin = Origin::new(|_| reply(200));
    let proxy = sandarac()
        .config(format!("threads = 1\n{}", site(&origin.url(), "", "[limits]\nconnections = 1")))
        .start();
    let mut first = proxy.connect();
    first.get("/").expect(200);
    begin_another(&mut first);
    let resting = proxy.open_descriptors();
    let mut most = 0;
    let clients: Vec<Conn> = (0..200)
        .map(|_| {
            most = most.max(proxy.open_descriptors());
            proxy.connect()
        })
        .collect();
    let mut told = 0;
    for mut client in clients {
        told += usize::from(client.try_response("GET").is_ok_and(|response| response.status == 503));
        most = most.max(proxy.open_descriptors());
    }
    assert!(most <= resting + 12, "{most} descriptors, {resting} before");
    assert_eq!(told, 200, "who has sent nothing is told, too");
    end_another(&mut first);
    first.get("/").expect(200);
}
