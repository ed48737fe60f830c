//! Against a scripted server.

use super::*;
use sandarac_test_support::TempDir;
use sandarac_wire::memcached::Refusal;
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

/// What a connection sends before anything else.
const PROBES: &str = "version\r\nmn\r\nstats settings\r\nmn\r\n\
    ms sandarac:probe 0 T-1 E1 MR O0\r\n\r\nmn\r\nmd sandarac:probe x O0\r\nmn\r\n";

/// The answer of a recent server.
const ABLE: &str = "VERSION 1.6.40\r\nMN\r\nSTAT cas_enabled yes\r\nSTAT item_size_max 1048576\r\nEND\r\nMN\r\n\
    NS O0\r\nMN\r\nNF O0\r\nMN\r\n";

struct Server {
    listener: UnixListener,
    dir: TempDir,
}

struct Peer(UnixStream);

impl Server {
    /// A server, and a connection that is not made yet. MUST be called in a runtime.
    fn new() -> (Server, Connection) {
        let dir = TempDir::new();
        let listener = UnixListener::bind(dir.join("socket")).unwrap();
        let server = Server { listener, dir };
        let connection = Connection::new(server.settings());
        (server, connection)
    }

    fn settings(&self) -> Settings {
        unix(self.dir.join("socket"))
    }

    async fn accept(&self) -> Peer {
        Peer(self.listener.accept().await.unwrap().0)
    }

    /// Accepts a connection and answers its probes.
    async fn ready(&self) -> Peer {
        let mut peer = self.accept().await;
        peer.expect(PROBES).await;
        peer.send(ABLE).await;
        peer
    }
}

impl Peer {
    async fn expect(&mut self, wire: &str) {
        let mut received = vec![0; wire.len()];
        self.0.read_exact(&mut received).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&received), wire);
    }

    async fn send(&mut self, wire: &str) {
        self.0.write_all(wire.as_bytes()).await.unwrap();
    }

    async fn ends(&mut self) {
        assert_eq!(self.0.read(&mut [0; 1]).await.unwrap(), 0, "the connection is closed");
    }
}

#[test]
fn requests_of_one_turn_leave_in_one_write_and_are_answered_in_order() {
    run(async {
        let (server, connection) = Server::new();
        let log = connection.get(value_of("log"), 100, AMPLE);
        let entry = connection.get(value_of("entry"), 100, AMPLE);
        let mut peer = server.ready().await;
        let mut packet = [0; 1000];
        let received = peer.0.read(&mut packet).await.unwrap();
        assert_eq!(&packet[..received], b"mg log v O0\r\nmg entry v O1\r\n");
        // In odd pieces, with bytes that look like responses in the value.
        for piece in ["VA 7 O", "0\r\nEN O", "1\r", "\n\r\nE", "N O1\r", "\n"] {
            peer.send(piece).await;
            tokio::task::yield_now().await;
        }
        assert_eq!(log.await.unwrap().unwrap().value, "EN O1\r\n");
        assert_eq!(entry.await, Ok(None));
    });
}

#[test]
fn a_late_answer_is_skipped_with_its_value() {
    run(async {
        let (server, connection) = Server::new();
        let late = connection.get(value_of("a"), 100, AMPLE);
        let mut peer = server.ready().await;
        peer.expect("mg a v O0\r\n").await;
        let timed_out = connection.get(value_of("b"), 100, SHORT);
        peer.expect("mg b v O1\r\n").await;
        drop(late);
        assert_eq!(timed_out.await, Err(Unavailable::TimedOut));
        let own = connection.get(value_of("c"), 100, AMPLE);
        peer.expect("mg c v O2\r\n").await;
        peer.send("VA 7 O0\r\nforeign\r\nVA 7 O1\r\nforeign\r\nVA 3 O2\r\nown\r\n").await;
        assert_eq!(own.await.unwrap().unwrap().value, "own");
        assert_eq!((connection.counts().late, connection.counts().connected), (2, 1));
    });
}

/// A server answers one request with `answer` and then `why` ends the connection, for the operations behind
/// it too.
async fn refused(answer: &str, why: Unavailable) {
    let (server, connection) = Server::new();
    let (first, second) =
        (connection.get(value_of("a"), 100, AMPLE), connection.get(value_of("b"), 100, AMPLE));
    let mut peer = server.ready().await;
    peer.expect("mg a v O0\r\nmg b v O1\r\n").await;
    peer.send(answer).await;
    assert_eq!(first.await, Err(why.clone()), "{answer:?}");
    assert_eq!(second.await, Err(why.clone()), "{answer:?}");
    peer.ends().await;
    assert_eq!(connection.state(), ConnectionState::Idle(Some(why)));
    // The next operation is not affected.
    let next = connection.get(value_of("c"), 100, AMPLE);
    let mut peer = server.ready().await;
    peer.expect("mg c v O2\r\n").await;
    peer.send("VA 1 O2\r\nc\r\n").await;
    assert_eq!(next.await.unwrap().unwrap().value, "c");
}

#[test]
fn answers_that_do_not_belong_to_the_request_end_the_connection() {
    let unexpected = |why| Unavailable::Unexpected(why);
    run(async {
        refused("EN O1\r\nEN O0\r\n", unexpected(Unexpected::Opaque)).await;
        refused("VA 1 O7\r\nx\r\n", unexpected(Unexpected::Opaque)).await;
        refused("EN\r\n", unexpected(Unexpected::Opaque)).await;
        refused("HD O0\r\n", unexpected(Unexpected::Outcome)).await;
        refused("NS O0\r\n", unexpected(Unexpected::Outcome)).await;
        refused("MN\r\n", unexpected(Unexpected::Outcome)).await;
        refused("CLIENT_ERROR bad data chunk\r\n", Unavailable::RequestRefused("bad data chunk".into()))
            .await;
    });
}

#[test]
fn malformed_answers_end_the_connection() {
    run(async {
        for (answer, refusal) in [
            ("garbage\r\n", Refusal::UnknownReply),
            ("EN O0\n", Refusal::BareLf),
            ("VA 3 O0\r\nlonger\r\n", Refusal::InvalidValueEnd),
            ("VA 1048577 O0\r\n", Refusal::ValueTooLarge),
            ("VA 99999999999999999999 O0\r\n", Refusal::InvalidSize),
        ] {
            refused(answer, Unavailable::Malformed(refusal)).await;
        }
        refused(&"x".repeat(3000), Unavailable::Malformed(Refusal::LineTooLong)).await;
    });
}

#[test]
fn an_answer_to_no_request_ends_the_connection() {
    run(async {
        let (server, connection) = Server::new();
        let first = connection.get(value_of("a"), 100, AMPLE);
        let mut peer = server.ready().await;
        peer.expect("mg a v O0\r\n").await;
        peer.send("EN O0\r\nEN O0\r\n").await;
        assert_eq!(first.await, Ok(None));
        peer.ends().await;
        let why = Unavailable::Unexpected(Unexpected::Unasked);
        assert_eq!(connection.state(), ConnectionState::Idle(Some(why)));
    });
}

#[test]
fn an_error_of_the_server_fails_only_its_request() {
    run(async {
        let (server, connection) = Server::new();
        let first = connection.set(minute("a"), bytes("value"), AMPLE);
        let second = connection.get(value_of("b"), 100, AMPLE);
        let mut peer = server.ready().await;
        peer.expect("ms a 5 T60 O0\r\nvalue\r\nmg b v O1\r\n").await;
        peer.send("SERVER_ERROR out of memory storing object\r\nEN O1\r\n").await;
        assert_eq!(first.await, Err(Unavailable::ServerError("out of memory storing object".into())));
        assert_eq!(second.await, Ok(None));
    });
}

#[test]
fn a_connection_that_ends_in_a_value_fails_its_operation() {
    run(async {
        let (server, connection) = Server::new();
        let pending = connection.get(value_of("a"), 1000, AMPLE);
        let mut peer = server.ready().await;
        peer.expect("mg a v O0\r\n").await;
        peer.send("VA 1000 O0\r\npart").await;
        drop(peer);
        assert_eq!(pending.await, Err(Unavailable::Closed));
    });
}

#[test]
fn a_value_larger_than_asked_for_is_skipped() {
    run(async {
        let (server, connection) = Server::new();
        let (large, small) =
            (connection.get(value_of("a"), 9, AMPLE), connection.get(value_of("b"), 9, AMPLE));
        let mut peer = server.ready().await;
        peer.expect("mg a v O0\r\nmg b v O1\r\n").await;
        peer.send(&format!("VA 100000 O0\r\n{}\r\nVA 9 O1\r\n123456789\r\n", "x".repeat(100_000))).await;
        assert_eq!(large.await, Err(Unavailable::ValueTooLarge(100_000)));
        assert_eq!(small.await.unwrap().unwrap().value, "123456789");
    });
}

#[test]
fn values_after_a_large_one_are_their_own() {
    run(async {
        let (server, connection) = Server::new();
        let get = |name| connection.get(value_of(name), 100_000, AMPLE);
        let (first, skipped, second, small) = (get("a"), get("b"), get("c"), get("d"));
        let mut peer = server.ready().await;
        peer.expect("mg a v O0\r\nmg b v O1\r\nmg c v O2\r\nmg d v O3\r\n").await;
        drop(skipped);
        let [a, b, c] = ["a", "b", "c"].map(|text| text.repeat(50_000));
        peer.send(&format!("VA 50000 O0\r\n{a}\r\nVA 50000 O1\r\n{b}\r\n")).await;
        peer.send(&format!("VA 50000 O2\r\n{c}\r\nVA 3 O3\r\nd\r\n\r\n")).await;
        for (pending, value) in [(first, &*a), (second, &*c), (small, "d\r\n")] {
            assert!(pending.await.unwrap().unwrap().value == value);
        }
    });
}

#[test]
fn a_connection_that_the_server_closes_while_idle_is_replaced() {
    run(async {
        let (server, connection) = Server::new();
        let first = connection.get(value_of("a"), 100, AMPLE);
        let mut peer = server.ready().await;
        peer.expect("mg a v O0\r\n").await;
        peer.send("EN O0\r\n").await;
        assert_eq!(first.await, Ok(None));
        drop(peer);
        while connection.state() != ConnectionState::Idle(Some(Unavailable::Closed)) {
            tokio::task::yield_now().await;
        }
        let second = connection.get(value_of("b"), 100, AMPLE);
        let mut peer = server.ready().await;
        peer.expect("mg b v O1\r\n").await;
        peer.send("EN O1\r\n").await;
        assert_eq!(second.await, Ok(None));
    });
}

#[test]
fn a_server_that_is_not_usable_is_named() {
    let attempt = async |answer: &'static str| {
        let (server, connection) = Server::new();
        let pending = connection.get(value_of("a"), 100, AMPLE);
        let mut peer = server.accept().await;
        peer.expect(PROBES).await;
        peer.send(answer).await;
        drop(peer);
        pending.await.unwrap_err()
    };
    run(async {
        let not = |refusal| Unavailable::NotMemcached(refusal);
        assert_eq!(attempt("HTTP/1.1 400 Bad Request\r\n\r\n").await, not(Refusal::UnknownReply));
        assert_eq!(attempt("-ERR unknown command 'version'\r\n").await, not(Refusal::UnknownReply));
        assert_eq!(attempt("EN O1\r\n").await, not(Refusal::InvalidReply));
        assert_eq!(attempt("VERSION 1.5.6\r\nERROR\r\n").await, Unavailable::NoMetaCommands);
        assert_eq!(attempt("CLIENT_ERROR unauthenticated\r\n").await, Unavailable::LoginRequired);
        let full = Unavailable::ServerError("Too many open connections".into());
        assert_eq!(attempt("ERROR Too many open connections\r\n").await, full);
        assert_eq!(attempt("").await, Unavailable::Closed);
        assert_eq!(attempt("VERSION 1.6.40\r\nMN\r\nSTAT item").await, Unavailable::Closed);
        let unasked = Unavailable::Unexpected(Unexpected::Unasked);
        assert_eq!(attempt(&format!("{ABLE}EN O0\r\n").leak()[..]).await, unasked);
    });
}

#[test]
fn a_server_that_accepts_and_never_answers_is_given_up() {
    run(async {
        let (server, _) = Server::new();
        let connect_timeout = Duration::from_millis(500);
        let connection = Connection::new(Settings { connect_timeout, ..server.settings() });
        let (short, long) =
            (connection.get(value_of("a"), 100, SHORT), connection.get(value_of("a"), 100, AMPLE));
        let _peer = server.accept().await;
        assert_eq!(short.await, Err(Unavailable::TimedOut));
        assert_eq!(connection.state(), ConnectionState::Connecting);
        assert_eq!(long.await, Err(Unavailable::ConnectTimedOut));
    });
}

#[test]
fn an_address_without_a_server_refuses() {
    run(async {
        let connection = Connection::new(unix("/nonexistent/socket".into()));
        let why = Unavailable::NotConnected(ErrorKind::NotFound);
        assert_eq!(connection.get(value_of("a"), 100, AMPLE).await, Err(why.clone()));
        assert_eq!(connection.state(), ConnectionState::Idle(Some(why)));
    });
}

#[test]
fn a_write_that_finds_the_queue_full_fails_at_once() {
    run(async {
        let (server, _) = Server::new();
        let limits = QueueLimits { operations: 100, bytes: 1 << 20 };
        let connection = Connection::new(Settings { limits, ..server.settings() });
        let large = || vec![Bytes::from(vec![b'x'; 600_000])];
        let first = connection.set(minute("a"), large(), AMPLE);
        let _peer = server.ready().await;
        sent(&connection).await;
        // The peer reads nothing, so the rest of the first value stays with us.
        assert!(connection.held_bytes() > 300_000);
        let second = connection.set(minute("b"), large(), AMPLE);
        let third = connection.set(minute("c"), large(), AMPLE);
        assert_eq!(third.await, Err(Unavailable::QueueFull));
        assert_eq!(connection.counts().refused, 1 + u64::from(connection.operations() == 1));
        connection.close();
        assert_eq!(first.await, Err(Unavailable::Ended));
        assert!(second.await.is_err());
        assert_eq!((connection.operations(), connection.held_bytes()), (0, 0));
    });
}

/// Regression: any byte put the deadline off.
#[test]
fn a_transfer_below_the_lowest_rate_ends_at_its_deadline() {
    run(async {
        let (server, connection) = Server::new();
        let slow = connection.get(value_of("a"), 1000, Deadline::Transfer(Duration::from_millis(400)));
        let mut peer = server.ready().await;
        peer.expect("mg a v O0\r\n").await;
        let drips = async {
            peer.send("VA 1000 O0\r\n").await;
            loop {
                peer.send("x").await;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            result = slow => assert_eq!(result, Err(Unavailable::TimedOut)),
            () = drips => {}
        }
    });
}

#[test]
fn a_connection_that_is_not_wanted_any_more_ends() {
    run(async {
        let (server, connection) = Server::new();
        let pending = connection.get(value_of("a"), 100, AMPLE);
        let mut peer = server.ready().await;
        peer.expect("mg a v O0\r\n").await;
        connection.close();
        assert_eq!(pending.await, Err(Unavailable::Ended));
        peer.ends().await;
        let pending = connection.get(value_of("b"), 100, AMPLE);
        let mut peer = server.ready().await;
        peer.expect("mg b v O1\r\n").await;
        drop(connection);
        assert_eq!(pending.await, Err(Unavailable::Ended));
        peer.ends().await;
    });
}
