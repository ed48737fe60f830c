//! The oracle: what a response may be, given the request and what is known of the site.

mod cached;
mod echo;
mod file;

use std::time::{Duration, Instant};

use sandarac_test_support::{Response, Trouble};

use crate::ask::{Ask, Wants};
use crate::busy::busy;
use crate::page::{self, Page};
use crate::stage::Stage;
use crate::verdict::{Complaint, Count, Rule};

/// Fields that are meant for the cache alone.
const HIDDEN: [&str; 7] = [
    "surrogate-key",
    "cache-tag",
    "xkey",
    "surrogate-control",
    "sandarac-cache-control",
    "worker-state",
    "worker-skills",
];

/// The longest body of an error that Sandarac makes itself.
const LONGEST_ERROR: usize = 1024;

/// A request that was sent.
pub(crate) struct Sent {
    pub(crate) ask: Ask,
    pub(crate) at: Instant,
    /// The least version that may be served, and that may be served as fresh, for pages of the cached site.
    pub(crate) floors: (u64, u64),
    /// Whether a request with it on the wire may be answered with a response that breaks off. The reset that shows that takes
    /// with it what the client has not read yet of the responses before, whole as they are.
    pub(crate) shaky: bool,
}

/// A response, and how its body ended.
pub(crate) struct Received {
    pub(crate) response: Response,
    pub(crate) end: Result<(), Trouble>,
    pub(crate) pace: Pace,
}

/// How a client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Slowly on purpose, so that it may be cut off.
    Slow,
    /// With a window of HTTP/2 so small that each round trip on a busy machine counts, so that it may be cut off.
    Narrow,
    /// As fast as it can.
    Fast {
        /// How long its thread had been [`busy`] when the connection began.
        busy_before: Duration,
    },
}

/// What a response is that is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Whole,
    Cut,
    Refused,
    OriginError,
}

/// How long a client has to have been kept from reading before it may be cut off. Under memory pressure, the process
/// waits for a client for 2 s. A part of them may be the wait of the process itself for a processor.
const KEPT_FROM_READING: Duration = Duration::from_secs(1);

/// Whether the process may have cut off a client of this pace: it takes little at a time, or a busy machine kept it
/// from reading. Counts it: the process has to have counted as many.
pub(crate) fn was_cut_off(stage: &Stage, pace: Pace) -> bool {
    match pace {
        Pace::Slow | Pace::Narrow => stage.verdict.count(Count::SlowCutOff),
        Pace::Fast { busy_before } if busy() - busy_before >= KEPT_FROM_READING => {
            stage.verdict.count(Count::CutOff);
        }
        Pace::Fast { .. } => return false,
    }
    true
}

impl Sent {
    /// Takes note of what is true now, immediately before the request goes out.
    pub(crate) fn now(ask: Ask, stage: &Stage) -> Sent {
        let floors = match &ask.wants {
            Wants::Cached(cached) => stage.site.entries[cached.entry].floors(),
            _ => (0, 0),
        };
        let shaky = !ask.pool.is_steady();
        Sent { ask, at: Instant::now(), floors, shaky }
    }
}

/// Judges a response.
pub(crate) fn judge(stage: &Stage, sent: &Sent, received: &Received) -> Result<Outcome, Complaint> {
    let Received { response, end, pace } = received;
    let disturbed = stage.disturbances.explain(sent.at);
    if let Some(hidden) = HIDDEN.iter().find(|name| response.fields.has(name)) {
        return Err(Complaint::new(Rule::Hidden, format!("no field {hidden}")));
    }
    for interim in &response.interim {
        if !matches!(interim.status, 100 | 102 | 103) {
            return Err(Complaint::new(Rule::Status, format!("no interim response {}", interim.status)));
        }
    }
    if let Err(trouble @ Trouble::Malformed(_)) = end {
        return Err(Complaint::new(Rule::Framing, format!("a body of HTTP/1.1, not {trouble:?}")));
    }
    if matches!(end, Err(Trouble::TimedOut)) {
        return Err(Complaint::new(Rule::Silence, "the rest of the body"));
    }
    if response.fields.has("proxy-status") {
        return refused(sent, response, disturbed);
    }
    let outcome = match &sent.ask.wants {
        Wants::Cached(cached) => cached::judge(stage, sent, cached, received)?,
        Wants::Posted { entry, .. } => {
            let place = sent.ask.place();
            if response.status == 503 {
                origin_error(sent, received)?
            } else {
                posted(stage, *entry, &place, received)?
            }
        }
        Wants::Private { user } => {
            let page = claimed(response, &sent.ask.place(), user)?;
            body(sent, &page, received)?
        }
        Wants::Echo(echo) => echo::judge(stage, sent, echo, received)?,
        &Wants::File(number, range) => file::judge(stage, sent, (number, range), received)?,
    };
    let by_another = sent.shaky && matches!(end, Err(Trouble::Reset(_)));
    if outcome == Outcome::Cut
        && sent.ask.pool.is_steady()
        && !disturbed
        && !by_another
        && !was_cut_off(stage, *pace)
    {
        return Err(Complaint::new(Rule::Broken, "the whole response, which its origin gave"));
    }
    stage.verdict.count(match response.status {
        304 => Count::NotModified,
        206 => Count::Partial,
        _ => return Ok(outcome),
    });
    Ok(outcome)
}

/// An error that Sandarac made itself.
fn refused(sent: &Sent, response: &Response, disturbed: bool) -> Result<Outcome, Complaint> {
    let complain = |what: &str| Err(Complaint::new(Rule::Status, what));
    if !matches!(response.status, 502..=504) {
        return complain("an error that says what went wrong behind Sandarac: 502, 503 or 504");
    }
    if response.body.len() > LONGEST_ERROR || response.field("cache-control") != Some("no-store") {
        return complain("a short error that nobody stores");
    }
    if response.fields.has(page::FIELD) || response.fields.has("x-nonce") {
        return complain("an error of Sandarac's own, without fields of an origin");
    }
    if sent.ask.pool.is_steady() && !disturbed {
        return complain("an answer: the origin is well, and so is the process");
    }
    Ok(Outcome::Refused)
}

/// A 503 that the origin made.
fn origin_error(sent: &Sent, received: &Received) -> Result<Outcome, Complaint> {
    let page = claimed(&received.response, &sent.ask.place(), "error")?;
    if received.end.is_ok() && sent.ask.method != "HEAD" {
        page.check_whole(&received.response.body).map_err(|fault| wrong_body(&page, &fault))?;
    }
    Ok(Outcome::OriginError)
}

fn posted(stage: &Stage, entry: usize, place: &str, received: &Received) -> Result<Outcome, Complaint> {
    let page = claimed(&received.response, place, "posted")?;
    if received.response.status != 200 {
        return Err(Complaint::new(Rule::Status, "200"));
    }
    let entry = &stage.site.entries[entry];
    if received.end.is_err() {
        return Ok(Outcome::Cut);
    }
    page.check_whole(&received.response.body).map_err(|fault| wrong_body(&page, &fault))?;
    // What a POST changed, its target is not what was stored of it any more.
    entry.forbid_before(page.version);
    Ok(Outcome::Whole)
}

/// The page that a response claims to be, if it is for this place and owner.
fn claimed(response: &Response, place: &str, owner: &str) -> Result<Page, Complaint> {
    let Some(page) = response.field(page::FIELD).and_then(Page::parse) else {
        return Err(Complaint::new(Rule::Url, format!("a page of {place}")));
    };
    if page.place != place {
        return Err(Complaint::new(Rule::Url, format!("{place}, not {}", page.place)));
    }
    if page.owner != owner {
        return Err(Complaint::new(Rule::Owner, format!("the page of {owner:?}, not of {:?}", page.owner)));
    }
    Ok(page)
}

/// Checks the body of a response that has all of `page`, or as much of it as came.
fn body(sent: &Sent, page: &Page, received: &Received) -> Result<Outcome, Complaint> {
    let response = &received.response;
    let announced = response.field("content-length").and_then(|length| length.parse().ok());
    if announced.is_some_and(|length: u64| length != page.length) {
        return Err(Complaint::new(Rule::Body, format!("a length of {}", page.length)));
    }
    if sent.ask.method == "HEAD" {
        return Ok(Outcome::Whole);
    }
    let chunked = response.fields.has("transfer-encoding");
    if chunked && sent.ask.old {
        return Err(Complaint::new(Rule::Framing, "no chunks in a response to HTTP/1.0"));
    }
    let is_framed = chunked || response.version == "HTTP/2";
    if announced.is_none() && !is_framed && !sent.ask.old {
        return Err(Complaint::new(
            Rule::Framing,
            "a length or chunks, so that a body that breaks off is known for it",
        ));
    }
    match received.end {
        Ok(()) => page.check_whole(&response.body).map_err(|fault| wrong_body(page, &fault))?,
        Err(_) => page.check(0, &response.body).map_err(|fault| wrong_body(page, &fault))?,
    }
    Ok(if received.end.is_ok() { Outcome::Whole } else { Outcome::Cut })
}

fn wrong_body(page: &Page, fault: &page::Fault) -> Complaint {
    Complaint::new(
        Rule::Body,
        match fault {
            page::Fault::Byte(at) => format!("the body of {page}; byte {at} is the first that is not its"),
            page::Fault::Length(length) => format!("the body of {page}, not {length} bytes"),
        },
    )
}
