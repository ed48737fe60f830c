//! Readings of a process that `top` shows.

use crate::admin::{Stats, Status};

/// The state of a process, and two successive readings of its statistics: rates are what lies between them.
pub(super) struct Readings {
    pub(super) status: Status,
    pub(super) before: Stats,
    pub(super) now: Stats,
}
