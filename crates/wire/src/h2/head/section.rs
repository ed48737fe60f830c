//! Field sections, decoded and checked field by field (RFC 9113 §8.2 and §8.3).

use super::super::fault::Fault;
use super::super::hpack::{Decoder, FieldAt};
use super::buffer::HeadBuf;
use super::pseudo::{Kind, Pseudo};
use super::refusal::Refusal;
use crate::h1::fields::{content_length, is_host};
use crate::h1::scan::{find_token_end, find_value_end};
use crate::h1::{Limits, MAX_FIELDS};
use sandarac_message::{MAX_HEAD, MAX_NAME, Name, Span};
use std::ops::Range;

/// How many times the limit of a head a block may decode to. A message above the limit is only refused,
/// because its block must still be decoded; one that is far above it ends the connection.
const MAX_GROWTH: usize = 8;

/// A section whose fields are in a [`HeadBuf`].
#[derive(Debug)]
pub(super) struct Section {
    kind: Kind,
    pub(super) pseudo: Pseudo,
    /// Whether a field that is no pseudo-field was read.
    has_fields: bool,
    /// The value of the only Host.
    host: Option<Range<usize>>,
    /// Whether a Host came that was no `:authority`.
    has_host_field: bool,
    /// The position of the first Cookie in the spans, and its line.
    cookie: Option<(usize, FieldAt)>,
    /// Whether other fields stand between cookies.
    scattered_cookies: bool,
    pub(super) content_length: Option<u64>,
    pub(super) expect_continue: bool,
}

impl Section {
    /// Decodes a block into `buf`, and checks each field. A refused message leaves the decoder as an accepted
    /// one does.
    pub(super) fn read(
        kind: Kind,
        decoder: &mut Decoder,
        block: &[u8],
        limits: &Limits,
        buf: &mut HeadBuf,
    ) -> Result<Result<Section, Refusal>, Fault> {
        let HeadBuf { bytes, spans } = buf;
        bytes.clear();
        spans.clear();
        let mut section = Section {
            kind,
            pseudo: Pseudo::default(),
            has_fields: false,
            host: None,
            has_host_field: false,
            cookie: None,
            scattered_cookies: false,
            content_length: None,
            expect_continue: false,
        };
        let mut refusal = None;
        let decoded = decoder.decode(block, bytes, limits.head.saturating_mul(MAX_GROWTH), |bytes, at| {
            if refusal.is_some() {
                return bytes.truncate(at.name.start);
            }
            refusal = section.take(bytes, spans, at, limits).err();
        });
        if decoded.is_err() || refusal.is_some() {
            bytes.clear();
            spans.clear();
            // A hostile block can be decoded to far more than any head that is accepted.
            bytes.shrink_to(limits.head);
        }
        decoded?;
        if let Some(refusal) = refusal {
            return Ok(Err(refusal));
        }
        if section.scattered_cookies && !section.gather_cookies(bytes, spans) {
            return Ok(Err(Refusal::HeadTooLarge));
        }
        Ok(Ok(section))
    }

    /// Checks the last line of `bytes`.
    #[inline]
    fn take(
        &mut self,
        bytes: &mut Vec<u8>,
        spans: &mut Vec<Span>,
        at: FieldAt,
        limits: &Limits,
    ) -> Result<(), Refusal> {
        if bytes.len() > limits.head.min(MAX_HEAD) {
            return Err(Refusal::HeadTooLarge);
        }
        if bytes[at.name.clone()].starts_with(b":") {
            return self.take_pseudo(bytes, spans, at);
        }
        self.has_fields = true;
        check_name(bytes, &at.name)?;
        check_value(bytes, &at.value)?;
        if spans.len() >= limits.fields.min(MAX_FIELDS) {
            return Err(Refusal::TooManyFields);
        }
        let span = span(bytes, &at)?;
        match span.name() {
            Name::Other if bytes[at.name.clone()] == *b"http2-settings" => {
                return Err(Refusal::ConnectionField);
            }
            Name::Connection
            | Name::KeepAlive
            | Name::ProxyConnection
            | Name::TransferEncoding
            | Name::Upgrade => return Err(Refusal::ConnectionField),
            Name::Te if !bytes[at.value.clone()].eq_ignore_ascii_case(b"trailers") => {
                return Err(Refusal::InvalidTe);
            }
            Name::ContentLength if self.kind != Kind::Trailers => {
                if self.content_length.is_some() {
                    return Err(Refusal::RepeatedContentLength);
                }
                self.content_length = Some(content_length(&bytes[at.value.clone()])?);
            }
            Name::Host if self.kind == Kind::Request => return self.take_host(bytes, spans, at, span),
            Name::Expect if self.kind == Kind::Request => {
                if !bytes[at.value.clone()].eq_ignore_ascii_case(b"100-continue") {
                    return Err(Refusal::UnknownExpectation);
                }
                self.expect_continue = true;
            }
            Name::Cookie if self.kind == Kind::Request => return self.take_cookie(bytes, spans, at, span),
            _ => {}
        }
        spans.push(span);
        Ok(())
    }

    fn take_pseudo(&mut self, bytes: &mut [u8], spans: &mut Vec<Span>, at: FieldAt) -> Result<(), Refusal> {
        let slot = self.pseudo.slot(self.kind, &bytes[at.name.clone()]).ok_or(Refusal::UnknownPseudoField)?;
        if slot.is_some() {
            return Err(Refusal::RepeatedPseudoField);
        }
        if self.has_fields {
            return Err(Refusal::LatePseudoField);
        }
        check_value(bytes, &at.value)?;
        *slot = Some(at.value.clone());
        if at.name.len() == ":authority".len() {
            if !is_host(&bytes[at.value.clone()]) {
                return Err(Refusal::InvalidHost);
            }
            // The line of Host ends as this one does, so that nothing has to be moved.
            let name = at.name.end - 4..at.name.end;
            bytes[name.clone()].copy_from_slice(b"host");
            spans.push(span(bytes, &FieldAt { name, value: at.value.clone() })?);
            self.host = Some(at.value);
        }
        Ok(())
    }

    fn take_host(
        &mut self,
        bytes: &mut Vec<u8>,
        spans: &mut Vec<Span>,
        at: FieldAt,
        span: Span,
    ) -> Result<(), Refusal> {
        if std::mem::replace(&mut self.has_host_field, true) {
            return Err(Refusal::RepeatedHost);
        }
        let value = &bytes[at.value.clone()];
        match &self.host {
            Some(authority) if !bytes[authority.clone()].eq_ignore_ascii_case(value) => {
                return Err(Refusal::HostMismatch);
            }
            // The line of :authority stays.
            Some(_) => bytes.truncate(at.name.start),
            None if !is_host(value) => return Err(Refusal::InvalidHost),
            None => {
                self.host = Some(at.value);
                spans.push(span);
            }
        }
        Ok(())
    }

    /// Joins a cookie to the one before it (RFC 9113 §8.2.3). Most requests have their cookies in a row. An empty
    /// cookie behind another is dropped: joined, it would leave a space at the end of the value.
    fn take_cookie(
        &mut self,
        bytes: &mut Vec<u8>,
        spans: &mut Vec<Span>,
        at: FieldAt,
        span: Span,
    ) -> Result<(), Refusal> {
        let Some((place, first)) = &mut self.cookie else {
            self.cookie = Some((spans.len(), at));
            spans.push(span);
            return Ok(());
        };
        if at.value.is_empty() {
            bytes.truncate(at.name.start);
            return Ok(());
        }
        if first.value.end + 2 != at.name.start || *place + 1 != spans.len() {
            self.scattered_cookies = true;
            spans.push(span);
            return Ok(());
        }
        let end = first.value.end;
        bytes[end..end + 2].copy_from_slice(b"; ");
        bytes.copy_within(at.value.clone(), end + 2);
        first.value.end = end + 2 + at.value.len();
        bytes.truncate(first.value.end);
        bytes.extend_from_slice(b"\r\n");
        spans[*place] = self::span(bytes, first)?;
        Ok(())
    }

    /// Joins cookies that are not in a row, in place of the first. Returns false if the head becomes too
    /// large.
    #[cold]
    fn gather_cookies(&mut self, bytes: &mut Vec<u8>, spans: &mut Vec<Span>) -> bool {
        let Some((place, _)) = self.cookie else { return true };
        let mut joined = Vec::new();
        let fields = sandarac_message::Fields::new(bytes, spans);
        for (nth, value) in fields.all(Name::Cookie).enumerate() {
            joined.extend_from_slice(if nth > 0 { b"; " } else { b"" });
            joined.extend_from_slice(value);
        }
        let at = bytes.len();
        bytes.extend_from_slice(b"cookie: ");
        bytes.extend_from_slice(&joined);
        bytes.extend_from_slice(b"\r\n");
        let field = FieldAt { name: at..at + 6, value: at + 8..at + 8 + joined.len() };
        let Ok(span) = span(bytes, &field) else { return false };
        spans.retain(|span| span.name() != Name::Cookie);
        spans.insert(place, span);
        true
    }

    /// Whether the request names its host, in `:authority` or Host.
    pub(super) fn has_host(&self) -> bool {
        self.host.is_some()
    }
}

fn span(bytes: &[u8], at: &FieldAt) -> Result<Span, Refusal> {
    Span::new(bytes, at.name.start, at.name.len(), at.value.start, at.value.len())
        .ok_or(Refusal::HeadTooLarge)
}

#[inline]
fn check_name(bytes: &[u8], name: &Range<usize>) -> Result<(), Refusal> {
    // A colon follows the name, and is no byte of a token.
    if find_token_end(bytes, name.start) != name.end || name.is_empty() {
        return Err(Refusal::InvalidFieldName);
    }
    if name.len() > MAX_NAME {
        return Err(Refusal::FieldNameTooLong);
    }
    if bytes[name.clone()].iter().any(u8::is_ascii_uppercase) {
        return Err(Refusal::UpperCaseName);
    }
    Ok(())
}

#[inline]
fn check_value(bytes: &[u8], value: &Range<usize>) -> Result<(), Refusal> {
    // CR follows the value.
    if find_value_end(bytes, value.start) != value.end {
        return Err(Refusal::InvalidFieldValue);
    }
    let padding = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let text = &bytes[value.clone()];
    if padding(text.first()) || padding(text.last()) { Err(Refusal::PaddedFieldValue) } else { Ok(()) }
}
