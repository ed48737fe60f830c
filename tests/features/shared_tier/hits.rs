//! Hits of the shared tier: one node stores, the other serves.

use sandarac_test_support::{Reply, Response, get, head, reply};

use super::{Fleet, Settings, entries, has_entries, is_local, is_shared, node};
use crate::numbered;

/// `length` bytes of every value, without a pattern that a compressor finds.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn html(rows: usize) -> String {
    let rows: String = (0..rows).map(|row| format!("<tr><td>{row}</td><td>a table</td></tr>\n")).collect();
    format!("<html><table>\n{rows}</table></html>\n")
}

fn fresh() -> Reply {
    reply(200).cache("max-age=600")
}

#[test]
fn a_page_fetched_by_one_node_is_a_hit_of_the_other() {
    let fleet = Fleet::new(numbered(|_| fresh().with("Age", "7").with("X-Field", "kept")));
    assert!(!fleet.first.get("/page").expect(200).is_hit());
    has_entries(&fleet.server, 1);
    let shared = fleet.second.get("/page").expect(200);
    assert!(is_shared(&shared), "{shared:?}");
    assert_eq!((shared.text(), shared.field("x-field")), ("1".to_owned(), Some("kept")));
    let local = fleet.second.get("/page").expect(200);
    assert!(is_local(&local), "{local:?}");
    assert_eq!(local.text(), "1");
    assert!(is_local(&fleet.first.get("/page")));
    assert_eq!(fleet.origin.count(), 1);
}

#[test]
fn age_and_lifetime_count_on_in_the_tier() {
    let fleet = Fleet::new(numbered(|_| fresh().with("Age", "100")));
    assert_eq!(fleet.first.get("/page").age(), 100);
    has_entries(&fleet.server, 1);
    let shared = fleet.second.get("/page");
    assert!((100..130).contains(&shared.age()), "{shared:?}");
    let ttl = shared.cache_parameter("ttl").and_then(|ttl| ttl.parse::<u64>().ok());
    assert!(ttl.is_some_and(|ttl| (470..=500).contains(&ttl)), "{shared:?}");
    assert_eq!(shared.fields.all("age").len(), 1);
}

#[test]
fn a_node_that_starts_later_has_what_others_stored() {
    let fleet = Fleet::new(numbered(|_| fresh()));
    fleet.first.get("/page").expect(200);
    has_entries(&fleet.server, 1);
    drop((fleet.first, fleet.second));
    let third = node(&fleet.origin, &[&fleet.server], &Settings::default());
    assert!(is_shared(&third.get("/page").expect(200)));
    assert_eq!(fleet.origin.count(), 1);
}

#[test]
fn each_variant_is_shared_for_itself() {
    let fleet = Fleet::new(numbered(|_| fresh().with("Vary", "Sec-CH-Kind")));
    let of = |kind: &str| get("/page").with("Sec-CH-Kind", kind);
    assert_eq!(fleet.first.exchange(&of("a")).text(), "1");
    assert_eq!(fleet.first.exchange(&of("b")).text(), "2");
    // An index and two variants.
    has_entries(&fleet.server, 3);
    for (kind, text) in [("b", "2"), ("a", "1")] {
        let response = fleet.second.exchange(&of(kind)).expect(200);
        assert!(is_shared(&response), "{response:?}");
        assert_eq!(response.text(), text);
        assert_eq!(fleet.second.exchange(&of(kind)).text(), text);
    }
    assert_eq!(fleet.second.exchange(&of("c")).text(), "3");
    has_entries(&fleet.server, 4);
    assert_eq!(fleet.first.exchange(&of("c")).text(), "3");
}

#[test]
fn clients_that_accept_other_codings_get_other_variants() {
    let fleet = Fleet::new(|request| {
        let coding = request.field("accept-encoding").unwrap_or_default().to_owned();
        let answer = fresh().with("Vary", "Accept-Encoding");
        if coding.contains("gzip") {
            answer.with("Content-Encoding", "gzip").body(noise(500))
        } else {
            answer.body("plain")
        }
    });
    let compressed = get("/page").with("Accept-Encoding", "gzip, deflate, br");
    fleet.first.exchange(&compressed).expect(200);
    fleet.first.get("/page").expect(200);
    has_entries(&fleet.server, 3);
    let response = fleet.second.exchange(&compressed).expect(200);
    assert_eq!(response.field("content-encoding"), Some("gzip"));
    assert_eq!(response.body, noise(500));
    assert_eq!(fleet.second.get("/page").expect(200).text(), "plain");
    assert_eq!(fleet.origin.count(), 2);
}

#[test]
fn bodies_of_every_size_arrive_as_they_were() {
    // The last two are larger than an item of memcached may be.
    const SIZES: [usize; 6] = [0, 1, 4096, 300_000, 1_048_576, 3_000_001];
    let fleet = Fleet::new(|request| {
        let size = request.path()[1..].parse().expect("a size");
        fresh().with("Content-Type", "application/octet-stream").body(noise(size))
    });
    for (stored, size) in SIZES.iter().enumerate() {
        let target = format!("/{size}");
        assert_eq!(fleet.first.get(&target).expect(200).body, noise(*size));
        has_entries(&fleet.server, stored + 1);
        let shared = fleet.second.get(&target).expect(200);
        assert!(is_shared(&shared), "{size}: {}", shared.cache_status());
        assert!(shared.body == noise(*size), "{size}");
        assert_eq!(shared.field("content-length"), Some(size.to_string().as_str()));
    }
    assert_eq!(fleet.origin.count(), SIZES.len());
}

#[test]
fn a_response_in_chunks_is_shared() {
    let fleet = Fleet::new(|_| fresh().chunked().body("one, ").body("two"));
    assert_eq!(fleet.first.get("/page").expect(200).text(), "one, two");
    has_entries(&fleet.server, 1);
    let shared = fleet.second.get("/page").expect(200);
    assert!(is_shared(&shared), "{shared:?}");
    assert_eq!(shared.text(), "one, two");
}

#[test]
fn text_is_compressed_in_the_tier_and_arrives_as_it_was() {
    for rows in [2000, 100_000] {
        let page = html(rows);
        let origin_page = page.clone();
        let fleet = Fleet::new(move |_| fresh().with("Content-Type", "text/html").body(&origin_page));
        fleet.first.get("/page").expect(200);
        has_entries(&fleet.server, 1);
        let stored: usize = fleet.server.items("sandarac:").iter().map(|item| item.size).sum();
        assert!(stored < page.len() / 4, "{stored} of {}", page.len());
        let shared = fleet.second.get("/page").expect(200);
        assert!(is_shared(&shared), "{}", shared.cache_status());
        assert!(shared.text() == page);
        assert_eq!(shared.field("content-encoding"), None);
    }
}

#[test]
fn what_the_origin_compressed_arrives_byte_by_byte() {
    let fleet = Fleet::new(|_| {
        let answer = fresh().with("Content-Type", "text/html").with("Content-Encoding", "gzip");
        answer.with("ETag", "\"compressed\"").body(noise(5000))
    });
    let request = get("/page").with("Accept-Encoding", "gzip");
    fleet.first.exchange(&request).expect(200);
    has_entries(&fleet.server, 1);
    let shared = fleet.second.exchange(&request).expect(200);
    assert!(is_shared(&shared), "{}", shared.cache_status());
    assert!(shared.body == noise(5000));
    assert_eq!(shared.field("content-encoding"), Some("gzip"));
    assert_eq!(shared.field("etag"), Some("\"compressed\""));
}

#[test]
fn redirects_and_errors_with_a_lifetime_are_shared() {
    let fleet = Fleet::new(|request| match request.path() {
        "/moved" => reply(301).cache("max-age=600").with("Location", "/new").body("moved"),
        "/gone" => reply(410).cache("max-age=600").body("gone"),
        "/empty" => reply(204).cache("max-age=600"),
        _ => reply(404).cache("max-age=600").body("missing"),
    });
    let pages = [("/moved", 301), ("/missing", 404), ("/gone", 410), ("/empty", 204)];
    for (stored, (target, status)) in pages.into_iter().enumerate() {
        let fetched = fleet.first.get(target).expect(status);
        has_entries(&fleet.server, stored + 1);
        let shared = fleet.second.get(target).expect(status);
        assert!(is_shared(&shared), "{shared:?}");
        assert_eq!(shared.body, fetched.body);
        assert_eq!(shared.field("location"), fetched.field("location"));
    }
    assert_eq!(fleet.origin.count(), pages.len());
}

#[test]
fn head_ranges_and_conditions_are_answered_from_what_another_node_stored() {
    let fleet = Fleet::new(|_| fresh().with("ETag", "\"one\"").body("0123456789"));
    let requests = [
        (head("/head"), 200, ""),
        (get("/range").with("Range", "bytes=2-4"), 206, "234"),
        (get("/ranges").with("Range", "bytes=20-"), 416, ""),
        (get("/none-match").with("If-None-Match", "\"one\""), 304, ""),
        (get("/match").with("If-None-Match", "\"two\""), 200, "0123456789"),
    ];
    for (target, _, _) in &requests {
        let bytes = target.to_bytes();
        let target = String::from_utf8_lossy(&bytes);
        fleet.first.get(target.split(' ').nth(1).expect("a target")).expect(200);
    }
    has_entries(&fleet.server, requests.len());
    for (request, status, body) in &requests {
        let response = fleet.second.exchange(request).expect(*status);
        if *status != 416 {
            assert_eq!(response.text(), *body);
        }
        assert!(response.is_hit(), "{response:?}");
    }
    assert_eq!(fleet.origin.count(), requests.len());
    assert_eq!(fleet.second.get("/range").expect(200).text(), "0123456789", "all of it is there");
    assert_eq!(fleet.origin.count(), requests.len());
}

#[test]
fn a_head_request_fills_the_tier() {
    let fleet = Fleet::new(|_| fresh().body("page"));
    fleet.first.exchange(&head("/page")).expect(200);
    has_entries(&fleet.server, 1);
    assert_eq!(fleet.second.get("/page").expect(200).text(), "page");
    assert_eq!(fleet.origin.count(), 1);
}

#[test]
fn hosts_and_queries_are_told_apart() {
    let fleet = Fleet::new(numbered(|_| fresh()));
    let pages = [get("/"), get("/?a=1"), get("/").host("other.example"), get("/").host("www.example:8080")];
    for (number, request) in pages.iter().enumerate() {
        assert_eq!(fleet.first.exchange(request).text(), (number + 1).to_string());
    }
    has_entries(&fleet.server, pages.len());
    for (number, request) in pages.iter().enumerate() {
        assert_eq!(fleet.second.exchange(request).text(), (number + 1).to_string());
    }
    assert_eq!(entries(&fleet.server), pages.len());
}

#[test]
fn fields_for_caches_and_for_one_client_stay_hidden() {
    let fleet = Fleet::new(|_| {
        let answer = reply(200).cache("max-age=600, private=\"X-User\", no-cache=\"X-Once\"");
        let answer = answer.with("Surrogate-Key", "a").with("Cache-Tag", "b").with("xkey", "c");
        answer.with("X-User", "alice").with("X-Once", "1").with("Cache-Groups", "\"d\"").body("page")
    });
    fleet.first.get("/page").expect(200);
    has_entries(&fleet.server, 1);
    for _ in 0..2 {
        let response = fleet.second.get("/page").expect(200);
        assert_eq!(response.text(), "page");
        assert_eq!(response.field("cache-groups"), Some("\"d\""));
        for hidden in ["surrogate-key", "cache-tag", "xkey", "x-user", "x-once"] {
            assert!(!response.fields.has(hidden), "{response:?}");
        }
    }
    assert_eq!(fleet.origin.count(), 1);
}

#[test]
fn fields_arrive_as_the_origin_sent_them() {
    const NAMES: [&str; 5] = ["Date", "Last-Modified", "Link", "X-Name", "Content-Type"];
    let fleet = Fleet::new(|_| {
        let answer = fresh().with("Last-Modified", "Mon, 02 Nov 2026 10:00:00 GMT").with("X-Name", "");
        let answer = answer.with("Link", "</a>; rel=preload").with("Link", "</b>, </c>");
        answer.with("X-Name", "\u{e9} \"quoted\", and, more").with("Content-Type", "text/plain").body("page")
    });
    let lines = |response: &Response| {
        NAMES.map(|name| response.fields.all(name).into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let fetched = fleet.first.get("/page").expect(200);
    has_entries(&fleet.server, 1);
    let shared = fleet.second.get("/page").expect(200);
    assert!(is_shared(&shared), "{shared:?}");
    assert_eq!(lines(&shared), lines(&fetched));
    assert_eq!(lines(&fleet.second.get("/page")), lines(&fetched));
}

#[test]
fn directives_of_a_request_apply_to_what_is_in_the_tier() {
    let settings = Settings { cache: "profile = \"rfc\"", ..Settings::default() };
    for (directive, is_used) in [("max-age=50", false), ("max-age=200", true), ("no-cache", false)] {
        let fleet = Fleet::with(&settings, numbered(|_| fresh().with("Age", "100")));
        fleet.first.get("/page").expect(200);
        has_entries(&fleet.server, 1);
        let response = fleet.second.exchange(&get("/page").with("Cache-Control", directive)).expect(200);
        assert_eq!(response.text() == "1", is_used, "{directive}: {response:?}");
    }
}

#[test]
fn a_part_of_a_page_is_not_taken_for_the_page() {
    let page = noise(1000);
    let fleet = Fleet::new(move |request| match request.field("range") {
        Some(_) => {
            let part = reply(206).cache("max-age=600").with("ETag", "\"one\"");
            part.with("Content-Range", "bytes 0-99/1000").body(&page[..100])
        }
        None => fresh().with("ETag", "\"one\"").body(&page),
    });
    let part = get("/page").with("Range", "bytes=0-99");
    assert_eq!(fleet.first.exchange(&part).expect(206).body, noise(100));
    assert_eq!(fleet.second.get("/page").expect(200).body, noise(1000));
    has_entries(&fleet.server, 1);
    assert_eq!(fleet.second.exchange(&part).expect(206).body, noise(100));
    assert_eq!(fleet.first.exchange(&part).expect(206).body, noise(100));
    assert_eq!(fleet.first.get("/page").expect(200).body, noise(1000));
}
