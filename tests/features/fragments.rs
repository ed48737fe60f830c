//! Pages that are assembled from fragments (ESI 1.0).

use sandarac_coding::Decoder;
use sandarac_message::codings::Coding;
use sandarac_test_support::http2::Http2;
use sandarac_test_support::{Gate, Origin, Reply, Request, Response, Sandarac, get, head, post, reply};

use crate::{labelled, sandarac, site, stat};

/// A stored page.
pub(crate) fn page(body: impl AsRef<[u8]>) -> Reply {
    reply(200)
        .cache("max-age=60")
        .with("Content-Type", "text/html")
        .with("ETag", "\"v1\"")
        .with("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")
        .body(body)
}

/// A response that is not stored.
pub(crate) fn own(body: impl AsRef<[u8]>) -> Reply {
    reply(200).cache("private").with("Content-Type", "text/html").body(body)
}

pub(crate) fn include(url: &str) -> String {
    format!("<esi:include src=\"{url}\"/>")
}

pub(crate) fn before_with(
    keys: &str,
    rule: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> (Sandarac, Origin) {
    let origin = Origin::new(rule);
    let text = site(&origin.url(), keys, "").replace("\"127.0.0.1:0\"", "\"127.0.0.1:0\"\nhttp2 = true");
    (sandarac().config(text).start(), origin)
}

pub(crate) fn before(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Sandarac, Origin) {
    before_with("fragments = true", rule)
}

/// The serial number of the request in brackets, behind the path.
fn numbered(request: &Request) -> String {
    format!("[{} {}]", request.path(), request.serial)
}

#[test]
fn a_stored_page_gets_fragments_that_are_cached_by_their_own_rules() {
    let (proxy, origin) = before(|request| match request.path() {
        "/" => page(format!("<p>{}|{}</p>", include("/shared"), include("/own"))),
        "/shared" => page(numbered(request)),
        _ => own(numbered(request)),
    });
    let serial_of = |path: &str, nth: usize| {
        let requests = origin.requests().into_iter().filter(|request| request.path() == path);
        requests.map(|request| request.serial).nth(nth).expect("a request")
    };
    for (round, hit) in [(0, false), (1, true), (2, true)] {
        let response = proxy.get("/").expect(200);
        let (shared, own) = (serial_of("/shared", 0), serial_of("/own", round));
        assert_eq!(response.text(), format!("<p>[/shared {shared}]|[/own {own}]</p>"));
        assert_eq!(response.is_hit(), hit);
        assert_eq!(response.field("cache-control"), Some("max-age=60"));
        for field in ["etag", "last-modified", "content-length", "accept-ranges"] {
            assert_eq!(response.field(field), None, "{field}");
        }
    }
    assert_eq!((origin.count_of("/"), origin.count_of("/shared"), origin.count_of("/own")), (1, 1, 3));
    assert_eq!(stat(&proxy, "fragments"), 6);
    assert_eq!(stat(&proxy, "requests"), 9);
}

#[test]
fn a_page_that_is_there_whole_is_sent_with_its_length() {
    let (proxy, origin) = before(|request| match request.path() {
        "/" => page(include("/x").repeat(10)),
        _ => page("<x>"),
    });
    proxy.get("/").expect(200);
    for _ in 0..2 {
        let response = proxy.get("/").expect(200);
        assert_eq!((response.text(), response.field("content-length")), ("<x>".repeat(10), Some("30")));
        assert_eq!(response.field("etag"), None);
    }
    assert_eq!((origin.count_of("/"), origin.count_of("/x")), (1, 1));
}

#[test]
fn clients_of_http2_get_the_same() {
    let (proxy, _origin) = before(|request| match request.path() {
        "/" => page(format!("a{}b{}c", include("/x"), include("/y"))),
        _ => own(request.path()),
    });
    let mut client = Http2::to(proxy.address());
    for _ in 0..3 {
        let stream = client.get("/", &[]);
        let response = client.response(stream).expect(200);
        assert_eq!(response.text(), "a/xb/yc");
        assert_eq!(response.field("etag"), None);
        assert_eq!(response.field("content-length"), None);
    }
}

#[test]
fn backends_are_told_and_asked_for_plain_bodies() {
    for keys in ["fragments = true", "fragments = true\ncache = \"pass\""] {
        let (proxy, origin) = before_with(keys, |_| page("x"));
        let request =
            get("/").with("Accept-Encoding", "gzip, br").with("Surrogate-Capability", "x=\"ESI/1.0\"");
        proxy.exchange(&request).expect(200);
        let last = origin.last();
        assert_eq!(last.field("surrogate-capability"), Some("sandarac=\"Surrogate/1.0 ESI/1.0\""), "{keys}");
        assert_eq!(last.field("accept-encoding"), Some("identity"), "{keys}");
    }
}

#[test]
fn only_a_route_that_says_so_has_pages() {
    let tagged = "<esi:include src=\"/x\"/>";
    let (proxy, origin) = before_with("", move |_| page(tagged));
    for _ in 0..2 {
        let response = proxy.get("/").expect(200);
        assert_eq!((response.text().as_str(), response.field("etag")), (tagged, Some("\"v1\"")));
    }
    assert_eq!(origin.last().field("surrogate-capability"), Some("sandarac=\"Surrogate/1.0\""));
    let announced = |request: &Request| match request.path() {
        "/announced" => page("<esi:remove>x</esi:remove>y").with("Surrogate-Control", "content=\"ESI/1.0\""),
        "/css" => reply(200)
            .cache("max-age=60")
            .with("Content-Type", "text/css")
            .body("<esi:remove>x</esi:remove>y"),
        _ => page("<esi:remove>x</esi:remove>y"),
    };
    let tagged = "<esi:remove>x</esi:remove>y";
    let (proxy, _origin) = before_with("fragments = \"announced\"", announced);
    for _ in 0..2 {
        let response = proxy.get("/announced").expect(200);
        assert_eq!((response.text().as_str(), response.field("surrogate-control")), ("y", None));
        assert_eq!(proxy.get("/").expect(200).text(), tagged);
    }
    let (proxy, _origin) = before(announced);
    for _ in 0..2 {
        assert_eq!(proxy.get("/announced").expect(200).text(), "y");
        assert_eq!(proxy.get("/").expect(200).text(), "y");
        assert_eq!(proxy.get("/css").expect(200).text(), tagged);
    }
}

#[test]
fn a_page_without_tags_stays_as_it_is() {
    let (proxy, _origin) = before(|_| page("<p>a < b</p>"));
    proxy.get("/").expect(200);
    // From now on it is known.
    let response = proxy.get("/").expect(200);
    assert_eq!(response.text(), "<p>a < b</p>");
    assert_eq!(response.field("etag"), Some("\"v1\""));
    assert_eq!(response.field("content-length"), Some("12"));
    assert!(response.is_hit());
    proxy.exchange(&get("/").with("If-None-Match", "\"v1\"")).expect(304);
}

#[test]
fn conditions_and_ranges_are_ignored() {
    let (proxy, origin) = before(|request| match request.path() {
        "/" => page(format!("ab{}cd", include("/x"))),
        "/own" => own(format!("ab{}cd", include("/x"))),
        _ => page("<x>"),
    });
    for path in ["/", "/", "/own"] {
        for (name, value) in [
            ("Range", "bytes=1-3"),
            ("If-None-Match", "\"v1\""),
            ("If-Modified-Since", "Sun, 06 Nov 2094 08:49:37 GMT"),
            ("If-Match", "\"v2\""),
        ] {
            let response = proxy.exchange(&get(path).with(name, value)).expect(200);
            assert_eq!(response.text(), "ab<x>cd", "{path} {name}");
        }
    }
    assert!(origin.requests().iter().all(|request| request.field("range").is_none()));
    let of_fragments = origin.requests().into_iter().filter(|request| request.path() == "/x");
    assert!(of_fragments.into_iter().all(|request| request.field("if-none-match").is_none()));
}

#[test]
fn a_copy_from_before_is_not_confirmed_by_a_backend() {
    let (proxy, origin) = before_with("fragments = true\ncache = \"pass\"", |request| {
        let names = ["if-none-match", "if-modified-since", "if-match", "if-unmodified-since"];
        match names.iter().any(|name| request.field(name).is_some()) {
            true if request.method != "POST" => reply(304).with("ETag", "\"v1\""),
            _ => page("a<esi:remove>b</esi:remove>c"),
        }
    });
    for (name, value) in [
        ("If-None-Match", "\"v1\""),
        ("If-Modified-Since", "Sun, 06 Nov 2094 08:49:37 GMT"),
        ("If-Match", "\"v1\""),
        ("If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ] {
        assert_eq!(proxy.exchange(&get("/").with(name, value)).expect(200).text(), "ac", "{name}");
        proxy.exchange(&head("/").with(name, value)).expect(200);
    }
    // A change has its conditions.
    let change = post("/", "x").with("If-Match", "\"v1\"");
    assert_eq!(proxy.exchange(&change).expect(200).text(), "ac");
    assert_eq!(origin.last().field("if-match"), Some("\"v1\""));
}

#[test]
fn head_agrees_with_get_and_asks_for_no_fragment() {
    let (proxy, origin) = before(|request| match request.path() {
        "/" => page(include("/x")),
        "/own" => own(include("/x")),
        _ => page("<x>"),
    });
    for path in ["/", "/", "/own"] {
        let response = proxy.exchange(&head(path)).expect(200);
        assert_eq!(response.field("content-type"), Some("text/html"));
        for field in ["etag", "last-modified", "content-length"] {
            assert_eq!(response.field(field), None, "{path} {field}");
        }
    }
    assert_eq!(origin.count_of("/x"), 0);
}

#[test]
fn fragments_within_fragments_are_bounded_in_depth() {
    let (proxy, origin) = before(|request| page(format!("({})", include(request.path()))));
    let mut client = proxy.connect();
    client.send(get("/loop").to_bytes());
    client.response_head().expect(200);
    // It breaks off: there is no last chunk.
    let body = String::from_utf8(client.read_to_end()).expect("text");
    assert!(body.matches('(').count() == 5 && !body.ends_with("0\r\n\r\n"), "{body}");
    assert_eq!(origin.count(), 1);
    assert_eq!(labelled(&proxy, "fragments_failed", "fragments-too-deep"), 1);

    let (proxy, _origin) =
        before(|request| page(format!("(<esi:include src=\"{}\" onerror=\"continue\"/>)", request.path())));
    for _ in 0..2 {
        assert_eq!(proxy.get("/loop").expect(200).text(), "(((((())))))");
    }
}

#[test]
fn a_page_has_so_many_fragments_and_no_more() {
    let (proxy, origin) = before(|request| match request.path() {
        "/x" => page("x"),
        _ => page("<esi:include src=\"/x\" onerror=\"continue\"/>".repeat(1000)),
    });
    for _ in 0..2 {
        assert_eq!(proxy.get("/").expect(200).text(), "x".repeat(256));
    }
    assert_eq!(origin.count_of("/x"), 1);
    assert_eq!(labelled(&proxy, "fragments_failed", "fragments-too-many"), 2 * (1000 - 256));
    // Fragments of fragments are among them: 10 pages of 100.
    let (proxy, origin) = before(|request| match request.path() {
        "/x" => own("x"),
        "/ten" => page("<esi:include src=\"/hundred\" onerror=\"continue\"/>".repeat(10)),
        _ => page("<esi:include src=\"/x\" onerror=\"continue\"/>".repeat(100)),
    });
    proxy.get("/ten").expect(200);
    assert!(origin.count_of("/x") < 256, "{}", origin.count_of("/x"));
}

#[test]
fn a_fragment_that_fails_is_replaced_or_left_out() {
    let (proxy, _origin) = before(|request| match request.path() {
        "/" => page(
            "a<esi:include src=\"/404\" alt=\"/x\"/>\
             b<esi:include src=\"/500\" onerror=\"continue\"/>\
             c<esi:include src=\"/404\" alt=\"/500\" onerror=\"continue\"/>\
             d<esi:include src=\"/gone\" alt=\"/x\"/>\
             e<esi:include src=\"/moved\" alt=\"/x\"/>f",
        ),
        "/404" => reply(404).cache("max-age=60").body("not here"),
        "/500" => reply(500).body("oh no"),
        "/moved" => reply(302).with("Location", "/x"),
        "/gone" => Reply::none(),
        _ => page("<x>"),
    });
    for _ in 0..3 {
        assert_eq!(proxy.get("/").expect(200).text(), "a<x>bcd<x>e<x>f");
    }
    assert!(labelled(&proxy, "fragments_failed", "fragment-status") >= 15);
}

#[test]
fn a_page_breaks_off_where_a_fragment_fails_that_it_needs() {
    let gate = Gate::new();
    let held = gate.clone();
    let (proxy, _origin) = before(move |request| match request.path() {
        "/late" => page(format!("begun{}end", include("/held"))),
        "/soon" => page(format!("begun{}end", include("/404"))),
        "/404" => reply(404).cache("max-age=60").body("not here"),
        _ => reply(500).hold(&held),
    });
    let mut client = proxy.connect();
    client.send(get("/late").to_bytes());
    client.response_head().expect(200);
    client.expect("5\r\nbegun\r\n");
    gate.open();
    // Without a last chunk.
    client.expect_end();
    // A failure that is known before the page begins becomes its status.
    proxy.get("/404").expect(404);
    for _ in 0..2 {
        let response = proxy.get("/soon").expect(502);
        assert_eq!(
            response.field("proxy-status"),
            Some(
                "sandarac; error=http_response_incomplete; details=\"a fragment was answered with an error\""
            )
        );
    }
}

#[test]
fn only_pages_of_this_site_are_fragments() {
    let urls = [
        ("http://elsewhere.example/x", "fragment-elsewhere"),
        ("//elsewhere.example/x", "fragment-elsewhere"),
        ("https://elsewhere.example/x", "fragment-elsewhere"),
        ("file:///etc/passwd", "fragment-elsewhere"),
        ("gopher://127.0.0.1/", "fragment-elsewhere"),
        ("http://www.example:81/x", "fragment-elsewhere"),
        ("http://www.example@evil.example/x", "fragment-elsewhere"),
        ("/x y", "fragment-url"),
        ("/x\r\nHost: y", "fragment-url"),
        ("/\u{e9}", "fragment-url"),
    ];
    let (proxy, origin) = before(move |request| {
        let number: usize =
            request.target.strip_prefix("/?").and_then(|number| number.parse().ok()).unwrap_or(0);
        page(format!("a<esi:include src=\"{}\" onerror=\"continue\"/>b", urls[number].0))
    });
    for (number, (url, reason)) in urls.into_iter().enumerate() {
        let before = labelled(&proxy, "fragments_failed", reason);
        assert_eq!(proxy.get(&format!("/?{number}")).expect(200).text(), "ab", "{url}");
        assert_eq!(labelled(&proxy, "fragments_failed", reason), before + 1, "{url}");
    }
    assert_eq!(origin.count(), urls.len());
}

#[test]
fn urls_are_resolved_against_the_page() {
    let (proxy, _origin) = before(|request| match request.target.as_str() {
        "/a/b" => page(
            ["c", "../d", "?e", "/f#g", "http://www.example/h", "https://www.example/i", "//www.example/j"]
                .map(include)
                .concat(),
        ),
        _ => own(format!("[{}]", request.target)),
    });
    assert_eq!(proxy.get("/a/b").expect(200).text(), "[/a/c][/d][/a/b?e][/f][/h][/i][/j]");
}

#[test]
fn a_fragment_is_requested_as_its_page_was() {
    let (proxy, origin) = before(|request| match request.path() {
        "/" => own(include("/x?y=1&amp;z=2")),
        _ => own("<x>").with("Set-Cookie", "stolen=1").with("X-Secret", "1"),
    });
    let request = post("/", "a=1")
        .with("Cookie", "id=7")
        .with("Authorization", "Basic eDp5")
        .with("Accept-Language", "de")
        .with("X-Forwarded-For", "203.0.113.9")
        .with("Accept-Encoding", "gzip")
        .with("Content-Type", "application/x-www-form-urlencoded");
    let response = proxy.exchange(&request).expect(200);
    assert_eq!(response.text(), "<x>");
    assert_eq!((response.field("set-cookie"), response.field("x-secret")), (None, None));
    let fragment = origin.last();
    assert_eq!((fragment.method.as_str(), fragment.target.as_str()), ("GET", "/x?y=1&z=2"));
    for (name, value) in [
        ("host", Some("www.example")),
        ("cookie", Some("id=7")),
        ("authorization", Some("Basic eDp5")),
        ("accept-language", Some("de")),
        // The client is not a trusted proxy.
        ("x-forwarded-for", Some("127.0.0.1")),
        ("accept-encoding", Some("identity")),
        ("content-type", None),
        ("content-length", None),
    ] {
        assert_eq!(fragment.field(name), value, "{name}");
    }
}

#[test]
fn nothing_goes_from_one_visitor_to_another() {
    let keys =
        "match = \"=/\"\nfragments = true\ncache = { ignore_cookies = [\"*\"] }\n\n[[route]]\npool = \"app\"";
    let (proxy, origin) = before_with(keys, |request| match request.path() {
        "/" => page(format!("hello {}", include("/name"))),
        _ => own(request.field("cookie").unwrap_or("nobody")),
    });
    for visitor in ["id=ann", "id=bob", "id=ann"] {
        let response = proxy.exchange(&get("/").with("Cookie", visitor)).expect(200);
        assert_eq!(response.text(), format!("hello {visitor}"));
    }
    assert_eq!(proxy.get("/").expect(200).text(), "hello nobody");
    assert_eq!((origin.count_of("/"), origin.count_of("/name")), (1, 4));
    assert_eq!(origin.requests()[0].field("cookie"), None);
}

#[test]
fn visitors_of_one_page_at_once_get_their_own_corners() {
    let gate = Gate::new();
    let held = gate.clone();
    let keys =
        "match = \"=/\"\nfragments = true\ncache = { ignore_cookies = [\"*\"] }\n\n[[route]]\npool = \"app\"";
    let (proxy, origin) = before_with(keys, move |request| match request.path() {
        "/" => page(format!("{}hello {}", "x".repeat(1000), include("/name"))).hold(&held),
        _ => own(request.field("cookie").unwrap_or("nobody")),
    });
    let mut clients: Vec<_> = (0..20).map(|_| proxy.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(get("/").with("Cookie", &format!("id={number}")).to_bytes());
    }
    proxy.counts("coalesced", 19);
    gate.open();
    for (number, client) in clients.iter_mut().enumerate() {
        let text = client.response().expect(200).text();
        assert!(text.ends_with(&format!("xhello id={number}")), "{number}: {}", &text[990..]);
    }
    assert_eq!(origin.count_of("/"), 1);
}

#[test]
fn a_trusted_proxy_is_believed_for_fragments_as_for_pages() {
    let origin = Origin::new(|request| match request.path() {
        "/" => own(include("/x")),
        _ => own("<x>"),
    });
    let text = site(&origin.url(), "fragments = true", "")
        .replace("\"127.0.0.1:0\"", "\"127.0.0.1:0\"\ntrusted_proxies = [\"127.0.0.1\"]");
    let proxy = sandarac().config(text).start();
    let request = get("/").with("X-Forwarded-For", "203.0.113.9").with("X-Forwarded-Proto", "https");
    assert_eq!(proxy.exchange(&request).expect(200).text(), "<x>");
    for request in origin.requests() {
        assert_eq!(request.field("x-forwarded-for"), Some("203.0.113.9, 127.0.0.1"), "{}", request.path());
        assert_eq!(request.field("x-forwarded-proto"), Some("https"), "{}", request.path());
    }
    assert_eq!(origin.count(), 2);
}

#[test]
fn variables_have_values_where_the_key_has_them() {
    let text = "<esi:vars>$(QUERY_STRING{q})|$(QUERY_STRING{utm_x})|$(HTTP_COOKIE{lang})|$(HTTP_COOKIE{id})</esi:vars>";
    let body = format!("{text}{}", include("/x/$(HTTP_COOKIE{lang})?q=$(QUERY_STRING{q})"));
    let rule = move |request: &Request| match request.path() {
        "/" => page(&body),
        _ => own(format!("[{}]", request.target)),
    };
    let cache = "{ key_cookies = [\"lang\"], ignore_cookies = [\"id\"], ignore_query = [\"utm_*\"] }";
    let keys = &format!("fragments = true\ncache = {cache}");
    let (proxy, origin) = before_with(keys, rule);
    let hostile = "%3Cb%3E'\"<esi:include$(QUERY_STRING{q})";
    let request = |q: &str| get(&format!("/?q={q}&utm_x=1")).with("Cookie", "lang=d&e; id=7");
    for _ in 0..2 {
        let response = proxy.exchange(&request("1")).expect(200);
        assert_eq!(response.text(), "1||d&amp;e|[/x/d%26e?q=1]");
        let response = proxy.exchange(&request(hostile)).expect(200);
        assert!(
            response.text().starts_with("%3Cb%3E&#39;&quot;&lt;esi:include$(QUERY_STRING{q})||d&amp;e|[/x/"),
            "{}",
            response.text()
        );
    }
    assert_eq!(origin.count_of("/?q=1"), 1);
}

#[test]
fn no_value_leads_to_another_path() {
    let url = "/users/$(QUERY_STRING{id})/$(QUERY_STRING{tab})?q=$(QUERY_STRING{id})";
    let body = format!("<esi:include src=\"{url}\" alt=\"/alt\"/>");
    let (proxy, origin) = before(move |request| match request.path() {
        "/" => page(&body),
        _ => own(format!("[{}]", request.target)),
    });
    for id in ["..", ".", "", "%2e%2e", "%2E", ".%2e", "a%2fb", "a%5Cb", "a/b"] {
        let target = format!("/?id={id}&tab=admin");
        assert_eq!(proxy.get(&target).expect(200).text(), "[/alt]", "{id}");
    }
    let response = proxy.get("/?id=7%20.&tab=..x").expect(200);
    assert_eq!(response.text(), "[/users/7%20./..x?q=7%20.]");
    assert_eq!(labelled(&proxy, "fragments_failed", "fragment-url"), 9);
    assert!(origin.requests().iter().all(|request| !request.target.contains("admin?")));
}

#[test]
fn pages_that_are_not_stored_are_assembled_as_they_stream() {
    for keys in ["fragments = true\ncache = \"pass\"", "fragments = true"] {
        let gates: Vec<Gate> = (0..3).map(|_| Gate::new()).collect();
        let held = gates.clone();
        let (proxy, _origin) = before_with(keys, move |request| match request.path() {
            "/" => reply(200)
                .cache("max-age=60")
                .with("Content-Type", "text/html")
                .chunked()
                .body("one<esi:inc")
                .pause(&held[0])
                .body("lude src=\"/x\"/>two")
                .pause(&held[1])
                .body("three"),
            _ => own("<x>").hold(&held[2]),
        });
        let mut client = proxy.connect();
        client.send(get("/").to_bytes());
        client.response_head().expect(200);
        client.expect("3\r\none\r\n");
        gates[0].open();
        gates[2].open();
        client.read_through("two\r\n");
        gates[1].open();
        client.expect("5\r\nthree\r\n0\r\n\r\n");
    }
}

/// The body without its coding.
#[track_caller]
fn plain(response: &Response) -> String {
    let coding = response.field("content-encoding").expect("a coding");
    let mut decoder = Decoder::new(Coding::of(coding.as_bytes()).expect("a known coding"));
    let mut out = Vec::new();
    decoder.push(&response.body, &mut out).expect("the body is in its coding");
    decoder.finish().expect("the body is whole");
    String::from_utf8(out).expect("text")
}

#[test]
fn an_assembled_page_is_compressed_as_a_whole() {
    let text = "<p>text</p>".repeat(500);
    let body = format!("{text}{}{text}", include("/x"));
    let expected = format!("{text}<x>{text}");
    let (proxy, origin) =
        before_with("fragments = true\ncompress = true", move |request| match request.path() {
            "/" => page(&body),
            "/own" => reply(200).cache("no-store").with("Content-Type", "text/html").body(&body),
            _ => page("<x>"),
        });
    for path in ["/", "/", "/own"] {
        let response = proxy.exchange(&get(path).with("Accept-Encoding", "gzip, br")).expect(200);
        assert_eq!(response.field("content-encoding"), Some("br"), "{path}");
        assert_eq!(response.fields.list("vary"), "Accept-Encoding", "{path}");
        assert_eq!(response.field("etag"), None);
        assert!(plain(&response) == expected, "{path}");
        let response = proxy.get(path).expect(200);
        assert_eq!(response.fields.list("vary"), "Accept-Encoding", "{path}");
        assert!(response.text() == expected, "{path}");
    }
    assert_eq!(origin.count_of("/"), 1);
    // The fragment was stored without a coding.
    assert_eq!(origin.count_of("/x"), 1);
}

#[test]
fn a_page_in_a_coding_is_sent_as_it_came() {
    let (proxy, _origin) = before(|request| match request.path() {
        "/page" => page(include("/coded")),
        _ => page("coded").with("Content-Encoding", "gzip"),
    });
    for round in 1..=2 {
        let response = proxy.get("/coded").expect(200);
        assert_eq!(response.text(), "coded");
        assert_eq!(response.field("etag"), Some("\"v1\""));
        assert_eq!(response.cache_parameter("detail").as_deref(), Some("page-coded"));
        proxy.get("/page").expect(502);
        assert_eq!(labelled(&proxy, "failed", "fragment-coded"), round);
    }
}
