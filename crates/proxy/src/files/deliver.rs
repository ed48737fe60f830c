//! A file becomes the response to one request.

use super::representation::{Coding, Representation};
use crate::outgoing::{self, Content, Following, Head, Outgoing, Part, Parts};
use crate::respond::Synthetic;
use sandarac_message::codings::Codings;
use sandarac_message::conditional::Role;
use sandarac_message::{Fields, FieldsBuf, Name, Piece, Timestamp};
use sandarac_net::{Body, BodyBroken};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The most bytes of one piece, so that what the log counts as sent is not far from it.
const PIECE: usize = 1 << 20;

/// The file that a request gets, in its coding.
#[derive(Clone, Copy)]
pub(crate) struct ChosenFile<'f>(&'f Representation);

/// The body of a response with a file.
pub(crate) struct FileBody {
    pieces: VecDeque<Piece>,
    next: Option<Piece>,
}

/// The file of `files`, of which the first is not encoded, that the request gets: the smallest in a coding
/// that it accepts.
pub(super) fn choose<'f>(files: &'f [Arc<Representation>], request: Fields<'_>) -> ChosenFile<'f> {
    let [plain, encoded @ ..] = files else { unreachable!("there is a file") };
    if encoded.is_empty() {
        return ChosenFile(plain);
    }
    let Some(codings) = Codings::of(request) else { return ChosenFile(plain) };
    let accepts = |file: &&Arc<Representation>| {
        file.coding().is_some_and(|coding: Coding| codings.accepts(coding.name()))
    };
    ChosenFile(encoded.iter().find(accepts).unwrap_or(plain))
}

impl<'f> ChosenFile<'f> {
    /// The response before it begins.
    pub(crate) fn outgoing(self, now: Timestamp) -> Outgoing<'f> {
        let content = outgoing::Representation {
            role: Role::Origin,
            received: now,
            length: Some(self.0.len()),
            held: None,
            parts: Parts::Several,
            seed: self.0.seed(),
        };
        Outgoing {
            status: 200,
            reason: b"",
            head: Head::Stored(&self.0.head, self.0),
            own: None,
            age: None,
            is_new: true,
            content: Content::Representation(content),
        }
    }

    /// `answer` with the file in place of its body. Conditions and ranges have no meaning for such a response.
    pub(crate) fn outgoing_as(self, answer: &Synthetic) -> Outgoing<'f> {
        let mut fields = answer.fields.clone();
        for name in [Name::ContentType, Name::ContentEncoding, Name::Vary] {
            if let Some(value) = self.0.head.shown().get(name) {
                // A head of a few fields has room for one more.
                let _ = fields.set(name, value);
            }
        }
        let made = Outgoing::made(answer.status, Fields::default(), self.0.len());
        Outgoing { head: Head::Own(fields), ..made }
    }

    /// The body, if one follows.
    pub(crate) fn body(self, following: Following) -> Option<FileBody> {
        let pieces = match following {
            Following::Nothing => return None,
            Following::All if self.0.len() == 0 => return None,
            Following::All => return Some(FileBody::of(self.0.piece(0..self.0.len()))),
            Following::Range(range) => return Some(FileBody::of(self.0.piece(range))),
            Following::Parts(parts) => parts.into_iter().map(|part| match part {
                Part::Text(text) => Piece::from(text),
                Part::Range(range) => self.0.piece(range),
            }),
        };
        let mut pieces: VecDeque<Piece> = pieces.collect();
        Some(FileBody { next: pieces.pop_front(), pieces })
    }
}

impl FileBody {
    fn of(piece: Piece) -> FileBody {
        FileBody { next: Some(piece), pieces: VecDeque::new() }
    }
}

impl Body for FileBody {
    fn poll_piece(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Piece, BodyBroken>>> {
        let Some(mut piece) = self.next.take() else { return Poll::Ready(None) };
        if piece.len() > PIECE {
            let first = piece.slice(0..PIECE);
            piece.advance(PIECE);
            self.next = Some(piece);
            return Poll::Ready(Some(Ok(first)));
        }
        self.next = self.pieces.pop_front();
        Poll::Ready(Some(Ok(piece)))
    }

    fn trailers(&self) -> Option<FieldsBuf> {
        None
    }
}
