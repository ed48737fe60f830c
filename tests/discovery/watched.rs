//! A source that is watched, and what it tells.

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use sandarac_config::{Dns, NameServer, Source};
use sandarac_discover::{Event, Listing, LossReason, Memory, watch};
use sandarac_test_support::PATIENCE;
use tokio::sync::oneshot;

/// A source, watched by a thread until this is dropped.
pub(crate) struct Watched {
    events: Receiver<Event>,
    /// Whether a server has answered late and the source is not back since.
    late: Cell<bool>,
    _stop: oneshot::Sender<()>,
}

impl Watched {
    pub(crate) fn new(source: Source) -> Watched {
        Watched::asking(source, Vec::new())
    }

    /// Watches a source that asks these name servers.
    pub(crate) fn asking(source: Source, servers: Vec<NameServer>) -> Watched {
        Watched::remembering(source, servers, Memory::default())
    }

    /// Watches a source of which this is remembered.
    pub(crate) fn remembering(source: Source, servers: Vec<NameServer>, memory: Memory) -> Watched {
        let (teller, events) = channel();
        let (stop, stopped) = oneshot::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let dns = Dns { servers };
                tokio::select! {
                    _ = watch(source, &dns, memory, 1, |event| drop(teller.send(event))) => {}
                    _ = stopped => {}
                }
            });
        });
        Watched { events, late: Cell::new(false), _stop: stop }
    }

    /// The next event, whatever it is.
    #[track_caller]
    pub(crate) fn next(&self) -> Event {
        self.within(PATIENCE).unwrap_or_else(|| panic!("nothing was told in {PATIENCE:?}"))
    }

    /// The next event that is not of a busy machine, if there is one in this time. There servers answer late at any time, and
    /// the source is lost for that, and back.
    fn unhurried(&self, patience: Duration) -> Option<Event> {
        let deadline = Instant::now() + patience;
        let mut late = self.late.get();
        let found = loop {
            match self.within(deadline.saturating_duration_since(Instant::now()))? {
                Event::Lost(loss) if loss.reason == LossReason::TimedOut => late = true,
                Event::Back if late => late = false,
                event => break event,
            }
            self.late.set(late);
        };
        // Lost for another reason is lost all the more.
        self.late.set(false);
        Some(found)
    }

    #[track_caller]
    fn news(&self) -> Event {
        self.unhurried(PATIENCE).unwrap_or_else(|| panic!("nothing of importance was told in {PATIENCE:?}"))
    }

    /// Nothing is told in this time.
    #[track_caller]
    pub(crate) fn is_silent_for(&self, time: Duration) {
        let told = self.unhurried(time);
        assert!(told.is_none(), "told {told:?} in {time:?} of silence");
    }

    /// The next event, if there is one this soon.
    pub(crate) fn within(&self, patience: Duration) -> Option<Event> {
        match self.events.recv_timeout(patience) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("the watch has ended"),
        }
    }

    /// Waits for what `wanted` picks. Until then there may be lists, since changes are not atomic, but nothing that says the
    /// source were lost, back or empty.
    #[track_caller]
    pub(crate) fn list_until<T: Debug>(&self, wanted: impl Fn(&Listing) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut last = None;
        while let Some(event) = self.unhurried(deadline.saturating_duration_since(Instant::now())) {
            match event {
                Event::Listing(listing) => match wanted(&listing) {
                    Some(found) => return found,
                    None => last = Some(listing),
                },
                other => panic!("told {other:?} instead of a list"),
            }
        }
        panic!("the right list did not come; the last was {last:?}");
    }

    /// Waits until exactly these are listed.
    #[track_caller]
    pub(crate) fn lists(&self, addresses: &[&str]) -> Listing {
        self.list_until(|listing| {
            let listed: Vec<String> =
                listing.members.iter().map(|member| member.address.to_string()).collect();
            (listed == addresses).then(|| listing.clone())
        })
    }

    /// The next event is that the source is lost for this reason.
    #[track_caller]
    pub(crate) fn is_lost(&self, reason: LossReason) {
        let told = if reason == LossReason::TimedOut { self.next() } else { self.news() };
        match told {
            Event::Lost(loss) => assert_eq!(loss.reason, reason, "{loss}"),
            other => panic!("told {other:?} instead of a loss"),
        }
    }

    /// The source is lost, for whatever reasons, and then back.
    #[track_caller]
    pub(crate) fn is_back(&self) {
        loop {
            match self.next() {
                Event::Lost(_) => {}
                Event::Back => return,
                other => panic!("told {other:?} before the source was back"),
            }
        }
    }

    /// The next event is that the source names nobody.
    #[track_caller]
    pub(crate) fn is_emptied(&self) {
        match self.news() {
            Event::Emptied { .. } => {}
            other => panic!("told {other:?} instead of an emptied source"),
        }
    }
}
