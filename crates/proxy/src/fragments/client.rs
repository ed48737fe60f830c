//! The client of a fragment's exchange: the page.

use super::answered::judge;
use super::pipe::{PipeWriter, WINDOW};
use sandarac_message::{Fields, FieldsBuf, Piece};
use sandarac_net::{BodyError, BodyStep, Client, Duplex, Held, Lease, Peer, Response, Timer};
use sandarac_wire::h1::Refusal;
use std::io;
use std::ops::Range;
use std::task::{Context, Poll, ready};

/// A client without a request body, whose response goes into a page.
pub(super) struct FragmentClient {
    peer: Peer,
    timer: Timer,
    pipe: PipeWriter,
    /// The part of the response that the exchange keeps.
    kept: Lease,
}

impl FragmentClient {
    /// The client of a request of `peer`.
    pub(super) fn new(peer: Peer, pipe: PipeWriter) -> FragmentClient {
        let kept = peer.holder.nothing(Held::Fragments);
        FragmentClient { peer, timer: Timer::new(), pipe, kept }
    }

    fn gone() -> io::Error {
        io::ErrorKind::BrokenPipe.into()
    }

    fn push(&mut self, piece: Piece) -> io::Result<()> {
        if self.pipe.push(piece) { Ok(()) } else { Err(FragmentClient::gone()) }
    }
}

impl Client for FragmentClient {
    fn peer(&self) -> &Peer {
        &self.peer
    }

    fn timer(&mut self) -> &mut Timer {
        &mut self.timer
    }

    fn body_remaining(&self) -> Option<u64> {
        Some(0)
    }

    fn body_arrived(&self) -> Result<u64, Refusal> {
        Ok(0)
    }

    fn poll_body(&mut self, _: &mut Context<'_>) -> Poll<Result<BodyStep, BodyError>> {
        Poll::Ready(Ok(BodyStep::End(FieldsBuf::new())))
    }

    fn body_data(&self, _: &Range<usize>) -> &[u8] {
        &[]
    }

    fn consume_body(&mut self, _: &Range<usize>) {}

    fn awaits_continue(&self) -> bool {
        false
    }

    fn pause_body(&mut self) {}

    fn give_up_body(&mut self) {}

    fn poll_left(&mut self, cx: &mut Context<'_>, _: bool) -> Poll<()> {
        self.pipe.poll_abandoned(cx)
    }

    fn has_closed(&mut self) -> bool {
        self.pipe.is_abandoned()
    }

    fn interim(&mut self, _: &mut Context<'_>, _: u16, _: &[u8], _: Fields<'_>) {}

    fn begin(&mut self, response: Response<'_>) {
        self.pipe.begin(judge(&response));
    }

    fn send_begun(&mut self, _: &mut Context<'_>) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, _: &mut Context<'_>, piece: &[u8]) -> io::Result<()> {
        let copy: Box<[u8]> = piece.into();
        self.push(self.peer.holder.keep(Held::Fragments, copy).into())
    }

    fn share(&mut self, _: &mut Context<'_>, piece: Piece) -> io::Result<()> {
        self.push(piece)
    }

    fn end(&mut self, _: &mut Context<'_>, _: Fields<'_>) -> io::Result<()> {
        self.pipe.end();
        Ok(())
    }

    /// The page waits for its own client, whose time is measured there.
    fn poll_room(&mut self, cx: &mut Context<'_>, window: usize) -> Poll<io::Result<()>> {
        ready!(self.pipe.poll_room(cx, window.min(WINDOW)));
        Poll::Ready(if self.pipe.is_abandoned() { Err(FragmentClient::gone()) } else { Ok(()) })
    }

    fn keeps(&mut self, bytes: usize) {
        self.kept.set(bytes);
    }

    fn read_limit(&self) -> usize {
        self.peer.holder.read_limit().min(WINDOW)
    }

    fn switch(&mut self, _: &mut Context<'_>, _: u16, _: &[u8], _: Fields<'_>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn tunnel(&mut self) -> (&mut dyn Duplex, &mut Timer) {
        unreachable!("no fragment switches to another protocol")
    }

    fn end_tunnel(&mut self) {}
}
