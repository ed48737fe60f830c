//! Vary: which stored response matches which request (RFC 9111 §4.1).

use sandarac_test_support::{Origin, Reply, Req, Request, get, head, post, reply};

use crate::{cache, sandarac, site};

fn with(fields: &[(&str, &str)]) -> Req {
    fields.iter().fold(get("/"), |request, (name, value)| request.with(name, value))
}

#[test]
fn each_variant_is_stored_for_itself() {
    let (proxy, origin) = cache(|_| reply(200).cache("max-age=60").with("Vary", "Foo"));
    for round in 0..3 {
        assert_eq!(proxy.exchange(&with(&[("Foo", "a")])).text(), "1", "round {round}");
        assert_eq!(proxy.exchange(&with(&[("Foo", "b"), ("Other", "x")])).text(), "2");
        assert_eq!(proxy.exchange(&with(&[])).text(), "3");
        assert_eq!(proxy.exchange(&with(&[("Foo", "")])).text(), "4");
    }
    assert_eq!(origin.count(), 4);
}

#[test]
fn several_fields_select_together() {
    let (proxy, origin) =
        cache(|_| reply(200).cache("max-age=60").with("Vary", "Foo").with("Vary", "Bar, Baz"));
    let requests: [&[(&str, &str)]; 4] = [
        &[("Foo", "1"), ("Bar", "2"), ("Baz", "3")],
        &[("Foo", "1"), ("Bar", "2"), ("Baz", "4")],
        &[("Foo", "1"), ("Bar", "2")],
        &[("Foo", "1"), ("Baz", "3")],
    ];
    for _ in 0..2 {
        for (number, fields) in requests.iter().enumerate() {
            assert_eq!(proxy.exchange(&with(fields)).text(), (number + 1).to_string());
        }
    }
    assert_eq!(
        proxy.exchange(&with(&[("Baz", "3"), ("Bar", "2"), ("Foo", "1")])).text(),
        "1",
        "order does not matter"
    );
    assert_eq!(origin.count(), 4);
}

#[test]
fn a_field_that_connection_names_selects_nothing() {
    // The origin does not see the field, so the response cannot depend on it (RFC 9110 §7.6.1).
    let (proxy, origin) = cache(|request| {
        reply(200)
            .cache("max-age=60")
            .with("Vary", "Accept-Language")
            .with("Content-Language", request.field("accept-language").unwrap_or("any"))
    });
    for connection in ["Accept-Language", "keep-alive, accept-language"] {
        let hiding = get("/").with("Connection", connection).with("Accept-Language", "de");
        assert_eq!(proxy.exchange(&hiding).field("content-language"), Some("any"));
    }
    let open = with(&[("Accept-Language", "de")]);
    assert_eq!(proxy.exchange(&open).field("content-language"), Some("de"));
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_hundred_variants_find_their_own() {
    let (proxy, origin) = cache(|_| reply(200).cache("max-age=60").with("Vary", "Foo"));
    let mut client = proxy.connect();
    for _ in 0..2 {
        for number in 1..=100 {
            let response = client.exchange(&with(&[("Foo", &number.to_string())]));
            assert_eq!(response.text(), number.to_string());
        }
    }
    assert_eq!(origin.count(), 100);
}

#[test]
fn more_variants_than_are_kept_are_still_told_apart() {
    let (proxy, _origin) = cache(|request| {
        reply(200)
            .cache("max-age=60")
            .with("Vary", "Foo")
            .with("X-For", request.field("foo").unwrap_or_default())
    });
    let mut client = proxy.connect();
    for number in 0..500 {
        let value = (number % 400).to_string();
        assert_eq!(client.exchange(&with(&[("Foo", &value)])).field("x-for"), Some(value.as_str()));
    }
}

#[test]
fn a_star_fits_no_request() {
    for value in ["*", "*, *", "Foo, *", ", *", "*, Foo"] {
        let (proxy, _origin) = cache(move |_| reply(200).cache("max-age=60").with("Vary", value));
        assert_eq!([proxy.get("/").text(), proxy.get("/").text()], ["1", "2"], "{value}");
    }
}

#[test]
fn values_that_mean_the_same_select_the_same() {
    let (proxy, origin) = cache(|_| reply(200).cache("max-age=60").with("Vary", "Foo, Accept-Language"));
    let same: [&[(&str, &str)]; 4] = [
        &[("Foo", "1, 2"), ("Accept-Language", "en")],
        &[("Foo", "1,2"), ("Accept-Language", "EN")],
        &[("Foo", "1 ,  2"), ("Accept-Language", " en ")],
        &[("Foo", "1"), ("Foo", "2"), ("Accept-Language", "En")],
    ];
    for fields in same {
        assert_eq!(proxy.exchange(&with(fields)).text(), "1", "{fields:?}");
    }
    assert_eq!(origin.count(), 1);
}

#[test]
fn the_latest_response_says_what_it_varies_on() {
    let (proxy, _origin) = cache(|request| match request.serial {
        1 => reply(200).cache("max-age=3600").with("Age", "3600").with("ETag", "\"a\"").with("Vary", "Foo"),
        _ => reply(200).cache("max-age=60").with("Vary", "Bar"),
    });
    proxy.exchange(&with(&[("Foo", "1"), ("Bar", "1")]));
    assert_eq!(proxy.exchange(&with(&[("Foo", "1"), ("Bar", "1")])).text(), "2");
    assert_eq!(proxy.exchange(&with(&[("Foo", "2"), ("Bar", "1")])).text(), "2");
    assert_eq!(proxy.exchange(&with(&[("Foo", "2"), ("Bar", "2")])).text(), "3");
}

fn codings_asked_for(request: &Request) -> Reply {
    let codings = request.field("accept-encoding").unwrap_or("none").to_owned();
    reply(200).cache("max-age=60").with("Vary", "Accept-Encoding").body(codings)
}

/// Regression: `gzip`, `gzip, deflate`, `gzip, deflate, br`, `identity` and no Accept-Encoding were five objects.
#[test]
fn requests_that_accept_the_same_codings_share_a_response() {
    let origin = Origin::new(codings_asked_for);
    let rules = "[cache]\nbypass_cookies = [\"session\"]";
    let proxy = sandarac().config(site(&origin.url(), "", rules)).start();
    let ask = |codings: Option<&str>| match codings {
        Some(codings) => get("/page").with("Accept-Encoding", codings),
        None => get("/page"),
    };
    for (codings, answer) in [
        (None, "identity"),
        (Some("identity"), "identity"),
        (Some("deflate"), "identity"),
        (Some("gzip;q=0"), "identity"),
        (Some("gzip"), "gzip"),
        (Some("gzip, deflate"), "gzip"),
        (Some("gzip, deflate, br"), "gzip, br"),
        (Some("br;q=1.0, gzip;q=0.8"), "gzip, br"),
        (Some("gzip, deflate, br, zstd"), "gzip, br, zstd"),
        (Some("gzip, *;q=0"), "gzip, identity;q=0"),
    ] {
        assert_eq!(proxy.exchange(&ask(codings)).expect(200).text(), answer, "{codings:?}");
    }
    assert_eq!(origin.count(), 5);
    // Requests that bypass the cache keep their own Accept-Encoding.
    let passed = ask(Some("deflate, gzip")).with("Cookie", "session=1");
    assert_eq!(proxy.exchange(&passed).expect(200).text(), "deflate, gzip");
    assert_eq!(proxy.exchange(&get("/page").with("Cookie", "session=1")).expect(200).text(), "none");
}

#[test]
fn where_a_rule_says_so_accept_encoding_selects_as_it_came() {
    let origin = Origin::new(codings_asked_for);
    let proxy = sandarac().config(site(&origin.url(), "", "[cache]\nraw_accept_encoding = true")).start();
    for codings in ["gzip, deflate", "gzip", "identity"] {
        let ask = get("/page").with("Accept-Encoding", codings);
        assert_eq!(proxy.exchange(&ask).expect(200).text(), codings);
    }
    assert_eq!(proxy.get("/page").text(), "none");
}

/// Regression: such a response was stored for all clients that accept none of the common codings.
#[test]
fn the_answer_to_a_post_in_a_rare_coding_is_not_stored_for_others() {
    let origin = Origin::new(|request| {
        let answer = reply(200).cache("max-age=60").with("Vary", "Accept-Encoding");
        match request.method.as_str() {
            "POST" => answer.with("Content-Location", "/form").with("Content-Encoding", "deflate").body("x"),
            _ => answer.body("page"),
        }
    });
    let proxy = sandarac().config(site(&origin.url(), "", "")).start();
    proxy.exchange(&post("/form", "a=1").with("Accept-Encoding", "deflate")).expect(200);
    assert_eq!(proxy.get("/form").expect(200).text(), "page");
}

/// Regression: HEAD was forwarded with the client's own codings, and the response to it invalidated the stored page.
#[test]
fn head_asks_for_the_codings_of_what_is_stored() {
    let origin = Origin::new(|request| {
        let first = request.field("accept-encoding").and_then(|codings| codings.split([',', ';']).next());
        let tag = format!("\"{}\"", first.unwrap_or("none"));
        reply(200).cache("max-age=60").with("Age", "100").with("Vary", "Accept-Encoding").with("ETag", &tag)
    });
    let proxy = sandarac().config(site(&origin.url(), "", "[cache]\nprofile = \"rfc\"")).start();
    proxy.exchange(&get("/page").with("Accept-Encoding", "gzip, br")).expect(200);
    proxy.exchange(&head("/page").with("Accept-Encoding", "br, gzip")).expect(200);
    assert_eq!(origin.last().field("accept-encoding"), Some("gzip, br"));
    proxy.exchange(&get("/page").with("Accept-Encoding", "gzip, br")).expect(200);
    assert_eq!(origin.last().field("if-none-match"), Some("\"gzip\""), "it is still there");
}
