//! Deliver: a stored object becomes the response to one request, whole, in part, or as "not modified".

use crate::handling::Handling;
use crate::site::Site;
use bytes::Bytes;
use sandarac_cache::Object;
use sandarac_message::conditional::{self, Outcome as Condition, Role};
use sandarac_message::range::{self, ByteRange, ContentRange, Multipart, Selection};
use sandarac_message::{FieldsBuf, Method, Name, RequestHead, Timestamp, Version, date};
use sandarac_net::Output;
use sandarac_wire::h1::encode::{Head, decimal};
use std::sync::Arc;

/// How one object answers one request.
pub(crate) struct Delivery<'a> {
    pub(crate) site: &'a Site,
    pub(crate) object: &'a Arc<Object>,
    pub(crate) request: &'a RequestHead<'a>,
    pub(crate) now: Timestamp,
    pub(crate) handling: &'a Handling,
    /// Fields for this client alone.
    pub(crate) own: Option<&'a FieldsBuf>,
    /// Whether the connection stays open.
    pub(crate) keep_alive: bool,
}

/// What was put into the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub(crate) status: u16,
    /// Bytes of the body.
    pub(crate) bytes: u64,
    /// What of the body is still to come, from the object's reader; nothing where the output is complete.
    pub(crate) rest: Option<Rest>,
    /// Whether the connection can serve another request after it.
    pub(crate) keep_alive: bool,
}

/// What of an arriving body goes to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    pub(crate) skip: u64,
    pub(crate) take: u64,
    pub(crate) chunked: bool,
}

/// Which form of the object the request gets.
enum Form {
    Whole,
    NotModified,
    Part(ByteRange, ContentRange),
    Parts(Vec<ByteRange>, u64),
    Unsatisfiable(u64),
}

impl Delivery<'_> {
    /// Encodes the response.
    pub(crate) fn encode(&self, out: &mut Output) -> Delivered {
        match self.form() {
            Form::Whole => self.whole(out),
            Form::NotModified => self.not_modified(out),
            Form::Part(range, content_range) => self.part(out, range, content_range),
            Form::Parts(ranges, complete) => self.parts(out, &ranges, complete),
            Form::Unsatisfiable(complete) => self.unsatisfiable(out, complete),
        }
    }

    fn form(&self) -> Form {
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
        let fields = self.request.fields;
        if !fields.iter().any(|field| special(field.id)) && self.object.range().is_none() {
            return Form::Whole;
        }
        let head = self.object.head();
        let received = self.object.received();
        let condition = conditional::evaluate(
            Role::Cache,
            self.request.method,
            fields,
            head.status(),
            head.shown(),
            received,
        );
        if condition == Condition::NotModified {
            return Form::NotModified;
        }
        let wanted = fields.get(Name::Range).filter(|_| self.request.method == Method::Get);
        if let Some(held) = self.object.range() {
            return self.part_of_part(wanted, held);
        }
        let length = self.object.body().len();
        match (wanted, length) {
            (Some(value), Some(length))
                if head.status() == 200 && conditional::if_range_holds(fields, head.shown(), received) =>
            {
                match range::select(value, length) {
                    Selection::Whole => Form::Whole,
                    Selection::Single(range) => Form::Part(range, ContentRange::of(range, length)),
                    Selection::Several(ranges) if self.object.body().is_whole() => {
                        Form::Parts(ranges, length)
                    }
                    // Parts out of order cannot be cut from a body that is still arriving.
                    Selection::Several(_) => Form::Whole,
                    Selection::Unsatisfiable => Form::Unsatisfiable(length),
                }
            }
            _ => Form::Whole,
        }
    }

    /// A stored part serves what it was found to cover. It goes out as it came where all of it is asked for, and where
    /// its body is known not to be as long as its Content-Range says: nothing can be cut from that.
    fn part_of_part(&self, wanted: Option<&[u8]>, held: ContentRange) -> Form {
        let range = held.range;
        let spec = wanted.and_then(range::parse).and_then(|specs| specs.first().copied());
        let length = self.object.body().len();
        match spec.and_then(|spec| held.serves(&spec)) {
            Some(served) if served != range && length.is_none_or(|length| length == range.len()) => {
                Form::Part(served, ContentRange { range: served, ..held })
            }
            _ => Form::Whole,
        }
    }

    fn whole(&self, out: &mut Output) -> Delivered {
        let object = self.object;
        let head = object.head();
        let body = object.body();
        // Asked once: a body whose head says that it comes in chunks may end before the head does.
        let is_whole = body.is_whole();
        let inline = out.inline();
        inline.extend_from_slice(head.encoded());
        let bodiless = matches!(head.status(), 204 | 304) || self.request.method == Method::Head;
        let mut chunked = false;
        let mut keep_alive = self.keep_alive;
        if !head.shown().has(Name::ContentLength) && !matches!(head.status(), 204 | 304) {
            match body.len() {
                Some(length) => length_line(inline, length),
                None if bodiless => {}
                None if self.request.version == Version::Http10 => keep_alive = false,
                None => {
                    inline.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
                    chunked = true;
                }
            }
        }
        self.end(out, keep_alive);
        let mut delivered = Delivered { status: head.status(), bytes: 0, rest: None, keep_alive };
        if bodiless {
            return delivered;
        }
        delivered.bytes = body.len().unwrap_or(0);
        if is_whole {
            body.segments().for_each(|segment| out.share(segment));
        } else {
            delivered.rest = Some(Rest { skip: 0, take: u64::MAX, chunked });
        }
        delivered
    }

    fn not_modified(&self, out: &mut Output) -> Delivered {
        let has_etag = self.object.head().shown().has(Name::Etag);
        let inline = out.inline();
        inline.extend_from_slice(b"HTTP/1.1 304 Not Modified\r\n");
        self.lines(inline, |name, field| {
            name != Name::ContentLength && conditional::in_not_modified(field, has_etag)
        });
        self.end(out, self.keep_alive);
        Delivered { status: 304, bytes: 0, rest: None, keep_alive: self.keep_alive }
    }

    fn part(&self, out: &mut Output, range: ByteRange, content_range: ContentRange) -> Delivered {
        self.partial_head(out, Name::ContentRange, |value| content_range.write(value), range.len());
        let mut delivered =
            Delivered { status: 206, bytes: range.len(), rest: None, keep_alive: self.keep_alive };
        if self.request.method == Method::Head {
            delivered.bytes = 0;
            return delivered;
        }
        // The position within what is held of the representation.
        let start = range.first - self.object.range().map_or(0, |held| held.range.first);
        let body = self.object.body();
        if body.is_whole() {
            body.slice(start..start + range.len()).for_each(|segment| out.share(segment));
        } else {
            delivered.rest = Some(Rest { skip: start, take: range.len(), chunked: false });
        }
        delivered
    }

    fn parts(&self, out: &mut Output, ranges: &[ByteRange], complete: u64) -> Delivered {
        let content_type = self.object.head().shown().get(Name::ContentType);
        // Two objects or two requests never share a boundary, and a body's author cannot know it.
        let seed = u128::from_le_bytes(self.object.key().to_bytes()) ^ u128::from(self.now.as_millis()) << 64;
        let multipart = Multipart::new(seed, content_type, complete);
        let length = multipart.content_length(ranges);
        self.partial_head(out, Name::ContentType, |value| multipart.content_type(value), length);
        for range in ranges {
            multipart.part(*range, out.inline());
            self.object.body().slice(range.first..range.last + 1).for_each(|segment| out.share(segment));
        }
        multipart.end(out.inline());
        Delivered { status: 206, bytes: length, rest: None, keep_alive: self.keep_alive }
    }

    /// The head of a 206 whose body has `length` bytes: the stored lines, but for `name`, whose value `write` appends.
    fn partial_head(&self, out: &mut Output, name: Name, write: impl FnOnce(&mut Vec<u8>), length: u64) {
        let inline = out.inline();
        inline.extend_from_slice(b"HTTP/1.1 206 Partial Content\r\n");
        self.lines(inline, |stored, _| stored != Name::ContentLength && stored != name);
        inline.extend_from_slice(name.text().as_bytes());
        inline.extend_from_slice(b": ");
        write(inline);
        inline.extend_from_slice(b"\r\n");
        length_line(inline, length);
        self.end(out, self.keep_alive);
    }

    fn unsatisfiable(&self, out: &mut Output, complete: u64) -> Delivered {
        let inline = out.inline();
        inline.extend_from_slice(b"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: ");
        ContentRange::write_unsatisfied(complete, inline);
        inline.extend_from_slice(b"\r\nContent-Length: 0\r\nDate: ");
        inline.extend_from_slice(&date::format(self.now));
        inline.extend_from_slice(b"\r\n");
        self.end(out, self.keep_alive);
        Delivered { status: 416, bytes: 0, rest: None, keep_alive: self.keep_alive }
    }

    /// Writes those of the stored field lines that are for clients and for which `keep` says so.
    fn lines(&self, inline: &mut Vec<u8>, keep: impl Fn(Name, &sandarac_message::Field<'_>) -> bool) {
        for field in self.object.head().shown().iter().filter(|field| keep(field.id, field)) {
            inline.extend_from_slice(field.name);
            inline.extend_from_slice(b": ");
            inline.extend_from_slice(field.value);
            inline.extend_from_slice(b"\r\n");
        }
    }

    /// Writes what belongs to this response alone, and the empty line.
    fn end(&self, out: &mut Output, keep_alive: bool) {
        let inline = out.inline();
        if let Some(own) = self.own {
            own.encode(inline);
        }
        let age = self.object.lifetimes().age(self.now).as_secs();
        let told = self.own.is_some_and(|own| own.view().has(Name::Age));
        if !told && (age > 0 || self.handling.is_reuse()) {
            inline.extend_from_slice(b"Age: ");
            inline.extend_from_slice(decimal(age, &mut [0; 20]));
            inline.extend_from_slice(b"\r\n");
        }
        if self.site.config.cache.cache_status {
            self.handling.encode(self.site.name(), inline);
        }
        connection(inline, self.request.version, keep_alive);
        inline.extend_from_slice(b"\r\n");
    }
}

fn length_line(inline: &mut Vec<u8>, length: u64) {
    inline.extend_from_slice(b"Content-Length: ");
    inline.extend_from_slice(decimal(length, &mut [0; 20]));
    inline.extend_from_slice(b"\r\n");
}

/// Says what becomes of the connection, where the version does not say it (RFC 9112 §9.3).
pub(crate) fn connection(inline: &mut Vec<u8>, version: Version, keep_alive: bool) {
    match (version, keep_alive) {
        (_, false) => inline.extend_from_slice(b"Connection: close\r\n"),
        (Version::Http10, true) => inline.extend_from_slice(b"Connection: keep-alive\r\n"),
        _ => {}
    }
}

/// Encodes a response made here, body included.
pub(crate) fn synthetic(
    out: &mut Output,
    answer: &crate::respond::Synthetic,
    request: Option<&RequestHead<'_>>,
    cache_status: Option<(&Handling, &str)>,
    now: Timestamp,
    keep_alive: bool,
) {
    let inline = out.inline();
    let bodiless = matches!(answer.status, 100..200 | 204 | 304);
    let mut head = Head::response(inline, answer.status, crate::respond::reason(answer.status).as_bytes());
    for field in answer.fields.view().iter() {
        head.field(field.name, field.value);
    }
    if !answer.fields.view().has(Name::Date) {
        head.known(Name::Date, &date::format(now));
    }
    if !bodiless {
        head.known(Name::ContentLength, decimal(answer.body.len() as u64, &mut [0; 20]));
    }
    if let Some((handling, name)) = cache_status {
        handling.encode(name, inline);
    }
    let version = request.map_or(Version::Http11, |request| request.version);
    connection(inline, version, keep_alive);
    inline.extend_from_slice(b"\r\n");
    if !bodiless && request.is_none_or(|request| request.method != Method::Head) {
        out.share(Bytes::clone(&answer.body));
    }
}
