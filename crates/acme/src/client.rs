//! The HTTP client for the CA: one connection for each request, with a limit on everything that the CA could prolong.
//!
//! instant-acme's own client has no limits, and it panics on a directory whose URLs are not URLs and on a
//! `Retry-After` that overflows. Here, responses are checked before instant-acme reads them.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue, LOCATION, RETRY_AFTER, USER_AGENT};
use hyper::http::response::Parts;
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, HttpClient};
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use sandarac_message::{Timestamp, date};
use serde::Deserialize;
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::fault::{Fault, quoted};
use crate::settings::{Limits, is_https};

/// The time for a connection to one address, so that an address that does not answer leaves time for the next.
const CONNECT: Duration = Duration::from_secs(8);

/// The most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 4;

/// The longest head of a response, in bytes.
const MAX_HEAD: usize = 64 << 10;

/// The longest `Retry-After` that is passed on. More would overflow the arithmetic of times.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30 * 24 * 3600);

/// When the renewal window is asked for again if the CA does not say (RFC 9773 §4.3.3).
const RENEWAL_INFO_AFTER: Duration = Duration::from_secs(6 * 3600);

/// A source of the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The client. Clones share what was heard.
#[derive(Clone)]
pub(crate) struct CaClient(Arc<Inner>);

struct Inner {
    tls: TlsConnector,
    directory: String,
    limits: Limits,
    clock: Clock,
    heard: Mutex<Heard>,
}

/// What responses said beside what instant-acme passes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    /// The URL of the last request.
    pub(crate) url: String,
    /// The `Retry-After` of the last response.
    pub(crate) retry_after: Option<Duration>,
    /// From the directory.
    pub(crate) meta: Meta,
    /// Whether the CA offers ARI.
    pub(crate) offers_renewal_info: bool,
}

/// The `meta` object of a directory (RFC 8555 §9.7.6).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Meta {
    pub(crate) terms_of_service: Option<String>,
    pub(crate) external_account_required: bool,
}

/// The directory, as far as it is checked here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Directory {
    new_nonce: String,
    new_account: String,
    new_order: String,
    renewal_info: Option<String>,
    #[serde(default)]
    meta: Meta,
}

/// The roots that the CA's server is verified with.
#[derive(Clone)]
pub(crate) struct Roots(Arc<RootCertStore>);

impl Roots {
    /// Those of a PEM file, or of the system.
    pub(crate) fn load(file: Option<&Path>) -> Result<Roots, Fault> {
        let mut roots = RootCertStore::empty();
        if let Some(path) = file {
            let bad = |why: String| Fault::BadSetting(format!("acme: ca {}: {why}", path.display()));
            let text = std::fs::read(path).map_err(|error| Fault::reading(path, &error))?;
            for certificate in CertificateDer::pem_slice_iter(&text) {
                let certificate = certificate.map_err(|error| bad(error.to_string()))?;
                roots.add(certificate).map_err(|error| bad(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(bad("no certificate in PEM".to_owned()));
            }
        } else {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                let why = found.errors.first().map_or("none found".to_owned(), ToString::to_string);
                return Err(Fault::NoRoots(why));
            }
        }
        Ok(Roots(Arc::new(roots)))
    }
}

impl CaClient {
    /// A client for the CA whose directory is at `directory`.
    pub(crate) fn new(directory: &str, roots: &Roots, limits: Limits, clock: Clock) -> CaClient {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider supports the default versions")
            .with_root_certificates(Arc::clone(&roots.0))
            .with_no_client_auth();
        let tls = TlsConnector::from(Arc::new(config));
        let directory = directory.to_owned();
        CaClient(Arc::new(Inner { tls, directory, limits, clock, heard: Mutex::default() }))
    }

    pub(crate) fn heard(&self) -> Heard {
        self.0.heard.lock().clone()
    }
}

impl HttpClient for CaClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, instant_acme::Error>> + Send>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let url = request.uri().to_string();
            {
                let mut heard = inner.heard.lock();
                heard.url.clone_from(&url);
                heard.retry_after = None;
            }
            let limit = inner.limits.request;
            let result = match timeout(limit, inner.exchange(request, &url)).await {
                Ok(result) => result,
                Err(_) => Err(Fault::RequestTimedOut { url, limit }),
            };
            result.map_err(|fault| instant_acme::Error::Other(Box::new(fault)))
        })
    }
}

impl Inner {
    async fn exchange(
        &self,
        request: Request<BodyWrapper<Bytes>>,
        url: &str,
    ) -> Result<BytesResponse, Fault> {
        let is_get = request.method() == Method::GET;
        let (mut parts, body) = self.send(request, url).await?;
        let retry_after = self.retry_after(&parts);
        self.heard.lock().retry_after = retry_after;
        parts.headers.remove(RETRY_AFTER);
        if let Some(wait) = retry_after.or(is_get.then_some(RENEWAL_INFO_AFTER)) {
            parts.headers.insert(RETRY_AFTER, HeaderValue::from(wait.as_secs()));
        }
        self.check(&parts, &body, url)?;
        if url == self.directory && parts.status.is_success() {
            self.read_directory(&body, url)?;
        }
        Ok(BytesResponse { parts, body: Box::new(body) })
    }

    async fn send(
        &self,
        mut request: Request<BodyWrapper<Bytes>>,
        url: &str,
    ) -> Result<(Parts, Bytes), Fault> {
        let unreachable = |why: String| Fault::Unreachable { url: quoted(url), why };
        let uri = is_https(url).map_err(|_| Fault::NotHttps(quoted(url)))?;
        let authority = uri.authority().expect("a URL of https has one").as_str();
        if authority.contains('@') {
            return Err(Fault::NotHttps(quoted(url)));
        }
        let host = HeaderValue::from_str(authority).map_err(|_| Fault::NotHttps(quoted(url)))?;
        request.headers_mut().insert(HOST, host);
        request
            .headers_mut()
            .insert(USER_AGENT, HeaderValue::from_static(concat!("sandarac/", env!("CARGO_PKG_VERSION"))));
        *request.uri_mut() = origin_form(&uri);

        let stream = self.connect(&uri).await.map_err(unreachable)?;
        let handshake = http1::Builder::new().max_buf_size(MAX_HEAD).handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| unreachable(error.to_string()))?;
        let _driver = AbortOnDrop(tokio::spawn(connection));
        let broken = |error: &dyn std::error::Error| Fault::BadResponse {
            url: quoted(url),
            why: quoted(&full(error)),
        };
        let response: Response<Incoming> =
            sender.send_request(request).await.map_err(|error| broken(&error))?;
        let (parts, body) = response.into_parts();
        let limit = self.limits.response;
        match Limited::new(body, limit).collect().await {
            Ok(body) => Ok((parts, body.to_bytes())),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                Err(Fault::ResponseTooLarge { url: quoted(url), limit })
            }
            Err(error) => Err(broken(error.as_ref())),
        }
    }

    async fn connect(&self, uri: &Uri) -> Result<tokio_rustls::client::TlsStream<TcpStream>, String> {
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let addresses = lookup_host((host, uri.port_u16().unwrap_or(443))).await;
        let mut failure = "the name has no address".to_owned();
        for address in addresses.map_err(|error| error.to_string())?.take(MAX_ADDRESSES) {
            let stream = match timeout(CONNECT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => {
                    failure = format!("{address}: {error}");
                    continue;
                }
                Err(_) => {
                    failure = format!("{address} does not answer");
                    continue;
                }
            };
            _ = stream.set_nodelay(true);
            // A server that was reached and cannot be verified must not be replaced by another.
            let tls = self.tls.connect(name, stream).await;
            return tls.map_err(|error| format!("TLS with {address}: {error}"));
        }
        Err(failure)
    }

    /// Refuses what instant-acme would misread.
    fn check(&self, parts: &Parts, body: &Bytes, url: &str) -> Result<(), Fault> {
        let status = parts.status;
        let bad = |why: String| Err(Fault::BadResponse { url: quoted(url), why });
        if status.is_redirection() {
            let to = parts.headers.get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
            return bad(format!("status {} leads to {}", status.as_u16(), quoted(to)));
        }
        if !status.is_success() && serde_json::from_slice::<instant_acme::Problem>(body).is_err() {
            let text = String::from_utf8_lossy(&body[..body.len().min(200)]);
            return bad(format!("status {} with {:?}", status.as_u16(), quoted(text.trim())));
        }
        Ok(())
    }

    fn read_directory(&self, body: &Bytes, url: &str) -> Result<(), Fault> {
        let bad = |why: String| Fault::BadResponse { url: quoted(url), why };
        let directory: Directory = serde_json::from_slice(body)
            .map_err(|error| bad(format!("the directory: {}", quoted(&error.to_string()))))?;
        let Directory { new_nonce, new_account, new_order, renewal_info, meta } = directory;
        for url in [&new_nonce, &new_account, &new_order].into_iter().chain(&renewal_info) {
            is_https(url).map_err(|_| Fault::NotHttps(quoted(url)))?;
        }
        let mut heard = self.heard.lock();
        heard.offers_renewal_info = renewal_info.is_some();
        heard.meta = meta;
        Ok(())
    }

    /// The `Retry-After` of a response (RFC 9110 §10.2.3), at most [`MAX_RETRY_AFTER`].
    fn retry_after(&self, parts: &Parts) -> Option<Duration> {
        let value = parts.headers.get(RETRY_AFTER)?.as_bytes().trim_ascii();
        let now = (self.clock)();
        let wait = if !value.is_empty() && value.iter().all(u8::is_ascii_digit) {
            let secs = std::str::from_utf8(value).ok()?.parse().unwrap_or(u64::MAX);
            Duration::from_secs(secs)
        } else {
            date::parse(value, now)?.since(now)
        };
        Some(wait.min(MAX_RETRY_AFTER))
    }
}

/// A task that ends with its owner.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The target of a request on a connection to its origin.
fn origin_form(uri: &Uri) -> Uri {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    path.parse().expect("the path of a URL is a target")
}

/// An error with its causes.
fn full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
