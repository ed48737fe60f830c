//! A response before it is encoded for a protocol: a head, and a body that is pulled.

use sandarac_message::status_fields::CacheStatus;
use sandarac_message::{Field, Fields, FieldsBuf, Name, Piece, StoredHead, decimal};
use std::task::{Context, Poll};

/// The head of a final response. The encoder adds the fields of the connection and the framing of the body.
pub struct Response<'a> {
    /// The status code, of three digits.
    pub status: u16,
    /// The reason phrase, for protocols that use one.
    pub reason: &'a [u8],
    /// Most of its fields.
    pub base: Base<'a>,
    /// Fields that follow those of the base.
    pub added: &'a [(Name, &'a [u8])],
    /// Fields for this client only, after these.
    pub own: Option<&'a FieldsBuf>,
    /// Age in seconds (RFC 9111 §5.1).
    pub age: Option<u64>,
    /// Cache-Status (RFC 9211), with the name of the cache.
    pub cache_status: Option<(CacheStatus<'a>, &'a str)>,
    /// The value of Strict-Transport-Security (RFC 6797 §6.1).
    pub hsts: Option<&'a [u8]>,
    /// The length of the body.
    pub length: Length,
}

/// The name of the field.
pub(crate) const STRICT_TRANSPORT_SECURITY: &[u8] = b"Strict-Transport-Security";

/// Most of the fields of a response.
pub enum Base<'a> {
    /// All fields of a stored head that clients get, already encoded. The block is the same head for HTTP/2.
    Stored(&'a StoredHead, &'a dyn StoredBlock),
    /// Those fields that a predicate selects.
    Selected(Fields<'a>, &'a dyn Fn(&Field<'_>) -> bool),
    /// Fields whose memory the encoder may use. If their first line is not empty, it is the HTTP/1.1 status
    /// line.
    Owned(FieldsBuf),
}

/// The place beside a stored head for its header block, which does not depend on the connection.
pub trait StoredBlock {
    /// The block that is kept. If there is none, `make` makes one that is kept from then on. `None` if it cannot be kept.
    fn block(&self, make: fn(&StoredHead) -> Vec<u8>) -> Option<&[u8]>;
}

/// The length of a response's body, as its head announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// There is no body, or the length is in a [`Base::Stored`] or [`Base::Selected`].
    Told,
    /// This many bytes. Content-Length is added; a response to HEAD has it too, without the body.
    Known(u64),
    /// Unknown until the body ends.
    Unknown,
}

impl<'a> Response<'a> {
    /// A response with these fields and nothing else.
    pub fn new(status: u16, reason: &'a [u8], base: Base<'a>, length: Length) -> Response<'a> {
        Response {
            status,
            reason,
            base,
            added: &[],
            own: None,
            age: None,
            cache_status: None,
            hsts: None,
            length,
        }
    }

    /// Calls `put` with each field in order, its name known and as text, and its value. For encoders without field lines.
    pub fn for_each_field(&self, mut put: impl FnMut(Name, &[u8], &[u8])) {
        self.for_each_base_field(&mut put);
        self.for_each_added_field(&mut put);
        if let Some((status, name)) = &self.cache_status {
            let mut value = Vec::new();
            status.write(name, &mut value);
            put(Name::CacheStatus, Name::CacheStatus.text().as_bytes(), &value);
        }
    }

    /// The same for the fields of the base only: those of the origin, if the response is stored or passed on.
    pub fn for_each_base_field(&self, mut put: impl FnMut(Name, &[u8], &[u8])) {
        let mut put_all = |fields: Fields<'_>, keep: &dyn Fn(&Field<'_>) -> bool| {
            fields.iter().filter(keep).for_each(|field| put(field.id, field.name, field.value));
        };
        match &self.base {
            Base::Stored(head, _) => put_all(head.shown(), &|_| true),
            Base::Selected(fields, keep) => put_all(*fields, keep),
            // The length is added below.
            Base::Owned(fields) => put_all(fields.view(), &|field| field.id != Name::ContentLength),
        }
    }

    /// The same for the fields that follow those of the base, without Cache-Status.
    pub(crate) fn for_each_added_field(&self, mut put: impl FnMut(Name, &[u8], &[u8])) {
        if let Some(own) = self.own {
            own.view().iter().for_each(|field| put(field.id, field.name, field.value));
        }
        for (name, value) in self.added {
            put(*name, name.text().as_bytes(), value);
        }
        if let Length::Known(length) = self.length {
            let mut digits = [0; 20];
            put(
                Name::ContentLength,
                Name::ContentLength.text().as_bytes(),
                decimal::digits(length, &mut digits),
            );
        }
        if let Some(age) = self.age {
            let mut digits = [0; 20];
            put(Name::Age, Name::Age.text().as_bytes(), decimal::digits(age, &mut digits));
        }
        if let Some(value) = self.hsts {
            put(Name::Other, STRICT_TRANSPORT_SECURITY, value);
        }
    }
}

/// The body of a response. Its sender pulls a piece when there is room for one, and keeps the body across
/// waits.
pub trait Body {
    /// The next piece, never empty; `None` at the end.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, BodyBroken>>>;

    /// Ready if a slow client holds up the source of the body, which should be read ahead of it then. May wake the task of `cx`
    /// when that begins.
    fn poll_holds_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = cx;
        Poll::Pending
    }

    /// The trailer fields. Called at the end.
    fn trailers(&self) -> Option<FieldsBuf>;
}

/// Why a body ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyBroken {
    /// Its source broke off.
    Source,
    /// The client took it too slowly, and held up others.
    ClientSlow,
}

/// A client whose request is answered at once, with a response that is already whole.
pub trait Responder {
    /// Sends the head of the response.
    fn begin(&mut self, response: Response<'_>);

    /// Sends its body, which MUST be ready to its end, and returns the number of bytes. Not called if there
    /// is no body.
    fn send(&mut self, body: impl Body + 'static) -> u64;
}
