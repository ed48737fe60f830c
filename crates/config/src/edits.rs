//! Edits of header fields: remove, set, add, in this order.

use sandarac_message::{FieldsBuf, Name, TooLarge};

use crate::field::{FieldName, FieldValue};
use crate::report::{At, Report};
use crate::setting::settings;
use crate::template::{RequestParts, Template, Use};
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

/// A field: its name and its value.
pub type FieldLine = (Box<[u8]>, Box<[u8]>);

/// A field that an edit writes: its name, and its value for a request.
pub type FieldTemplate = (Box<[u8]>, Template);

/// Edits of fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// Names whose lines are removed.
    pub remove: Vec<Box<[u8]>>,
    /// Fields that replace all lines of their name.
    pub set: Vec<FieldTemplate>,
    /// Fields that are added after all others.
    pub add: Vec<FieldTemplate>,
}

impl Edits {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty() && self.add.is_empty()
    }

    /// Edits `fields` for a request. Where they grow too large, the edits up to there are made.
    pub fn apply(&self, fields: &mut FieldsBuf, request: &RequestParts<'_>) -> Result<(), TooLarge> {
        self.remove.iter().for_each(|name| fields.remove_named(name));
        self.set.iter().try_for_each(|(name, template)| fields.replace(name, &template.fill(request)))?;
        self.add.iter().try_for_each(|(name, template)| fields.push(name, &template.fill(request)))
    }

    /// The names of fields whose values differ from one client or request to the next.
    pub(crate) fn of_one_request(&self) -> impl Iterator<Item = &[u8]> {
        self.written().filter(|(_, template)| template.is_of_one_request()).map(|(name, _)| &**name)
    }

    /// Whether any of them takes the address of the client.
    pub fn needs_client(&self) -> bool {
        self.written().any(|(_, template)| template.needs_client())
    }

    /// Whether any of them takes the id of the request.
    pub fn needs_id(&self) -> bool {
        self.written().any(|(_, template)| template.needs_id())
    }

    /// The fields that are set or added.
    fn written(&self) -> impl Iterator<Item = &FieldTemplate> {
        self.set.iter().chain(&self.add)
    }

    /// The names that are removed or replaced.
    pub fn edited(&self) -> impl Iterator<Item = &[u8]> {
        self.remove.iter().chain(self.set.iter().map(|(name, _)| name)).map(|name| &**name)
    }

    /// The edits that the settings ask for, on a request or on a response.
    pub(crate) fn of(settings: &EditSettings, request: bool, report: &mut Report) -> Edits {
        let mut check = |name: &At<FieldName>, set: bool| {
            let known = Name::of(name.value.as_str().as_bytes());
            if let Some(why) = refusal(known, request, set) {
                report
                    .error(name.place.clone(), format!("`{}` cannot be edited: {why}", name.value.as_str()));
            }
        };
        let bytes = |text: &str| Box::from(text.as_bytes());
        settings.remove.iter().for_each(|name| check(name, false));
        settings.set.0.iter().for_each(|(name, _)| check(name, true));
        settings.add.0.iter().for_each(|(name, _)| check(name, false));
        let used = if request { Use::Request } else { Use::Response };
        let mut line = |name: &At<FieldName>, value: &FieldValue| {
            let template = Template::read(value.as_str(), used);
            let template =
                template.map_err(|complaint| report.complain(name.place.clone(), complaint)).ok()?;
            Some((bytes(name.value.as_str()), template))
        };
        let set = settings.set.0.iter().filter_map(|(name, value)| line(name, value)).collect();
        let values = |(name, values): &'_ (At<FieldName>, Vec<FieldValue>)| {
            values.iter().filter_map(|value| line(name, value)).collect::<Vec<_>>()
        };
        let add = settings.add.0.iter().flat_map(values).collect();
        Edits { remove: settings.remove.iter().map(|name| bytes(name.value.as_str())).collect(), set, add }
    }
}

/// Edits of responses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseEdits {
    /// Of all.
    pub all: Edits,
    /// After those, of responses that are stored.
    pub stored: Edits,
    /// After those, of responses that are not stored.
    pub passed: Edits,
}

impl ResponseEdits {
    /// The names that any of them removes or replaces.
    pub fn edited(&self) -> impl Iterator<Item = &[u8]> {
        [&self.all, &self.stored, &self.passed].into_iter().flat_map(Edits::edited)
    }
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
