//! Clients that ask for pages and look closely at what they get.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use sandarac_test_support::{Address, Conn, Response, Trouble, get, within};

/// Clients at a time.
const CLIENTS: usize = 8;
/// Sites that they ask for pages of.
pub(crate) const SITES: usize = 24;
/// Lines of a page, as `application.py` makes them.
pub(crate) const LINES: usize = 50;

/// What a page says of where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// The process that made it.
    pub(crate) process: u32,
    /// The release that this runs.
    pub(crate) release: String,
}

impl Page {
    /// Reads a response to a GET of `path` of `host`: 200, and every line of it the same and of the page asked for.
    pub(crate) fn read(host: &str, path: &str, response: &Response) -> Result<Page, String> {
        let text = response.text();
        let first = text.lines().next().unwrap_or_default();
        let words: Vec<&str> = first.split(' ').collect();
        match words[..] {
            [of, at, process, release]
                if response.status == 200
                    && (of, at) == (host, path)
                    && text == format!("{first}\n").repeat(LINES) =>
            {
                let process = process.parse().map_err(|_| format!("{process} is no process"))?;
                Ok(Page { process, release: release.to_owned() })
            }
            _ => Err(format!("{host}{path}: {response:?}")),
        }
    }
}

/// Clients that ask, check and count until they are stopped. Each asks the balancer that it asked before; where that does not
/// give it a whole response, it connects to the next one and asks that, as browsers and load balancers before balancers do.
pub(crate) struct Load {
    shared: Arc<Shared>,
    threads: Vec<thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    answered: AtomicUsize,
    /// Requests that were asked of another balancer.
    moved: AtomicUsize,
    faults: Mutex<Vec<String>>,
    /// Clients that saw a release older than one they had seen.
    went_back: Mutex<Vec<String>>,
    /// How often each process answered.
    processes: Mutex<BTreeMap<u32, usize>>,
}

impl Load {
    /// Asks the balancers at `addresses`, as many clients each as the other.
    pub(crate) fn on(addresses: &[&Address]) -> Load {
        let shared = Arc::new(Shared::default());
        let threads = (0..CLIENTS).map(|number| {
            let mut addresses: Vec<Address> = addresses.iter().map(|&address| address.clone()).collect();
            let share = number % addresses.len();
            addresses.rotate_left(share);
            let shared = Arc::clone(&shared);
            thread::spawn(move || Client { number, addresses, shared, conn: None }.run())
        });
        Load { threads: threads.collect(), shared }
    }

    /// Waits for `more` answers, in portions: a busy machine may take long for many.
    #[track_caller]
    pub(crate) fn reaches(&self, more: usize) {
        let begun = self.answered();
        for goal in (begun..begun + more).step_by(50).map(|begin| begin + 50) {
            within("more answers", || (self.answered() >= goal).then_some(()));
        }
    }

    /// Waits until `process` has answered.
    #[track_caller]
    pub(crate) fn sees(&self, process: u32) {
        within(&format!("an answer of process {process}"), || self.has_seen(process).then_some(()));
    }

    /// Whether `process` has answered.
    pub(crate) fn has_seen(&self, process: u32) -> bool {
        self.shared.processes.lock().expect("no client panics").contains_key(&process)
    }

    /// How many requests were asked of another balancer than those before.
    pub(crate) fn moved(&self) -> usize {
        self.shared.moved.load(Ordering::SeqCst)
    }

    /// The pages that were of an older release than the one that the same client had got before.
    pub(crate) fn went_back(&self) -> Vec<String> {
        self.shared.went_back.lock().expect("no client panics").clone()
    }

    /// Stops, and fails if any GET was not answered as it should be.
    #[track_caller]
    pub(crate) fn ends_well(self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for thread in self.threads {
            thread.join().expect("a client does not panic");
        }
        let faults = self.shared.faults.lock().expect("no client panics");
        let answered = self.shared.answered.load(Ordering::SeqCst);
        assert!(
            faults.is_empty(),
            "{} of {answered} GETs failed: {:#?}",
            faults.len(),
            &faults[..faults.len().min(5)]
        );
    }

    fn answered(&self) -> usize {
        self.shared.answered.load(Ordering::SeqCst)
    }
}

struct Client {
    number: usize,
    /// The balancers, the one asked first.
    addresses: Vec<Address>,
    shared: Arc<Shared>,
    conn: Option<Conn>,
}

impl Client {
    fn run(mut self) {
        let mut release = String::new();
        for round in 0.. {
            if self.shared.stop.load(Ordering::SeqCst) {
                return;
            }
            let host = format!("site-{}.example", (self.number * 7 + round * 5) % SITES);
            let path = format!("/{}/{round}", self.number);
            match self.ask(&host, &path) {
                Ok(page) => {
                    *self
                        .shared
                        .processes
                        .lock()
                        .expect("no client panics")
                        .entry(page.process)
                        .or_default() += 1;
                    self.shared.answered.fetch_add(1, Ordering::SeqCst);
                    if page.release < release {
                        let back = format!("{host}{path}: {} after {release}", page.release);
                        self.shared.went_back.lock().expect("no client panics").push(back);
                    }
                    release = page.release;
                }
                Err(fault) => self.shared.faults.lock().expect("no client panics").push(fault),
            }
        }
    }

    /// Asks for a page, of one balancer after the other until there is a response.
    fn ask(&mut self, host: &str, path: &str) -> Result<Page, String> {
        let mut troubles = Vec::new();
        for _ in 0..self.addresses.len() {
            match self.try_ask(host, path) {
                Ok(response) => return Page::read(host, path, &response),
                Err(trouble) => troubles.push(trouble),
            }
            self.conn = None;
            self.addresses.rotate_left(1);
            self.shared.moved.fetch_add(1, Ordering::SeqCst);
        }
        Err(format!("{host}{path}: {troubles:?}"))
    }

    fn try_ask(&mut self, host: &str, path: &str) -> Result<Response, String> {
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => Conn::try_to(&self.addresses[0]).map_err(|error| error.to_string())?,
        };
        conn.try_send(get(path).host(host).to_bytes()).map_err(|error| error.to_string())?;
        let response = conn.try_response("GET").map_err(|trouble: Trouble| format!("{trouble:?}"))?;
        self.conn = Some(conn);
        Ok(response)
    }
}
