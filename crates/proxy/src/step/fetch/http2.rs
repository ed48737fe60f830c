//! HTTP/2 to an origin: encodes requests into a stream of a shared connection, and reads the response from
//! it.

use super::origin_head::{OriginHead, Seen};
use super::origin_request::OriginRequest;
use super::response_fields::{of_final, of_switched};
use crate::Fault;
use crate::origin::Origins;
use crate::report::reason::reason;
use crate::trailers::{TrailerRule, of_request};
use sandarac_balance::Address;
use sandarac_message::{
    FieldsBuf, Method, Name, ResponseHead, ResponseHeadBuf, Span, TooLarge, decimal, members,
};
use sandarac_net::{
    BodyError, BodyStep, Duplex, Lease, OriginStream, ReceivedHead, StreamFault, websocket_accept,
};
use sandarac_wire::h1::{BodyFraming, Limits};
use sandarac_wire::h2::head::encode;
use sandarac_wire::h2::hpack::encode::Strings;
use std::io;
use std::ops::Range;
use std::task::{Context, Poll, ready};

/// A stream of a connection that speaks HTTP/2.
pub(super) struct Http2 {
    stream: OriginStream,
    /// The window of a response that has not begun, if there was room for one.
    window: Option<Lease>,
    /// The authority of a request without one, and whether the connection has TLS.
    authority: Box<str>,
    is_tls: bool,
    upgrade: Option<Upgrade>,
    /// Whether a head has arrived.
    answered: bool,
    /// Whether the body is not wanted.
    is_dropped: bool,
}

/// An upgrade that was asked for.
struct Upgrade {
    protocol: Box<[u8]>,
    /// Sec-WebSocket-Key, if it is one to WebSocket.
    key: Option<Box<[u8]>>,
}

impl Http2 {
    pub(super) fn new(stream: OriginStream, address: &Address, window: Option<Lease>) -> Http2 {
        Http2 {
            stream,
            window,
            authority: address.authority().into(),
            is_tls: address.is_tls(),
            upgrade: None,
            answered: false,
            is_dropped: false,
        }
    }

    pub(super) fn send(
        &mut self,
        _: &mut Context<'_>,
        request: &OriginRequest<'_>,
        own: &FieldsBuf,
    ) -> Result<(), Fault> {
        let protocol = request.protocols.and_then(|offered| members(offered).next());
        if let Some(protocol) = protocol {
            if !self.stream.allows_protocols() {
                return Err(Fault::NoExtendedConnect);
            }
            let key = request.fields.view().all_named(b"Sec-WebSocket-Key").next();
            self.upgrade = Some(Upgrade { protocol: protocol.into(), key: key.map(Box::from) });
        }
        if request.tunnel {
            // It may wait for long, and is counted by its own.
            self.window = None;
        }
        let method = if protocol.is_some() { Method::Connect } else { request.method };
        let block = self.encode(request, protocol, own).map_err(|_| Fault::HeadTooLarge)?;
        let has_body = request.tunnel
            || matches!(request.framing, BodyFraming::Chunked)
            || matches!(request.framing, BodyFraming::Length(1..));
        Ok(self.stream.begin(method, &block, !has_body, self.window.is_some())?)
    }

    /// The block of a request (RFC 9113 §8.3.1, RFC 8441 §4).
    fn encode(
        &self,
        request: &OriginRequest<'_>,
        protocol: Option<&[u8]>,
        own: &FieldsBuf,
    ) -> Result<Vec<u8>, TooLarge> {
        let received = request.fields.view();
        let authority = received.get(Name::Host).filter(|host| !host.is_empty());
        let line = encode::RequestLine {
            method: if protocol.is_some() { b"CONNECT" } else { request.method_text },
            scheme: if self.is_tls { b"https" } else { b"http" },
            authority: authority.unwrap_or(self.authority.as_bytes()),
            path: request.target,
            protocol,
        };
        let mut digits = [0; 20];
        let length = match request.framing {
            BodyFraming::Length(length) => Some(decimal::digits(length, &mut digits)),
            _ => None,
        };
        let mut block = Vec::with_capacity(received.encoded_len() + own.encoded_len() + request.target.len());
        let mut lengths = received.all(Name::ContentLength);
        let (first, second) = (lengths.next(), lengths.next());
        let is_framed = first == length && second.is_none();
        if is_framed && protocol.is_none() {
            encode::request(&mut block, &line, received, Strings::Plain);
        } else {
            let mut fields = FieldsBuf::new();
            fields.extend(received, |field| {
                field.id != Name::ContentLength && !(protocol.is_some() && field.is(b"Sec-WebSocket-Key"))
            })?;
            if let Some(length) = length {
                fields.add(Name::ContentLength, length)?;
            }
            encode::request(&mut block, &line, fields.view(), Strings::Plain);
        }
        // gRPC servers demand it, and its clients always read trailers.
        if request.takes_trailers || request.is_grpc {
            encode::known(&mut block, Name::Te, b"trailers");
        }
        own.view().iter().for_each(|field| encode::field(&mut block, field.name, field.value));
        Ok(block)
    }

    pub(super) fn send_body(&mut self, _: &mut Context<'_>, data: &[u8]) -> io::Result<()> {
        self.stream.send(data).map_err(broken)
    }

    pub(super) fn end_body(
        &mut self,
        _: &mut Context<'_>,
        trailers: &FieldsBuf,
        rule: Option<&TrailerRule>,
    ) -> io::Result<()> {
        let mut block = Vec::new();
        encode::trailers(&mut block, of_request(trailers, rule).view(), Strings::Plain);
        self.stream.end(block).map_err(broken)
    }

    pub(super) fn queued(&self) -> usize {
        self.stream.queued()
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_flush(cx).map_err(broken)
    }

    pub(super) fn sent(&self) -> u64 {
        self.stream.sent()
    }

    pub(super) fn is_answered(&self) -> bool {
        self.answered
    }

    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        request: &OriginRequest<'_>,
        _: &Limits,
        _: &mut Vec<Span>,
        see: &mut dyn FnMut(&mut Context<'_>, Seen<'_>) -> Result<(), Fault>,
    ) -> Poll<Result<OriginHead, Fault>> {
        loop {
            let received = ready!(self.stream.poll_head(cx))?;
            self.answered = true;
            match received {
                ReceivedHead::Interim(head) => {
                    let head = ResponseHead { reason: reason(head.status).as_bytes(), ..head.view() };
                    see(cx, Seen::Interim(&head))?;
                }
                ReceivedHead::Final(head) => {
                    see(cx, Seen::Final(head.fields.view()))?;
                    let made = self.final_head(request, &head);
                    return Poll::Ready(made.map_err(|_| Fault::HeadTooLarge));
                }
            }
        }
    }

    fn final_head(
        &self,
        request: &OriginRequest<'_>,
        received: &ResponseHeadBuf,
    ) -> Result<OriginHead, TooLarge> {
        let switched = request.tunnel && matches!(received.status, 200..300);
        let upgrade = self.upgrade.as_ref().filter(|_| switched);
        // An upgrade reads as in HTTP/1.1 (RFC 8441 §5).
        let status = if upgrade.is_some() { 101 } else { received.status };
        let reason = reason(status).as_bytes();
        let view = received.fields.view();
        let fields = match (switched, upgrade) {
            (false, _) => of_final(status, reason, view, self.stream.remaining())?,
            (true, None) => of_switched(view)?,
            (true, Some(Upgrade { protocol, key })) => {
                let mut fields = of_switched(view)?;
                fields.add(Name::Connection, b"Upgrade")?;
                fields.add(Name::Upgrade, protocol)?;
                if let Some(key) = key {
                    fields.push(b"Sec-WebSocket-Accept", websocket_accept(key).as_bytes())?;
                }
                fields
            }
        };
        let head = ResponseHeadBuf { status, reason: reason.into(), version: received.version, fields };
        Ok(OriginHead { head, switched })
    }

    pub(super) fn remaining(&self) -> Option<u64> {
        if self.is_dropped { Some(0) } else { self.stream.remaining() }
    }

    pub(super) fn body_step(&mut self) -> Result<Option<BodyStep>, BodyError> {
        match self.is_dropped {
            true => Ok(Some(BodyStep::End(FieldsBuf::new()))),
            false => self.stream.body_step(),
        }
    }

    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<BodyStep, BodyError>> {
        match self.is_dropped {
            true => Poll::Ready(Ok(BodyStep::End(FieldsBuf::new()))),
            false => self.stream.poll_body(cx),
        }
    }

    pub(super) fn limit_reads(&mut self, most: usize) {
        self.stream.limit_steps(most);
    }

    /// Frees memory that is not used. Returns the number of bytes that the stream may hold meanwhile.
    pub(super) fn park(&mut self) -> usize {
        Duplex::park(&mut self.stream);
        // The caller counts it from now on.
        self.window = None;
        self.stream.may_hold()
    }

    pub(super) fn piece(&self, range: &Range<usize>) -> &[u8] {
        self.stream.piece(range)
    }

    pub(super) fn consume(&mut self, range: &Range<usize>) {
        self.stream.consume(range.len());
    }

    pub(super) fn reads_directly(&self) -> bool {
        false
    }

    pub(super) fn poll_read_into(
        &mut self,
        _: &mut Context<'_>,
        _: &mut [u8],
    ) -> Poll<Result<usize, BodyError>> {
        unreachable!("the data of a stream arrives among that of others")
    }

    pub(super) fn drop_body(&mut self) {
        self.is_dropped = true;
    }

    pub(super) fn tunnel(&mut self) -> &mut dyn Duplex {
        &mut self.stream
    }

    pub(super) fn is_late(&self) {
        self.stream.probe();
    }

    pub(super) fn forbid_reuse(&mut self) {}

    /// Ends the stream; the connection serves others.
    pub(super) fn finish(self, _: &Origins, _: &Address) {}

    pub(super) fn spare(self, _: &Origins, _: &Address) {}
}

/// The error of a write. The cause is reported when the response is read.
fn broken(_: StreamFault) -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}
