//! The outcome of a request at its backend.

/// How a request ended at its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttemptOutcome {
    /// A whole response, whose status is no server error.
    Answered,
    /// A whole response of status 5xx.
    ServerError,
    /// No connection could be made, or a new one ended without a byte of a response: no process is at work
    /// there.
    ConnectFailed,
    /// There was a connection but no whole response over it, or a kept connection ended by itself.
    Broken,
    /// No response came in time.
    Late,
    /// The request was given up for reasons that are not the backend's.
    Aborted,
}
