//! Against the real memcached.

use super::*;
use sandarac_test_support::Memcached;
use sandarac_wire::memcached::{Login, Mode, Recache, Remaining};

fn connected() -> (Memcached, Connection) {
    let server = Memcached::start(&[]);
    let connection = Connection::new(unix(server.socket()));
    (server, connection)
}

async fn read(connection: &Connection, name: &str) -> Option<Bytes> {
    connection.get(value_of(name), 1 << 20, AMPLE).await.unwrap().map(|item| item.value)
}

#[test]
fn items_are_stored_read_touched_and_deleted() {
    let (_server, connection) = connected();
    run(async {
        assert_eq!(connection.state(), ConnectionState::Idle(None));
        assert_eq!(connection.get(value_of("a"), 100, AMPLE).await, Ok(None));
        let set = Set { client_flags: 7, return_cas: true, ..minute("a") };
        let value = vec![Bytes::from_static(b"one "), Bytes::from_static(b"two")];
        let SetOutcome::Stored(Some(cas)) = connection.set(set, value, AMPLE).await.unwrap() else {
            panic!("the item is stored");
        };
        let all = Get { client_flags: true, cas: true, size: true, remaining: true, ..value_of("a") };
        let item = connection.get(all, 100, AMPLE).await.unwrap().unwrap();
        assert_eq!(item.value, "one two");
        assert_eq!((item.flags.client_flags, item.flags.size), (Some(7), Some(7)));
        assert_eq!((item.flags.cas, item.flags.recache), (Some(cas), Recache::NotOffered));
        assert!(matches!(item.flags.remaining, Some(Remaining::Seconds(50..=60))));

        let with = |mode| Set { mode, ..minute("a") };
        assert_eq!(connection.set(with(Mode::Add), bytes("x"), AMPLE).await, Ok(SetOutcome::NotStored));
        let absent = Set { mode: Mode::Replace, ..minute("b") };
        assert_eq!(connection.set(absent, bytes("x"), AMPLE).await, Ok(SetOutcome::NotStored));
        assert_eq!(connection.set(with(Mode::Append), bytes("!"), AMPLE).await, Ok(SetOutcome::Stored(None)));
        assert_eq!(read(&connection, "a").await.unwrap(), "one two!");

        let compare = |name, cas| Set { compare: Some(cas), ..minute(name) };
        assert_eq!(connection.set(compare("a", cas), bytes("x"), AMPLE).await, Ok(SetOutcome::Exists));
        assert_eq!(connection.set(compare("b", cas), bytes("x"), AMPLE).await, Ok(SetOutcome::NotFound));
        let stale = Delete { compare: Some(cas), ..Delete::new(key("a")) };
        assert_eq!(connection.delete(stale, AMPLE).await, Ok(DeleteOutcome::Exists));

        assert_eq!(connection.touch(key("a"), Ttl::NEVER, AMPLE).await, Ok(true));
        assert_eq!(connection.touch(key("b"), Ttl::NEVER, AMPLE).await, Ok(false));
        let remaining = Get { remaining: true, ..Get::new(key("a")) };
        let item = connection.get(remaining, 0, AMPLE).await.unwrap().unwrap();
        assert_eq!(item.flags.remaining, Some(Remaining::Unlimited));
        assert_eq!(connection.delete(Delete::new(key("a")), AMPLE).await, Ok(DeleteOutcome::Deleted));
        assert_eq!(connection.delete(Delete::new(key("a")), AMPLE).await, Ok(DeleteOutcome::NotFound));
        assert_eq!(connection.counts().connected, 1);
        assert_eq!((connection.operations(), connection.held_bytes(), connection.silence()), (0, 0, None));
    });
}

#[test]
fn one_of_many_wins_the_right_to_fill_and_to_recache() {
    let (_server, connection) = connected();
    run(async {
        let claim = || Get { vivify: Some(Ttl::seconds(3)), ..value_of("a") };
        let (first, second) = (connection.get(claim(), 100, AMPLE), connection.get(claim(), 100, AMPLE));
        let first = first.await.unwrap().unwrap();
        assert_eq!((first.flags.recache, first.value.len()), (Recache::Won, 0));
        assert_eq!(second.await.unwrap().unwrap().flags.recache, Recache::Taken);
        connection.set(minute("a"), bytes("value"), AMPLE).await.unwrap();
        let invalidate = Delete { invalidate: true, ttl: Some(Ttl::seconds(30)), ..Delete::new(key("a")) };
        assert_eq!(connection.delete(invalidate, AMPLE).await, Ok(DeleteOutcome::Deleted));
        let item = connection.get(value_of("a"), 100, AMPLE).await.unwrap().unwrap();
        assert!(item.flags.stale && item.flags.recache == Recache::Won && item.value == "value");
    });
}

#[test]
fn the_abilities_of_the_server_are_found_by_asking() {
    let (_server, connection) = connected();
    let (small, bare) = (Memcached::start(&["-I", "512k"]), Memcached::start(&["-C"]));
    run(async {
        read(&connection, "a").await;
        let ConnectionState::Ready(abilities) = connection.state() else { panic!("connected") };
        assert!(!abilities.version.is_empty());
        assert_eq!(abilities.item_size_max, 1024 * 1024);
        // Whether the installed version has the two others is not ours to say; asking for them works or
        // fails by name, and never costs the connection.
        let explicit = Set { explicit_cas: Some(77), return_cas: true, ..minute("a") };
        let unsupported = Err(Unavailable::Unsupported(Ability::ExplicitCas));
        let expected = if abilities.explicit_cas { Ok(SetOutcome::Stored(Some(77))) } else { unsupported };
        assert_eq!(connection.set(explicit, bytes("x"), AMPLE).await, expected);
        connection.set(minute("a"), bytes("x"), AMPLE).await.unwrap();
        let unsupported = Err(Unavailable::Unsupported(Ability::ValueRemoval));
        let expected = if abilities.value_removal { Ok(DeleteOutcome::Deleted) } else { unsupported };
        let remove = Delete { value_only: true, ..Delete::new(key("a")) };
        assert_eq!(connection.delete(remove, AMPLE).await, expected);
        assert_eq!(connection.counts().connected, 1);

        let small = Connection::new(unix(small.socket()));
        let large = vec![Bytes::from(vec![b'x'; 600 * 1024])];
        assert_eq!(small.set(minute("a"), large, AMPLE).await, Err(Unavailable::ItemTooLarge));
        let bare = Connection::new(unix(bare.socket()));
        assert_eq!(bare.set(minute("a"), bytes("x"), AMPLE).await, Err(Unavailable::NoCas));
    });
}

#[test]
fn an_item_that_the_server_finds_too_large_costs_only_its_operation() {
    let (_server, connection) = connected();
    run(async {
        let (stored, other) = (
            connection.set(minute("a"), vec![Bytes::from(vec![b'x'; 1024 * 1024 - 10])], AMPLE),
            connection.set(minute("b"), bytes("x"), AMPLE),
        );
        assert_eq!(stored.await, Err(Unavailable::ItemTooLarge));
        assert_eq!(other.await, Ok(SetOutcome::Stored(None)));
        assert_eq!(connection.counts().connected, 1);
    });
}

#[test]
fn large_values_arrive_whole_among_small_ones() {
    let (_server, connection) = connected();
    run(async {
        let sizes = [0, 1, 30_000, 65_536, 200_000, 1_000_000];
        let content = |size: usize| -> Bytes { (0..size).map(|at| (at % 251) as u8).collect() };
        let transfer = Deadline::Transfer(Duration::from_secs(5));
        for size in sizes {
            let set = Set::new(key(&format!("k{size}")), Ttl::NEVER);
            let stored = connection.set(set, vec![content(size)], transfer).await;
            assert_eq!(stored, Ok(SetOutcome::Stored(None)));
        }
        for _ in 0..3 {
            let pending: Vec<_> = sizes
                .into_iter()
                .map(|size| (size, connection.get(value_of(&format!("k{size}")), 1 << 20, transfer)))
                .collect();
            for (size, pending) in pending {
                let value = pending.await.unwrap().unwrap().value;
                assert!(value == content(size), "{size}");
            }
        }
        let too_large = connection.get(value_of("k200000"), 199_999, AMPLE);
        let small = connection.get(value_of("k1"), 1, AMPLE);
        assert_eq!(too_large.await, Err(Unavailable::ValueTooLarge(200_000)));
        assert_eq!(small.await.unwrap().unwrap().value.len(), 1);
    });
}

#[test]
fn dropped_operations_leave_their_answers_to_nobody() {
    let (_server, connection) = connected();
    run(async {
        for at in 0..50 {
            let value = vec![Bytes::from(format!("value {at}").into_bytes())];
            connection.set(minute(&format!("k{at}")), value, AMPLE).await.unwrap();
        }
        let mut kept = Vec::new();
        for at in 0..50 {
            let pending = connection.get(value_of(&format!("k{at}")), 100, AMPLE);
            if at % 3 == 0 {
                kept.push((at, pending));
            } else if at % 3 == 1 {
                // Let some be sent before they are dropped.
                tokio::task::yield_now().await;
            }
        }
        for (at, pending) in kept {
            assert_eq!(pending.await.unwrap().unwrap().value, format!("value {at}"));
        }
        assert_eq!(connection.counts().connected, 1);
    });
}

#[test]
fn a_login_is_made_where_one_is_wanted() {
    let server = Memcached::with_login("user", "password");
    run(async {
        let attempt = async |login: Option<Login>| {
            let connection = Connection::new(Settings { login, ..unix(server.socket()) });
            connection.get(value_of("a"), 100, AMPLE).await
        };
        let login = |password| Some(Login::new("user", password).unwrap());
        assert_eq!(attempt(login("password")).await, Ok(None));
        assert_eq!(attempt(login("other")).await, Err(Unavailable::LoginFailed));
        assert_eq!(attempt(None).await, Err(Unavailable::LoginRequired));

        let open = Memcached::start(&[]);
        let connection = Connection::new(Settings { login: login("password"), ..unix(open.socket()) });
        assert_eq!(connection.get(value_of("login"), 100, AMPLE).await, Ok(None), "no password is stored");
    });
}

#[test]
fn servers_are_reached_over_ipv4_and_ipv6() {
    for host in ["127.0.0.1", "::1"] {
        let (_server, address) = Memcached::on_tcp(host);
        run(async {
            let connection = Connection::new(settings(ServerAddress::Tcp(address)));
            assert_eq!(read(&connection, "a").await, None);
        });
    }
}

#[test]
fn the_first_operation_after_a_restart_connects_anew() {
    let (mut server, connection) = connected();
    run(async {
        connection.set(minute("a"), bytes("x"), AMPLE).await.unwrap();
        server.freeze();
        let hung = connection.get(value_of("a"), 100, AMPLE);
        sent(&connection).await;
        server.kill();
        assert_eq!(hung.await, Err(Unavailable::Closed));
        assert_eq!(connection.state(), ConnectionState::Idle(Some(Unavailable::Closed)));
        let refused = Unavailable::NotConnected(std::io::ErrorKind::ConnectionRefused);
        assert_eq!(connection.get(value_of("a"), 100, AMPLE).await, Err(refused));
        server.restart();
        assert_eq!(read(&connection, "a").await, None);
        assert_eq!(connection.counts().connected, 2);
    });
}

#[test]
fn a_hung_server_fails_operations_by_their_deadline_and_is_seen_to_be_silent() {
    let (server, connection) = connected();
    run(async {
        connection.set(minute("a"), bytes("x"), AMPLE).await.unwrap();
        server.freeze();
        assert_eq!(connection.get(value_of("a"), 100, SHORT).await, Err(Unavailable::TimedOut));
        while connection.silence().expect("an answer is awaited") < Duration::from_millis(30) {
            tokio::task::yield_now().await;
        }
        assert_eq!((connection.operations(), connection.counts().timed_out), (1, 1));
        server.thaw();
        // The late answer is skipped; this one is the operation's own.
        assert_eq!(connection.get(value_of("b"), 100, AMPLE).await, Ok(None));
        assert_eq!((connection.silence(), connection.counts().late), (None, 1));
        assert_eq!(connection.counts().connected, 1);
    });
}
