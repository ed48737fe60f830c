//! A small HTTP client for the balancer's own requests to backends: checks and résumés.

use crate::Fault;
use crate::client::{self, HeadError};
use crate::fastcgi::{Application, Next, Output, encode as encode_cgi};
use crate::origin::tls::OriginTls;
use crate::origin::{Dialled, Origins};
use crate::request::requester::Requester;
use sandarac_balance::Address;
use sandarac_message::target::Scheme;
use sandarac_message::{Fields, FieldsBuf, Method, Name};
use sandarac_net::{
    BodyStep, Conn, Framer, Held, Holder, Lease, OriginConnection, ReceivedHead, StreamFault, within,
};
use sandarac_wire::fastcgi::head::Rewritten;
use sandarac_wire::fastcgi::{EndStatus, Refusal, RequestId, stdin_end};
use sandarac_wire::h1::response::Response;
use sandarac_wire::h1::{BodyFraming, Limits, encode};
use sandarac_wire::h2;
use sandarac_wire::h2::head::encode::RequestLine;
use sandarac_wire::h2::hpack::encode::Strings;
use std::future::poll_fn;
use std::io::{ErrorKind, IoSlice};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::Duration;

/// What a response head may hold.
const LIMITS: Limits = Limits { head: 16 << 10, fields: 100, target: 0 };

/// A client whose connections serve one request each, so that a check also tests connecting.
#[derive(Clone)]
pub(super) struct UpkeepClient {
    origins: Rc<Origins>,
    /// The holder of the bodies.
    holder: Holder,
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

/// The copies of a body that reading it takes.
const COPIES: usize = 2;

/// The response.
#[derive(Debug)]
pub(super) struct WholeResponse {
    pub(super) status: u16,
    /// The body; `None` if it was too long, or found no room.
    pub(super) body: Option<Vec<u8>>,
    /// Whether it found no room.
    pub(super) lacked_room: bool,
    /// The memory of the body, until it was read.
    held: Lease,
}

impl UpkeepClient {
    pub(super) fn new(origins: Rc<Origins>, holder: Holder) -> UpkeepClient {
        UpkeepClient { origins, holder }
    }

    /// Sends a GET to an application over FastCGI and receives the head of the response. The path need not be
    /// that of a script.
    pub(super) async fn get_status(
        &self,
        question: &Question<'_>,
        application: &Application,
    ) -> Result<u16, Fault> {
        let asked = self.ask_application(question, application);
        within(question.patience, asked).await.unwrap_or(Err(Fault::ResponseLate))
    }

    async fn ask_application(
        &self,
        question: &Question<'_>,
        application: &Application,
    ) -> Result<u16, Fault> {
        let (Dialled::Http1(mut conn), _) = self.origins.dial(question.address, None, LIMITS).await? else {
            return Err(Fault::ConnectFailed(ErrorKind::Unsupported));
        };
        let host = question.host.unwrap_or(question.address.authority()).as_bytes();
        let requester = Requester {
            ip: None,
            port: None,
            visitor: None,
            trusted: false,
            scheme: Scheme::Http,
            host,
            tls: None,
            certificate_forward: None,
        };
        let target = question.target.as_bytes();
        let cgi = application.own_request(target, &requester);
        let mut fields = FieldsBuf::new();
        fields
            .add(Name::Host, host)
            .and_then(|()| fields.push(b"User-Agent", user_agent()))
            .map_err(|_| Fault::HeadTooLarge)?;
        let none = Fields::default();
        let (id, fields) = (RequestId::FIRST, [fields.view(), none]);
        let mut request = encode_cgi(&cgi, b"GET", target, fields, BodyFraming::None, (id, false))
            .map_err(|_| Fault::HeadTooLarge)?;
        request.extend_from_slice(&stdin_end(id));
        let (mut sent, mut output) = (false, Output::new(id));
        poll_fn(|cx| {
            if !std::mem::replace(&mut sent, true) {
                conn.write(cx, &[IoSlice::new(&request)]).map_err(|_| Fault::NoResponse)?;
            }
            if conn.queued() > 0 && matches!(conn.poll_flush(cx), Poll::Ready(Err(_))) {
                return Poll::Ready(Err(Fault::NoResponse));
            }
            let (mut spans, mut memory) = (Vec::new(), Rewritten::default());
            loop {
                // What the application complains about is seen when it is used.
                match output.next(&mut conn, |_| {}).map_err(Fault::of_fastcgi)? {
                    Next::Ready => {
                        let head = output.head(&mut conn, &LIMITS, &mut spans, &mut memory, Method::Get);
                        if let Some(head) = head.map_err(Fault::of_fastcgi)? {
                            return Poll::Ready(Ok(head.response.head.status));
                        }
                    }
                    Next::End(EndStatus::Overloaded) => return Poll::Ready(Err(Fault::Overloaded)),
                    Next::End(_) => return Poll::Ready(Err(Fault::BadFastCgi(Refusal::NoHead))),
                    Next::More => match ready!(conn.poll_fill(cx)) {
                        Ok(1..) => {}
                        _ => return Poll::Ready(Err(Fault::NoResponse)),
                    },
                }
            }
        })
        .await
    }

    /// Sends a GET and receives the whole response.
    pub(super) async fn get(&self, question: &Question<'_>) -> Result<WholeResponse, Fault> {
        within(question.patience, self.ask(question)).await.unwrap_or(Err(Fault::ResponseLate))
    }

    async fn ask(&self, question: &Question<'_>) -> Result<WholeResponse, Fault> {
        let (dialled, _) = self.origins.dial(question.address, question.tls, LIMITS).await?;
        match dialled {
            Dialled::Http1(mut conn) => ask_http1(&mut conn, question, &self.holder).await,
            // The connection ends with the request.
            Dialled::Http2(connection) => ask_http2(&connection, question, &self.holder).await,
        }
    }
}

async fn ask_http1(
    conn: &mut Conn,
    question: &Question<'_>,
    holder: &Holder,
) -> Result<WholeResponse, Fault> {
    let mut request = Vec::with_capacity(256);
    let mut head = encode::Head::request(&mut request, b"GET", question.target.as_bytes());
    head.field(b"Host", question.host().as_bytes());
    head.field(b"User-Agent", user_agent());
    head.field(b"Connection", b"close");
    question.fields.iter().for_each(|(name, value)| head.field(name, value));
    head.finish();
    let read = |response: &Response<'_>| (response.head.status, Framer::of_response(response.framing));
    let (status, mut framer) = head_of(conn, &request, Method::Get, read).await?;
    let mut whole = WholeResponse::begun(status, holder);
    if matches!(framer, Framer::Length(length) if length > question.body as u64) {
        return Ok(WholeResponse { body: None, ..whole });
    }
    let take = |piece: &[u8]| whole.take(piece, question.body);
    client::body(conn, &mut framer, take).await.map_err(|_| Fault::ResponseBroken)?;
    Ok(whole)
}

async fn ask_http2(
    connection: &OriginConnection,
    question: &Question<'_>,
    holder: &Holder,
) -> Result<WholeResponse, Fault> {
    let mut stream = connection.reserve().ok_or(Fault::Http2(StreamFault::Refused))?;
    let line = RequestLine {
        method: b"GET",
        scheme: if question.address.is_tls() { b"https" } else { b"http" },
        authority: question.host().as_bytes(),
        path: question.target.as_bytes(),
        protocol: None,
    };
    let mut block = Vec::with_capacity(256);
    h2::head::encode::request(&mut block, &line, FieldsBuf::new().view(), Strings::Plain);
    h2::head::encode::field(&mut block, b"user-agent", user_agent());
    question.fields.iter().for_each(|(name, value)| h2::head::encode::field(&mut block, name, value));
    stream.begin(Method::Get, &block, true, false)?;
    let status = loop {
        if let ReceivedHead::Final(head) = poll_fn(|cx| stream.poll_head(cx)).await? {
            break head.status;
        }
    };
    let mut whole = WholeResponse::begun(status, holder);
    loop {
        match poll_fn(|cx| stream.poll_body(cx)).await.map_err(|_| Fault::ResponseBroken)? {
            BodyStep::Data(range) => {
                let flow = whole.take(stream.piece(&range), question.body);
                stream.consume(range.len());
                if flow.is_break() {
                    return Ok(whole);
                }
            }
            BodyStep::End(_) => return Ok(whole),
        }
    }
}

impl Question<'_> {
    fn host(&self) -> &str {
        self.host.unwrap_or(self.address.authority())
    }
}

impl WholeResponse {
    /// A response whose body has not arrived.
    fn begun(status: u16, holder: &Holder) -> WholeResponse {
        let held = holder.nothing(Held::Resumes);
        WholeResponse { status, body: Some(Vec::new()), lacked_room: false, held }
    }

    /// Adds a piece of the body, which may have `most` bytes, and has to find room.
    fn take(&mut self, piece: &[u8], most: usize) -> ControlFlow<()> {
        if let Some(bytes) = &mut self.body
            && bytes.len() + piece.len() <= most
        {
            if self.held.grow(COPIES * piece.len()) {
                bytes.extend_from_slice(piece);
                return ControlFlow::Continue(());
            }
            self.lacked_room = true;
        }
        self.body = None;
        ControlFlow::Break(())
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
