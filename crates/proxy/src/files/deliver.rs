//! A file becomes the response to one request: whole, in part, or as 304 (Not Modified) or 412 (Precondition Failed).

use super::representation::{Coding, Representation};
use crate::respond::{Synthetic, reason};
use bytes::Bytes;
use sandarac_message::codings::Codings;
use sandarac_message::conditional::{self, Evaluation, Role};
use sandarac_message::range::{self, ByteRange, ContentRange, Multipart, Selection};
use sandarac_message::status_fields::CacheStatus;
use sandarac_message::{Field, Fields, FieldsBuf, Method, Name, Piece, RequestHead, Timestamp, date};
use sandarac_net::{Base, Body, BodyBroken, Length, Response};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The most bytes of one piece, so that what the log counts as sent is not far from it.
const PIECE: usize = 1 << 20;

/// The delivery of a file to one request.
pub(super) struct Delivery<'a> {
    pub(super) file: &'a Representation,
    pub(super) request: &'a RequestHead<'a>,
    pub(super) now: Timestamp,
    pub(super) cache_status: Option<(CacheStatus<'a>, &'a str)>,
}

/// The body of a response with a file.
pub(crate) struct FileBody {
    pieces: VecDeque<Piece>,
    next: Option<Piece>,
}

/// A response whose head was sent.
pub(super) struct Delivered {
    pub(super) status: u16,
    pub(super) body: Option<FileBody>,
}

/// The file of `files`, of which the first is not encoded, that the request gets: the smallest in a coding that it accepts.
pub(super) fn choose<'f>(files: &'f [Arc<Representation>], request: Fields<'_>) -> &'f Arc<Representation> {
    let [plain, encoded @ ..] = files else { unreachable!("there is a file") };
    if encoded.is_empty() {
        return plain;
    }
    let Some(codings) = Codings::of(request) else { return plain };
    let accepts = |file: &&Arc<Representation>| {
        file.coding().is_some_and(|coding: Coding| codings.accepts(coding.name()))
    };
    encoded.iter().find(accepts).unwrap_or(plain)
}

/// Passes the head of `answer`, with the file in place of its body, to `begin`. Returns the body, if one follows.
pub(super) fn begin_as(
    file: &Representation,
    answer: &Synthetic,
    method: Method,
    now: Timestamp,
    begin: impl FnOnce(Response<'_>),
) -> Option<FileBody> {
    let mut fields = answer.fields.clone();
    for name in [Name::ContentType, Name::ContentEncoding, Name::Vary] {
        if let Some(value) = file.head.shown().get(name) {
            // A head of a few fields has room for one more.
            let _ = fields.set(name, value);
        }
    }
    let date = date::format(now);
    let (reason, len) = (reason(answer.status).as_bytes(), file.len());
    let base = Base::Selected(fields.view(), &|_| true);
    let added = &[(Name::Date, &date[..])];
    begin(Response { added, ..Response::new(answer.status, reason, base, Length::Known(len)) });
    (method != Method::Head && len > 0).then(|| FileBody::of(file.piece(0..len)))
}

impl Delivery<'_> {
    /// Passes the head of the response to `begin`.
    pub(super) fn begin(self, begin: impl FnOnce(Response<'_>)) -> Delivered {
        let fields = self.request.fields;
        // One pass: most requests have neither a condition nor a range.
        let special = |name| {
            matches!(
                name,
                Name::IfNoneMatch
                    | Name::IfModifiedSince
                    | Name::IfMatch
                    | Name::IfUnmodifiedSince
                    | Name::Range
            )
        };
        if !fields.iter().any(|field| special(field.id)) {
            return self.whole(begin);
        }
        let (shown, method) = (self.file.head.shown(), self.request.method);
        match conditional::evaluate(Role::Origin, method, fields, 200, shown, self.now) {
            Evaluation::NotModified => return self.not_modified(begin),
            Evaluation::Failed => return self.empty(begin, 412, b"Precondition Failed", None),
            Evaluation::Proceed => {}
        }
        let wanted = fields.get(Name::Range).filter(|_| method == Method::Get);
        let wanted = wanted.filter(|_| conditional::if_range_holds(fields, shown, self.now));
        let len = self.file.len();
        match wanted.map_or(Selection::Whole, |value| range::select(value, len)) {
            Selection::Whole => self.whole(begin),
            Selection::Single(range) => self.part(begin, range),
            Selection::Several(ranges) => self.parts(begin, &ranges),
            Selection::Unsatisfiable => {
                let mut value = Vec::new();
                ContentRange::write_unsatisfied(len, &mut value);
                self.empty(begin, 416, b"Range Not Satisfiable", Some(&value))
            }
        }
    }

    fn whole(self, begin: impl FnOnce(Response<'_>)) -> Delivered {
        let date = date::format(self.now);
        let added = [(Name::Date, &date[..])];
        let response = self.response(200, b"OK", Base::Stored(&self.file.head, self.file), Length::Told);
        begin(Response { added: &added, ..response });
        let len = self.file.len();
        let body =
            (self.request.method != Method::Head && len > 0).then(|| FileBody::of(self.file.piece(0..len)));
        Delivered { status: 200, body }
    }

    fn not_modified(self, begin: impl FnOnce(Response<'_>)) -> Delivered {
        let keep =
            |field: &Field<'_>| field.id != Name::ContentLength && conditional::in_not_modified(field, true);
        let date = date::format(self.now);
        let added = [(Name::Date, &date[..])];
        let base = Base::Selected(self.file.head.shown(), &keep);
        begin(Response { added: &added, ..self.response(304, b"Not Modified", base, Length::Told) });
        Delivered { status: 304, body: None }
    }

    fn part(self, begin: impl FnOnce(Response<'_>), range: ByteRange) -> Delivered {
        let mut value = Vec::new();
        ContentRange::of(range, self.file.len()).write(&mut value);
        self.begin_partial(begin, Name::ContentRange, &value, range.len());
        Delivered { status: 206, body: Some(FileBody::of(self.file.piece(range.first..range.last + 1))) }
    }

    fn parts(self, begin: impl FnOnce(Response<'_>), ranges: &[ByteRange]) -> Delivered {
        let content_type = self.file.head.shown().get(Name::ContentType);
        // Two files or two requests never share a boundary.
        let seed = self.file.seed() ^ u128::from(self.now.as_millis()) << 64;
        let multipart = Multipart::new(seed, content_type, self.file.len());
        let mut value = Vec::new();
        multipart.content_type(&mut value);
        self.begin_partial(begin, Name::ContentType, &value, multipart.content_length(ranges));
        let mut pieces = VecDeque::with_capacity(2 * ranges.len() + 1);
        let text = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut text = Vec::new();
            write(&mut text);
            Piece::from(Bytes::from(text))
        };
        for range in ranges {
            pieces.push_back(text(&|out| multipart.part(*range, out)));
            pieces.push_back(self.file.piece(range.first..range.last + 1));
        }
        pieces.push_back(text(&|out| multipart.end(out)));
        Delivered { status: 206, body: Some(FileBody { next: pieces.pop_front(), pieces }) }
    }

    /// Begins a 206 whose body has `length` bytes. It has the fields of the whole, except that `name` has `value`.
    fn begin_partial(&self, begin: impl FnOnce(Response<'_>), name: Name, value: &[u8], length: u64) {
        let keep = |field: &Field<'_>| field.id != Name::ContentLength && field.id != name;
        let date = date::format(self.now);
        let added = [(name, value), (Name::Date, &date[..])];
        let base = Base::Selected(self.file.head.shown(), &keep);
        begin(Response {
            added: &added,
            ..self.response(206, b"Partial Content", base, Length::Known(length))
        });
    }

    fn empty(
        self,
        begin: impl FnOnce(Response<'_>),
        status: u16,
        reason: &'static [u8],
        range: Option<&[u8]>,
    ) -> Delivered {
        let date = date::format(self.now);
        let with_range = [(Name::Date, &date[..]), (Name::ContentRange, range.unwrap_or_default())];
        let added = if range.is_some() { &with_range[..] } else { &with_range[..1] };
        let base = Base::Selected(Fields::default(), &|_| true);
        begin(Response { added, ..self.response(status, reason, base, Length::Known(0)) });
        Delivered { status, body: None }
    }

    fn response<'r>(&'r self, status: u16, reason: &'r [u8], base: Base<'r>, length: Length) -> Response<'r> {
        let cache_status = self.cache_status.as_ref().map(|(status, name)| (*status, *name));
        Response { cache_status, ..Response::new(status, reason, base, length) }
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
