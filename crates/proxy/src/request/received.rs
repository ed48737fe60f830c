//! A request as received: its target, requester and route, which every later step uses.

use super::response_edits::EditsForTarget;
use crate::Fault;
use crate::request::requester::Requester;
use sandarac_message::RequestHead;
use sandarac_message::target::{Scheme, Target};
use sandarac_net::tls::TlsPeer;
use sandarac_policy::{Route, RouteId, Routes};
use std::borrow::Cow;

/// The result of receiving a request, apart from its head. It is kept with a copy of the head.
#[derive(Clone, Copy)]
pub(crate) struct RequestFacts {
    route: RouteId,
    /// Without the host, which is read again from the head, and TLS, which belongs to the connection.
    requester: Requester<'static>,
}

/// A request that can be served.
pub(crate) struct Received<'a> {
    pub(crate) target: Target<'a>,
    /// The host in its normal form, as keyed; empty if an HTTP/1.0 request has none.
    pub(crate) host: Cow<'a, [u8]>,
    pub(crate) requester: Requester<'a>,
    pub(crate) route: &'a Route,
    pub(crate) route_id: RouteId,
}

impl RequestFacts {
    pub(crate) fn of(received: &Received<'_>) -> RequestFacts {
        RequestFacts { route: received.route_id, requester: received.requester.asking_for(b"", None) }
    }

    /// Restores the [`Received`] of a copied request that was received under `routes`, over `tls` if the
    /// response is for its client alone.
    pub(crate) fn received<'a>(
        &self,
        routes: &'a Routes,
        request: &RequestHead<'a>,
        tls: Option<&'a TlsPeer>,
    ) -> Result<Received<'a>, Fault> {
        let target = Target::of(request).map_err(Fault::BadTarget)?;
        let requester = self.requester.asking_for(host_text(&target), tls);
        let host = normal_host(&target, requester.scheme);
        Ok(Received { target, host, requester, route: &routes[self.route], route_id: self.route })
    }
}

/// The host of a target as received; empty if an HTTP/1.0 request has none.
pub(crate) fn host_text<'a>(target: &Target<'a>) -> &'a [u8] {
    target.authority.map_or(b"", |authority| authority.text)
}

/// The host of a target as keyed.
pub(crate) fn normal_host<'a>(target: &Target<'a>, scheme: Scheme) -> Cow<'a, [u8]> {
    target.authority.map_or(Cow::Borrowed(&b""[..]), |authority| authority.normalised(scheme))
}

impl<'a> Received<'a> {
    /// The edits of the response to a request for `target`.
    pub(crate) fn edits<'t>(&'t self, target: &'t [u8]) -> EditsForTarget<'t> {
        let compress = self.route.compress.as_deref();
        EditsForTarget { edits: &self.route.response, compress, host: &self.host, target }
    }
}
