//! Decide: the route of a request, what its rules change of it, and the step that it takes. Once for each
//! request, before it is answered from memory or becomes an exchange.

use super::receive::{Verdict, receive, takes_certificate, verdict};
use crate::Fault;
use crate::request::client_certificate::with_certificates;
use crate::request::client_request::{Changed, ClientRequest};
use crate::request::received::{Received, RequestFacts};
use crate::site::Site;
use sandarac_message::target::Scheme;
use sandarac_message::{RequestHead, hop};
use sandarac_net::Peer;

/// How often a request may pass this proxy. No deployment has more tiers of one name.
const MAX_PASSES: usize = 5;

/// A request, and what was decided about it.
pub(crate) struct Decided<'a> {
    pub(crate) request: ClientRequest<'a>,
    pub(crate) received: Received<'a>,
    pub(crate) verdict: Result<Verdict, Fault>,
}

/// The decision about a request, to be kept with a copy of its head.
pub(crate) struct Decision {
    pub(crate) facts: RequestFacts,
    pub(crate) verdict: Verdict,
    pub(crate) changes: Option<Box<Changed>>,
}

/// Decides about a request. `stated` is the scheme beside the target, in HTTP/2.
pub(crate) fn decide<'a>(
    site: &'a Site,
    peer: &'a Peer,
    head: RequestHead<'a>,
    stated: Option<Scheme>,
) -> Result<Decided<'a>, Fault> {
    let received = receive(site, peer, &head, stated)?;
    let mut request = ClientRequest::new(head);
    if takes_certificate(&received, head.fields)
        && let Some(rule) = received.route.cache_rule()
    {
        let certificates = received.requester.tls.map_or(&[][..], |tls| &tls.certificates);
        let fields =
            with_certificates(head.fields, certificates, &rule.key).map_err(|_| Fault::HeadTooLarge)?;
        request.set_fields(fields);
    }
    if received.route.fragments.is_some() {
        // A part of a page's text is no part of the page.
        request.ask_for_whole();
    }
    let verdict = verdict(site, peer, &received, &request.view());
    Ok(Decided { request, received, verdict })
}

impl Decided<'_> {
    /// Refuses a request that has passed this proxy too often. A stored response ends a loop, and nothing
    /// else does.
    pub(crate) fn refuse_loop(&mut self, site: &Site) {
        if hop::passes(self.request.view().fields, site.name()) > MAX_PASSES {
            self.verdict = Err(Fault::Loop);
        }
    }

    /// The decision without what it borrows.
    pub(crate) fn into_decision(self) -> Result<Decision, Fault> {
        let facts = RequestFacts::of(&self.received);
        Ok(Decision { facts, verdict: self.verdict?, changes: self.request.into_changes() })
    }
}
