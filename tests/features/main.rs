//! What Sandarac does, seen from outside: the real binary between a raw client and origins that do as they are told.

mod bodies;
mod coalescing;
mod conformance_newer;
mod connections;
mod fields;
mod invalidation;
mod methods;
mod ranges;
mod safe;
mod stale;
mod statuses;
mod storing;
mod tags;
mod targeted;
mod targets;
mod validation;
mod variants;

use sandarac_test_support::{Origin, Reply, Request, Sandarac, Setup};

/// The binary under test, yet to be started.
pub(crate) fn sandarac() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_sandarac"))
}

/// Sandarac as started by default, before an origin that answers by `rule`.
pub(crate) fn before(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Sandarac, Origin) {
    let origin = Origin::new(rule);
    (sandarac().before(&origin).start(), origin)
}

/// Sandarac in the profile in which RFC 9111 alone decides, before an origin whose every answer is `rule`'s with the serial number
/// of the request at the origin for a body. A second response with the same body was reused.
pub(crate) fn cache(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Sandarac, Origin) {
    let origin = Origin::new(numbered(rule));
    (sandarac().before(&origin).rfc().start(), origin)
}

/// `rule`, with the serial number of the request for a body.
pub(crate) fn numbered(
    rule: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    move |request| rule(request).body(request.serial.to_string())
}
