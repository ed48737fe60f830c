//! The choice of the form in which a stored object is sent.

use super::transform::Transform;
use super::whole::{LARGEST, recoded};
use crate::Fault;
use crate::exchange::state::Exchange;
use sandarac_cache::{Object, Recoding};
use sandarac_message::codings::Coding;
use sandarac_message::recoding::Uncompressed;
use sandarac_message::{Fields, FieldsBuf, Method, Name, StoredHead};
use sandarac_policy::{BodyCoding, CodingWish, CompressRule};
use std::sync::Arc;

/// The form of an object that is known without waiting.
pub(crate) enum KnownForm {
    /// As it came; with the reason if the client would take another one.
    AsItCame(Option<Uncompressed>),
    /// Another object in its place.
    Recoded(Arc<Object>),
    /// It has to be made.
    Unmade,
}

impl KnownForm {
    fn of(recoding: &Recoding) -> KnownForm {
        match recoding {
            Recoding::Made(recoded) => KnownForm::Recoded(recoded.clone()),
            // Sending it takes an exchange, and so does a fault.
            Recoding::TooLong => KnownForm::Unmade,
            Recoding::Useless(reason) if reason.is_undecodable() => KnownForm::Unmade,
            Recoding::Useless(reason) => KnownForm::AsItCame(Some(*reason)),
        }
    }
}

/// The form in which a request gets an object, if that is known.
pub(crate) fn known(rule: &CompressRule, request: Fields<'_>, object: &Object) -> KnownForm {
    let wish = CodingWish::of(request);
    // There is such a recoding only if the rule allowed it.
    if let Some(best) = wish.best(rule)
        && let Some(recoding) = object.recoding(Some(best))
    {
        return KnownForm::of(recoding);
    }
    match wanted(rule, &wish, object) {
        BodyCoding::AsItCame(reason) => KnownForm::AsItCame(reason),
        BodyCoding::In(coding) => object.recoding(coding).map_or(KnownForm::Unmade, KnownForm::of),
    }
}

fn wanted(rule: &CompressRule, wish: &CodingWish, object: &Object) -> BodyCoding {
    if object.range().is_some() {
        return BodyCoding::AsItCame(None);
    }
    let head = object.head();
    rule.choose(wish, head.status(), head.shown(), object.body().len())
}

/// The form in which an object is sent.
pub(crate) struct Chosen {
    /// The object that is sent.
    pub(crate) object: Arc<Object>,
    /// The object that is in the index, if another one is sent.
    pub(crate) original: Option<Arc<Object>>,
    /// The head of a response that is recoded as it is sent, and what does that; nothing for HEAD.
    pub(crate) recoded: Option<Box<(StoredHead, Option<Transform>)>>,
}

impl Chosen {
    pub(crate) fn as_it_came(object: Arc<Object>) -> Chosen {
        Chosen { object, original: None, recoded: None }
    }
}

/// The form in which the request of an exchange gets an object. Makes the body if need be, or waits while another exchange
/// does. `own` are fields for this client alone.
///
/// # Errors
/// [`Fault::Undecodable`] if the client does not accept the coding of the body, and that cannot be removed.
pub(crate) async fn choose(
    exchange: &mut Exchange<'_>,
    object: Arc<Object>,
    own: Option<&FieldsBuf>,
) -> Result<Chosen, Fault> {
    let Some(rule) = exchange.compress else { return Ok(Chosen::as_it_came(object)) };
    let wish = CodingWish::of(exchange.request.fields);
    let sets_cookie = own.is_some_and(|own| own.view().has(Name::SetCookie));
    let coding = match wanted(rule, &wish, &object) {
        BodyCoding::In(Some(_)) if sets_cookie && !rule.private => Err(Some(Uncompressed::SetCookie)),
        BodyCoding::In(coding) => Ok(coding),
        BodyCoding::AsItCame(reason) => Err(reason),
    };
    let chosen = match coding {
        Err(reason) => Err(reason),
        Ok(coding) => in_coding(exchange, &object, coding, rule).await.map_err(Some),
    };
    match chosen {
        Ok(chosen) => Ok(chosen),
        Err(Some(reason)) if reason.is_undecodable() => {
            exchange.core.counters.uncompressed.one(&reason);
            Err(Fault::Undecodable(reason))
        }
        Err(reason) => {
            exchange.uncompressed(reason);
            Ok(Chosen::as_it_came(object))
        }
    }
}

async fn in_coding(
    exchange: &Exchange<'_>,
    object: &Arc<Object>,
    coding: Option<Coding>,
    rule: &CompressRule,
) -> Result<Chosen, Uncompressed> {
    let body = object.body();
    if body.is_whole()
        && body.len().is_some_and(|len| len <= LARGEST)
        && let Some(recoded) = recoded(exchange.core, object, coding, rule.level).await?
    {
        return Ok(Chosen { object: recoded, original: Some(object.clone()), recoded: None });
    }
    let head = object.head().recoded(coding).map_err(|_| Uncompressed::HeadTooLarge)?;
    let transform = match exchange.request.method {
        Method::Head => None,
        _ => {
            let from = object.head().shown().get(Name::ContentEncoding).and_then(Coding::of);
            Some(Transform::new(exchange.core, coding, from, rule.level)?)
        }
    };
    Ok(Chosen { object: object.clone(), original: None, recoded: Some(Box::new((head, transform))) })
}
