//! The standing of an object: its worth, as one store tells another.

/// The worth of an object, as the store knew it that it comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Whether it was in the main queue.
    pub(crate) is_proven: bool,
    /// Its [frequency](crate::Object).
    pub(crate) frequency: u8,
    /// The requests it has answered.
    pub(crate) hits: u32,
}

impl Standing {
    pub(crate) fn to_bytes(self) -> [u8; 8] {
        let [a, b, c, d] = self.hits.to_le_bytes();
        [self.is_proven.into(), self.frequency, 0, 0, a, b, c, d]
    }

    pub(crate) fn of([is_proven, frequency, _, _, hits @ ..]: [u8; 8]) -> Standing {
        Standing { is_proven: is_proven != 0, frequency, hits: u32::from_le_bytes(hits) }
    }
}
