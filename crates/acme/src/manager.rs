//! The task that keeps one certificate valid.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sandarac_balance::Random;
use sandarac_message::Timestamp;
use tokio::time::sleep;

use crate::attempts::{Attempts, AttemptsFile};
use crate::ca::{Refusal, Session};
use crate::certificate::{Certificate, KeyedChain};
use crate::challenges::Challenges;
use crate::client::Clock;
use crate::event::Event;
use crate::fault::{CertificateFault, Fault};
use crate::files;
use crate::layout::Layout;
use crate::lease::{Lease, Take};
use crate::make::stand_in;
use crate::order::Desk;
use crate::progress::{Progress, Report};
use crate::schedule::{Window, renewal};
use crate::settings::Settings;
use crate::sink::Sink;

/// The pause between looks at the state directory while another process orders.
const POLL_WHILE_HELD: Duration = Duration::from_secs(2);

/// The shortest pause between questions for the renewal window, the longest, and the one after a failure.
const WINDOW_POLL: (Duration, Duration) = (Duration::from_secs(3600), Duration::from_secs(24 * 3600));

/// How long before the end of a certificate the operator is warned, unless a tenth of its life is less.
const EXPIRY_WARNING: Duration = Duration::from_secs(7 * 24 * 3600);

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The most troubles that are remembered, so that each is reported once.
const MAX_REPORTED: usize = 8;

/// One certificate, its state directory opened. See the [crate] for the sequence of calls.
pub struct Acme {
    settings: Settings,
    challenges: Challenges,
    clock: Clock,
    /// The file of the certificate.
    file: PathBuf,
    attempts_file: AttemptsFile,
    start: KeyedChain,
    found: Option<Certificate>,
    progress: Progress,
}

impl Acme {
    /// Checks the settings, makes the state directory, and reads the certificate that is kept there. It does not
    /// contact the CA.
    ///
    /// # Errors
    /// A setting that cannot work, or a state directory that cannot be written or is open to other users. A kept
    /// certificate that cannot be used is no error: another one is ordered.
    pub fn open(settings: Settings, clock: Clock) -> Result<Acme, Fault> {
        let settings = settings.checked()?;
        let now = clock();
        let state = &settings.state;
        let Layout { certificates, file, attempts: attempts_file } = Layout::of(&settings);
        files::make_directory(state)?;
        files::make_directory(&certificates)?;
        files::clean(state, |_| false);
        files::clean(&certificates, |_| false);
        let challenges = Challenges::new(state);
        challenges.open(now)?;
        let kept = files::read(&file).ok().flatten().and_then(|text| Certificate::read_file(&text).ok());
        let found = kept.filter(|certificate| certificate.check(&settings.names, now).is_ok());
        let start = match &found {
            Some(certificate) => certificate.keyed.clone(),
            None => stand_in(&settings.names)?,
        };
        let progress = Progress::new(settings.names.clone(), settings.directory.clone());
        Ok(Acme { settings, challenges, clock, file, attempts_file, start, found, progress })
    }

    /// The names of the certificate.
    pub fn names(&self) -> &[String] {
        &self.settings.names
    }

    /// The certificate to begin with: the kept one, or one that stands in.
    pub fn certificate(&self) -> &KeyedChain {
        &self.start
    }

    /// Whether [`certificate`](Acme::certificate) is self-signed, until the first call of [`Sink::issued`].
    pub fn is_stand_in(&self) -> bool {
        self.found.is_none()
    }

    /// The challenges of pending orders, for listeners.
    pub fn challenges(&self) -> Challenges {
        self.challenges.clone()
    }

    /// The state of the certificate, for metrics and reports.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Orders and renews the certificate for as long as the future is polled. Equal seeds give equal jitter; processes
    /// that share a state directory MUST have different ones.
    ///
    /// It needs a tokio runtime with I/O and time. It reads and writes files in place: give it a thread that may
    /// wait for the file system.
    pub async fn run(self, sink: Arc<dyn Sink>, seed: u64) -> Infallible {
        if self.is_stand_in() {
            sink.event(&Event::StandIn { names: self.settings.names.clone() });
        }
        let mut manager = Manager::new(self, sink, seed);
        manager.show_progress();
        loop {
            manager.step().await;
            manager.show_progress();
            sleep(manager.pause()).await;
        }
    }
}

struct Manager {
    acme: Acme,
    sink: Arc<dyn Sink>,
    random: Random,
    seed: u64,
    /// No order of this process was due before.
    started: Timestamp,
    /// This process, in the lease.
    owner: String,
    current: Option<Certificate>,
    /// The digest of the file when it was last read.
    seen: Option<blake3::Hash>,
    /// Whether the current certificate could not be written to its file yet.
    unsaved: bool,
    /// The attempts that could not be written to their file.
    unsaved_attempts: Option<Attempts>,
    window: Option<Window>,
    /// When the window is asked for again.
    ask_window: Timestamp,
    terms_reported: bool,
    reported: Vec<Fault>,
    /// The process that placed an order when the lease was last asked for.
    held_by: Option<String>,
    is_held: bool,
    /// When the operator may be warned of the expiry again.
    warn_again: Timestamp,
}

impl Manager {
    fn new(mut acme: Acme, sink: Arc<dyn Sink>, seed: u64) -> Manager {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let current = acme.found.take();
        if let Some(Certificate { validity, .. }) = &current {
            sink.event(&Event::Found { names: acme.settings.names.clone(), not_after: validity.not_after });
        }
        let epoch = Timestamp::from_secs(0);
        Manager {
            started: (acme.clock)(),
            acme,
            sink,
            random: Random::new(seed),
            seed,
            owner: format!("{}-{}-{seed:016x}", host.trim(), std::process::id()),
            current,
            seen: None,
            unsaved: false,
            unsaved_attempts: None,
            window: None,
            ask_window: epoch,
            terms_reported: false,
            reported: Vec::new(),
            held_by: None,
            is_held: false,
            warn_again: epoch,
        }
    }

    fn now(&self) -> Timestamp {
        (self.acme.clock)()
    }

    fn names(&self) -> Vec<String> {
        self.acme.settings.names.clone()
    }

    async fn step(&mut self) {
        self.save();
        self.adopt();
        self.refresh_window().await;
        let now = self.now();
        self.is_held = false;
        if self.due() <= now && self.attempts().next(now) <= now {
            self.attempt().await;
        }
        self.warn_of_expiry();
    }

    /// The pause until the next step: short enough to notice other nodes' certificates and a clock that was set.
    fn pause(&self) -> Duration {
        let now = self.now();
        let poll = self.acme.settings.limits.poll;
        let poll = if self.is_held { poll.min(POLL_WHILE_HELD) } else { poll };
        let next = self.due().max(self.attempts().next(now));
        if next > now { poll.min(next.since(now)) } else { poll }
    }

    /// When the next certificate is wanted.
    fn due(&self) -> Timestamp {
        let Some(current) = &self.current else { return Timestamp::from_secs(0) };
        let digest = blake3::hash(current.keyed.chain_pem.as_bytes());
        let own = u64::from_le_bytes(digest.as_bytes()[..8].try_into().expect("8 bytes"));
        renewal(current.validity, self.window, Random::new(own ^ self.seed).fraction())
    }

    fn attempts(&self) -> Attempts {
        self.unsaved_attempts.clone().unwrap_or_else(|| self.acme.attempts_file.read())
    }

    fn show_progress(&self) {
        let (attempts, due) = (self.attempts(), self.due());
        let next_order = due.max(attempts.next(self.now())).max(self.started);
        let not_after = self.current.as_ref().map(|current| current.validity.not_after);
        self.acme.progress.update(|report| {
            (report.next_order, report.not_after) = (next_order, not_after);
            (report.failed_attempts, report.last_fault) = (attempts.failures, attempts.fault());
        });
    }

    fn record(&mut self, attempts: Attempts) {
        let written = self.acme.attempts_file.write(&attempts);
        self.unsaved_attempts = written.is_err().then_some(attempts);
        self.report(written.err());
    }

    /// Reports a trouble that was not reported yet.
    fn report(&mut self, trouble: Option<Fault>) {
        let Some(fault) = trouble.filter(|fault| !self.reported.contains(fault)) else { return };
        self.sink.event(&Event::Trouble(fault.clone()));
        if self.reported.len() == MAX_REPORTED {
            self.reported.clear();
        }
        self.reported.push(fault);
    }

    /// Takes over a certificate that another process put into the file, if it is valid longer than the current one.
    fn adopt(&mut self) {
        let text = match files::read(&self.acme.file) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(fault) => return self.report(Some(fault)),
        };
        let digest = blake3::hash(text.as_bytes());
        if self.seen.replace(digest) == Some(digest) {
            return;
        }
        let certificate = Certificate::read_file(&text).and_then(|certificate| {
            certificate.check(&self.acme.settings.names, self.now()).map(|()| certificate)
        });
        match certificate {
            Ok(certificate) => {
                let not_after = certificate.validity.not_after;
                if self.current.as_ref().is_none_or(|current| current.validity.not_after < not_after) {
                    let event = Event::Found { names: self.names(), not_after };
                    self.current = Some(certificate);
                    self.unsaved = false;
                    self.serve(&event);
                }
            }
            // It is replaced.
            Err(CertificateFault::Expired) => {}
            Err(fault) => self.report(Some(Fault::BadFile(self.acme.file.clone(), fault.to_string()))),
        }
    }

    /// Passes a new current certificate on.
    fn serve(&mut self, event: &Event) {
        self.window = None;
        self.ask_window = Timestamp::from_secs(0);
        self.warn_again = Timestamp::from_secs(0);
        self.show_progress();
        if let Some(current) = &self.current {
            self.sink.issued(&self.acme.settings.names, &current.keyed);
        }
        self.sink.event(event);
    }

    /// Writes the current certificate to its file, if that has not succeeded yet.
    fn save(&mut self) {
        let Some(current) = self.current.as_ref().filter(|_| self.unsaved) else { return };
        let text = current.to_file();
        match files::write(&self.acme.file, &text) {
            Ok(()) => {
                self.unsaved = false;
                self.seen = Some(blake3::hash(text.as_bytes()));
                self.reported.clear();
            }
            Err(fault) => self.report(Some(fault)),
        }
    }

    /// Asks the CA when to renew the current certificate, if that is due.
    async fn refresh_window(&mut self) {
        let now = self.now();
        let Some(id) = self.current.as_ref().and_then(|current| current.id.clone()) else { return };
        if now < self.ask_window || self.due() <= now {
            return;
        }
        let asked = async {
            let session = Session::open(&self.acme.settings, &self.acme.clock).await?;
            session.window(&id).await
        };
        let (shortest, longest) = WINDOW_POLL;
        match asked.await {
            Ok(Some((window, again))) => {
                self.window = Some(window);
                self.ask_window = now.plus(again.clamp(shortest, longest));
            }
            Ok(None) => self.ask_window = now.plus(longest),
            Err(Refusal { fault, retry_after }) => {
                self.ask_window = now.plus(retry_after.unwrap_or_default().clamp(shortest, longest));
                self.report(Some(fault));
            }
        }
    }

    /// Orders a certificate, unless another process is doing so or has just done so.
    async fn attempt(&mut self) {
        let order = self.acme.settings.limits.order;
        let _lease = match Lease::take(&self.acme.settings.state, &self.owner, order, self.now()) {
            Ok(Take::Taken(lease)) => lease,
            Ok(Take::Held { owner }) => {
                self.is_held = true;
                if !owner.is_empty() && self.held_by.as_ref() != Some(&owner) {
                    self.sink.event(&Event::OtherOrders { owner: owner.clone() });
                    self.held_by = Some(owner);
                }
                return;
            }
            Err(fault) => return self.report(Some(fault)),
        };
        self.held_by = None;
        self.adopt();
        let now = self.now();
        let mut attempts = self.attempts();
        if self.due() > now || attempts.next(now) > now {
            return;
        }
        match self.obtain(attempts.failures).await {
            Ok(certificate) => {
                let validity = certificate.validity;
                let now = self.now();
                let event = Event::Issued { names: self.names(), not_after: validity.not_after };
                // Kept before it is used: a process that ends in between would order another.
                self.current = Some(certificate);
                self.unsaved = true;
                self.save();
                self.record(Attempts::succeeded(validity.not_after.since(validity.not_before), now));
                self.serve(&event);
            }
            Err(Refusal { fault, retry_after }) => {
                let now = self.now();
                let count = |report: &mut Report| *report.failures.entry(fault.name()).or_default() += 1;
                self.acme.progress.update(count);
                attempts.failed(&fault, retry_after, self.random.fraction(), now);
                let record = self.acme.attempts_file.path().display().to_string();
                let next = attempts.next(now);
                self.record(attempts);
                self.sink.event(&Event::Failed { names: self.names(), fault, next, record });
            }
        }
    }

    /// Places an order. After a failure, the next kind of challenge is tried, and the certificate that is replaced is not
    /// named, because a CA may refuse that.
    async fn obtain(&mut self, failures: u32) -> Result<Certificate, Refusal> {
        let settings = &self.acme.settings;
        let session = Session::open(settings, &self.acme.clock).await?;
        if !self.terms_reported {
            self.terms_reported = true;
            let directory = settings.directory.clone();
            self.sink.event(&Event::TermsAccepted { directory, terms: session.terms() });
        }
        let challenge = settings.challenges[failures as usize % settings.challenges.len()];
        self.acme.progress.update(|report| report.orders += 1);
        self.sink.event(&Event::Ordering { names: settings.names.clone(), challenge });
        let current = self.current.as_ref().filter(|_| failures == 0);
        let replaces = current.and_then(|current| current.id.clone());
        let (challenges, clock) = (&self.acme.challenges, &self.acme.clock);
        let desk = Desk { settings, challenges, sink: &*self.sink, clock };
        desk.order(&session, challenge, replaces).await
    }

    fn warn_of_expiry(&mut self) {
        let now = self.now();
        let Some(validity) = self.current.as_ref().map(|current| current.validity) else { return };
        let margin = EXPIRY_WARNING.min(validity.not_after.since(validity.not_before) / 10);
        if now >= validity.not_after.minus(margin) && now >= self.warn_again {
            self.warn_again = now.plus(DAY);
            self.sink.event(&Event::Expiring { names: self.names(), not_after: validity.not_after });
        }
    }
}
