//! The outcome of a request at its backend.

/// How a request ended at its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttemptOutcome {
    /// A whole response came, whose status blames no server.
    Answered,
    /// A whole response came, of status 5xx.
    ServerError,
    /// No connection could be made, or a new one ended without a byte of a response: nobody is at work there.
    ConnectFailed,
    /// The connection was there, but no whole response came over it; or it had been kept, and ended by
    /// itself.
    Broken,
    /// No response came in time.
    Late,
    /// The request was given up for reasons that are not the backend's.
    Aborted,
}
