//! Pages that are parsed as they arrive.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::parser::{Parser, Part};
use crate::tag::Include;
use crate::text::Variable;

/// A part of a page, with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Bytes of the body, never none.
    Text(Bytes),
    /// A fragment.
    Include(Box<Include>),
    /// The value of a variable.
    Variable(Variable),
}

/// Parses a page as it arrives. Keeps the pieces in which a tag has begun that is not whole.
#[derive(Debug, Default)]
pub struct PageStream {
    parser: Parser,
    parts: Vec<Part>,
    /// Pieces of which some bytes were not returned, or left out, yet.
    pieces: VecDeque<Bytes>,
    /// The position of the first of their bytes.
    at: u64,
}

impl PageStream {
    /// A stream at the beginning of a page.
    pub fn new() -> PageStream {
        PageStream::default()
    }

    /// Takes the next piece, and adds the segments that it completes.
    pub fn push(&mut self, piece: Bytes, segments: &mut VecDeque<Segment>) {
        self.parser.push(&piece, &mut self.parts);
        self.pieces.push_back(piece);
        self.segment(segments);
        let undecided = self.parser.undecided_from();
        self.skip_to(undecided);
    }

    /// Ends the page.
    pub fn finish(mut self, segments: &mut VecDeque<Segment>) {
        std::mem::take(&mut self.parser).finish(&mut self.parts);
        self.segment(segments);
    }

    /// Bytes that are kept, because they may be markup. The memory of the pieces they are in is kept with them.
    pub fn held(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    fn segment(&mut self, segments: &mut VecDeque<Segment>) {
        for part in std::mem::take(&mut self.parts) {
            match part {
                Part::Include(include) => segments.push_back(Segment::Include(include)),
                Part::Variable(variable) => segments.push_back(Segment::Variable(variable)),
                Part::Text(range) => {
                    self.skip_to(range.start);
                    while self.at < range.end
                        && let Some(piece) = self.pieces.front()
                    {
                        let len = piece.len().min((range.end - self.at) as usize);
                        segments.push_back(Segment::Text(piece.slice(..len)));
                        self.skip_to(self.at + len as u64);
                    }
                }
            }
        }
    }

    /// Drops the bytes before a position.
    fn skip_to(&mut self, position: u64) {
        while self.at < position
            && let Some(piece) = self.pieces.front_mut()
        {
            let len = piece.len().min((position - self.at) as usize);
            self.at += len as u64;
            bytes::Buf::advance(piece, len);
            if piece.is_empty() {
                self.pieces.pop_front();
            }
        }
    }
}
