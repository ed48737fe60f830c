//! Why a pool has no backend for a request.

/// Why no backend takes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoBackend {
    /// The pool has none.
    Empty,
    /// Every backend is draining.
    NoneServes,
    /// Every backend in service was excluded by the caller, because it was tried.
    AllTried,
    /// Every backend that was not excluded has as many requests in flight as its limit allows.
    AllFull,
    /// Every backend is full, and so is the queue.
    QueueFull,
}

impl std::fmt::Display for NoBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NoBackend::Empty => "the pool has no backend",
            NoBackend::NoneServes => "every backend is draining",
            NoBackend::AllTried => "every backend was tried",
            NoBackend::AllFull => "every backend has as many requests in flight as it may have",
            NoBackend::QueueFull => "every backend is full, and so is the queue",
        })
    }
}

impl std::error::Error for NoBackend {}
