//! Start, reload and end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use sandarac_test_support::{Address, Conn, Gate, Listener, Origin, Sandarac, Signal, get, reply, within};

use crate::{before, numbered, sandarac, site};

#[test]
fn a_reload_takes_up_the_new_file_and_keeps_the_cache() {
    let (old, new) =
        (Origin::new(numbered(|_| reply(200).cache("max-age=60"))), Origin::new(|_| reply(200).body("new")));
    let proxy = sandarac().config(site(&old.url(), "", "")).start();
    let mut client = proxy.connect();
    assert_eq!(client.get("/kept").text(), "1");
    proxy.reload(&site(&new.url(), "", "")).success();
    assert_eq!(client.get("/kept").text(), "1");
    assert_eq!(client.get("/other").text(), "new");
    assert_eq!(proxy.get("/third").text(), "new");
}

#[test]
fn sighup_reloads_too() {
    let (old, new) = (
        Origin::new(|_| reply(200).cache("no-store").body("old")),
        Origin::new(|_| reply(200).cache("no-store").body("new")),
    );
    let proxy = sandarac().config(site(&old.url(), "", "")).start();
    assert_eq!(proxy.get("/").text(), "old");
    proxy.write_config(&site(&new.url(), "", ""));
    proxy.signal(Signal::Hangup);
    within("the new configuration", || (proxy.get("/").text() == "new").then_some(()));
}

#[test]
fn a_bad_file_changes_nothing_and_says_why() {
    let origin = Origin::new(|_| reply(200).cache("no-store").body("still"));
    let proxy = sandarac().config(site(&origin.url(), "", "")).start();
    let output = proxy.reload(&site(&origin.url(), "cahce = \"pass\"", "")).failure();
    assert!(output.stderr.contains("cahce") && output.stderr.contains("cache"), "{output:?}");
    assert!(
        output.stderr.starts_with("sandarac: the configuration is wrong\nerror: unknown key"),
        "{output:?}"
    );
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(proxy.get("/").text(), "still");
    proxy.signal(Signal::Hangup);
    proxy.says("cahce");
    assert_eq!(proxy.get("/").text(), "still");
}

#[test]
fn exchanges_in_flight_finish_under_the_old_configuration() {
    let listener = Listener::new();
    let new = Origin::new(|_| reply(200).cache("no-store").body("new"));
    let proxy = sandarac().config(site(&listener.url(), "", "")).start();
    let mut client = proxy.connect();
    client.send(get("/begun").to_bytes());
    let mut origin = listener.accept();
    origin.request();
    proxy.reload(&site(&new.url(), "", "")).success();
    assert_eq!(proxy.get("/after").text(), "new");
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold");
    assert_eq!(client.response().expect(200).text(), "old");
    assert_eq!(client.get("/next").text(), "new");
}

#[test]
fn what_a_reload_cannot_change_is_a_warning() {
    let origin = Origin::new(|_| reply(200));
    let text = site(&origin.url(), "", "");
    let proxy = sandarac().config(format!("threads = 1\n{text}")).start();
    let output = proxy.reload(&format!("threads = 2\n{text}")).success();
    let warning = "warning: `threads` takes effect only at the next start\n";
    assert!(output.stderr.starts_with(warning), "{output:?}");
    proxy.says(warning);
}

#[test]
fn listeners_come_and_go_with_a_reload() {
    let origin = Origin::new(|_| reply(200).body("ok"));
    let text = site(&origin.url(), "", "");
    let proxy = sandarac().config(text.clone()).start();
    let mut client = proxy.connect();
    client.get("/").expect(200);
    let socket = format!("unix:{}", proxy.dir().join("front").display());
    proxy.reload(&format!("{text}\n[[listen]]\naddress = \"{socket}\"\n")).success();
    sandarac_test_support::Conn::to(&sandarac_test_support::Address::parse(&socket)).get("/").expect(200);
    client.get("/").expect(200);
    proxy.connect().get("/").expect(200);
    proxy.reload(&text).success();
    within("the socket to close", || {
        sandarac_test_support::Conn::try_to(&sandarac_test_support::Address::parse(&socket))
            .is_err()
            .then_some(())
    });
    proxy.get("/").expect(200);
}

#[test]
fn what_is_configured_for_a_listener_changes_under_its_socket() {
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let address = "address = \"127.0.0.1:0\"\n";
    let with = |keys: &str| site(&origin.url(), "", "").replace(address, &format!("{address}{keys}\n"));
    let proxy = sandarac().config(with("")).start();
    let mut before = proxy.connect();
    before.get("/").expect(200);

    proxy.reload(&with("proxy_protocol = true")).success();
    let mut client = proxy.connect();
    client.send("PROXY TCP4 192.0.2.7 192.0.2.1 5000 80\r\n").send(get("/").to_bytes());
    client.response().expect(200);
    assert_eq!(origin.last().field("x-forwarded-for"), Some("192.0.2.7"));
    // On a connection that was open already, no PROXY header is expected any more.
    before.get("/").expect(200);
    assert_eq!(origin.last().field("x-forwarded-for"), Some("127.0.0.1"));

    proxy.reload(&with("trusted_proxies = [\"127.0.0.1\"]")).success();
    before.exchange(&get("/").with("X-Forwarded-For", "198.51.100.3")).expect(200);
    assert_eq!(origin.last().field("x-forwarded-for"), Some("198.51.100.3, 127.0.0.1"));
}

#[test]
fn a_reload_that_is_refused_leaves_no_socket_behind() {
    let origin = Origin::new(|_| reply(200));
    let text = site(&origin.url(), "", "");
    let proxy = sandarac().config(text.clone()).start();
    let path = proxy.dir().join("new");
    // An address of no interface of this machine (RFC 5737).
    let more = format!(
        "{text}\n[[listen]]\naddress = \"unix:{}\"\n[[listen]]\naddress = \"192.0.2.1:80\"\n",
        path.display()
    );
    proxy.reload(&more).failure();
    assert!(!path.exists());
}

#[test]
fn the_mode_of_a_unix_listener_changes_in_a_reload() {
    let origin = Origin::new(|_| reply(200));
    let text = site(&origin.url(), "", "");
    let proxy = sandarac().config(text.clone()).start();
    let path = proxy.dir().join("front");
    let listen = |mode: &str| {
        format!("{text}\n[[listen]]\naddress = \"unix:{}\"\nmode = \"{mode}\"\n", path.display())
    };
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    proxy.reload(&listen("0600")).success();
    let mut client = Conn::to(&Address::Unix(path.clone()));
    client.get("/").expect(200);
    assert_eq!(mode(), 0o600);
    proxy.reload(&listen("0666")).success();
    assert_eq!(mode(), 0o666);
    client.get("/").expect(200);
    Conn::to(&Address::Unix(path.clone())).get("/").expect(200);
}

#[test]
fn a_reload_changes_no_file_that_has_taken_the_place_of_a_socket() {
    let origin = Origin::new(|_| reply(200));
    let text = site(&origin.url(), "", "");
    let proxy = sandarac().config(text.clone()).start();
    let (path, other) = (proxy.dir().join("front"), proxy.dir().join("other"));
    let listen = |mode: &str| {
        format!("{text}\n[[listen]]\naddress = \"unix:{}\"\nmode = \"{mode}\"\n", path.display())
    };
    proxy.reload(&listen("0600")).success();
    fs::rename(&path, proxy.dir().join("moved")).unwrap();
    fs::write(&other, "").unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&other, &path).unwrap();
    let output = proxy.reload(&listen("0666")).success();
    assert!(output.stderr.contains("cannot set the mode of the socket"), "{}", output.stderr);
    assert_eq!(fs::metadata(&other).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_connection_to_a_listener_that_is_taken_out_serves_one_more_request_as_it_was_configured() {
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let text = site(&origin.url(), "", "");
    let proxy = sandarac().config(text.clone()).start();
    let path = proxy.dir().join("front");
    let secure = format!("{text}\n[[listen]]\naddress = \"unix:{}\"\nscheme = \"https\"\n", path.display());
    proxy.reload(&secure).success();
    let mut client = Conn::to(&Address::Unix(path));
    client.get("https://www.example/").expect(200);
    proxy.reload(&text).success();
    let last = client.get("https://www.example/");
    last.expect(200);
    assert_eq!(origin.last().field("x-forwarded-proto"), Some("https"));
    client.expect_end();
}

#[test]
fn a_listener_keeps_its_socket_when_another_of_the_same_address_goes() {
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let text = site(&origin.url(), "", "");
    let listen = |keys: &str| format!("[[listen]]\naddress = \"127.0.0.1:0\"\n{keys}\n");
    let both =
        text.replace(listen("").trim_end(), &format!("{}{}", listen(""), listen("proxy_protocol = true")));
    let one = text.replace(listen("").trim_end(), &listen("proxy_protocol = true"));
    let proxy = sandarac().config(both).start();
    let [_, proxied] = proxy.addresses() else { panic!("two listeners") };
    let proxied = proxied.clone();
    proxy.reload(&one).success();
    let mut client = Conn::to(&proxied);
    client.send("PROXY TCP4 192.0.2.7 192.0.2.1 5000 80\r\n").send(get("/").to_bytes());
    client.response().expect(200);
    assert_eq!(origin.last().field("x-forwarded-for"), Some("192.0.2.7"));
}

#[test]
fn the_file_of_a_unix_listener_goes_with_it_in_a_reload() {
    let origin = Origin::new(|_| reply(200));
    let text = site(&origin.url(), "", "");
    let proxy = sandarac().config(text.clone()).start();
    let path = |name: &str| proxy.dir().join(name);
    let listen = |name: &str| format!("\n[[listen]]\naddress = \"unix:{}\"\n", path(name).display());
    proxy.reload(&format!("{text}{}{}{}", listen("kept"), listen("gone"), listen("taken"))).success();
    // Another process has put its socket in place of ours.
    fs::remove_file(path("taken")).unwrap();
    let other = UnixListener::bind(path("taken")).unwrap();
    proxy.reload(&format!("{text}{}", listen("kept"))).success();
    assert_eq!(["kept", "gone", "taken"].map(|name| path(name).exists()), [true, false, true]);
    Conn::to(&Address::Unix(path("kept"))).get("/").expect(200);
    drop(other);
}

#[test]
fn sigterm_lets_exchanges_finish_and_takes_no_new_connection() {
    let gate = Gate::new();
    let held = gate.clone();
    let (mut proxy, _origin) = before(move |_| reply(200).cache("no-store").hold(&held).body("finished"));
    let (mut busy, mut idle) = (proxy.connect(), proxy.connect());
    busy.send(get("/").to_bytes());
    gate.reached(1);
    proxy.signal(Signal::Terminate);
    idle.expect_end();
    within("the listener to close", || {
        sandarac_test_support::Conn::try_to(proxy.address()).is_err().then_some(())
    });
    assert!(proxy.is_running());
    gate.open();
    let response = busy.response().expect(200);
    assert_eq!(response.text(), "finished");
    assert_eq!(response.field("connection"), Some("close"));
    busy.expect_end();
    assert!(proxy.wait().success());
}

#[test]
fn sigterm_without_work_ends_at_once() {
    let (mut proxy, _origin) = before(|_| reply(200));
    proxy.get("/").expect(200);
    let _idle = proxy.connect();
    proxy.signal(Signal::Terminate);
    assert!(proxy.wait().success());
}

#[test]
fn a_second_sigterm_ends_at_once() {
    let gate = Gate::new();
    let held = gate.clone();
    let (mut proxy, _origin) = before(move |_| reply(200).hold(&held));
    let mut busy = proxy.connect();
    busy.send(get("/").to_bytes());
    gate.reached(1);
    proxy.signal(Signal::Terminate);
    within("the drain to begin", || {
        sandarac_test_support::Conn::try_to(proxy.address()).is_err().then_some(())
    });
    assert!(proxy.is_running());
    proxy.signal(Signal::Terminate);
    assert_eq!(proxy.wait().code(), Some(1), "what was under way is lost");
    gate.open();
}

#[test]
fn reloads_are_told_of_whoever_asked() {
    let origin = Origin::new(|_| reply(200));
    let text = site(&origin.url(), "", "");
    let proxy = sandarac().config(text.clone()).start();
    proxy.reload(&text).success();
    proxy.says("sandarac: reloaded ");
    proxy.reload("").failure();
    proxy.says("sandarac: not reloaded, the configuration in force stays: the configuration is wrong");
    std::fs::remove_file(proxy.dir().join("sandarac.toml")).unwrap();
    let output = proxy.admin(&["reload"]).failure();
    assert!(
        output.stderr.starts_with("sandarac: cannot read ") && output.status.code() == Some(2),
        "{output:?}"
    );
}

/// Regression: the signal was lost silently, and the admin request was told that the file is in force.
#[test]
fn a_reload_while_draining_is_refused() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |_| reply(200).hold(&held));
    let text = site(&origin.url(), "", "");
    let mut proxy = sandarac().config(text.clone()).start();
    let mut busy = proxy.connect();
    busy.send(get("/").to_bytes());
    gate.reached(1);
    proxy.signal(Signal::Terminate);
    proxy.says("draining");
    within("the process to say that it drains", || {
        (proxy.admin_json(&["status", "--json"])["state"] == "draining").then_some(())
    });
    let output = proxy.reload(&text).failure();
    assert!(output.stderr.contains("nothing is reloaded: this process is draining and ends"), "{output:?}");
    assert_eq!(output.status.code(), Some(1));
    let told = || proxy.stderr().matches("sandarac: nothing is reloaded: this process is draining").count();
    within("the refusal to be logged", || (told() == 1).then_some(()));
    proxy.signal(Signal::Hangup);
    within("the signal to be answered", || (told() == 2).then_some(()));
    gate.open();
    busy.response().expect(200);
    assert!(proxy.wait().success());
}

#[test]
fn a_drain_that_lasts_too_long_is_cut_off() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |_| reply(200).hold(&held));
    let mut proxy = sandarac().config(site(&origin.url(), "", "[timeouts]\ndrain = \"1s\"")).start();
    let mut busy = proxy.connect();
    busy.send(get("/").to_bytes());
    gate.reached(1);
    proxy.signal(Signal::Terminate);
    proxy.wait();
    proxy.says("sandarac: the drain time of 1 s has passed: 1 connection was cut off\n");
    gate.open();
}

/// Regression: the time since the start was shown as that of the drain.
#[test]
fn the_status_tells_how_long_the_process_has_been_draining() {
    let gate = Gate::new();
    let held = gate.clone();
    let (mut proxy, _origin) = before(move |_| reply(200).hold(&held));
    let status = |proxy: &Sandarac| proxy.admin_json(&["status", "--json"]);
    within("a second to pass", || (status(&proxy)["uptime_seconds"].as_u64() >= Some(1)).then_some(()));
    assert!(status(&proxy)["draining_seconds"].is_null());
    let mut busy = proxy.connect();
    busy.send(get("/").to_bytes());
    gate.reached(1);
    proxy.signal(Signal::Terminate);
    let draining = within("the drain to begin", || {
        let status = status(&proxy);
        (status["state"] == "draining").then_some(status)
    });
    let seconds = |name: &str| draining[name].as_u64().unwrap();
    assert!(seconds("draining_seconds") < seconds("uptime_seconds"), "{draining}");
    gate.open();
    busy.response().expect(200);
    assert!(proxy.wait().success());
}
