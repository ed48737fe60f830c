//! Rules of the protocol that the tests break one at a time, to show that the histories find it. In a build
//! that is not for tests every rule holds, and the question costs nothing.

/// A rule that can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Purges in the log make entries and copies invalid.
    Log,
    /// An entry is judged from its own position on.
    Position,
    /// What a server is owed is delivered before entries are read or written there.
    DeliverFirst,
    /// A fill is conditional on what the lookup saw.
    ConditionalFill,
    /// An entry whose position is in another log is refused.
    LostPosition,
    /// A copy in RAM is served only for a while without a check.
    Check,
    /// One node has a claim.
    Claim,
}

#[cfg(not(test))]
pub(crate) const fn holds(_: Rule) -> bool {
    true
}

#[cfg(test)]
pub(crate) use for_tests::{break_rule, holds};

#[cfg(test)]
mod for_tests {
    use super::Rule;
    use std::cell::Cell;

    thread_local! {
        static BROKEN: Cell<Option<Rule>> = const { Cell::new(None) };
    }

    pub(crate) fn holds(rule: Rule) -> bool {
        BROKEN.get() != Some(rule)
    }

    /// Breaks a rule in this thread, or none.
    pub(crate) fn break_rule(rule: Option<Rule>) {
        BROKEN.set(rule);
    }
}
