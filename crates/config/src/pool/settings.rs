//! A pool as the file writes it.

use std::time::Duration;

use sandarac_balance::{
    Address, Algorithm, Backend, Checks, Ejection, ResumeSettings, Settings, SkillSource,
};

use crate::classify::ClassSettings;
use crate::definition::{Value, settings};
use crate::limited::{Bounded, BoundedSize, Decimal, Timeout};
use crate::path::AbsolutePath;
use crate::pool::fastcgi::FastCgiSettings;
use crate::pool::source::Sources;
use crate::pool::status::StatusRange;
use crate::pool::sticky::StickySettings;
use crate::report::{At, Complaint, Node, Report};
use crate::setting::Kind;
use crate::tls::PoolTlsSettings;
use crate::value::{Key, Text, choice};

settings! {
    /// A pool.
    pub(crate) struct PoolSettings {
        /// Where the backends are: `http://host:port`, `https://host:port` or `unix:/path`, or a table with more settings;
        /// `h2://host:port` or `h2+unix:/path` if they speak HTTP/2 in clear; with `fastcgi`, `fcgi://host:port` or
        /// `fcgi+unix:/path`. Names are resolved again when their DNS records expire.
        backends: Vec<At<BackendSettings>> = Vec::new(), unset "the pool has a `discover`" "[\"http://127.0.0.1:8000\"]";
        /// How a backend is chosen. `least_requests`: of two drawn at random, the one with fewer requests in flight.
        /// `resume`: the worker that is best at the request's class, by the résumés that workers keep. `peak_ewma`: of
        /// two drawn at random, the one with the smaller product of requests in flight and latency. `round_robin`: each
        /// in turn. `random`: any. `consistent_hash`: the next on a hash ring for the request's class that is not
        /// loaded above its share by more than `load_factor`. `maglev`: the backend in a lookup table for the request's
        /// class. `fallback`: the first available, in the order written.
        balance: At<Algorithm> = At::nowhere(Algorithm::default());
        /// How requests are sorted into classes, for `resume`, `consistent_hash` and `maglev`. `"host"`: the host in
        /// lower case, without port and leading `www.`. `"path_segment(2)"`: the second segment of the path. A
        /// template: `{host}`, `{path}`, `{query}`, `{target}` (path and query as received), `{method}`, `{segment:2}`,
        /// `{header:NAME}`, `{cookie:NAME}` and `{query:NAME}` stand for parts of the request. Or a table.
        class: At<ClassSettings> = At::nowhere(ClassSettings::default());
        /// For `consistent_hash`: how far a backend may be loaded above its share, as a factor. Closer to 1 spreads load
        /// more evenly, and classes over more backends.
        // The default is justified where it is defined.
        load_factor: At<Decimal<1_000, 1_000_000>> = At::nowhere(Decimal::default_of(Settings::default().load_factor));
        /// How long a backend that entered service gets less than its share, growing with time. It has no effect with
        /// `maglev` and `fallback`; with `consistent_hash` it lowers the bound.
        slow_start: Duration = Settings::default().slow_start;
        /// For `resume`: whether only the largest group of backends with the same version serves. Of several equally
        /// large groups, the one already serving continues.
        single_version: At<bool> = At::nowhere(Settings::default().single_version);
        /// The most requests in flight to each backend. When all are full, requests wait in the queue; if `balance`
        /// uses classes, a request also waits when the best backend for it is full and worth waiting for. Over HTTP/1.1
        /// each request has its own connection, so this also limits active connections.
        max_in_flight: Option<Bounded<1, { u32::MAX }>> = None, unset "no limit" "64";
        /// The most requests that wait for a place at a backend of this pool, first come, first served; more are
        /// answered with 503. With 0 no request waits.
        // The default is justified at the constant.
        queue: Bounded<0, 1_000_000> = Bounded::of::<{ Settings::QUEUE_LIMIT }>();
        /// How long a request waits for a place before it is answered with 503. It waits at most half of that time for
        /// its best backend, then for any.
        // About as long as people wait before they reload a page, which would only lengthen the queue.
        queue_timeout: Timeout = Timeout::secs::<10>();
        /// How long connecting to a backend may take.
        // A round trip around the world and one lost SYN.
        connect_timeout: Timeout = Timeout::secs::<5>();
        /// How long a backend may take from the request to the end of the response head, and how long it may accept
        /// nothing of a request body. Exceeding it is answered with 504.
        first_byte_timeout: Timeout = Timeout::secs::<60>();
        /// How long a backend may pause between two reads of a response.
        between_bytes_timeout: Timeout = Timeout::secs::<60>();
        /// How long an idle connection to a backend is kept. Set it lower than the backend's own timeout; otherwise
        /// requests may be sent on connections that are just being closed.
        // Application servers close after 5 s (Node, uvicorn) or later.
        idle_timeout: Timeout = Timeout::secs::<4>();
        /// The longest time that a connection to a backend is used, so that load moves to backends newly added behind a
        /// load balancer with a single name.
        // nginx's keepalive_time.
        connection_age: Timeout = Timeout::secs::<3600>();
        /// How often a request lost at a backend is retried at another one, if there is one and it is safe. Refused
        /// connections do not count, unless this is 0.
        retries: Bounded<0, 2> = Bounded::of::<2>();
        /// How many requests may be retried, so that a pool where most fail does not get double the load. A connection
        /// that was refused, or was kept and had ended, does not count, nor does the first request lost at a healthy
        /// backend.
        retry_budget: RetryBudgetSettings = RetryBudgetSettings::default();
        /// How long a GET or HEAD waits for a response before it is also sent to a second backend; the first response
        /// counts. This increases the load of the backends.
        hedge_after: Option<Timeout> = None, unset "never" "\"500ms\"";
        /// Whether a request that timed out is retried at another backend. A page that hangs one worker may hang the
        /// next.
        retry_timeouts: bool = false;
        /// Whether a request is abandoned when its client closes the connection: a waiting request is dropped, and one
        /// that was sent and has no response yet ends with its connection to the backend. A fetch that fills the cache
        /// continues without its client. Turn it off for clients that close their sending side after the request and
        /// still read.
        abort_on_close: bool = true;
        /// Whether trailers of request bodies are forwarded to the backends. They pass the edits and filters of fields;
        /// trailers that affect framing, routing, authentication or conditions are never forwarded. Some servers take
        /// trailers for the next request, others for fields: turn this on only for backends that are known to read
        /// them.
        forward_trailers: bool = false;
        /// The most bytes of a response that are read ahead of a client that is slower than the backend, so that the backend
        /// can serve others. With `"0B"` responses go at the pace of their clients. Event streams, gRPC over HTTP/2 on both sides
        /// and responses with `X-Accel-Buffering: no` always do.
        // nginx's proxy_max_temp_file_size.
        read_ahead: BoundedSize<0, { 1 << 40 }> = BoundedSize::of::<{ 1 << 30 }>();
        /// The most bytes of a request body that is gathered; see `gather` of the route. One with a longer `Content-Length` is
        /// forwarded as it comes. Backends that speak FastCGI must know the length: for them, a longer body without
        /// `Content-Length` is answered with 413.
        // PHP's own limit of posted data.
        gather_limit: BoundedSize<0, { 1 << 30 }> = BoundedSize::of::<{ 8 << 20 }>();
        /// Makes sessions stick to a backend by a cookie, with any `balance`.
        sticky: Option<At<StickySettings>> = None, unset "sessions do not stick" "{ cookie = \"sandarac_backend\" }";
        /// For `resume`: how workers are weighed.
        resume: At<ResumeTable> = At::nowhere(ResumeTable::default());
        /// Checks backends at intervals; an unhealthy one gets no requests.
        check: Option<CheckSettings> = None, unset "no checks" "{ path = \"/\" }";
        /// When a backend is ejected because of failing requests. The last backend is never ejected.
        ejection: At<EjectionSettings> = At::nowhere(EjectionSettings::default());
        /// TLS to backends whose addresses begin with `https://`.
        tls: Option<At<PoolTlsSettings>> = None, unset "certificates are verified by the CAs of the system"
            "{ ca = \"/etc/ssl/internal-ca.pem\" }";
        /// FastCGI to the backends: their addresses begin with `fcgi://` or `fcgi+unix:`.
        fastcgi: Option<At<FastCgiSettings>> = None, unset "the backends speak HTTP" "{ root = \"/srv/wiki\" }";
        /// The directory tree whose files the backends may name in `X-Sendfile` of a response, by absolute path; such a file is
        /// sent in place of the body. The field is never forwarded.
        x_sendfile: Option<At<AbsolutePath>> = None, unset "the field is removed, and has no effect" "\"/srv/downloads\"";
        /// Whether the backends may name a file of a route with `internal = true` in `X-Accel-Redirect` of a response, by its
        /// path as in a URL; it is sent in place of the body. `X-Accel-Expires` of their other responses is obeyed too. No
        /// `X-Accel-…` of nginx is ever forwarded.
        x_accel_redirect: At<bool> = At::nowhere(false);
        /// Sources of more backends. A source that cannot be reached leaves the pool unchanged.
        discover: Sources = Sources::default(), unset "no other backends" "{ directory = \"/run/app\" }";
    }

    /// A backend.
    pub(crate) struct BackendTable {
        /// Its address: `http://host:port`, `https://host:port`, `h2://host:port`, `unix:/path` or `h2+unix:/path`; with
        /// `fastcgi`, `fcgi://host:port` or `fcgi+unix:/path`.
        address: Option<At<Address>> = None, required "\"http://127.0.0.1:8000\"";
        /// Its share of the load relative to others. It has no effect with `fallback`.
        weight: At<Bounded<1, { Backend::MAX_WEIGHT }>> = At::nowhere(Bounded::of::<1>());
        /// The most requests in flight to it.
        max_in_flight: Option<Bounded<1, { u32::MAX }>> = None, unset "the pool's limit" "8";
    }

    /// How many requests may be retried.
    pub(crate) struct RetryBudgetSettings {
        /// Retries for every hundred requests.
        // Both as in Finagle's RetryBudget and linkerd's; Envoy has the same share. Like theirs, the budget accumulates
        // over ten seconds.
        percent: Bounded<0, 1000> = Bounded::of::<20>();
        /// Retries for every second in addition, so that a pool with few requests can retry too.
        per_second: Bounded<0, 10_000> = Bounded::of::<10>();
    }

    /// How `resume` weighs workers. The defaults are justified where they are defined.
    pub(crate) struct ResumeTable {
        /// How much longer a request waits for a worker that has its data rather than have another load all of it,
        /// in mean waits. With a larger value, requests wait longer for a worker that has their data; with a
        /// smaller one, more workers load the same data. A class spreads over at most 1 / `variance` of the
        /// workers, or three.
        variance: Decimal<100, 1_000_000> = Decimal::default_of(ResumeSettings::default().variance);
        /// How many requests the mean wait and the reported mean backlog of a worker are averaged over.
        backlog_history: Bounded<1, 1_000_000> = Bounded::default_of(ResumeSettings::default().backlog_history);
        /// The share of requests that may be used to introduce an underused worker to a class; 0 for none.
        exploration: Decimal<0, 1_000> = Decimal::default_of(ResumeSettings::default().exploration);
        /// The most requests that a worker works on at a time, if it does not report that itself. With a value that is
        /// too small, a busy worker seems to be quicker than an idle one.
        concurrency: Bounded<1, 10_000> = Bounded::default_of(ResumeSettings::default().concurrency);
        /// The most classes known at a time.
        max_classes: Bounded<1, 10_000_000> = Bounded::default_of(ResumeSettings::default().max_classes as u32);
        /// Where skills come from. `reported`: from the workers, which keep résumés. `inferred`: from response times
        /// measured by the balancer, for workers without résumés.
        skills: SkillSource = ResumeSettings::default().skills;
        /// The file in which inferred skills are saved; it is read when the process starts.
        skills_file: Option<At<AbsolutePath>> = None, unset "they are not saved" "\"/var/lib/sandarac/skills.json\"";
    }

    /// Active checks.
    pub(crate) struct CheckSettings {
        /// The path requested by GET, with an optional query.
        path: CheckPath = CheckPath("/".to_owned());
        /// The value of `Host`.
        host: Option<HostValue> = None, unset "the host and port of the backend, `localhost` for a Unix socket"
            "\"www.example.com\"";
        /// The statuses of a healthy backend.
        status: Vec<StatusRange> = vec![StatusRange::NO_ERROR];
        /// The time from one check of a backend to the next.
        // As in Varnish; so is the timeout.
        interval: Timeout = Timeout::secs::<5>();
        /// How long a check may take, connecting included.
        timeout: Timeout = Timeout::secs::<2>();
        /// How many checks in a row must pass before a backend that was out of service gets requests.
        rise: Bounded<1, 1000> = Bounded::default_of(Checks::default().rise);
        /// How many checks in a row must fail before a backend gets no more requests.
        fall: Bounded<1, 1000> = Bounded::default_of(Checks::default().fall);
    }

    /// Passive ejection. The defaults are justified where they are defined.
    pub(crate) struct EjectionSettings {
        /// How many requests to it must fail in a row: connection refused, closed without a response, or timed out.
        failures: Bounded<1, 1_000_000> = Bounded::default_of(Ejection::default().failures);
        /// The share of its responses, in percent, that must be 5xx or broken, over about the last 32, while the share
        /// of the others is at most half of its own; with 0, responses eject no backend.
        fault_percent: Bounded<0, 100> = Bounded::default_of(Ejection::default().fault_percent);
        /// How long it is ejected the first time. Each further ejection without a success in between lasts twice as
        /// long.
        first: Timeout = Timeout::default_of(Ejection::default().first);
        /// The longest ejection.
        longest: Timeout = Timeout::default_of(Ejection::default().longest);
        /// The share of a pool, in percent, that may be ejected at a time; unless it is 0, one backend may always be.
        max_percent: Bounded<0, 100> = Bounded::default_of(Ejection::default().max_percent);
    }
}

/// A backend, written as a string or as a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BackendSettings(pub(crate) BackendTable);

impl BackendSettings {
    /// A backend with only an address.
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
        // A host is whatever a backend address accepts as one.
        match Address::from_text(&format!("http://{text}")) {
            Ok(_) if !text.contains('/') && text.trim() == text => Ok(HostValue(text.to_owned())),
            _ => Err(Complaint::new(format!("{text:?} is not {}", HostValue::form().words()))),
        }
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}
