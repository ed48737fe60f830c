//! Sessions that stick to a backend, by a cookie.

use sandarac_test_support::{Conn, Gate, Origin, Port, Req, Response, Sandarac, get, reply, request, within};

use crate::{pool, sandarac};

fn backends() -> [Origin; 3] {
    ["a", "b", "c"].map(|name| Origin::new(move |_| reply(200).cache("no-store").body(name)))
}

fn start(backends: &[Origin], keys: &str) -> Sandarac {
    sandarac().config(site(&backends.iter().map(Origin::url).collect::<Vec<_>>(), keys)).start()
}

fn site(urls: &[String], keys: &str) -> String {
    pool(urls, &format!("balance = \"round_robin\"\n{keys}"))
}

const STICKY: &str = "sticky = { cookie = \"sid\" }";

/// The cookie `sid` that a response sets, as a browser sends it back.
#[track_caller]
fn cookie(response: &Response) -> String {
    let set = response.field("set-cookie").unwrap_or_else(|| panic!("no Set-Cookie in {response:?}"));
    assert!(set.starts_with("sid="), "{set}");
    set.split(';').next().expect("a cookie").to_owned()
}

fn with_cookie(cookie: &str) -> Req {
    get("/").with("Cookie", cookie)
}

#[test]
fn the_first_response_sets_a_cookie_and_later_requests_stay() {
    let backends = backends();
    let proxy = start(&backends, STICKY);
    for _ in 0..3 {
        let first = proxy.get("/").expect(200);
        let cookie = cookie(&first);
        for _ in 0..9 {
            let next = proxy.exchange(&with_cookie(&cookie)).expect(200);
            assert_eq!(next.text(), first.text());
            assert!(!next.fields.has("set-cookie"), "it has one already: {next:?}");
        }
    }
}

#[test]
fn different_sessions_are_balanced_as_ever() {
    let backends = backends();
    let proxy = start(&backends, STICKY);
    let mut names: Vec<String> = (0..3).map(|_| proxy.get("/").expect(200).text()).collect();
    names.sort();
    assert_eq!(names, ["a", "b", "c"]);
}

/// The attributes of the cookie, sorted.
fn attributes(set: &str) -> Vec<String> {
    let mut attributes: Vec<String> = set.split("; ").skip(1).map(str::to_owned).collect();
    attributes.sort();
    attributes
}

#[test]
fn the_cookie_is_made_as_it_is_configured() {
    let backends = backends();
    for (keys, expected) in [
        (STICKY, "HttpOnly|Path=/|SameSite=Lax"),
        (
            "sticky = { cookie = \"sid\", max_age = \"1d\", path = \"/app\", secure = true, same_site = \"none\" }",
            "HttpOnly|Max-Age=86400|Path=/app|SameSite=None|Secure",
        ),
        ("sticky = { cookie = \"sid\", same_site = \"strict\" }", "HttpOnly|Path=/|SameSite=Strict"),
    ] {
        let proxy = start(&backends, keys);
        let response = proxy.get("/app").expect(200);
        let set = response.field("set-cookie").expect("a cookie");
        assert_eq!(attributes(set).join("|"), expected, "{set}");
    }
}

#[test]
fn the_cookie_has_a_name_of_its_own_and_is_secure_behind_https() {
    let backends = backends();
    let text = site(&[backends[0].url()], "sticky = {}")
        .replace("127.0.0.1:0\"", "127.0.0.1:0\"\nscheme = \"https\"");
    let proxy = sandarac().config(text).start();
    let response = proxy.get("/").expect(200);
    let set = response.field("set-cookie").expect("a cookie");
    assert!(set.starts_with("sandarac_backend=") && set.contains("; Secure"), "{set}");
}

#[test]
fn the_cookie_does_not_tell_where_a_backend_is() {
    let backends = backends();
    let proxy = start(&backends, STICKY);
    for _ in 0..3 {
        let cookie = cookie(&proxy.get("/").expect(200));
        for backend in &backends {
            let port = backend.address().port().to_string();
            assert!(!cookie.contains(&port) && !cookie.contains("127.0"), "{cookie}");
        }
    }
}

#[test]
fn the_cookie_does_not_reach_the_backend() {
    let backends = backends();
    let proxy = start(&backends[..1], STICKY);
    let cookie = cookie(&proxy.get("/").expect(200));
    for (sent, expected) in [
        (format!("a=b; {cookie}; c=d"), Some("a=b; c=d")),
        (format!("{cookie}; c=d"), Some("c=d")),
        (format!("a=b; {cookie}"), Some("a=b")),
        (cookie.clone(), None),
        ("sid=forged".to_owned(), None),
        ("sidx=1; xsid=2".to_owned(), Some("sidx=1; xsid=2")),
    ] {
        proxy.exchange(&with_cookie(&sent)).expect(200);
        assert_eq!(backends[0].last().field("cookie"), expected, "{sent}");
    }
}

#[test]
fn the_cookies_that_a_backend_sets_go_on_beside_it() {
    let origin =
        Origin::new(|_| reply(200).cache("no-store").with("Set-Cookie", "a=b").with("Set-Cookie", "c=d"));
    let origins = [origin];
    let proxy = start(&origins, STICKY);
    let response = proxy.get("/").expect(200);
    let set = response.fields.all("set-cookie");
    assert!(set.len() == 3 && set[..2] == ["a=b", "c=d"] && set[2].starts_with("sid="), "{set:?}");
}

#[test]
fn a_cookie_that_names_nobody_is_exchanged() {
    let backends = backends();
    let proxy = start(&backends, STICKY);
    for forged in ["sid=forged", "sid=", "sid=0", "sid=\"1\"", "sid=18446744073709551616", "sid=%00", "sid"] {
        let response = proxy.exchange(&with_cookie(forged)).expect(200);
        let cookie = cookie(&response);
        assert_eq!(proxy.exchange(&with_cookie(&cookie)).expect(200).text(), response.text());
    }
}

#[test]
fn every_method_sticks() {
    let backends = backends();
    let proxy = start(&backends, STICKY);
    let first = proxy.exchange(&request("POST", "/").body("x")).expect(200);
    let cookie = cookie(&first);
    for method in ["POST", "PUT", "DELETE", "GET"] {
        let next = proxy.exchange(&request(method, "/").with("Cookie", &cookie)).expect(200);
        assert_eq!(next.text(), first.text());
    }
}

/// Sandarac with a cache before an origin whose response to `/private` is private, and all others are shared.
fn caching(vary: &'static str) -> (Sandarac, Origin) {
    let origin = Origin::new(move |request| {
        let answer = reply(200).with("Vary", vary).body(request.serial.to_string());
        if request.path() == "/private" { answer.cache("no-store") } else { answer.cache("max-age=60") }
    });
    let text = pool(&[origin.url()], STICKY).replace("cache = \"pass\"", "");
    (sandarac().config(text).start(), origin)
}

#[test]
fn the_cookie_sends_nothing_past_the_cache() {
    let (proxy, origin) = caching("Accept");
    let cookie = cookie(&proxy.get("/private").expect(200));
    proxy.get("/").expect(200);
    let hit = proxy.exchange(&with_cookie(&cookie)).expect(200);
    assert!(hit.is_hit(), "{hit:?}");
    let session = proxy.exchange(&with_cookie(&format!("{cookie}; session=1"))).expect(200);
    assert!(!session.is_hit(), "another cookie goes past it as ever: {session:?}");
    assert_eq!(origin.count_of("/private"), 1);
    assert_eq!(origin.count_of("/"), 2);
}

/// If a stored response set the cookie, every client would be assigned to the backend of the first.
#[test]
fn what_is_stored_sets_no_cookie() {
    let (proxy, _origin) = caching("Accept");
    proxy.get("/").expect(200);
    for _ in 0..3 {
        let hit = proxy.get("/").expect(200);
        assert!(hit.is_hit() && !hit.fields.has("set-cookie"), "{hit:?}");
    }
}

#[test]
fn responses_that_differ_by_cookie_do_not_differ_by_this_one() {
    let (proxy, origin) = caching("Cookie");
    let cookie = cookie(&proxy.get("/private").expect(200));
    proxy.get("/").expect(200);
    assert!(proxy.exchange(&with_cookie(&cookie)).expect(200).is_hit());
    assert!(proxy.exchange(&with_cookie("sid=other")).expect(200).is_hit());
    assert_eq!(origin.count_of("/"), 1);
}

#[test]
fn a_session_whose_backend_is_gone_gets_another() {
    let backends = backends();
    let urls = backends.each_ref().map(Origin::url);
    let proxy = start(&backends, STICKY);
    let first = proxy.get("/").expect(200);
    let old = cookie(&first);
    let gone = ["a", "b", "c"].iter().position(|name| *name == first.text()).expect("one of them");
    let left: Vec<String> =
        urls.iter().enumerate().filter(|(at, _)| *at != gone).map(|(_, url)| url.clone()).collect();
    proxy.reload(&site(&left, STICKY)).success();
    let next = proxy.exchange(&with_cookie(&old)).expect(200);
    assert_ne!(next.text(), first.text());
    let new = cookie(&next);
    assert_ne!(new, old);
    (0..5).for_each(|_| assert_eq!(proxy.exchange(&with_cookie(&new)).expect(200).text(), next.text()));
}

#[test]
fn sessions_stay_over_reloads_restarts_and_other_orders() {
    let backends = backends();
    let urls = backends.each_ref().map(Origin::url);
    let proxy = start(&backends, STICKY);
    let sessions: Vec<(String, String)> = (0..3)
        .map(|_| {
            let response = proxy.get("/").expect(200);
            (cookie(&response), response.text())
        })
        .collect();
    let stay = |proxy: &Sandarac| {
        for (cookie, name) in &sessions {
            assert_eq!(&proxy.exchange(&with_cookie(cookie)).expect(200).text(), name);
        }
    };
    let turned: Vec<String> = urls.iter().rev().cloned().collect();
    proxy.reload(&site(&turned, STICKY)).success();
    stay(&proxy);
    stay(&sandarac().config(site(&turned, STICKY)).start());
}

#[test]
fn a_session_whose_backend_is_dead_goes_on_elsewhere() {
    let port = Port::new();
    let origin = Origin::on(port.listen(), |_| reply(200).cache("no-store").body("mortal"));
    let spare = Origin::new(|_| reply(200).cache("no-store").body("spare"));
    let proxy = sandarac().config(site(&[port.url(), spare.url()], STICKY)).start();
    let mine = loop {
        let response = proxy.get("/").expect(200);
        if response.text() == "mortal" {
            break cookie(&response);
        }
    };
    drop(origin);
    // The session moves once its backend is ejected.
    let new = within("the session to move", || {
        let next = proxy.exchange(&with_cookie(&mine)).expect(200);
        (next.text() == "spare" && next.fields.has("set-cookie")).then(|| cookie(&next))
    });
    assert_eq!(proxy.exchange(&with_cookie(&new)).expect(200).text(), "spare");
}

/// Regression: a session with a request during the restart of its backend moved to another one for good, which knows nothing of
/// the session.
#[test]
fn a_session_stays_where_it_is_while_its_backend_is_restarted() {
    let port = Port::new();
    let spare = Origin::new(|_| reply(200).cache("no-store").body("spare"));
    let listener = port.listen();
    let proxy = sandarac().config(site(&[port.url(), spare.url()], STICKY)).start();
    let home = || Origin::on(port.listen(), |_| reply(200).cache("no-store").body("home"));
    let first = Origin::on(listener, |_| reply(200).cache("no-store").body("home"));
    let mine = loop {
        let response = proxy.get("/").expect(200);
        if response.text() == "home" {
            break cookie(&response);
        }
    };
    let elsewhere = || {
        within("it to be answered elsewhere", || {
            let answer = proxy.exchange(&with_cookie(&mine)).expect(200);
            assert!(!answer.fields.has("set-cookie"), "{answer:?}");
            (answer.text() == "spare").then_some(())
        });
    };
    // The connection is refused.
    drop(first);
    elsewhere();
    let second = home();
    assert_eq!(proxy.exchange(&with_cookie(&mine)).expect(200).text(), "home");
    // The connection is accepted, and closed without an answer.
    drop(second);
    let listener = port.listen();
    let mut client = proxy.connect();
    client.send(with_cookie(&mine).to_bytes());
    drop(listener.accept());
    let answer = client.response().expect(200);
    assert_eq!(answer.text(), "spare");
    assert!(!answer.fields.has("set-cookie"), "{answer:?}");
    drop(listener);
    let _third = home();
    assert_eq!(proxy.exchange(&with_cookie(&mine)).expect(200).text(), "home");
}

/// Two backends that take one request at a time, the cookie of a session at one of them, and a request of that session that
/// holds the backend's place until the gate is open.
fn full(keys: &str) -> (Sandarac, [Origin; 2], Gate, String, String, Conn) {
    let gate = Gate::new();
    let backends = ["a", "b"].map(|name| {
        let gate = gate.clone();
        Origin::new(move |request| {
            let answer = reply(200).cache("no-store").body(name);
            if request.path() == "/hold" { answer.hold(&gate) } else { answer }
        })
    });
    let proxy = start(&backends, &format!("{STICKY}\nmax_in_flight = 1\n{keys}"));
    let first = proxy.get("/").expect(200);
    let (home, cookie) = (first.text(), cookie(&first));
    let mut held = proxy.connect();
    held.send(get("/hold").with("Cookie", &cookie).to_bytes());
    gate.reached(1);
    (proxy, backends, gate, home, cookie, held)
}

#[test]
fn a_session_whose_backend_is_full_waits_for_it() {
    let (proxy, _backends, gate, home, cookie, mut held) = full("queue_timeout = \"1h\"");
    let mut waiting = proxy.connect();
    waiting.send(with_cookie(&cookie).to_bytes());
    proxy.counts("fetches_queued", 1);
    gate.open();
    held.response().expect(200);
    let answer = waiting.response().expect(200);
    assert_eq!(answer.text(), home);
    assert!(!answer.fields.has("set-cookie"), "{answer:?}");
}

#[test]
fn a_session_that_waits_in_vain_is_answered_elsewhere_and_stays_where_it_was() {
    let (proxy, _backends, gate, home, cookie, mut held) = full("queue_timeout = \"2s\"");
    let answer = proxy.exchange(&with_cookie(&cookie)).expect(200);
    assert_ne!(answer.text(), home);
    assert!(!answer.fields.has("set-cookie"), "{answer:?}");
    gate.open();
    held.response().expect(200);
    assert_eq!(proxy.exchange(&with_cookie(&cookie)).expect(200).text(), home);
}

#[test]
fn an_answer_made_here_sets_no_cookie() {
    let port = Port::new();
    let proxy = sandarac().config(site(&[port.url()], STICKY)).start();
    assert!(!proxy.get("/").expect(502).fields.has("set-cookie"));
}

#[test]
fn sessions_stick_whatever_the_pool_goes_by() {
    let backends = backends();
    let urls = backends.each_ref().map(Origin::url);
    for algorithm in
        ["least_requests", "resume", "peak_ewma", "random", "consistent_hash", "maglev", "fallback"]
    {
        let proxy = sandarac().config(pool(&urls, &format!("balance = \"{algorithm}\"\n{STICKY}"))).start();
        let first = proxy.get("/").expect(200);
        let cookie = cookie(&first);
        for _ in 0..8 {
            let next = proxy.exchange(&with_cookie(&cookie).host("other.example")).expect(200);
            assert_eq!(next.text(), first.text(), "{algorithm}");
        }
    }
}

/// Regression: a session moved for good after another backend had answered one of its requests.
#[test]
fn a_session_stays_though_another_backend_answers_once() {
    let gate = Gate::new();
    let backends = ["a", "b"].map(|name| {
        let gate = gate.clone();
        Origin::new(move |request| {
            let answer = reply(200).cache("no-store").body(name);
            if name == "a" && request.path() == "/slow" { answer.hold(&gate) } else { answer }
        })
    });
    let proxy = start(&backends, &format!("{STICKY}\nhedge_after = \"30ms\""));
    let of_a = (0..4).map(|_| proxy.get("/").expect(200)).find(|response| response.text() == "a");
    let session = cookie(&of_a.expect("each has its turn"));
    let once = proxy.exchange(&get("/slow").with("Cookie", &session)).expect(200);
    assert_eq!(once.text(), "b");
    assert_eq!(once.field("set-cookie"), None);
    assert_eq!(proxy.exchange(&with_cookie(&session)).expect(200).text(), "a");
    gate.open();
}
