//! Throttling of log messages, per topic, with doubling intervals, so that no topic suppresses another.

use sandarac_balance::{BackendId, Backoff};
use sandarac_net::{ListenerId, Moment};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

/// The interval in which a message is not repeated.
const REPEAT_AFTER: Backoff = Backoff { first: Duration::from_secs(10), longest: Duration::from_secs(600) };

/// The most topics that are remembered. Messages about others are dropped until one of these has been quiet
/// for its interval.
const MAX_TOPICS: usize = 64;

/// The topic of a throttled message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LogTopic {
    /// Too many client connections.
    Clients,
    /// Requests for which there is no memory.
    Memory,
    /// Connections that cannot be accepted.
    Accepting,
    /// Connections to a listener without the PROXY header that it expects.
    ProxyHeader(ListenerId),
    /// TLS handshakes that fail, and the kind of failure.
    Handshake(ListenerId, &'static str),
    /// HTTP/2 connections that are ended because of a fault of the client, and the fault.
    Http2(ListenerId, &'static str),
    /// TLS that arrives where HTTP in clear is expected.
    TlsUnexpected(ListenerId),
    /// Files of a directory that cannot be served, and the reason.
    Files(Box<str>, &'static str),
    /// Bodies that cannot wait in files.
    Spool,
    /// Skills of a pool that cannot be saved.
    Saving(Box<str>),
    /// A backend of a pool that gives no response, and the kind of failure.
    Backend(Box<str>, BackendId, &'static str),
    /// A report of a worker of a pool that is rejected, and the reason.
    Worker(Box<str>, BackendId, &'static str),
}

/// The topics of recent messages.
#[derive(Default)]
pub(crate) struct Throttle(HashMap<LogTopic, LastMessage>);

struct LastMessage {
    logged_at: Moment,
    /// Repeats without a quiet interval between them.
    repeats: u32,
}

impl LastMessage {
    /// The interval until the next message.
    fn interval(&self) -> Duration {
        REPEAT_AFTER.pause(self.repeats)
    }
}

impl Throttle {
    /// Whether a message about `topic` may be logged at `now`. If so, it counts as logged.
    pub(crate) fn is_due(&mut self, topic: LogTopic, now: Moment) -> bool {
        let is_one_of_many = matches!(topic, LogTopic::Backend(..) | LogTopic::Worker(..));
        if is_one_of_many && self.0.len() >= MAX_TOPICS && !self.0.contains_key(&topic) {
            self.0.retain(|_, last| now.since(last.logged_at) < last.interval());
            if self.0.len() >= MAX_TOPICS {
                return false;
            }
        }
        match self.0.entry(topic) {
            Entry::Vacant(new) => {
                new.insert(LastMessage { logged_at: now, repeats: 0 });
                true
            }
            Entry::Occupied(mut entry) => {
                let last = entry.get_mut();
                let (since, interval) = (now.since(last.logged_at), last.interval());
                if since < interval {
                    return false;
                }
                // After a quiet time of another interval, the topic counts as new.
                let repeats = if since < interval * 2 { last.repeats.saturating_add(1) } else { 0 };
                *last = LastMessage { logged_at: now, repeats };
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_balance::{Algorithm, Backend, Pool};

    /// A topic for each of `count` workers.
    fn workers(count: usize, why: &'static str) -> Vec<LogTopic> {
        let backend = |n: usize| Backend::new(format!("unix:/workers/{n}").parse().unwrap());
        let pool = Pool::new("app", (0..count).map(backend).collect(), Algorithm::Resume);
        pool.ids().iter().map(|&id| LogTopic::Worker(pool.name().into(), id, why)).collect()
    }

    #[test]
    fn one_topic_does_not_suppress_another() {
        let (mut throttle, now) = (Throttle::default(), Moment::now());
        let of_workers = [workers(2, "score"), workers(2, "class")].concat();
        for topic in of_workers.into_iter().chain([LogTopic::Clients]) {
            assert!(throttle.is_due(topic.clone(), now), "{topic:?}");
            assert!(!throttle.is_due(topic.clone(), now), "{topic:?}");
        }
    }

    #[test]
    fn lasting_trouble_is_logged_at_growing_intervals_and_anew_when_it_returns() {
        let (mut throttle, start) = (Throttle::default(), Moment::now());
        let at = |second: u64| start.plus(Duration::from_secs(second));
        let said: Vec<u64> = (0..2000).filter(|&now| throttle.is_due(LogTopic::Clients, at(now))).collect();
        assert_eq!(said, [0, 10, 30, 70, 150, 310, 630, 1230, 1830]);
        let said: Vec<u64> =
            (5000..5040).filter(|&now| throttle.is_due(LogTopic::Clients, at(now))).collect();
        assert_eq!(said, [5000, 5010, 5030]);
    }

    #[test]
    fn the_topics_remembered_are_bounded() {
        let (mut throttle, now) = (Throttle::default(), Moment::now());
        let mut say = |why: &'static str, now: Moment| {
            workers(1000, why).into_iter().filter(|topic| throttle.is_due(topic.clone(), now)).count()
        };
        assert_eq!(say("score", now), MAX_TOPICS);
        assert_eq!(say("class", now.plus(REPEAT_AFTER.first)), MAX_TOPICS);
        assert!(throttle.0.len() <= MAX_TOPICS);
    }
}
