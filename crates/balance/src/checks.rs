//! Active checks of backends: when they change the state of a backend, and how.

/// When active checks change a backend's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// Consecutive passed checks that bring it back; at least 1.
    pub rise: u32,
    /// Consecutive failed checks that take it out of service; at least 1. Three by default: one may be a lost
    /// packet.
    pub fall: u32,
}

impl Default for Checks {
    fn default() -> Checks {
        Checks { rise: 2, fall: 3 }
    }
}

/// The change that a check made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checked {
    /// Nothing.
    Same,
    /// The backend is back in service.
    Up,
    /// The backend is out of service until checks pass.
    Down,
    /// The backend would be out of service, but no more of the pool may be.
    Spared,
    /// A spared backend passes its checks again.
    Recovered,
}

impl std::fmt::Display for Checked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Checked::Same => "unchanged",
            Checked::Up => "back in service",
            Checked::Down => "out of service",
            Checked::Spared => "kept in service, because no more of the pool may be out",
            Checked::Recovered => "passing its checks again",
        })
    }
}
