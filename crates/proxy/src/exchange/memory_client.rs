//! A client in memory, for tests: the proxy answers a request of its own, as fragments will be, without a
//! connection.

use crate::core::Core;
use bytes::Bytes;
use sandarac_message::{Fields, FieldsBuf, Piece};
use sandarac_net::{Body, BodyError, BodyStep, Client, Duplex, ListenerId, Peer, Responder, Response, Timer};
use sandarac_wire::h1::Refusal;
use std::io;
use std::ops::Range;
use std::task::{Context, Poll, Waker};

/// What a client in memory has received.
#[derive(Debug, Default)]
pub(super) struct ReceivedResponse {
    pub(super) interims: Vec<u16>,
    pub(super) status: u16,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Whether the response has ended.
    pub(super) whole: bool,
}

impl ReceivedResponse {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// A client in memory with a request body of one piece, or none.
pub(super) struct MemoryClient {
    peer: Peer,
    timer: Timer,
    body: Bytes,
    pub(super) received: ReceivedResponse,
}

impl MemoryClient {
    pub(super) fn new(core: &Core, body: &'static [u8]) -> MemoryClient {
        let holder = core.shared.account.connection();
        MemoryClient {
            peer: Peer {
                number: 0,
                client: None,
                listener: ListenerId::unused(),
                tls: None,
                requests: 1,
                holder,
            },
            timer: Timer::new(),
            body: Bytes::from_static(body),
            received: ReceivedResponse::default(),
        }
    }

    fn put_head(&mut self, response: &Response<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.received.status = response.status;
        response.for_each_field(|_, name, value| self.received.fields.push((text(name), text(value))));
    }

    fn put(&mut self, piece: &Piece) {
        self.received.body.extend_from_slice(piece.bytes().expect("a piece in memory"));
    }
}

impl Responder for MemoryClient {
    fn begin(&mut self, response: Response<'_>) {
        self.put_head(&response);
        self.received.whole = true;
    }

    fn send(&mut self, mut body: impl Body + 'static) -> u64 {
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(piece)) = body.poll_piece(&mut cx) {
            self.put(&piece.expect("a body that is there whole"));
        }
        self.received.body.len() as u64
    }
}

impl Client for MemoryClient {
    fn peer(&self) -> &Peer {
        &self.peer
    }

    fn timer(&mut self) -> &mut Timer {
        &mut self.timer
    }

    fn body_remaining(&self) -> Option<u64> {
        Some(self.body.len() as u64)
    }

    fn body_arrived(&self) -> Result<u64, Refusal> {
        Ok(self.body.len() as u64)
    }

    fn poll_body(&mut self, _: &mut Context<'_>) -> Poll<Result<BodyStep, BodyError>> {
        Poll::Ready(Ok(match self.body.len() {
            0 => BodyStep::End(FieldsBuf::new()),
            len => BodyStep::Data(0..len),
        }))
    }

    fn body_data(&self, range: &Range<usize>) -> &[u8] {
        &self.body[range.clone()]
    }

    fn consume_body(&mut self, range: &Range<usize>) {
        self.body = self.body.slice(range.end..);
    }

    fn awaits_continue(&self) -> bool {
        false
    }

    fn pause_body(&mut self) {}

    fn give_up_body(&mut self) {}

    fn poll_left(&mut self, _: &mut Context<'_>, _: bool) -> Poll<()> {
        Poll::Pending
    }

    fn has_closed(&mut self) -> bool {
        false
    }

    fn interim(&mut self, _: &mut Context<'_>, status: u16, _: &[u8], _: Fields<'_>) {
        self.received.interims.push(status);
    }

    fn begin(&mut self, response: Response<'_>) {
        self.put_head(&response);
    }

    fn send_begun(&mut self, _: &mut Context<'_>) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, _: &mut Context<'_>, piece: &[u8]) -> io::Result<()> {
        self.received.body.extend_from_slice(piece);
        Ok(())
    }

    fn share(&mut self, _: &mut Context<'_>, piece: Piece) -> io::Result<()> {
        self.put(&piece);
        Ok(())
    }

    fn end(&mut self, _: &mut Context<'_>, _: Fields<'_>) -> io::Result<()> {
        self.received.whole = true;
        Ok(())
    }

    fn poll_room(&mut self, _: &mut Context<'_>, _: usize) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn switch(&mut self, _: &mut Context<'_>, _: u16, _: &[u8], _: Fields<'_>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn tunnel(&mut self) -> (&mut dyn Duplex, &mut Timer) {
        unreachable!("it switches to no other protocol")
    }

    fn end_tunnel(&mut self) {}
}
