//! Timeouts of an exchange with an origin.

use std::time::Duration;

/// How long an exchange waits for an origin.
#[derive(Clone, Copy, Debug)]
pub struct OriginTimeouts {
    /// For a place at a backend, if all are full.
    pub queue: Duration,
    /// For a connection.
    pub connect: Duration,
    /// For the first byte of a response after the request is sent.
    pub first_byte: Duration,
    /// Between bytes of a response.
    pub between_bytes: Duration,
    /// How long a connection is kept without a request.
    pub idle: Duration,
    /// The age up to which a connection is used.
    pub age: Duration,
}
