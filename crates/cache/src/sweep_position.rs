//! The place that the sweep has come to.

/// Slots looked at in one hold of a shard's lock.
pub(crate) const BATCH: u32 = 64;

/// Where the sweep is.
#[derive(Default)]
pub(crate) struct SweepPosition {
    pub(crate) shard: usize,
    pub(crate) slot: u32,
    /// The last ban when this round began.
    pub(crate) round: u32,
    /// The shard and the slot of the next object to be [moved](crate::Store::compact); none where all are
    /// where they should be.
    pub(crate) uncompacted: Option<(usize, u32)>,
}
