//! Recodings: a response in another content coding than the origin's.

use crate::codings::Coding;
use crate::conditional::EntityTag;
use crate::{Fields, FieldsBuf, Name, StoredHead, TooLarge};

macro_rules! uncompressed {
    ($($(#[$doc:meta])* $variant:ident = $text:literal),* $(,)?) => {
        /// Why a response has the coding that it came with, although its client accepts another one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Uncompressed {
            $($(#[$doc])* $variant),*
        }

        impl Uncompressed {
            /// Every reason.
            pub const ALL: &'static [Uncompressed] = &[$(Uncompressed::$variant),*];

            /// The reason in Cache-Status and metrics.
            pub const fn text(self) -> &'static str {
                match self { $(Uncompressed::$variant => $text),* }
            }
        }
    };
}

uncompressed! {
    /// A type whose bodies do not shrink, or that the route does not list, or none.
    Type = "type",
    /// The body is shorter than the route's least.
    Short = "short",
    /// A status whose body is empty or a part, or that is not a response to a request of its own.
    Status = "status",
    /// `Cache-Control: no-transform` (RFC 9111 §5.2.2.6).
    NoTransform = "no-transform",
    /// It sets cookies: its length could tell a secret (BREACH).
    SetCookie = "set-cookie",
    /// It is private: its length could tell a secret (BREACH).
    Private = "private",
    /// The coding it came with is unknown, or there are several.
    CodingUnknown = "coding-unknown",
    /// The coded body ends early.
    CodingTruncated = "coding-truncated",
    /// The body is not in its coding, or damaged.
    CodingCorrupt = "coding-corrupt",
    /// Bytes follow the end of the coded body.
    CodingTrailingBytes = "coding-trailing-bytes",
    /// The coded body grows beyond all reason.
    CodingBomb = "coding-bomb",
    /// The coded body needs a window of more than 8 MiB (RFC 9659 §3).
    CodingWindow = "coding-window",
    /// Nothing is saved.
    NotSmaller = "not-smaller",
    /// The head has no room for the fields of a coding.
    HeadTooLarge = "head-too-large",
    /// The memory for codings is used up.
    Busy = "busy",
}

impl Uncompressed {
    /// Whether the body is in a coding that cannot be removed because of its bytes. A client that does not accept the coding
    /// can do nothing with it either.
    pub const fn is_undecodable(self) -> bool {
        matches!(
            self,
            Uncompressed::CodingTruncated
                | Uncompressed::CodingCorrupt
                | Uncompressed::CodingTrailingBytes
                | Uncompressed::CodingBomb
                | Uncompressed::CodingWindow
        )
    }

    /// Whether Cache-Status tells it. The others are of no use to anyone who looks at a single response.
    pub const fn is_told(self) -> bool {
        !matches!(self, Uncompressed::Type | Uncompressed::Short | Uncompressed::Status)
    }
}

/// Digests of bytes in a coding (RFC 9530, and older ones).
const DIGESTS: [&[u8]; 4] = [b"content-digest", b"repr-digest", b"digest", b"content-md5"];

/// Whether a field of this name is one of them.
fn is_digest(name: &[u8]) -> bool {
    DIGESTS.iter().any(|digest| name.eq_ignore_ascii_case(digest))
}

/// Changes the fields of a response whose body is sent in `coding`, or in none. What the old bytes were described by goes,
/// the entity tag becomes weak, and `Vary` names `Accept-Encoding`.
///
/// # Errors
/// The fields have become too large.
pub fn recode(fields: &mut FieldsBuf, coding: Option<Coding>) -> Result<(), TooLarge> {
    fields.retain(|field| match field.id {
        Name::ContentLength | Name::AcceptRanges | Name::ContentEncoding => false,
        Name::Other => !is_digest(field.name),
        _ => true,
    });
    let announced: Vec<Vec<u8>> = fields.view().list(Name::Trailer).map(<[u8]>::to_vec).collect();
    if announced.iter().any(|name| is_digest(name)) {
        fields.remove(Name::Trailer);
        for name in announced.iter().filter(|name| !is_digest(name)) {
            fields.add(Name::Trailer, name)?;
        }
    }
    if let Some(coding) = coding {
        fields.add(Name::ContentEncoding, coding.name().as_bytes())?;
    }
    weaken(fields)?;
    vary(fields)
}

/// Removes the digests of the old bytes from the trailers of a response whose body is sent in another coding.
pub fn recode_trailers(trailers: &mut FieldsBuf) {
    trailers.retain(|field| !is_digest(field.name));
}

/// Removes what describes the bytes of a body in place of which others are sent, validators included.
pub fn disown(fields: &mut FieldsBuf) {
    fields.retain(|field| match field.id {
        Name::ContentLength | Name::AcceptRanges | Name::Etag | Name::LastModified | Name::Trailer => false,
        Name::Other => !is_digest(field.name),
        _ => true,
    });
}

/// Makes the entity tag weak.
///
/// # Errors
/// The fields have become too large.
pub fn weaken(fields: &mut FieldsBuf) -> Result<(), TooLarge> {
    match fields.view().get(Name::Etag).map(EntityTag::parse) {
        Some(EntityTag { weak: false, opaque }) => {
            let tag = [b"W/", opaque].concat();
            fields.set(Name::Etag, &tag)
        }
        _ => Ok(()),
    }
}

/// Adds `Accept-Encoding` to `Vary`, unless that names it or has a star.
///
/// # Errors
/// The fields have become too large.
pub fn vary(fields: &mut FieldsBuf) -> Result<(), TooLarge> {
    let named = |member: &[u8]| member == b"*" || Name::of(member) == Name::AcceptEncoding;
    if fields.view().list(Name::Vary).any(named) {
        return Ok(());
    }
    fields.add(Name::Vary, Name::AcceptEncoding.text().as_bytes())
}

/// The length of the body, as `Content-Length` tells it.
pub fn told_length(fields: Fields<'_>) -> Option<u64> {
    std::str::from_utf8(fields.get(Name::ContentLength)?).ok()?.parse().ok()
}

impl StoredHead {
    /// The head of a recoding, of the fields that clients get.
    ///
    /// # Errors
    /// It is too large.
    pub fn recoded(&self, coding: Option<Coding>) -> Result<StoredHead, TooLarge> {
        let mut fields = FieldsBuf::copy_of(self.shown());
        recode(&mut fields, coding)?;
        StoredHead::new(self.status(), self.reason(), &fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recoded(lines: &[(&str, &str)], coding: Option<Coding>) -> String {
        let mut fields: FieldsBuf = lines.iter().copied().collect();
        recode(&mut fields, coding).expect("room");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let line = |field: crate::Field<'_>| format!("{}: {}", text(field.name), text(field.value));
        fields.view().iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_recoding_has_a_weak_tag_and_varies() {
        let plain = [
            ("Content-Type", "text/html"),
            ("Content-Length", "5"),
            ("ETag", "\"a\""),
            ("Accept-Ranges", "bytes"),
            ("Content-MD5", "x"),
            ("Repr-Digest", "sha-256=:x:"),
            ("Vary", "Origin"),
        ];
        assert_eq!(
            recoded(&plain, Some(Coding::Gzip)),
            "Content-Type: text/html\nVary: Origin\nContent-Encoding: gzip\nETag: W/\"a\"\nVary: Accept-Encoding"
        );
    }

    #[test]
    fn a_recoding_has_no_digest_in_its_trailers() {
        let announced = [("Trailer", "Sum, Content-Digest"), ("Trailer", "DIGEST"), ("Vary", "*")];
        assert_eq!(recoded(&announced, None), "Vary: *\nTrailer: Sum");
        assert_eq!(recoded(&[("Trailer", "Sum, X"), ("Vary", "*")], None), "Trailer: Sum, X\nVary: *");
        let lines = [("Sum", "4"), ("Repr-Digest", "x"), ("content-md5", "x")];
        let mut trailers: FieldsBuf = lines.into_iter().collect();
        recode_trailers(&mut trailers);
        let names: Vec<_> = trailers.view().iter().map(|field| field.name.to_vec()).collect();
        assert_eq!(names, [&b"Sum"[..]]);
    }

    #[test]
    fn a_page_of_other_bytes_has_no_validators() {
        let mut fields: FieldsBuf = [
            ("Content-Type", "text/html"),
            ("ETag", "\"a\""),
            ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("Content-Length", "5"),
            ("Digest", "x"),
            ("Cache-Control", "max-age=5"),
        ]
        .into_iter()
        .collect();
        disown(&mut fields);
        let names: Vec<_> = fields.view().iter().map(|field| field.name.to_vec()).collect();
        assert_eq!(names, [&b"Content-Type"[..], b"Cache-Control"]);
    }

    #[test]
    fn an_inflated_body_has_no_coding() {
        let coded = [("Content-Encoding", "gzip"), ("ETag", "W/\"a\""), ("Vary", "accept-encoding")];
        assert_eq!(recoded(&coded, None), "ETag: W/\"a\"\nVary: accept-encoding");
        assert_eq!(recoded(&[("Vary", "*")], None), "Vary: *");
    }

    #[test]
    fn every_reason_has_a_name_of_its_own() {
        let mut names: Vec<_> = Uncompressed::ALL.iter().map(|reason| reason.text()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Uncompressed::ALL.len());
    }
}
