//! Sessions in memory: slow clients, and a transport that holds bytes back.

use super::connection::{NewConnection, WaitedFor, poll_room};
use super::session::serve;
use crate::account::{Account, tests::Cache};
use crate::crowding::Cores;
use crate::held_transport::Held;
use crate::response::{Base, Body, BodyBroken, Length, Responder, Response};
use crate::service::{AcceptTls, Answer, Client, Incoming, Peer, Refused, Request, Service, SessionLimits};
use crate::sessions::Sessions;
use crate::tls::HandshakeFault;
use crate::tls::tests::{configs, name};
use crate::{BodyStep, Conn, ListenerId, Meter, MinimumRate, Stream, Timer, Transport};
use bytes::Bytes;
use rustix::fs::{MemfdFlags, memfd_create};
use sandarac_message::{Fields, FieldsBuf, FileRange, Mapping, OpenFile, Piece};
use sandarac_wire::h1::Limits;
use sandarac_wire::h2;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::runtime::{Builder, LocalOptions};

const UNHURRIED: Duration = Duration::from_secs(3600);

fn limits() -> SessionLimits {
    let none = MinimumRate { bytes: 0, after: UNHURRIED };
    SessionLimits {
        head: Limits::default(),
        idle_timeout: UNHURRIED,
        head_timeout: UNHURRIED,
        body_timeout: UNHURRIED,
        send_timeout: UNHURRIED,
        min_rate_in: none,
        min_rate_out: none,
        min_rate_under_pressure: MinimumRate { bytes: u64::MAX, after: Duration::ZERO },
        min_rate_when_full: MinimumRate { bytes: u64::MAX, after: Duration::ZERO },
        max_requests: u32::MAX,
    }
}

const BODY: usize = 8 << 20;

/// The server's end of a connection, and the client's.
fn pair() -> (Stream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (Stream::Unix(tokio::net::UnixStream::from_std(ours).unwrap()), theirs)
}

/// Runs `test` with a connection that has [`BODY`] bytes queued for its client, and with the client's end of
/// it.
fn with_a_client_that_is_waited_for(test: impl AsyncFnOnce(Conn, Timer, UnixStream)) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (ours, theirs) = pair();
        let mut conn = Conn::new(ours);
        conn.enqueue(Bytes::from(vec![b'x'; BODY]).into());
        test(conn, Timer::new(), theirs).await;
    });
}

#[test]
fn the_time_to_take_something_ends_when_there_is_room_again() {
    with_a_client_that_is_waited_for(async |mut conn, mut timer, mut theirs| {
        let calm = AtomicBool::new(false);
        let (limits, mut rate) = (limits(), waited_for());
        let mut room = |conn: &mut Conn, timer: &mut Timer, cx: &mut Context<'_>| {
            poll_room(cx, conn, timer, BODY / 2, &limits, &calm, &mut rate)
        };
        let waits = poll_fn(|cx| Poll::Ready(room(&mut conn, &mut timer, cx).is_pending())).await;
        assert!(waits && timer.is_set());
        let reader = std::thread::spawn(move || {
            theirs.read_exact(&mut vec![0; BODY / 2]).unwrap();
            theirs
        });
        poll_fn(|cx| room(&mut conn, &mut timer, cx)).await.unwrap();
        assert!(!timer.is_set(), "the next wait, for the origin, would have what is left of it");
        let _theirs = reader.join().unwrap();
        // A deadline set for something else is left alone.
        timer.set(UNHURRIED);
        poll_fn(|cx| room(&mut conn, &mut timer, cx)).await.unwrap();
        assert!(timer.is_set());
    });
}

#[test]
fn memory_pressure_that_begins_while_a_client_is_waited_for_cuts_it_off() {
    with_a_client_that_is_waited_for(async |mut conn, mut timer, _theirs| {
        static PRESSURE: AtomicBool = AtomicBool::new(false);
        let (limits, mut rate) = (limits(), waited_for());
        let room = poll_fn(|cx| {
            let room = poll_room(cx, &mut conn, &mut timer, 0, &limits, &PRESSURE, &mut rate);
            PRESSURE.store(true, Ordering::Relaxed);
            room
        });
        let room = room.await;
        assert_eq!(room.unwrap_err().kind(), io::ErrorKind::TimedOut);
    });
}

/// Regression: clients that shared a busy machine lost files, although to cut them off freed nothing.
#[test]
fn a_client_that_waits_for_a_file_is_not_hurried_by_memory_pressure() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (ours, _theirs) = pair();
        let mut conn = Conn::new(ours);
        let file: Arc<OpenFile> =
            Arc::new(File::from(memfd_create("body", MemfdFlags::CLOEXEC).unwrap()).into());
        file.set_len(BODY as u64).unwrap();
        conn.enqueue(Piece::File(FileRange { file, start: 0, len: BODY, may_wait: false }));
        let (pressure, mut timer, mut rate) = (AtomicBool::new(true), Timer::new(), waited_for());
        let waits = poll_fn(|cx| {
            let room = poll_room(cx, &mut conn, &mut timer, 0, &limits(), &pressure, &mut rate);
            Poll::Ready(room.is_pending())
        });
        assert!(waits.await);
    });
}

fn account() -> Arc<Account> {
    Account::new(Cache::of(1 << 20))
}

/// A client that holds nothing yet.
fn waited_for() -> WaitedFor {
    WaitedFor::new(&account().connection())
}

/// Answers `/whole` and `/file` in place, and everything else with the content of the request body.
struct Echo {
    pressure: AtomicBool,
    account: Arc<Account>,
    file: Arc<OpenFile>,
    /// Set when the response to `/file-until-close` has ended.
    ended: Arc<AtomicBool>,
    tls: Option<AcceptTls>,
}

/// Bytes in the file.
const FILE: usize = 3 << 20;

/// Bytes that are announced of it where they are more than it has, and than a socket takes.
const LONG: usize = 24 << 20;

impl Echo {
    fn new() -> Rc<Echo> {
        Echo::with(None)
    }

    fn with(tls: Option<AcceptTls>) -> Rc<Echo> {
        let file = File::from(memfd_create("test", MemfdFlags::CLOEXEC).unwrap());
        file.write_all_at(&content(), 0).unwrap();
        let (pressure, ended) = (AtomicBool::new(false), Arc::default());
        let account = account();
        Rc::new(Echo { pressure, account, file: Arc::new(file.into()), ended, tls })
    }
}

fn content() -> Vec<u8> {
    (0..FILE).map(|at| (at % 251) as u8).collect()
}

/// A body consisting of these pieces.
struct Pieces(std::vec::IntoIter<Piece>);

impl Pieces {
    fn new<const N: usize>(pieces: [Piece; N]) -> Pieces {
        Pieces(Vec::from(pieces).into_iter())
    }
}

fn text(text: &'static str) -> Piece {
    Bytes::from_static(text.as_bytes()).into()
}

impl Body for Pieces {
    fn poll_piece(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Piece, BodyBroken>>> {
        Poll::Ready(self.0.next().map(Ok))
    }

    fn trailers(&self) -> Option<FieldsBuf> {
        None
    }
}

impl Meter for Echo {
    fn wrote(&self, _: u64) {}
}

impl Service for Echo {
    type Deferred = ();

    fn limits(&self, _: ListenerId) -> SessionLimits {
        limits()
    }

    fn number(&self) -> u64 {
        1
    }

    fn expects_proxy_header(&self, _: ListenerId) -> Option<bool> {
        Some(false)
    }

    fn tls(&self, _: ListenerId) -> Option<AcceptTls> {
        self.tls.clone()
    }

    fn takes_http2(&self, _: ListenerId) -> bool {
        false
    }

    fn http2_fault(&self, _: &Peer, _: h2::Fault, _: bool) {}

    fn ignored(&self, _: &Refused) {}

    fn handshake_ended(&self, _: &Peer) {}

    fn handshake_failed(&self, _: &Peer, _: &HandshakeFault) {}

    fn proxy_header_missing(&self, _: &Peer) {}

    fn admit(&self) -> bool {
        true
    }

    fn cores(&self) -> &Cores {
        unreachable!("there is one")
    }

    fn admit_client(&self, _: &Peer) -> Result<Option<Box<dyn std::any::Any>>, ()> {
        Ok(None)
    }

    fn gave_way(&self) {}

    fn refused(&self) {}

    fn closed(&self) {}

    fn cut_off(&self) {}

    fn body_truncated(&self) {}

    fn account(&self) -> &Arc<Account> {
        &self.account
    }

    fn memory_pressure(&self) -> &AtomicBool {
        &self.pressure
    }

    fn accept_failed(&self, _: &io::Error) {}

    fn answer(&self, _: &Peer, request: &Request<'_>, client: &mut impl Responder) -> Answer<()> {
        let fields: FieldsBuf = [("Content-Type", "text/plain")].into_iter().collect();
        let (length, body) = match request.head.target {
            b"/whole" => (6, Pieces::new([text("who"), text("le\n")])),
            b"/file" => {
                let range = |start, len| {
                    Piece::File(FileRange {
                        file: self.file.clone(),
                        start: start as u64,
                        len,
                        may_wait: false,
                    })
                };
                let pieces = [text("before "), range(10, FILE - 10), range(0, 10), text(" behind")];
                (FILE as u64 + 14, Pieces::new(pieces))
            }
            // The memory is not what is in the file, so that both can be told apart.
            b"/mapped" => {
                let mapping = Mapping::new(inverted().into(), self.file.clone(), 0);
                let piece = Piece::from(mapping);
                let pieces = [text("before "), piece.slice(10..FILE), piece.slice(0..10), text(" behind")];
                (FILE as u64 + 14, Pieces::new(pieces))
            }
            _ => return Answer::Deferred(()),
        };
        client.begin(Response::new(200, b"OK", Base::Owned(fields), Length::Known(length)));
        client.send(body);
        Answer::Answered
    }

    async fn exchange(&self, client: &mut dyn Client, request: Box<Incoming<()>>) {
        if request.head.view().target == b"/file-until-close" {
            client.begin(Response::new(200, b"OK", Base::Owned(FieldsBuf::new()), Length::Unknown));
            let file =
                Piece::File(FileRange { file: self.file.clone(), start: 0, len: LONG, may_wait: false });
            poll_fn(|cx| {
                Poll::Ready(client.share(cx, file.clone()).and_then(|()| client.end(cx, Fields::default())))
            })
            .await
            .expect("the socket takes the beginning, and the rest waits");
            self.ended.store(true, Ordering::Release);
            return;
        }
        let fields: FieldsBuf = [("X-Target", request.head.view().target)].into_iter().collect();
        client.interim(&mut Context::from_waker(std::task::Waker::noop()), 103, b"", Fields::default());
        client.begin(Response::new(200, b"OK", Base::Owned(fields), Length::Unknown));
        poll_fn(|cx| {
            loop {
                ready!(client.poll_room(cx, 100)).unwrap();
                match ready!(client.poll_body(cx)).unwrap() {
                    BodyStep::Data(range) => {
                        let data = client.body_data(&range).to_vec();
                        client.write(cx, &data).unwrap();
                        client.consume_body(&range);
                    }
                    BodyStep::End(_) => {
                        client.end(cx, Fields::default()).unwrap();
                        return Poll::Ready(());
                    }
                }
            }
        })
        .await;
    }

    fn refuse(&self, _: &Peer, _: &Refused, _: &[u8], client: &mut impl Responder) {
        client.begin(Response::new(400, b"Bad Request", Base::Owned(FieldsBuf::new()), Length::Known(0)));
    }
}

/// The bytes received over `transport` in response to `request`, until the connection ends.
fn exchanged(service: Rc<Echo>, transport: impl FnOnce(Stream) -> Transport, request: Vec<u8>) -> Vec<u8> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(async {
        let (ours, mut theirs) = pair();
        let client = std::thread::spawn(move || {
            let mut sender = theirs.try_clone().unwrap();
            let sending = std::thread::spawn(move || sender.write_all(&request));
            let mut received = Vec::new();
            theirs.read_to_end(&mut received).unwrap();
            sending.join().unwrap().unwrap();
            received
        });
        let new = NewConnection { transport: transport(ours), remote: None, listener: ListenerId::unused() };
        serve(new, service, Rc::new(Sessions::default()).enter()).await;
        tokio::task::spawn_blocking(|| client.join().unwrap()).await.unwrap()
    })
}

/// The bytes that a client receives over TLS in response to `request`, and how the connection ends.
fn exchanged_over_tls(request: Vec<u8>, prepare: impl FnOnce(&Echo)) -> (Vec<u8>, io::Result<usize>) {
    let (server, client) = configs(&rustls::version::TLS13);
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(async {
        let (ours, theirs) = pair();
        let client = std::thread::spawn(move || {
            let tls = rustls::ClientConnection::new(client, name()).unwrap();
            let mut stream = rustls::StreamOwned::new(tls, theirs);
            stream.write_all(&request).unwrap();
            let mut received = Vec::new();
            let end = stream.read_to_end(&mut received);
            (received, end)
        });
        let service =
            Echo::with(Some(AcceptTls { config: server, timeout: UNHURRIED, max_handshakes: 1024 }));
        prepare(&service);
        let new = NewConnection { transport: ours.into(), remote: None, listener: ListenerId::unused() };
        serve(new, service, Rc::new(Sessions::default()).enter()).await;
        tokio::task::spawn_blocking(|| client.join().unwrap()).await.unwrap()
    })
}

/// The session does not know whether its transport is TLS: responses in place, an exchange with a body, and
/// files go out as in clear.
#[test]
fn a_session_over_tls_is_that_in_clear() {
    let body: Vec<u8> = (0..20_000_u32).map(|at| b'a' + (at % 26) as u8).collect();
    let mut request =
        b"GET /whole HTTP/1.1\r\nHost: a\r\n\r\nGET /whole HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    request.extend_from_slice(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n");
    request.extend_from_slice(&body);
    request.extend_from_slice(FILES.as_bytes());
    let (received, end) = exchanged_over_tls(request, |_| ());
    assert_eq!(end.unwrap(), received.len(), "the end is in order");
    let whole = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nwhole\n";
    assert!(received.starts_with(whole.repeat(2).as_bytes()));
    let at = received.windows(7).position(|bytes| bytes == b"before ").expect("the file");
    assert!(received[at + 7..].starts_with(&content()[10..]));
    assert!(received.ends_with(b"whole\n"));
}

#[test]
fn a_body_that_breaks_off_over_tls_does_not_end_in_order() {
    let (received, end) = exchanged_over_tls(FILES.into(), |service| {
        service.file.set_len(FILE as u64 / 2).unwrap();
    });
    let at = received.windows(7).position(|bytes| bytes == b"before ").expect("the first piece");
    assert!(content()[10..FILE / 2].starts_with(&received[at + 7..]));
    assert_eq!(end.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

/// GET in clear on a port for TLS.
#[test]
fn http_in_clear_is_told_apart_from_tls() {
    let (server, _) = configs(&rustls::version::TLS13);
    let service = Echo::with(Some(AcceptTls { config: server, timeout: UNHURRIED, max_handshakes: 1024 }));
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    let received = String::from_utf8(exchanged(service, Transport::Plain, request)).unwrap();
    assert!(received.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{received}");
}

fn held(stream: Stream) -> Transport {
    Transport::Held(Box::new(Held::new(stream, b"")))
}

/// A transport that holds bytes back and delivers a few at a time changes nothing that a client sees.
#[test]
fn a_transport_may_hold_bytes_back_and_deliver_them_in_odd_pieces() {
    let body: Vec<u8> = (0..20_000_u32).map(|at| b'a' + (at % 26) as u8).collect();
    let mut request =
        b"GET /whole HTTP/1.1\r\nHost: a\r\n\r\nGET /whole HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    request.extend_from_slice(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n");
    request.extend_from_slice(&body);
    request.extend_from_slice(b"GET /whole HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let whole = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nwhole\n";
    let received = exchanged(Echo::new(), held, request.clone());
    let text = String::from_utf8(received).unwrap();
    let rest = text.strip_prefix(&whole.repeat(2)).expect("two answers in place come first");
    let echo =
        "HTTP/1.1 103 \r\n\r\nHTTP/1.1 200 OK\r\nX-Target: /echo\r\nTransfer-Encoding: chunked\r\n\r\n";
    let rest = rest.strip_prefix(echo).unwrap_or_else(|| panic!("{}", &rest[..rest.len().min(300)]));
    let (chunks, rest) = rest.split_once("\r\n0\r\n\r\n").expect("the last chunk");
    let mut lines = chunks.split("\r\n");
    let mut echoed = String::new();
    while let (Some(size), Some(data)) = (lines.next(), lines.next()) {
        assert_eq!(usize::from_str_radix(size, 16).unwrap(), data.len());
        echoed.push_str(data);
    }
    assert_eq!(echoed.as_bytes(), body);
    let last = whole.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    assert_eq!(rest, last);

    let plain = String::from_utf8(exchanged(Echo::new(), Transport::Plain, request)).unwrap();
    assert!(plain.starts_with(&whole.repeat(2)), "{plain}");
    assert!(plain.ends_with(&last), "{plain}");
}

/// Regression: a transport that could not write its last words at once, close_notify in TLS, was closed
/// without them.
#[test]
fn the_last_words_of_a_transport_are_waited_for() {
    let words = b"a few more than are written at once";
    let transport = |stream| Transport::Held(Box::new(Held::new(stream, words)));
    let request = b"GET /whole HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".to_vec();
    let received = exchanged(Echo::new(), transport, request);
    assert!(received.ends_with(&[b"whole\n", &words[..]].concat()), "{}", String::from_utf8_lossy(&received));
}

/// Two requests, to check what follows a file.
const FILES: &str =
    "GET /file HTTP/1.1\r\nHost: a\r\n\r\nGET /whole HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

#[test]
fn a_range_of_a_file_goes_out_in_its_place_among_bytes() {
    for transport in [Transport::Plain, held] {
        let received = exchanged(Echo::new(), transport, FILES.into());
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\nbefore ",
            FILE + 14
        );
        let rest = received.strip_prefix(head.as_bytes()).expect("head and first piece");
        assert!(rest[..FILE - 10] == content()[10..], "the first range");
        let rest = &rest[FILE - 10..];
        assert_eq!(&rest[..10], &content()[..10], "the second range");
        let rest = String::from_utf8_lossy(&rest[10..]);
        assert!(rest.starts_with(" behindHTTP/1.1 200 OK\r\n"), "{rest}");
        assert!(rest.ends_with("whole\n"), "{rest}");
    }
}

/// The bytes of a mapping.
fn inverted() -> Vec<u8> {
    content().iter().map(|byte| !byte).collect()
}

#[test]
fn a_mapping_is_sent_as_a_file_in_clear_and_from_memory_where_it_is_short_or_transformed() {
    for (transport, long) in [Transport::Plain, held].into_iter().zip([content(), inverted()]) {
        let received = exchanged(Echo::new(), transport, FILES.replace("/file", "/mapped").into());
        let at = received.windows(7).position(|bytes| bytes == b"before ").expect("the first piece") + 7;
        assert!(received[at..][..FILE - 10] == long[10..], "the long range");
        let rest = &received[at + FILE - 10..];
        assert_eq!(&rest[..10], &inverted()[..10], "the short range");
        let rest = String::from_utf8_lossy(&rest[10..]);
        assert!(rest.starts_with(" behindHTTP/1.1 200 OK\r\n"), "{rest}");
        assert!(rest.ends_with("whole\n"), "{rest}");
    }
}

#[test]
fn a_file_that_has_become_shorter_ends_the_connection() {
    for transport in [Transport::Plain, held] {
        let service = Echo::new();
        service.file.set_len(FILE as u64 / 2).unwrap();
        let received = exchanged(service, transport, FILES.into());
        let at = received.windows(7).position(|bytes| bytes == b"before ").expect("the first piece");
        assert!(content()[10..FILE / 2].starts_with(&received[at + 7..]), "nothing follows what there was");
    }
}

/// Regression: the end of the connection is that of the body here, and had passed for one in order.
#[test]
fn a_file_that_has_become_shorter_resets_a_connection_whose_end_is_that_of_the_body() {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut theirs = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().unwrap();
        ours.set_nonblocking(true).unwrap();
        let service = Echo::new();
        service.file.set_len(LONG as u64 / 2).unwrap();
        let ended = service.ended.clone();
        let client = std::thread::spawn(move || {
            theirs.write_all(b"GET /file-until-close HTTP/1.0\r\n\r\n").unwrap();
            while !ended.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            theirs.read_to_end(&mut Vec::new()).map_err(|error| error.kind())
        });
        let transport = Stream::accepted(ours).into();
        let new = NewConnection { transport, remote: None, listener: ListenerId::unused() };
        serve(new, service, Rc::new(Sessions::default()).enter()).await;
        let end = tokio::task::spawn_blocking(|| client.join().unwrap()).await.unwrap();
        assert_eq!(end, Err(io::ErrorKind::ConnectionReset));
    });
}
