//! The one way out: every response of this process is an [`Outgoing`] before it begins. It gets its form
//! here, whole, in part, or as 304 (Not Modified), and what all responses to the request have.

mod form;
#[cfg(test)]
mod tests;

use crate::report::reason::reason;
use bytes::Bytes;
use sandarac_message::range::{ByteRange, ContentRange, Multipart};
use sandarac_message::status_fields::CacheStatus;
use sandarac_message::{
    Field, Fields, FieldsBuf, Method, Name, RequestHead, StoredHead, Timestamp, conditional, date,
};
use sandarac_net::{Base, Length, Response, StoredBlock};
use std::collections::VecDeque;
use std::ops::Range;

use form::{Form, is_bodiless};
pub(crate) use form::{Parts, Representation};

/// The longest Content-Range, with three numbers of 20 digits. Room for less would be taken piece by piece.
const MAX_CONTENT_RANGE: usize = "bytes -/".len() + 3 * 20;

/// A response before it begins.
pub(crate) struct Outgoing<'a> {
    pub(crate) status: u16,
    /// The reason phrase; empty where the head has a status line.
    pub(crate) reason: &'a [u8],
    pub(crate) head: Head<'a>,
    /// Fields for this client alone.
    pub(crate) own: Option<&'a FieldsBuf>,
    /// Age in seconds (RFC 9111 §5.1).
    pub(crate) age: Option<u64>,
    /// Whether it is made now, so that it has the Date of now, if it has none.
    pub(crate) is_new: bool,
    pub(crate) content: Content,
}

/// The fields of a response.
pub(crate) enum Head<'a> {
    /// Those of a stored head, with the place for its header block.
    Stored(&'a StoredHead, &'a dyn StoredBlock),
    /// Those of a response that is kept.
    Kept(Fields<'a>),
    /// Those of this response alone.
    Own(FieldsBuf),
}

/// The content of a response, as far as its form depends on it.
pub(crate) enum Content {
    /// It is sent as it comes.
    AsItComes(Length),
    /// The request may have a condition on it, or ask for parts of it.
    Representation(Representation),
}

/// The terms of a request: what every response to it has beside its own fields.
pub(crate) struct Terms<'a> {
    pub(crate) request: &'a RequestHead<'a>,
    pub(crate) now: Timestamp,
    /// The value of Strict-Transport-Security.
    pub(crate) hsts: Option<&'a [u8]>,
    /// Cache-Status, with the name of the cache.
    pub(crate) cache_status: Option<(CacheStatus<'a>, &'a str)>,
}

/// A response that has begun.
pub(crate) struct Begun {
    pub(crate) status: u16,
    pub(crate) body: Following,
}

/// The part of its content that follows the head of a response.
pub(crate) enum Following {
    Nothing,
    All,
    Range(Range<u64>),
    Parts(VecDeque<Part>),
}

/// A part of a multipart body.
pub(crate) enum Part {
    Text(Bytes),
    Range(Range<u64>),
}

impl<'a> Outgoing<'a> {
    /// A response that is made now, and sent as it is.
    pub(crate) fn made(status: u16, fields: Fields<'a>, length: u64) -> Outgoing<'a> {
        let length = if is_bodiless(status) { Length::Told } else { Length::Known(length) };
        Outgoing {
            status,
            reason: reason(status).as_bytes(),
            head: Head::Kept(fields),
            own: None,
            age: None,
            is_new: true,
            content: Content::AsItComes(length),
        }
    }

    /// A response of an origin that is sent as it comes.
    pub(crate) fn relayed(status: u16, head: Head<'a>, length: Length) -> Outgoing<'a> {
        let content = Content::AsItComes(length);
        Outgoing { status, reason: b"", head, own: None, age: None, is_new: false, content }
    }

    /// Passes the head in the form that the request gets to `begin`.
    pub(crate) fn begin(&mut self, terms: &Terms<'_>, begin: impl FnOnce(Response<'_>)) -> Begun {
        let form = match &self.content {
            Content::AsItComes(length) => Form::Whole(*length),
            Content::Representation(content) => content.form(terms.request, self.status, self.fields()),
        };
        match form {
            Form::Whole(length) => self.whole(terms, length, begin),
            Form::NotModified => self.not_modified(terms, begin),
            Form::Failed => self.empty(terms, 412, None, begin),
            Form::Part(range, content_range) => self.part(terms, range, content_range, begin),
            Form::Parts(ranges, complete) => self.parts(terms, &ranges, complete, begin),
            Form::Unsatisfiable(complete) => {
                let mut range = Vec::with_capacity(MAX_CONTENT_RANGE);
                ContentRange::write_unsatisfied(complete, &mut range);
                self.empty(terms, 416, Some(&range), begin)
            }
        }
    }

    /// All fields that clients get.
    fn fields(&self) -> Fields<'_> {
        match &self.head {
            Head::Stored(head, _) => head.shown(),
            Head::Kept(fields) => *fields,
            Head::Own(fields) => fields.view(),
        }
    }

    /// The representation that the content is; none if it is sent as it comes.
    fn representation(&self) -> Option<&Representation> {
        match &self.content {
            Content::AsItComes(_) => None,
            Content::Representation(content) => Some(content),
        }
    }

    fn whole(&mut self, terms: &Terms<'_>, length: Length, begin: impl FnOnce(Response<'_>)) -> Begun {
        let status = self.status;
        let date = (self.is_new && !self.fields().has(Name::Date)).then(|| date::format(terms.now));
        let date = date.as_ref().map(|date| [(Name::Date, &date[..])]);
        let base = match &mut self.head {
            Head::Stored(head, block) => Base::Stored(head, *block),
            Head::Kept(fields) => Base::Selected(*fields, &|_| true),
            Head::Own(fields) => Base::Owned(std::mem::take(fields)),
        };
        let added = date.as_ref().map_or(&[][..], |date| &date[..]);
        let response = terms.response(status, self.reason, base, length);
        begin(Response { own: self.own, age: self.age, added, ..response });
        let is_empty = is_bodiless(status) || terms.request.method == Method::Head;
        Begun { status, body: if is_empty { Following::Nothing } else { Following::All } }
    }

    fn not_modified(&self, terms: &Terms<'_>, begin: impl FnOnce(Response<'_>)) -> Begun {
        let fields = self.fields();
        let has_etag = fields.has(Name::Etag);
        let keep = |field: &Field<'_>| {
            field.id != Name::ContentLength && conditional::in_not_modified(field, has_etag)
        };
        let date = self.is_new.then(|| date::format(terms.now));
        let date = date.as_ref().map(|date| [(Name::Date, &date[..])]);
        let added = date.as_ref().map_or(&[][..], |date| &date[..]);
        let response = terms.response(304, b"Not Modified", Base::Selected(fields, &keep), Length::Told);
        begin(Response { own: self.own, age: self.age, added, ..response });
        Begun { status: 304, body: Following::Nothing }
    }

    fn part(
        &self,
        terms: &Terms<'_>,
        range: ByteRange,
        content_range: ContentRange,
        begin: impl FnOnce(Response<'_>),
    ) -> Begun {
        let mut value = Vec::with_capacity(MAX_CONTENT_RANGE);
        content_range.write(&mut value);
        self.partial(terms, (Name::ContentRange, &value), range.len(), begin);
        // The position within the part of the representation that there is.
        let held = self.representation().and_then(|content| content.held);
        let start = range.first - held.map_or(0, |held| held.range.first);
        Begun { status: 206, body: Following::Range(start..start + range.len()) }
    }

    fn parts(
        &self,
        terms: &Terms<'_>,
        ranges: &[ByteRange],
        complete: u64,
        begin: impl FnOnce(Response<'_>),
    ) -> Begun {
        let content_type = self.fields().get(Name::ContentType);
        // Two representations or two requests never share a boundary, and a body's author cannot know it.
        let seed =
            self.representation().map_or(0, |content| content.seed) ^ u128::from(terms.now.as_millis()) << 64;
        let multipart = Multipart::new(seed, content_type, complete);
        let mut value = Vec::new();
        multipart.content_type(&mut value);
        self.partial(terms, (Name::ContentType, &value), multipart.content_length(ranges), begin);
        let mut parts = VecDeque::with_capacity(2 * ranges.len() + 1);
        let text = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut text = Vec::new();
            write(&mut text);
            Part::Text(text.into())
        };
        for range in ranges {
            parts.push_back(text(&|out| multipart.part(*range, out)));
            parts.push_back(Part::Range(range.first..range.last + 1));
        }
        parts.push_back(text(&|out| multipart.end(out)));
        Begun { status: 206, body: Following::Parts(parts) }
    }

    /// Begins a 206 whose body has `length` bytes. It has the fields of the whole, except that `name` has
    /// `value`.
    fn partial(
        &self,
        terms: &Terms<'_>,
        (name, value): (Name, &[u8]),
        length: u64,
        begin: impl FnOnce(Response<'_>),
    ) {
        let keep = |field: &Field<'_>| field.id != Name::ContentLength && field.id != name;
        let base = Base::Selected(self.fields(), &keep);
        self.reduced(terms, 206, base, (Some((name, value)), self.is_new), length, begin);
    }

    /// Begins a response without the fields of the representation, and without a body.
    fn empty(
        &self,
        terms: &Terms<'_>,
        status: u16,
        range: Option<&[u8]>,
        begin: impl FnOnce(Response<'_>),
    ) -> Begun {
        let base = Base::Selected(Fields::default(), &|_| true);
        let range = range.map(|range| (Name::ContentRange, range));
        self.reduced(terms, status, base, (range, true), 0, begin);
        Begun { status, body: Following::Nothing }
    }

    /// Begins a response with a part of its fields, and with a field in addition, the Date of now, or both.
    fn reduced(
        &self,
        terms: &Terms<'_>,
        status: u16,
        base: Base<'_>,
        (field, is_dated): (Option<(Name, &[u8])>, bool),
        length: u64,
        begin: impl FnOnce(Response<'_>),
    ) {
        let date = if is_dated { date::format(terms.now) } else { [0; date::LEN] };
        let date = (Name::Date, &date[..]);
        let both = [field.unwrap_or(date), date];
        let added = &both[usize::from(field.is_none())..1 + usize::from(is_dated)];
        let response = terms.response(status, reason(status).as_bytes(), base, Length::Known(length));
        begin(Response { own: self.own, age: self.age, added, ..response });
    }
}

impl Terms<'_> {
    /// A response with what all have.
    fn response<'r>(&'r self, status: u16, reason: &'r [u8], base: Base<'r>, length: Length) -> Response<'r> {
        let cache_status = self.cache_status.as_ref().map(|(status, name)| (*status, *name));
        Response { cache_status, hsts: self.hsts, ..Response::new(status, reason, base, length) }
    }
}
