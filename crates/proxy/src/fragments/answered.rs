//! A fragment that is answered at once.

use crate::report::fragment_failure::FragmentFailure;
use sandarac_message::{Name, Piece};
use sandarac_net::{Body, Responder, Response};
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

/// Receives a response that is there whole.
#[derive(Default)]
pub(super) struct Answered {
    head: Option<Result<(), FragmentFailure>>,
    pieces: VecDeque<Piece>,
    is_broken: bool,
}

impl Answered {
    /// The fragment, if the response is one.
    pub(super) fn fragment(self) -> Result<VecDeque<Piece>, FragmentFailure> {
        match self.head {
            Some(Ok(())) if !self.is_broken => Ok(self.pieces),
            Some(Err(failure)) => Err(failure),
            _ => Err(FragmentFailure::BrokeOff),
        }
    }
}

/// Whether a response is a fragment.
pub(super) fn judge(response: &Response<'_>) -> Result<(), FragmentFailure> {
    if !matches!(response.status, 200..=205 | 207..=299) {
        return Err(FragmentFailure::Status);
    }
    let mut judged = Ok(());
    response.for_each_base_field(|name, _, value| match name {
        Name::ContentEncoding if !value.eq_ignore_ascii_case(b"identity") => {
            judged = Err(FragmentFailure::Coded)
        }
        Name::ContentType if value.to_ascii_lowercase().starts_with(b"text/event-stream") => {
            judged = Err(FragmentFailure::Endless);
        }
        _ => {}
    });
    judged
}

impl Responder for Answered {
    fn begin(&mut self, response: Response<'_>) {
        self.head = Some(judge(&response));
    }

    fn send(&mut self, mut body: impl Body + 'static) -> u64 {
        let mut cx = Context::from_waker(Waker::noop());
        let mut bytes = 0;
        loop {
            match body.poll_piece(&mut cx) {
                Poll::Ready(Some(Ok(piece))) => {
                    bytes += piece.len() as u64;
                    self.pieces.push_back(piece);
                }
                Poll::Ready(None) => return bytes,
                Poll::Ready(Some(Err(_))) | Poll::Pending => {
                    self.is_broken = true;
                    return bytes;
                }
            }
        }
    }
}
