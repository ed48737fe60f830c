//! Edits of header fields: remove, set, add, in this order.

use sandarac_message::{FieldsBuf, Name, TooLarge};

use crate::field::{FieldName, FieldValue};
use crate::report::{At, Report};
use crate::setting::settings;
use crate::value::Map;

settings! {
    /// Edits of fields, made in this order: remove, set, add.
    pub(crate) struct EditSettings {
        /// Fields to remove, all lines of each.
        remove: Vec<At<FieldName>> = Vec::new();
        /// Fields to set: all lines of each are replaced by one, where the first of them stood.
        set: Map<FieldName, FieldValue> = Map::default();
        /// Fields to add, after those of the same name that are there; several values make several lines.
        add: Map<FieldName, Vec<FieldValue>> = Map::default();
    }
}

/// A field: its name and its value.
pub type FieldLine = (Box<[u8]>, Box<[u8]>);

/// Edits of fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// Names whose lines are removed.
    pub remove: Vec<Box<[u8]>>,
    /// Fields that replace all lines of their name.
    pub set: Vec<FieldLine>,
    /// Fields that are added after all others.
    pub add: Vec<FieldLine>,
}

impl Edits {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty() && self.add.is_empty()
    }

    /// Edits `fields`. Where they grow too large, the edits up to there are made.
    pub fn apply(&self, fields: &mut FieldsBuf) -> Result<(), TooLarge> {
        self.remove.iter().for_each(|name| fields.remove_named(name));
        self.set.iter().try_for_each(|(name, value)| fields.replace(name, value))?;
        self.add.iter().try_for_each(|(name, value)| fields.push(name, value))
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
        let pair = |name: &FieldName, value: &FieldValue| (bytes(name.as_str()), bytes(value.as_str()));
        settings.remove.iter().for_each(|name| check(name, false));
        settings.set.0.iter().for_each(|(name, _)| check(name, true));
        settings.add.0.iter().for_each(|(name, _)| check(name, false));
        Edits {
            remove: settings.remove.iter().map(|name| bytes(name.value.as_str())).collect(),
            set: settings.set.0.iter().map(|(name, value)| pair(&name.value, value)).collect(),
            add: settings
                .add
                .0
                .iter()
                .flat_map(|(name, values)| values.iter().map(|value| pair(&name.value, value)))
                .collect(),
        }
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
