//! The safe profile: no client gets a page that was made for another.

use sandarac_test_support::{Origin, Reply, Request, Sandarac, get, reply};

use crate::{numbered, sandarac};

fn start(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Sandarac, Origin) {
    let origin = Origin::new(numbered(rule));
    (sandarac().before(&origin).start(), origin)
}

#[test]
fn a_request_with_a_cookie_goes_past_the_cache() {
    let (proxy, origin) = start(|_| reply(200).cache("max-age=60"));
    proxy.get("/");
    let with_cookie = get("/").with("Cookie", "session=1");
    assert_eq!([proxy.exchange(&with_cookie).text(), proxy.exchange(&with_cookie).text()], ["2", "3"]);
    assert_eq!(origin.last().field("cookie"), Some("session=1"));
    assert_eq!(proxy.get("/").text(), "1", "and leaves nothing there");
}

#[test]
fn a_page_made_for_a_cookie_is_not_kept_for_others() {
    let (proxy, _origin) = start(|_| reply(200).cache("max-age=60"));
    proxy.exchange(&get("/").with("Cookie", "session=1"));
    assert_eq!(proxy.get("/").text(), "2");
}

#[test]
fn a_request_with_authorization_goes_past_the_cache() {
    let (proxy, origin) = start(|_| reply(200).cache("public, max-age=60"));
    let with_password = get("/").with("Authorization", "Basic eA==");
    assert_eq!([proxy.exchange(&with_password).text(), proxy.exchange(&with_password).text()], ["1", "2"]);
    assert_eq!(origin.last().field("authorization"), Some("Basic eA=="));
    assert_eq!([proxy.get("/").text(), proxy.exchange(&with_password).text()], ["3", "4"]);
}

#[test]
fn a_response_that_sets_a_cookie_is_not_stored() {
    let (proxy, _origin) =
        start(|request| reply(200).cache("max-age=60").with("Set-Cookie", &format!("id={}", request.serial)));
    let first = proxy.get("/");
    let second = proxy.get("/");
    assert_eq!(first.field("set-cookie"), Some("id=1"));
    assert_eq!(second.field("set-cookie"), Some("id=2"));
}

#[test]
fn a_response_that_sets_a_cookie_does_not_hide_the_page_that_does_not() {
    let (proxy, _origin) = start(|request| {
        let page = reply(200).cache("max-age=60");
        if request.serial == 1 { page.with("Set-Cookie", "id=1") } else { page }
    });
    assert_eq!([proxy.get("/").text(), proxy.get("/").text(), proxy.get("/").text()], ["1", "2", "2"]);
}
