//! A fetch over a link that is not an HTTP/1.1 connection.

use super::attempt::attempt;
use super::link::OriginLink;
use super::memory::{Heard, Memory};
use super::{Audience, FetchContext, OriginRequest, Recipient};
use crate::handling::Handling;
use crate::step::receive::receive;
use crate::step::store::{Landed, Landing};
use crate::{Core, Outcome, Record, Recorder, Shared, Site, SiteTls};
use sandarac_cache::{Intent, Lookup, Query, Settings, Store};
use sandarac_config::Config;
use sandarac_message::caching::RequestDirectives;
use sandarac_message::{FieldsBuf, Method, RequestHead, ResponseHeadBuf, Version};
use sandarac_net::{ListenerId, Peer, wall};
use sandarac_wire::h1::BodyFraming;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use tokio::runtime::{Builder, LocalOptions};

struct NoLog;

impl Recorder for NoLog {
    fn wants(&self) -> bool {
        false
    }

    fn record(&self, _: &Record<'_>) {}
}

const SITE: &str =
    "[[listen]]\naddress = \":0\"\n[pool.app]\nbackends = [\"http://a\"]\n[[route]]\npool = \"app\"";

#[test]
fn a_response_of_an_origin_that_speaks_another_protocol_is_stored() {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(async {
        let (config, _) = Config::from_toml("test.toml", SITE).unwrap();
        let pool = sandarac_policy::PoolId::at(0);
        let store = Arc::new(Store::new(Settings::new(16 << 20)));
        let shared = Shared::new(
            Site::new(config, None, SiteTls::default(), &[], None, 1),
            store.clone(),
            1,
            10,
            Box::new(|_| {}),
        );
        let core = Core::new(shared, 0, Box::new(NoLog));
        let site = core.site();
        let fields: FieldsBuf = [("Host", "www.example")].into_iter().collect();
        let head = RequestHead {
            method: Method::Get,
            method_text: b"GET",
            target: b"/page",
            version: Version::Http11,
            fields: fields.view(),
        };
        let peer = Peer { number: 0, client: None, listener: ListenerId::unused(), tls: None, requests: 1 };
        let received = receive(&site, &peer, &head, None).unwrap();
        let rule = received.route.cache_rule().unwrap();
        let directives = RequestDirectives::default();
        let query =
            Query { fields: fields.view(), directives: &directives, part: None, intent: Intent::Fill };
        let key = crate::step::hash::key(
            &rule.key,
            received.requester.scheme,
            &received.host,
            b"/page",
            fields.view(),
        );
        let Lookup::Miss(flight) = store.lookup(key, &query, wall()) else { panic!("the store is empty") };

        let heard = Rc::new(RefCell::new(Heard::default()));
        let answer = ResponseHeadBuf {
            status: 200,
            reason: b"OK"[..].into(),
            version: Version::Http11,
            fields: [("Cache-Control", "max-age=60")].into_iter().collect(),
        };
        let mut origin = Memory::new(answer, &[b"first ", b"second"], heard.clone());
        origin.interim = Some(103);
        let live = site.pool_by_id(pool).live();
        let context =
            FetchContext { core: &core, site: &site, pool, live: &live, class: None, sticks_to: None };
        let pick = live.pick(None, context.now(), &[]).unwrap();
        let link = OriginLink::memory(&context, origin, pick);
        let request = OriginRequest {
            method: Method::Get,
            method_text: b"GET",
            target: b"/page",
            fields: fields.clone(),
            tunnel: false,
            protocols: None,
            takes_trailers: false,
            is_grpc: false,
            one_client: false,
            cgi: None,
            framing: BodyFraming::None,
            edits: &received.route.response,
        };
        let audience = Audience::attended(usize::MAX);
        let response = attempt(&context, &request, link, &mut Recipient::Audience(&audience), false).await;
        let Ok(response) = response else { panic!("the origin answers") };
        let mut interims = Vec::new();
        audience.drain_interims(|status, _, _| interims.push(status));
        assert_eq!(interims, [103]);

        let landing = Landing::of(&core, &site, &head, &received, b"/page", rule, pool, None);
        let mut handling = Handling::new(Outcome::Miss);
        let Ok(Landed::Object(object, reader, _)) = landing.land(flight, response, &mut handling) else {
            panic!("it may be stored")
        };
        assert!(handling.stored);
        let mut body = Vec::new();
        let mut reader = reader.or_else(|| object.reader()).unwrap();
        while let Some(Ok(piece)) = poll_fn(|cx| reader.poll_chunk(cx)).await {
            body.extend_from_slice(piece.bytes().expect("in memory"));
        }
        assert_eq!(body, b"first second");
        assert_eq!(heard.borrow().target, b"/page");
        assert!(heard.borrow().finished, "the link ended as one whose response is whole");
        assert!(matches!(store.lookup(key, &query, wall()), Lookup::Hit(_)));
    });
}
