//! Restarts without a gap: a new process takes the sockets of the running one.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

use sandarac_test_support::http2::{Ended, Http2, kind};
use sandarac_test_support::{
    Conn, Gate, Listener, Origin, Sandarac, Signal, TempDir, get, reply, request, within,
};

use crate::service_manager::ServiceManager;
use crate::{pool, sandarac, site};

/// The process that answers the admin interface.
fn pid(proxy: &Sandarac) -> u64 {
    proxy.admin_json(&["status", "--json"])["pid"].as_u64().expect("a process id")
}

#[test]
fn a_new_process_takes_the_sockets_and_the_old_one_ends_with_its_last_connection() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |request| {
        let reply = reply(200).cache("no-store").body("whole");
        if request.target == "/held" { reply.hold(&held) } else { reply }
    });
    let text =
        format!("{}[[listen]]\naddress = \"127.0.0.1:0\"\nhttp2 = true\n", site(&origin.url(), "", ""));
    let mut proxy = sandarac().config(text).start();
    let addresses = proxy.addresses().to_vec();
    let (mut idle, mut new) = (proxy.connect(), proxy.connect());
    idle.get("/").expect(200);
    let mut http2 = Http2::to(&addresses[1]);
    let stream = http2.get("/", &[]);
    http2.response(stream);
    let mut busy = proxy.connect();
    busy.send(get("/held").to_bytes());
    gate.reached(1);

    let told = proxy.admin(&["upgrade"]).success();
    let successor = proxy.successors()[0];
    assert_eq!(told.stdout, format!("process {successor} has taken over\n"));
    proxy.says(&format!("sandarac: took over from process {}", proxy.pid()));
    let status = proxy.admin_json(&["status", "--json"]);
    assert_eq!((&status["pid"], &status["predecessors"][0]), (&successor.into(), &proxy.pid().into()));
    for address in &addresses {
        assert_eq!(Conn::to(address).get("/").expect(200).text(), "whole");
    }

    // Clients of the old process are told when they ask for more, and none is reset.
    let last = idle.get("/").expect(200);
    assert_eq!((&*last.text(), last.fields.get("connection")), ("whole", Some("close")));
    idle.expect_end();
    new.get("/").expect(200);
    assert_eq!(http2.await_frame(kind::GOAWAY).number(4), 0);
    let stream = http2.get("/", &[]);
    assert_eq!(http2.response(stream).text(), "whole");
    assert_eq!(http2.end(), Ended::Closed);
    assert!(proxy.is_running());
    gate.open();
    assert_eq!(busy.response().expect(200).text(), "whole");
    assert!(proxy.wait().success());
    within("it to be forgotten", || {
        proxy.admin_json(&["status", "--json"])["predecessors"].is_null().then_some(())
    });
}

#[test]
fn the_cache_goes_along_and_so_do_purges_at_the_old_process() {
    let large = vec![b'l'; 1 << 20];
    let body = large.clone();
    let origin = Origin::new(move |request| {
        let reply = reply(200).cache("max-age=600");
        match &*request.target {
            "/large" => reply.body(body.clone()),
            _ if request.method == "POST" => reply.cache("no-store").body("done"),
            target => reply.body(target),
        }
    });
    let proxy = sandarac().before(&origin).start();
    let mut old = proxy.connect();
    for target in ["/page", "/edited", "/large"] {
        old.get(target).expect(200);
    }
    proxy.admin(&["upgrade"]).success();
    proxy.says(&format!("sandarac: the cache of process {} has come over: 3 objects of 1 MiB", proxy.pid()));
    let mut new = proxy.connect();
    let page = new.get("/page").expect(200);
    assert!(page.is_hit() && page.text() == "/page", "{page:?}");
    assert!(new.get("/large").expect(200).body == large);
    assert_eq!(origin.requests().len(), 3);
    // A client of the old process changes a page.
    old.exchange(&request("POST", "/edited").body("new")).expect(200);
    assert!(!new.get("/edited").expect(200).is_hit());
    assert!(new.get("/page").expect(200).is_hit());
}

/// Regression: a backend that was drained to be repaired got requests after an upgrade.
#[test]
fn orders_about_backends_hold_at_the_new_process() {
    let origins: Vec<Origin> = (0..3).map(|_| Origin::new(|_| reply(200).cache("no-store"))).collect();
    let urls: Vec<String> = origins.iter().map(Origin::url).collect();
    let proxy = sandarac().config(pool(&urls[..2], "")).start();
    proxy.admin(&["pool", "add", "app", &urls[2], "--weight", "3"]).success();
    proxy.admin(&["pool", "remove", "app", &urls[0]]).success();
    proxy.admin(&["pool", "drain", "app", &urls[1]]).success();
    for _ in 0..2 {
        proxy.admin(&["upgrade"]).success();
        (0..4).for_each(|_| drop(proxy.get("/").expect(200)));
        let backends = &proxy.admin_json(&["pools", "--json"])["pools"][0]["backends"];
        let said = backends.as_array().unwrap().iter().map(|backend| {
            (
                backend["address"].as_str().unwrap(),
                backend["weight"].clone(),
                backend["state"].as_str().unwrap(),
            )
        });
        assert_eq!(
            said.collect::<Vec<_>>(),
            [(&*urls[1], 1.into(), "draining"), (&*urls[2], 3.into(), "healthy")]
        );
    }
    assert_eq!(origins.iter().map(|origin| origin.requests().len()).collect::<Vec<_>>(), [0, 0, 8]);
    // And can be taken back there.
    proxy.admin(&["pool", "drain", "app", &urls[1], "--undo"]).success();
    proxy.admin(&["pool", "add", "app", &urls[0]]).success();
}

/// Anonymous memory of a process in MiB.
fn anonymous(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let found = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    found.map_or(0, |kib| kib.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10)
}

/// Regression: the allocator of the old process kept for a second what had moved.
#[test]
fn both_processes_together_take_no_more_memory_than_one() {
    let origin = Origin::new(|_| reply(200).cache("max-age=600").body(vec![b'x'; 24_000]));
    let proxy = sandarac().before(&origin).option("--memory", "80MiB").start();
    let mut client = proxy.connect();
    (0..2800).for_each(|page| drop(client.get(&format!("/{page}")).expect(200)));
    let before = anonymous(proxy.pid());
    proxy.signal(Signal::User2);
    let mut most = before;
    within("the cache to come over", || {
        let new = proxy.successors().first().map_or(0, |&new| anonymous(new));
        most = most.max(anonymous(proxy.pid()) + new);
        proxy.stderr().contains("has come over: ").then_some(())
    });
    assert!(most <= before + 36, "{most} MiB, and {before} MiB before");
}

/// Regression: a process without connections ended while its cache was on the way.
#[test]
fn a_process_without_connections_waits_until_its_cache_is_over() {
    let origin = Origin::new(|_| reply(200).cache("max-age=600").body(vec![b'x'; 100_000]));
    let mut proxy = sandarac().before(&origin).start();
    let mut client = proxy.connect();
    (0..300).for_each(|page| drop(client.get(&format!("/{page}")).expect(200)));
    drop(client);
    proxy.admin(&["upgrade"]).success();
    proxy.says(&format!("sandarac: the cache of process {} has come over: 300 objects", proxy.pid()));
    assert!(proxy.wait().success());
}

#[test]
fn no_request_fails_while_process_follows_process() {
    let origin = Origin::new(|_| reply(200).cache("no-store").body("page"));
    for threads in ["1", "3"] {
        let proxy = sandarac().before(&origin).option("--threads", threads).start();
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..8)
                .map(|number| {
                    let (proxy, ends) = (&proxy, &ends);
                    scope.spawn(move || {
                        let mut served = 0;
                        let mut kept: Option<Conn> = None;
                        while !ends.load(Ordering::Relaxed) {
                            let mut conn = kept.take().unwrap_or_else(|| proxy.connect());
                            let response = conn.get("/page");
                            assert_eq!((response.status, &*response.text()), (200, "page"));
                            let is_kept = number % 2 == 0 && !response.fields.has("connection");
                            kept = is_kept.then_some(conn);
                            served += 1;
                        }
                        served
                    })
                })
                .collect();
            for _ in 0..5 {
                let before = pid(&proxy);
                proxy.admin(&["upgrade"]).success();
                assert_ne!(pid(&proxy), before);
            }
            ends.store(true, Ordering::Relaxed);
            for client in clients {
                assert!(client.join().unwrap() > 10);
            }
        });
        assert_eq!(proxy.successors().len(), 5);
    }
}

#[test]
fn sigusr2_upgrades_and_the_service_manager_is_told_of_the_new_main_process() {
    let origin = Origin::new(|_| reply(200));
    let manager = ServiceManager::new();
    let told = || manager.told();
    let mut proxy = manager.starts(sandarac().before(&origin));
    assert_eq!(told(), "READY=1\nSTATUS=ready\n");
    proxy.signal(Signal::User2);
    let main = told();
    let new = within("another process to take over", || proxy.successors().first().copied());
    assert_eq!(main, format!("MAINPID={new}\n"));
    // Of a child of another process the service manager would not learn how it ends.
    let status = std::fs::read_to_string(format!("/proc/{new}/status")).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    assert_ne!(parent.trim(), proxy.pid().to_string());
    // And it has to have taken note of the new one before the old one ends.
    assert!(proxy.is_running());
    let mut others = [told(), told()];
    others.sort();
    assert_eq!(others, ["BARRIER=1\n", "READY=1\nSTATUS=ready\n"]);
    assert!(proxy.wait().success());
}

#[test]
fn a_process_that_somebody_starts_takes_over_if_it_is_told_to() {
    let origin = Origin::new(|_| reply(200).cache("max-age=600").body("page"));
    let mut first = sandarac().before(&origin).start();
    let mut idle = first.connect();
    idle.get("/").expect(200);
    let mut second = sandarac().before(&origin).admin_at(first.admin_path()).arg("--take-over").begin();
    second.says(&format!("sandarac: took over from process {}", first.pid()));
    second.says("has come over: 1 object of");
    second.gets_ready();
    first.says(&format!("sandarac: process {} has taken over", second.pid()));
    assert!(second.get("/").expect(200).is_hit());
    assert_eq!(idle.get("/").expect(200).fields.get("connection"), Some("close"));
    assert!(first.wait().success());
    assert_eq!(pid(&second), u64::from(second.pid()));
    // Where nothing runs, it begins anew.
    let admin = second.admin_path();
    drop(second);
    let third = sandarac().before(&origin).admin_at(admin).arg("--take-over").start();
    third.says("to take over from; this one begins anew");
    assert!(!third.get("/").expect(200).is_hit());
}

#[test]
fn a_program_that_cannot_take_over_changes_nothing() {
    let origin = Origin::new(|_| reply(200).cache("max-age=60").body("page"));
    let dir = TempDir::new();
    let path = dir.join("sandarac");
    let proxy = sandarac().copied_to(path.clone()).before(&origin).start();
    let mut client = proxy.connect();
    client.get("/").expect(200);
    let ask = |command: &str| {
        sandarac().arg(command).option("--admin", proxy.admin_path().display().to_string()).run()
    };
    for (program, expected) in [
        ("#!/bin/sh\necho broken >&2\nexit 3\n", "ended before it served (exit status: 3)"),
        ("#!/bin/sh\nkill -SEGV $$\n", "ended before it served (signal: 11 (SIGSEGV)"),
        (
            "#!/bin/sh\nprintf 'HTTP/1.1 400 Bad Request' >&0\nexec sleep 60\n",
            "is no sandarac that can take over",
        ),
        ("garbage", "cannot start"),
    ] {
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, program).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let refused = ask("upgrade");
        assert!(!refused.status.success() && refused.stderr.contains(expected), "{program:?}: {refused:?}");
        proxy.says("sandarac: no upgrade, this process goes on: ");
        assert!(client.get("/").expect(200).is_hit());
        assert!(Conn::to(proxy.address()).get("/").expect(200).is_hit());
        assert!(ask("status").success().stdout.contains(&format!("pid {}, ", proxy.pid())));
    }
    // One without the right to run.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    proxy.signal(Signal::User2);
    proxy.says("Permission denied");
    assert!(client.get("/").expect(200).is_hit());
}

#[test]
fn a_configuration_that_is_wrong_changes_nothing_and_one_with_other_listeners_does() {
    let origin = Origin::new(|_| reply(200).body("page"));
    let text = site(&origin.url(), "", "");
    let proxy = sandarac().config(text.clone()).start();
    proxy.write_config("nonsense");
    let refused = proxy.admin(&["upgrade"]);
    assert!(refused.stderr.contains("ended before it served (exit status: 2)"), "{refused:?}");
    proxy.get("/").expect(200);
    let path = proxy.dir().join("more.sock");
    proxy.write_config(&format!("{text}[[listen]]\naddress = \"unix:{}\"\n", path.display()));
    proxy.admin(&["upgrade"]).success();
    proxy.get("/").expect(200);
    let more = sandarac_test_support::Address::Unix(path.clone());
    Conn::to(&more).get("/").expect(200);
    // The file of the socket stays when the process that made it ends.
    proxy.admin(&["upgrade"]).success();
    within("only one to be left", || {
        proxy.admin_json(&["status", "--json"])["predecessors"].is_null().then_some(())
    });
    Conn::to(&more).get("/").expect(200);
}

/// Regression: one that the old process accepted last, when it had no other, was closed in the middle of its
/// exchange.
#[test]
fn a_connection_that_the_old_process_accepts_last_is_served() {
    let origin = Origin::new(|_| reply(200).cache("no-store").body("page"));
    let proxy = sandarac().before(&origin).start();
    for _ in 0..12 {
        proxy.admin(&["upgrade"]).success();
        assert_eq!(proxy.get("/").expect(200).text(), "page");
    }
}

#[test]
fn a_tunnel_outlives_three_processes_and_the_fourth_ends_it() {
    let listener = Listener::new();
    let mut proxy = sandarac().config(site(&listener.url(), "", "[timeouts]\ndrain = \"1s\"\n")).start();
    let mut tunnels = Vec::new();
    let open = || {
        let mut client = proxy.connect();
        client.send("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
        let mut origin = listener.accept();
        origin.request();
        origin.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        client.response().expect(101);
        // The process before it may accept another one until it has closed its sockets.
        (proxy.metric("connections_open") > 0).then_some((client, origin))
    };
    let tunnel = |tunnels: &mut Vec<(Conn, Conn)>| {
        tunnels.push(within("a tunnel through the newest process", open));
        for (number, (client, origin)) in tunnels.iter_mut().enumerate() {
            client.send("ping");
            origin.expect("ping").send("pong");
            assert_eq!(client.read(4), b"pong", "{number}");
        }
    };
    for _ in 0..3 {
        tunnel(&mut tunnels);
        proxy.admin(&["upgrade"]).success();
    }
    tunnel(&mut tunnels);
    let status = proxy.admin_json(&["status", "--json"]);
    assert_eq!(status["predecessors"].as_array().unwrap().len(), 3);
    proxy.admin(&["upgrade"]).success();
    proxy.says(&format!("sandarac: process {} has to end: it is the oldest of more than 3", proxy.pid()));
    assert!(tunnels.remove(0).0.try_read(1).is_err());
    proxy.wait();
}

/// Regression: a process that was started after the end of the newest one, beside older ones that still had
/// connections, served what was purged at these; and a page was in the snapshot that a request in flight at
/// an older process then changed.
#[test]
fn the_newest_ends_after_those_it_has_taken_over_from() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |request| match request.method.as_str() {
        "POST" => reply(200).cache("no-store").hold(&held),
        _ => reply(200).cache("max-age=600").body("page"),
    });
    let dir = TempDir::new();
    let text = site(&origin.url(), "", &format!("[cache]\nsnapshot = \"{}\"\n", dir.join("cache").display()));
    let mut proxy = sandarac().config(text.clone()).start();
    proxy.get("/edited").expect(200);
    proxy.get("/other").expect(200);
    let mut writer = proxy.connect();
    writer.send(request("POST", "/edited").body("new").to_bytes());
    gate.reached(1);
    proxy.admin(&["upgrade"]).success();
    let new = proxy.successors()[0];
    proxy.says("has come over: 2 objects");
    let pid = rustix::process::Pid::from_raw(new.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    proxy.says("sandarac: draining");
    gate.open();
    writer.response().expect(200);
    assert!(proxy.wait().success());
    proxy.says("sandarac: the cache is in ");
    let next = sandarac().config(text).start();
    next.says("sandarac: the cache is back from ");
    assert!(!next.get("/edited").expect(200).is_hit());
    assert!(next.get("/other").expect(200).is_hit());
}

/// Regression: the second of two upgrades left behind what was still on its way to the first new process.
#[test]
fn an_upgrade_waits_for_the_cache_of_the_last_one() {
    let origin = Origin::new(|_| reply(200).cache("max-age=600").body(vec![b'x'; 100_000]));
    let proxy = sandarac().before(&origin).start();
    let mut client = proxy.connect();
    (0..300).for_each(|page| drop(client.get(&format!("/{page}")).expect(200)));
    proxy.admin(&["upgrade"]).success();
    proxy.admin(&["upgrade"]).success();
    within("both moves to end", || {
        (proxy.stderr().matches("has come over: 300 objects").count() == 2).then_some(())
    });
    assert!(proxy.get("/7").expect(200).is_hit());
}

/// Regression: the admin interface stayed with a process that did not answer any more, so that none could be
/// started.
#[test]
fn after_the_newest_has_died_another_can_be_started_beside_older_ones() {
    let origin = Origin::new(|_| reply(200));
    let mut first = sandarac().before(&origin).start();
    let mut kept = first.connect();
    kept.get("/").expect(200);
    first.admin(&["upgrade"]).success();
    let pid = rustix::process::Pid::from_raw(first.successors()[0].cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let next = sandarac().before(&origin).admin_at(first.admin_path()).start();
    next.get("/").expect(200);
    assert!(next.admin(&["status"]).success().stdout.contains(&format!("pid {}, ", next.pid())));
    // The older one, which is not told of purges any more, ends.
    assert!(first.wait().success());
}

/// Regression: an order during an upgrade was carried out at the process that had just been replaced.
#[test]
fn orders_and_reloads_during_an_upgrade_are_refused() {
    let origin = Origin::new(|_| reply(200));
    let dir = TempDir::new();
    let path = dir.join("sandarac");
    let proxy = sandarac().copied_to(path.clone()).config(pool(&[origin.url()], "")).start();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "#!/bin/sh\nexec sleep 10\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    proxy.signal(Signal::User2);
    let ask = |arguments: &[&str]| {
        let command = arguments.iter().fold(sandarac(), |command, argument| command.arg(*argument));
        command.option("--admin", proxy.admin_path().display().to_string()).run()
    };
    within("the upgrade to begin", || {
        ask(&["pool", "drain", "app", &origin.url()])
            .stderr
            .contains("an upgrade is in progress")
            .then_some(())
    });
    assert!(ask(&["reload"]).failure().stderr.contains("an upgrade is in progress"));
    ask(&["status"]).success();
}
