//! A fetch over a link that is not an HTTP/1.1 connection.

use super::attempt::attempt;
use super::link::OriginLink;
use super::memory::{Heard, Memory};
use super::{Audience, FetchContext, OriginRequest, Recipient};
use crate::report::handling::{Course, Handling};
use crate::step::receive::receive;
use crate::step::store::{Landed, Landing};
use crate::{Core, Record, Recorder, Shared, Site, SiteTls};
use sandarac_cache::{Broken, Intent, Lookup, Query, Reader, Settings, Store};
use sandarac_config::Config;
use sandarac_message::caching::RequestDirectives;
use sandarac_message::target::Scheme;
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
        let store = Arc::new(Store::new(Settings::new(16 << 20)));
        let heard = Rc::new(RefCell::new(Heard::default()));
        let mut origin = Memory::new(answer(), &[b"first ", b"second"], heard.clone());
        origin.interim = Some(103);
        let fetched = fetch(&store, origin).await;
        assert_eq!(fetched.interims, [103]);
        assert!(fetched.is_stored);
        assert_eq!(read(fetched.reader).await, (b"first second".to_vec(), None));
        assert_eq!(heard.borrow().target, b"/page");
        assert!(heard.borrow().finished, "the link ended as one whose response is whole");
        assert!(matches!(lookup(&store), Lookup::Hit(_)));
    });
}

/// The task of the fill ends by a fault in this program, as in a soak, where the object was evicted while it
/// arrived.
#[test]
fn readers_of_an_object_whose_fill_panics_get_an_error_at_once_and_the_key_is_free() {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(async {
        let store = Arc::new(Store::new(Settings::new(16 << 20)));
        let mut origin = Memory::new(answer(), &[b"first ", b"second"], Rc::default());
        origin.panics = true;
        let fetched = fetch(&store, origin).await;
        let Lookup::Hit(arriving) = lookup(&store) else { panic!("newcomers read it while it arrives") };
        let newcomer = arriving.reader();
        for reader in [fetched.reader, newcomer] {
            assert_eq!(read(reader).await, (b"first second".to_vec(), Some(Broken::Aborted)));
        }
        assert!(matches!(lookup(&store), Lookup::Miss(_)), "the next request fetches again");
    });
}

/// A fetch of `/page` whose response is being stored.
struct Fetched {
    interims: Vec<u16>,
    is_stored: bool,
    reader: Option<Reader>,
}

async fn fetch(store: &Arc<Store>, origin: Memory) -> Fetched {
    let (config, _) = Config::from_toml("test.toml", SITE).unwrap();
    let pool = sandarac_policy::PoolId::at(0);
    let site = Site::new(config, None, SiteTls::default(), &[], None, 1);
    let shared = Shared::new(site, store.clone(), 1, 10, Box::new(|_| {}));
    let core = Core::new(shared, 0, Box::new(NoLog));
    let site = core.site();
    let fields = request_fields();
    let head = RequestHead {
        method: Method::Get,
        method_text: b"GET",
        target: b"/page",
        version: Version::Http11,
        fields: fields.view(),
    };
    let holder = core.shared.account.connection();
    let peer =
        Peer { number: 0, client: None, listener: ListenerId::unused(), tls: None, requests: 1, holder };
    let received = receive(&site, &peer, &head, None).unwrap();
    let rule = received.route.cache_rule().unwrap();
    let Lookup::Miss(flight) = lookup(store) else { panic!("the store is empty") };
    let live = site.pool_by_id(pool).live();
    let context = FetchContext { core: &core, site: &site, pool, live: &live, class: None, sticks_to: None };
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
    let landing = Landing::of(&core, &site, &head, &received, b"/page", rule, pool, None);
    let mut handling = Handling::new(Course::Undecided);
    let Ok(Landed::Object(object, reader, _)) = landing.land(flight, response, &mut handling) else {
        panic!("it may be stored")
    };
    Fetched { interims, is_stored: handling.stored, reader: reader.or_else(|| object.reader()) }
}

fn answer() -> ResponseHeadBuf {
    ResponseHeadBuf {
        status: 200,
        reason: b"OK"[..].into(),
        version: Version::Http11,
        fields: [("Cache-Control", "max-age=60")].into_iter().collect(),
    }
}

fn request_fields() -> FieldsBuf {
    [("Host", "www.example")].into_iter().collect()
}

fn lookup(store: &Arc<Store>) -> Lookup {
    let (config, _) = Config::from_toml("test.toml", SITE).unwrap();
    let rule = config.routes.all()[0].cache_rule().unwrap();
    let fields = request_fields();
    let directives = RequestDirectives::default();
    let query = Query { fields: fields.view(), directives: &directives, part: None, intent: Intent::Fill };
    let key = crate::request::hash::key(&rule.key, Scheme::Http, b"www.example", b"/page", fields.view());
    store.lookup(key, &query, wall())
}

/// All bytes of a body, and the error that it ended with.
async fn read(reader: Option<Reader>) -> (Vec<u8>, Option<Broken>) {
    let (mut reader, mut body) = (reader.expect("it begins at the start"), Vec::new());
    while let Some(piece) = poll_fn(|cx| reader.poll_chunk(cx)).await {
        match piece {
            Ok(piece) => body.extend_from_slice(piece.bytes().expect("it is in memory")),
            Err(broken) => return (body, Some(broken)),
        }
    }
    (body, None)
}
