//! The tools tried against each other.

use std::time::Duration;

use crate::{
    Address, Conn, Gate, Listener, Origin, Port, Reply, TempDir, Trouble, Worker, get, head, post, reply,
    within,
};

#[test]
fn an_origin_answers_by_its_rule_and_remembers() {
    let origin = Origin::new(|request| {
        reply(200).cache("no-store").body(format!("{} to {}", request.serial, request.path()))
    });
    let mut client = Conn::to(origin.address());
    assert_eq!(client.get("/a?b").text(), "1 to /a");
    let response = client.exchange(&post("/c", "body").with("X-Case", "kept")).expect(200);
    assert_eq!(response.text(), "2 to /c");
    assert_eq!(response.field("cache-control"), Some("no-store"));
    assert_eq!(origin.last().text(), "body");
    assert_eq!(origin.last().fields.names(), ["Host", "Content-Length", "X-Case"]);
    assert_eq!(origin.count(), 2);
    assert_eq!(origin.count_of("/c"), 1);
    assert_eq!(origin.connections(), 1);
    origin.close_idle();
    client.expect_end();
}

#[test]
fn a_stopped_origin_answers_nobody_however_quick_they_are() {
    let origin = Origin::new(|_| reply(200));
    let mut client = Conn::to(origin.address());
    client.get("/").expect(200);
    let address = origin.address().clone();
    drop(origin);
    assert!(Conn::try_to(&address).is_err());
    let mut answers = 0;
    while client.try_send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").is_ok() && client.try_response("GET").is_ok() {
        answers += 1;
        assert!(answers < 100, "it goes on");
    }
}

#[test]
fn chunks_trailers_and_interim_responses_are_read() {
    let origin = Origin::new(|_| {
        reply(200).interim(103, "Link: </a>\r\n").chunked().body("hel").body("lo").trailer("Sum", "5")
    });
    let response = Conn::to(origin.address()).exchange(&get("/").with("Expect", "100-continue"));
    assert_eq!(response.text(), "hello");
    assert_eq!(response.chunks, [3, 2]);
    assert_eq!(response.trailers.lines(), [("Sum", "5")]);
    let interim: Vec<u16> = response.interim.iter().map(|response| response.status).collect();
    assert_eq!(interim, [100, 103]);
}

#[test]
fn answers_can_fail_in_every_way() {
    let origin = Origin::new(|request| match request.path() {
        "/cut" => reply(200).length(10).body("half").cut(),
        "/reset" => reply(200).length(10).body("half").reset(),
        "/none" => Reply::none(),
        "/hang" => reply(200).length(10).body("half").hang(),
        _ => Reply::verbatim("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
    });
    let mut client = Conn::to(origin.address());
    assert_eq!(client.get("/").text(), "x");
    client.send(get("/cut").to_bytes());
    assert_eq!(client.response_head().field("content-length"), Some("10"));
    client.expect("half").expect_end();
    for path in ["/reset", "/none"] {
        Conn::to(origin.address()).send(get(path).to_bytes()).read_to_end();
    }
    let mut client = Conn::to(origin.address());
    client.send(get("/hang").to_bytes()).read_through("half");
    assert!(client.is_silent());
}

#[test]
fn a_gate_holds_an_origin() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |_| reply(200).length(2).body("a").pause(&held).body("b"));
    let mut client = Conn::to(origin.address());
    client.send(get("/").to_bytes()).read_through("\r\n\r\na");
    gate.reached(1);
    assert!(client.is_silent());
    gate.open();
    client.expect("b");
}

#[test]
fn a_listener_is_played_by_hand_over_every_kind_of_socket() {
    let dir = TempDir::new();
    for listener in [Listener::new(), Listener::on_ipv6(), Listener::on_unix(&dir.join("socket"))] {
        assert!(listener.is_silent());
        let mut client = Conn::to(listener.address());
        client.send(head("/").to_bytes());
        let mut origin = listener.accept();
        assert_eq!(origin.request().method, "HEAD");
        origin.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(client.response_to("HEAD").text(), "");
        drop(origin);
        client.expect_end();
    }
}

#[test]
fn a_port_refuses_unless_somebody_listens_and_is_nobody_elses() {
    let port = Port::new();
    let mut address = None;
    for _ in 0..3 {
        let listener = port.listen();
        let client = Conn::to(listener.address());
        drop((listener.accept(), client));
        address = Some(listener.address().clone());
        drop(listener);
        let address = address.as_ref().expect("it listened");
        within("connections to be refused", || Conn::try_to(address).is_err().then_some(()));
    }
    let others: Vec<Listener> = (0..500).map(|_| Listener::new()).collect();
    assert!(others.iter().all(|other| Some(other.address()) != address.as_ref()));
}

#[test]
fn a_peer_that_trickles_does_not_hold_up_a_wait() {
    let listener = Listener::new();
    let mut client = Conn::to(listener.address()).patient_for(Duration::from_millis(300));
    let mut origin = listener.accept();
    let trickle = std::thread::spawn(move || {
        while origin.try_send("x").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    assert_eq!(client.try_response("GET").err(), Some(Trouble::TimedOut));
    drop(client);
    trickle.join().expect("it ends with the connection");
}

#[test]
fn a_worker_tells_its_resume_and_what_changed_of_it() {
    let worker = Worker::new("w1", &[("a", 1.5)]);
    let url = worker.url();
    let mut client = Conn::to(&Address::parse(url.trim_start_matches("http://")));
    let class =
        |known: &str| get("/").with("Request-Class", &format!("\"a\";by=\"0123456789abcdef\"{known}"));
    let response = client.exchange(&class("")).expect(200);
    assert_eq!(response.text(), "w1");
    assert_eq!(response.field("worker-state"), Some("id=\"w1\", rev=1, inflight=0"));
    assert!(!worker.is_known());
    worker.learns("b", 2.0).runs("v1");
    let response = client.exchange(&class(";known=\"w1.1\"")).expect(200);
    assert_eq!(response.field("worker-state"), Some("id=\"w1\", rev=2, inflight=0, version=\"v1\""));
    assert_eq!(response.field("worker-skills"), Some("\"b\";score=2.000"));
    assert!(!client.exchange(&class(";known=\"w1.2\"")).fields.has("worker-skills") && worker.is_known());
    let whole = client.get("/.well-known/worker-resume?by=0123456789abcdef").expect(200);
    assert_eq!(whole.field("etag"), Some("\"w1.2\""));
    assert!(whole.text().contains("{\"a\":1.5,\"b\":2.0}"), "{whole:?}");
    let other = client.get("/.well-known/worker-resume?by=0000000000000000").expect(200);
    assert!(other.text().contains("\"skills\":{}"), "{other:?}");
    assert_eq!(worker.served().len(), 3);
    assert_eq!(worker.asked().len(), 2);
}
