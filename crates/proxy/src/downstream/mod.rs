//! The client's side of an exchange: the request body that it sends, and the response that it receives.

mod gathered;
mod request_body;
pub(crate) mod sending;
pub(crate) mod upload;

use self::request_body::RequestBody;
use crate::Fault;
use crate::core::Core;
use crate::downstream::sending::{SendEnd, Sending};
use sandarac_balance::BackendId;
use sandarac_message::Fields;
use sandarac_net::{Body, Client, Response};
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use std::time::Instant;

/// The client of an exchange.
pub(crate) struct Downstream<'a> {
    pub(crate) client: &'a mut (dyn Client + 'a),
    pub(crate) body: RequestBody,
    pub(crate) answer: AnswerBegun,
    pub(crate) terms: ClientTerms,
    /// The backend that was tried last.
    pub(crate) asked: Option<BackendId>,
}

/// The beginning of the response.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AnswerBegun {
    /// When it was.
    pub(crate) at: Option<Instant>,
    /// Whether the client had gone by then. Determined only if the exchange is logged, because it takes a
    /// system call.
    pub(crate) left: bool,
    /// Whether the exchange is logged.
    pub(crate) is_logged: bool,
}

/// How a pool has its clients treated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientTerms {
    /// Whether a client that closes its connection counts as gone.
    pub(crate) closed_is_gone: bool,
    /// The most bytes that are read ahead of the client.
    pub(crate) read_ahead: u64,
}

impl<'a> Downstream<'a> {
    pub(crate) fn new(client: &'a mut (dyn Client + 'a), body_limit: u64, is_logged: bool) -> Downstream<'a> {
        Downstream {
            body: RequestBody::new(client, body_limit),
            client,
            answer: AnswerBegun { is_logged, ..AnswerBegun::default() },
            terms: ClientTerms { closed_is_gone: true, read_ahead: 0 },
            asked: None,
        }
    }

    /// Checks what is known of the body before any of it is forwarded: its length or, in chunks, the part
    /// received.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.body.check(self.client)
    }

    /// Ready when the client has left: it has reset its connection, or closed it if that means the same.
    pub(crate) fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.client.poll_left(cx, self.terms.closed_is_gone)
    }

    /// Begins the response. It is sent even to a client that has left: one that only closed its side may
    /// still read.
    pub(crate) fn begin(&mut self, response: Response<'_>) {
        self.begin_response();
        self.client.begin(response);
    }

    /// Notes that the response begins.
    pub(crate) fn begin_response(&mut self) {
        let AnswerBegun { at, left, is_logged } = &mut self.answer;
        if at.is_none() {
            *left = *is_logged && self.terms.closed_is_gone && self.client.has_closed();
            *at = Some(Instant::now());
        }
        self.body.is_sent_once();
        // The rest of the time for the head does not count for the body.
        self.client.timer().clear();
    }

    /// Forwards an interim response.
    pub(crate) fn interim(&mut self, cx: &mut Context<'_>, status: u16, reason: &[u8], fields: Fields<'_>) {
        self.client.interim(cx, status, reason, fields);
    }

    /// Sends a body to its end, and ends the response. Returns the number of body bytes sent.
    pub(crate) async fn send(&mut self, core: &Core, body: Option<impl Body>) -> (u64, SendEnd) {
        let mut sending = Sending::new(body);
        let ended = poll_fn(|cx| sending.poll(cx, self.client, core, self.terms.read_ahead)).await;
        (sending.bytes, ended.unwrap_or_else(SendEnd::ClientGone))
    }

    /// The same for a body whose pieces are work for others: it ends when the client has broken off.
    pub(crate) async fn send_attended(&mut self, core: &Core, body: Option<impl Body>) -> (u64, SendEnd) {
        let mut sending = Sending::new(body);
        let ended = poll_fn(|cx| match sending.poll(cx, self.client, core, self.terms.read_ahead) {
            // One that only closed its side may still read.
            Poll::Pending if self.client.poll_left(cx, false).is_ready() => {
                Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
            }
            ended => ended,
        });
        let ended = ended.await;
        (sending.bytes, ended.unwrap_or_else(SendEnd::ClientGone))
    }
}
