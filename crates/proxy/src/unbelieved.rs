//! The reasons for which something that a worker says of itself is not believed.

use crate::tally::Reason;
use sandarac_balance::Disbelief;
use sandarac_wire::resume::Malformed;

/// Why something that a worker said of itself is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unbelieved {
    /// It is not of the protocol.
    Malformed(Malformed),
    /// It is, and cannot be so.
    Disbelief(Disbelief),
    /// The whole résumé was asked for, and something else came.
    NoResume,
    /// Response after response tells of another résumé than the one it gives.
    Unsettled,
}

impl Unbelieved {
    /// The word for it in metrics and logs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Unbelieved::Malformed(why) => why.name(),
            Unbelieved::Disbelief(why) => why.name(),
            Unbelieved::NoResume => "no-resume",
            Unbelieved::Unsettled => "unsettled",
        }
    }

    /// What is wrong, for people.
    pub(crate) fn text(self) -> String {
        match self {
            Unbelieved::Malformed(why) => why.to_string(),
            Unbelieved::Disbelief(why) => why.to_string(),
            Unbelieved::NoResume => "it gives no résumé".to_owned(),
            Unbelieved::Unsettled => {
                "its responses tell of another instance or revision than the résumé it gives".to_owned()
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
