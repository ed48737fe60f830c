//! Stored pages are parsed once, in steps beside other work of the core.

use super::source::Source;
use crate::core::Core;
use crate::step::body::ObjectBody;
use sandarac_cache::{Object, PageMarkup};
use sandarac_esi::TemplateBuilder;
use std::sync::Arc;

/// The longest page whose markup is kept. Longer ones are parsed as they are sent.
const LARGEST: u64 = 16 << 20;

/// Bytes that are parsed before other work of the core gets its turn.
const STEP: usize = 64 << 10;

/// Whether a page is known to have no markup.
pub(crate) fn is_plain(object: &Object) -> bool {
    matches!(object.markup(), Some(PageMarkup::Plain))
}

/// Where the parts of a whole page are. `None` if it has no markup.
pub(crate) async fn parts_of(core: &Core, object: &Arc<Object>) -> Option<Source> {
    if object.markup().is_none() && object.body().len().is_some_and(|len| len <= LARGEST) {
        let markup = parse(object).await;
        core.shared.store.keep_markup(object, markup);
    }
    match object.markup() {
        Some(PageMarkup::Plain) => None,
        Some(PageMarkup::Parts(_)) => Some(Source::Template(object.clone(), 0)),
        Some(PageMarkup::TooMany) | None => {
            let range = 0..object.body().len().unwrap_or_default();
            Some(Source::stream(Box::new(ObjectBody::Whole { object: object.clone(), range })))
        }
    }
}

async fn parse(object: &Object) -> PageMarkup {
    let mut builder = TemplateBuilder::default();
    let mut unyielded = 0;
    for piece in object.body().segments() {
        for chunk in piece.bytes().unwrap_or_default().chunks(STEP) {
            builder.push(chunk);
            unyielded += chunk.len();
            if unyielded > STEP {
                unyielded = 0;
                tokio::task::yield_now().await;
            }
        }
    }
    let len = object.body().len().unwrap_or_default();
    match builder.finish() {
        Some(template) if template.is_plain(len) => PageMarkup::Plain,
        Some(template) => PageMarkup::Parts(template),
        None => PageMarkup::TooMany,
    }
}
