//! How far a request body has come on its way to the origin.

/// How far a request body has come on its way up, and so who is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upload {
    /// All of it has been handed to the origin's connection.
    Done,
    /// The client has to send more.
    AwaitsClient,
    /// The origin has to take what is queued for it, or to tell the client to go on. It has taken so many bytes so far.
    AwaitsOrigin(u64),
}
