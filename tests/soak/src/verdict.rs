//! Violations, each with a report of its own, and counts.

use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The load ends early after so many reports: those that follow say little more.
const MOST_REPORTS: usize = 20;

/// So many violations of one rule are reported, the others counted.
const REPORTS_OF_A_RULE: usize = 5;

macro_rules! table {
    ($(#[$meta:meta])* $name:ident { $($variant:ident $text:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($variant),* }

        impl $name {
            pub(crate) const ALL: &[$name] = &[$($name::$variant),*];

            pub(crate) const fn text(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }
        }
    };
}

table! {
    /// The rules that responses, connections and the process must keep.
    Rule {
        Url "each response is for the URL that was asked for",
        Owner "each page is for the client that asked",
        Nonce "each answer carries the nonce of its request",
        Body "each body is right to the last byte, also one that breaks off",
        Purged "no version is served that a purge or a ban had removed",
        Age "no version is served for longer than its lifetime",
        Validator "304 and 206 name a version that was asked for",
        Hidden "fields for the cache alone do not reach clients",
        Framing "what comes is HTTP/1.1, HTTP/2 or FastCGI",
        Unasked "nothing comes that was not asked for",
        Status "each status is one that a chore or the origin explains",
        Silence "each request is answered",
        Broken "responses of well-behaved origins come whole",
        Resent "no POST reaches an origin twice",
        Sticky "a session stays with its backend",
        Address "the origin is told the address of the client",
        Upload "uploads arrive as they were sent",
        Tunnel "tunnels carry every byte, and their end as it was",
        Chore "purges, bans and reloads succeed",
        Harness "the soak itself does not fail",
    }
}

table! {
    /// What is counted for the table at the end.
    Count {
        Connections "connections",
        Requests "requests",
        Whole "responses whole",
        Cut "responses cut",
        Refused "responses refused by Sandarac",
        OriginErrors "errors of origins",
        Unanswered "requests without an answer",
        Hits "of these from the cache",
        Stale "of these stale",
        NotModified "304",
        Partial "206",
        Heads "HEAD",
        Posts "POST",
        Uploads "uploads",
        Tunnels "tunnels",
        Cgi "requests by FastCGI",
        Files "files",
        Aborts "connections left early",
        Hoards "connections that take nothing and make much be held",
        Resets "of these by a reset",
        Slow "slow readers",
        Bytes "bytes received",
        Purges "purges",
        Bans "bans",
        Reloads "reloads",
        Kills "backends killed",
        Droughts "times without descriptors",
        Restarts "restarts",
        Strays "stray responses of origins",
        Excused "undetectable",
        CutOff "cut off because the machine kept them from reading",
        SlowCutOff "cut off because they take little at a time",
        TooSlow "clients that Sandarac found too slow",
    }
}

/// A broken rule, as the oracle finds it.
#[derive(Debug)]
pub(crate) struct Complaint {
    pub(crate) rule: Rule,
    /// What should have come, or what is wrong.
    pub(crate) expected: String,
}

impl Complaint {
    pub(crate) fn new(rule: Rule, expected: impl Into<String>) -> Complaint {
        Complaint { rule, expected: expected.into() }
    }
}

/// All that was seen so far.
pub(crate) struct Verdict {
    seed: u64,
    began: Instant,
    counts: [AtomicU64; Count::ALL.len()],
    broken: [AtomicUsize; Rule::ALL.len()],
    checks: Mutex<Vec<(bool, String)>>,
    stopping: AtomicBool,
}

impl Verdict {
    pub(crate) fn new(seed: u64) -> Verdict {
        Verdict {
            seed,
            began: Instant::now(),
            counts: [const { AtomicU64::new(0) }; Count::ALL.len()],
            broken: [const { AtomicUsize::new(0) }; Rule::ALL.len()],
            checks: Mutex::default(),
            stopping: AtomicBool::new(false),
        }
    }

    pub(crate) fn count(&self, count: Count) {
        self.add(count, 1);
    }

    pub(crate) fn add(&self, count: Count, number: u64) {
        self.counts[count as usize].fetch_add(number, Ordering::Relaxed);
    }

    pub(crate) fn of(&self, count: Count) -> u64 {
        self.counts[count as usize].load(Ordering::Relaxed)
    }

    /// Reports a violation of `rule`. `lines` are what was asked, what came and what was expected, each with its name.
    pub(crate) fn violation(&self, rule: Rule, lines: &[(&str, String)]) {
        if self.broken[rule as usize].fetch_add(1, Ordering::SeqCst) >= REPORTS_OF_A_RULE {
            return;
        }
        let mut block = format!(
            "\nVIOLATION after {:.1} s, seed {}: not so: {}\n",
            self.began.elapsed().as_secs_f64(),
            self.seed,
            rule.text()
        );
        for (name, text) in lines {
            let _ = writeln!(block, "  {name:9} {text}");
        }
        print!("{block}");
        if self.reports() >= MOST_REPORTS {
            self.stop();
        }
    }

    fn reports(&self) -> usize {
        self.broken.iter().map(|count| count.load(Ordering::SeqCst).min(REPORTS_OF_A_RULE)).sum()
    }

    /// Records how a check at the end came out.
    pub(crate) fn check(&self, holds: bool, what: impl Into<String>) {
        self.checks.lock().expect("no thread panics here").push((holds, what.into()));
    }

    /// Ends the load.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Sleeps, unless the load ends meanwhile.
    pub(crate) fn sleep(&self, duration: Duration) {
        let until = Instant::now() + duration;
        while !self.is_stopping() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }

    /// Checks that each of `counts` took place: what never came up was not tested.
    pub(crate) fn check_load(&self, counts: &[Count]) {
        let missing: Vec<&str> =
            counts.iter().filter(|&&count| self.of(count) == 0).map(|count| count.text()).collect();
        self.check(missing.is_empty(), format!("all that is counted took place {}", missing.join(", ")));
        let (whole, requests) = (self.of(Count::Whole), self.of(Count::Requests));
        self.check(whole * 2 > requests, format!("most requests are answered: {whole} of {requests}"));
    }

    /// Prints the table, and whether every check held.
    pub(crate) fn conclude(&self) -> bool {
        println!();
        for &count in Count::ALL {
            println!("{:>14}  {}", self.of(count), count.text());
        }
        println!("{:>14.1}  seconds\n", self.began.elapsed().as_secs_f64());
        let (mut passed, mut failed) = (0, 0);
        let mut line = |holds: bool, text: String| {
            *(if holds { &mut passed } else { &mut failed }) += 1;
            println!("{}  {text}", if holds { "ok    " } else { "FAILED" });
        };
        for &rule in Rule::ALL {
            match self.broken[rule as usize].load(Ordering::SeqCst) {
                0 => line(true, rule.text().to_owned()),
                times => line(false, format!("{}: broken {times} times", rule.text())),
            }
        }
        for (holds, what) in self.checks.lock().expect("no thread panics here").iter() {
            line(*holds, what.clone());
        }
        println!("\n{passed} passed, {failed} failed");
        failed == 0
    }
}
