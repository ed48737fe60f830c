//! The state that a worker reports with each response, and its known résumé.

/// The résumé of a worker that the balancer holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The instance of the worker, new with each start.
    pub instance: Box<str>,
    /// The revision of its résumé.
    pub revision: u64,
}

/// A worker's report in each response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerState<'a> {
    /// The instance of the worker, new with each start.
    pub instance: &'a str,
    /// The revision of its résumé, for the classifier in the request.
    pub revision: u64,
    /// The requests that it has begun and not ended, of all balancers, without the one being answered.
    pub in_flight: Option<u32>,
    /// The most requests that it works on at a time. [`ResumeSettings::concurrency`] if it does not report it.
    ///
    /// [`ResumeSettings::concurrency`]: super::ResumeSettings::concurrency
    pub concurrency: Option<u32>,
    /// Its version, for pools in which only one version serves.
    pub version: Option<&'a str>,
}
