//! Many clients at once, while the configuration changes or the process ends: no answer may be lost or mixed up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use sandarac_test_support::{Conn, Origin, Sandarac, Signal, Trouble, get, reply, within};

use crate::{sandarac, site};

const CLIENTS: usize = 8;

/// An origin whose pages name their target; every third is not stored.
fn origin() -> Origin {
    Origin::new(|request| {
        let number = request.target.bytes().map(usize::from).sum::<usize>();
        let page = reply(200).body(format!("page {}", request.target));
        if number.is_multiple_of(3) { page.cache("no-store") } else { page.cache("max-age=60") }
    })
}

/// Clients that send requests, check the responses and count them until they are stopped.
struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    threads: Vec<thread::JoinHandle<Vec<String>>>,
}

impl Load {
    fn on(proxy: &Sandarac, keep_alive: bool) -> Load {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let threads = (0..CLIENTS).map(|client| {
            let (stop, answered, address) =
                (Arc::clone(&stop), Arc::clone(&answered), proxy.address().clone());
            thread::spawn(move || {
                let mut faults = Vec::new();
                let mut conn: Option<Conn> = None;
                for round in 0.. {
                    if stop.load(Ordering::SeqCst) {
                        break;
                    }
                    let target = format!("/{client}/{}", round % 50);
                    let mut open = match conn.take() {
                        Some(open) if keep_alive => open,
                        _ => Conn::to(&address),
                    };
                    match ask(&mut open, &target) {
                        Ok(Some(text)) if text == format!("page {target}") => {
                            answered.fetch_add(1, Ordering::SeqCst);
                            conn = Some(open);
                        }
                        // The connection closed between two requests; an HTTP/1.1 client retries.
                        Ok(None) if keep_alive => {}
                        other => faults.push(format!("{target}: {other:?}")),
                    }
                }
                faults
            })
        });
        let threads = threads.collect();
        Load { stop, answered, threads }
    }

    /// Waits for `more` responses, in portions, because many may take long on a busy machine.
    fn reaches(&self, more: usize) {
        let begun = self.answered.load(Ordering::SeqCst);
        for goal in (begun..begun + more).step_by(50).map(|begin| begin + 50) {
            within("more answers", || (self.answered.load(Ordering::SeqCst) >= goal).then_some(()));
        }
    }

    fn end(self) -> Vec<String> {
        self.stop.store(true, Ordering::SeqCst);
        self.threads.into_iter().flat_map(|thread| thread.join().expect("a client does not panic")).collect()
    }
}

/// The body of the 200 response for `target`; `None` if the connection had been closed before.
fn ask(conn: &mut Conn, target: &str) -> Result<Option<String>, String> {
    if conn.try_send(get(target).to_bytes()).is_err() {
        return Ok(None);
    }
    match conn.try_response("GET") {
        Ok(response) if response.status == 200 => Ok(Some(response.text())),
        Ok(response) => Err(format!("{response:?}")),
        Err(Trouble::Closed(rest) | Trouble::Reset(rest)) if rest.is_empty() => Ok(None),
        Err(trouble) => Err(format!("{trouble:?}")),
    }
}

#[test]
fn nothing_is_lost_by_reloads_under_load() {
    let (first, second) = (origin(), origin());
    let proxy = sandarac().config(site(&first.url(), "", "")).start();
    for keep_alive in [true, false] {
        let load = Load::on(&proxy, keep_alive);
        for round in 0..10 {
            load.reaches(100);
            let origin = if round % 2 == 0 { &second } else { &first };
            proxy.reload(&site(&origin.url(), "", &format!("[limits]\nfields = {}", 100 + round))).success();
        }
        load.reaches(100);
        let faults = load.end();
        assert!(
            faults.is_empty(),
            "keep-alive {keep_alive}: {} lost: {:?}",
            faults.len(),
            &faults[..faults.len().min(5)]
        );
    }
}

#[test]
fn nothing_is_lost_by_purges_under_load() {
    let origin = origin();
    let proxy = sandarac().before(&origin).start();
    let load = Load::on(&proxy, true);
    for _ in 0..10 {
        load.reaches(50);
        proxy.admin(&["purge", "--all"]).success();
    }
    let faults = load.end();
    assert!(faults.is_empty(), "{} lost: {:?}", faults.len(), &faults[..faults.len().min(5)]);
}

#[test]
fn nothing_is_lost_when_the_cache_is_full() {
    let filler = "x".repeat(10_000);
    let origin = Origin::new(move |request| {
        reply(200).cache("max-age=60").with("X-Filler", &filler).body(format!("page {}", request.target))
    });
    let proxy = sandarac().before(&origin).option("--memory", "1MiB").start();
    let load = Load::on(&proxy, true);
    load.reaches(3000);
    let faults = load.end();
    assert!(faults.is_empty(), "{} lost: {:?}", faults.len(), &faults[..faults.len().min(5)]);
    let stats = proxy.admin_json(&["stats", "--json"]);
    let evicted = stats["metrics"]
        .as_array()
        .expect("metrics")
        .iter()
        .find(|metric| metric["name"] == "cache_removed" && metric["labels"][0][1] == "evicted");
    let evicted = evicted.and_then(|metric| metric["value"].as_u64());
    assert!(evicted.is_some_and(|count| count > 100), "the cache was never full: {evicted:?} evicted");
}

#[test]
fn nothing_accepted_is_lost_by_sigterm_under_load() {
    let origin = origin();
    let mut proxy = sandarac().before(&origin).start();
    let address = proxy.address().clone();
    // The signal comes after each client was accepted, however late its thread began.
    let accepted = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (address, accepted) = (address.clone(), Arc::clone(&accepted));
            thread::spawn(move || {
                let mut conn = Conn::to(&address);
                for round in 0.. {
                    if ask(&mut conn, &format!("/{client}/{round}"))?.is_none() {
                        break;
                    }
                    accepted.fetch_add(usize::from(round == 0), Ordering::SeqCst);
                }
                Ok::<(), String>(())
            })
        })
        .collect();
    within("every client to be answered", || (accepted.load(Ordering::SeqCst) == CLIENTS).then_some(()));
    origin.reached(8 * CLIENTS);
    proxy.signal(Signal::Terminate);
    assert!(proxy.wait().success());
    for client in clients {
        client.join().expect("a client does not panic").expect("a request in flight was lost");
    }
}
