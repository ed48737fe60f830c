//! Decide: what rules change of a request, and the step that it takes. Once for each request, before it is
//! answered from memory or becomes an exchange.

use super::receive::{Verdict, takes_certificate, verdict};
use crate::Fault;
use crate::request::client_certificate::with_certificates;
use crate::request::client_request::{Changed, ClientRequest};
use crate::request::received::{Received, RequestFacts};
use crate::site::Site;
use sandarac_message::{RequestHead, hop};
use sandarac_net::Peer;

/// How often a request may pass this proxy. No deployment has more tiers of one name.
const MAX_PASSES: usize = 5;

/// The decision about a request, with the request.
pub(crate) struct Decided<'a> {
    pub(crate) request: ClientRequest<'a>,
    pub(crate) verdict: Result<Verdict, Fault>,
}

/// The decision about a request, to be kept with a copy of its head.
pub(crate) struct Decision {
    pub(crate) facts: RequestFacts,
    pub(crate) verdict: Verdict,
    pub(crate) changes: Option<Box<Changed>>,
}

/// Decides about a request that was received so.
pub(crate) fn decide<'a>(
    site: &Site,
    peer: &Peer,
    received: &Received<'_>,
    head: RequestHead<'a>,
) -> Decided<'a> {
    let mut request = ClientRequest::new(head);
    if takes_certificate(received, head.fields)
        && let Some(rule) = received.route.cache_rule()
    {
        let certificates = received.requester.tls.map_or(&[][..], |tls| &tls.certificates);
        match with_certificates(head.fields, certificates, &rule.key) {
            Ok(fields) => request.set_fields(fields),
            Err(_) => return Decided { request, verdict: Err(Fault::HeadTooLarge) },
        }
    }
    if received.route.fragments.is_some() {
        // A part of a page's text is no part of the page.
        request.ask_for_whole();
    }
    let verdict = verdict(site, peer, received, &request.view());
    Decided { request, verdict }
}

impl Decided<'_> {
    /// Refuses a request that has passed this proxy too often. A stored response ends a loop, and nothing
    /// else does.
    pub(crate) fn refuse_loop(&mut self, site: &Site) {
        if hop::passes(self.request.view().fields, site.name()) > MAX_PASSES {
            self.verdict = Err(Fault::Loop);
        }
    }

    /// The decision about a request that was received so, without what it borrows.
    pub(crate) fn into_decision(self, received: &Received<'_>) -> Result<Decision, Fault> {
        let facts = RequestFacts::of(received);
        Ok(Decision { facts, verdict: self.verdict?, changes: self.request.into_changes() })
    }
}
