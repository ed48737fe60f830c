//! Reasons to reject a worker's report.

use crate::report::tally::Reason;
use sandarac_balance::Disbelief;
use sandarac_wire::resume::Malformed;

/// Why a part of a worker's report is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unbelieved {
    /// It does not follow the protocol.
    Malformed(Malformed),
    /// It follows the protocol but cannot be true.
    Disbelief(Disbelief),
    /// The whole résumé was requested, and something else came.
    NoResume,
    /// Responses repeatedly announce another résumé than the one received.
    Unsettled,
}

impl Unbelieved {
    /// The name in metrics and logs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Unbelieved::Malformed(why) => why.name(),
            Unbelieved::Disbelief(why) => why.name(),
            Unbelieved::NoResume => "no-resume",
            Unbelieved::Unsettled => "unsettled",
        }
    }

    /// A description for people.
    pub(crate) fn text(self) -> String {
        match self {
            Unbelieved::Malformed(why) => why.to_string(),
            Unbelieved::Disbelief(why) => why.to_string(),
            Unbelieved::NoResume => "it sends no résumé".to_owned(),
            Unbelieved::Unsettled => {
                "its responses announce another instance or revision than its résumé has".to_owned()
            }
        }
    }
}

impl Reason for Unbelieved {
    const NAME: &'static str = "resumes_unbelieved";
    const TEXT: &'static str = "What workers said of themselves and was not believed.";

    fn texts() -> Vec<&'static str> {
        let malformed = Malformed::ALL.iter().map(|why| why.name());
        let disbelief = Disbelief::ALL.iter().map(|why| why.name());
        malformed
            .chain(disbelief)
            .chain([Unbelieved::NoResume, Unbelieved::Unsettled].map(Unbelieved::name))
            .collect()
    }

    fn index(&self) -> usize {
        match self {
            Unbelieved::Malformed(why) => *why as usize,
            Unbelieved::Disbelief(why) => Malformed::ALL.len() + *why as usize,
            Unbelieved::NoResume => Malformed::ALL.len() + Disbelief::ALL.len(),
            Unbelieved::Unsettled => Malformed::ALL.len() + Disbelief::ALL.len() + 1,
        }
    }
}
