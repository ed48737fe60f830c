//! Bodies that the store keeps in memory files: the same bytes over every transport, whatever happens to the
//! memory meanwhile.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use sandarac_test_support::http2::Http2;
use sandarac_test_support::{Conn, Origin, Request, Response, Sandarac, get, reply, within};

use crate::ca::Ca;
use crate::{sandarac, stat};

const MIB: usize = 1 << 20;

/// A body of which every eight bytes tell the target and their place.
fn body(target: &str, len: usize) -> Vec<u8> {
    let name =
        target.bytes().fold(7u64, |name, byte| name.wrapping_mul(31).wrapping_add(u64::from(byte))) << 32;
    (0..len as u64).step_by(8).flat_map(|at| (name + at).to_be_bytes()).take(len).collect()
}

/// The length of the body at a target: the number after its last slash.
fn len(target: &str) -> usize {
    target.rsplit('/').next().and_then(|len| len.parse().ok()).expect("a length")
}

fn is_whole(response: &Response, target: &str) -> bool {
    response.status == 200 && response.body == body(target, len(target))
}

/// A proxy with listeners in clear and with TLS, before an origin of such bodies.
struct Stage {
    proxy: Sandarac,
    origin: Origin,
    ca: Ca,
}

impl Stage {
    fn new(memory: &str) -> Stage {
        let ca = Ca::new();
        ca.issue("a", "a.example");
        let origin = Origin::new(|request: &Request| {
            let target = request.path();
            let reply = reply(200).cache("max-age=600").with("ETag", &format!("\"{target}\""));
            let reply = if target.starts_with("/chunked") { reply.chunked() } else { reply };
            body(target, len(target)).chunks(100_000).fold(reply, |reply, piece| reply.body(piece))
        });
        let text = format!(
            "threads = 2\n\n[[listen]]\naddress = \"127.0.0.1:0\"\nhttp2 = true\n\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
             tls = {{ directory = \"{}\" }}\n\n[pool.app]\nbackends = [\"{}\"]\n\n[[route]]\npool = \"app\"\n\n\
             [cache]\nmemory = \"{memory}\"\nmax_object = \"32MiB\"\n\n[limits]\nmin_rate_out = \"0B\"\n",
            ca.directory.path().display(),
            origin.url(),
        );
        Stage { proxy: sandarac().config(text).start(), origin, ca }
    }

    fn tls(&self, protocol: &[u8]) -> Conn {
        let mut config = (*self.ca.client()).clone();
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::try_from("a.example").expect("a name");
        Conn::try_tls(&self.proxy.addresses()[1], &Arc::new(config), name).expect("a connection")
    }

    /// A client of each kind. All ask for the same host, so that they share what is stored.
    fn clients(&self) -> Vec<Client> {
        vec![
            Client::Http1(self.proxy.connect()),
            Client::Http1(self.tls(b"http/1.1")),
            Client::Http2(Box::new(Http2::to(self.proxy.address())), "http"),
            Client::Http2(Box::new(Http2::over(self.tls(b"h2"), &[])), "https"),
        ]
    }

    /// Stores other bodies.
    fn refill(&self, name: &str, bodies: usize) {
        let mut client = self.proxy.connect();
        for number in 0..bodies {
            let target = format!("/{name}/{number}/{MIB}");
            assert!(is_whole(&client.exchange(&get(&target).host("a.example")), &target));
        }
    }
}

enum Client {
    Http1(Conn),
    Http2(Box<Http2>, &'static str),
}

impl Client {
    /// Sends a request. The stream is 0 for HTTP/1.
    fn ask(&mut self, target: &str, range: Option<&str>) -> u32 {
        let range = range.map(|range| ("range", range));
        match self {
            Client::Http1(conn) => {
                let request = get(target).host("a.example");
                let request = range.iter().fold(request, |request, (name, value)| request.with(name, value));
                conn.send(request.to_bytes());
                0
            }
            Client::Http2(http2, scheme) => {
                let mut fields = vec![
                    (":method", "GET"),
                    (":scheme", *scheme),
                    (":authority", "a.example"),
                    (":path", target),
                ];
                fields.extend(range);
                http2.head(&fields, true)
            }
        }
    }

    /// Reads as far as the head of the response.
    fn begins(&mut self, stream: u32) -> Option<Response> {
        match self {
            Client::Http1(conn) => Some(conn.response_head()),
            Client::Http2(http2, _) => {
                http2.begun(stream);
                None
            }
        }
    }

    /// The rest of a response that has begun.
    fn ends(&mut self, stream: u32, head: Option<Response>) -> Response {
        match (self, head) {
            (Client::Http1(conn), Some(mut response)) => {
                conn.try_response_body("GET", &mut response).expect("a whole body");
                response
            }
            (Client::Http1(conn), None) => conn.response(),
            (Client::Http2(http2, _), _) => http2.response(stream),
        }
    }
}

#[test]
fn a_large_body_and_its_ranges_are_the_same_over_every_transport() {
    let stage = Stage::new("64MiB");
    for target in ["/a/262143", "/b/262144", "/c/262145", "/d/3000000", "/chunked/2500000"] {
        let whole = body(target, len(target));
        for mut client in stage.clients() {
            for _ in 0..2 {
                let stream = client.ask(target, None);
                assert!(client.ends(stream, None).body == whole, "{target}");
            }
            for (range, first, end) in [
                ("bytes=0-0", 0, 1),
                ("bytes=262000-262140", 262_000, 262_141),
                ("bytes=1000-200000", 1000, 200_001),
                ("bytes=5-", 5, whole.len()),
                ("bytes=-3000", whole.len() - 3000, whole.len()),
            ] {
                let stream = client.ask(target, Some(range));
                let response = client.ends(stream, None);
                assert!(response.status == 206 && response.body == whole[first..end], "{target} {range}");
            }
        }
        // Once for each scheme.
        assert_eq!(stage.origin.count_of(target), 2);
    }
    let files = stat(&stage.proxy, "cache_file_bytes") as usize;
    let least = 2 * (262_144 + 262_145 + 3_000_000 + 2_500_000);
    assert!((least..least + 100_000).contains(&files), "{files} of {least}");
    stage.proxy.admin(&["purge", "--all"]).success();
    within("the memory to be free", || (stat(&stage.proxy, "cache_file_bytes") == 0).then_some(()));
    assert_eq!(stat(&stage.proxy, "cache_file_failures"), 0);
}

/// The system sends from the pages of a body, which are not copied. So these must not be used again.
#[test]
fn a_slow_reader_gets_its_own_body_after_its_memory_was_used_again() {
    let stage = Stage::new("128MiB");
    for round in 0..3 {
        let target = |at: usize| format!("/slow/{round}/{at}/{MIB}");
        let mut clients = stage.clients();
        let mut begun = Vec::new();
        for (at, client) in clients.iter_mut().enumerate() {
            if let Client::Http1(conn) = client {
                conn.shrink_receive_buffer();
            }
            let stream = client.ask(&target(at), None);
            assert!(is_whole(&client.ends(stream, None), &target(at)));
            let stream = client.ask(&target(at), None);
            begun.push((stream, client.begins(stream)));
        }
        stage.proxy.admin(&["purge", "--all"]).success();
        within("what nobody reads to be free", || {
            (stat(&stage.proxy, "cache_file_bytes") <= 4 * MIB as u64).then_some(())
        });
        stage.refill(&format!("other/{round}"), 10);
        for (at, (client, (stream, head))) in clients.iter_mut().zip(begun).enumerate() {
            assert!(is_whole(&client.ends(stream, head), &target(at)), "client {at}");
        }
    }
}

/// More clients than the store has room for, each of which reads while others replace what it reads.
#[test]
fn bodies_stay_apart_when_many_clients_replace_them() {
    let stage = Stage::new("16MiB");
    std::thread::scope(|scope| {
        for (number, mut client) in stage.clients().into_iter().chain(stage.clients()).enumerate() {
            scope.spawn(move || {
                for turn in 0..30 {
                    let len = [300_000, 1_000_000, 262_144, 700_001][(turn + number) % 4];
                    let name = if turn % 3 == 0 { "chunked" } else { "plain" };
                    let target = format!("/{name}/{}/{len}", (turn * 7 + number * 3) % 23);
                    let stream = client.ask(&target, None);
                    assert!(is_whole(&client.ends(stream, None), &target), "{target}");
                }
            });
        }
    });
}

#[test]
fn a_large_body_that_broke_off_is_completed_from_where_it_ends() {
    let whole = body("/", 3 * MIB);
    let page = whole.clone();
    let origin = Origin::new(move |request| {
        let fresh =
            |status| reply(status).cache("max-age=600").with("ETag", "\"v1\"").with("Accept-Ranges", "bytes");
        match request.field("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')) {
            None => fresh(200).length(page.len()).body(&page[..1_234_567]).cut(),
            Some(first) => {
                let first = first.parse::<usize>().expect("a number");
                let range = format!("bytes {first}-{}/{}", page.len() - 1, page.len());
                fresh(206).with("Content-Range", &range).body(&page[first..])
            }
        }
    });
    let proxy = sandarac().before(&origin).rfc().start();
    let mut client = proxy.connect();
    client.send(get("/").to_bytes());
    let mut response = client.response_head();
    client.try_response_body("GET", &mut response).expect_err("the origin broke off");
    within("the part to be kept", || (stat(&proxy, "cache_parts_kept") == 1).then_some(()));
    assert!(proxy.get("/").expect(200).body == whole);
    assert!(proxy.get("/").expect(200).body == whole);
    assert_eq!(origin.count(), 2);
    assert!(stat(&proxy, "cache_file_bytes") >= whole.len() as u64);
}

#[test]
fn without_a_memory_file_a_large_body_is_kept_on_the_heap() {
    let stage = Stage::new("64MiB");
    let mut client = stage.proxy.connect();
    let mut ask = |target: &str| client.exchange(&get(target).host("a.example"));
    // A connection to the origin stays open.
    ask("/warm/1000").expect(200);
    let limit = stage.proxy.descriptor_limit();
    stage.proxy.limit_descriptors(3);
    for target in ["/a/1000000", "/b/1000000"] {
        assert!(is_whole(&ask(target), target));
        assert!(is_whole(&ask(target), target));
        assert_eq!(stage.origin.count_of(target), 1);
    }
    stage.proxy.limit_descriptors(limit);
    assert!(stat(&stage.proxy, "cache_file_failures") >= 8);
    assert_eq!(stat(&stage.proxy, "cache_file_bytes"), 0);
    assert!(is_whole(&ask("/c/1000000"), "/c/1000000"));
    within("a memory file", || (stat(&stage.proxy, "cache_file_bytes") >= 1_000_000).then_some(()));
}
