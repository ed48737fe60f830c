//! Active checks: `[pool.NAME.check]`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use sandarac_test_support::{Listener, Origin, Port, Reply, Sandarac, TempDir, reply, within};

use crate::{pool, sandarac};

/// A backend whose `/health` answers with a status that the test sets.
struct Checked {
    origin: Origin,
    health: Arc<AtomicU16>,
}

impl Checked {
    fn new(name: &'static str, health: u16) -> Checked {
        Checked::on(Listener::new(), name, health)
    }

    fn on(listener: Listener, name: &'static str, health: u16) -> Checked {
        let health = Arc::new(AtomicU16::new(health));
        let status = Arc::clone(&health);
        let origin = Origin::on(listener, move |request| match request.path() {
            "/health" => reply(status.load(Ordering::SeqCst)),
            _ => reply(200).cache("no-store").body(name),
        });
        Checked { origin, health }
    }

    fn set(&self, health: u16) {
        self.health.store(health, Ordering::SeqCst);
    }

    /// Waits for `count` more checks.
    #[track_caller]
    fn is_checked(&self, count: usize) {
        let checks = || self.origin.requests().iter().filter(|request| request.path() == "/health").count();
        let before = checks();
        within(&format!("{count} checks"), || (checks() >= before + count).then_some(()));
    }
}

fn start(backends: &[&Checked], check: &str) -> Sandarac {
    let urls: Vec<String> = backends.iter().map(|backend| backend.origin.url()).collect();
    let check = format!("check = {{ path = \"/health\", interval = \"10ms\"{check} }}");
    sandarac().config(pool(&urls, &format!("balance = \"round_robin\"\n{check}"))).start()
}

/// The names of the backends that answer ten requests, sorted, each once.
fn answers(proxy: &Sandarac) -> String {
    let mut names: Vec<String> = (0..10).map(|_| proxy.get("/").expect(200).text()).collect();
    names.sort();
    names.dedup();
    names.concat()
}

/// Waits until exactly `names` answer, and checks that this lasts.
#[track_caller]
fn serve(proxy: &Sandarac, names: &str) {
    within(&format!("{names} to answer"), || (answers(proxy) == names).then_some(()));
    assert_eq!(answers(proxy), names);
}

#[test]
fn a_check_is_a_get_for_the_path_at_the_backends_own_address() {
    let backend = Checked::new("a", 200);
    let text = pool(&[backend.origin.url()], "check = { path = \"/health?deep=1\", interval = \"10ms\" }");
    let _proxy = sandarac().config(text).start();
    backend.is_checked(1);
    let check = backend.origin.requests().remove(0);
    assert_eq!(check.method, "GET");
    assert_eq!(check.target, "/health?deep=1");
    assert_eq!(check.fields.all("host"), [backend.origin.address().to_string()]);
    assert!(!check.fields.has("request-class") && !check.fields.has("x-forwarded-for"), "{check:?}");
}

#[test]
fn a_check_names_the_host_it_is_told() {
    let backend = Checked::new("a", 200);
    let _proxy = start(&[&backend], ", host = \"www.example.com\"");
    backend.is_checked(1);
    assert_eq!(backend.origin.requests()[0].field("host"), Some("www.example.com"));
}

#[test]
fn a_backend_on_a_unix_socket_is_checked_as_localhost() {
    let dir = TempDir::new();
    let backend = Checked::on(Listener::on_unix(&dir.join("app.sock")), "a", 200);
    let _proxy = start(&[&backend], "");
    backend.is_checked(1);
    assert_eq!(backend.origin.requests()[0].field("host"), Some("localhost"));
}

#[test]
fn a_backend_that_is_not_well_gets_no_requests_until_it_is() {
    let (a, b) = (Checked::new("a", 200), Checked::new("b", 200));
    let proxy = start(&[&a, &b], "");
    serve(&proxy, "ab");
    a.set(500);
    serve(&proxy, "b");
    a.set(200);
    serve(&proxy, "ab");
}

#[test]
fn a_backend_that_cannot_be_reached_is_out_before_anybody_asks_for_it() {
    let (a, port) = (Checked::new("a", 200), Port::new());
    let check = "check = { path = \"/health\", interval = \"10ms\", fall = 1, rise = 1 }\nretries = 0";
    let proxy = sandarac()
        .config(pool(&[a.origin.url(), port.url()], &format!("balance = \"round_robin\"\n{check}")))
        .start();
    proxy.says("is out of service");
    (0..20).for_each(|_| assert_eq!(proxy.get("/").expect(200).text(), "a"));
    assert_eq!(proxy.metric("backend_connect_failures"), 0);
    let _b = Checked::on(port.listen(), "b", 200);
    serve(&proxy, "ab");
}

#[test]
fn a_check_that_takes_too_long_has_failed() {
    let (a, b) = (
        Checked::new("a", 200),
        Origin::new(|request| match request.path() {
            "/health" => reply(200).length(1).hang(),
            _ => reply(200).body("b"),
        }),
    );
    let check = "check = { path = \"/health\", interval = \"10ms\", timeout = \"50ms\" }";
    let text = pool(&[a.origin.url(), b.url()], &format!("balance = \"round_robin\"\n{check}"));
    let proxy = sandarac().config(text).start();
    within("b to be out", || (answers(&proxy) == "a").then_some(()));
}

#[test]
fn the_statuses_of_a_backend_that_is_well_can_be_told() {
    let (a, b, c) = (Checked::new("a", 404), Checked::new("b", 200), Checked::new("c", 503));
    let proxy = start(&[&a, &b, &c], ", status = [404, \"500-503\"]");
    serve(&proxy, "ac");
}

#[test]
fn redirects_are_well_and_errors_are_not_unless_told_otherwise() {
    let (a, b, c) = (Checked::new("a", 204), Checked::new("b", 302), Checked::new("c", 404));
    let proxy = start(&[&a, &b, &c], "");
    serve(&proxy, "ab");
}

/// A backend whose checks pass (`P`) and fail (`F`) as in `pattern`; after its end, the last letter counts.
fn patterned(pattern: &'static str, checks: &Arc<AtomicUsize>) -> Origin {
    let checks = Arc::clone(checks);
    Origin::new(move |request| match request.path() {
        "/health" => {
            let check = checks.fetch_add(1, Ordering::SeqCst);
            let passes = pattern.as_bytes()[check.min(pattern.len() - 1)] == b'P';
            reply(if passes { 200 } else { 500 })
        }
        _ => reply(200).cache("no-store").body("b"),
    })
}

/// Sandarac before two backends, after all checks in `pattern` of the second except the last.
fn checked(pattern: &'static str, check: &str) -> (Sandarac, [Origin; 2]) {
    let checks = Arc::new(AtomicUsize::new(0));
    let (a, b) = (Origin::new(|_| reply(200).body("a")), patterned(pattern, &checks));
    let check = format!("check = {{ path = \"/health\", interval = \"10ms\", {check} }}");
    let proxy =
        sandarac().config(pool(&[a.url(), b.url()], &format!("balance = \"round_robin\"\n{check}"))).start();
    within("the checks", || (checks.load(Ordering::SeqCst) >= pattern.len() - 1).then_some(()));
    (proxy, [a, b])
}

#[test]
fn a_check_that_fails_now_and_then_takes_nobody_out() {
    let (proxy, _origins) = checked("FFPFFPFFPFFPFFPFFPFFPFFPP", "fall = 3");
    assert_eq!(answers(&proxy), "ab");
}

#[test]
fn as_many_checks_must_pass_in_a_row_as_rise_says() {
    let (proxy, _origins) = checked("FFFPPFPPFPPFPPFPPFPPFPPFF", "fall = 2, rise = 3");
    assert_eq!(answers(&proxy), "a");
}

#[test]
fn never_are_all_backends_out() {
    let (a, b) = (Checked::new("a", 500), Checked::new("b", 500));
    let proxy = start(&[&a, &b], ", fall = 1");
    a.is_checked(20);
    b.is_checked(20);
    assert_eq!(answers(&proxy).len(), 1, "one stays, whichever");
    // The metrics still show the failures.
    let sum = |metric: &str| proxy.metric(metric);
    assert_eq!(sum("backend_healthy"), 0);
    assert_eq!(sum("backend_failing"), 1);
    assert_eq!(sum("backend_down"), 1);
    let check = proxy.admin(&["check-pool"]);
    assert_eq!(check.status.code(), Some(2), "{check:?}");
    a.set(200);
    serve(&proxy, "a");
}

#[test]
fn checks_go_on_while_no_requests_come_and_are_no_requests() {
    let backend = Checked::new("a", 200);
    let proxy = start(&[&backend], "");
    backend.is_checked(20);
    assert_eq!(proxy.metric("requests"), 0);
    assert_eq!(proxy.metric("backend_requests"), 0);
}

#[test]
fn a_reload_begins_and_ends_checks() {
    let (a, b) = (Checked::new("a", 200), Checked::new("b", 500));
    let urls = [a.origin.url(), b.origin.url()];
    let without = pool(&urls, "balance = \"round_robin\"");
    let proxy = sandarac().config(&without).start();
    assert_eq!(answers(&proxy), "ab");
    let check = "check = { path = \"/health\", interval = \"10ms\" }";
    proxy.reload(&pool(&urls, &format!("balance = \"round_robin\"\n{check}"))).success();
    serve(&proxy, "a");
    proxy.reload(&without).success();
    serve(&proxy, "ab");
}

#[test]
fn garbage_for_an_answer_is_a_check_that_failed() {
    let (a, b) = (
        Checked::new("a", 200),
        Origin::new(|request| match request.path() {
            "/health" => Reply::verbatim("SSH-2.0-OpenSSH_9.2\r\n\r\n").cut(),
            _ => reply(200).body("b"),
        }),
    );
    let check = "check = { path = \"/health\", interval = \"10ms\" }";
    let proxy = sandarac()
        .config(pool(&[a.origin.url(), b.url()], &format!("balance = \"round_robin\"\n{check}")))
        .start();
    within("b to be out", || (answers(&proxy) == "a").then_some(()));
}
