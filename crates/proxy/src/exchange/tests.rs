//! Tests of exchanges whose client is in memory.

use super::Deferred;
use super::memory_client::{MemoryClient, ReceivedResponse};
use crate::{Core, Record, Recorder, Shared, Site, SiteTls};
use sandarac_cache::{Purge, Settings, Store};
use sandarac_config::Config;
use sandarac_message::{FieldsBuf, Method, RequestHead, RequestHeadBuf, Version};
use sandarac_net::{Answer, Client, Incoming, LeasedHead, Request, Service, sleep, wall};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::spawn_local;

struct NoLog;

impl Recorder for NoLog {
    fn wants(&self) -> bool {
        false
    }

    fn record(&self, _: &Record<'_>) {}
}

/// An origin that sends one response after the other, each on its own connection, and passes on the first
/// lines and bodies of the requests.
fn origin(responses: &'static [&'static str]) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (asked, requests) = channel();
    std::thread::spawn(move || {
        for response in responses {
            let (stream, _) = listener.accept().unwrap();
            asked.send(take_request(&stream)).unwrap();
            (&stream).write_all(response.as_bytes()).unwrap();
        }
    });
    (address, requests)
}

/// Reads a request, and returns its first line and its body.
fn take_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    reader.read_line(&mut request).unwrap();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(digits) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = digits.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    format!("{} {}", request.trim(), String::from_utf8_lossy(&body))
}

fn core(backend: SocketAddr) -> Rc<Core> {
    let text = format!(
        "[[listen]]\naddress = \":0\"\n[pool.app]\nbackends = [\"http://{backend}\"]\n\
         [[route]]\nmatch = \"/fixed\"\nanswer = {{ status = 200, body = \"made here\" }}\n[[route]]\npool = \"app\""
    );
    let (config, _) = Config::from_toml("test.toml", &text).unwrap();
    let store = Arc::new(Store::new(Settings::new(16 << 20)));
    let shared = Shared::new(
        Site::new(config, None, SiteTls::default(), &[], None, 1),
        store,
        1,
        10,
        Box::new(|_| {}),
    );
    Core::new(shared, 0, Box::new(NoLog))
}

/// Whether the request was answered at once, and the response.
async fn ask(core: &Core, method: Method, target: &str, body: &'static [u8]) -> (bool, ReceivedResponse) {
    let mut client = MemoryClient::new(core, body);
    let Some(incoming) = offer(core, &mut client, method, target, body) else {
        return (true, client.received);
    };
    core.exchange(&mut client, incoming).await;
    (false, client.received)
}

/// Offers a request to the service. `None` if it was answered at once.
fn offer(
    core: &Core,
    client: &mut MemoryClient,
    method: Method,
    target: &str,
    body: &'static [u8],
) -> Option<Box<Incoming<Deferred>>> {
    let length = body.len().to_string();
    let fields: FieldsBuf = [("Host", "www.example"), ("Content-Length", &*length)].into_iter().collect();
    let head = RequestHead {
        method,
        method_text: if method == Method::Post { b"POST" } else { b"GET" },
        target: target.as_bytes(),
        version: Version::Http11,
        fields: fields.view(),
    };
    let began = Instant::now();
    let request = Request { head, scheme: None, has_body: !body.is_empty(), began };
    let peer = Client::peer(client).clone();
    let deferred = match core.answer(&peer, &request, client) {
        Answer::Answered => return None,
        Answer::Deferred(deferred) => deferred,
    };
    let head = LeasedHead::made(RequestHeadBuf::copy_of(&head), &peer.holder);
    Some(Box::new(Incoming { head, expect_continue: false, began, deferred }))
}

#[test]
fn a_request_without_a_connection_is_answered_into_memory() {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(async {
        let (address, requests) = origin(&[
            "HTTP/1.1 103 \r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\
             Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nfirst\r\n7\r\n, again\r\n0\r\n\r\n",
            "HTTP/1.1 201 Created\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone",
        ]);
        let core = core(address);

        let (in_place, page) = ask(&core, Method::Get, "/page", b"").await;
        assert!(!in_place);
        assert_eq!(page.status, 200);
        assert_eq!(page.interims, [103]);
        let report = page.field("cache-status").unwrap();
        assert!(report.starts_with("sandarac; fwd=uri-miss; ") && report.ends_with("; stored"), "{report}");
        assert_eq!(page.body, b"first, again");
        assert!(page.whole);
        assert_eq!(requests.recv().unwrap(), "GET /page HTTP/1.1 ");

        let (_, page) = ask(&core, Method::Get, "/page", b"").await;
        let report = page.field("cache-status").unwrap();
        assert!(report.starts_with("sandarac; hit; "), "{report}");
        assert_eq!(page.field("content-length"), Some("12"));
        assert_eq!(page.body, b"first, again");

        let (in_place, page) = ask(&core, Method::Post, "/page", b"a new page").await;
        assert!(!in_place);
        assert_eq!(page.status, 201);
        assert_eq!(page.body, b"done");
        assert!(page.whole);
        assert_eq!(requests.recv().unwrap(), "POST /page HTTP/1.1 a new page");

        let (in_place, answer) = ask(&core, Method::Get, "/fixed", b"").await;
        assert!(in_place);
        assert_eq!(answer.status, 200);
        assert_eq!(answer.body, b"made here");
    });
}

/// Over HTTP/2 an exchange begins some time after the lookup, because it is a task of its own.
#[test]
fn a_response_that_was_found_fresh_is_not_served_once_a_soft_purge_has_made_it_stale() {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let core = core(listener.local_addr().unwrap());
        let (purged, purge) = channel();
        std::thread::spawn(move || {
            let (first, _) = listener.accept().unwrap();
            take_request(&first);
            let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 8\r\nConnection: close\r\n\r\n";
            (&first).write_all(format!("{head}old").as_bytes()).unwrap();
            purge.recv().unwrap();
            (&first).write_all(b" page").unwrap();
            let (second, _) = listener.accept().unwrap();
            take_request(&second);
            (&second).write_all(format!("{head}new page").as_bytes()).unwrap();
        });
        let leader = core.clone();
        let first = spawn_local(async move { ask(&leader, Method::Get, "/page", b"").await });
        while core.shared.store.stats().objects == 0 {
            sleep(Duration::from_millis(1)).await;
        }

        let mut client = MemoryClient::new(&core, b"");
        let found = offer(&core, &mut client, Method::Get, "/page", b"").expect("the object still arrives");
        core.shared.store.purge_all(Purge::Soft, wall());
        purged.send(()).unwrap();
        core.exchange(&mut client, found).await;

        let report = client.received.field("cache-status").unwrap();
        assert!(report.starts_with("sandarac; fwd=uri-miss; ") && report.ends_with("; stored"), "{report}");
        assert_eq!(client.received.body, b"new page");
        let (_, first) = first.await.unwrap();
        assert_eq!(first.body, b"old page");
    });
}
