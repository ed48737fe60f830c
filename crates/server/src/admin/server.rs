//! The server of the admin interface: HTTP requests in, calls of [`Control`] out, JSON responses back.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Extension, FromRequest, Query, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::BytesMut;
use hyper::body::Frame;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::listener::{Caller, Left, Work};
use super::{AskPools, AskShared, AskTls, Bound, Control, Endpoint, Fault, Purge, Refusal, Upgrade, metrics};
use crate::http_service::HttpService;
use crate::logs::{Filter, Subscription, Viewer};

/// Access control and limits of callers.
#[derive(Clone)]
pub struct Access {
    /// The token that callers present as `Authorization: Bearer TOKEN`; it or the next MUST be set unless the endpoint
    /// is private.
    pub token: Token,
    /// The token of read-only callers.
    pub read_token: Token,
    /// The longest request body, in bytes. It holds lists of URLs and tags: 64 MiB are more than a million tags.
    pub max_body: usize,
}

impl Default for Access {
    fn default() -> Access {
        Access { token: Token::default(), read_token: Token::default(), max_body: 64 << 20 }
    }
}

/// The token of callers over TCP. Clones share it, and it can be changed while the interface runs. Only its digest is
/// kept: digests are compared in constant time, regardless of length.
#[derive(Clone, Default)]
pub struct Token(Arc<Mutex<Option<blake3::Hash>>>);

impl Token {
    /// Sets it. An empty token could be presented by any caller, so it counts as none. Without a token, no caller
    /// matches.
    pub fn set(&self, token: Option<&str>) {
        let token = token.filter(|token| !token.is_empty());
        *self.0.lock() = token.map(|token| blake3::hash(token.as_bytes()));
    }

    fn is_set(&self) -> bool {
        self.0.lock().is_some()
    }

    fn is(&self, presented: blake3::Hash) -> bool {
        *self.0.lock() == Some(presented)
    }
}

/// A caller's authorization, which a reload may revoke.
#[derive(Clone)]
enum Grant {
    /// By the file system.
    File,
    /// By a token with this digest.
    Token { presented: blake3::Hash, all: Token, read: Token },
}

impl Grant {
    fn is_valid(&self) -> bool {
        match self {
            Grant::File => true,
            Grant::Token { presented, all, read } => all.is(*presented) || read.is(*presented),
        }
    }

    fn viewer(&self) -> Viewer {
        match self {
            Grant::Token { presented, all, .. } if !all.is(*presented) => Viewer::Reader,
            Grant::File | Grant::Token { .. } => Viewer::Operator,
        }
    }
}

/// The running admin interface. It stops when dropped.
pub struct Server {
    endpoint: Endpoint,
    socket: AdminSocket,
    _service: HttpService,
}

/// The listening socket of an admin interface, for a process that takes it over.
#[derive(Clone)]
pub(crate) struct AdminSocket {
    socket: Arc<OwnedFd>,
    left: Left,
}

impl AdminSocket {
    /// A copy of the socket.
    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Has the interface accept no more callers: another process does. Those that are connected are served.
    pub(crate) fn leave(&self) {
        self.left.leave();
    }
}

struct Shared {
    control: Arc<dyn Control>,
    /// The tokens for full and for read-only access; `None` if the file system controls access.
    tokens: Option<(Token, Token)>,
}

impl Server {
    /// Serves `bound` on its own thread.
    pub fn start(bound: Bound, access: Access, control: Arc<dyn Control>) -> io::Result<Server> {
        if !bound.is_private() && !access.token.is_set() && !access.read_token.is_set() {
            return Err(no_token());
        }
        let tokens = (!bound.is_private()).then_some((access.token, access.read_token));
        let endpoint = bound.endpoint().clone();
        let left = Left::default();
        let socket = AdminSocket { socket: Arc::new(bound.copy()?), left: left.clone() };
        let router = router(Arc::new(Shared { control, tokens }), access.max_body);
        let service = HttpService::start("the admin interface", "admin", |ended| async move {
            axum::serve(bound.into_listener(left)?, router.into_make_service_with_connect_info::<Caller>())
                .with_graceful_shutdown(async { _ = ended.await })
                .await
        })?;
        Ok(Server { endpoint, socket, _service: service })
    }

    /// Its address.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Its socket, for a process that takes over.
    pub(crate) fn socket(&self) -> AdminSocket {
        self.socket.clone()
    }
}

fn no_token() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "the admin interface on TCP needs a token, or any client that reaches it could purge and reload",
    )
}

fn router(shared: Arc<Shared>, max_body: usize) -> Router {
    Router::new()
        .route("/status", get(status))
        .route("/tls", get(tls))
        .route("/stats", get(stats))
        .route("/metrics", get(prometheus))
        .route("/log", get(log))
        .route("/purge", post(purge))
        .route("/shared", post(shared_tier))
        .route("/ban", post(ban))
        .route("/reload", post(reload))
        .route("/upgrade", post(upgrade))
        .route("/pools", get(pools))
        .route("/pool/add", post(add_backend))
        .route("/pool/remove", post(remove_backend))
        .route("/pool/drain", post(drain_backend))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(max_body))
        .layer(from_fn_with_state(Arc::clone(&shared), authorize))
        .with_state(shared)
}

type Process = State<Arc<Shared>>;

/// An error response: status and message.
struct Failure(StatusCode, Refusal);

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        let status = match refusal.fault {
            Fault::Caller => StatusCode::BAD_REQUEST,
            Fault::Process => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Failure(status, refusal)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0, as_json(&json!({ "error": self.1 }))).into_response()
    }
}

fn as_json(value: &impl Serialize) -> Response {
    let mut body = serde_json::to_vec(value).expect("answers are made of strings, numbers and lists");
    body.push(b'\n');
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")], body).into_response()
}

async fn authorize(
    State(shared): Process,
    ConnectInfo(caller): ConnectInfo<Caller>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some((all, read)) = &shared.tokens else {
        let _work = caller.let_in();
        request.extensions_mut().insert(Grant::File);
        return next.run(request).await;
    };
    let presented = request.headers().get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.as_bytes().split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"bearer ").then(|| blake3::hash(token))
    });
    let may_read = presented.is_some_and(|presented| read.is(presented));
    if let Some(presented) = presented
        && (all.is(presented) || (may_read && request.method().is_safe()))
    {
        let _work = caller.let_in();
        request.extensions_mut().insert(Grant::Token { presented, all: all.clone(), read: read.clone() });
        return next.run(request).await;
    }
    if may_read {
        let _work = caller.let_in();
        let refusal = Refusal::invalid("this token may only read").at("Authorization");
        return Failure(StatusCode::FORBIDDEN, refusal.instead("present the `token` of [admin]"))
            .into_response();
    }
    let what = if presented.is_some() { "the token is not the right one" } else { "there is no token" };
    let refusal = Refusal::invalid(what).at("Authorization").instead(
        "send \"Authorization: Bearer TOKEN\"; commands take the token from --token-file FILE, SANDARAC_TOKEN, or the \
         [admin] section of -c FILE",
    );
    let mut response = Failure(StatusCode::UNAUTHORIZED, refusal).into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    // A caller without a token must not hold a place that another caller needs.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Calls [`Control`] on a thread that may block.
async fn call<T: Send + 'static>(
    shared: Arc<Shared>,
    ask: impl FnOnce(&dyn Control) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(move || ask(&*shared.control)).await;
    Ok(done.unwrap_or_else(|_| {
        Err(Refusal::failed("the call failed inside the process; see its error output"))
    })?)
}

async fn status(State(shared): Process) -> Result<Response, Failure> {
    Ok(as_json(&call(shared, |control| Ok(control.status())).await?))
}

async fn tls(
    State(shared): Process,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Response, Failure> {
    let wrong = |what: String| Refusal::invalid(what).at("query").instead("`name=HOST`, or nothing");
    let Query(query) = query.map_err(|rejection| wrong(rejection.body_text()))?;
    let mut ask = AskTls::default();
    for (key, value) in query {
        match key.as_str() {
            "name" => ask.name = Some(value),
            other => return Err(wrong(format!("unknown parameter `{other}`")).into()),
        }
    }
    Ok(as_json(&call(shared, move |control| Ok(control.tls(&ask))).await?))
}

async fn stats(State(shared): Process) -> Result<Response, Failure> {
    Ok(as_json(&call(shared, |control| Ok(control.stats())).await?))
}

async fn prometheus(State(shared): Process) -> Result<Response, Failure> {
    let stats = call(shared, |control| Ok(control.stats())).await?;
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], metrics::text(&stats)).into_response())
}

async fn purge(State(shared): Process, request: Request) -> Result<Response, Failure> {
    let purge: Purge =
        read(request, r#"{"urls": ["https://example.org/a"]}, {"tags": ["news"]} or {"all": true}"#).await?;
    let named = !purge.urls.is_empty() || !purge.tags.is_empty();
    if named == purge.all {
        let what = if named { "`all` cannot be combined with `urls` or `tags`" } else { "nothing is named" };
        return Err(Refusal::invalid(what).instead("name `urls`, `tags` or both; or set `all`: true").into());
    }
    Ok(as_json(&call(shared, move |control| control.purge(&purge)).await?))
}

async fn shared_tier(State(shared): Process, request: Request) -> Result<Response, Failure> {
    let ask: AskShared = read(request, r#"{"url": "https://example.org/a"}"#).await?;
    Ok(as_json(&call(shared, move |control| control.shared(&ask)).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ban {
    expr: String,
}

async fn ban(State(shared): Process, request: Request) -> Result<Response, Failure> {
    let ban: Ban = read(request, r#"{"expr": "status == 404 && path ~ \"^/news/\""}"#).await?;
    Ok(as_json(&call(shared, move |control| control.ban(&ban.expr)).await?))
}

async fn reload(State(shared): Process) -> Result<Response, Failure> {
    Ok(as_json(&call(shared, |control| control.reload()).await?))
}

async fn upgrade(State(shared): Process, body: Bytes) -> Result<Response, Failure> {
    let order: Upgrade = if body.is_empty() { Upgrade::default() } else { parse(&body, "{}")? };
    Ok(as_json(&call(shared, move |control| control.upgrade(&order)).await?))
}

async fn pools(
    State(shared): Process,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Response, Failure> {
    let wrong = |what: String| {
        Refusal::invalid(what).at("query").instead(
            "`pool=NAME`, again for each pool; `classes=N`: so many classes; `class=NAME`, again for each class",
        )
    };
    let Query(query) = query.map_err(|rejection| wrong(rejection.body_text()))?;
    let mut ask = AskPools::default();
    for (name, value) in query {
        match name.as_str() {
            "pool" => ask.names.push(value),
            "class" => ask.class.push(value),
            "classes" => {
                let number = value.parse();
                ask.classes = number.map_err(|_| wrong(format!("`classes` is not a number: {value:?}")))?;
            }
            other => return Err(wrong(format!("unknown parameter `{other}`")).into()),
        }
    }
    Ok(as_json(&call(shared, move |control| control.pools(&ask)).await?))
}

async fn add_backend(State(shared): Process, request: Request) -> Result<Response, Failure> {
    let order = read(request, r#"{"pool": "app", "backend": "http://10.0.0.1:8000", "weight": 1}"#).await?;
    Ok(as_json(&call(shared, move |control| control.add_backend(&order)).await?))
}

async fn remove_backend(State(shared): Process, request: Request) -> Result<Response, Failure> {
    let order = read(request, r#"{"pool": "app", "backend": "http://10.0.0.1:8000"}"#).await?;
    Ok(as_json(&call(shared, move |control| control.remove_backend(&order)).await?))
}

async fn drain_backend(State(shared): Process, request: Request) -> Result<Response, Failure> {
    let order = read(request, r#"{"pool": "app", "backend": "http://10.0.0.1:8000", "undo": false}"#).await?;
    Ok(as_json(&call(shared, move |control| control.drain_backend(&order)).await?))
}

/// Reads a JSON body, regardless of its `Content-Type`.
async fn read<T: DeserializeOwned>(request: Request, example: &str) -> Result<T, Failure> {
    let body = Bytes::from_request(request, &()).await.map_err(|rejection| {
        let status = rejection.status();
        let refusal = Refusal::invalid(rejection.body_text()).at("body");
        match status {
            StatusCode::PAYLOAD_TOO_LARGE => {
                Failure(status, refusal.instead("send the list in several requests"))
            }
            _ => Failure(status, refusal),
        }
    })?;
    parse(&body, example)
}

fn parse<T: DeserializeOwned>(body: &[u8], example: &str) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(|error| {
        let place = format!("body, line {}, column {}", error.line(), error.column());
        Refusal::invalid(error.to_string()).at(place).instead(format!("send such as {example}")).into()
    })
}

async fn log(
    State(shared): Process,
    ConnectInfo(caller): ConnectInfo<Caller>,
    Extension(grant): Extension<Grant>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Response, Failure> {
    let wrong = |what: String| {
        Refusal::invalid(what).at("query").instead(
            "`limit=N`: at most N entries a second; `host`, `path` and `backend`, where * stands for anything, `status` and \
             `outcome`: such entries alone, each again for an alternative",
        )
    };
    let Query(query) = query.map_err(|rejection| wrong(rejection.body_text()))?;
    let (mut limit, mut filter) = (u64::MAX, Filter::default());
    for (name, value) in query {
        match name.as_str() {
            "limit" => {
                limit = value.parse().map_err(|_| wrong(format!("`limit` is not a number: {value:?}")))?;
            }
            name if Filter::NAMES.contains(&name) => filter.add(name, &value).map_err(wrong)?,
            other => return Err(wrong(format!("unknown parameter `{other}`")).into()),
        }
    }
    let viewer = grant.viewer();
    let subscription = call(shared, move |control| {
        let full =
            || Refusal::failed("too many clients watch the log").instead("wait until one of them has ended");
        control.subscribe(viewer, limit, filter).ok_or_else(full)
    });
    let subscription = subscription.await?;
    let lines = LogStream::new(subscription, grant, caller.let_in());
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], Body::new(lines)).into_response())
}

/// The known paths and methods.
const KNOWN_CALLS: &str = "GET /status, /stats, /metrics, /pools or /log; POST /purge, /shared, /ban, /reload, /upgrade, /pool/add, /pool/remove or \
                     /pool/drain";

async fn unknown() -> Failure {
    let refusal = Refusal::invalid("there is nothing at this address").instead(KNOWN_CALLS);
    Failure(StatusCode::NOT_FOUND, refusal)
}

async fn wrong_method() -> Failure {
    let refusal = Refusal::invalid("this method is not supported here").instead(KNOWN_CALLS);
    Failure(StatusCode::METHOD_NOT_ALLOWED, refusal)
}

/// The most bytes of lines that are sent in one piece.
const PIECE_BYTES: usize = 16 * 1024;

/// The interval, in seconds, of empty lines on an idle stream, by which both ends detect a lost peer.
const HEARTBEAT_SECONDS: u32 = 10;

/// Entries as they arrive, with occasional lines that give the number skipped. The stream ends within a second after a
/// reload revokes the caller's token.
struct LogStream {
    subscription: Subscription,
    grant: Grant,
    seconds: Interval,
    silent: u32,
    reported: u64,
    /// While it lasts, the connection does not give way to others.
    _work: Work,
}

impl LogStream {
    fn new(subscription: Subscription, grant: Grant, work: Work) -> LogStream {
        let mut seconds = interval(Duration::from_secs(1));
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        LogStream { subscription, grant, seconds, silent: 0, reported: 0, _work: work }
    }
}

impl hyper::body::Body for LogStream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if !self.grant.is_valid() {
            return Poll::Ready(None);
        }
        let mut piece = BytesMut::new();
        while piece.len() < PIECE_BYTES {
            match self.subscription.poll_next(context) {
                Poll::Ready(Some(line)) => piece.extend_from_slice(&line),
                Poll::Ready(None) if piece.is_empty() => return Poll::Ready(None),
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        while piece.is_empty() {
            ready!(self.seconds.poll_tick(context));
            if !self.grant.is_valid() {
                return Poll::Ready(None);
            }
            self.silent += 1;
            if self.silent >= HEARTBEAT_SECONDS {
                piece.extend_from_slice(b"\n");
            }
            if self.subscription.skipped() > self.reported {
                break;
            }
        }
        let skipped = self.subscription.skipped();
        if skipped > self.reported && (piece.is_empty() || self.seconds.poll_tick(context).is_ready()) {
            self.reported = skipped;
            piece.extend_from_slice(format!("{{\"skipped\":{skipped}}}\n").as_bytes());
        }
        self.silent = 0;
        Poll::Ready(Some(Ok(Frame::data(piece.freeze()))))
    }
}
