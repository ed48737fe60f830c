//! Priorities of responses (RFC 9218).

use sfv::visitor::{
    DictionaryVisitor, EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ParameterVisitor,
};
use sfv::{BareItemFromInput, KeyRef, Parser};
use std::convert::Infallible;

/// The priority of one response (RFC 9218 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 to 7; lower values are sent first.
    pub urgency: u8,
    /// Whether the response is of use in parts, so that it may share the connection with others.
    pub incremental: bool,
}

impl Default for Priority {
    /// Urgency 3, not incremental (RFC 9218 §4).
    fn default() -> Priority {
        Priority { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// Reads a Priority field value. What is absent or invalid has its default (RFC 9218 §4).
    pub fn parse(value: &[u8]) -> Priority {
        Priority::default().updated_by(value)
    }

    /// This priority with the parameters of another Priority field value, as an origin's response has it (RFC
    /// 9218 §8). A malformed value changes nothing.
    pub fn updated_by(self, value: &[u8]) -> Priority {
        let mut updated = self;
        match Parser::new(value).parse_dictionary_with_visitor(Entries(&mut updated)) {
            Ok(()) => updated,
            Err(_) => self,
        }
    }
}

struct Entries<'p>(&'p mut Priority);

impl<'de> DictionaryVisitor<'de> for Entries<'_> {
    type Out = ();
    type Error = Infallible;

    fn entry(&mut self, key: &'de KeyRef) -> Result<impl EntryVisitor<'de>, Infallible> {
        Ok(Value { key, priority: self.0 })
    }

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}

struct Value<'de, 'p> {
    key: &'de KeyRef,
    priority: &'p mut Priority,
}

impl<'de> EntryVisitor<'de> for Value<'de, '_> {
    type Error = Infallible;

    fn item(self) -> Result<impl ItemVisitor<'de>, Infallible> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Infallible> {
        Ok(Ignored)
    }
}

impl<'de> ItemVisitor<'de> for Value<'de, '_> {
    type Out = ();
    type Error = Infallible;

    fn bare_item(
        self,
        item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = ()>, Infallible> {
        match (self.key.as_str(), item) {
            ("u", BareItemFromInput::Integer(urgency)) => {
                let urgency = u8::try_from(i64::from(urgency)).ok().filter(|urgency| *urgency <= 7);
                self.priority.urgency = urgency.unwrap_or(self.priority.urgency);
            }
            ("i", BareItemFromInput::Boolean(incremental)) => self.priority.incremental = incremental,
            _ => {}
        }
        Ok(Ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_are_invalid_have_their_defaults() {
        let parse = |value: &str| {
            let Priority { urgency, incremental } = Priority::parse(value.as_bytes());
            (urgency, incremental)
        };
        assert_eq!(parse("u=0, i"), (0, true));
        assert_eq!(parse("i=?0,u=7;x"), (7, false));
        assert_eq!(parse("u=8, i"), (3, true));
        assert_eq!(parse("u=-1"), (3, false));
        assert_eq!(parse("u=1.5, i=1"), (3, false));
        assert_eq!(parse("u=1 u=2"), (3, false));
        assert_eq!(parse("u=(1), foo=bar, i"), (3, true));
        assert_eq!(parse(""), (3, false));
        assert_eq!(Priority { urgency: 5, incremental: true }.updated_by(b"u=2").urgency, 2);
    }
}
