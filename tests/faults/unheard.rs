//! Standard error that cannot be written, because its reader is gone. All are regressions: a write to standard error panicked.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sandarac_test_support::{Conn, Gate, Origin, Signal, TempDir, get, reply, within};

use crate::{begin_another, sandarac, site};

#[test]
fn a_reload_is_in_force_and_says_so() {
    let (old, new) = (Origin::new(|_| reply(200).body("old")), Origin::new(|_| reply(200).body("new")));
    let mut proxy = sandarac().config(site(&old.url(), "", "")).unheard().start();
    assert_eq!(proxy.get("/1").text(), "old");
    proxy.reload(&site(&new.url(), "", "")).success();
    assert_eq!(proxy.get("/2").text(), "new");
    proxy.write_config("no configuration");
    proxy.signal(Signal::Hangup);
    assert_eq!(proxy.admin(&["reload"]).failure().status.code(), Some(2));
    assert!(proxy.is_running());
}

#[test]
fn it_drains_all_the_same() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |_| reply(200).cache("no-store").hold(&held).body("finished"));
    let mut proxy = sandarac().before(&origin).unheard().start();
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    gate.reached(1);
    proxy.signal(Signal::Terminate);
    within("the listener to close", || Conn::try_to(proxy.address()).is_err().then_some(()));
    gate.open();
    assert_eq!(client.response().expect(200).text(), "finished");
    assert!(proxy.wait().success());
}

#[test]
fn checks_go_on_after_one_has_failed() {
    let well = Arc::new(AtomicBool::new(false));
    let is_well = Arc::clone(&well);
    let sick = Origin::new(move |request| match request.path() {
        "/health" => reply(if is_well.load(Ordering::SeqCst) { 200 } else { 503 }),
        _ => reply(200).cache("no-store"),
    });
    // The last healthy backend is never taken out, so there is another one.
    let other = Origin::new(|_| reply(200));
    let both = format!("{}\", \"{}", sick.url(), other.url());
    let check = "check = { path = \"/health\", interval = \"10ms\", rise = 1, fall = 1 }";
    let proxy = sandarac().config(site(&both, check, "")).unheard().start();
    let state = || proxy.admin_json(&["status", "--json"])["pools"][0]["backends"][0]["state"].clone();
    within("the backend to be down", || (state() == "down").then_some(()));
    well.store(true, Ordering::SeqCst);
    within("the backend to be healthy again", || (state() == "healthy").then_some(()));
}

#[test]
fn one_connection_too_many_is_told_so() {
    let origin = Origin::new(|_| reply(200));
    let proxy = sandarac().config(site(&origin.url(), "", "[limits]\nconnections = 1")).unheard().start();
    let mut first = proxy.connect();
    first.get("/").expect(200);
    begin_another(&mut first);
    proxy.connect().response().expect(503);
}

#[test]
fn the_log_is_written_again_once_it_can_be() {
    let (dir, origin) = (TempDir::new(), Origin::new(|_| reply(200).cache("no-store")));
    let path = dir.join("access.log");
    symlink("/dev/full", &path).unwrap();
    let log = format!("[log]\naccess = {path:?}");
    let proxy = sandarac().config(site(&origin.url(), "", &log)).unheard().start();
    proxy.get("/").expect(200);
    within("a line to be lost", || (proxy.metric("log_lines_dropped") > 0).then_some(()));
    fs::remove_file(&path).unwrap();
    within("a line to be written", || {
        proxy.get("/").expect(200);
        fs::read_to_string(&path).is_ok_and(|text| text.contains("GET / ")).then_some(())
    });
}
