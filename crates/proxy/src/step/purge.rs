//! Purge: stored responses are removed on request.

use super::received::Received;
use crate::exchange::state::Exchange;
use crate::purge_target::purge_target;
use crate::respond::Synthetic;
use crate::tier;
use sandarac_cache::{Expression, Purge, Store, Tag};
use sandarac_message::{Method, tags};
use sandarac_net::wall;
use sandarac_wire::entry::{Effect, Purge as Told};

/// Answers a PURGE request. It purges the target's stored responses, all variants, under either scheme, or
/// what the fields of purge plugins describe (docs/how-to/purge-on-edit.md).
///
/// The servers of the shared tier are told of it, and those that were not reached are named.
pub(crate) async fn purge(exchange: &Exchange<'_>, received: &Received<'_>) -> Synthetic {
    let (answer, purges) = purge_memory(exchange, received);
    if exchange.site.tier.is_none() || purges.is_empty() {
        return answer;
    }
    let missing = tier::share(&exchange.core.handle(), purges, Effect::Hard).await;
    answer.untold(&missing)
}

/// Purges the objects in RAM. Returns what the servers of the shared tier are to be told.
fn purge_memory(exchange: &Exchange<'_>, received: &Received<'_>) -> (Synthetic, Vec<Told>) {
    if exchange.request.method != Method::Purge {
        let method = String::from_utf8_lossy(exchange.request.method_text);
        let what = "nothing was removed; have the application send PURGE (docs/how-to/purge-on-edit.md)";
        return (Synthetic::bad(&format!("the method {method} is that of a VCL: {what}")), Vec::new());
    }
    let store = &exchange.core.shared.store;
    let fields = exchange.request.fields;
    let tags: Vec<Tag> = tags::tags(fields).map(Tag::new).collect();
    if !tags.is_empty() {
        let told = tags.iter().map(|tag| Told::Tag(tag.bits())).collect();
        return (purged(store.purge_tags(&tags, Purge::Hard, wall())), told);
    }
    if let Some(pattern) = fields.all_named(MAGENTO).next() {
        return ban(store, &format!("field.X-Magento-Tags ~ {}", quoted(pattern)));
    }
    let path = received.target.path_and_query;
    match fields.all_named(METHOD).next() {
        Some(method) if method.eq_ignore_ascii_case(b"regex") => {
            ban(store, &format!("host == {} && path ~ {}", quoted(&received.host), quoted(path)))
        }
        Some(method)
            if !method.eq_ignore_ascii_case(b"default") && !method.eq_ignore_ascii_case(b"exact") =>
        {
            (Synthetic::bad("`X-Purge-Method` is `regex`, `exact` or `default`"), Vec::new())
        }
        _ => {
            let routes = &exchange.site.config.routes;
            let answer = purged(purge_target(store, routes, &received.host, path, Purge::Hard));
            (answer, tier::of_target(routes, &received.host, path))
        }
    }
}

/// The kind of purge, sent by WordPress purge plugins.
const METHOD: &[u8] = b"x-purge-method";

/// A pattern of tags, sent by Magento 2.
const MAGENTO: &[u8] = b"x-magento-tags-pattern";

fn purged(objects: usize) -> Synthetic {
    Synthetic::done(if objects > 0 { "purged" } else { "nothing was stored" })
}

/// Bans the objects that an expression describes.
fn ban(store: &Store, expression: &str) -> (Synthetic, Vec<Told>) {
    match Expression::parse(expression) {
        Ok(parsed) => {
            store.ban(parsed, wall());
            (Synthetic::done("banned"), vec![Told::Ban(expression.to_owned())])
        }
        Err(error) => {
            let what = format!("the pattern is wrong: {}; {}", error.what, error.instead);
            (Synthetic::bad(&what), Vec::new())
        }
    }
}

/// A text in an expression.
fn quoted(text: &[u8]) -> String {
    format!("\"{}\"", String::from_utf8_lossy(text).replace('\\', "\\\\").replace('"', "\\\""))
}
