//! The state that a worker reports with each response, and the résumé that is known of it.

/// The résumé of a worker that the balancer holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The instance of the worker, new with each start.
    pub instance: Box<str>,
    /// The revision of its résumé.
    pub revision: u64,
}

/// What a worker says with each response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerState<'a> {
    /// Which start of the worker this is.
    pub instance: &'a str,
    /// The revision of its résumé, for the classifier it was asked by.
    pub revision: u64,
    /// The requests it has begun and not ended, of all balancers, without the one it answers.
    pub in_flight: Option<u32>,
    /// Its version, for pools where only one version serves.
    pub version: Option<&'a str>,
}
