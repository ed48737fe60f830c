//! Reports to the operator.

use std::fmt;

use sandarac_message::Timestamp;
use sandarac_message::civil::Civil;

use crate::fault::Fault;
use crate::settings::ChallengeKind;

/// Something that happened. Its text is a line for a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An account is in use, which accepts the CA's terms of service. Reported once in a process.
    TermsAccepted {
        /// The CA's directory.
        directory: String,
        /// The address of the terms, if the CA has any.
        terms: Option<String>,
    },
    /// A self-signed certificate is served until the first one is issued.
    StandIn {
        /// The names.
        names: Vec<String>,
    },
    /// An order begins.
    Ordering {
        /// The names.
        names: Vec<String>,
        /// How they are verified.
        challenge: ChallengeKind,
    },
    /// A certificate was issued.
    Issued {
        /// The names.
        names: Vec<String>,
        /// Its end.
        not_after: Timestamp,
    },
    /// A certificate was found in the state directory: at the start, or put there by another node.
    Found {
        /// The names.
        names: Vec<String>,
        /// Its end.
        not_after: Timestamp,
    },
    /// Another process that shares the state directory is placing an order.
    OtherOrders {
        /// It, as it calls itself.
        owner: String,
    },
    /// An attempt failed.
    Failed {
        /// The names.
        names: Vec<String>,
        /// The reason.
        fault: Fault,
        /// The time of the next attempt.
        next: Timestamp,
        /// The file that keeps this time. Without it, the next attempt is made at once.
        record: String,
    },
    /// Something in the state directory cannot be used. Reported when it changes.
    Trouble(Fault),
    /// A certificate expires within days although renewal was due long ago. Reported once a day.
    Expiring {
        /// The names.
        names: Vec<String>,
        /// Its end.
        not_after: Timestamp,
    },
}

impl Event {
    /// Whether it needs the operator's attention.
    pub fn is_warning(&self) -> bool {
        matches!(
            self,
            Event::StandIn { .. } | Event::Failed { .. } | Event::Trouble(_) | Event::Expiring { .. }
        )
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::TermsAccepted { directory, terms: Some(terms) } => write!(
                f,
                "acme: by using ACME you accept the terms of service of the CA at {directory}: {terms}"
            ),
            Event::TermsAccepted { directory, terms: None } => {
                write!(f, "acme: the CA at {directory} names no terms of service")
            }
            Event::StandIn { names } => write!(
                f,
                "acme: a self-signed certificate stands in for {} until the CA issued one; browsers warn of it",
                names.join(", ")
            ),
            Event::Ordering { names, challenge } => {
                write!(f, "acme: ordering a certificate for {}, verified by {challenge}", names.join(", "))
            }
            Event::Issued { names, not_after } => {
                write!(
                    f,
                    "acme: a certificate for {} was issued, valid until {}",
                    names.join(", "),
                    day(*not_after)
                )
            }
            Event::Found { names, not_after } => write!(
                f,
                "acme: a certificate for {} is in the ACME directory, valid until {}",
                names.join(", "),
                day(*not_after)
            ),
            Event::OtherOrders { owner } => {
                write!(f, "acme: {owner} is placing an order; this process waits for the outcome")
            }
            Event::Failed { names, fault, next, record } => write!(
                f,
                "acme: no certificate for {}: {}: {fault}. Next attempt at {}; without the file {record}, a restart tries at once",
                names.join(", "),
                fault.name(),
                moment(*next)
            ),
            Event::Trouble(fault) => write!(f, "acme: {}: {fault}", fault.name()),
            Event::Expiring { names, not_after } => write!(
                f,
                "acme: the certificate for {} expires at {}, and none was issued to replace it",
                names.join(", "),
                moment(*not_after)
            ),
        }
    }
}

fn day(time: Timestamp) -> impl fmt::Display {
    let Civil { year, month, day, .. } = Civil::of(time);
    fmt::from_fn(move |f| write!(f, "{year:04}-{month:02}-{day:02}"))
}

fn moment(time: Timestamp) -> impl fmt::Display {
    let Civil { hour, minute, second, .. } = Civil::of(time);
    fmt::from_fn(move |f| write!(f, "{}T{hour:02}:{minute:02}:{second:02}Z", day(time)))
}
