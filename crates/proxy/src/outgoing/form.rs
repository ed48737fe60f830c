//! The form that a request gets of a representation.

use sandarac_message::conditional::{self, Evaluation, Role};
use sandarac_message::range::{self, ByteRange, ContentRange, Selection};
use sandarac_message::{Fields, Method, Name, RequestHead, Timestamp};
use sandarac_net::Length;

/// A representation, or a part of one, that this process has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Representation {
    /// Whether this is the origin of it, or a cache.
    pub(crate) role: Role,
    /// When it was received; now at its origin.
    pub(crate) received: Timestamp,
    /// The length of the content, if it is known.
    pub(crate) length: Option<u64>,
    /// The part of the representation that the content is, if it is a part.
    pub(crate) held: Option<ContentRange>,
    pub(crate) parts: Parts,
    /// A number that differs between representations.
    pub(crate) seed: u128,
}

/// The parts of a representation that can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// None: a recoding has no strong tag by which parts could be told apart (RFC 9110 §14.2).
    None,
    /// One at a time, because it is arriving.
    One,
    Several,
}

/// The form that a request gets.
pub(super) enum Form {
    Whole(Length),
    NotModified,
    /// A condition of the request does not hold.
    Failed,
    Part(ByteRange, ContentRange),
    Parts(Vec<ByteRange>, u64),
    Unsatisfiable(u64),
}

impl Representation {
    /// The form that `request` gets of it, in a response with this status and these fields.
    pub(super) fn form(&self, request: &RequestHead<'_>, status: u16, shown: Fields<'_>) -> Form {
        if let Some(form) = self.choose(request, status, shown) {
            return form;
        }
        Form::Whole(match self.length {
            _ if shown.has(Name::ContentLength) || is_bodiless(status) => Length::Told,
            Some(length) => Length::Known(length),
            None if request.method == Method::Head => Length::Told,
            None => Length::Unknown,
        })
    }

    /// The form that a request with a condition or a range gets; `None` if it is all of the content.
    fn choose(&self, request: &RequestHead<'_>, status: u16, shown: Fields<'_>) -> Option<Form> {
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
        let fields = request.fields;
        if self.held.is_none() && !fields.iter().any(|field| special(field.id)) {
            return None;
        }
        match conditional::evaluate(self.role, request.method, fields, status, shown, self.received) {
            Evaluation::NotModified => return Some(Form::NotModified),
            Evaluation::Failed if self.role == Role::Origin => return Some(Form::Failed),
            Evaluation::Failed | Evaluation::Proceed => {}
        }
        let wanted = fields.get(Name::Range);
        let wanted = wanted.filter(|_| self.parts != Parts::None && request.method == Method::Get);
        if let Some(held) = self.held {
            return self.part_of_part(wanted, held);
        }
        let (wanted, length) = (wanted?, self.length?);
        if status != 200 || !conditional::if_range_holds(fields, shown, self.received) {
            return None;
        }
        match range::select(wanted, length) {
            Selection::Whole => None,
            Selection::Single(range) => Some(Form::Part(range, ContentRange::of(range, length))),
            Selection::Several(ranges) if self.parts == Parts::Several => Some(Form::Parts(ranges, length)),
            // An arriving body cannot be cut into parts out of order.
            Selection::Several(_) => None,
            Selection::Unsatisfiable => Some(Form::Unsatisfiable(length)),
        }
    }

    /// A stored part answers what it was found to cover. It is sent as it was received if all of it is
    /// requested, or if its body does not have the length given by its Content-Range: such a body cannot be
    /// cut.
    fn part_of_part(&self, wanted: Option<&[u8]>, held: ContentRange) -> Option<Form> {
        let range = held.range;
        let spec = range::parse(wanted?)?.first().copied()?;
        let served = held.serves(&spec)?;
        (served != range && self.length.is_none_or(|length| length == range.len()))
            .then_some(Form::Part(served, ContentRange { range: served, ..held }))
    }
}

/// Whether no response of this status has a body.
pub(super) fn is_bodiless(status: u16) -> bool {
    matches!(status, 100..200 | 204 | 304)
}
