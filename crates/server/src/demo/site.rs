//! The sample site: a slow web application, served on its own thread.
//!
//! Its responses are marked as in a good application: public pages with a lifetime for caches, private ones as private,
//! uncacheable ones as `no-store`, all with validators and tags where useful.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::routing::{get, post};
use sandarac_message::Timestamp;
use sandarac_message::civil::Civil;
use serde_json::json;
use tokio::sync::Semaphore;

use super::content::{self, Article, SECTIONS};
use super::pages::{self, Made};
use super::session::{Sessions, none_match_hits};
use crate::http_service::HttpService;

/// The `Cache-Control` of a page that is the same for all visitors: browsers revalidate each time, shared caches keep
/// it.
const SHARED: &[(&str, &str)] = &[
    ("cache-control", "public, max-age=0"),
    ("cdn-cache-control", "max-age=600, stale-while-revalidate=60, stale-if-error=3600"),
];
/// As [`SHARED`], for pages that change when an article appears.
const SHARED_LISTS: &[(&str, &str)] = &[
    ("cache-control", "public, max-age=0"),
    ("cdn-cache-control", "max-age=30, stale-while-revalidate=60, stale-if-error=3600"),
];
/// A page whose corner is put in by the accelerator, which alone keeps it: browsers would keep the corner with it.
const SHARED_BUT_FOR_A_CORNER: &[(&str, &str)] = &[
    ("cache-control", "private, no-cache"),
    ("cdn-cache-control", "max-age=600, stale-while-revalidate=60"),
];
const ASSET: &[(&str, &str)] = &[("cache-control", "public, max-age=86400")];
const PRIVATE: &[(&str, &str)] = &[("cache-control", "private, no-cache")];
const NEVER: &[(&str, &str)] = &[("cache-control", "no-store")];
const MISSING: &[(&str, &str)] =
    &[("cache-control", "public, max-age=0"), ("cdn-cache-control", "max-age=5")];

/// The longest form body, in bytes.
const MAX_FORM: usize = 1024;

/// The options of the sample site.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many pages it can make at a time; further requests queue, as in any pool of application workers.
    pub workers: usize,
    /// The factor for the time to make a page; 1.0 makes pages in 100 to 300 ms.
    pub slowness: f64,
}

impl Default for Options {
    fn default() -> Options {
        // A small host: eight application workers, about forty pages a second.
        Options { workers: 8, slowness: 1.0 }
    }
}

struct Shared {
    options: Options,
    workers: Semaphore,
    requests: AtomicU64,
    thanks: [AtomicU64; content::COUNT],
    sessions: Sessions,
}

/// A running sample site. It stops when dropped.
pub struct Site {
    address: SocketAddr,
    shared: Arc<Shared>,
    _service: HttpService,
}

impl Site {
    /// Starts the site on `address`; port 0 takes a free one.
    pub fn start(address: SocketAddr, options: Options) -> io::Result<Site> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            options,
            workers: Semaphore::new(options.workers),
            requests: AtomicU64::new(0),
            thanks: std::array::from_fn(|_| AtomicU64::new(0)),
            sessions: Sessions::new(),
        });
        let router = router(Arc::clone(&shared));
        let service = HttpService::start("the sample site", "demo-site", |ended| async move {
            let serve = axum::serve(tokio::net::TcpListener::from_std(listener)?, router);
            tokio::select! {
                served = serve => served,
                _ = ended => Ok(()),
            }
        })?;
        Ok(Site { address, shared, _service: service })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of requests that have reached the site itself.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Relaxed)
    }
}

type SiteState = State<Arc<Shared>>;
type Reply = Response<Body>;

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(front))
        .route("/sections/{name}", get(section))
        .route("/articles/{number}", get(article).post(thank))
        .route("/images/{file}", get(image))
        .route("/style.css", get(style))
        .route("/answered.js", get(script))
        .route("/login", get(login).post(sign_in))
        .route("/logout", post(sign_out))
        .route("/account", get(account))
        .route("/clock", get(clock))
        .route("/today", get(today))
        .route("/corner", get(corner))
        .route("/api/articles", get(api_list))
        .route("/api/articles/{number}", get(api_article))
        .fallback(missing)
        .layer(DefaultBodyLimit::max(MAX_FORM))
        .with_state(shared)
}

impl Shared {
    /// Occupies a worker for `milliseconds`, as making a page does.
    async fn work(&self, milliseconds: u64) -> Made {
        let begun = Instant::now();
        let serial = self.count();
        let _worker = self.workers.acquire().await;
        self.take_time(milliseconds, serial).await;
        Made { at: now(), took: begun.elapsed(), serial }
    }

    /// Waits `milliseconds` without a worker, as for sending a file, which needs no application.
    async fn send_file(&self, milliseconds: u64) -> Made {
        let begun = Instant::now();
        let serial = self.count();
        self.take_time(milliseconds, serial).await;
        Made { at: now(), took: begun.elapsed(), serial }
    }

    fn count(&self) -> u64 {
        self.requests.fetch_add(1, Relaxed) + 1
    }

    async fn take_time(&self, milliseconds: u64, serial: u64) {
        // A few per cent up or down, so that equal pages do not run in lockstep.
        let jitter = 0.95 + (serial % 11) as f64 / 100.0;
        tokio::time::sleep(Duration::from_millis(milliseconds).mul_f64(jitter * self.options.slowness)).await;
    }

    fn visitor(&self, request: &HeaderMap) -> Option<String> {
        request
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|cookies| cookies.to_str().ok())
            .find_map(|cookies| self.sessions.visitor(cookies))
    }

    /// A page that is the same for all visitors who are not signed in, and greets the others by name.
    async fn page(&self, request: &HeaderMap, page: Page<'_>, main: impl FnOnce() -> String) -> Reply {
        let visitor = self.visitor(request);
        let validator = request.get(header::IF_NONE_MATCH).filter(|_| visitor.is_none());
        if validator.is_some_and(|tags| none_match_hits(tags.as_bytes(), &page.etag)) {
            let made = self.work(CHECK_MS).await;
            return reply(StatusCode::NOT_MODIFIED, page.caching, made, "", Body::empty())
                .with("etag", &page.etag)
                .with("vary", "Cookie")
                .with("surrogate-key", &page.tags)
                .finish();
        }
        let made = self.work(page.milliseconds).await;
        let html = pages::frame(&page.name, page.title, visitor.as_deref(), made, &main());
        let caching = if visitor.is_some() { PRIVATE } else { page.caching };
        let reply = reply(StatusCode::OK, caching, made, HTML, html).with("vary", "Cookie");
        if visitor.is_some() {
            return reply.finish();
        }
        reply.with("etag", &page.etag).with("surrogate-key", &page.tags).finish()
    }
}

/// The time to determine that a page has not changed.
const CHECK_MS: u64 = 20;

struct Page<'a> {
    name: String,
    title: &'a str,
    milliseconds: u64,
    caching: &'static [(&'static str, &'static str)],
    etag: String,
    tags: String,
}

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";

fn now() -> Civil {
    Civil::of(Timestamp::from(SystemTime::now()))
}

struct Building(axum::http::response::Builder, Body);

fn reply(
    status: StatusCode,
    caching: &[(&'static str, &'static str)],
    made: Made,
    content_type: &'static str,
    body: impl Into<Body>,
) -> Building {
    let mut builder = Response::builder()
        .status(status)
        .header("x-made-in", format!("{} ms", made.took.as_millis()))
        .header("x-made-at", made.at.rfc3339().to_string());
    if !content_type.is_empty() {
        builder = builder.header(header::CONTENT_TYPE, content_type);
    }
    for &(name, value) in caching {
        builder = builder.header(name, value);
    }
    Building(builder, body.into())
}

impl Building {
    fn with(self, name: &'static str, value: &str) -> Building {
        Building(self.0.header(name, value), self.1)
    }

    fn finish(self) -> Reply {
        self.0.body(self.1).expect("names are literals and values are printable ASCII made here")
    }
}

async fn front(State(site): SiteState, request: HeaderMap) -> Reply {
    let page = Page {
        name: "front".to_owned(),
        title: "Front page",
        milliseconds: 300,
        caching: SHARED_LISTS,
        etag: "W/\"front\"".to_owned(),
        tags: "front list".to_owned(),
    };
    site.page(&request, page, || pages::list(None)).await
}

async fn section(State(site): SiteState, Path(name): Path<String>, request: HeaderMap) -> Reply {
    let Some(&title) = SECTIONS.iter().find(|title| title.to_ascii_lowercase() == name) else {
        return site.missing(&request).await;
    };
    let page = Page {
        name: format!("section-{name}"),
        title,
        milliseconds: 220,
        caching: SHARED_LISTS,
        etag: format!("W/\"section-{name}\""),
        tags: format!("section-{name} list"),
    };
    site.page(&request, page, || pages::list(Some(title))).await
}

fn numbered(number: &str) -> Option<Article> {
    content::article(number.parse().ok()?)
}

/// Articles take between 120 and 280 ms, each its own time.
fn article_ms(number: usize) -> u64 {
    120 + number as u64 * 37 % 161
}

async fn article(State(site): SiteState, Path(number): Path<String>, request: HeaderMap) -> Reply {
    let Some(article) = numbered(&number) else {
        return site.missing(&request).await;
    };
    let thanks = site.thanks[article.number - 1].load(Relaxed);
    let page = Page {
        name: format!("article-{}", article.number),
        title: article.title,
        milliseconds: article_ms(article.number),
        caching: SHARED,
        etag: format!("W/\"article-{}-{thanks}\"", article.number),
        tags: format!("article-{} section-{}", article.number, article.section.to_ascii_lowercase()),
    };
    site.page(&request, page, || pages::article(&article, thanks)).await
}

async fn thank(State(site): SiteState, Path(number): Path<String>, request: HeaderMap) -> Reply {
    let Some(article) = numbered(&number) else {
        return site.missing(&request).await;
    };
    let made = site.work(100).await;
    site.thanks[article.number - 1].fetch_add(1, Relaxed);
    reply(StatusCode::SEE_OTHER, NEVER, made, "", Body::empty())
        .with("location", &format!("/articles/{}", article.number))
        .finish()
}

async fn image(State(site): SiteState, Path(file): Path<String>, request: HeaderMap) -> Reply {
    let Some(article) = file.strip_suffix(".svg").and_then(numbered) else {
        return site.missing(&request).await;
    };
    let made = site.send_file(15).await;
    reply(StatusCode::OK, ASSET, made, "image/svg+xml", content::picture(article.number))
        .with("etag", &format!("\"image-{}\"", article.number))
        .with("surrogate-key", &format!("image-{}", article.number))
        .finish()
}

async fn style(State(site): SiteState) -> Reply {
    let made = site.send_file(5).await;
    reply(StatusCode::OK, ASSET, made, "text/css; charset=utf-8", pages::STYLE).finish()
}

async fn script(State(site): SiteState) -> Reply {
    let made = site.send_file(5).await;
    reply(StatusCode::OK, ASSET, made, "text/javascript; charset=utf-8", pages::SCRIPT).finish()
}

impl Shared {
    /// A response that is made for each request and concerns only its visitor.
    async fn personal(&self, request: &HeaderMap, name: &str, milliseconds: u64, main: String) -> Building {
        let made = self.work(milliseconds).await;
        let visitor = self.visitor(request);
        let html = pages::frame(name, "Account", visitor.as_deref(), made, &main);
        reply(StatusCode::OK, PRIVATE, made, HTML, html).with("vary", "Cookie")
    }

    async fn missing(&self, request: &HeaderMap) -> Reply {
        let made = self.work(100).await;
        let visitor = self.visitor(request);
        let main = pages::message("Not here", "There is no page at this address.");
        let html = pages::frame("missing", "Not here", visitor.as_deref(), made, &main);
        let caching = if visitor.is_some() { PRIVATE } else { MISSING };
        reply(StatusCode::NOT_FOUND, caching, made, HTML, html).with("vary", "Cookie").finish()
    }
}

async fn missing(State(site): SiteState, request: HeaderMap) -> Reply {
    site.missing(&request).await
}

async fn login(State(site): SiteState, request: HeaderMap) -> Reply {
    site.personal(&request, "login", 100, pages::login(None)).await.finish()
}

async fn sign_in(State(site): SiteState, request: HeaderMap, form: Bytes) -> Reply {
    let name =
        std::str::from_utf8(&form).ok().and_then(|form| form.strip_prefix("name=")).unwrap_or_default();
    let Some(cookie) = site.sessions.open(name) else {
        let complaint = "A name here is letters, digits and dashes, at most 24 of them.";
        let Building(builder, body) =
            site.personal(&request, "login", 100, pages::login(Some(complaint))).await;
        return Building(builder.status(StatusCode::UNPROCESSABLE_ENTITY), body).finish();
    };
    let made = site.work(150).await;
    reply(StatusCode::SEE_OTHER, NEVER, made, "", Body::empty())
        .with("location", "/account")
        .with("set-cookie", &cookie)
        .finish()
}

async fn sign_out(State(site): SiteState) -> Reply {
    let made = site.work(50).await;
    reply(StatusCode::SEE_OTHER, NEVER, made, "", Body::empty())
        .with("location", "/")
        .with("set-cookie", Sessions::close())
        .finish()
}

async fn account(State(site): SiteState, request: HeaderMap) -> Reply {
    match site.visitor(&request) {
        Some(visitor) => site.personal(&request, "account", 150, pages::account(&visitor)).await.finish(),
        None => {
            let made = site.work(20).await;
            reply(StatusCode::SEE_OTHER, NEVER, made, "", Body::empty()).with("location", "/login").finish()
        }
    }
}

async fn clock(State(site): SiteState, request: HeaderMap) -> Reply {
    let made = site.work(100).await;
    let visitor = site.visitor(&request);
    let html = pages::frame("clock", "Clock", visitor.as_deref(), made, &pages::clock(made.at));
    reply(StatusCode::OK, NEVER, made, HTML, html).finish()
}

/// The same for all visitors but for its corner, where an accelerator puts that in.
async fn today(State(site): SiteState, request: HeaderMap) -> Reply {
    let capability = request.get("surrogate-capability").and_then(|value| value.to_str().ok());
    let made = site.work(250).await;
    let main = pages::list(None);
    if capability.is_some_and(|capability| capability.contains("ESI/1.0")) {
        let html = pages::frame_without_corner("today", "Today", made, &main);
        return reply(StatusCode::OK, SHARED_BUT_FOR_A_CORNER, made, HTML, html)
            .with("surrogate-key", "today list")
            .finish();
    }
    let visitor = site.visitor(&request);
    let html = pages::frame("today", "Today", visitor.as_deref(), made, &main);
    reply(StatusCode::OK, PRIVATE, made, HTML, html).finish()
}

async fn corner(State(site): SiteState, request: HeaderMap) -> Reply {
    let made = site.work(20).await;
    let html = pages::corner(site.visitor(&request).as_deref(), made);
    reply(StatusCode::OK, PRIVATE, made, HTML, html).finish()
}

fn as_json(article: &Article) -> serde_json::Value {
    json!({
        "id": article.number,
        "title": article.title,
        "section": article.section,
        "url": format!("/articles/{}", article.number),
    })
}

impl Shared {
    /// A JSON response with a strong validator derived from its content.
    async fn json(
        &self,
        request: &HeaderMap,
        milliseconds: u64,
        tags: &str,
        value: serde_json::Value,
    ) -> Reply {
        let body = format!("{value}\n");
        let etag = format!("\"{}\"", &blake3::hash(body.as_bytes()).to_hex()[..16]);
        let unchanged =
            request.get(header::IF_NONE_MATCH).is_some_and(|tags| none_match_hits(tags.as_bytes(), &etag));
        let made = self.work(if unchanged { CHECK_MS } else { milliseconds }).await;
        let (status, content_type, body) = match unchanged {
            true => (StatusCode::NOT_MODIFIED, "", String::new()),
            false => (StatusCode::OK, JSON, body),
        };
        reply(status, SHARED, made, content_type, body)
            .with("etag", &etag)
            .with("surrogate-key", tags)
            .finish()
    }
}

async fn api_list(State(site): SiteState, request: HeaderMap) -> Reply {
    let list = content::articles().map(|article| as_json(&article)).collect();
    site.json(&request, 180, "api list", list).await
}

async fn api_article(State(site): SiteState, Path(number): Path<String>, request: HeaderMap) -> Reply {
    let Some(article) = numbered(&number) else {
        return site.missing(&request).await;
    };
    let mut value = as_json(&article);
    value["lead"] = article.lead.clone().into();
    value["text"] = article.paragraphs.clone().into();
    site.json(&request, 110, &format!("api article-{}", article.number), value).await
}

#[cfg(test)]
mod tests;
