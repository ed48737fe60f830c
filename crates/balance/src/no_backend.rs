//! The reasons why a pool gives no backend.

/// Why no backend takes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoBackend {
    /// The pool has none.
    Empty,
    /// Every backend is draining.
    NoneServes,
    /// Every backend that serves was excluded by the caller, having been tried.
    AllTried,
    /// Every backend that was not excluded has as many requests in flight as it may have.
    AllFull,
    /// Every backend is full, and as many requests wait for a place as may.
    QueueFull,
}

impl std::fmt::Display for NoBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NoBackend::Empty => "the pool has no backend",
            NoBackend::NoneServes => "every backend is draining",
            NoBackend::AllTried => "every backend was tried",
            NoBackend::AllFull => "every backend has as many requests in flight as it may have",
            NoBackend::QueueFull => "every backend is full, and so is the queue before them",
        })
    }
}

impl std::error::Error for NoBackend {}
