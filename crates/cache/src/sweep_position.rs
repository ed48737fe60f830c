//! The position of the sweep.

/// Slots examined while a shard's lock is held once.
pub(crate) const BATCH: u32 = 64;

/// The position of the sweep.
#[derive(Default)]
pub(crate) struct SweepPosition {
    pub(crate) shard: usize,
    pub(crate) slot: u32,
    /// The last ban when this round began.
    pub(crate) round: u32,
    /// The shard and the slot of the next object to be [moved](crate::Store::compact); none if all have been.
    pub(crate) uncompacted: Option<(usize, u32)>,
}
