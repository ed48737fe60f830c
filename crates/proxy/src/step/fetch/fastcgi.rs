//! FastCGI to an origin: encodes requests, reads the head and the body from the application's output, and keeps the
//! connection if that is configured.

use super::context::FetchContext;
use super::origin_head::{OriginHead, Seen};
use super::origin_request::OriginRequest;
use super::response_fields::of_final;
use super::stderr_log::StderrLog;
use crate::core::Core;
use crate::fastcgi::{Application, Next, Output, PATIENCE, WaitsForAnswer, encode};
use crate::origin::{Origins, Provenance};
use crate::trailers::TrailerRule;
use crate::{Counter, Fault};
use sandarac_balance::Address;
use sandarac_message::{Fields, FieldsBuf, ResponseHead, ResponseHeadBuf, Span, Version};
use sandarac_net::{BodyError, BodyStep, Conn, Timer, Unread};
use sandarac_wire::fastcgi::head::Rewritten;
use sandarac_wire::fastcgi::{EndStatus, MAX_CONTENT, Refusal, RequestId, stdin_end, stdin_header};
use sandarac_wire::h1::repair::Repairs;
use sandarac_wire::h1::{BodyFraming, Limits};
use std::io::{self, IoSlice};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// A connection that speaks FastCGI.
pub(super) struct FastCgi {
    conn: Box<Conn>,
    provenance: Provenance,
    /// The number of the request on the connection.
    id: RequestId,
    core: Rc<Core>,
    application: Arc<Application>,
    output: Output,
    body: Body,
    repairs: Repairs,
    /// Whether any byte of a response has arrived.
    answered: bool,
    /// Whether what has arrived is no answer: a refusal for lack of room, or a record of another request.
    unanswered: bool,
    /// Whether the client waits for 100 (Continue), of which an application knows nothing.
    expects: bool,
    /// Whether the end of the request body is still to be sent.
    uploads: bool,
    /// Whether the connection may serve another request.
    keep_alive: bool,
    /// Present while a request on a new connection waits for an answer, so that idle ones may have to give way.
    waits: Option<Box<(WaitsForAnswer, Timer)>>,
    transaction: u64,
    stderr: Option<StderrLog>,
}

/// How the rest of the output is used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    /// This many bytes are body. What follows is dropped.
    Length(u64),
    /// All of it is.
    UntilEnd,
}

impl FastCgi {
    pub(super) fn new(
        context: &FetchContext<'_>,
        application: Arc<Application>,
        conn: Box<Conn>,
        provenance: Provenance,
        address: &Address,
        reused: bool,
    ) -> FastCgi {
        let idle = application.idle.as_ref().filter(|_| !reused);
        let waits = idle.map(|idle| {
            let mut timer = Timer::new();
            timer.set(PATIENCE);
            Box::new((idle.wait(address), timer))
        });
        let id = provenance.request_id;
        FastCgi {
            conn,
            id,
            core: context.core.handle(),
            output: Output::new(id),
            body: Body::Length(0),
            repairs: Repairs::NONE,
            answered: false,
            unanswered: false,
            expects: false,
            uploads: false,
            keep_alive: application.idle.is_some(),
            waits,
            transaction: 0,
            stderr: None,
            provenance,
            application,
        }
    }

    /// Sends the head of a request. Fails if the pool's applications are not known, or a parameter does not fit.
    pub(super) fn send(
        &mut self,
        cx: &mut Context<'_>,
        request: &OriginRequest<'_>,
        own: &FieldsBuf,
    ) -> Result<(), Fault> {
        let cgi = request.cgi.as_ref().ok_or(Fault::ConnectFailed(io::ErrorKind::Unsupported))?;
        self.transaction = cgi.transaction;
        self.expects = request.expects_continue();
        let fields = [request.fields.view(), own.view()];
        let (method, target, framing) = (request.method_text, request.target, request.framing);
        let mut records = encode(cgi, method, target, fields, framing, (self.id, self.keep_alive))
            .map_err(|_| Fault::HeadTooLarge)?;
        self.uploads = !framing.is_empty();
        if !self.uploads {
            records.extend_from_slice(&stdin_end(self.id));
        }
        self.conn.write(cx, &[IoSlice::new(&records)]).map_err(|_| Fault::NoResponse)
    }

    pub(super) fn send_body(&mut self, cx: &mut Context<'_>, data: &[u8]) -> io::Result<()> {
        for piece in data.chunks(MAX_CONTENT) {
            let header = stdin_header(self.id, piece.len() as u16);
            self.conn.write(cx, &[IoSlice::new(&header), IoSlice::new(piece)])?;
        }
        Ok(())
    }

    /// Ends the request body. FastCGI has no trailers.
    pub(super) fn end_body(
        &mut self,
        cx: &mut Context<'_>,
        _: &FieldsBuf,
        _: Option<&TrailerRule>,
    ) -> io::Result<()> {
        if !std::mem::take(&mut self.uploads) {
            return Ok(());
        }
        self.conn.write(cx, &[IoSlice::new(&stdin_end(self.id))])
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

    /// Whether any byte of a response has arrived.
    pub(super) fn is_answered(&self) -> bool {
        self.answered && !self.unanswered
    }

    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        request: &OriginRequest<'_>,
        limits: &Limits,
        spans: &mut Vec<Span>,
        see: &mut dyn FnMut(&mut Context<'_>, Seen<'_>) -> Result<(), Fault>,
    ) -> Poll<Result<OriginHead, Fault>> {
        if std::mem::take(&mut self.expects) {
            let (version, fields) = (Version::Http11, Fields::default());
            see(cx, Seen::Interim(&ResponseHead { status: 100, reason: b"Continue", version, fields }))?;
        }
        loop {
            match self.next().map_err(Fault::of_fastcgi)? {
                Next::Ready => {
                    let mut memory = Rewritten::default();
                    let head = self.output.head(&mut self.conn, limits, spans, &mut memory, request.method);
                    let Some(found) = head.map_err(Fault::of_fastcgi)? else { continue };
                    let response = found.response;
                    let ResponseHead { status, reason, version, fields } = response.head;
                    see(cx, Seen::Final(fields))?;
                    self.repairs = response.repairs;
                    self.body = match response.framing {
                        BodyFraming::None => Body::Length(0),
                        BodyFraming::Length(length) => Body::Length(length),
                        // A short response has arrived whole, so its length can be announced.
                        BodyFraming::Chunked | BodyFraming::UntilClose => {
                            self.output.rest(&self.conn).map_or(Body::UntilEnd, Body::Length)
                        }
                    };
                    let fields = of_final(status, reason, fields, self.remaining());
                    return Poll::Ready(Ok(OriginHead {
                        head: ResponseHeadBuf {
                            status,
                            reason: reason.into(),
                            version,
                            fields: fields.map_err(|_| Fault::HeadTooLarge)?,
                        },
                        switched: false,
                    }));
                }
                Next::End(EndStatus::Overloaded) => {
                    self.unanswered = true;
                    return Poll::Ready(Err(Fault::Overloaded));
                }
                Next::End(EndStatus::Refused) => {
                    return Poll::Ready(Err(Fault::BadFastCgi(Refusal::RoleRefused)));
                }
                Next::End(EndStatus::Complete) => {
                    return Poll::Ready(Err(Fault::BadFastCgi(Refusal::NoHead)));
                }
                Next::More => match self.poll_fill(cx) {
                    Poll::Ready(Ok(1..)) => {}
                    Poll::Ready(_) => return Poll::Ready(Err(Fault::NoResponse)),
                    Poll::Pending => {
                        self.let_others_give_way(cx);
                        return Poll::Pending;
                    }
                },
            }
        }
    }

    /// What has arrived of the response. Error messages go to the log.
    fn next(&mut self) -> Result<Next, Refusal> {
        let FastCgi { output, conn, core, application, transaction, stderr, .. } = self;
        let next = output.next(conn, |piece| {
            let log = || StderrLog::new(core.clone(), application.clone(), *transaction);
            stderr.get_or_insert_with(log).take(piece);
        });
        if matches!(next, Err(Refusal::WrongRequest)) {
            self.unanswered = true;
            self.core.counters.one(Counter::OriginConnectionsStray);
        }
        next
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let read = ready!(self.conn.poll_fill(cx));
        if let Ok(1..) = read {
            self.answered = true;
            self.waits = None;
        }
        Poll::Ready(read)
    }

    /// Closes idle connections for as long as this one gets no answer, because each may occupy the process that
    /// would accept it.
    fn let_others_give_way(&mut self, cx: &mut Context<'_>) {
        while let Some((waits, timer)) = self.waits.as_deref_mut()
            && timer.poll(cx).is_ready()
        {
            if waits.claim() {
                self.core.counters.one(Counter::FastCgiConnectionsYielded);
            }
            timer.set(PATIENCE);
        }
    }

    /// The bytes of the body still to come, if known.
    pub(super) fn remaining(&self) -> Option<u64> {
        match self.body {
            Body::Length(left) => Some(left),
            Body::UntilEnd => None,
        }
    }

    pub(super) fn body_step(&mut self) -> Result<Option<BodyStep>, BodyError> {
        loop {
            match self.next().map_err(BodyError::Records)? {
                Next::More => return Ok(None),
                Next::End(EndStatus::Complete) if matches!(self.body, Body::UntilEnd | Body::Length(0)) => {
                    return Ok(Some(BodyStep::End(FieldsBuf::new())));
                }
                Next::End(_) => return Err(BodyError::Truncated),
                Next::Ready => {}
            }
            let ready = self.output.ready();
            let wanted = match &mut self.body {
                Body::UntilEnd => ready,
                Body::Length(left) => {
                    let wanted = ready.min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= wanted as u64;
                    wanted
                }
            };
            if wanted > 0 {
                self.output.taken(wanted);
                return Ok(Some(BodyStep::Data(0..wanted)));
            }
            // Output after a body of known length, or where there is none: other servers drop it too.
            self.output.taken(ready);
            self.conn.consume(ready);
        }
    }

    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<BodyStep, BodyError>> {
        loop {
            if let Some(step) = self.body_step()? {
                return Poll::Ready(Ok(step));
            }
            if ready!(self.poll_fill(cx)).map_err(BodyError::Io)? == 0 {
                return Poll::Ready(Err(BodyError::Truncated));
            }
        }
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

    /// Never: the end of the body is a record after it.
    #[expect(clippy::unused_self, reason = "other protocols do")]
    pub(super) fn reads_directly(&self) -> bool {
        false
    }

    pub(super) fn poll_read_into(
        &mut self,
        _: &mut Context<'_>,
        _: &mut [u8],
    ) -> Poll<Result<usize, BodyError>> {
        unreachable!("a body in records is not read directly")
    }

    /// Drops the rest of the body, up to the end of the response: an application that cannot write is killed.
    pub(super) fn drop_body(&mut self) {
        self.body = Body::Length(0);
    }

    pub(super) fn tunnel(&mut self) -> &mut Conn {
        unreachable!("no application switches to another protocol")
    }

    pub(super) fn is_late(&self) {}

    pub(super) fn forbid_reuse(&mut self) {
        self.keep_alive = false;
    }

    /// Keeps the connection for the next request if that is configured.
    pub(super) fn finish(mut self, origins: &Origins, address: &Address) {
        origins.repaired(self.repairs);
        if let Some(idle) = self.application.idle.as_ref().filter(|_| self.keep_alive)
            && self.output.is_complete()
            && !self.uploads
            && self.conn.is_flushed()
            && (self.conn.data().is_empty() || origins.unread(&mut self.conn) == Unread::Nothing)
        {
            self.provenance.request_id = self.id.next();
            idle.keep(address, *self.conn, self.provenance);
        }
    }

    /// Closes the connection, on which nothing was sent.
    #[expect(clippy::unused_self, reason = "other protocols keep it")]
    pub(super) fn spare(self, _: &Origins, _: &Address) {}
}
