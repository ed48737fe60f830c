//! Purge: stored responses are removed on request.

use crate::exchange::state::Exchange;
use crate::purger::{Purger, Selection, quoted};
use crate::request::received::Received;
use crate::respond::Synthetic;
use sandarac_cache::{Expression, Purge, Tag};
use sandarac_message::{Method, tags};

/// Answers a PURGE request. It purges the target's stored responses, all variants, under either scheme, or
/// what the fields of purge plugins describe (docs/how-to/purge-on-edit.md).
///
/// The servers of the shared tier are told of it, and those that were not reached are named.
pub(crate) async fn purge(exchange: &Exchange<'_>, received: &Received<'_>) -> Synthetic {
    let selection = match selection(exchange, received) {
        Ok(selection) => selection,
        Err(what) => return Synthetic::bad(&what),
    };
    let purger = Purger::of(&exchange.core.shared);
    let is_ban = matches!(selection, Selection::Matching(_));
    let purged = purger.purge(&[selection], Purge::Hard, purger.patience());
    let done = match purged.objects {
        _ if is_ban => "banned",
        0 => "nothing was stored",
        _ => "purged",
    };
    Synthetic::done(done).untold(&purged.reached().await)
}

/// What a request purges, or what is wrong with it.
fn selection(exchange: &Exchange<'_>, received: &Received<'_>) -> Result<Selection, String> {
    if exchange.request.method != Method::Purge {
        let method = String::from_utf8_lossy(exchange.request.method_text);
        let what = "nothing was removed; have the application send PURGE (docs/how-to/purge-on-edit.md)";
        return Err(format!("the method {method} is that of a VCL: {what}"));
    }
    let fields = exchange.request.fields;
    let tags: Vec<Tag> = tags::tags(fields).map(Tag::new).collect();
    if !tags.is_empty() {
        return Ok(Selection::Tags(tags));
    }
    if let Some(pattern) = fields.all_named(MAGENTO).next() {
        return ban(&format!("field.X-Magento-Tags ~ {}", quoted(pattern)));
    }
    let path = received.target.path_and_query;
    match fields.all_named(METHOD).next() {
        Some(method) if method.eq_ignore_ascii_case(b"regex") => {
            ban(&format!("host == {} && path ~ {}", quoted(&received.host), quoted(path)))
        }
        Some(method)
            if !method.eq_ignore_ascii_case(b"default") && !method.eq_ignore_ascii_case(b"exact") =>
        {
            Err("`X-Purge-Method` is `regex`, `exact` or `default`".to_owned())
        }
        _ => Ok(Selection::of_target(&received.host, path)),
    }
}

/// The kind of purge, sent by WordPress purge plugins.
const METHOD: &[u8] = b"x-purge-method";

/// A pattern of tags, sent by Magento 2.
const MAGENTO: &[u8] = b"x-magento-tags-pattern";

/// A ban of the objects that an expression describes.
fn ban(expression: &str) -> Result<Selection, String> {
    let parsed = Expression::parse(expression);
    parsed
        .map(Selection::Matching)
        .map_err(|error| format!("the pattern is wrong: {}; {}", error.what, error.instead))
}
