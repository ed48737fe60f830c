//! TLS over loopback connections, between our two sides and with rustls's own blocking streams.

use super::{ClientSide, HandshakeFault, ServerSide, TlsPeer, TlsStream, accept, connect};
use crate::account::tests::Cache;
use crate::account::{Account, Held};
use crate::byte_queue::ByteQueue;
use crate::sessions::Sessions;
use crate::{Stream, Timer, Unread};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, HandshakeKind, NamedGroup, ProtocolVersion, RootCertStore, ServerConfig};
use std::future::poll_fn;
use std::io::{self, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, LocalOptions};

/// Both sides' configurations, with a certificate for `example.org`.
pub(crate) fn configs(
    version: &'static rustls::SupportedProtocolVersion,
) -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let certified = rcgen::generate_simple_self_signed(["example.org".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let chain = vec![certified.cert.der().clone()];
    let mut roots = RootCertStore::empty();
    roots.add(chain[0].clone()).unwrap();
    let server = ServerConfig::builder_with_protocol_versions(&[version])
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let client = ClientConfig::builder_with_protocol_versions(&[version])
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(server), Arc::new(client))
}

pub(crate) fn name() -> ServerName<'static> {
    "example.org".try_into().unwrap()
}

/// A client's socket, and the accepted end of its connection.
fn sockets() -> (TcpStream, Stream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    accepted.set_nonblocking(true).unwrap();
    (client, Stream::accepted(accepted))
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(test)
}

type Accepted = Result<(TlsStream<ServerSide>, TlsPeer), HandshakeFault>;

async fn accept_on(stream: Stream, config: &Arc<ServerConfig>) -> Accepted {
    let mut timer = Timer::new();
    timer.set(Duration::from_secs(20));
    accept_until(stream, config, &mut timer).await
}

async fn accept_until(stream: Stream, config: &Arc<ServerConfig>, timer: &mut Timer) -> Accepted {
    let account = Account::new(Cache::of(48 << 20));
    accept_within(stream, config, timer, &account).await
}

async fn accept_within(
    stream: Stream,
    config: &Arc<ServerConfig>,
    timer: &mut Timer,
    account: &Arc<Account>,
) -> Accepted {
    let sessions = Sessions::default();
    let running = sessions.handshakes.enter(1024, Waker::noop());
    let holder = account.connection();
    accept(stream, ByteQueue::default(), config, &sessions, &running, timer, &holder).await
}

/// Both sides of a connection after the handshake.
async fn connected(
    server: &Arc<ServerConfig>,
    client: &Arc<ClientConfig>,
) -> (TlsStream<ClientSide>, TlsStream<ServerSide>, TlsPeer) {
    let (socket, accepted) = sockets();
    socket.set_nonblocking(true).unwrap();
    let connecting = connect(Stream::accepted(socket), client.clone(), name());
    let (client, server) = tokio::join!(
        async {
            let mut tls = connecting.await.unwrap();
            // The last message of the handshake otherwise goes with the first data.
            poll_fn(|cx| tls.poll_flush(cx)).await.unwrap();
            tls
        },
        async {
            let (mut tls, peer) = accept_on(accepted, server).await.unwrap();
            // As the session does while it waits for a request.
            poll_fn(|cx| tls.poll_flush(cx)).await.unwrap();
            (tls, peer)
        }
    );
    (client, server.0, server.1)
}

async fn read<S: super::side::Side>(tls: &mut TlsStream<S>, most: usize) -> io::Result<Vec<u8>> {
    let mut buf = vec![0; most];
    let read = poll_fn(|cx| tls.poll_read(cx, &mut buf)).await?;
    buf.truncate(read);
    Ok(buf)
}

async fn write<S: super::side::Side>(tls: &mut TlsStream<S>, mut slices: &[&[u8]]) {
    while let Some((first, rest)) = slices.split_first() {
        slices = rest;
        let mut first = *first;
        while !first.is_empty() {
            let io = [IoSlice::new(first)];
            let written = poll_fn(|cx| tls.poll_write_vectored(cx, &io)).await.unwrap();
            first = &first[written..];
        }
    }
    poll_fn(|cx| tls.poll_flush(cx)).await.unwrap();
}

/// Bytes without a period that a mistake of order could hide in.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u32).flat_map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()).take(len).collect()
}

/// The header of a record with so many bytes of a handshake.
fn record(len: u16) -> [u8; 5] {
    let [high, low] = len.to_be_bytes();
    [22, 3, 1, high, low]
}

/// Regression: 64 KiB of a ClientHello that does not end were kept for each of thousands of connections, and
/// counted nowhere.
#[test]
fn an_unfinished_hello_is_counted_and_none_is_longer_than_16_kib() {
    run(async {
        let (server, _) = configs(&TLS13);
        let account = Account::new(Cache::of(48 << 20));
        let (mut socket, accepted) = sockets();
        // A ClientHello of 32 KiB (RFC 8446 §4).
        let mut hello = vec![0; 15_000];
        hello[..4].copy_from_slice(&[1, 0, 0x80, 0]);
        socket.write_all(&record(15_000)).unwrap();
        socket.write_all(&hello).unwrap();
        let mut timer = Timer::new();
        timer.set(Duration::from_secs(20));
        let mut accepting = pin!(accept_within(accepted, &server, &mut timer, &account));
        let counted = poll_fn(|cx| match accepting.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(false),
            Poll::Pending if account.of(Held::Handshakes) > 15_000 => Poll::Ready(true),
            Poll::Pending => Poll::Pending,
        });
        assert!(counted.await);
        socket.write_all(&record(2000)).unwrap();
        socket.write_all(&[0; 2000]).unwrap();
        let refused = accepting.await.err().expect("it is too long");
        assert_eq!(refused.to_string(), "the ClientHello is longer than 16 KiB");
        assert_eq!(account.bytes(), 0);
    });
}

#[test]
fn data_arrives_whole_and_in_order_in_both_versions() {
    for version in [&TLS12, &TLS13] {
        run(async {
            let (server, client) = configs(version);
            let (mut client, mut server, peer) = connected(&server, &client).await;
            assert_eq!(peer.version, version.version);
            assert_eq!(peer.server_name.as_deref(), Some("example.org"));
            let sent = pattern(1 << 20);
            let receive = async {
                let mut received = Vec::new();
                // Readers with little room get the rest of a record later.
                while received.len() < sent.len() {
                    let piece = read(&mut server, 1 + received.len() % 40_000).await.unwrap();
                    assert!(!piece.is_empty());
                    received.extend(piece);
                }
                received
            };
            let slices = [&sent[..100], &sent[100..]];
            let ((), received) = tokio::join!(write(&mut client, &slices), receive);
            assert!(received == sent);
            write(&mut server, &[b"an ", b"answer"]).await;
            assert_eq!(read(&mut client, 100).await.unwrap(), b"an answer");
        });
    }
}

#[test]
fn the_hybrid_group_is_preferred_and_the_second_connection_resumes() {
    run(async {
        let (server, client) = configs(&TLS13);
        let (mut first, mut accepted, peer) = connected(&server, &client).await;
        assert_eq!(peer.group, Some(NamedGroup::X25519MLKEM768));
        assert!(!peer.resumed);
        // Tickets follow the handshake.
        write(&mut accepted, &[b"hello"]).await;
        assert_eq!(read(&mut first, 10).await.unwrap(), b"hello");
        let (second, _, peer) = connected(&server, &client).await;
        assert!(peer.resumed);
        assert_eq!(second.state().handshake_kind(), Some(HandshakeKind::Resumed));
        assert_eq!(peer.server_name.as_deref(), Some("example.org"));
    });
}

#[test]
fn an_end_without_close_notify_is_a_cut() {
    run(async {
        let (server, client) = configs(&TLS13);
        let (client_tls, mut server_tls, _) = connected(&server, &client).await;
        client_tls.reset_when_dropped(true);
        client_tls.reset_when_dropped(false);
        drop(client_tls);
        assert_eq!(read(&mut server_tls, 10).await.unwrap(), b"", "an orderly end");

        let (socket, accepted) = sockets();
        let cut = thread::spawn(move || {
            let mut socket = socket;
            let mut tls = rustls::ClientConnection::new(client, name()).unwrap();
            while tls.is_handshaking() || tls.wants_write() {
                tls.complete_io(&mut socket).unwrap();
            }
        });
        let (mut server_tls, _) = accept_on(accepted, &server).await.unwrap();
        let error = read(&mut server_tls, 10).await.unwrap_err();
        // A socket closed with unread tickets resets the connection.
        assert!(matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset));
        cut.join().unwrap();
    });
}

#[test]
fn a_blocking_client_sees_an_orderly_end() {
    let (server, client) = configs(&TLS13);
    let (socket, accepted) = sockets();
    let asked = thread::spawn(move || {
        let tls = rustls::ClientConnection::new(client, name()).unwrap();
        let mut stream = rustls::StreamOwned::new(tls, socket);
        stream.write_all(b"question").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    });
    run(async {
        let (mut tls, _) = accept_on(accepted, &server).await.unwrap();
        assert_eq!(read(&mut tls, 100).await.unwrap(), b"question");
        write(&mut tls, &[b"answer"]).await;
    });
    assert_eq!(asked.join().unwrap(), b"answer");
}

#[test]
fn tickets_are_not_data_and_close_notify_is_the_end() {
    run(async {
        let (server, client) = configs(&TLS13);
        let (mut client, mut server, _) = connected(&server, &client).await;
        // The tickets have arrived.
        assert_eq!(client.unread(), Unread::Nothing);
        write(&mut server, &[b"unasked"]).await;
        until(|| client.unread() == Unread::Data).await;
        assert_eq!(read(&mut client, 10).await.unwrap(), b"unasked");
        assert_eq!(client.unread(), Unread::Nothing);
        drop(server);
        until(|| client.unread() == Unread::End).await;
    });
}

/// Waits for what another socket has sent.
async fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn a_handshake_in_single_bytes_succeeds() {
    let (server, client) = configs(&TLS13);
    let (socket, accepted) = sockets();
    socket.set_nodelay(true).unwrap();
    let slow = thread::spawn(move || {
        struct OneByOne(TcpStream);
        impl Read for OneByOne {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                self.0.read(buf)
            }
        }
        impl Write for OneByOne {
            fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
                self.0.write(&buf[..buf.len().min(1)])
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let tls = rustls::ClientConnection::new(client, name()).unwrap();
        let mut stream = rustls::StreamOwned::new(tls, OneByOne(socket));
        stream.write_all(b"x").unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    });
    run(async {
        let (mut tls, _) = accept_on(accepted, &server).await.unwrap();
        assert_eq!(read(&mut tls, 10).await.unwrap(), b"x");
    });
    slow.join().unwrap();
}

#[test]
fn garbage_ends_the_handshake_with_an_alert() {
    let (server, _) = configs(&TLS13);
    for garbage in
        [&b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\xff"[..], b"\x16\x03\x01\xff\xff", b"\x17\x03\x03\x00\x01x"]
    {
        let (mut socket, accepted) = sockets();
        socket.write_all(garbage).unwrap();
        let fault = run(accept_on(accepted, &server)).map(|_| ()).unwrap_err();
        assert!(matches!(fault, HandshakeFault::Tls(_)), "{fault:?}");
        let mut alert = [0; 5];
        socket.read_exact(&mut alert).unwrap();
        assert_eq!(alert[0], 21, "a record with an alert");
    }
}

#[test]
fn a_message_without_an_end_is_refused() {
    let (server, _) = configs(&TLS13);
    let (mut socket, accepted) = sockets();
    // A ClientHello of 65 535 bytes in records of 16 KB that are never the last.
    let sender = thread::spawn(move || {
        let mut record = vec![0x16, 3, 1, 0x40, 0];
        record.extend([1, 0, 0xff, 0xff]);
        record.resize(5 + 0x4000, 0);
        for _ in 0..8 {
            if socket.write_all(&record).is_err() {
                break;
            }
            record = vec![0x16, 3, 1, 0x40, 0];
            record.resize(5 + 0x4000, 0);
        }
        let _ = socket.read(&mut [0; 1]);
    });
    let fault = run(accept_on(accepted, &server)).map(|_| ()).unwrap_err();
    assert!(matches!(fault, HandshakeFault::Tls(_) | HandshakeFault::Io(_)), "{fault:?}");
    sender.join().unwrap();
}

#[test]
fn a_client_that_leaves_and_a_late_one_are_told_apart() {
    let (server, _) = configs(&TLS13);
    let (socket, accepted) = sockets();
    drop(socket);
    assert!(matches!(run(accept_on(accepted, &server)), Err(HandshakeFault::Closed)));

    let (_socket, accepted) = sockets();
    let fault = run(async {
        let mut timer = Timer::new();
        timer.set(Duration::from_millis(1));
        accept_until(accepted, &server, &mut timer).await
    });
    assert!(matches!(fault, Err(HandshakeFault::Late)));
}

#[test]
fn the_oldest_unfinished_handshake_makes_room_for_another() {
    run(async {
        let sessions = Sessions::default();
        let first = poll_fn(|cx| Poll::Ready(sessions.handshakes.enter(2, cx.waker()))).await;
        let second = poll_fn(|cx| Poll::Ready(sessions.handshakes.enter(2, cx.waker()))).await;
        assert!(!first.is_ended());
        let third = poll_fn(|cx| Poll::Ready(sessions.handshakes.enter(2, cx.waker()))).await;
        assert!(first.is_ended() && !second.is_ended() && !third.is_ended());
        drop(second);
        let fourth = poll_fn(|cx| Poll::Ready(sessions.handshakes.enter(2, cx.waker()))).await;
        assert!(!third.is_ended() && !fourth.is_ended());
    });
}

#[test]
fn one_handshake_computes_in_each_turn_of_the_loop() {
    run(async {
        let sessions = Rc::new(Sessions::default());
        let order = Rc::new(std::cell::RefCell::new(Vec::new()));
        let computing = (0..3).map(|number| {
            let (sessions, order) = (sessions.clone(), order.clone());
            tokio::task::spawn_local(async move {
                sessions.handshakes.turn().await;
                order.borrow_mut().push(number);
            })
        });
        let computing: Vec<_> = computing.collect();
        let (mut socket, mut ready) = sockets();
        let other = {
            let order = order.clone();
            tokio::task::spawn_local(async move {
                poll_fn(|cx| ready.poll_read(cx, &mut [0; 8])).await.unwrap();
                // The second read goes through the runtime.
                poll_fn(|cx| ready.poll_read(cx, &mut [0; 8])).await.unwrap();
                order.borrow_mut().push(9);
            })
        };
        socket.write_all(b"one").unwrap();
        tokio::task::yield_now().await;
        socket.write_all(b"two").unwrap();
        for task in computing {
            task.await.unwrap();
        }
        other.await.unwrap();
        let order = order.borrow();
        assert!(order.iter().position(|&at| at == 9) < order.iter().position(|&at| at == 2), "{order:?}");
    });
}

#[test]
fn a_waiting_connection_borrows_nothing() {
    run(async {
        let (server, client) = configs(&TLS13);
        let (mut client, mut server, _) = connected(&server, &client).await;
        write(&mut client, &[b"GET"]).await;
        assert_eq!(read(&mut server, 10).await.unwrap(), b"GET");
        write(&mut server, &[b"200"]).await;
        assert_eq!(read(&mut client, 10).await.unwrap(), b"200");
        let waits = poll_fn(|cx| Poll::Ready(server.poll_read(cx, &mut [0; 8]).is_pending())).await;
        assert!(waits && server.borrows_nothing());
    });
}

#[test]
fn what_a_peer_does_not_read_waits_in_one_buffer() {
    run(async {
        let (server, client) = configs(&TLS13);
        let (mut client, mut server, _) = connected(&server, &client).await;
        let data = pattern(32 << 20);
        let mut sent = 0;
        // As much as fits between the two.
        poll_fn(|cx| {
            while sent < data.len() {
                match server.poll_write_vectored(cx, &[IoSlice::new(&data[sent..])]) {
                    Poll::Ready(written) => sent += written.unwrap(),
                    Poll::Pending => break,
                }
            }
            Poll::Ready(())
        })
        .await;
        assert!(sent < data.len());
        assert!((1..=crate::BUFFER_SIZE).contains(&server.held()), "{} held", server.held());
        let mut received = 0;
        while received < sent {
            let piece = tokio::select! {
                piece = read(&mut client, 60_000) => piece.unwrap(),
                flushed = poll_fn(|cx| server.poll_flush(cx)), if server.held() > 0 => {
                    flushed.unwrap();
                    continue;
                }
            };
            assert!(piece == data[received..received + piece.len()]);
            received += piece.len();
        }
        assert_eq!(server.held(), 0);
    });
}

#[test]
fn what_a_peer_does_not_read_is_counted_and_may_be_limited() {
    run(async {
        let (server, client) = configs(&TLS13);
        for most in [usize::MAX, 3000] {
            let (_client, mut server, _) = connected(&server, &client).await;
            server.limit_sealing(most);
            let data = pattern(32 << 20);
            let mut sent = 0;
            poll_fn(|cx| {
                while let Poll::Ready(written) =
                    server.poll_write_vectored(cx, &[IoSlice::new(&data[sent..])])
                {
                    sent += written.unwrap();
                }
                Poll::Ready(())
            })
            .await;
            assert!((1..=most).contains(&server.held()), "{} held", server.held());
            // A buffer is memory as a whole.
            assert_eq!(server.output_memory(), crate::BUFFER_SIZE);
            server.park_output();
            assert!((server.held()..=server.held() + 1000).contains(&server.output_memory()));
        }
    });
}

#[test]
fn what_a_failed_write_has_sealed_is_not_held() {
    run(async {
        let (server, client) = configs(&TLS13);
        let (client, mut server, _) = connected(&server, &client).await;
        client.reset_when_dropped(true);
        drop(client);
        let data = pattern(1 << 20);
        let written = poll_fn(|cx| server.poll_write_vectored(cx, &[IoSlice::new(&data)])).await;
        assert!(written.is_err());
        assert_eq!(server.held(), 0);
    });
}

#[test]
fn versions_that_do_not_meet_are_named() {
    run(async {
        let (server, _) = configs(&TLS13);
        let (_, client) = configs(&TLS12);
        let (socket, accepted) = sockets();
        socket.set_nonblocking(true).unwrap();
        let connecting = connect(Stream::accepted(socket), client, name());
        let (connected, accepted) = tokio::join!(connecting, accept_on(accepted, &server));
        assert_eq!(accepted.map(|_| ()).unwrap_err().name(), "incompatible");
        assert_eq!(connected.map(|_| ()).unwrap_err().name(), "alert");
        assert_eq!(TLS13.version, ProtocolVersion::TLSv1_3);
    });
}
