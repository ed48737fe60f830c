//! A process that keeps a certificate, and what it was told.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use sandarac_acme::{
    Acme, ChallengeCertificate, Challenges, Event, Fault, KeyedChain, Limits, Progress, Settings, Sink,
};
use sandarac_test_support::within;
use tokio::sync::oneshot;

use crate::clock::FakeClock;

/// Limits that let a test end soon.
pub(crate) fn limits() -> Limits {
    Limits {
        request: Duration::from_secs(5),
        order: Duration::from_secs(10),
        response: 64 << 10,
        poll: Duration::from_millis(10),
        first_order_poll: Duration::from_millis(5),
    }
}

/// A running node. It ends when dropped.
pub(crate) struct Node {
    pub(crate) heard: Arc<Heard>,
    pub(crate) challenges: Challenges,
    pub(crate) progress: Progress,
    /// Whether it began with a stand-in.
    pub(crate) began_with_stand_in: bool,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// What a node reported.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) events: Mutex<Vec<Event>>,
    pub(crate) issued: Mutex<Vec<KeyedChain>>,
    state: PathBuf,
    /// Whether a certificate was in the state directory when the last one was issued or found.
    pub(crate) was_kept: AtomicBool,
    /// The names whose challenge certificate is shown, and how many were.
    pub(crate) shown: Mutex<(Vec<String>, usize)>,
}

impl Sink for Heard {
    fn challenge(&self, name: &str, certificate: Option<ChallengeCertificate>) {
        let mut shown = self.shown.lock().expect("no panic");
        match certificate {
            Some(_) => {
                shown.0.push(name.to_owned());
                shown.1 += 1;
            }
            None => shown.0.retain(|other| other != name),
        }
    }

    fn issued(&self, _: &[String], certificate: &KeyedChain) {
        let certificates = std::fs::read_dir(self.state.join("certificates"));
        self.was_kept.store(certificates.is_ok_and(|mut all| all.next().is_some()), Ordering::Relaxed);
        self.issued.lock().expect("no panic").push(certificate.clone());
    }

    fn event(&self, event: &Event) {
        self.events.lock().expect("no panic").push(event.clone());
    }
}

impl Node {
    /// Starts one.
    #[track_caller]
    pub(crate) fn start(settings: Settings, clock: &FakeClock) -> Node {
        Node::try_start(settings, clock).expect("settings that work")
    }

    pub(crate) fn try_start(settings: Settings, clock: &FakeClock) -> Result<Node, Fault> {
        static SEED: AtomicU64 = AtomicU64::new(1);
        let seed = SEED.fetch_add(1, Ordering::Relaxed);
        let clock = clock.clone();
        let state = settings.state.clone();
        let acme = Acme::open(settings, Arc::new(move || clock.now()))?;
        let (challenges, progress) = (acme.challenges(), acme.progress());
        let began_with_stand_in = acme.is_stand_in();
        let heard = Arc::new(Heard { state, ..Heard::default() });
        let sink = Arc::clone(&heard);
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                tokio::select! { _ = acme.run(sink, seed) => {}, _ = stopped => {} }
            });
        });
        Ok(Node { heard, challenges, progress, began_with_stand_in, stop: Some(stop), thread: Some(thread) })
    }

    /// Waits until `count` certificates were issued or found in all. Returns the last.
    #[track_caller]
    pub(crate) fn certificate(&self, count: usize) -> KeyedChain {
        within("a certificate", || {
            let issued = self.heard.issued.lock().expect("no panic");
            (issued.len() >= count).then(|| issued[issued.len() - 1].clone())
        })
    }

    /// Waits until `count` attempts have failed in all. Returns the last one's fault and the time of the next.
    #[track_caller]
    pub(crate) fn failure(&self, count: usize) -> (Fault, sandarac_message::Timestamp) {
        within("a failure", || {
            let events = self.heard.events.lock().expect("no panic");
            let failures = events.iter().filter_map(|event| match event {
                Event::Failed { fault, next, .. } => Some((fault.clone(), *next)),
                _ => None,
            });
            let failures: Vec<_> = failures.collect();
            (failures.len() >= count).then(|| failures[failures.len() - 1].clone())
        })
    }

    /// Waits for an event.
    #[track_caller]
    pub(crate) fn event(&self, what: &str, is_it: impl Fn(&Event) -> bool) -> Event {
        within(what, || {
            self.heard.events.lock().expect("no panic").iter().find(|event| is_it(event)).cloned()
        })
    }

    /// How many certificates were issued or found.
    pub(crate) fn count(&self) -> usize {
        self.heard.issued.lock().expect("no panic").len()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if thread::panicking() {
            for event in self.heard.events.lock().into_iter().flat_map(|events| events.clone()) {
                eprintln!("{event}");
            }
        }
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

/// The files below a directory whose name has a part.
pub(crate) fn files(directory: &Path, part: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a directory").flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.is_file() && path.to_string_lossy().contains(part));
    paths
}
