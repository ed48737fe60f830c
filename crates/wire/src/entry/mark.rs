//! Reasons of marks.

use sandarac_message::caching::Reason;

use super::EntryError;

/// Why the response for a key is not in the tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MarkReason {
    /// The response may not be stored.
    NotStorable(Reason),
    /// The body, the head, or a list that belongs to the response is larger than the tier takes.
    TooLarge,
    /// The response lives too briefly to be worth storing there.
    ShortLived,
}

impl MarkReason {
    /// Every reason.
    pub fn all() -> impl Iterator<Item = MarkReason> {
        let others = [MarkReason::TooLarge, MarkReason::ShortLived];
        Reason::ALL.into_iter().map(MarkReason::NotStorable).chain(others)
    }

    /// The number in items. A number is never used again for another reason.
    pub const fn code(self) -> u8 {
        match self {
            MarkReason::NotStorable(reason) => match reason {
                Reason::Method => 1,
                Reason::ClientError => 2,
                Reason::Status => 3,
                Reason::Partial => 4,
                Reason::RequestNoStore => 5,
                Reason::NoStore => 6,
                Reason::Private => 7,
                Reason::NotUnderstood => 8,
                Reason::Authorization => 9,
                Reason::SetCookie => 10,
                Reason::VaryStar => 11,
                Reason::NoValidator => 12,
                Reason::Stale => 13,
                Reason::NoFreshness => 14,
                Reason::ServerError => 15,
                Reason::UnknownField => 16,
                Reason::FormField => 17,
                Reason::Stream => 18,
                Reason::UnsentFile => 19,
                Reason::Accept => 20,
            },
            MarkReason::TooLarge => 64,
            MarkReason::ShortLived => 65,
        }
    }

    /// The reason with this code.
    pub fn of(code: u8) -> Result<MarkReason, EntryError> {
        MarkReason::all().find(|reason| reason.code() == code).ok_or(EntryError::Mark)
    }

    /// The name, for logs and counters.
    pub const fn name(self) -> &'static str {
        match self {
            MarkReason::NotStorable(reason) => reason.text(),
            MarkReason::TooLarge => "too-large",
            MarkReason::ShortLived => "short-lived",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_code_and_a_name() {
        for reason in MarkReason::all() {
            assert_eq!(MarkReason::of(reason.code()), Ok(reason));
            assert_eq!(MarkReason::all().filter(|other| other.name() == reason.name()).count(), 1);
        }
        assert_eq!(MarkReason::of(0), Err(EntryError::Mark));
    }
}
