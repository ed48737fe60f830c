//! Assemble: a page becomes the response to one request, with its fragments.

use super::body::{ArrivingBody, ObjectBody, RecodedBody};
use super::fetch::OriginLink;
use crate::Fault;
use crate::downstream::Downstream;
use crate::downstream::sending::SendEnd;
use crate::downstream::upload::Upload;
use crate::exchange::state::{Exchange, Sent};
use crate::fragments::{Assembly, LinkBody, Nesting, Page, PageRule, Source, is_plain, parts_of};
use crate::outgoing::{Head, Outgoing};
use crate::recode::{RelayForm, relay_form};
use crate::report::fragment_failure::FragmentFailure;
use crate::report::handling::Detail;
use sandarac_cache::{Object, Reader};
use sandarac_message::recoding::disown;
use sandarac_message::{Fields, FieldsBuf, Method, Name};
use sandarac_net::{BodyBroken, Length, wall};
use sandarac_policy::{FragmentRule, PoolId};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// Whether a stored object may be a page with fragments, as far as that is known.
pub(crate) fn may_be_page(rule: FragmentRule, object: &Object) -> bool {
    !is_plain(object) && rule.is_page(object.head().status(), object.fields())
}

/// The head of a page, and what its body is made of; nothing for HEAD.
pub(super) struct PageResponse<'r> {
    status: u16,
    reason: Box<[u8]>,
    fields: FieldsBuf,
    /// Fields for this client alone.
    own: Option<&'r FieldsBuf>,
    age: Option<u64>,
    source: Option<Source>,
}

/// The response that an object becomes, if it is a page with markup. Takes the `reader` of one that is
/// arriving.
pub(super) async fn page_of<'r>(
    exchange: &mut Exchange<'_>,
    object: &Arc<Object>,
    reader: &mut Option<Reader>,
    own: Option<&'r FieldsBuf>,
) -> Option<PageResponse<'r>> {
    let PageRule { rule, .. } = exchange.fragments?;
    if !may_be_page(rule, object) || object.range().is_some() || is_coded(exchange, object.fields()) {
        return None;
    }
    let is_head = exchange.request.method == Method::Head;
    let source = match object.body().is_whole() {
        true => Some(parts_of(exchange.core, object).await?),
        false if is_head => None,
        false => {
            let body = ArrivingBody::new(reader.take()?, 0..u64::MAX, None);
            Some(Source::stream(Box::new(ObjectBody::Arriving(body))))
        }
    };
    let now = wall();
    Some(PageResponse {
        status: object.head().status(),
        reason: object.head().reason().into(),
        fields: FieldsBuf::copy_of(object.head().shown()),
        own,
        age: exchange.handling.age(object, own, now),
        source: source.filter(|_| !is_head),
    })
}

/// Whether a response that is not stored is a page with fragments.
pub(super) fn is_passing_page(
    exchange: &mut Exchange<'_>,
    status: u16,
    fields: Fields<'_>,
    upload: Upload,
) -> bool {
    let Some(PageRule { rule, .. }) = exchange.fragments else { return false };
    if !rule.is_page(status, fields) || is_coded(exchange, fields) {
        return false;
    }
    if upload != Upload::Done {
        exchange.unassembled(FragmentFailure::PageEarly);
        return false;
    }
    true
}

/// Whether the body is in a coding, in which no markup can be found.
fn is_coded(exchange: &mut Exchange<'_>, fields: Fields<'_>) -> bool {
    let is_coded = fields.list(Name::ContentEncoding).any(|coding| !coding.eq_ignore_ascii_case(b"identity"));
    if is_coded {
        exchange.unassembled(FragmentFailure::PageCoded);
    }
    is_coded
}

/// Sends a page that is not stored.
pub(super) async fn passing(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    status: u16,
    fields: FieldsBuf,
    link: OriginLink,
    pool: PoolId,
) -> Result<Sent, Fault> {
    let between_bytes = exchange.site.pool_by_id(pool).timeouts.between_bytes;
    let body = LinkBody::new(link, between_bytes, &down.client.peer().holder);
    let source = Some(Source::stream(Box::new(body))).filter(|_| exchange.request.method != Method::Head);
    let page = PageResponse { status, reason: Box::default(), fields, own: None, age: None, source };
    send(exchange, down, page).await
}

/// Sends a page with its fragments.
///
/// # Errors
/// [`Fault::Fragment`] if a fragment is known to be missing that the page needs, before the first byte of the
/// page. Nothing has begun then.
pub(super) async fn send(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    response: PageResponse<'_>,
) -> Result<Sent, Fault> {
    let PageResponse { status, reason, mut fields, own, age, source } = response;
    disown(&mut fields);
    let form = relay_form(exchange, status, &mut fields, None).map_err(|_| Fault::HeadTooLarge)?;
    let page = page(exchange, down)?;
    let mut assembly = source.map(|source| {
        let in_memory = matches!(form, RelayForm::Recoded(_));
        Assembly::new(page.clone(), source, in_memory)
    });
    let mut length = if assembly.is_some() { Length::Unknown } else { Length::Told };
    if let Some(assembly) = &mut assembly {
        let known = poll_fn(|cx| match assembly.poll_begun(cx) {
            Poll::Pending if down.poll_left(cx).is_ready() => Poll::Ready(Err(Fault::ClientGone)),
            begun => begun,
        })
        .await?;
        if let (Some(known), RelayForm::AsItCame) = (known, &form) {
            length = Length::Known(known);
        }
    }
    let outgoing = Outgoing::relayed(status, Head::Own(fields), length);
    exchange.begin(down, &mut Outgoing { reason: &reason, own, age, ..outgoing });
    let body = assembly.map(|assembly| {
        let body = ObjectBody::Assembled(Box::new(assembly));
        match form {
            RelayForm::Recoded(Some(transform)) => {
                ObjectBody::Recoded(Box::new(RecodedBody::new(body, *transform, &down.client.peer().holder)))
            }
            _ => body,
        }
    });
    let (bytes, end) = down.send_attended(exchange.core, body).await;
    exchange.handling.detail = match (page.failure(), &end) {
        (Some(failure), _) => Some(Detail::Fragment(failure)),
        (None, SendEnd::Broken(BodyBroken::Source)) => Some(Detail::OriginBroke),
        (None, _) => exchange.handling.detail,
    };
    end.count(&exchange.core.counters);
    Ok(Sent { status, bytes })
}

fn page(exchange: &Exchange<'_>, down: &Downstream<'_>) -> Result<std::rc::Rc<Page>, Fault> {
    let rule = exchange.fragments.ok_or(Fault::NoRoute)?;
    let nesting = exchange.nesting.clone().unwrap_or_else(|| Nesting::outermost(exchange.transaction));
    let Exchange { core, site, head, .. } = exchange;
    Page::new(core, site, rule, down.client.peer(), head, nesting).ok_or(Fault::HeadTooLarge)
}
