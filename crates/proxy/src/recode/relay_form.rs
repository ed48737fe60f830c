//! Responses that are not stored.

use super::transform::Transform;
use crate::exchange::state::Exchange;
use sandarac_message::codings::Coding;
use sandarac_message::conditional::{EntityTag, entity_tags};
use sandarac_message::recoding::{Uncompressed, recode, told_length, vary, weaken};
use sandarac_message::{FieldsBuf, Method, Name, TooLarge};
use sandarac_policy::{BodyCoding, CodingWish};

/// The form in which a response goes from the origin to its client.
pub(crate) enum RelayForm {
    /// As it came.
    AsItCame,
    /// In another coding. The body is transformed; not that of HEAD, which has none.
    Recoded(Option<Box<Transform>>),
}

/// The form of a response with this status, and a body of `len` bytes if that is known. Changes its fields accordingly.
///
/// # Errors
/// The fields have become too large.
pub(crate) fn relay_form(
    exchange: &mut Exchange<'_>,
    status: u16,
    fields: &mut FieldsBuf,
    len: Option<u64>,
) -> Result<RelayForm, TooLarge> {
    let Some(rule) = exchange.compress else { return Ok(RelayForm::AsItCame) };
    // The length of the body that GET would have.
    let is_head = exchange.request.method == Method::Head;
    let len = if is_head { told_length(fields.view()) } else { len };
    if rule.varies(status, fields.view(), len) {
        vary(fields)?;
    }
    if status == 304 {
        agree_with_get(exchange, fields)?;
        return Ok(RelayForm::AsItCame);
    }
    let wish = CodingWish::of(exchange.request.fields);
    let coding = match rule.choose(&wish, status, fields.view(), len) {
        BodyCoding::In(coding) => coding,
        BodyCoding::AsItCame(reason) => {
            exchange.uncompressed(reason);
            return Ok(RelayForm::AsItCame);
        }
    };
    let from = fields.view().get(Name::ContentEncoding).and_then(Coding::of);
    let transform = match is_head {
        true => None,
        false => match Transform::new(exchange.core, coding, from, rule.level) {
            Ok(transform) => Some(Box::new(transform)),
            Err(reason) => {
                exchange.uncompressed(Some(reason));
                return Ok(RelayForm::AsItCame);
            }
        },
    };
    let mut recoded = fields.clone();
    if recode(&mut recoded, coding).is_err() {
        exchange.uncompressed(Some(Uncompressed::HeadTooLarge));
        return Ok(RelayForm::AsItCame);
    }
    *fields = recoded;
    Ok(RelayForm::Recoded(transform))
}

/// A 304 has the tag that the client knows: a weak one of ours, where the origin compared weakly.
fn agree_with_get(exchange: &Exchange<'_>, fields: &mut FieldsBuf) -> Result<(), TooLarge> {
    let Some(tag) = fields.view().get(Name::Etag).map(EntityTag::parse).filter(|tag| !tag.weak) else {
        return Ok(());
    };
    let request = exchange.request.fields;
    let has = |weak| {
        let tags = || request.all(Name::IfNoneMatch).flat_map(entity_tags);
        tags().any(|other| other.weak == weak && other.opaque == tag.opaque)
    };
    if has(true) && !has(false) { weaken(fields) } else { Ok(()) }
}
