//! The progress of a request body on its way to the origin.

/// The progress of a request body, and the side that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upload {
    /// All of it has been handed to the origin's connection.
    Done,
    /// The client must send more.
    AwaitsClient,
    /// The origin must accept what is queued, or send 100 (Continue). It has accepted this many bytes so far.
    AwaitsOrigin(u64),
}
