//! The body of an assembled page.

use super::file_piece::FilePiece;
use super::fragment::Fragment;
use super::page::Page;
use super::source::{PagePart, Source};
use crate::Fault;
use bytes::Bytes;
use sandarac_cache::Object;
use sandarac_esi::{Include, escape_html};
use sandarac_message::{FieldsBuf, Piece};
use sandarac_net::{Body, BodyBroken, Held};
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Fragments that are asked for at a time: the one whose turn it is, and those after it.
const AHEAD: usize = 8;

/// Bytes of a page that is parsed as it arrives which may wait for a fragment before them.
const TEXT_AHEAD: usize = 1 << 20;

/// Parts that may wait for one. A page may be nothing but parts without text.
const PARTS_AHEAD: usize = 4096;

/// Pieces of at most so many bytes are copied to be sent with their neighbours.
const SMALL: usize = 16 << 10;

/// Bytes of pieces that are joined. The usual page is one piece.
const JOINED: usize = 32 << 10;

/// A page and its fragments, in order.
pub(crate) struct Assembly {
    page: Rc<Page>,
    source: Source,
    /// What was polled before the response began.
    first: Option<Piece>,
    /// What comes after the last piece, and could not be joined to it.
    unjoined: Option<Result<Piece, BodyBroken>>,
    /// What was taken from the source.
    items: VecDeque<Item>,
    /// How many of these are fragments that were asked for.
    fragments: usize,
    /// Bytes of text among them.
    text: usize,
    /// How the source has ended, if it has.
    ended: Option<Result<(), BodyBroken>>,
    /// Whether the bytes of files are needed.
    in_memory: bool,
}

enum Item {
    Text(Bytes),
    Range(Arc<Object>, Range<u64>),
    Fragment(Fragment),
    /// A fragment that was not asked for yet.
    Include(Box<Include>),
    File(FilePiece),
}

impl Assembly {
    /// The page from `source`. `in_memory` if the bytes of all pieces are needed.
    pub(crate) fn new(page: Rc<Page>, source: Source, in_memory: bool) -> Assembly {
        Assembly {
            page,
            source,
            first: None,
            unjoined: None,
            items: VecDeque::new(),
            fragments: 0,
            text: 0,
            ended: None,
            in_memory,
        }
    }

    /// Ready once the body can begin. Returns its length if all of it is there.
    ///
    /// # Errors
    /// Why it cannot be sent: a fragment is known to be missing that it needs, or nothing of it comes.
    pub(crate) fn poll_begun(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<u64>, Fault>> {
        let polled = self.poll_joined(cx);
        let fatal = |item: &Item| match item {
            Item::Fragment(fragment) => fragment.is_fatal(),
            _ => None,
        };
        if let Some(failure) = self.items.iter().find_map(fatal) {
            return Poll::Ready(Err(Fault::Fragment(failure)));
        }
        let piece = match ready!(polled) {
            Some(Ok(piece)) => piece,
            Some(Err(_)) => return Poll::Ready(Err(Fault::ResponseBroken)),
            None => return Poll::Ready(Ok(Some(0))),
        };
        let is_whole = self.items.is_empty() && self.unjoined.is_none() && self.ended == Some(Ok(()));
        let len = is_whole.then_some(piece.len() as u64);
        self.first = Some(piece);
        Poll::Ready(Ok(len))
    }

    /// The next piece, in which small ones that are there are joined: each that is sent alone would cost a system call.
    fn poll_joined(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, BodyBroken>>> {
        let mut one: Option<Piece> = None;
        let mut joined = Vec::new();
        let most = self.page.holder().read_limit().min(JOINED);
        loop {
            let next = match self.unjoined.take() {
                Some(next) => Poll::Ready(Some(next)),
                None => self.poll_one(cx),
            };
            let is_small = |piece: &Piece| piece.bytes().is_some_and(|bytes| bytes.len() <= SMALL);
            match (next, &one) {
                (Poll::Ready(Some(Ok(piece))), None) if !is_small(&piece) => {
                    return Poll::Ready(Some(Ok(piece)));
                }
                (Poll::Ready(Some(Ok(piece))), None) => one = Some(piece),
                (Poll::Ready(Some(Ok(piece))), Some(first))
                    if is_small(&piece) && first.len().max(joined.len()) + piece.len() <= most =>
                {
                    if joined.is_empty() {
                        joined.reserve_exact(most);
                        joined.extend_from_slice(first.bytes().unwrap_or_default());
                    }
                    joined.extend_from_slice(piece.bytes().unwrap_or_default());
                }
                (next, None) => return next,
                (next, Some(_)) => {
                    if let Poll::Ready(Some(next)) = next {
                        self.unjoined = Some(next);
                    }
                    if joined.is_empty() {
                        return Poll::Ready(one.map(Ok));
                    }
                    let joined = self.page.holder().keep(Held::Text, joined.into_boxed_slice());
                    return Poll::Ready(Some(Ok(joined.into())));
                }
            }
        }
    }

    /// Takes parts from the source, and asks for fragments.
    fn look_ahead(&mut self, cx: &mut Context<'_>) {
        while self.ended.is_none() && self.wants_parts() {
            let item = match self.source.poll_part(cx) {
                Poll::Pending => break,
                Poll::Ready(None) => {
                    self.ended = Some(Ok(()));
                    break;
                }
                Poll::Ready(Some(Err(broken))) => {
                    self.ended = Some(Err(broken));
                    break;
                }
                Poll::Ready(Some(Ok(PagePart::Text(text)))) => Item::Text(text),
                Poll::Ready(Some(Ok(PagePart::Range(object, range)))) => Item::Range(object, range),
                Poll::Ready(Some(Ok(PagePart::Variable(variable)))) => {
                    let mut text = Vec::new();
                    escape_html(self.page.value(&variable).unwrap_or_default(), &mut text);
                    Item::Text(text.into())
                }
                Poll::Ready(Some(Ok(PagePart::Include(include))))
                    if self.fragments == 0
                        || self.fragments < AHEAD && self.page.holder().may_look_ahead() =>
                {
                    self.fragments += 1;
                    Item::Fragment(Fragment::ask(&self.page, &include))
                }
                Poll::Ready(Some(Ok(PagePart::Include(include)))) => {
                    Item::Include(Box::new(include.into_owned()))
                }
            };
            if let Item::Text(text) = &item {
                self.text += text.len();
            }
            self.items.push_back(item);
        }
        // One that is missing is replaced before its turn comes.
        let mut asked = self.fragments;
        for item in &mut self.items {
            match item {
                _ if asked == 0 => break,
                Item::Fragment(fragment) => {
                    asked -= 1;
                    let _ = fragment.poll_begun(cx);
                }
                _ => {}
            }
        }
    }

    /// Whether more of the source is to be read. A page that is not stored occupies its backend until it has been read, and
    /// its fragments may need the same one: it is read on while they are waited for.
    fn wants_parts(&self) -> bool {
        let is_waiting = matches!(self.items.front(), Some(Item::Fragment(_)));
        let (text, parts) = match (is_waiting, self.page.holder().may_look_ahead()) {
            (true, true) => (TEXT_AHEAD, PARTS_AHEAD),
            (false, true) => (JOINED, PARTS_AHEAD / 16),
            (_, false) => (1, 1),
        };
        match self.source {
            Source::Template(..) => self.fragments < AHEAD && self.items.len() < parts,
            Source::Stream { .. } => self.text < text && self.items.len() < parts,
        }
    }

    /// Drops the first item. If it was a fragment, the next one is asked for.
    fn pop(&mut self) {
        match self.items.pop_front() {
            Some(Item::Text(text)) => self.text -= text.len(),
            Some(Item::Fragment(_)) => {
                self.fragments -= 1;
                let unasked = self.items.iter_mut().find(|item| matches!(item, Item::Include(_)));
                if let Some(item) = unasked
                    && let Item::Include(include) = item
                {
                    self.fragments += 1;
                    *item = Item::Fragment(Fragment::ask(&self.page, include));
                }
            }
            Some(Item::Range(..) | Item::Include(_) | Item::File(_)) | None => {}
        }
    }

    /// The next piece as it is.
    fn poll_one(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, BodyBroken>>> {
        loop {
            self.look_ahead(cx);
            let piece = match self.items.front_mut() {
                None => {
                    return match self.ended {
                        Some(Ok(())) => Poll::Ready(None),
                        Some(Err(broken)) => Poll::Ready(Some(Err(broken))),
                        None => Poll::Pending,
                    };
                }
                Some(Item::Text(text)) => {
                    let text = text.clone();
                    self.pop();
                    Some(text.into())
                }
                Some(Item::Range(object, range)) => {
                    let piece = object.body().slice(range.clone()).next();
                    range.start += piece.as_ref().map_or(0, |piece| piece.len() as u64);
                    if range.is_empty() || piece.is_none() {
                        self.pop();
                    }
                    piece
                }
                Some(Item::File(file)) => match ready!(file.poll_bytes(cx)) {
                    Some(Ok(bytes)) => Some(self.page.holder().keep(Held::Text, bytes).into()),
                    Some(Err(broken)) => return Poll::Ready(Some(Err(broken))),
                    None => {
                        self.pop();
                        None
                    }
                },
                // As many as may be are asked for, from the first on.
                Some(Item::Include(_)) => unreachable!("the first fragment was asked for"),
                Some(Item::Fragment(fragment)) => match ready!(fragment.poll_piece(cx)) {
                    Some(Ok(Piece::File(range))) if self.in_memory => {
                        self.items.push_front(Item::File(FilePiece::new(range)));
                        None
                    }
                    Some(Ok(piece)) => Some(piece),
                    Some(Err(broken)) => return Poll::Ready(Some(Err(broken))),
                    None => {
                        self.pop();
                        None
                    }
                },
            };
            if let Some(piece) = piece.filter(|piece: &Piece| !piece.is_empty()) {
                return Poll::Ready(Some(Ok(piece)));
            }
        }
    }
}

impl Body for Assembly {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, BodyBroken>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(first))),
            None => self.poll_joined(cx),
        }
    }

    fn trailers(&self) -> Option<FieldsBuf> {
        None
    }
}
