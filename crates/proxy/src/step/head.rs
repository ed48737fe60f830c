//! HEAD that no stored response answers: it goes to the origin, and its response may update what is stored.

use super::fetch::OriginResponse;
use super::invalidate::invalidate;
use super::judge::Judge;
use super::relay::{edit, edit_passed, relay};
use super::store::add_date;
use crate::Fault;
use crate::downstream::Downstream;
use crate::exchange::state::{Exchange, Sent};
use crate::forward::{Purpose, is_for_all};
use crate::request::received::Received;
use crate::request::tags::tags_of;
use sandarac_cache::{Flight, NewObject, Object};
use sandarac_message::caching::{Storability, freshen, head_agrees};
use sandarac_message::vary::VarySpec;
use sandarac_message::{Method, Name, RequestHead, ResponseHead};
use sandarac_net::boxed;
use sandarac_policy::{CacheRule, PoolId};
use std::sync::Arc;

/// HEAD that no stored response answers. It goes to the origin, whose response may update what is stored (RFC
/// 9111 §4.3.5).
pub(crate) async fn head(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    received: &Received<'_>,
    pool: PoolId,
    rule: &CacheRule,
    candidate: Option<Arc<Object>>,
) -> Result<Sent, Fault> {
    let target = received.target.path_and_query;
    let stored = candidate.filter(|_| is_for_all(&exchange.request, received, rule));
    let flight = stored.map(|stored| exchange.core.shared.store.open_for(&stored));
    let mut arrived = exchange.fetch(down, received, pool, target, Purpose::Head { rule }).await?;
    edit(exchange, received, &mut arrived)?;
    if let Some(flight) = flight
        && learn_from_head(exchange, received, rule, flight, &arrived)
    {
        boxed(|| invalidate(exchange, received, vec![target.to_vec()], Vec::new())).await;
    }
    edit_passed(received, &mut arrived)?;
    relay(exchange, down, arrived, pool).await
}

/// Applies a response to HEAD to the stored response to GET (RFC 9111 §4.3.5): if it describes the same
/// representation, it freshens it, else the stored one is invalid. `flight` is that of the stored one, made
/// before the request. Returns whether the stored one was invalid.
fn learn_from_head(
    exchange: &Exchange<'_>,
    received: &Received<'_>,
    rule: &CacheRule,
    flight: Flight,
    arrived: &OriginResponse,
) -> bool {
    let Some(stored) = flight.candidate() else { return false };
    let now = arrived.received;
    let fresh = arrived.head.fields.view();
    if arrived.head.status != 200 || stored.head().status() != 200 {
        return false;
    }
    match head_agrees(stored.fields(), fresh) {
        Some(true) => {}
        Some(false) => return true,
        None => return false,
    }
    let Ok(mut fields) = freshen(stored.fields(), fresh) else { return false };
    let path = received.target.path_and_query;
    let edits = received.edits(path);
    if edits.take_cookies() {
        fields.remove(Name::SetCookie);
    }
    let head = ResponseHead { fields: fields.view(), ..stored.head().view() };
    let get = RequestHead { method: Method::Get, method_text: b"GET", ..exchange.request };
    let judge = Judge { request: &get, policy: &rule.policy };
    let lifetimes = match judge.update(&head, None, arrived) {
        Storability::Store(lifetimes) => lifetimes,
        Storability::NoStore(reason) if reason.is_of_request() => return false,
        Storability::NoStore(_) => {
            return true;
        }
    };
    let (status, reason) = (stored.head().status(), stored.head().reason());
    // The lifetimes contain it now.
    fields.remove(Name::Age);
    add_date(&mut fields, now);
    let Ok(head) = edits.stored_head(status, reason, &fields) else { return false };
    let vary = VarySpec::of(fields.view(), &rule.policy.vary);
    let tags = tags_of(fields.view(), &received.host, path, &rule.key);
    let new = NewObject {
        head,
        lifetimes,
        vary: vary.key(exchange.request.fields),
        host: &received.host,
        path,
        tags: &tags,
        range: None,
        len: None,
        limit: None,
        resumable: false,
        copy: stored.copy().cloned(),
        transaction: exchange.transaction,
    };
    flight.refresh(new);
    false
}
