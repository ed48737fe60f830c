//! Purge: stored responses are removed on request.

use super::received::Received;
use crate::exchange::state::Exchange;
use crate::purge_target::purge_target;
use crate::respond::Synthetic;
use sandarac_cache::{Expression, Purge, Store, Tag};
use sandarac_message::{Method, tags};
use sandarac_net::wall;

/// Answers a PURGE request. It purges the target's stored responses, all variants, under either scheme, or
/// what the fields of purge plugins describe (docs/how-to/purge-on-edit.md).
pub(crate) fn purge(exchange: &Exchange<'_>, received: &Received<'_>) -> Synthetic {
    if exchange.request.method != Method::Purge {
        let method = String::from_utf8_lossy(exchange.request.method_text);
        let what = "nothing was removed; have the application send PURGE (docs/how-to/purge-on-edit.md)";
        return Synthetic::bad(&format!("the method {method} is that of a VCL: {what}"));
    }
    let store = &exchange.core.shared.store;
    let fields = exchange.request.fields;
    let tags: Vec<Tag> = tags::tags(fields).map(Tag::new).collect();
    if !tags.is_empty() {
        return purged(store.purge_tags(&tags, Purge::Hard, wall()));
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
            Synthetic::bad("`X-Purge-Method` is `regex`, `exact` or `default`")
        }
        _ => {
            let routes = &exchange.site.config.routes;
            purged(purge_target(store, routes, &received.host, path, Purge::Hard))
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
fn ban(store: &Store, expression: &str) -> Synthetic {
    match Expression::parse(expression) {
        Ok(expression) => {
            store.ban(expression, wall());
            Synthetic::done("banned")
        }
        Err(error) => Synthetic::bad(&format!("the pattern is wrong: {}; {}", error.what, error.instead)),
    }
}

/// A text in an expression.
fn quoted(text: &[u8]) -> String {
    format!("\"{}\"", String::from_utf8_lossy(text).replace('\\', "\\\\").replace('"', "\\\""))
}
