//! Each class of memory: the process is made to hold one, what is leased is what the allocator has given
//! out, and those who hold most give way. Clients come over a Unix socket, where the system holds little for
//! them.

use std::fs;
use std::thread;
use std::time::Duration;

use sandarac_test_support::http2::{Http2, INITIAL_WINDOW, usual};
use sandarac_test_support::{Conn, Gate, Listener, Origin, Reply, Sandarac, TempDir, get, reply, within};

use super::{sandarac, site};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Sandarac with 64 MiB before `backend`, which assembles pages.
fn before(dir: &TempDir, backend: &str) -> Sandarac {
    let config = site(backend, "first_byte_timeout = \"120s\"", "[cache]\nmemory = \"64MiB\"\n")
        .replacen("127.0.0.1:0", &format!("unix:{}", dir.join("front").display()), 1)
        .replacen("pool = \"app\"\n", "pool = \"app\"\nfragments = true\n", 1);
    sandarac().config(config).start()
}

/// A client that has had a response.
fn client(proxy: &Sandarac) -> Conn {
    let mut client = proxy.connect();
    client.set_write_patience(Duration::from_millis(500));
    client.get("/small").expect(200);
    client
}

/// Bytes that are leased, of all classes, and bytes that are allocated.
fn holds(proxy: &Sandarac) -> (u64, u64) {
    (proxy.metric("held_bytes"), proxy.metric("process_allocated_memory_bytes"))
}

/// Has `count` clients do `act`, each in a thread of its own, and waits until they hold `least` bytes of a
/// class, and what is leased has grown by what is allocated since, within a tenth.
#[track_caller]
fn lease(proxy: &Sandarac, count: usize, class: &str, least: u64, act: fn(&mut Conn)) -> Vec<Conn> {
    let clients: Vec<Conn> = (0..count).map(|_| client(proxy)).collect();
    let before = holds(proxy);
    let acting: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            thread::spawn(move || {
                act(&mut client);
                client
            })
        })
        .collect();
    let clients = acting.into_iter().map(|acting| acting.join().expect("no panic")).collect();
    within(&format!("{class} to be leased"), || {
        let (held, allocated) = holds(proxy);
        let (held, grown) = (held - before.0.min(held), allocated.saturating_sub(before.1));
        let of_class = proxy.metric_of("held_bytes", class);
        let is_all = held * 10 > grown * 9 && held * 10 < grown * 11;
        if of_class > least && !is_all {
            eprintln!("{class}: {of_class} bytes, {held} leased in all, {grown} allocated");
        }
        (of_class > least && is_all).then_some(())
    });
    clients
}

fn small() -> Reply {
    reply(200).cache("max-age=600").body("small")
}

const UPGRADE: &str = "GET /tunnel HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// An origin that switches to another protocol, and sends 4 MiB of it.
fn tunnels() -> Origin {
    Origin::new(|request| match request.path() {
        "/small" => small(),
        _ => {
            let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
            Reply::verbatim([head.as_bytes(), &vec![b't'; 4 << 20]].concat()).hang()
        }
    })
}

/// Before, a tunnel held 180 KiB, and none of it was counted.
#[test]
fn data_in_tunnels() {
    let origin = tunnels();
    let dir = TempDir::new();
    let proxy = before(&dir, &origin.url());
    let mut clients = lease(&proxy, 40, "tunnels", 3 * MIB, |client| _ = client.send(UPGRADE));
    // It goes on where it was.
    let first = &mut clients[0];
    assert_eq!(first.response_head().status, 101);
    assert!(first.read(4 << 20).iter().all(|byte| *byte == b't'));
}

/// Before, tunnels never gave way.
#[test]
fn tunnels_that_hold_most_and_move_nothing_give_way() {
    let origin = tunnels();
    let dir = TempDir::new();
    let proxy = before(&dir, &origin.url());
    let mut idle = client(&proxy);
    idle.send("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n");
    let clients: Vec<Conn> = (0..250)
        .map(|_| {
            let mut client = client(&proxy);
            client.send(UPGRADE);
            client
        })
        .collect();
    within("some to give way", || (proxy.metric("clients_slow") > 0).then_some(()));
    let of_limit = || proxy.metric("held_bytes") <= proxy.metric("held_limit_bytes") / 2;
    within("the memory to be free", || of_limit().then_some(()));
    drop(clients);
    within("all to be free", || (proxy.metric_of("held_bytes", "tunnels") == 0).then_some(()));
}

/// Before, what waited for a backend over HTTP/1.1, and what was kept to be sent again, was not counted: 170
/// KiB.
#[test]
fn data_ahead_of_a_backend_that_does_not_read() {
    let listener = Listener::new();
    let url = listener.url();
    thread::spawn(move || {
        let mut deaf = Vec::new();
        loop {
            let mut backend = listener.accept();
            if backend.request().path() == "/small" {
                backend
                    .send("HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 5\r\n\r\nsmall");
            }
            deaf.push(backend);
        }
    });
    let dir = TempDir::new();
    let proxy = before(&dir, &url);
    lease(&proxy, 40, "uploads", 2 * MIB, |client| {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\n");
        let _ = client.try_send(vec![b'u'; 8_000_000]);
    });
}

/// Before, they were not counted: 3000 clients held 96 MiB.
#[test]
fn heads_that_are_not_finished() {
    let origin = Origin::new(|_| small());
    let dir = TempDir::new();
    let proxy = before(&dir, &origin.url());
    let mut clients = lease(&proxy, 150, "heads", 3 * MIB, |client| {
        client.send(format!("GET /small HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(30_000)));
    });
    let first = &mut clients[0];
    first.send("\r\n\r\n");
    first.response().expect(200);
}

/// Before, 3000 of them filled the memory, and everybody else got 503.
#[test]
fn heads_that_are_not_finished_give_way_to_requests_that_are() {
    let origin = Origin::new(|request| match request.path() {
        "/small" => small(),
        _ => reply(200).cache("no-store").body("passed"),
    });
    let dir = TempDir::new();
    let proxy = before(&dir, &origin.url());
    let clients: Vec<Conn> = (0..1400)
        .map(|_| {
            let mut client = proxy.connect();
            client.send(format!("GET /small HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(30_000)));
            client
        })
        .collect();
    within("the memory to be full", || (proxy.metric("held_bytes") > 35 * MIB).then_some(()));
    within("another to be served", || (proxy.connect().get("/passed").status == 200).then_some(()));
    drop(clients);
}

/// Before, what was joined to be sent was not counted: 150 KiB a page.
#[test]
fn text_of_pages_on_its_way_to_a_client() {
    let origin = Origin::new(|request| match request.path() {
        "/small" => small(),
        "/page" => {
            let includes: Vec<String> =
                (0..200).map(|at| format!("<esi:include src=\"/fragment/{at}\"/>")).collect();
            reply(200).cache("max-age=600").with("Content-Type", "text/html").body(includes.concat())
        }
        _ => reply(200).cache("max-age=600").with("Content-Type", "text/html").body("f".repeat(15_000)),
    });
    let dir = TempDir::new();
    let proxy = before(&dir, &origin.url());
    let whole = proxy.get("/page").expect(200).body;
    assert_eq!(whole.len(), 3_000_000);
    let mut clients = lease(&proxy, 60, "text", 2 * MIB, |client| {
        client.send(get("/page").to_bytes());
    });
    assert!(clients[0].response().body == whole);
}

/// Before, each interim response took memory that was not counted.
#[test]
fn interim_responses_that_the_client_does_not_take() {
    let origin = Origin::new(|request| match request.path() {
        "/small" => small(),
        _ => {
            let link = "l".repeat(4000);
            Reply::verbatim(format!("HTTP/1.1 103 Early Hints\r\nLink: <{link}>\r\n\r\n").repeat(300)).hang()
        }
    });
    let dir = TempDir::new();
    let proxy = before(&dir, &origin.url());
    lease(&proxy, 200, "responses", 2 * MIB, |client| {
        client.send(get("/").to_bytes());
    });
}

/// Before, a body that lost its place in the store passed its readers by, 280 KiB and more for each, and was
/// counted nowhere.
#[test]
fn bodies_that_pass_their_readers_by() {
    let body = vec![b'b'; 6 << 20];
    let origin = Origin::new(move |request| match request.path() {
        "/small" => small(),
        _ => reply(200).cache("max-age=600").with("Content-Type", "text/css").chunked().body(&body),
    });
    let dir = TempDir::new();
    let proxy = before(&dir, &origin.url());
    let mut clients: Vec<Conn> = (0..60).map(|_| client(&proxy)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(get(&format!("/{number}")).to_bytes());
    }
    let passing = || proxy.metric_of("held_bytes", "passing");
    within("bodies to pass", || (passing() > 500 * KIB).then_some(()));
    let limit = (64 + 48) * MIB * 115 / 100;
    let peak = proxy.peak_resident_bytes();
    assert!(peak < limit, "{} of {} MiB", peak / MIB, limit / MIB);
    drop(clients);
    within("all to be free", || (passing() == 0).then_some(()));
}

/// Before, a list of 10 000 files was counted nowhere: a megabyte for each client, and the lists in the
/// making.
#[test]
fn lists_of_files() {
    let (dir, tree) = (TempDir::new(), TempDir::new());
    fs::create_dir(tree.join("list")).expect("a directory can be made");
    for at in 0..1000 {
        fs::write(tree.join(&format!("list/{at:0>100}")), "").expect("a file can be made");
    }
    let origin = Origin::new(|_| small());
    let tables = format!("[[route]]\nmatch = \"/list\"\nfiles = {:?}\nlisting = true\n", tree.path());
    let config = site(&origin.url(), "", "[cache]\nmemory = \"64MiB\"\n")
        .replacen("127.0.0.1:0", &format!("unix:{}", dir.join("front").display()), 1)
        .replacen("[[route]]", &format!("{tables}\n[[route]]"), 1);
    let proxy = sandarac().config(config).start();
    proxy.get("/list/").expect(200);
    lease(&proxy, 25, "text", 4 * MIB, |client| {
        client.send(get("/list/").to_bytes());
    });
}

/// Before, a full account was not told that clients had left, and stayed full for as long as the backend was
/// silent.
#[test]
fn clients_that_leave_are_noticed_where_memory_is_full() {
    let gate = Gate::new();
    let held = gate.clone();
    let origin = Origin::new(move |request| match request.path() {
        "/small" => small(),
        _ => reply(200).cache("no-store").hold(&held),
    });
    let config = site(&origin.url(), "first_byte_timeout = \"120s\"", "[cache]\nmemory = \"1MiB\"\n");
    let proxy = sandarac().config(config).start();
    let mut clients: Vec<Conn> = (0..1200).map(|_| proxy.connect()).collect();
    clients.iter_mut().for_each(|client| _ = client.send(get("/slow").to_bytes()));
    within("the memory to be full", || (proxy.metric_of("refused", "memory") > 0).then_some(()));
    drop(clients);
    within("them to be noticed", || (proxy.metric("held_bytes") < MIB).then_some(()));
    proxy.get("/small").expect(200);
}

/// Before, 16 000 heads of stored responses that nobody took were held at once: four times what all may hold.
#[test]
fn heads_of_stored_responses_that_nobody_takes() {
    let field = "f".repeat(4000);
    let origin = Origin::new(move |request| match request.path() {
        "/small" => small(),
        _ => (0..13).fold(small(), |reply, at| reply.with(&format!("X-Long-{at}"), &field)),
    });
    let config =
        site(&origin.url(), "", "[cache]\nmemory = \"64MiB\"\n").replacen("\n", "\nhttp2 = true\n", 1);
    let proxy = sandarac().config(config).start();
    proxy.get("/long").expect(200);
    let clients: Vec<Http2> = (0..700)
        .map(|_| {
            let conn = proxy.connect();
            conn.shrink_receive_buffer();
            let mut client = Http2::over(conn, &[]);
            for _ in 0..30 {
                client.head(&usual("HEAD", "/long"), true);
            }
            client
        })
        .collect();
    within("them to give way", || (proxy.metric("clients_slow") > 0).then_some(()));
    within("the memory to be free", || (proxy.metric("held_bytes") < 40 * MIB).then_some(()));
    proxy.get("/small").expect(200);
    let peak = proxy.peak_resident_bytes();
    assert!(peak < 132 * MIB, "{} MiB", peak / MIB);
    drop(clients);
}

/// Has clients `ask` one after the other for a stored page whose head has 52 KB, and read nothing of it.
/// Meanwhile, the process holds no more than it may, and an eighth.
#[track_caller]
fn beyond_the_limit<C>(count: usize, ask: impl Fn(Conn) -> C) {
    let field = "f".repeat(4000);
    let origin = Origin::new(move |request| match request.path() {
        "/small" => small(),
        _ => (0..13).fold(small(), |reply, at| reply.with(&format!("X-Long-{at}"), &field)),
    });
    let dir = TempDir::new();
    let config = site(&origin.url(), "", "[cache]\nmemory = \"8MiB\"\n")
        .replacen("127.0.0.1:0", &format!("unix:{}", dir.join("front").display()), 1)
        .replacen("\n", "\nhttp2 = true\n", 1);
    let proxy = sandarac().config(config).start();
    (0..3).for_each(|_| _ = proxy.get("/long").expect(200));
    let limit = proxy.metric("held_limit_bytes");
    let mut clients = Vec::new();
    while clients.len() < count {
        clients.extend((0..20).map(|_| ask(proxy.connect())));
        let held = proxy.metric("held_bytes");
        assert!(held < limit / 8 * 9, "{held} of {limit} bytes by {} clients", clients.len());
    }
    within("some to give way", || (proxy.metric("clients_slow") > 0).then_some(()));
    proxy.get("/small").expect(200);
}

/// Before, a client whose socket took no more was cut off seconds later, and others came meanwhile.
#[test]
fn clients_that_take_nothing_beyond_the_limit_give_way_at_once() {
    let asks = get("/long").to_bytes().repeat(20);
    beyond_the_limit(800, |mut client| {
        client.send(&asks);
        client
    });
}

/// The same over HTTP/2.
#[test]
fn clients_of_http2_that_take_nothing_beyond_the_limit_give_way_at_once() {
    beyond_the_limit(400, |conn| {
        let mut client = Http2::over(conn, &[]);
        (0..30).for_each(|_| _ = client.head(&usual("HEAD", "/long"), true));
        client
    });
}

/// Sandarac with so much memory, over HTTP/2, before an origin of a stored page of `len` bytes, and a client
/// that had it.
fn stored(memory: &str, len: usize) -> (Sandarac, Origin) {
    let origin = Origin::new(move |_| reply(200).cache("max-age=600").body("s".repeat(len)));
    let config = site(&origin.url(), "", &format!("[cache]\nmemory = \"{memory}\"\n")).replacen(
        "\n",
        "\nhttp2 = true\n",
        1,
    );
    let proxy = sandarac().config(config).start();
    let mut first = Http2::to(proxy.address());
    let page = first.get("/page", &[]);
    assert_eq!(first.response(page).body.len(), len);
    (proxy, origin)
}

/// Clients whose streams let so many bytes of a body through; each asks for the page so often.
fn closed(proxy: &Sandarac, count: usize, window: u32, streams: usize) -> Vec<Http2> {
    let client = |_| {
        let mut client = Http2::over(proxy.connect(), &[(INITIAL_WINDOW, window)]);
        client.gives_windows = false;
        ask(&mut client, streams);
        client
    };
    (0..count).map(client).collect()
}

/// Asks for the page so often, if the connection takes it.
fn ask(client: &mut Http2, streams: usize) {
    let asks = (0..streams).map(|_| client.request(&usual("GET", "/page"), b"").1);
    let asks = asks.collect::<Vec<_>>().concat();
    let _ = client.try_send(asks);
}

/// Before, a hundred streams of each connection held 70 KiB, and nothing of that was counted.
#[test]
fn streams_whose_stored_responses_wait_for_a_window() {
    let (proxy, _origin) = stored("64MiB", 2000);
    let mut clients = closed(&proxy, 120, 0, 0);
    clients.iter_mut().for_each(|client| _ = client.settle());
    let before = holds(&proxy);
    clients.iter_mut().for_each(|client| ask(client, 100));
    within("responses to be leased", || {
        let (held, allocated) = holds(&proxy);
        let (held, grown) = (held - before.0.min(held), allocated.saturating_sub(before.1));
        let is_all = held * 10 > grown * 9 && held * 10 < grown * 11;
        (proxy.metric_of("held_bytes", "responses") > 5 * MIB && is_all).then_some(())
    });
    drop(clients);
    within("all to be free", || (proxy.metric("held_bytes") == 0).then_some(()));
}

/// Before, 800 connections held 56 MiB of 17, and nobody gave way.
#[test]
fn streams_whose_stored_responses_find_no_room_are_refused_and_give_way() {
    let (proxy, _origin) = stored("1MiB", 2000);
    let clients = closed(&proxy, 800, 0, 100);
    within("some to be refused", || (proxy.metric_of("refused", "memory") > 0).then_some(()));
    // A client that opens its windows is served meanwhile.
    let mut reader = Http2::to(proxy.address());
    for _ in 0..50 {
        let page = reader.get("/page", &[]);
        assert_eq!(reader.response(page).body.len(), 2000);
    }
    within("some to give way", || (proxy.metric("clients_slow") > 0).then_some(()));
    within("the memory to be free", || (proxy.metric("held_bytes") < 10 * MIB).then_some(()));
    reader.settle();
    drop(clients);
}
