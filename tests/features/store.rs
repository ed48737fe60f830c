//! The store: its limit, and what is kept when it is full.

use sandarac_test_support::{Origin, Reply, Request, Sandarac, get, reply, within};

use crate::sandarac;

const MIB: u64 = 1 << 20;

fn start(memory: &str, rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Sandarac, Origin) {
    let origin = Origin::new(rule);
    (sandarac().before(&origin).rfc().option("--memory", memory).start(), origin)
}

fn sized(request: &Request) -> Reply {
    let size = request.target.split("size=").nth(1).and_then(|size| size.parse().ok()).unwrap_or(1000);
    reply(200).cache("max-age=600").body("x".repeat(size))
}

fn used(proxy: &Sandarac) -> u64 {
    proxy.admin_json(&["status", "--json"])["cache"]["used_bytes"].as_u64().expect("used_bytes")
}

#[test]
fn the_memory_limit_holds() {
    let (proxy, _origin) = start("16MiB", sized);
    let mut client = proxy.connect();
    client.get("/warm").expect(200);
    let resting = proxy.resident_bytes();
    for number in 0..3000 {
        client.get(&format!("/{number}?size=20000")).expect(200);
        if number % 500 == 0 {
            assert!(used(&proxy) <= 16 * MIB);
        }
    }
    let used = used(&proxy);
    assert!((8 * MIB..=16 * MIB).contains(&used), "{used} bytes are used");
    let grown = proxy.peak_resident_bytes().saturating_sub(resting);
    assert!(grown < 32 * MIB, "the resident set grew by {grown} bytes for a limit of 16 MiB");
}

#[test]
fn what_is_popular_survives_a_flood_of_what_is_not() {
    let (proxy, origin) = start("8MiB", sized);
    let mut client = proxy.connect();
    let popular: Vec<String> = (0..100).map(|number| format!("/popular/{number}?size=2000")).collect();
    for _ in 0..3 {
        popular.iter().for_each(|target| drop(client.get(target)));
    }
    for number in 0..200 {
        client.get(&format!("/large/{number}?size=200000")).expect(200);
        client.get(&popular[number % 100]).expect(200);
    }
    let before = origin.count();
    popular.iter().for_each(|target| drop(client.get(target)));
    let lost = origin.count() - before;
    assert!(lost <= 10, "{lost} of 100 popular objects were lost");
}

/// Regression: objects that slow clients read cannot be freed, so that all others were freed, and twenty connections emptied a
/// cache.
#[test]
fn what_is_popular_survives_slow_readers_of_large_objects() {
    let (proxy, origin) = start("32MiB", sized);
    let mut client = proxy.connect();
    let popular: Vec<String> = (0..100).map(|number| format!("/popular/{number}?size=2000")).collect();
    for _ in 0..5 {
        popular.iter().for_each(|target| drop(client.get(target)));
    }
    let _stalled: Vec<_> = (0..20)
        .map(|number| {
            let mut stalled = proxy.connect();
            stalled.shrink_receive_buffer();
            stalled.send(get(&format!("/large/{number}?size=3500000")).to_bytes());
            stalled.response_head();
            stalled
        })
        .collect();
    within("the slow ones to hold what they can", || (used(&proxy) >= 24 * MIB).then_some(()));
    for number in 0..300 {
        client.get(&format!("/once/{number}?size=10000")).expect(200);
    }
    let before = origin.count();
    popular.iter().for_each(|target| drop(client.get(target)));
    let lost = origin.count() - before;
    assert!(lost <= 10, "{lost} of 100 popular objects were lost");
    assert!(used(&proxy) <= 32 * MIB);
    client.get("/new?size=10000").expect(200);
    assert!(client.get("/new?size=10000").is_hit(), "what is small and new has no place left");
}

#[test]
fn an_object_larger_than_the_whole_cache_is_streamed_through() {
    let (proxy, _origin) = start("4MiB", sized);
    let mut client = proxy.connect();
    client.get("/small?size=1000").expect(200);
    for _ in 0..2 {
        let response = client.get("/huge?size=20000000").expect(200);
        assert_eq!(response.body.len(), 20_000_000);
        assert!(!response.is_hit());
    }
    assert!(used(&proxy) <= 4 * MIB);
    assert!(client.get("/small?size=1000").is_hit());
}

#[test]
fn thousands_of_small_objects_are_all_found() {
    let (proxy, origin) = start("64MiB", |request| reply(200).cache("max-age=600").body(&request.target));
    let mut client = proxy.connect();
    for round in 0..2 {
        for batch in 0..100 {
            let targets: Vec<String> = (0..100).map(|number| format!("/{batch}/{number}")).collect();
            client.send(targets.iter().flat_map(|target| get(target).to_bytes()).collect::<Vec<u8>>());
            for target in &targets {
                let response = client.response().expect(200);
                assert_eq!(response.text(), *target);
                assert_eq!(response.is_hit(), round == 1);
            }
        }
    }
    assert_eq!(origin.count(), 10_000);
}

/// Regression: a stored response had a Trailer field for trailers that are not stored.
#[test]
fn a_stored_response_announces_no_trailers() {
    let (proxy, _origin) = crate::before(|_| {
        reply(200).cache("max-age=60").with("Trailer", "Sum").chunked().body("hello").trailer("Sum", "5")
    });
    proxy.get("/").expect(200);
    let hit = proxy.get("/").expect(200);
    assert!(hit.is_hit() && hit.field("content-length") == Some("5"), "{hit:?}");
    assert_eq!(hit.field("trailer"), None);
}
