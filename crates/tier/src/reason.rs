//! Named reasons of refusals and fetches.

macro_rules! names {
    ($(#[$doc:meta])* $kind:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $kind { $($(#[$variant_doc])* $variant),* }

        impl $kind {
            /// Every reason; `reason as usize` is its index.
            pub const ALL: &'static [$kind] = &[$($kind::$variant),*];

            /// The name, for logs and counters.
            pub const fn name(self) -> &'static str {
                match self { $($kind::$variant => $name),* }
            }
        }
    };
}

names! {
    /// Why an entry or a copy is not used.
    Refusal {
        /// A later purge in the log matches.
        Purged = "purged",
        /// A purge matches that this node knows and the server does not have yet.
        OwedPurge = "owed-purge",
        /// It is older than the first record of the log: a purge that was dropped might have matched.
        BeforeLog = "before-log",
        /// Its position is in another log: purges may have been lost.
        OtherLog = "other-log",
        /// Its position is beyond the end of the log: the log was cut.
        BeyondLog = "beyond-log",
        /// It has no position: no log had been read when it was fetched.
        NoPosition = "no-position",
        /// The log was lost, and the copy was confirmed so long ago that nodes have forgotten purges since.
        Unconfirmed = "unconfirmed",
        /// The item is damaged, forged, or not one that belongs under its key.
        Invalid = "invalid",
    }
}

names! {
    /// Why a response is fetched from the origin.
    FetchReason {
        /// There is no entry.
        Absent = "absent",
        /// The key was purged.
        Tombstone = "tombstone",
        /// The entry is refused.
        Refused = "refused",
        /// The caller has no use for the entry, which is stale.
        Unsuitable = "unsuitable",
        /// Responses for this key are not stored.
        Marked = "marked",
        /// The server does not answer.
        Unavailable = "unavailable",
        /// Another node did not finish its fetch in time.
        WaitedTooLong = "waited-too-long",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_name() {
        let mut names: Vec<_> = Refusal::ALL.iter().map(|reason| reason.name()).collect();
        names.extend(FetchReason::ALL.iter().map(|reason| reason.name()));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
