//! A small HTTP client for what the balancer asks of backends in its own name: checks and résumés.

use crate::Fault;
use crate::origin::Origins;
use sandarac_balance::Address;
use sandarac_message::Method;
use sandarac_net::{BodyStep, Conn, Framer, within};
use sandarac_wire::h1::response::{self, Kind, Response};
use sandarac_wire::h1::{Limits, Parsed, encode};
use std::future::poll_fn;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// What a response head may hold.
const LIMITS: Limits = Limits { head: 16 << 10, fields: 100, target: 0 };

/// A client whose connections serve one request each, so that a check also finds out whether one can be made.
#[derive(Clone)]
pub(super) struct Client {
    origins: Rc<Origins>,
}

/// What is asked for.
pub(super) struct Question<'a> {
    /// Whom.
    pub(super) address: &'a Address,
    /// The value of Host; the backend's own where it is `None`.
    pub(super) host: Option<&'a str>,
    pub(super) target: &'a str,
    /// Lines of the head beside Host, User-Agent and Connection.
    pub(super) fields: &'a [(&'a [u8], &'a [u8])],
    /// The most bytes of a body; of a longer one none is kept.
    pub(super) body: usize,
    /// How long all of it may take.
    pub(super) patience: Duration,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// The body, or `None` where it was too long.
    pub(super) body: Option<Vec<u8>>,
}

impl Client {
    pub(super) fn new(origins: Rc<Origins>) -> Client {
        Client { origins }
    }

    /// Sends a GET and receives the whole response.
    pub(super) async fn get(&self, question: &Question<'_>) -> Result<Answer, Fault> {
        within(question.patience, self.ask(question)).await.unwrap_or(Err(Fault::ResponseLate))
    }

    async fn ask(&self, question: &Question<'_>) -> Result<Answer, Fault> {
        let (mut conn, _) = self.origins.connect(question.address, question.patience).await?;
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
            return Ok(Answer { status, body: None });
        }
        let mut body = Some(Vec::new());
        poll_fn(|cx| {
            loop {
                match std::task::ready!(framer.poll_step(&mut conn, cx)) {
                    Ok(BodyStep::Data(range)) => {
                        if let Some(kept) = &mut body {
                            if kept.len() + range.len() > question.body {
                                body = None;
                                return Poll::Ready(Ok(()));
                            }
                            kept.extend_from_slice(&conn.data()[range.clone()]);
                        }
                        conn.consume(range.end);
                    }
                    Ok(BodyStep::End(_)) => return Poll::Ready(Ok(())),
                    Err(_) => return Poll::Ready(Err(Fault::ResponseBroken)),
                }
            }
        })
        .await?;
        Ok(Answer { status, body })
    }
}

/// What the balancer calls itself where it asks in its own name.
pub(crate) fn user_agent() -> &'static [u8] {
    concat!("sandarac/", env!("CARGO_PKG_VERSION")).as_bytes()
}

/// Sends a request with `method`, which has no body, and receives the head of the response; gives what `read` makes of it.
pub(crate) async fn head_of<T>(
    conn: &mut Conn,
    request: &[u8],
    method: Method,
    read: impl Fn(&Response<'_>) -> T,
) -> Result<T, Fault> {
    let mut sent = false;
    poll_fn(|cx| {
        if !std::mem::replace(&mut sent, true) && conn.write(cx, &[IoSlice::new(request)]).is_err() {
            return Poll::Ready(Err(Fault::NoResponse));
        }
        if conn.queued() > 0 && matches!(conn.poll_flush(cx), Poll::Ready(Err(_))) {
            return Poll::Ready(Err(Fault::NoResponse));
        }
        poll_head(cx, conn, method, &read)
    })
    .await
}

/// Receives a head that is no interim one, the answer to a request with `method`; gives what `read` makes of it.
fn poll_head<T>(
    cx: &mut Context<'_>,
    conn: &mut Conn,
    method: Method,
    read: impl Fn(&Response<'_>) -> T,
) -> Poll<Result<T, Fault>> {
    let (mut spans, mut anew) = (Vec::new(), Vec::new());
    loop {
        if !conn.data().is_empty() {
            let parsed = response::parse_or_repair(conn.data(), &LIMITS, &mut spans, &mut anew, method);
            match parsed.map_err(Fault::BadResponse)? {
                Parsed::Partial => {}
                Parsed::Complete(head) => {
                    let head_len = head.head_len;
                    match head.kind {
                        Kind::Final => {
                            let done = read(&head);
                            conn.consume(head_len);
                            return Poll::Ready(Ok(done));
                        }
                        Kind::Interim => {
                            conn.consume(head_len);
                            continue;
                        }
                        Kind::Switching | Kind::Tunnel => return Poll::Ready(Err(Fault::UnaskedSwitch)),
                    }
                }
            }
        }
        match std::task::ready!(conn.poll_fill(cx)) {
            Ok(0) | Err(_) => return Poll::Ready(Err(Fault::NoResponse)),
            Ok(_) => {}
        }
    }
}
