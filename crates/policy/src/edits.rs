//! Edits of header fields: remove, set, add, in this order.

use sandarac_message::{FieldsBuf, TooLarge};

use crate::template::{RequestParts, Template};

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
    /// Whether there are no edits.
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty() && self.add.is_empty()
    }

    /// Edits `fields` for a request. If they grow too large, the edits up to that point remain.
    pub fn apply(&self, fields: &mut FieldsBuf, request: &RequestParts<'_>) -> Result<(), TooLarge> {
        self.remove.iter().for_each(|name| fields.remove_named(name));
        self.set.iter().try_for_each(|(name, template)| fields.replace(name, &template.fill(request)))?;
        self.add.iter().try_for_each(|(name, template)| fields.push(name, &template.fill(request)))
    }

    /// Whether they write the same for every request.
    pub fn are_constant(&self) -> bool {
        self.written().all(|(_, template)| template.is_constant())
    }

    /// The names of fields whose values differ from one client or request to the next.
    pub fn of_one_request(&self) -> impl Iterator<Item = &[u8]> {
        self.written().filter(|(_, template)| template.is_of_one_request()).map(|(name, _)| &**name)
    }

    /// Whether any of them uses the address of the client.
    pub fn needs_client(&self) -> bool {
        self.written().any(|(_, template)| template.needs_client())
    }

    /// Whether any of them uses the id of the request.
    pub fn needs_id(&self) -> bool {
        self.written().any(|(_, template)| template.needs_id())
    }

    /// Whether any of them uses properties of the client's TLS connection.
    pub fn needs_tls(&self) -> bool {
        self.written().any(|(_, template)| template.needs_tls())
    }

    /// The fields that are set or added.
    fn written(&self) -> impl Iterator<Item = &FieldTemplate> {
        self.set.iter().chain(&self.add)
    }

    /// The names that are removed or replaced.
    pub fn edited(&self) -> impl Iterator<Item = &[u8]> {
        self.remove.iter().chain(self.set.iter().map(|(name, _)| name)).map(|name| &**name)
    }
}

/// Edits of responses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseEdits {
    /// Edits of all responses.
    pub all: Edits,
    /// Further edits of responses that are stored.
    pub stored: Edits,
    /// Further edits of responses that are not stored.
    pub passed: Edits,
}

impl ResponseEdits {
    /// The names that any of them removes or replaces.
    pub fn edited(&self) -> impl Iterator<Item = &[u8]> {
        [&self.all, &self.stored, &self.passed].into_iter().flat_map(Edits::edited)
    }
}
