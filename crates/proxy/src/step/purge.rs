//! Purge: stored responses are removed on request.

use super::received::Received;
use crate::exchange::state::Exchange;
use crate::purge_target::purge_target;
use crate::respond::Synthetic;
use crate::tier;
use sandarac_cache::{Expression, Purge, Store, Tag};
use sandarac_message::{Method, tags};
use sandarac_net::wall;
use sandarac_policy::Routes;
use sandarac_wire::entry::{Effect, Purge as Told};

/// Answers a PURGE request. It purges the target's stored responses, all variants, under either scheme, or
/// what the fields of purge plugins describe (docs/how-to/purge-on-edit.md).
///
/// The servers of the shared tier are told of it, and those that were not reached are named.
pub(crate) async fn purge(exchange: &Exchange<'_>, received: &Received<'_>) -> Synthetic {
    let wanted = match wanted(exchange, received) {
        Ok(wanted) => wanted,
        Err(what) => return Synthetic::bad(&what),
    };
    let routes = &exchange.site.config.routes;
    let told = wanted.told(routes, received);
    let calls = tier::note(exchange.core, told, Effect::Hard);
    let answer = wanted.apply(&exchange.core.shared.store, routes, received);
    match calls {
        Some(calls) => answer.untold(&tier::reached(&calls).await),
        None => answer,
    }
}

/// What a request purges.
enum Wanted {
    Tags(Vec<Tag>),
    Ban(Expression, String),
    Target,
}

/// What a request purges, or what is wrong with it.
fn wanted(exchange: &Exchange<'_>, received: &Received<'_>) -> Result<Wanted, String> {
    if exchange.request.method != Method::Purge {
        let method = String::from_utf8_lossy(exchange.request.method_text);
        let what = "nothing was removed; have the application send PURGE (docs/how-to/purge-on-edit.md)";
        return Err(format!("the method {method} is that of a VCL: {what}"));
    }
    let fields = exchange.request.fields;
    let tags: Vec<Tag> = tags::tags(fields).map(Tag::new).collect();
    if !tags.is_empty() {
        return Ok(Wanted::Tags(tags));
    }
    if let Some(pattern) = fields.all_named(MAGENTO).next() {
        return ban(format!("field.X-Magento-Tags ~ {}", quoted(pattern)));
    }
    let path = received.target.path_and_query;
    match fields.all_named(METHOD).next() {
        Some(method) if method.eq_ignore_ascii_case(b"regex") => {
            ban(format!("host == {} && path ~ {}", quoted(&received.host), quoted(path)))
        }
        Some(method)
            if !method.eq_ignore_ascii_case(b"default") && !method.eq_ignore_ascii_case(b"exact") =>
        {
            Err("`X-Purge-Method` is `regex`, `exact` or `default`".to_owned())
        }
        _ => Ok(Wanted::Target),
    }
}

impl Wanted {
    /// What the servers of the shared tier are told.
    fn told(&self, routes: &Routes, received: &Received<'_>) -> Vec<Told> {
        match self {
            Wanted::Tags(tags) => tags.iter().map(|tag| Told::Tag(tag.bits())).collect(),
            Wanted::Ban(_, text) => vec![Told::Ban(text.clone())],
            Wanted::Target => tier::of_target(routes, &received.host, received.target.path_and_query),
        }
    }

    /// Purges the objects in RAM.
    fn apply(self, store: &Store, routes: &Routes, received: &Received<'_>) -> Synthetic {
        match self {
            Wanted::Tags(tags) => purged(store.purge_tags(&tags, Purge::Hard, wall())),
            Wanted::Ban(expression, _) => {
                store.ban(expression, wall());
                Synthetic::done("banned")
            }
            Wanted::Target => {
                let path = received.target.path_and_query;
                purged(purge_target(store, routes, &received.host, path, Purge::Hard))
            }
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

/// A ban of the objects that an expression describes.
fn ban(expression: String) -> Result<Wanted, String> {
    match Expression::parse(&expression) {
        Ok(parsed) => Ok(Wanted::Ban(parsed, expression)),
        Err(error) => Err(format!("the pattern is wrong: {}; {}", error.what, error.instead)),
    }
}

/// A text in an expression.
fn quoted(text: &[u8]) -> String {
    format!("\"{}\"", String::from_utf8_lossy(text).replace('\\', "\\\\").replace('"', "\\\""))
}
