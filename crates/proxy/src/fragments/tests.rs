//! Assembled pages against a slow reference: whatever pieces a page comes in, and whatever is wrong with its tags.

use super::*;
use crate::{Core, Fault, Record, Recorder, Shared, Site, SiteTls};
use bytes::Bytes;
use proptest::prelude::*;
use reference::{Item, reference};
use sandarac_cache::{Settings, Store};
use sandarac_config::Config;
use sandarac_esi::{Include, Variable};
use sandarac_message::{FieldsBuf, Method, Piece, RequestHeadBuf, Version};
use sandarac_net::{Body, BodyBroken, LeasedHead, ListenerId, Peer};
use sandarac_policy::FragmentRule;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::runtime::{Builder, LocalOptions};

#[path = "../../../esi/tests/support/reference.rs"]
mod reference;

struct NoLog;

impl Recorder for NoLog {
    fn wants(&self) -> bool {
        false
    }

    fn record(&self, _: &Record<'_>) {}
}

/// A site with two fragments that are there, one that is not, and, at every other path, a backend that refuses connections.
fn core() -> Rc<Core> {
    let closed =
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("an address");
    let text = format!(
        "[[listen]]\naddress = \":0\"\n[pool.app]\nbackends = [\"http://{closed}\"]\nretries = 0\n\
         [[route]]\nmatch = \"=/a\"\nanswer = {{ status = 200, body = \"<a>\" }}\n\
         [[route]]\nmatch = \"=/b\"\nanswer = {{ status = 201, body = \"<esi:remove>\" }}\n\
         [[route]]\nmatch = \"=/404\"\nanswer = {{ status = 404, body = \"not here\" }}\n\
         [[route]]\npool = \"app\"\nfragments = true\n[cache]\nkey_cookies = [\"lang\"]"
    );
    let (config, _) = Config::from_toml("test.toml", &text).unwrap_or_else(|errors| panic!("{errors}"));
    let store = Arc::new(Store::new(Settings::new(16 << 20)));
    let site = Site::new(config, None, SiteTls::default(), &[], None, 1);
    let shared = Shared::new(site, store, 1, 10, Box::new(|_| {}));
    Core::new(shared, 0, Box::new(NoLog))
}

fn page_at(core: &Core) -> Rc<Page> {
    let fields: FieldsBuf = [("Host", "www.example"), ("Cookie", "lang=d&e; id=7")].into_iter().collect();
    let head = RequestHeadBuf {
        method: Method::Get,
        method_text: b"GET"[..].into(),
        target: b"/dir/page?q='x'"[..].into(),
        version: Version::Http11,
        fields,
    };
    let site = core.site();
    let route = site.config.routes.find(b"www.example", b"/dir/page", b"GET").expect("a route");
    let rule = PageRule { rule: FragmentRule::Markup, route, stated: None };
    let holder = core.shared.account.connection();
    let peer =
        Peer { number: 0, client: None, listener: ListenerId::unused(), tls: None, requests: 1, holder };
    let head = LeasedHead::made(head, &peer.holder);
    Page::new(core, &site, rule, &peer, &Rc::new(head), Nesting::outermost(1)).expect("room")
}

/// A body that arrives in these pieces, and pauses where there is none.
struct Script(VecDeque<Option<Bytes>>);

impl Body for Script {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, BodyBroken>>> {
        match self.0.pop_front() {
            Some(Some(piece)) => Poll::Ready(Some(Ok(piece.into()))),
            Some(None) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            None => Poll::Ready(None),
        }
    }

    fn trailers(&self) -> Option<FieldsBuf> {
        None
    }
}

/// What an assembly sends: the bytes, and whether it comes to its end.
async fn assembled(page: Rc<Page>, body: Script) -> Result<(Vec<u8>, bool), Fault> {
    let mut assembly = Assembly::new(page, Source::stream(Box::new(body)), true);
    let len = poll_fn(|cx| assembly.poll_begun(cx)).await?;
    let mut out = Vec::new();
    let whole = loop {
        match poll_fn(|cx| assembly.poll_piece(cx)).await {
            Some(Ok(piece)) => {
                assert!(!piece.is_empty());
                out.extend_from_slice(piece.bytes().expect("memory"));
            }
            Some(Err(_)) => break false,
            None => break true,
        }
    };
    assert!(len.is_none_or(|len| whole && len == out.len() as u64), "{len:?} {}", out.len());
    Ok((out, whole))
}

/// The same by the rules of the manual.
fn expected(body: &[u8]) -> (Vec<u8>, bool) {
    let value = |variable: &Variable| match variable {
        Variable::Query(name) if **name == *b"q" => Some(&b"'x'"[..]),
        Variable::Cookie(name) if **name == *b"lang" => Some(&b"d&e"[..]),
        _ => None,
    };
    let fragment = |include: &Include| {
        [Some(&include.src), include.alt.as_ref()].into_iter().flatten().find_map(|url| {
            match &url.url(value).unwrap_or_default()[..] {
                b"/a" | b"../a" | b"http://www.example/a" | b"//www.example/dir/../a" => Some("<a>"),
                // No tag of a fragment counts.
                b"/b" => Some("<esi:remove>"),
                _ => None,
            }
        })
    };
    let mut out = Vec::new();
    for item in reference(body) {
        match item {
            Item::Text(text) => out.extend(text),
            Item::Variable(variable) => match value(&variable) {
                Some(b"'x'") => out.extend_from_slice(b"&#39;x&#39;"),
                Some(_) => out.extend_from_slice(b"d&amp;e"),
                None => {}
            },
            Item::Include(include) => match fragment(&include) {
                Some(text) => out.extend_from_slice(text.as_bytes()),
                None if include.continues => {}
                None => return (out, false),
            },
        }
    }
    (out, true)
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        "<esi:include src=\"/a\"/>",
        "<esi:include src=\"/b\"/>",
        "<esi:include src=\"../a\"/>",
        "<esi:include src=\"//www.example/dir/../a\"/>",
        "<esi:include src=\"/404\" alt=\"/a\"/>",
        "<esi:include src=\"/refused\" alt=\"/b\"/>",
        "<esi:include src=\"/404\" onerror=\"continue\"/>",
        "<esi:include src=\"/refused\" onerror=\"continue\"/>",
        "<esi:include src=\"http://elsewhere.example/a\" alt=\"/404\" onerror=\"continue\"/>",
        "<esi:include src=\"/$(QUERY_STRING{q})\" alt=\"http://www.example/a\"/>",
        "<esi:include src=\"/x y\" alt=\"/a\"/>",
        "<esi:include src=/a/>",
        "<esi:remove>",
        "</esi:remove>",
        "<esi:vars>",
        "</esi:vars>",
        "$(QUERY_STRING{q})",
        "$(HTTP_COOKIE{lang})",
        "$(HTTP_COOKIE{id})",
        "<!--esi",
        "-->",
        "<p>text</p>",
        " ",
        "<esi:",
    ]);
    prop::collection::vec(word, 0..30).prop_map(|words| words.concat().into_bytes())
}

/// Lengths of pieces; a pause where it is 0.
fn pieces() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![2 => 1usize..60, 1 => Just(0)], 1..10)
}

fn script(body: &[u8], pieces: &[usize]) -> Script {
    let (mut script, mut rest) = (VecDeque::new(), body);
    for &len in pieces.iter().cycle().take(body.len() + 1) {
        let (piece, after) = rest.split_at(len.min(rest.len()));
        script.push_back(Some(Bytes::copy_from_slice(piece)).filter(|piece| !piece.is_empty()));
        rest = after;
    }
    if !rest.is_empty() {
        script.push_back(Some(Bytes::copy_from_slice(rest)));
    }
    Script(script)
}

#[track_caller]
fn check(body: &[u8], pieces: &[usize]) {
    let runtime =
        Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).expect("a runtime");
    let got = runtime.block_on(async {
        let core = core();
        assembled(page_at(&core), script(body, pieces)).await
    });
    let (text, whole) = expected(body);
    let shown = String::from_utf8_lossy(body);
    match got {
        Ok(got) => assert!(got == (text, whole), "{shown}: {}", String::from_utf8_lossy(&got.0)),
        // A failure that was known at once, and may be further on in the page.
        Err(fault) => assert!(matches!(fault, Fault::Fragment(_)) && !whole, "{shown}: {fault:?}"),
    }
}

#[test]
fn a_page_of_all_its_parts() {
    let page = "1<esi:include src=\"/a\"/>2<esi:include src=\"/refused\" alt=\"/b\"/>3<esi:remove>x</esi:remove>\
                <esi:vars>$(QUERY_STRING{q})</esi:vars>4<esi:include src=\"/404\" onerror=\"continue\"/>5";
    assert_eq!(expected(page.as_bytes()), (b"1<a>2<esi:remove>3&#39;x&#39;45".to_vec(), true));
    check(page.as_bytes(), &[1000]);
    check(page.as_bytes(), &[1, 0]);
    check(b"", &[0]);
    check(b"<esi:remove>", &[3, 0]);
    check(b"a<esi:include src=\"/refused\"/>b", &[1]);
}

#[test]
fn a_page_of_nothing_but_tags_leaves_time_for_others() {
    let runtime =
        Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).expect("a runtime");
    let comments = "<esi:comment text=\"x\"/>".repeat(1000);
    let removed = format!("<esi:remove>{}</esi:remove>.", "x".repeat(100_000));
    for part in [format!("{comments}."), removed] {
        let page = part.repeat((4 << 20) / part.len());
        let waits = runtime.block_on(async {
            let core = core();
            let script = Script([Some(Bytes::copy_from_slice(page.as_bytes()))].into());
            let mut assembly = Assembly::new(page_at(&core), Source::stream(Box::new(script)), true);
            let mut waits = 0;
            poll_fn(|cx| {
                let begun = assembly.poll_begun(cx);
                waits += u32::from(begun.is_pending());
                begun
            })
            .await
            .expect("a page");
            let mut text = 0;
            while let Some(piece) = poll_fn(|cx| {
                let piece = assembly.poll_piece(cx);
                waits += u32::from(piece.is_pending());
                piece
            })
            .await
            {
                text += piece.expect("a piece").len();
            }
            assert_eq!(text, page.len() / part.len());
            waits
        });
        assert!(waits >= (4 << 20) / (300 << 10), "{waits}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn pages_are_what_the_reference_says(body in body(), pieces in pieces()) {
        check(&body, &pieces);
    }
}
