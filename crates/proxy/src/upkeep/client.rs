//! A small HTTP client for the balancer's own requests to backends: checks and résumés.

use crate::Fault;
use crate::client::{self, HeadError};
use crate::origin::Origins;
use crate::origin_tls::OriginTls;
use sandarac_balance::Address;
use sandarac_message::Method;
use sandarac_net::{Conn, Framer, within};
use sandarac_wire::h1::response::Response;
use sandarac_wire::h1::{Limits, encode};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

/// What a response head may hold.
const LIMITS: Limits = Limits { head: 16 << 10, fields: 100, target: 0 };

/// A client whose connections serve one request each, so that a check also tests connecting.
#[derive(Clone)]
pub(super) struct UpkeepClient {
    origins: Rc<Origins>,
}

/// A request of the balancer's own.
pub(super) struct Question<'a> {
    /// The backend.
    pub(super) address: &'a Address,
    /// TLS to it, if its address asks for that.
    pub(super) tls: Option<&'a OriginTls>,
    /// The value of Host; by default the backend's own.
    pub(super) host: Option<&'a str>,
    pub(super) target: &'a str,
    /// Lines of the head beside Host, User-Agent and Connection.
    pub(super) fields: &'a [(&'a [u8], &'a [u8])],
    /// The most bytes of a body. A longer body is dropped.
    pub(super) body: usize,
    /// The timeout for everything.
    pub(super) patience: Duration,
}

/// The response.
#[derive(Debug)]
pub(super) struct WholeResponse {
    pub(super) status: u16,
    /// The body; `None` if it was too long.
    pub(super) body: Option<Vec<u8>>,
}

impl UpkeepClient {
    pub(super) fn new(origins: Rc<Origins>) -> UpkeepClient {
        UpkeepClient { origins }
    }

    /// Sends a GET and receives the whole response.
    pub(super) async fn get(&self, question: &Question<'_>) -> Result<WholeResponse, Fault> {
        within(question.patience, self.ask(question)).await.unwrap_or(Err(Fault::ResponseLate))
    }

    async fn ask(&self, question: &Question<'_>) -> Result<WholeResponse, Fault> {
        let (mut conn, _) = self.origins.connect(question.address, question.tls, question.patience).await?;
        let mut request = Vec::with_capacity(256);
        let mut head = encode::Head::request(&mut request, b"GET", question.target.as_bytes());
        head.field(b"Host", question.host.unwrap_or(question.address.authority()).as_bytes());
        head.field(b"User-Agent", user_agent());
        head.field(b"Connection", b"close");
        question.fields.iter().for_each(|(name, value)| head.field(name, value));
        head.finish();
        let read = |response: &Response<'_>| (response.head.status, Framer::of_response(response.framing));
        let (status, mut framer) = head_of(&mut conn, &request, Method::Get, read).await?;
        if matches!(framer, Framer::Length(length) if length > question.body as u64) {
            return Ok(WholeResponse { status, body: None });
        }
        let mut kept = Some(Vec::new());
        let take = |piece: &[u8]| match &mut kept {
            Some(bytes) if bytes.len() + piece.len() <= question.body => {
                bytes.extend_from_slice(piece);
                ControlFlow::Continue(())
            }
            _ => {
                kept = None;
                ControlFlow::Break(())
            }
        };
        client::body(&mut conn, &mut framer, take).await.map_err(|_| Fault::ResponseBroken)?;
        Ok(WholeResponse { status, body: kept })
    }
}

/// The User-Agent of the balancer's own requests.
pub(crate) fn user_agent() -> &'static [u8] {
    concat!("sandarac/", env!("CARGO_PKG_VERSION")).as_bytes()
}

/// Sends a request with `method`, which has no body, and receives the head of the response. Returns the
/// result of `read`.
pub(crate) async fn head_of<T>(
    conn: &mut Conn,
    request: &[u8],
    method: Method,
    read: impl Fn(&Response<'_>) -> T,
) -> Result<T, Fault> {
    client::head(conn, request, method, &LIMITS, read).await.map_err(|error| match error {
        HeadError::Io(_) | HeadError::Closed => Fault::NoResponse,
        HeadError::Refused(refusal) => Fault::BadResponse(refusal),
        HeadError::Switched => Fault::UnaskedSwitch,
    })
}
