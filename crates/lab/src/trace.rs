//! A log prepared for simulation: each request as the numbers of its class and of its object.

use std::collections::HashMap;
use std::time::Duration;

use sandarac_message::FieldsBuf;
use sandarac_policy::{Classifier, Subject};

use crate::log::{Log, LogError, LogRequest};

/// The most requests that a trace holds, so that it fits into memory: 1 GiB.
pub const MOST_REQUESTS: u64 = 1 << 26;

/// The requests of a log.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    requests: Vec<Traced>,
    classes: Vec<Vec<u8>>,
    objects: u32,
    unclassified: u64,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traced {
    /// Its arrival, in microseconds from the first.
    pub(crate) at: u64,
    pub(crate) class: u32,
    pub(crate) object: u32,
}

/// Numbers for named things, in order of first occurrence.
#[derive(Default)]
struct Numbers(HashMap<u128, u32>);

impl Numbers {
    /// The number, and whether it is new. Things are distinguished by a hash of 128 bits, because a log may
    /// have very many names.
    fn of(&mut self, parts: &[&[u8]]) -> (u32, bool) {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let hash = hasher.finalize().as_bytes().first_chunk().copied().map(u128::from_le_bytes);
        let next = self.0.len() as u32;
        let number = *self.0.entry(hash.unwrap_or_default()).or_insert(next);
        (number, number == next)
    }
}

impl Trace {
    /// Reads at most `most` requests of a log, at most [`MOST_REQUESTS`], and only those of its first `span`
    /// of time. Objects are hosts and targets. Classes are those of `classifier`, and one with an empty name
    /// for requests without a class.
    ///
    /// # Errors
    /// If reading fails before that.
    pub fn read(
        log: &mut Log,
        classifier: &Classifier,
        most: u64,
        span: Duration,
    ) -> Result<Trace, LogError> {
        let mut trace = Trace::default();
        let (mut classes, mut objects) = (Numbers::default(), Numbers::default());
        let mut buffer = Vec::new();
        while (trace.requests.len() as u64) < most.min(MOST_REQUESTS)
            && let Some(request) = log.next_request()?
            && request.at <= span
        {
            let fields = fields(&request);
            let subject = Subject {
                host: &request.host,
                method: if request.head { b"HEAD" } else { b"GET" },
                target: &request.target,
                fields: fields.view(),
            };
            let name = classifier.classify(subject, &mut buffer).unwrap_or_default();
            trace.unclassified += u64::from(name.is_empty());
            let (class, new) = classes.of(&[name]);
            if new {
                trace.classes.push(name.to_vec());
            }
            let (object, _) = objects.of(&[&request.host, &request.target]);
            let at = u64::try_from(request.at.as_micros()).unwrap_or(u64::MAX);
            trace.requests.push(Traced { at, class, object });
        }
        trace.objects = objects.0.len() as u32;
        Ok(trace)
    }

    /// The number of requests.
    pub fn requests(&self) -> u64 {
        self.requests.len() as u64
    }

    /// The number of their objects.
    pub fn objects(&self) -> u32 {
        self.objects
    }

    /// The number of their classes.
    pub fn classes(&self) -> u32 {
        self.classes.len() as u32
    }

    /// The number of requests without a class.
    pub fn unclassified(&self) -> u64 {
        self.unclassified
    }

    /// The time from the first to the last.
    pub fn span(&self) -> Duration {
        Duration::from_micros(self.requests.last().map_or(0, |last| last.at))
    }

    /// The name of a class; empty for that of requests without one.
    pub(crate) fn class_name(&self, class: u32) -> &[u8] {
        &self.classes[class as usize]
    }

    /// A request by its number, from 1.
    pub(crate) fn get(&self, number: u64) -> Option<Traced> {
        self.requests.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
    }
}

/// The fields of a request that the log contains.
fn fields(request: &LogRequest) -> FieldsBuf {
    let mut fields = FieldsBuf::default();
    for (name, value) in [(&b"referer"[..], &request.referer), (b"user-agent", &request.user_agent)] {
        if let Some(value) = value {
            // A line is shorter than the limit of fields.
            let _ = fields.push(name, value);
        }
    }
    fields
}
