//! A pool as the file writes it.

use std::time::Duration;

use sandarac_balance::{
    Address, Algorithm, Backend, Checks, Ejection, ResumeSettings, Settings, SkillSource,
};

use crate::classify::ClassSettings;
use crate::definition::{Value, settings};
use crate::limited::{Bounded, Decimal, Timeout};
use crate::path::AbsolutePath;
use crate::pool::source::Sources;
use crate::pool::status::StatusRange;
use crate::pool::sticky::StickySettings;
use crate::report::{At, Complaint, Node, Report};
use crate::setting::Kind;
use crate::value::{Key, Text, choice};

settings! {
    /// A pool.
    pub(crate) struct PoolSettings {
        /// Where the backends are: `http://host:port` or `unix:/path`, or a table that says more of one. Names are looked up
        /// again when their DNS records expire.
        backends: Vec<At<BackendSettings>> = Vec::new(), unset "the pool has a `discover`" "[\"http://127.0.0.1:8000\"]";
        /// How a backend is chosen. `least_requests`: of two drawn at random, the one with fewer requests in flight.
        /// `resume`: the worker that is best at the request's class, by the résumés that workers keep. `peak_ewma`: of two
        /// drawn at random, the one with the smaller product of requests in flight and latency. `round_robin`: each in turn.
        /// `random`: any. `consistent_hash`: the next on a hash ring for the request's class that is not loaded above its
        /// share by more than `load_factor`. `maglev`: the one that a lookup table has for the request's class.
        /// `fallback`: the first, in the order written, that can.
        balance: At<Algorithm> = At::nowhere(Algorithm::default());
        /// What sorts requests into classes, for `resume`, `consistent_hash` and `maglev`. `"host"`: the host in lower
        /// case, without port and leading `www.`. `"path_segment(2)"`: the second segment of the path. A template:
        /// `{host}`, `{path}`, `{query}`, `{target}` (path and query as received), `{method}`, `{segment:2}`,
        /// `{header:NAME}`, `{cookie:NAME}` and `{query:NAME}` stand for parts of the request. Or a table.
        class: At<ClassSettings> = At::nowhere(ClassSettings::default());
        /// For `consistent_hash`: how far a backend may be loaded above its share, as a factor. Closer to 1 spreads load
        /// more evenly, and classes over more backends.
        // The reason stands at the default.
        load_factor: At<Decimal<1_000, 1_000_000>> = At::nowhere(Decimal::default_of(Settings::default().load_factor));
        /// How long a backend that came into service is given less than its share, growing with time. `maglev` and `fallback`
        /// do not heed it; for `consistent_hash` it lowers the bound.
        slow_start: Duration = Settings::default().slow_start;
        /// For `resume`: whether only the largest group of backends serves that announce the same version. Of several as
        /// large it is the one that serves already.
        single_version: At<bool> = At::nowhere(Settings::default().single_version);
        /// The most requests in flight to each backend. When all are full, requests wait in the queue; where `balance` goes by
        /// classes, also when the backend is full that is best for the request and worth waiting for. Each has a connection of
        /// its own, so this limits connections in use, too.
        max_in_flight: Option<Bounded<1, { u32::MAX }>> = None, unset "no limit" "64";
        /// The most requests that wait for a place at a backend of this pool, those that wait for the same in the order they
        /// came; more are answered with 503, and with 0 nothing waits.
        // The reason stands at the constant.
        queue: Bounded<0, 1_000_000> = Bounded::of::<{ Settings::QUEUE_LIMIT }>();
        /// How long a request waits for a place before it is answered with 503. It waits at most half of that for the backend
        /// that is best for it, then for any.
        // About as long as people wait for a page before they load it again, which would only make the queue longer.
        queue_timeout: Timeout = Timeout::secs::<10>();
        /// How long connecting to a backend may take.
        // A round trip around the world and one lost SYN.
        connect_timeout: Timeout = Timeout::secs::<5>();
        /// How long a backend may take from the request to the end of the head of its response; and how long it may take
        /// nothing of a request body that has come. Answered for with 504.
        first_byte_timeout: Timeout = Timeout::secs::<60>();
        /// How long a backend may pause between two reads of a response.
        between_bytes_timeout: Timeout = Timeout::secs::<60>();
        /// How long an idle connection to a backend is kept. Less than the backend itself keeps it, or requests meet
        /// connections that are just being closed.
        // Application servers close after 5 s (Node, uvicorn) or later.
        idle_timeout: Timeout = Timeout::secs::<4>();
        /// How long a connection to a backend is used at most, so that load moves to backends that a balancer behind a name
        /// has taken in meanwhile.
        // nginx's keepalive_time.
        connection_age: Timeout = Timeout::secs::<3600>();
        /// How often a request that was lost at a backend is tried at another one, if there is one and that is safe. Backends
        /// that refuse the connection do not count, unless this is 0.
        retries: Bounded<0, 2> = Bounded::of::<2>();
        /// How many requests may be tried again, so that a pool where most fail is not given double the load. A connection that
        /// was refused, or was kept and had ended, costs nothing here, nor does the first request lost at a backend that was well.
        retry_budget: RetryBudgetSettings = RetryBudgetSettings::default();
        /// How long a GET or HEAD waits for an answer before it is sent to a second backend as well; the first answer
        /// counts. It costs the backends more than they would have to do.
        hedge_after: Option<Timeout> = None, unset "never" "\"500ms\"";
        /// Whether a request that had no answer in time is tried at another backend, too. A page that hangs one worker may hang the
        /// next.
        retry_timeouts: bool = false;
        /// Whether a request is given up when its client closes the connection: one that waits for a place is dropped, one that
        /// was sent and has no answer yet ends with its connection to the backend. A fetch that fills the cache goes on without
        /// its client. Turn it off where clients close their sending side after the request and still read.
        abort_on_close: bool = true;
        /// Whether trailers of request bodies go on to the backends. They pass the edits and filters of fields; those that
        /// frame, route, authenticate or set conditions never go on. Some servers take trailers for the next request, others
        /// for fields: turn this on for backends that are known to read them.
        forward_trailers: bool = false;
        /// Lets sessions stick to a backend, by a cookie, whatever `balance` is.
        sticky: Option<At<StickySettings>> = None, unset "they do not" "{ cookie = \"sandarac_backend\" }";
        /// For `resume`: how workers are weighed.
        resume: At<ResumeTable> = At::nowhere(ResumeTable::default());
        /// Lets backends be asked, time and again, whether they are well; one that is not gets no requests.
        check: Option<CheckSettings> = None, unset "they are not asked" "{ path = \"/\" }";
        /// When a backend is left out for what becomes of requests to it. One is never left out: the last.
        ejection: At<EjectionSettings> = At::nowhere(EjectionSettings::default());
        /// Where more backends are found. A source that cannot be reached leaves the pool as it is.
        discover: Sources = Sources::default(), unset "there are no others" "{ directory = \"/run/app\" }";
    }

    /// A backend.
    pub(crate) struct BackendTable {
        /// Where it is: `http://host:port` or `unix:/path`.
        address: Option<At<Address>> = None, required "\"http://127.0.0.1:8000\"";
        /// How much of the load it is to bear, compared with others. `fallback` does not heed it.
        weight: At<Bounded<1, { Backend::MAX_WEIGHT }>> = At::nowhere(Bounded::of::<1>());
        /// The most requests in flight to it.
        max_in_flight: Option<Bounded<1, { u32::MAX }>> = None, unset "the pool's limit" "8";
    }

    /// How many requests may be tried again.
    pub(crate) struct RetryBudgetSettings {
        /// Retries for every hundred requests.
        // Both as in Finagle's RetryBudget and linkerd's; Envoy has the same share. Like theirs, the budget saves up for
        // ten seconds.
        percent: Bounded<0, 1000> = Bounded::of::<20>();
        /// Retries for every second, beside those, so that a pool with few requests can try again too.
        per_second: Bounded<0, 10_000> = Bounded::of::<10>();
    }

    /// How `resume` weighs workers. The reasons for the defaults stand where they are taken from.
    pub(crate) struct ResumeTable {
        /// How far a worker's backlog may be above that of others, in mean backlogs, before it is skipped. The greater it is,
        /// the longer requests wait for a worker that has their data; the smaller, the more workers load the same data.
        variance: Decimal<100, 1_000_000> = Decimal::default_of(ResumeSettings::default().variance);
        /// How many requests a worker's backlog is averaged over.
        backlog_history: Bounded<1, 1_000_000> = Bounded::default_of(ResumeSettings::default().backlog_history);
        /// The score, in requests per second, of a worker that is given a class it does not know.
        unskilled_score: Decimal<1, 1_000_000_000_000> = Decimal::default_of(ResumeSettings::default().unskilled_score);
        /// The share of requests that may be used to make an underused worker known to a class; 0 for none.
        exploration: Decimal<0, 1_000> = Decimal::default_of(ResumeSettings::default().exploration);
        /// The most classes known at a time.
        max_classes: Bounded<1, 10_000_000> = Bounded::default_of(ResumeSettings::default().max_classes as u32);
        /// Whose word on skills counts. `reported`: the workers', who keep résumés. `inferred`: the balancer's own, by how long
        /// answers take; for workers that know nothing of résumés.
        skills: SkillSource = ResumeSettings::default().skills;
        /// Where inferred skills are saved, to be read when the process starts.
        skills_file: Option<At<AbsolutePath>> = None, unset "they are not" "\"/var/lib/sandarac/skills.json\"";
    }

    /// Active checks.
    pub(crate) struct CheckSettings {
        /// The path that is asked for, by GET, with a query or not.
        path: CheckPath = CheckPath("/".to_owned());
        /// The value of `Host`.
        host: Option<HostValue> = None, unset "the host and port of the backend, `localhost` for a Unix socket"
            "\"www.example.com\"";
        /// The statuses of a backend that is well.
        status: Vec<StatusRange> = vec![StatusRange::NO_ERROR];
        /// How long from one check of a backend to the next.
        // As Varnish probes; so is the timeout.
        interval: Timeout = Timeout::secs::<5>();
        /// How long an answer may take, with connecting.
        timeout: Timeout = Timeout::secs::<2>();
        /// How many checks in a row must pass before a backend that was out of service gets requests.
        rise: Bounded<1, 1000> = Bounded::default_of(Checks::default().rise);
        /// How many checks in a row must fail before a backend gets no more requests.
        fall: Bounded<1, 1000> = Bounded::default_of(Checks::default().fall);
    }

    /// Passive ejection. The reasons for the defaults stand where they are taken from.
    pub(crate) struct EjectionSettings {
        /// How many requests to it must fail in a row: the connection refused, ended without an answer, or without one in time.
        failures: Bounded<1, 1_000_000> = Bounded::default_of(Ejection::default().failures);
        /// The share of its responses, in percent, that must be 5xx or broken, over about the last 32 and where the others do
        /// at most half as badly; with 0, responses eject nobody.
        fault_percent: Bounded<0, 100> = Bounded::default_of(Ejection::default().fault_percent);
        /// How long it is left out the first time. Each time that follows without a success between lasts twice as long.
        first: Timeout = Timeout::default_of(Ejection::default().first);
        /// The longest that it is left out.
        longest: Timeout = Timeout::default_of(Ejection::default().longest);
        /// The share of a pool, in percent, that may be left out at a time; unless it is 0, one may.
        max_percent: Bounded<0, 100> = Bounded::default_of(Ejection::default().max_percent);
    }
}

/// A backend, written as a string or as a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BackendSettings(pub(crate) BackendTable);

impl BackendSettings {
    /// A backend of which nothing but the address is said.
    pub(crate) fn at(address: At<Address>) -> BackendSettings {
        BackendSettings(BackendTable { address: Some(address), ..BackendTable::default() })
    }
}

impl Value for BackendSettings {
    fn kind() -> Kind {
        Kind::Either(vec![Address::form(), BackendTable::kind()])
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<BackendSettings> {
        match node.get_ref().is_table() {
            true => BackendTable::read(node, report).map(BackendSettings),
            false => Value::read(node, report).map(BackendSettings::at),
        }
    }

    fn show(&self) -> Option<String> {
        None
    }
}

choice!(Algorithm {
    "least_requests" => Algorithm::LeastRequests,
    "resume" => Algorithm::Resume,
    "peak_ewma" => Algorithm::PeakEwma,
    "round_robin" => Algorithm::RoundRobin,
    "random" => Algorithm::Random,
    "consistent_hash" => Algorithm::ConsistentHash,
    "maglev" => Algorithm::Maglev,
    "fallback" => Algorithm::Fallback,
});

choice!(SkillSource { "reported" => SkillSource::Reported, "inferred" => SkillSource::Inferred });

/// The name of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PoolName(pub(crate) String);

impl Text for PoolName {
    fn form() -> Kind {
        Kind::Text { name: "pool name", form: "the name of a pool", examples: &["app"] }
    }

    fn from_text(text: &str) -> Result<PoolName, Complaint> {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        match (1..=64).contains(&text.len()) && text.bytes().all(letter) {
            true => Ok(PoolName(text.to_owned())),
            false => Err(Complaint::new(format!("{text:?} is not a name of letters, digits, `-` and `_`"))),
        }
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

impl Key for PoolName {
    const WHAT: &'static str = "names";

    fn from_key(key: &str) -> Result<PoolName, Complaint> {
        PoolName::from_text(key)
    }
}

/// The target of a check.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CheckPath(pub(crate) String);

impl Text for CheckPath {
    fn form() -> Kind {
        Kind::Text { name: "path", form: "a path", examples: &["/", "/health?deep=1"] }
    }

    fn from_text(text: &str) -> Result<CheckPath, Complaint> {
        let not = || Complaint::new(format!("{text:?} is not {}", CheckPath::form().words()));
        if !text.starts_with('/') {
            return Err(not().help(format!("a path begins with a slash: \"/{text}\"")));
        }
        match text.len() <= 4096 && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            true => Ok(CheckPath(text.to_owned())),
            false => Err(not().help("write it percent-encoded, as browsers send it")),
        }
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

/// The value of a `Host` field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HostValue(pub(crate) String);

impl Text for HostValue {
    fn form() -> Kind {
        Kind::Text {
            name: "host with or without a port",
            form: "a host with or without a port",
            examples: &["www.example.com", "localhost:8000"],
        }
    }

    fn from_text(text: &str) -> Result<HostValue, Complaint> {
        // What names a backend names a host.
        match Address::from_text(&format!("http://{text}")) {
            Ok(_) if !text.contains('/') && text.trim() == text => Ok(HostValue(text.to_owned())),
            _ => Err(Complaint::new(format!("{text:?} is not {}", HostValue::form().words()))),
        }
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}
