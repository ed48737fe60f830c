//! One include: its fragment, or the one in its place.

use super::page::{Asked, Page};
use super::pipe::PipeReader;
use crate::report::fragment_failure::FragmentFailure;
use sandarac_esi::Include;
use sandarac_message::Piece;
use sandarac_net::BodyBroken;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// A fragment that was asked for.
pub(super) struct Fragment {
    page: Rc<Page>,
    state: State,
    /// The URL of another one, if this one fails.
    alt: Option<Vec<u8>>,
    /// Whether the page goes on without it.
    continues: bool,
}

enum State {
    /// What is left of one that is there whole.
    Whole(VecDeque<Piece>),
    /// It was asked for.
    Asked(PipeReader),
    /// It has begun, and is one.
    Coming(PipeReader),
    /// There is none.
    Missing(FragmentFailure),
}

impl From<Result<Asked, FragmentFailure>> for State {
    fn from(asked: Result<Asked, FragmentFailure>) -> State {
        match asked {
            Ok(Asked::Whole(pieces)) => State::Whole(pieces),
            Ok(Asked::Coming(reader)) => State::Asked(reader),
            Err(failure) => State::Missing(failure),
        }
    }
}

impl Fragment {
    /// Asks for the fragment of an include.
    pub(super) fn ask(page: &Rc<Page>, include: &Include) -> Fragment {
        // An empty URL is refused as malformed: here, a value would lead to another path.
        let url = |text: &sandarac_esi::Text| text.url(|variable| page.value(variable)).unwrap_or_default();
        let mut fragment = Fragment {
            page: page.clone(),
            state: page.ask(&url(&include.src)).into(),
            alt: include.alt.as_ref().map(url),
            continues: include.continues,
        };
        fragment.fall_back();
        fragment
    }

    /// Asks for the other one if this one is missing.
    fn fall_back(&mut self) {
        while let State::Missing(failure) = self.state {
            self.page.failed(failure);
            match self.alt.take() {
                Some(url) => self.state = self.page.ask(&url).into(),
                None => return self.page.missing(failure),
            }
        }
    }

    /// Why the page cannot go on, if that is known.
    pub(super) fn is_fatal(&self) -> Option<FragmentFailure> {
        match self.state {
            State::Missing(failure) if !self.continues => Some(failure),
            _ => None,
        }
    }

    /// Ready once it is known whether there is a fragment.
    pub(super) fn poll_begun(&mut self, cx: &Context<'_>) -> Poll<()> {
        while let State::Asked(reader) = &self.state {
            let begun = ready!(reader.poll_begun(cx));
            let State::Asked(reader) =
                std::mem::replace(&mut self.state, State::Missing(FragmentFailure::BrokeOff))
            else {
                break;
            };
            match begun {
                Ok(()) => self.state = State::Coming(reader),
                Err(failure) => {
                    self.state = State::Missing(failure);
                    self.fall_back();
                }
            }
        }
        Poll::Ready(())
    }

    /// The next piece; `None` at the end, or if the page goes on without it.
    pub(super) fn poll_piece(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Piece, BodyBroken>>> {
        ready!(self.poll_begun(cx));
        match &mut self.state {
            State::Whole(pieces) => Poll::Ready(pieces.pop_front().map(Ok)),
            State::Coming(reader) => match ready!(reader.poll_piece(cx)) {
                Some(Ok(piece)) => Poll::Ready(Some(Ok(piece))),
                None => Poll::Ready(None),
                Some(Err(failure)) => {
                    // Some of it is in the page already: the other one cannot take its place.
                    self.alt = None;
                    self.state = State::Missing(failure);
                    self.fall_back();
                    Poll::Ready(self.end_of_missing())
                }
            },
            State::Asked(_) | State::Missing(_) => Poll::Ready(self.end_of_missing()),
        }
    }

    fn end_of_missing(&self) -> Option<Result<Piece, BodyBroken>> {
        if self.continues { None } else { Some(Err(BodyBroken::Source)) }
    }
}
