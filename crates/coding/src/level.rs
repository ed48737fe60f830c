//! The effort that is spent on a smaller body.

/// How much time is spent for a smaller body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// The least time.
    Fast,
    /// A good part of what can be saved, at a speed that no client notices.
    #[default]
    Normal,
    /// Most of what can be saved, at several times the cost.
    Best,
}

impl Level {
    pub(crate) const fn zstd(self) -> i32 {
        match self {
            Level::Fast => 1,
            Level::Normal => 3,
            Level::Best => 9,
        }
    }

    pub(crate) const fn brotli(self) -> i32 {
        match self {
            Level::Fast => 2,
            Level::Normal => 4,
            Level::Best => 6,
        }
    }

    pub(crate) const fn gzip(self) -> u32 {
        match self {
            Level::Fast => 2,
            Level::Normal => 5,
            Level::Best => 9,
        }
    }
}
