//! The interface of everything that is compared.

use crate::traces::Request;

/// A cache with time and lifetimes.
pub(crate) trait Cache {
    /// Requests an object, and stores it if it is absent. Returns whether its body came from the cache.
    /// `number` is the place of the request in its trace.
    fn request(&mut self, number: usize, request: &Request) -> bool;
}
