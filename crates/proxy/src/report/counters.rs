//! Counters, each defined once with its text.
//!
//! Every core has its own set and is the only one to write it, so counting is a load and a store. Readers sum
//! the sets.

use crate::Fault;
use crate::report::fragment_failure::FragmentFailure;
use crate::report::handling::Course;
use crate::report::latency::Latency;
use crate::report::pass_reason::PassReason;
use crate::report::tally::{CodedFrom, CodedTo, MissReason, NoStore, StatusClass, Tally, TlsVersion};
use crate::report::unbelieved::Unbelieved;
use sandarac_message::recoding::Uncompressed;
use sandarac_net::Refused;
use sandarac_net::tls::HandshakeFault;
use sandarac_wire::h1::repair::Repair;
use sandarac_wire::h2;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($variant:ident $name:literal $text:literal),* $(,)?) => {
        /// A counter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Counter {
            $(#[doc = $text] $variant),*
        }

        impl Counter {
            /// Every counter, in the order of the table.
            pub const ALL: &'static [Counter] = &[$(Counter::$variant),*];

            /// The name, as metrics show it without prefix and suffix.
            pub const fn name(self) -> &'static str {
                match self { $(Counter::$variant => $name),* }
            }

            /// A description of what it counts.
            pub const fn text(self) -> &'static str {
                match self { $(Counter::$variant => $text),* }
            }
        }
    };
}

counters! {
    Connections "connections" "Client connections accepted.",
    ConnectionsGaveWay "connections_gave_way" "Idle client connections closed for new ones because of the connection limit.",
    ConnectionsRefused "connections_refused" "Client connections answered 503 because of the connection limit.",
    HandshakesResumed "handshakes_resumed" "TLS handshakes with clients that resumed an earlier session.",
    ProxyHeadersMissing "proxy_headers_missing" "Client connections closed because they did not begin with a valid PROXY header.",
    AcceptFailures "accept_failures" "Failures to accept a connection, such as a lack of descriptors.",
    Requests "requests" "Requests received, refused ones not among them. Once they have ended, each is one of hits, hits_stale, revalidated, misses, passes, pipes, files, synthetic, purges and failed.",
    Hits "hits" "Requests answered from the store, fresh.",
    HitsStale "hits_stale" "Requests answered from the store, stale: in grace, while revalidating, or because the origin failed.",
    Revalidated "revalidated" "Requests answered from the store after the origin confirmed it (304).",
    Coalesced "coalesced" "Requests that waited for the fetch of another.",
    MarkedPasses "marked_passes" "Requests that a hit-for-miss or hit-for-pass mark sent straight to the origin.",
    Pipes "pipes" "Requests for a tunnel, whether the backend opened it or not.",
    Files "files" "Requests answered with a file.",
    Synthetic "synthetic" "Requests answered by a rule: fixed answers and redirects.",
    Purges "purges" "Purge requests over HTTP that were allowed.",
    PurgesDenied "purges_denied" "Purge requests over HTTP that were denied.",
    Fragments "fragments" "Fragments that pages asked for. Each is among requests, too.",
    Fetches "fetches" "Requests sent to origins, retries included.",
    FetchesQueued "fetches_queued" "Requests that waited for a place at a backend.",
    FetchRetries "fetch_retries" "Requests sent to an origin once more.",
    RetriesRefused "retries_refused" "Requests not sent once more because the budget for that was used up.",
    Hedges "hedges" "Requests sent to a second backend because the first was slow to answer.",
    HedgesWon "hedges_won" "Requests that the second backend answered first.",
    FetchFailures "fetch_failures" "Fetches that brought no response.",
    FetchesBackground "fetches_background" "Revalidations with no client waiting.",
    FetchesDetached "fetches_detached" "Fetches for the cache that went on when their client had left.",
    Unclassified "unclassified" "Requests to pools that go by classes which are of none.",
    ResumesFetched "resumes_fetched" "Whole résumés that workers were asked for.",
    ResumeChanges "resume_changes" "Responses that told changes of a worker's résumé.",
    WorkersMet "workers_met" "Connections on which a worker was asked for its version before they were used.",
    OriginConnections "origin_connections" "Connections opened to origins.",
    OriginConnectionsReused "origin_connections_reused" "Fetches that used a connection of the pool.",
    OriginConnectionsStray "origin_connections_stray" "Connections to origins closed because bytes came that no request had asked for.",
    FastCgiConnectionsYielded "fastcgi_connections_yielded" "Idle FastCGI connections closed because a request on a new one waited for an answer.",
    FastCgiStderrBytes "fastcgi_stderr_bytes" "Bytes of error messages from FastCGI applications.",
    BodiesGathered "bodies_gathered" "Request bodies that were received before a backend was chosen.",
    ResponsesSpooled "responses_spooled" "Responses that were read ahead of a slow client.",
    UploadsBroken "uploads_broken" "Request bodies that broke off, or were malformed, too large or late, after the response had begun.",
    BodiesTruncated "bodies_truncated" "Responses that broke off at the origin or were cut off here.",
    ClientsSlow "clients_slow" "Clients cut off because they sent or took too little in time.",
    BytesToClients "bytes_to_clients" "Bytes that were written to clients, heads and framing included.",
    BytesFromOrigins "bytes_from_origins" "Bytes of bodies received from origins.",
}

/// One core's counters.
#[derive(Debug)]
pub struct Counters {
    counts: [AtomicU64; Counter::ALL.len()],
    pub(crate) refused: Tally<Refused>,
    pub(crate) handshakes: Tally<TlsVersion>,
    pub(crate) handshakes_failed: Tally<HandshakeFault>,
    pub(crate) http2_faults: Tally<h2::Fault>,
    pub(crate) failed: Tally<Fault>,
    pub(crate) passes: Tally<PassReason>,
    pub(crate) misses: Tally<MissReason>,
    pub(crate) unstored: Tally<NoStore>,
    pub(crate) unbelieved: Tally<Unbelieved>,
    pub(crate) uncompressed: Tally<Uncompressed>,
    pub(crate) fragments_failed: Tally<FragmentFailure>,
    pub(crate) coded_from: Tally<CodedFrom>,
    pub(crate) coded_to: Tally<CodedTo>,
    pub(crate) repaired: Tally<Repair>,
    pub(crate) responses: Tally<StatusClass>,
    /// Time from the first byte of a request to the end of its response.
    pub latency: Latency,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            counts: [const { AtomicU64::new(0) }; Counter::ALL.len()],
            refused: Tally::default(),
            handshakes: Tally::default(),
            handshakes_failed: Tally::default(),
            http2_faults: Tally::default(),
            failed: Tally::default(),
            passes: Tally::default(),
            misses: Tally::default(),
            unstored: Tally::default(),
            unbelieved: Tally::default(),
            uncompressed: Tally::default(),
            fragments_failed: Tally::default(),
            coded_from: Tally::default(),
            coded_to: Tally::default(),
            repaired: Tally::default(),
            responses: Tally::default(),
            latency: Latency::default(),
        }
    }
}

impl Counters {
    /// Counts the course of a request, once.
    pub(crate) fn course(&self, course: Course) {
        match course {
            Course::Hit => self.one(Counter::Hits),
            Course::Stale => self.one(Counter::HitsStale),
            Course::Revalidated => self.one(Counter::Revalidated),
            Course::Miss(reason) => self.misses.one(&reason),
            Course::Pass(reason) => self.passes.one(&reason),
            Course::Pipe => self.one(Counter::Pipes),
            Course::File => self.one(Counter::Files),
            Course::Synth => self.one(Counter::Synthetic),
            Course::Purge => self.one(Counter::Purges),
            Course::Failed(fault) => self.failed.one(&fault),
            Course::Undecided => {}
        }
    }

    /// Counts one. Only the core that owns the set may call it.
    pub fn one(&self, counter: Counter) {
        self.add(counter, 1);
    }

    /// Counts `n`. Only the core that owns the set may call it.
    pub fn add(&self, counter: Counter, n: u64) {
        let count = &self.counts[counter as usize];
        count.store(count.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// Counts a client that was cut off for being slow, if `error`, from writing to it, means that.
    pub(crate) fn cut_off(&self, error: &io::Error) {
        if error.kind() == io::ErrorKind::TimedOut {
            self.one(Counter::ClientsSlow);
        }
    }

    /// The count so far.
    pub fn get(&self, counter: Counter) -> u64 {
        self.counts[counter as usize].load(Ordering::Relaxed)
    }
}
