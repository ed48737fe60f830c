use super::*;
use crate::logs::{Feed, Filter, example};
use sandarac_test_support::{Address, Conn, PATIENCE, TempDir};
use std::sync::{Arc, Mutex, mpsc};

/// A process that remembers what it was told.
#[derive(Default)]
struct Process {
    told: Mutex<Vec<String>>,
    feed: Feed,
}

impl Control for Process {
    fn status(&self) -> Status {
        status()
    }

    fn stats(&self) -> Stats {
        Stats {
            at_ms: 7,
            metrics: vec![Metric::counter("hits", "Hits.", 3)],
            latency: Latency::default(),
            origin_latency: Default::default(),
        }
    }

    fn tls(&self, ask: &AskTls) -> TlsStatus {
        self.told.lock().unwrap().push(format!("{ask:?}"));
        TlsStatus::default()
    }

    fn purge(&self, purge: &Purge) -> Result<Purged, Refusal> {
        self.told.lock().unwrap().push(format!("{purge:?}"));
        Ok(Purged {
            objects: (purge.urls.len() + purge.tags.len()) as u64,
            unreached: Vec::new(),
            files: Vec::new(),
        })
    }

    fn ban(&self, expression: &str) -> Result<Banned, Refusal> {
        if expression == "panic" {
            panic!("a call that panics, for a test");
        }
        Err(Refusal::invalid("unknown variable `hots`").at("column 1").instead("did you mean `host`?"))
    }

    fn shared(&self, _: &AskShared) -> Result<SharedContent, Refusal> {
        Ok(SharedContent::default())
    }

    fn reload(&self) -> Result<Reloaded, Refusal> {
        Err(Refusal::failed("the file is gone"))
    }

    fn upgrade(&self, _: &Upgrade) -> Result<Upgraded, Refusal> {
        Ok(Upgraded { pid: 7 })
    }

    fn pools(&self, ask: &AskPools) -> Result<Pools, Refusal> {
        self.told.lock().unwrap().push(format!("{ask:?}"));
        Ok(Pools { pools: Vec::new() })
    }

    fn add_backend(&self, order: &AddBackend) -> Result<Ordered, Refusal> {
        self.told.lock().unwrap().push(format!("{order:?}"));
        Ok(ordered())
    }

    fn remove_backend(&self, order: &RemoveBackend) -> Result<Ordered, Refusal> {
        self.told.lock().unwrap().push(format!("{order:?}"));
        Err(Refusal::invalid("it is the last backend of the pool"))
    }

    fn drain_backend(&self, order: &DrainBackend) -> Result<Ordered, Refusal> {
        self.told.lock().unwrap().push(format!("{order:?}"));
        Ok(ordered())
    }

    fn subscribe(&self, viewer: Viewer, limit: u64, filter: Filter) -> Option<Subscription> {
        self.feed.subscribe(viewer, limit, filter)
    }
}

fn ordered() -> Ordered {
    Ordered {
        pool: "app".to_owned(),
        backend: "http://a:80".to_owned(),
        in_flight: 3,
        backends: 2,
        healthy: Some(2),
    }
}

pub(crate) fn status() -> Status {
    Status {
        version: "1.2.3".to_owned(),
        pid: 7,
        state: State::Running,
        started: "2026-11-21T13:55:36.042Z".to_owned(),
        uptime_seconds: 61,
        draining_seconds: None,
        config: None,
        profile: "safe".to_owned(),
        threads: 2,
        predecessors: Vec::new(),
        listeners: vec!["127.0.0.1:8080".to_owned()],
        admin: "unix:/run/a.sock".to_owned(),
        cache: CacheStatus { limit_bytes: 1 << 30, used_bytes: 5, objects: 1 },
        holdings: HoldingsStatus::default(),
        panics: Vec::new(),
        shared: Vec::new(),
        pools: Vec::new(),
    }
}

struct Running {
    process: Arc<Process>,
    server: Server,
    _dir: TempDir,
}

impl Running {
    fn client(&self) -> AdminClient {
        AdminClient::new(self.server.endpoint().clone(), None)
    }

    /// Sends bytes to the Unix socket and returns all that comes back.
    fn raw(&self, request: &str) -> String {
        let Endpoint::Unix(path) = self.server.endpoint() else { panic!("not on a Unix socket") };
        let answer = Conn::to(&Address::Unix(path.clone())).send(request).read_to_end();
        String::from_utf8(answer).unwrap()
    }

    fn post(&self, target: &str, body: &str) -> String {
        self.raw(&format!("POST {target} HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
    }
}

fn running() -> Running {
    let dir = TempDir::new();
    let bound = Bound::bind(&Endpoint::Unix(dir.join("admin.sock")), &Callers::default()).unwrap();
    let process = Arc::new(Process::default());
    let access = Access { max_body: 1000, ..Access::default() };
    let server = Server::start(bound, access, Arc::clone(&process) as Arc<dyn Control>).unwrap();
    Running { process, server, _dir: dir }
}

#[test]
fn what_the_process_says_arrives_whole() {
    let running = running();
    assert_eq!(running.client().status().unwrap(), status());
    assert_eq!(running.client().stats().unwrap().get("hits"), 3);
    let metrics = running.raw("GET /metrics HTTP/1.0\r\n\r\n");
    assert!(
        metrics.contains("text/plain; version=0.0.4") && metrics.contains("\nsandarac_hits_total 3\n"),
        "{metrics}"
    );
}

#[test]
fn purges_name_what_they_are_for() {
    let running = running();
    let purge = Purge { tags: vec!["a b".to_owned(), "\"".to_owned()], soft: true, ..Purge::default() };
    assert_eq!(
        running.client().purge(&purge).unwrap(),
        Purged { objects: 2, unreached: Vec::new(), files: Vec::new() }
    );
    let all = Purge { all: true, ..Purge::default() };
    running.client().purge(&all).unwrap();
    assert_eq!(*running.process.told.lock().unwrap(), [format!("{purge:?}"), format!("{all:?}")]);

    for body in ["{}", r#"{"all":true,"tags":["a"]}"#, r#"{"soft":true}"#] {
        assert!(running.post("/purge", body).starts_with("HTTP/1.0 400"), "{body}");
    }
    assert_eq!(running.process.told.lock().unwrap().len(), 2);
}

#[test]
fn pools_are_asked_for_and_told_by_name() {
    let running = running();
    let class = vec!["a&b=%".to_owned(), "www.example/ü".to_owned()];
    let ask = AskPools { names: vec!["app".to_owned(), "api".to_owned()], classes: 3, class };
    assert_eq!(running.client().pools(&ask).unwrap(), Pools { pools: Vec::new() });
    running.raw("GET /pools HTTP/1.0\r\n\r\n");
    let (pool, backend) = ("app".to_owned(), "http://a:80".to_owned());
    let add = AddBackend { pool: pool.clone(), backend: backend.clone(), weight: 7 };
    assert_eq!(running.client().add_backend(&add).unwrap(), ordered());
    let drain = DrainBackend { pool: pool.clone(), backend: backend.clone(), undo: true };
    assert_eq!(running.client().drain_backend(&drain).unwrap(), ordered());
    let remove = RemoveBackend { pool, backend };
    assert!(matches!(running.client().remove_backend(&remove), Err(client::Error::Refused(_))));
    let told = [
        format!("{ask:?}"),
        format!("{:?}", AskPools::default()),
        format!("{add:?}"),
        format!("{drain:?}"),
        format!("{remove:?}"),
    ];
    assert_eq!(*running.process.told.lock().unwrap(), told);

    for target in ["/pools?classes=many", "/pools?name=app", "/pools?classes"] {
        let answer = running.raw(&format!("GET {target} HTTP/1.0\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.0 400") && answer.contains("classes=N"), "{target}: {answer}");
    }
    let without_weight = running.post("/pool/add", r#"{"pool": "app", "backend": "http://a:80"}"#);
    assert!(without_weight.starts_with("HTTP/1.0 200"), "{without_weight}");
    assert!(running.process.told.lock().unwrap().last().unwrap().ends_with("weight: 1 }"));
}

#[test]
fn errors_say_what_where_and_what_instead() {
    let running = running();
    let Err(client::Error::Refused(refusal)) = running.client().ban("hots == a") else {
        panic!("not refused")
    };
    assert_eq!(refusal.to_string(), "unknown variable `hots`\n  at: column 1\n  help: did you mean `host`?");
    let answer = running.post("/purge", "{\"urls\": [],\n \"tag\": 1}");
    assert!(answer.starts_with("HTTP/1.0 400"), "{answer}");
    assert!(
        answer.contains(r#""where":"body, line 2, column"#) && answer.contains("unknown field `tag`"),
        "{answer}"
    );
    assert!(running.post("/reload", "").contains(r#"{"error":{"what":"the file is gone"}}"#));
    assert!(running.post("/status", "").starts_with("HTTP/1.0 405"));
    assert!(running.raw("GET /x HTTP/1.0\r\n\r\n").contains("GET /status, /stats"));
    assert!(running.raw("GET /log?limit=x HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 400"));
}

#[test]
fn a_body_over_its_limit_is_refused_and_a_panic_does_not_end_the_interface() {
    let running = running();
    let answer = running.post("/purge", &format!("{{\"tags\":[\"{}\"]}}", "x".repeat(1000)));
    assert!(answer.starts_with("HTTP/1.0 413") && answer.contains("several requests"), "{answer}");
    let Err(client::Error::Refused(refusal)) = running.client().ban("panic") else { panic!("not refused") };
    assert!(refusal.what.contains("failed inside the process"));
    assert_eq!(running.client().status().unwrap(), status());
}

#[test]
fn the_log_comes_line_by_line_and_says_what_it_skipped() {
    let running = running();
    let lines = running.client().log(Some(2), &[]).unwrap();
    (0..5).for_each(|_| running.process.feed.publish(&example()));
    // On a thread, for the stream has no end: what never comes is not waited for.
    let (sender, received) = mpsc::channel::<serde_json::Value>();
    std::thread::spawn(move || {
        lines.map_while(|line| serde_json::from_str(&line.ok()?).ok()).all(|line| sender.send(line).is_ok())
    });
    let mut entries = Vec::new();
    loop {
        let line = received.recv_timeout(PATIENCE).expect("a line that tells of the three that were skipped");
        match line["skipped"].as_u64() {
            None => entries.push(line),
            Some(3) => break,
            // Told before the last had been skipped.
            Some(_) => {}
        }
    }
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0]["request"], 17);
    assert_eq!(entries[1]["target"], "/articles/3?q=%22");
}

#[test]
fn tcp_needs_the_token() {
    let endpoint = Endpoint::Tcp("127.0.0.1:0".parse().unwrap());
    let process = || Arc::new(Process::default()) as Arc<dyn Control>;
    let access = |text: Option<&str>| {
        let token = Token::default();
        token.set(text);
        Access { token, ..Access::default() }
    };
    for token in [None, Some("")] {
        let bound = Bound::bind(&endpoint, &Callers::default()).unwrap();
        assert!(Server::start(bound, access(token), process()).is_err());
    }
    let access = access(Some("s3cret"));
    let token = access.token.clone();
    let server =
        Server::start(Bound::bind(&endpoint, &Callers::default()).unwrap(), access, process()).unwrap();
    let ask =
        |token: Option<&str>| AdminClient::new(server.endpoint().clone(), token.map(str::to_owned)).status();
    assert_eq!(ask(Some("s3cret")).unwrap(), status());
    for token in [None, Some("s3cre"), Some("s3cret2"), Some("S3cret")] {
        assert!(matches!(ask(token), Err(client::Error::Refused(_))), "{token:?}");
    }
    token.set(None);
    token.set(Some("another"));
    assert!(ask(Some("s3cret")).is_err() && ask(Some("another")).is_ok());
}

#[test]
fn a_process_that_is_not_there_is_told_as_such() {
    let dir = TempDir::new();
    let error = AdminClient::new(Endpoint::Unix(dir.join("none.sock")), None).status().unwrap_err();
    assert!(matches!(error, client::Error::NotRunning(..)));
    assert!(error.to_string().contains("is it running?"), "{error}");
}

#[test]
fn latencies_are_counted_from_one_moment_to_another() {
    let earlier = Latency { buckets: vec![(10, 1), (20, 5)], sum_us: 100 };
    let later = Latency { buckets: vec![(10, 1), (20, 6), (40, 2)], sum_us: 190 };
    let between = later.since(&earlier);
    assert_eq!(between, Latency { buckets: vec![(20, 1), (40, 2)], sum_us: 90 });
    assert_eq!(between.quantile_us(0.5), Some(40));
    assert_eq!(Latency::default().quantile_us(0.5), None);
}

/// Regression: it waited for ever, without a word.
#[test]
fn a_client_does_not_wait_for_ever() {
    let dir = TempDir::new();
    let path = dir.join("admin");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let client =
        AdminClient::new(Endpoint::Unix(path.clone()), None).patience(std::time::Duration::from_secs(1));
    let error = client.status().unwrap_err();
    assert!(error.to_string().contains("did not answer in 1 s"), "{error}");
    // As many as may wait to be accepted do so: not even connecting is possible.
    let others =
        || rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM, None);
    let address = rustix::net::SocketAddrUnix::new(&path).unwrap();
    let _waiting: Vec<_> = std::iter::repeat_with(|| {
        let socket = others().unwrap();
        rustix::io::ioctl_fionbio(&socket, true).unwrap();
        rustix::net::connect(&socket, &address).map(|()| socket)
    })
    .take_while(Result::is_ok)
    .collect();
    assert!(matches!(client.status().unwrap_err(), client::Error::Silent(..)));
}
