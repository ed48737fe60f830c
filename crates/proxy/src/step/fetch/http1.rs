//! HTTP/1.1 to an origin: encodes requests, reads response heads and bodies, and keeps the connection if it
//! can serve another request.

use super::origin_head::{OriginHead, Seen};
use super::origin_request::OriginRequest;
use super::response_fields::{of_final, of_switched};
use crate::Fault;
use crate::origin::{Origins, Provenance};
use crate::report::tls_fault::TlsFault;
use crate::trailers::{TrailerRule, end_request};
use sandarac_balance::Address;
use sandarac_message::{FieldsBuf, Method, Name, ResponseHeadBuf, Span};
use sandarac_net::{BodyError, BodyStep, Conn, Duplex, Framer};
use sandarac_wire::h1::response::{self, Kind, Response};
use sandarac_wire::h1::{BodyFraming, Limits, Parsed, encode};
use std::io::{self, IoSlice};
use std::ops::Range;
use std::task::{Context, Poll, ready};

/// Room for the additions to a request head: the framing of its body, and connection fields.
const ADDED_TO_REQUEST: usize = 128;

/// A connection that speaks HTTP/1.1.
pub(super) struct Http1 {
    conn: Box<Conn>,
    provenance: Provenance,
    /// How the request body is framed.
    upload: BodyFraming,
    /// The body of the response.
    body: Framer,
    /// Whether any byte of a response has arrived.
    answered: bool,
    /// Whether the connection may serve another request.
    keep_alive: bool,
}

impl Http1 {
    pub(super) fn new(conn: Box<Conn>, provenance: Provenance) -> Http1 {
        Http1 {
            conn,
            provenance,
            upload: BodyFraming::None,
            body: Framer::Ended,
            answered: false,
            keep_alive: false,
        }
    }

    pub(super) fn send(
        &mut self,
        cx: &mut Context<'_>,
        request: &OriginRequest<'_>,
        own: &FieldsBuf,
    ) -> Result<(), Fault> {
        self.upload = request.framing;
        self.conn.write(cx, &[IoSlice::new(&encode_request(request, own))]).map_err(|_| Fault::NoResponse)
    }

    pub(super) fn send_body(&mut self, cx: &mut Context<'_>, data: &[u8]) -> io::Result<()> {
        if self.upload != BodyFraming::Chunked {
            return self.conn.write(cx, &[IoSlice::new(data)]);
        }
        let mut size = Vec::with_capacity(18);
        encode::chunk_size(&mut size, data.len());
        self.conn.write(cx, &[IoSlice::new(&size), IoSlice::new(data), IoSlice::new(encode::CRLF)])
    }

    pub(super) fn end_body(
        &mut self,
        cx: &mut Context<'_>,
        trailers: &FieldsBuf,
        rule: Option<&TrailerRule>,
    ) -> io::Result<()> {
        if self.upload != BodyFraming::Chunked {
            return Ok(());
        }
        let mut last = Vec::new();
        end_request(&mut last, trailers, rule);
        self.conn.write(cx, &[IoSlice::new(&last)])
    }

    pub(super) fn queued(&self) -> usize {
        self.conn.queued()
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.conn.poll_flush(cx)
    }

    pub(super) fn sent(&self) -> u64 {
        self.conn.sent()
    }

    pub(super) fn is_answered(&self) -> bool {
        self.answered
    }

    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        request: &OriginRequest<'_>,
        limits: &Limits,
        spans: &mut Vec<Span>,
        see: &mut dyn FnMut(&mut Context<'_>, Seen<'_>) -> Result<(), Fault>,
    ) -> Poll<Result<OriginHead, Fault>> {
        loop {
            while !self.conn.data().is_empty() {
                match self.parse(cx, request, limits, spans, see)? {
                    Step::Final(head) => return Poll::Ready(Ok(head)),
                    Step::Interim => {}
                    Step::Partial => break,
                }
            }
            match ready!(self.conn.poll_fill(cx)) {
                Ok(1..) => self.answered = true,
                Ok(_) => return Poll::Ready(Err(Fault::NoResponse)),
                Err(error) => {
                    let alert = TlsFault::of_alert(&error).filter(|_| !self.answered);
                    return Poll::Ready(Err(alert.map_or(Fault::NoResponse, Fault::TlsFailed)));
                }
            }
        }
    }

    /// Parses one head from the received bytes.
    fn parse(
        &mut self,
        cx: &mut Context<'_>,
        request: &OriginRequest<'_>,
        limits: &Limits,
        spans: &mut Vec<Span>,
        see: &mut dyn FnMut(&mut Context<'_>, Seen<'_>) -> Result<(), Fault>,
    ) -> Result<Step, Fault> {
        let mut anew = Vec::new();
        let parsed = response::parse_or_repair(self.conn.data(), limits, spans, &mut anew, request.method)
            .map_err(Fault::BadResponse)?;
        let Parsed::Complete(response) = parsed else { return Ok(Step::Partial) };
        let (head_len, repairs) = (response.head_len, response.repairs);
        let step = match response.kind {
            Kind::Interim => {
                see(cx, Seen::Interim(&response.head))?;
                Step::Interim
            }
            Kind::Switching if !request.tunnel => return Err(Fault::UnaskedSwitch),
            kind => {
                see(cx, Seen::Final(response.head.fields))?;
                let switched = kind != Kind::Final;
                let head = &response.head;
                let fields = match switched {
                    true => of_switched(head.fields),
                    false => of_final(head.status, head.reason, head.fields, length(response.framing)),
                };
                self.body = Framer::of_response(response.framing);
                self.keep_alive = response.keep_alive
                    && !may_be_followed(&response, request.method)
                    && !may_be_left(request);
                Step::Final(OriginHead {
                    head: ResponseHeadBuf {
                        status: response.head.status,
                        reason: response.head.reason.into(),
                        version: response.head.version,
                        fields: fields.map_err(|_| Fault::HeadTooLarge)?,
                    },
                    switched,
                })
            }
        };
        self.conn.consume(head_len);
        self.conn.repaired(repairs);
        Ok(step)
    }

    pub(super) fn remaining(&self) -> Option<u64> {
        self.body.remaining()
    }

    pub(super) fn body_step(&mut self) -> Result<Option<BodyStep>, BodyError> {
        self.body.step(&mut self.conn)
    }

    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<BodyStep, BodyError>> {
        self.body.poll_step(&mut self.conn, cx)
    }

    pub(super) fn limit_reads(&mut self, most: usize) {
        self.conn.limit_reads(most);
    }

    /// Gives the read buffer back. Returns the number of bytes that have arrived and are not used.
    pub(super) fn park(&mut self) -> usize {
        self.conn.park();
        self.conn.data().len()
    }

    pub(super) fn piece(&self, range: &Range<usize>) -> &[u8] {
        &self.conn.data()[range.clone()]
    }

    pub(super) fn consume(&mut self, range: &Range<usize>) {
        self.conn.consume(range.end);
    }

    pub(super) fn reads_directly(&self) -> bool {
        matches!(self.body, Framer::Length(_)) && self.conn.data().is_empty()
    }

    pub(super) fn poll_read_into(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<usize, BodyError>> {
        let read = ready!(self.conn.poll_read_into(cx, into)).map_err(BodyError::Io)?;
        if read == 0 {
            return Poll::Ready(Err(BodyError::Truncated));
        }
        self.body.taken(read as u64);
        Poll::Ready(Ok(read))
    }

    pub(super) fn drop_body(&mut self) {
        if !self.body.is_ended() {
            self.body = Framer::Ended;
            self.forbid_reuse();
        }
    }

    pub(super) fn tunnel(&mut self) -> &mut dyn Duplex {
        &mut *self.conn
    }

    /// The response did not come, or not go on, in time.
    pub(super) fn is_late(&self) {}

    pub(super) fn forbid_reuse(&mut self) {
        self.keep_alive = false;
    }

    /// Keeps the connection for the next request if both sides allow it.
    pub(super) fn finish(self, origins: &Origins, address: &Address) {
        let repairs = self.conn.repairs();
        if !repairs.is_empty() {
            origins.repaired(repairs);
        } else if self.keep_alive {
            origins.checkin(address, self.conn, self.provenance);
        }
    }

    /// Returns the connection, on which nothing was sent.
    pub(super) fn spare(self, origins: &Origins, address: &Address) {
        origins.checkin(address, self.conn, self.provenance);
    }
}

/// The result of parsing the received bytes.
enum Step {
    /// More must be read.
    Partial,
    Interim,
    Final(OriginHead),
}

/// The head of a request as sent.
pub(crate) fn encode_request(request: &OriginRequest<'_>, own: &FieldsBuf) -> Vec<u8> {
    let lines = request.fields.encoded_len() + own.encoded_len();
    let mut out = Vec::with_capacity(request.target.len() + lines + ADDED_TO_REQUEST);
    let mut head = encode::Head::request(&mut out, request.method_text, request.target);
    head.lines(&request.fields, request.framing);
    if let Some(protocols) = request.protocols {
        head.known(Name::Connection, b"upgrade");
        head.known(Name::Upgrade, protocols);
    }
    if request.takes_trailers {
        head.known(Name::Connection, b"TE");
        head.known(Name::Te, b"trailers");
    }
    own.encode(&mut out);
    out.extend_from_slice(encode::CRLF);
    out
}

/// Whether a server may leave a part of the request unread and parse it as the next request: cheroot does so
/// with chunks that the application did not read, aiohttp with everything after a request for another
/// protocol.
fn may_be_left(request: &OriginRequest<'_>) -> bool {
    request.framing == BodyFraming::Chunked || request.tunnel
}

/// The length of a body, if its framing gives it.
fn length(framing: BodyFraming) -> Option<u64> {
    match framing {
        BodyFraming::Length(length) => Some(length),
        _ => None,
    }
}

/// Whether an unwanted body may follow. Some origins send one in response to HEAD, and not always at once. It
/// would be read as the response to the next request on the connection.
fn may_be_followed(response: &Response<'_>, method: Method) -> bool {
    let says_empty = || {
        let length = response.head.fields.get(Name::ContentLength);
        length.is_some_and(|digits| digits.iter().all(|&digit| digit == b'0'))
    };
    method == Method::Head && !matches!(response.head.status, 204 | 304) && !says_empty()
}
