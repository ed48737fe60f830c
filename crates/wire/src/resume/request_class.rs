//! `Request-Class`: the balancer's description of a request.

use super::{MAX_CLASS, MAX_FIELD, Malformed, text};
use sandarac_message::{Fields, Name};
use sfv::visitor::{ItemVisitor, ParameterVisitor};
use sfv::{BareItemFromInput, KeyRef, Parser};
use std::borrow::Cow;
use std::convert::Infallible;

/// A résumé that a balancer holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known<'a> {
    /// The instance of the worker.
    pub instance: Cow<'a, str>,
    /// The revision of its résumé.
    pub revision: u64,
}

/// A balancer's description of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestClass<'a> {
    /// The class, at most [`MAX_CLASS`] bytes.
    pub class: Cow<'a, [u8]>,
    /// The fingerprint of the classifier.
    pub by: u64,
    /// The worker's résumé under this classifier that the balancer holds, if any.
    pub known: Option<Known<'a>>,
}

impl<'a> RequestClass<'a> {
    /// Reads the field; `None` if it is absent.
    pub fn read(fields: Fields<'a>) -> Option<Result<RequestClass<'a>, Malformed>> {
        let value = text::joined(fields, Name::RequestClass, MAX_FIELD)?;
        Some(value.and_then(|value| match value {
            Cow::Borrowed(value) => RequestClass::parse(value),
            Cow::Owned(value) => RequestClass::parse(&value).map(RequestClass::into_owned),
        }))
    }

    /// Reads a value, its lines joined.
    ///
    /// # Errors
    /// If anything is wrong: [`Malformed::Syntax`] takes precedence.
    pub fn parse(value: &'a [u8]) -> Result<RequestClass<'a>, Malformed> {
        text::bounded(value, MAX_FIELD)?;
        let item = Parser::new(value).parse_item_with_visitor(Whole).map_err(|_| Malformed::Syntax)?;
        Ok(RequestClass { class: item.class?, by: item.by?, known: item.known? })
    }

    /// Converts it so that it borrows nothing.
    pub fn into_owned(self) -> RequestClass<'static> {
        let owned = |known: Known<'_>| Known {
            instance: Cow::Owned(known.instance.into_owned()),
            revision: known.revision,
        };
        RequestClass { class: Cow::Owned(self.class.into_owned()), by: self.by, known: self.known.map(owned) }
    }

    /// Appends the value in its canonical form; nothing on an error.
    ///
    /// # Errors
    /// [`Malformed::Class`] if the class is too long, [`Malformed::Known`] if a reader would refuse `known`.
    /// The request is then sent without the field.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        if self.class.len() > MAX_CLASS {
            return Err(Malformed::Class);
        }
        if let Some(known) = &self.known
            && !(text::is_instance(known.instance.as_bytes()) && text::within(known.revision, 1).is_some())
        {
            return Err(Malformed::Known);
        }
        text::put_class(out, &self.class);
        out.extend_from_slice(b";by=\"");
        text::put_fingerprint(out, self.by);
        out.push(b'"');
        if let Some(known) = &self.known {
            out.extend_from_slice(b";known=\"");
            known.put(out);
            out.push(b'"');
        }
        Ok(())
    }
}

impl<'a> Known<'a> {
    /// Reads `<instance>.<revision>`, the revision without leading zeros.
    fn of(text: Cow<'a, str>) -> Option<Known<'a>> {
        // Neither part has characters that need an escape, so text with escapes is malformed.
        let Cow::Borrowed(text) = text else { return None };
        let (instance, revision) = text.split_once('.')?;
        let digits =
            matches!(revision.as_bytes(), [b'1'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit));
        if !digits || !text::is_instance(instance.as_bytes()) {
            return None;
        }
        let revision = text::within(revision.parse().ok()?, 1)?;
        Some(Known { instance: Cow::Borrowed(instance), revision })
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.instance.as_bytes());
        out.push(b'.');
        text::put_integer(out, self.revision);
    }

    /// The entity tag of the résumé resource (RFC 9110 §8.8.3), for `If-None-Match`.
    pub fn etag(&self) -> Vec<u8> {
        let mut etag = vec![b'"'];
        self.put(&mut etag);
        etag.push(b'"');
        etag
    }
}

/// The item and its known parameters. The last of repeated parameters counts, so a fault in one is kept until
/// all are read.
struct Parts<'a> {
    class: Result<Cow<'a, [u8]>, Malformed>,
    by: Result<u64, Malformed>,
    known: Result<Option<Known<'a>>, Malformed>,
}

struct Whole;

impl<'de> ItemVisitor<'de> for Whole {
    type Out = Parts<'de>;
    type Error = Infallible;

    fn bare_item(
        self,
        item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = Parts<'de>>, Infallible> {
        Ok(Parts { class: text::class(item), by: Err(Malformed::By), known: Ok(None) })
    }
}

impl<'de> ParameterVisitor<'de> for Parts<'de> {
    type Out = Parts<'de>;
    type Error = Infallible;

    fn parameter(&mut self, key: &'de KeyRef, value: BareItemFromInput<'de>) -> Result<(), Infallible> {
        let text = |value| match value {
            BareItemFromInput::String(text) => Some(text::string(text)),
            _ => None,
        };
        match key.as_str() {
            "by" => self.by = text(value).and_then(|by| text::fingerprint(&by)).ok_or(Malformed::By),
            "known" => self.known = text(value).and_then(Known::of).map(Some).ok_or(Malformed::Known),
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<Parts<'de>, Infallible> {
        Ok(self)
    }
}
