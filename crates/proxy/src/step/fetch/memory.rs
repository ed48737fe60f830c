//! An origin in memory, for tests: shows that no code above a link depends on the link's protocol.

use super::origin_head::{OriginHead, Seen};
use super::origin_request::OriginRequest;
use crate::Fault;
use crate::origin::Origins;
use crate::trailers::TrailerRule;
use sandarac_balance::Address;
use sandarac_message::{Fields, FieldsBuf, ResponseHead, ResponseHeadBuf, Span};
use sandarac_net::{BodyError, BodyStep, Duplex};
use sandarac_wire::h1::Limits;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::task::{Context, Poll};

/// A scripted origin in memory: its responses, and the requests made to it. No byte of HTTP/1.1 is involved.
pub(crate) struct Memory {
    pub(crate) interim: Option<u16>,
    pub(crate) head: Option<ResponseHeadBuf>,
    /// The body, in the pieces in which it arrives.
    pub(crate) body: VecDeque<Vec<u8>>,
    /// Whether the link has a fault and panics behind the last piece.
    pub(crate) panics: bool,
    pub(crate) heard: Rc<RefCell<Heard>>,
    piece: Vec<u8>,
}

/// The requests made to an origin in memory, and how the link to it ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) target: Vec<u8>,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) whole: bool,
    pub(crate) finished: bool,
}

impl Memory {
    pub(crate) fn new(head: ResponseHeadBuf, body: &[&[u8]], heard: Rc<RefCell<Heard>>) -> Memory {
        let body = body.iter().map(|piece| piece.to_vec()).collect();
        Memory { interim: None, head: Some(head), body, panics: false, heard, piece: Vec::new() }
    }

    pub(super) fn send(
        &mut self,
        _: &mut Context<'_>,
        request: &OriginRequest<'_>,
        own: &FieldsBuf,
    ) -> Result<(), Fault> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let lines = |fields: Fields<'_>| {
            fields.iter().map(|field| (text(field.name), text(field.value))).collect::<Vec<_>>()
        };
        let mut heard = self.heard.borrow_mut();
        heard.target = request.target.to_vec();
        heard.fields = [lines(request.fields.view()), lines(own.view())].concat();
        Ok(())
    }

    pub(super) fn send_body(&mut self, _: &mut Context<'_>, data: &[u8]) -> io::Result<()> {
        self.heard.borrow_mut().body.extend_from_slice(data);
        Ok(())
    }

    pub(super) fn end_body(
        &mut self,
        _: &mut Context<'_>,
        _: &FieldsBuf,
        _: Option<&TrailerRule>,
    ) -> io::Result<()> {
        self.heard.borrow_mut().whole = true;
        Ok(())
    }

    pub(super) fn queued(&self) -> usize {
        0
    }

    pub(super) fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    pub(super) fn sent(&self) -> u64 {
        self.heard.borrow().body.len() as u64
    }

    pub(super) fn is_answered(&self) -> bool {
        self.head.is_none()
    }

    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        _: &OriginRequest<'_>,
        _: &Limits,
        _: &mut Vec<Span>,
        see: &mut dyn FnMut(&mut Context<'_>, Seen<'_>) -> Result<(), Fault>,
    ) -> Poll<Result<OriginHead, Fault>> {
        let Some(head) = self.head.take() else { return Poll::Ready(Err(Fault::NoResponse)) };
        if let Some(status) = self.interim.take() {
            let interim = ResponseHead { status, reason: b"", ..head.view() };
            see(cx, Seen::Interim(&interim))?;
        }
        see(cx, Seen::Final(head.fields.view()))?;
        Poll::Ready(Ok(OriginHead { head, switched: false }))
    }

    pub(super) fn remaining(&self) -> Option<u64> {
        None
    }

    pub(super) fn body_step(&mut self) -> Result<Option<BodyStep>, BodyError> {
        if self.piece.is_empty() {
            let Some(piece) = self.body.pop_front() else {
                if self.panics {
                    return Ok(None);
                }
                return Ok(Some(BodyStep::End(FieldsBuf::new())));
            };
            self.piece = piece;
        }
        Ok(Some(BodyStep::Data(0..self.piece.len())))
    }

    pub(super) fn poll_body(&mut self, _: &mut Context<'_>) -> Poll<Result<BodyStep, BodyError>> {
        Poll::Ready(self.body_step().map(|step| step.expect("a fault of the link, for a test")))
    }

    pub(super) fn limit_reads(&mut self, _: usize) {}

    pub(super) fn park(&mut self) -> usize {
        self.piece.len()
    }

    pub(super) fn piece(&self, range: &Range<usize>) -> &[u8] {
        &self.piece[range.clone()]
    }

    pub(super) fn consume(&mut self, range: &Range<usize>) {
        self.piece.drain(..range.end);
    }

    pub(super) fn reads_directly(&self) -> bool {
        false
    }

    pub(super) fn poll_read_into(
        &mut self,
        _: &mut Context<'_>,
        _: &mut [u8],
    ) -> Poll<Result<usize, BodyError>> {
        unreachable!("no connection to read from")
    }

    pub(super) fn drop_body(&mut self) {
        self.body.clear();
        self.piece.clear();
    }

    pub(super) fn is_late(&self) {}

    pub(super) fn tunnel(&mut self) -> &mut dyn Duplex {
        unreachable!("no connection to open a tunnel on")
    }

    pub(super) fn forbid_reuse(&mut self) {}

    pub(super) fn finish(self, _: &Origins, _: &Address) {
        self.heard.borrow_mut().finished = true;
    }

    pub(super) fn spare(self, _: &Origins, _: &Address) {}
}
