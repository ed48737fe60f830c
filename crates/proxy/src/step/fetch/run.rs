//! One fetch, for an exchange or for the store: the request, its pool, and the record of the fetch.

use super::context::FetchContext;
use super::named_file::{Asked, follow};
use super::origin_request::OriginRequest;
use super::origin_response::OriginResponse;
use super::recipient::Recipient;
use super::retry::fetch;
use super::trace::{FetchTrace, address};
use crate::core::Core;
use crate::forward::{Forward, Purpose};
use crate::origin::tls::OriginTls;
use crate::pool::SitePool;
use crate::request::received::Received;
use crate::request::requester::Requester;
use crate::site::Site;
use crate::sticky;
use crate::trailers::TrailerRule;
use crate::{Counter, Fault};
use sandarac_message::{RequestHead, hop};
use sandarac_policy::{Action, PoolId, Subject};
use sandarac_wire::h1::BodyFraming;
use std::time::Instant;

/// A request to a pool.
pub(crate) struct Fetch<'a> {
    pub(crate) core: &'a Core,
    pub(crate) site: &'a Site,
    /// The request to make.
    pub(crate) request: RequestHead<'a>,
    pub(crate) received: &'a Received<'a>,
    pub(crate) pool: PoolId,
    /// The target to request from the backend.
    pub(crate) target: &'a [u8],
    pub(crate) purpose: Purpose<'a>,
    /// Whether the client waits for 100 (Continue) before it sends its body.
    pub(crate) expect_continue: bool,
    /// The transaction number of the request that this fetch is for.
    pub(crate) transaction: u64,
}

impl Fetch<'_> {
    /// Sends the request to a backend of the pool and waits for the head of its response. `trace` receives
    /// what is known of the fetch, even if it fails.
    pub(crate) async fn run(
        &self,
        recipient: &mut Recipient<'_, '_>,
        trace: &mut FetchTrace,
    ) -> Result<Box<OriginResponse>, Fault> {
        let Fetch { core, site, received, pool, .. } = *self;
        let began = core.recorder.wants().then(Instant::now);
        trace.number = Some(core.transaction());
        let client_asks = !recipient.is_background();
        let peer = (received.requester.trusted && client_asks).then_some(self.request.fields);
        trace.id = core.shared.request_id(&received.route.request, peer, self.transaction);
        recipient.begins(trace);
        let site_pool = site.pool_by_id(pool);
        let mut framing = BodyFraming::None;
        let mut expect_continue = self.expect_continue;
        if let Some(down) = recipient.client() {
            let rule = || Box::new(TrailerRule::new(received.route.request.edited()));
            down.body.trailers = site_pool.forward_trailers.then(rule);
            if !down.body.has_ended() {
                let must_end = site_pool.application.is_some() && down.body.is_of_unknown_length();
                if must_end
                    || self.gathers(site_pool) && down.body.may_gather(down.client, site_pool.gather_limit)
                {
                    Box::pin(down.body.gather(down.client, &core.shared, site_pool.gather_limit, must_end))
                        .await?;
                    core.counters.one(Counter::BodiesGathered);
                }
            }
            framing = down.body.framing(down.client);
            expect_continue &= !down.body.has_gathered();
        }
        let request = self.origin_request(framing, expect_continue, trace.id.as_deref())?;
        let live = site_pool.live();
        let subject = Subject {
            host: &received.host,
            method: request.method_text,
            target: received.target.path_and_query,
            fields: self.request.fields,
        };
        let mut class = Vec::new();
        let class = live.classify(subject, &mut class, &core.counters);
        // A session does not influence a fetch without a client.
        let session = site_pool.sticky.as_ref().filter(|_| client_asks);
        let cookie = session.and_then(|sticky| sticky::named(sticky, self.request.fields));
        let sticks_to = cookie.and_then(|key| live.with_key(key));
        let context = FetchContext { core, site, pool, live: &live, class, sticks_to };
        let arrived = fetch(&context, &request, recipient).await;
        if let Some(began) = began {
            // The backend that responded. With hedging, this need not be the one that was tried last.
            trace.backend = match &arrived {
                Ok(arrived) => Some(arrived.link.backend().address().to_string()),
                Err(_) => recipient.asked().and_then(|id| address(site, pool, id)),
            };
            trace.backend_protocol = arrived.as_ref().ok().and_then(|arrived| arrived.link.protocol_name());
            trace.time = arrived.is_ok().then(|| began.elapsed());
        }
        let arrived = arrived?;
        let key = arrived.link.backend().key();
        // Another backend answered because the session's own was full, slow or just starting: the session
        // stays while its own is in service.
        let stays = sticks_to.is_some_and(|id| live.holds_sessions(id, context.now()));
        let moves = cookie != Some(key) && !stays;
        trace.stick_to = session.filter(|_| moves).map(|_| (key, received.requester.scheme));
        let asked = Asked { core, site, request: &self.request, host: &received.host, pool: site_pool };
        follow(asked, arrived).await
    }

    /// Whether the body is gathered if its length allows that. Never in a conversation, where the client may
    /// wait for a part of the response before it sends the rest.
    fn gathers(&self, pool: &SitePool) -> bool {
        let speaks_http2 = || pool.live().backends().iter().any(|backend| backend.address().is_http2());
        let is_conversation = matches!(self.purpose, Purpose::Tunnel)
            || hop::is_grpc(&self.request) && pool.tls.as_ref().is_some_and(OriginTls::offers_only_http2);
        self.received.route.gather.unwrap_or(pool.application.is_some())
            && !is_conversation
            && !speaks_http2()
    }

    /// The request as sent to the backend. Separate from [`Fetch::run`], whose future would otherwise keep
    /// its temporaries while it waits.
    fn origin_request<'s>(
        &'s self,
        framing: BodyFraming,
        expect_continue: bool,
        id: Option<&'s str>,
    ) -> Result<OriginRequest<'s>, Fault> {
        let Fetch { site, received, pool, .. } = *self;
        let host = match self.purpose {
            Purpose::Fill { .. } => &*received.host,
            Purpose::Pass | Purpose::Head { .. } | Purpose::Tunnel => received.requester.host,
        };
        let site_pool = site.pool_by_id(pool);
        let requester = Requester { host, ..received.requester };
        let forward = Forward {
            request: self.request,
            requester,
            introduction: &site.introduction,
            edits: &received.route.request,
            id: id.unwrap_or_default(),
            target: self.target,
            sticky: site_pool.sticky.as_ref(),
            expect_continue,
            trailers: site_pool.forward_trailers,
            fragments: received.route.fragments.is_some(),
            purpose: self.purpose,
        };
        let request = forward.request(framing, &received.route.response).map_err(|_| Fault::HeadTooLarge)?;
        let Some(application) = &site_pool.application else { return Ok(request) };
        let rule = match &received.route.action {
            Action::Files { rule, .. } => Some(rule),
            _ => None,
        };
        let cgi = application.request(self.target, &requester, self.transaction, rule)?;
        Ok(OriginRequest { cgi: Some(cgi), ..request })
    }
}
