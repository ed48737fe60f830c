//! Edits of header fields, as settings.

use sandarac_message::Name;
use sandarac_policy::Edits;

use crate::definition::settings;
use crate::field::{FieldName, FieldValue};
use crate::report::{At, Report};
use crate::template::{Use, read_template};
use crate::value::Map;

settings! {
    /// Edits of fields, made in this order: remove, set, add.
    pub(crate) struct EditSettings {
        /// Fields to remove, all lines of each.
        remove: Vec<At<FieldName>> = Vec::new();
        /// Fields to set: all lines of each are replaced by one, where the first of them stood. In a value, `{host}`, `{path}`,
        /// `{query}` and `{target}` stand for those of the request; in `request` also `{client}`, its address, `{scheme}`, and
        /// `{id}`, which the log in JSON names too: the `X-Request-Id` of a trusted proxy, or a new one. They go out as the client
        /// sent them: a target may hold `<`, `>`, `"`, `;` and `,`, and so is safe neither in `Link` nor in a cookie.
        /// `{{` is a brace, and so is one that no word in braces begins, as in JSON; a word that stands for nothing is an error,
        /// `{Host}` and `{ host }` too. What a request does not have is left out. A response that varies on a field with
        /// `{client}` or `{id}` is not stored.
        set: Map<FieldName, FieldValue> = Map::default();
        /// Fields to add, after those of the same name that are there; several values make several lines. Values are written
        /// as for `set`.
        add: Map<FieldName, Vec<FieldValue>> = Map::default();
    }
}

/// The edits that the settings ask for, on a request or on a response.
pub(crate) fn edits(settings: &EditSettings, request: bool, report: &mut Report) -> Edits {
    let mut check = |name: &At<FieldName>, set: bool| {
        let known = Name::of(name.value.as_str().as_bytes());
        if let Some(why) = refusal(known, request, set) {
            report.error(name.place.clone(), format!("`{}` cannot be edited: {why}", name.value.as_str()));
        }
    };
    let bytes = |text: &str| Box::from(text.as_bytes());
    settings.remove.iter().for_each(|name| check(name, false));
    settings.set.0.iter().for_each(|(name, _)| check(name, true));
    settings.add.0.iter().for_each(|(name, _)| check(name, false));
    let used = if request { Use::Request } else { Use::Response };
    let mut line = |name: &At<FieldName>, value: &FieldValue| {
        let template = read_template(value.as_str(), used);
        let template = template.map_err(|complaint| report.complain(name.place.clone(), complaint)).ok()?;
        Some((bytes(name.value.as_str()), template))
    };
    let set = settings.set.0.iter().filter_map(|(name, value)| line(name, value)).collect();
    let values = |(name, values): &'_ (At<FieldName>, Vec<FieldValue>)| {
        values.iter().filter_map(|value| line(name, value)).collect::<Vec<_>>()
    };
    let add = settings.add.0.iter().flat_map(values).collect();
    Edits { remove: settings.remove.iter().map(|name| bytes(name.value.as_str())).collect(), set, add }
}

/// Why a field is not for rules to edit, if it is not: in a request or a response, to be set or to be added or removed.
pub(crate) fn refusal(name: Name, request: bool, set: bool) -> Option<&'static str> {
    match name {
        Name::ContentLength | Name::TransferEncoding | Name::Trailer | Name::Te => {
            Some("the proxy frames messages itself")
        }
        Name::Connection | Name::KeepAlive | Name::ProxyConnection | Name::Upgrade => {
            Some("it is about one connection, and the proxy has its own")
        }
        Name::Host if !request => Some("a response has none"),
        Name::Host if !set => Some("a request has exactly one; it can be set"),
        _ => None,
    }
}
