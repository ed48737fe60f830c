//! Storing of responses, and how long they are fresh (RFC 9111 §3, §4.2).

use std::time::Instant;

use sandarac_test_support::{Reply, get, head, http_date_in, post, reply, request, within};

use crate::{cache, numbered, sandarac};
use sandarac_test_support::Origin;

/// Whether a second GET gets the response that `first` gave to the first one.
fn is_reused(first: impl Fn() -> Reply + Send + Sync + 'static) -> bool {
    let (proxy, _origin) = cache(move |_| first());
    proxy.get("/");
    proxy.get("/").text() == "1"
}

/// Regression: the first client got the field twice, and after a Range request two different lengths.
#[test]
fn a_field_without_which_a_response_is_not_right_is_not_for_one_client_alone() {
    for name in ["Content-Length", "content-type", "Date", "ETag", "Vary", "content-encoding"] {
        for directive in ["no-cache", "private"] {
            let origin = Origin::new(move |_| {
                reply(200)
                    .cache(&format!("max-age=60, {directive}=\"X-Own, {name}\""))
                    .with("Date", &http_date_in(0))
                    .with("Content-Type", "text/plain")
                    .with("ETag", "\"e\"")
                    .body("0123456789")
            });
            let proxy = sandarac().before(&origin).rfc().start();
            for request in [get("/"), get("/").with("Range", "bytes=0-4"), head("/"), get("/").http10()] {
                for field in ["content-length", "date", "content-type", "etag"] {
                    let response = proxy.exchange(&request);
                    assert_eq!(
                        response.fields.all(field).len(),
                        1,
                        "{directive}={name}: {field} in {response:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn explicit_freshness_is_believed() {
    assert!(is_reused(|| reply(200).cache("max-age=60")));
    assert!(is_reused(|| reply(200).cache("s-maxage=60")));
    assert!(is_reused(|| reply(200).cache("max-age=0, s-maxage=60")));
    assert!(is_reused(|| reply(200).cache("public, MAX-AGE=\"60\"")));
    assert!(is_reused(|| reply(200).with("Expires", &http_date_in(60))));
    assert!(is_reused(|| reply(200).cache("max-age=60").with("Expires", &http_date_in(-60))));
    assert!(is_reused(|| reply(200).cache("max-age=60, must-revalidate, proxy-revalidate, immutable")));
}

#[test]
fn what_is_not_fresh_is_fetched_again() {
    assert!(!is_reused(|| reply(200).cache("max-age=0")));
    assert!(!is_reused(|| reply(200).cache("max-age=60, s-maxage=0")));
    assert!(!is_reused(|| reply(200).cache("max-age=3600").with("Age", "3600")));
    assert!(!is_reused(|| reply(200).with("Expires", &http_date_in(-1))));
    assert!(!is_reused(|| reply(200).with("Expires", "0")));
    assert!(!is_reused(|| reply(200).cache("max-age=0").with("Expires", &http_date_in(60))));
    assert!(!is_reused(|| reply(200).cache("max-age=60").with("Date", &http_date_in(-120))));
}

#[test]
fn what_may_not_be_shared_is_not_stored() {
    for directives in ["no-store", "max-age=60, no-store", "private, max-age=60", "no-cache, max-age=60"] {
        assert!(!is_reused(move || reply(200).cache(directives)), "{directives}");
    }
}

#[test]
fn nothing_said_of_freshness_means_none_in_the_rfc_profile() {
    assert!(!is_reused(|| reply(200)));
}

#[test]
fn nothing_said_of_freshness_means_a_default_in_the_safe_profile() {
    let origin = Origin::new(numbered(|request| match request.path() {
        "/page" => reply(200).with("Content-Type", "text/html"),
        _ => reply(500),
    }));
    let proxy = sandarac().before(&origin).start();
    assert_eq!([proxy.get("/page").text(), proxy.get("/page").text()], ["1", "1"]);
    assert_eq!([proxy.get("/error").text(), proxy.get("/error").text()], ["2", "3"]);
}

#[test]
fn the_time_since_the_last_modification_suggests_a_lifetime() {
    assert!(is_reused(|| reply(200).with("Last-Modified", &http_date_in(-864_000))));
    assert!(is_reused(|| reply(404).with("Last-Modified", &http_date_in(-864_000))));
    assert!(!is_reused(|| reply(201).with("Last-Modified", &http_date_in(-864_000))));
    // A tenth of zero is zero. Date is fixed, because a new second may begin meanwhile.
    let now = http_date_in(0);
    assert!(!is_reused(move || reply(200).with("Date", &now).with("Last-Modified", &now)));
}

#[test]
fn any_final_status_is_stored_when_it_says_how_long() {
    for status in [200, 203, 301, 302, 307, 308, 404, 405, 410, 414, 451, 500, 503, 599] {
        assert!(is_reused(move || reply(status).cache("max-age=60")), "{status}");
    }
    let (proxy, origin) = cache(|_| reply(204).cache("max-age=60"));
    proxy.get("/").expect(204);
    proxy.get("/").expect(204);
    assert_eq!(origin.count(), 1);
}

#[test]
fn freshness_runs_out() {
    let (proxy, _origin) = cache(|_| reply(200).cache("max-age=3600").with("Age", "3598"));
    let stored = Instant::now();
    assert_eq!(proxy.get("/").text(), "1");
    let second = proxy.get("/").text();
    assert!(second == "1" || stored.elapsed().as_secs() >= 1, "{second} after {:?}", stored.elapsed());
    within("the response to grow stale", || (proxy.get("/").text() != "1").then_some(()));
}

#[test]
fn age_counts_from_what_the_origin_said() {
    let (proxy, _origin) = cache(|request| match request.path() {
        "/new" => reply(200).cache("max-age=3600"),
        "/aged" => reply(200).cache("max-age=3600").with("Age", "1000"),
        _ => reply(200).cache("max-age=3600").with("Date", &http_date_in(-500)),
    });
    for path in ["/new", "/aged", "/dated"] {
        proxy.get(path);
    }
    assert!((0..30).contains(&proxy.get("/new").age()));
    assert!((1000..1030).contains(&proxy.get("/aged").age()));
    assert!((499..530).contains(&proxy.get("/dated").age()));
    assert_eq!(proxy.get("/aged").fields.all("age").len(), 1);
}

#[test]
fn head_is_answered_from_a_stored_get() {
    let (proxy, origin) = cache(|_| reply(200).cache("max-age=60").with("X-Kind", "page"));
    proxy.get("/");
    let mut client = proxy.connect();
    let response = client.exchange(&head("/")).expect(200);
    assert!(response.is_hit());
    assert_eq!(response.field("content-length"), Some("1"));
    assert_eq!(response.field("x-kind"), Some("page"));
    assert_eq!(client.get("/").text(), "1");
    assert_eq!(origin.count(), 1);
}

#[test]
fn head_of_what_is_not_stored_leaves_a_whole_get_possible() {
    let (proxy, _origin) = cache(|_| reply(200).cache("max-age=60"));
    let mut client = proxy.connect();
    client.exchange(&head("/")).expect(200);
    assert_eq!(client.get("/").expect(200).body.len(), 1);
}

#[test]
fn only_get_and_head_are_answered_from_the_cache() {
    let (proxy, origin) = cache(|_| reply(200).cache("max-age=60"));
    proxy.get("/");
    for method in ["POST", "PUT", "OPTIONS", "DELETE", "PATCH"] {
        assert_ne!(proxy.exchange(&request(method, "/")).text(), "1");
    }
    assert_eq!(origin.count(), 6);
}

#[test]
fn a_get_with_a_body_is_passed_on() {
    let (proxy, origin) = cache(|_| reply(200).cache("max-age=60"));
    proxy.get("/");
    assert_eq!(proxy.exchange(&get("/").body("select")).text(), "2");
    assert_eq!(origin.last().text(), "select");
    assert_eq!(proxy.get("/").text(), "1");
}

#[test]
fn a_response_to_a_post_about_its_own_target_serves_later_gets() {
    let (proxy, origin) = cache(|_| reply(200).cache("max-age=60").with("Content-Location", "/form"));
    proxy.exchange(&post("/form", "x"));
    assert_eq!(proxy.get("/form").text(), "1");
    assert_eq!(proxy.exchange(&post("/form", "y")).text(), "2");
    assert_eq!(proxy.get("/form").text(), "2");
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_response_with_trailers_is_served_again_whole() {
    let (proxy, origin) =
        cache(|_| reply(200).cache("max-age=60").chunked().body("part ").trailer("Sum", "6"));
    let with_trailers = get("/").with("TE", "trailers").with("Connection", "TE");
    assert_eq!(proxy.exchange(&with_trailers).text(), "part 1");
    assert_eq!(proxy.exchange(&with_trailers).text(), "part 1");
    assert_eq!(origin.count(), 1);
}

#[test]
fn fields_that_no_cache_names_are_for_the_first_client_alone() {
    let (proxy, _origin) = cache(|_| {
        reply(200).cache("max-age=60, no-cache=\"X-Own, X-Private\"").with("X-Own", "1").with("X-All", "2")
    });
    let first = proxy.get("/");
    assert_eq!(first.field("x-own"), Some("1"));
    assert_eq!(first.field("x-all"), Some("2"));
    let second = proxy.get("/");
    assert_eq!(second.text(), "1");
    assert_eq!(second.field("x-own"), None);
    assert_eq!(second.field("x-all"), Some("2"));
}

#[test]
fn a_truncated_response_is_not_stored() {
    let (proxy, origin) = cache(|request| match request.serial {
        1 => reply(200).cache("max-age=60").length(100).cut(),
        _ => reply(200).cache("max-age=60"),
    });
    let _ = proxy.connect().send(get("/").to_bytes()).read_to_end();
    assert_eq!(proxy.get("/").expect(200).text(), origin.count().to_string());
    assert!(origin.count() >= 2);
}

#[test]
fn request_directives_are_obeyed_in_the_rfc_profile() {
    let (proxy, origin) = cache(|_| reply(200).cache("max-age=3600").with("Age", "1800"));
    let ask = |directives: &str| proxy.exchange(&get("/").with("Cache-Control", directives));
    ask("only-if-cached").expect(504);
    assert_eq!(origin.count(), 0);
    assert_eq!(proxy.get("/").text(), "1");
    assert_eq!(ask("only-if-cached").text(), "1");
    assert_eq!(ask("max-age=2000").text(), "1");
    assert_eq!(ask("min-fresh=1000").text(), "1");
    assert_eq!(ask("max-stale").text(), "1");
    assert_eq!(ask("max-age=1000").text(), "2");
    assert_eq!(ask("min-fresh=2000").text(), "3");
    assert_eq!(ask("no-cache").text(), "4");
    assert_eq!(proxy.exchange(&get("/").with("Pragma", "no-cache")).text(), "5");
    assert_eq!(proxy.get("/").text(), "5");
    proxy.exchange(&get("/other").with("Cache-Control", "no-store"));
    assert_eq!(proxy.get("/other").text(), "7");
}

#[test]
fn max_stale_accepts_what_has_gone_stale() {
    let (proxy, _origin) = cache(|_| reply(200).cache("max-age=3600").with("Age", "3700"));
    let ask = |directives: &str| proxy.exchange(&get("/").with("Cache-Control", directives)).text();
    assert_eq!(proxy.get("/").text(), "1");
    assert_eq!(ask("max-stale"), "1");
    assert_eq!(ask("max-stale=1000"), "1");
    assert_eq!(ask("max-stale=10"), "2");
}

#[test]
fn request_directives_put_no_load_on_the_origin_in_the_safe_profile() {
    let origin = Origin::new(numbered(|_| reply(200).cache("max-age=60")));
    let proxy = sandarac().before(&origin).start();
    proxy.get("/");
    for directives in ["no-cache", "max-age=0", "no-store"] {
        assert_eq!(proxy.exchange(&get("/").with("Cache-Control", directives)).text(), "1", "{directives}");
    }
}
