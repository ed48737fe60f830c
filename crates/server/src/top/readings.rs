//! Readings of a process, for `top`.

use crate::admin::{Stats, Status};

/// The state of a process, and two successive readings of its statistics, whose difference gives the rates.
pub(super) struct Readings {
    pub(super) status: Status,
    pub(super) before: Stats,
    pub(super) now: Stats,
}
