//! A connection to a backend, in use for one request, over any protocol.

use super::context::FetchContext;
use super::fastcgi::FastCgi;
use super::http1::Http1;
use super::http2::Http2;
use super::local_file::LocalFile;
use super::origin_head::{OriginHead, Seen};
use super::origin_request::OriginRequest;
use crate::Fault;
use crate::core::Core;
use crate::origin::{OriginConn, Origins};
use crate::trailers::TrailerRule;
use sandarac_balance::{AttemptOutcome, Backend, BackendId, Pick};
use sandarac_message::{FieldsBuf, Span};
use sandarac_net::{BodyError, BodyStep, Duplex, LEASED_WINDOW, Moment};
use sandarac_wire::h1::Limits;
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A connection to a backend, in use for one request. It encodes the request, reads the response, and decides
/// whether the connection is kept.
pub(crate) struct OriginLink {
    protocol: Protocol,
    /// `None` for a file of this machine.
    pick: Option<Pick>,
    origins: Rc<Origins>,
    /// Whether it was kept from an earlier request.
    reused: bool,
    /// Whether the status is the backend's fault.
    server_error: bool,
    /// Whether the backend was found, since it was picked, to be of a version that may not serve.
    is_other_version: bool,
    epoch: Moment,
}

/// The protocols that origins speak.
enum Protocol {
    Http1(Http1),
    Http2(Http2),
    FastCgi(Box<FastCgi>),
    File(Box<LocalFile>),
    #[cfg(test)]
    Memory(super::memory::Memory),
}

/// Calls the method of the same name of the link's protocol.
macro_rules! speak {
    ($link:expr, $method:ident($($argument:expr),*)) => {
        match $link {
            Protocol::Http1(http1) => http1.$method($($argument),*),
            Protocol::Http2(http2) => http2.$method($($argument),*),
            Protocol::FastCgi(fastcgi) => fastcgi.$method($($argument),*),
            Protocol::File(file) => file.$method($($argument),*),
            #[cfg(test)]
            Protocol::Memory(memory) => memory.$method($($argument),*),
        }
    };
}

impl OriginLink {
    /// A link to the backend of `pick`.
    pub(super) fn new(context: &FetchContext<'_>, conn: OriginConn, pick: Pick) -> OriginLink {
        let protocol = match conn {
            OriginConn::Http1(conn, provenance) => Protocol::Http1(Http1::new(conn, provenance)),
            OriginConn::Http2(stream) => {
                let window = context.core.shared.account.lease_window(LEASED_WINDOW as usize);
                Protocol::Http2(Http2::new(stream, pick.backend().address(), window))
            }
        };
        OriginLink::over(context, protocol, pick)
    }

    /// A link over a connection that speaks FastCGI to the backend of `pick`.
    pub(super) fn fastcgi(context: &FetchContext<'_>, fastcgi: FastCgi, pick: Pick) -> OriginLink {
        OriginLink::over(context, Protocol::FastCgi(Box::new(fastcgi)), pick)
    }

    /// A link to an origin in memory.
    #[cfg(test)]
    pub(super) fn memory(
        context: &FetchContext<'_>,
        memory: super::memory::Memory,
        pick: Pick,
    ) -> OriginLink {
        OriginLink::over(context, Protocol::Memory(memory), pick)
    }

    /// A link to a file of this machine, in place of that to the backend that named it.
    pub(super) fn local_file(core: &Core, file: LocalFile) -> OriginLink {
        OriginLink::of(core, Protocol::File(Box::new(file)), None)
    }

    fn over(context: &FetchContext<'_>, protocol: Protocol, pick: Pick) -> OriginLink {
        OriginLink::of(context.core, protocol, Some(pick))
    }

    fn of(core: &Core, protocol: Protocol, pick: Option<Pick>) -> OriginLink {
        OriginLink {
            protocol,
            pick,
            origins: core.origins.clone(),
            reused: false,
            server_error: false,
            is_other_version: false,
            epoch: core.shared.epoch,
        }
    }

    /// Whether it is to a file of this machine, which occupies no backend.
    pub(crate) fn is_local_file(&self) -> bool {
        self.pick.is_none()
    }

    /// The choice of the backend. MUST NOT be called on the link to a file.
    fn pick(&self) -> &Pick {
        self.pick.as_ref().expect("the link is to a backend")
    }

    /// Notes whether its connection was kept from an earlier request, and whether its backend was found to be
    /// of a version that may not serve.
    pub(super) fn found(&mut self, reused: bool, is_other_version: bool) {
        self.reused = reused;
        self.is_other_version = is_other_version;
    }

    pub(crate) fn backend_id(&self) -> BackendId {
        self.pick().id()
    }

    /// The backend.
    pub(crate) fn backend(&self) -> &Backend {
        self.pick().backend()
    }

    /// The protocol, as logs name it; `None` for a file that the backend named.
    pub(super) fn protocol_name(&self) -> Option<&'static str> {
        match self.protocol {
            Protocol::Http1(_) => Some("HTTP/1.1"),
            Protocol::Http2(_) => Some("HTTP/2.0"),
            Protocol::FastCgi(_) => Some("FastCGI"),
            Protocol::File(_) => None,
            #[cfg(test)]
            Protocol::Memory(_) => None,
        }
    }

    /// Whether its backend speaks HTTP/2.
    pub(crate) fn speaks_http2(&self) -> bool {
        matches!(self.protocol, Protocol::Http2(_))
    }

    pub(super) fn is_reused(&self) -> bool {
        self.reused
    }

    pub(super) fn is_other_version(&self) -> bool {
        self.is_other_version
    }

    /// Sends the head of a request, with `own` fields for this backend alone.
    pub(super) fn send(
        &mut self,
        cx: &mut Context<'_>,
        request: &OriginRequest<'_>,
        own: &FieldsBuf,
    ) -> Result<(), Fault> {
        speak!(&mut self.protocol, send(cx, request, own))
    }

    /// Sends a piece of the request body.
    pub(crate) fn send_body(&mut self, cx: &mut Context<'_>, data: &[u8]) -> io::Result<()> {
        speak!(&mut self.protocol, send_body(cx, data))
    }

    /// Ends the request body, with the trailers that `rule` allows.
    pub(crate) fn end_body(
        &mut self,
        cx: &mut Context<'_>,
        trailers: &FieldsBuf,
        rule: Option<&TrailerRule>,
    ) -> io::Result<()> {
        speak!(&mut self.protocol, end_body(cx, trailers, rule))
    }

    /// Bytes of the request that the backend has not accepted yet.
    pub(crate) fn queued(&self) -> usize {
        speak!(&self.protocol, queued())
    }

    /// Ready when the backend has accepted all bytes sent.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        speak!(&mut self.protocol, poll_flush(cx))
    }

    /// Bytes of the request that the backend may have seen; over HTTP/1.1 all that it has accepted on this
    /// connection.
    pub(crate) fn sent(&self) -> u64 {
        speak!(&self.protocol, sent())
    }

    /// Notes that the client keeps the request waiting for its body.
    pub(super) fn awaits_client(&mut self) {
        if let Some(pick) = &mut self.pick {
            pick.awaits_client();
        }
    }

    /// Notes that it did so until now, which is the client's time and not the backend's.
    pub(super) fn client_came(&mut self) {
        if let Some(pick) = &mut self.pick {
            pick.client_came(self.epoch.elapsed());
        }
    }

    /// Notes that all of the request has been sent: the backend's response is due.
    pub(super) fn awaits_answer(&mut self) {
        if let Some(pick) = &mut self.pick {
            pick.awaits_answer();
        }
    }

    /// Receives the head of the response. `see` gets each head on the way; its error ends the attempt.
    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        request: &OriginRequest<'_>,
        limits: &Limits,
        spans: &mut Vec<Span>,
        see: &mut dyn FnMut(&mut Context<'_>, Seen<'_>) -> Result<(), Fault>,
    ) -> Poll<Result<OriginHead, Fault>> {
        speak!(&mut self.protocol, poll_head(cx, request, limits, spans, see))
    }

    /// Whether any byte of a response has arrived.
    pub(super) fn is_answered(&self) -> bool {
        speak!(&self.protocol, is_answered())
    }

    /// Notes that the head has arrived, with this status. Returns the backend's response time, if known.
    pub(super) fn responded(&mut self, status: u16) -> Option<Duration> {
        self.server_error = status >= 500;
        let pick = self.pick.as_mut()?;
        pick.responded(self.epoch.elapsed());
        pick.took()
    }

    /// The bytes of the body still to come, if known.
    pub(crate) fn remaining(&self) -> Option<u64> {
        speak!(&self.protocol, remaining())
    }

    /// The next step of the body from the received bytes; `None` if more must be read first.
    pub(crate) fn body_step(&mut self) -> Result<Option<BodyStep>, BodyError> {
        speak!(&mut self.protocol, body_step())
    }

    /// The next step of the body.
    pub(crate) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<BodyStep, BodyError>> {
        speak!(&mut self.protocol, poll_body(cx))
    }

    /// Limits the bytes that are read at a time.
    pub(crate) fn limit_reads(&mut self, most: usize) {
        speak!(&mut self.protocol, limit_reads(most));
    }

    /// Gives the read buffer back, because the client takes no more now. Returns the bytes of the response
    /// that are held nevertheless.
    pub(crate) fn park(&mut self) -> usize {
        speak!(&mut self.protocol, park())
    }

    /// The bytes of a [`BodyStep::Data`].
    pub(crate) fn piece(&self, range: &Range<usize>) -> &[u8] {
        speak!(&self.protocol, piece(range))
    }

    /// Drops the bytes of a [`BodyStep::Data`] after their use.
    pub(crate) fn consume(&mut self, range: &Range<usize>) {
        self.count(range.len());
        speak!(&mut self.protocol, consume(range))
    }

    /// Counts bytes of the body. A file of this machine is no origin.
    fn count(&self, bytes: usize) {
        if !self.is_local_file() {
            self.origins.count_body(bytes);
        }
    }

    /// Whether [`OriginLink::poll_read_into`] may be called: the next bytes are body and nothing else.
    pub(crate) fn reads_directly(&self) -> bool {
        speak!(&self.protocol, reads_directly())
    }

    /// Reads body bytes directly into memory of the caller's.
    pub(crate) fn poll_read_into(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<usize, BodyError>> {
        let read = speak!(&mut self.protocol, poll_read_into(cx, into));
        if let Poll::Ready(Ok(bytes)) = &read {
            self.count(*bytes);
        }
        read
    }

    /// Leaves the unwanted body unread: the connection is not used again.
    pub(crate) fn drop_body(&mut self) {
        speak!(&mut self.protocol, drop_body())
    }

    /// The bytes in both directions, for the protocol that both sides have switched to.
    pub(crate) fn tunnel(&mut self) -> &mut dyn Duplex {
        speak!(&mut self.protocol, tunnel())
    }

    /// Ends a complete response: the connection is kept if both sides allow it.
    pub(crate) fn finish(self) {
        let OriginLink { protocol, pick, origins, server_error, epoch, .. } = self;
        let Some(pick) = pick else { return };
        // The request ends here, not when the connection is put away.
        let now = epoch.elapsed();
        speak!(protocol, finish(&origins, pick.backend().address()));
        pick.finish(if server_error { AttemptOutcome::ServerError } else { AttemptOutcome::Answered }, now);
    }

    /// Ends a complete or unwanted response, and closes the connection.
    pub(crate) fn close(mut self) {
        speak!(&mut self.protocol, forbid_reuse());
        self.finish();
    }

    /// Ends a request whose response did not begin in time.
    pub(super) fn late(self) {
        speak!(&self.protocol, is_late());
        self.ended(AttemptOutcome::Late);
    }

    /// Ends a response that broke off.
    pub(crate) fn broken(self) {
        speak!(&self.protocol, is_late());
        self.ended(AttemptOutcome::Broken);
    }

    /// Abandons the response for a reason that is not the backend's.
    pub(crate) fn unwanted(self) {
        self.ended(AttemptOutcome::Aborted);
    }

    /// Ends a request that brought no response.
    pub(super) fn ended(self, outcome: AttemptOutcome) {
        let now = self.epoch.elapsed();
        if let Some(pick) = self.pick {
            pick.finish(outcome, now);
        }
    }

    /// Returns the connection; no request was sent.
    pub(super) fn spare(self) {
        if let Some(pick) = &self.pick {
            speak!(self.protocol, spare(&self.origins, pick.backend().address()));
        }
    }
}
