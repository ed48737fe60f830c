//! A CA that is honest, except where a test scripts it otherwise.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertificateSigningRequestParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateSigningRequestDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sandarac_acme::{ChallengeKind, Settings};
use sandarac_message::Timestamp;
use sandarac_message::civil::Civil;
use sandarac_test_support::TempDir;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::clock::FakeClock;
use crate::node::limits;

/// A request to the CA.
pub(crate) struct Call {
    /// What was asked: `directory`, `nonce`, `account`, `order`, `state`, `authorization`, `challenge`, `finalize`,
    /// `certificate` or `renewal`.
    pub(crate) endpoint: String,
    /// How often that was asked, from 1.
    pub(crate) count: usize,
    /// The payload.
    pub(crate) payload: Value,
    /// The URL of the CA, without a path.
    pub(crate) base: String,
}

/// A scripted answer.
pub(crate) enum Answer {
    /// A response with a status, fields and a body.
    Reply(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// Nothing, ever.
    Hang,
    /// A body without an end.
    Endless,
}

impl Answer {
    /// A response with 200 and JSON.
    pub(crate) fn json(value: &Value) -> Answer {
        Answer::Reply(200, Vec::new(), value.to_string().into_bytes())
    }

    /// A problem document.
    pub(crate) fn problem(status: u16, kind: &str, detail: &str) -> Answer {
        let kind = format!("urn:ietf:params:acme:error:{kind}");
        let body = json!({"type": kind, "detail": detail, "status": status});
        Answer::Reply(status, Vec::new(), body.to_string().into_bytes())
    }

    /// The same, with `Retry-After`.
    pub(crate) fn after(self, value: &str) -> Answer {
        match self {
            Answer::Reply(status, mut fields, body) => {
                fields.push(("retry-after", value.to_owned()));
                Answer::Reply(status, fields, body)
            }
            other => other,
        }
    }
}

type Script = Box<dyn FnMut(&Call) -> Option<Answer> + Send>;

/// The settings for `names` from `ca`, with the state below `dir`.
pub(crate) fn settings(ca: &Ca, dir: &TempDir, names: &[&str]) -> Settings {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    Settings {
        directory: ca.directory(),
        ca: Some(ca.root()),
        challenges: vec![ChallengeKind::Http01],
        limits: limits(),
        ..Settings::new(names, dir.join("state"))
    }
}

/// The CA, listening. It ends when dropped.
pub(crate) struct Ca {
    address: SocketAddr,
    dir: TempDir,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

struct Shared {
    base: String,
    clock: FakeClock,
    issuer: Authority,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    script: Option<Script>,
    counts: HashMap<String, usize>,
    nonces: usize,
    orders: Vec<Order>,
    /// The life of certificates, in days.
    days: u64,
    window: Option<(Timestamp, Timestamp)>,
}

struct Order {
    names: Vec<String>,
    valid: Vec<bool>,
    replaces: Option<String>,
    chain: Option<String>,
}

/// The key that signs certificates.
#[derive(Clone)]
pub(crate) struct Authority(Arc<Issuer<'static, KeyPair>>, String);

impl Authority {
    fn new() -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).expect("a root").pem();
        Authority(Arc::new(Issuer::new(params, key)), pem)
    }

    /// A certificate for a key of the CA's own.
    pub(crate) fn certify(&self, names: &[&str]) -> (String, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).expect("names");
        (params.signed_by(&key, &self.0).expect("a certificate").pem(), key)
    }

    /// The certificate that a request asks for, from the day of `start`.
    pub(crate) fn sign(&self, request: &[u8], names: Option<&[&str]>, start: Timestamp, days: u64) -> String {
        let request = CertificateSigningRequestParams::from_der(&CertificateSigningRequestDer::from(request));
        let mut request = request.expect("a request");
        let date = |time: Timestamp| {
            let Civil { year, month, day, .. } = Civil::of(time);
            rcgen::date_time_ymd(year as i32, month as u8, day as u8)
        };
        request.params.not_before = date(start);
        request.params.not_after = date(Timestamp::from_secs(start.as_secs() + days * 86_400));
        request.params.use_authority_key_identifier_extension = true;
        if let Some(names) = names {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            request.params.subject_alt_names =
                CertificateParams::new(names).expect("names").subject_alt_names;
        }
        format!("{}{}", request.signed_by(&self.0).expect("a certificate").pem(), self.1)
    }
}

impl Ca {
    /// A CA with certificates of 90 days, without ARI.
    pub(crate) fn new(clock: &FakeClock) -> Ca {
        let issuer = Authority::new();
        let (chain, key) = issuer.certify(&["127.0.0.1"]);
        let dir = TempDir::new();
        std::fs::write(dir.join("root.pem"), &issuer.1).expect("written");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Mutex::new(State { days: 90, ..State::default() });
        let shared =
            Arc::new(Shared { base: format!("https://{address}"), clock: clock.clone(), issuer, state });
        let (stop, stopped) = oneshot::channel();
        let serving = serve(listener, acceptor(&chain, &key), Arc::clone(&shared));
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! { () = serving => {}, _ = stopped => {} }
            });
        });
        Ca { address, dir, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// Answers requests by `script`, where that gives an answer.
    pub(crate) fn script(&self, script: impl FnMut(&Call) -> Option<Answer> + Send + 'static) {
        self.state().script = Some(Box::new(script));
    }

    /// Is honest from now on.
    pub(crate) fn reform(&self) {
        self.state().script = None;
    }

    /// Gives certificates of so many days.
    pub(crate) fn certifies_for_days(&self, days: u64) {
        self.state().days = days;
    }

    /// Offers ARI, with this window for every certificate.
    pub(crate) fn suggests(&self, start: Timestamp, end: Timestamp) {
        self.state().window = Some((start, end));
    }

    /// How often something was asked.
    pub(crate) fn count(&self, endpoint: &str) -> usize {
        self.state().counts.get(endpoint).copied().unwrap_or(0)
    }

    /// The certificates that the orders named as replaced.
    pub(crate) fn replaced(&self) -> Vec<Option<String>> {
        self.state().orders.iter().map(|order| order.replaces.clone()).collect()
    }

    /// Its signing key.
    pub(crate) fn authority(&self) -> Authority {
        self.shared.issuer.clone()
    }

    /// The URL of its directory.
    pub(crate) fn directory(&self) -> String {
        format!("https://{}/directory", self.address)
    }

    /// The file of its root.
    pub(crate) fn root(&self) -> PathBuf {
        self.dir.join("root.pem")
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.shared.state.lock().expect("no panic in the CA")
    }
}

impl Drop for Ca {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

fn acceptor(chain: &str, key: &KeyPair) -> TlsAcceptor {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).map(|der| der.expect("PEM")).collect();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a certificate with its key");
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, shared) = (acceptor.clone(), Arc::clone(&shared));
        // Without this, each response waits 40 ms for an acknowledgement.
        _ = stream.set_nodelay(true);
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(|request| respond(Arc::clone(&shared), request));
            _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn respond(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Text>, Infallible> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let payload = serde_json::from_slice::<Value>(&body).ok().and_then(|jose| {
        let text = URL_SAFE_NO_PAD.decode(jose["payload"].as_str()?).ok()?;
        serde_json::from_slice(&text).ok()
    });
    let (answer, nonce) = shared.answer(&method, &path, payload.unwrap_or_default());
    let (status, fields, body) = match answer {
        Answer::Reply(status, fields, body) => (status, fields, Text::Whole(Some(body.into()))),
        Answer::Endless => (200, Vec::new(), Text::Endless),
        Answer::Hang => std::future::pending().await,
    };
    let mut response = Response::builder().status(status).header("replay-nonce", nonce);
    for (name, value) in fields {
        response = response.header(name, value);
    }
    Ok(response.body(body).expect("fields that can be sent"))
}

impl Shared {
    fn answer(&self, method: &Method, path: &str, payload: Value) -> (Answer, String) {
        let mut state = self.state.lock().expect("no panic in the CA");
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let endpoint = parts[0].to_owned();
        let count = state.counts.entry(endpoint.clone()).or_default();
        *count += 1;
        let call = Call { endpoint, count: *count, payload, base: self.base.clone() };
        state.nonces += 1;
        let nonce = format!("nonce{}", state.nonces);
        let mut script = state.script.take();
        let scripted = script.as_mut().and_then(|script| script(&call));
        if state.script.is_none() {
            state.script = script;
        }
        let number = |at: usize| parts.get(at).and_then(|part| part.parse::<usize>().ok()).unwrap_or(0);
        let honest = || self.honest(&mut state, method, &call, number(1), number(2));
        (scripted.unwrap_or_else(honest), nonce)
    }

    fn honest(&self, state: &mut State, method: &Method, call: &Call, n: usize, i: usize) -> Answer {
        let base = &self.base;
        match call.endpoint.as_str() {
            "directory" => {
                let mut directory = json!({
                    "newNonce": format!("{base}/nonce"),
                    "newAccount": format!("{base}/account"),
                    "newOrder": format!("{base}/order"),
                    "meta": {"termsOfService": format!("{base}/terms")},
                });
                if state.window.is_some() {
                    directory["renewalInfo"] = json!(format!("{base}/renewal"));
                }
                Answer::json(&directory)
            }
            "nonce" if *method == Method::HEAD => Answer::Reply(200, Vec::new(), Vec::new()),
            "account" => {
                let fields = vec![("location", format!("{base}/account/1"))];
                Answer::Reply(201, fields, json!({"status": "valid"}).to_string().into_bytes())
            }
            "order" => {
                let names = call.payload["identifiers"].as_array().into_iter().flatten();
                let names: Vec<String> =
                    names.map(|name| name["value"].as_str().unwrap_or_default().to_owned()).collect();
                let replaces = call.payload["replaces"].as_str().map(str::to_owned);
                let valid = vec![false; names.len()];
                state.orders.push(Order { names, valid, replaces, chain: None });
                let n = state.orders.len() - 1;
                let fields = vec![("location", format!("{base}/state/{n}"))];
                Answer::Reply(201, fields, self.order(state, n).to_string().into_bytes())
            }
            "state" => Answer::json(&self.order(state, n)),
            "authorization" => {
                let order = &state.orders[n];
                let status = if order.valid[i] { "valid" } else { "pending" };
                let challenge = |kind: &str| {
                    let url = format!("{base}/challenge/{n}/{i}");
                    json!({"type": kind, "url": url, "token": format!("token-{n}-{i}"), "status": status})
                };
                Answer::json(&json!({
                    "identifier": {"type": "dns", "value": order.names[i]},
                    "status": status,
                    "challenges": [challenge("dns-01"), challenge("http-01"), challenge("tls-alpn-01")],
                }))
            }
            "challenge" => {
                state.orders[n].valid[i] = true;
                let url = format!("{base}/challenge/{n}/{i}");
                Answer::json(&json!({"type": "http-01", "url": url, "token": "t", "status": "valid"}))
            }
            "finalize" => {
                let request = call.payload["csr"].as_str().unwrap_or_default();
                let request = URL_SAFE_NO_PAD.decode(request).expect("a request in Base64url");
                state.orders[n].chain = Some(self.issuer.sign(&request, None, self.clock.now(), state.days));
                Answer::json(&self.order(state, n))
            }
            "certificate" => {
                Answer::Reply(200, Vec::new(), state.orders[n].chain.clone().unwrap_or_default().into_bytes())
            }
            "renewal" => {
                let (start, end) = state.window.expect("a window");
                let [start, end] = [start, end].map(|time| Civil::of(time).rfc3339().to_string());
                Answer::json(&json!({"suggestedWindow": {"start": start, "end": end}})).after("21600")
            }
            _ => Answer::problem(404, "malformed", "no such resource"),
        }
    }

    fn order(&self, state: &State, n: usize) -> Value {
        let (base, order) = (&self.base, &state.orders[n]);
        let status = match (&order.chain, order.valid.iter().all(|valid| *valid)) {
            (Some(_), _) => "valid",
            (None, true) => "ready",
            (None, false) => "pending",
        };
        let authorizations = (0..order.names.len()).map(|i| format!("{base}/authorization/{n}/{i}"));
        let mut value = json!({
            "status": status,
            "authorizations": authorizations.collect::<Vec<_>>(),
            "finalize": format!("{base}/finalize/{n}"),
        });
        if order.chain.is_some() {
            value["certificate"] = json!(format!("{base}/certificate/{n}"));
        }
        if let Some(replaces) = &order.replaces {
            value["replaces"] = json!(replaces);
        }
        value
    }
}

/// A body.
enum Text {
    Whole(Option<Bytes>),
    Endless,
}

impl Body for Text {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Text::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Text::Endless => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b' '; 4096]))))),
        }
    }
}
