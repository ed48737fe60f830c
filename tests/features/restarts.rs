//! Restarts: one process after another, and the interface to a service manager.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use sandarac_test_support::{
    Address, Conn, Gate, Origin, Sandarac, Signal, TempDir, get, reply, request, within,
};

use crate::service_manager::ServiceManager;
use crate::{before, sandarac, site};

#[test]
fn a_process_waits_for_one_that_is_draining_and_takes_over() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |request| {
        let reply = reply(200).cache("no-store").body("whole");
        if request.target == "/held" { reply.hold(&held) } else { reply }
    });
    let mut first = sandarac().before(&origin).start();
    let mut busy = first.connect();
    busy.send(get("/held").to_bytes());
    gate.reached(1);
    first.signal(Signal::Terminate);
    first.says("sandarac: draining");
    within("the drain to begin", || {
        (first.admin_json(&["status", "--json"])["state"] == "draining").then_some(())
    });

    let mut second = sandarac().before(&origin).admin_at(first.admin_path()).begin();
    second.says(&format!("sandarac: process {} is draining; this one starts when it has ended", first.pid()));
    assert!(!second.stderr().contains("listening"));
    gate.open();
    assert_eq!(busy.response().expect(200).text(), "whole");
    assert!(first.wait().success());
    second.gets_ready();
    second.get("/").expect(200);
    assert_eq!(second.admin_json(&["status", "--json"])["pid"], second.pid());
}

/// Regression: a process that ended removed the socket on which its successor already listened.
#[test]
fn a_process_that_ends_leaves_the_socket_of_another_that_has_taken_its_path() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |request| {
        let reply = reply(200).cache("no-store");
        if request.target == "/held" { reply.hold(&held) } else { reply }
    });
    let dir = TempDir::new();
    let path = Address::Unix(dir.join("front"));
    let config = site(&origin.url(), "", "").replace("127.0.0.1:0", &path.url());
    let mut first = sandarac().config(config.clone()).start();
    let mut busy = Conn::to(&path);
    busy.send(get("/held").to_bytes());
    gate.reached(1);
    first.signal(Signal::Terminate);
    within("the listener to close", || Conn::try_to(&path).is_err().then_some(()));
    let mut second = sandarac().config(config).start();
    gate.open();
    busy.response().expect(200);
    assert!(first.wait().success());
    Conn::to(&path).get("/").expect(200);
    second.signal(Signal::Terminate);
    assert!(second.wait().success());
    assert!(!dir.join("front").exists(), "the last one removes it");
}

#[test]
fn a_process_that_waits_for_another_can_be_stopped() {
    let gate = Gate::new();
    let held = gate.clone();
    let (first, origin) = before(move |_| reply(200).hold(&held));
    let mut busy = first.connect();
    busy.send(get("/").to_bytes());
    gate.reached(1);
    first.signal(Signal::Terminate);
    within("the drain to begin", || {
        (first.admin_json(&["status", "--json"])["state"] == "draining").then_some(())
    });
    let mut second = sandarac().before(&origin).admin_at(first.admin_path()).begin();
    second.says("is draining");
    second.signal(Signal::Terminate);
    assert!(second.wait().success());
    gate.open();
}

#[test]
fn beside_a_process_that_is_not_draining_another_fails_at_once() {
    let (first, origin) = before(|_| reply(200));
    let mut second = sandarac().before(&origin).admin_at(first.admin_path()).begin();
    second.says("the admin interface cannot listen on");
    assert_eq!(second.wait().code(), Some(1));
    first.get("/").expect(200);
}

#[test]
fn a_start_that_finds_its_address_taken_names_the_process_that_has_it() {
    let (first, origin) = before(|_| reply(200));
    let config = site(&origin.url(), "", "").replace("127.0.0.1:0", &first.address().to_string());
    let mut second = sandarac().config(config).admin_at(first.admin_path()).begin();
    second.says(&format!("cannot listen on {}: ", first.address()));
    let pid = first.pid();
    second.says(&format!("; Sandarac is running already, as process {pid} (`sandarac status`)"));
    second.says(&format!("`kill {pid}`"));
    assert_eq!(second.wait().code(), Some(1));

    // Another program has the address.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let mut third = sandarac().config(site(&origin.url(), "", "").replace("127.0.0.1:0", &address)).begin();
    third.says(&format!("cannot listen on {address}: "));
    assert_eq!(third.wait().code(), Some(1));
    assert!(!third.stderr().contains("already, as process"), "{}", third.stderr());
}

#[test]
fn a_restart_on_a_socket_that_was_passed_refuses_nobody() {
    let origin = Origin::new(|_| reply(200).cache("no-store").body("served"));
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let started = || {
        let config = site(&origin.url(), "", "").replace("127.0.0.1:0", &address.to_string());
        sandarac().config(config).inherits(socket.try_clone().unwrap())
    };
    let mut first = started().start();
    assert_eq!(first.get("/").text(), "served");
    first.signal(Signal::Terminate);
    assert!(first.wait().success());
    // No process runs now, but the passed socket still accepts the connection.
    let mut client = Conn::to(&Address::Tcp(address));
    client.send(get("/").to_bytes());
    let second = started().start();
    assert_eq!(client.response().expect(200).text(), "served");
    // Without a listener for the passed socket, connections would wait in it for ever.
    let refused = second.reload(&site(&origin.url(), "", "")).failure();
    assert!(refused.stderr.contains(&format!("a socket for {address} was passed")), "{refused:?}");
    assert_eq!(Conn::to(&Address::Tcp(address)).get("/").text(), "served");
}

#[test]
fn a_unix_socket_that_was_passed_is_not_removed() {
    let origin = Origin::new(|_| reply(200));
    let dir = TempDir::new();
    let path = dir.join("front");
    let socket = UnixListener::bind(&path).unwrap();
    let config = site(&origin.url(), "", "").replace("127.0.0.1:0", &format!("unix:{}", path.display()));
    let mut proxy = sandarac().config(config).inherits(socket.try_clone().unwrap()).start();
    Conn::to(&Address::Unix(path.clone())).get("/").expect(200);
    proxy.signal(Signal::Terminate);
    assert!(proxy.wait().success());
    assert!(path.exists());
}

#[test]
fn a_mode_for_a_unix_socket_that_was_passed_is_warned_of() {
    let origin = Origin::new(|_| reply(200));
    let dir = TempDir::new();
    let path = dir.join("front");
    let socket = UnixListener::bind(&path).unwrap();
    let mode = |mode: u32| {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let listen = format!("unix:{}\"\nmode = \"0660", path.display());
        let config = site(&origin.url(), "", "").replace("127.0.0.1:0", &listen);
        sandarac().config(config).inherits(socket.try_clone().unwrap()).start()
    };
    let warning = format!("[[listen]] mode = \"0660\" has no effect: unix:{} was passed", path.display());
    let proxy = mode(0o600);
    proxy.says(&warning);
    proxy.says("SocketMode=");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    drop(proxy);
    let as_passed = mode(0o660);
    Conn::to(&Address::Unix(path.clone())).get("/").expect(200);
    assert!(!as_passed.stderr().contains("has no effect"), "{}", as_passed.stderr());
}

#[test]
fn a_socket_that_was_passed_for_no_listener_is_an_error() {
    let origin = Origin::new(|_| reply(200));
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let mut proxy = sandarac().config(site(&origin.url(), "", "")).inherits(socket).begin();
    proxy.says(&format!(
        "a socket for {address} was passed to this process (LISTEN_FDS), but no [[listen]] has that address"
    ));
    assert_eq!(proxy.wait().code(), Some(1));
}

#[test]
fn a_service_manager_is_told_of_the_start_of_reloads_and_of_the_end() {
    let origin = Origin::new(|_| reply(200));
    let manager = ServiceManager::new();
    let told = || manager.told();
    let text = site(&origin.url(), "", "");
    let mut proxy = manager.starts(sandarac().config(text.clone()));
    assert_eq!(told(), "READY=1\nSTATUS=ready\n");
    proxy.reload(&text).success();
    let reloading = told();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(told(), "READY=1\nSTATUS=reloaded\n");
    proxy.reload("").failure();
    told();
    assert_eq!(told(), "READY=1\nSTATUS=not reloaded: the configuration is wrong\n");
    proxy.signal(Signal::Terminate);
    assert_eq!(told(), "STOPPING=1\nSTATUS=draining\n");
    assert!(proxy.wait().success());
}

#[test]
fn sigusr1_opens_the_log_anew() {
    let origin = Origin::new(|_| reply(200));
    let text = site(&origin.url(), "", "");
    let dir = TempDir::new();
    let (log, rotated) = (dir.join("access.log"), dir.join("access.log.1"));
    let proxy = sandarac().config(format!("{text}[log]\naccess = \"{}\"\n", log.display())).start();
    let has_line = |path: &Path, line: &str| {
        within("the line", || std::fs::read_to_string(path).ok()?.contains(line).then_some(()));
    };
    proxy.get("/first").expect(200);
    has_line(&log, "GET /first");
    std::fs::rename(&log, &rotated).unwrap();
    proxy.signal(Signal::User1);
    within("the new file", || log.exists().then_some(()));
    proxy.get("/second").expect(200);
    has_line(&log, "GET /second");
    has_line(&rotated, "GET /first");
}

#[test]
fn with_a_snapshot_the_cache_is_there_after_a_restart_and_not_after_a_crash() {
    let origin =
        Origin::new(|request| reply(200).cache("max-age=600").with("Age", "60").body(request.target.clone()));
    let dir = TempDir::new();
    let file = dir.join("cache");
    let config = site(
        &origin.url(),
        "",
        &format!("[purge]\nallow = [\"127.0.0.1\"]\n[cache]\nsnapshot = \"{}\"\n", file.display()),
    );
    let mut first = sandarac().config(config.clone()).start();
    for target in ["/one", "/two"] {
        first.get(target).expect(200);
    }
    first.exchange(&request("PURGE", "/two")).expect(200);
    first.signal(Signal::Terminate);
    first.says(&format!("sandarac: the cache is in {}: 1 object of ", file.display()));
    assert!(first.wait().success());
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    let second = sandarac().config(config.clone()).start();
    second.says(&format!("sandarac: the cache is back from {}: 1 object of ", file.display()));
    let one = second.get("/one").expect(200);
    assert!(one.is_hit() && one.fields.get("age").unwrap().parse::<u32>().unwrap() >= 60, "{one:?}");
    assert!(!second.get("/two").expect(200).is_hit());
    assert!(!file.exists(), "a crash must not bring back what is purged from here on");
    drop(second);
    let third = sandarac().config(config).start();
    assert!(!third.get("/one").expect(200).is_hit());
    assert!(!third.stderr().contains("the cache is"));
}

#[test]
fn a_snapshot_without_a_place_is_a_mistake_and_one_that_is_none_is_named() {
    let origin = Origin::new(|_| reply(200));
    let text =
        |path: &Path| site(&origin.url(), "", &format!("[cache]\nsnapshot = \"{}\"\n", path.display()));
    let dir = TempDir::new();
    let none = dir.join("none/cache");
    let checked = sandarac().config(text(&none)).arg("check").run();
    let expected = format!("the cache cannot be kept in {}: No such file or directory", none.display());
    assert!(!checked.status.success() && checked.stderr.contains(&expected), "{checked:?}");
    let path = dir.join("cache");
    std::fs::write(&path, "nonsense that is long enough to be a head").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let proxy = sandarac().config(text(&path)).start();
    proxy.says(&format!(
        "sandarac: the cache is empty: {}: these are no objects of this version",
        path.display()
    ));
    proxy.get("/").expect(200);
}

/// Regression: objects that had been purged came back from a file that a process without the setting had left where it was.
#[test]
fn a_snapshot_from_before_another_process_is_not_used() {
    let origin = Origin::new(|_| reply(200).cache("max-age=600").body("page"));
    let dir = TempDir::new();
    let admin = dir.join("admin.sock");
    let keeping = format!("[cache]\nsnapshot = \"{}\"\n", dir.join("cache").display());
    let run =
        |tables: &str| sandarac().config(site(&origin.url(), "", tables)).admin_at(admin.clone()).start();
    let end = |mut proxy: Sandarac| {
        proxy.signal(Signal::Terminate);
        assert!(proxy.wait().success());
    };
    let first = run(&keeping);
    first.get("/").expect(200);
    end(first);
    end(run(""));
    let third = run(&keeping);
    third.says("the cache is empty: ");
    third.says("another process has run since it was written");
    assert!(!third.get("/").expect(200).is_hit());
    end(third);
    let fourth = run(&keeping);
    fourth.says("sandarac: the cache is back from ");
    assert!(fourth.get("/").expect(200).is_hit());
}
