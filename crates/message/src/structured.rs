//! Structured fields (RFC 9651), as far as this crate needs them: lists and dictionaries whose members are
//! plain items.

use std::convert::Infallible;

use sfv::visitor::{
    DictionaryVisitor, EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ListVisitor, ParameterVisitor,
};
use sfv::{BareItemFromInput, KeyRef, Parser};

use crate::{Fields, Name};

/// A member of a list, or a value in a dictionary. Parameters are ignored.
pub(crate) enum Member<'a> {
    Item(BareItemFromInput<'a>),
    InnerList,
}

/// Passes each member of a list, over all lines of the field, to `take`. `None` if the field is absent or
/// malformed.
pub(crate) fn list(fields: Fields<'_>, name: Name, take: impl FnMut(Member<'_>)) -> Option<()> {
    let text = joined(fields, name)?;
    Parser::new(&text).parse_list_with_visitor(Members(take)).ok()
}

/// Passes each key of a dictionary, over all lines of the field, with its value to `take`, including earlier
/// values of a repeated key, which the last one replaces. `None` if the field is absent or malformed.
pub(crate) fn dictionary(
    fields: Fields<'_>,
    name: Name,
    take: impl FnMut(&KeyRef, Member<'_>),
) -> Option<()> {
    let text = joined(fields, name)?;
    Parser::new(&text).parse_dictionary_with_visitor(Entries(take)).ok()
}

/// The lines of a field, joined (RFC 9651 §4.2).
fn joined<'a>(fields: Fields<'a>, name: Name) -> Option<std::borrow::Cow<'a, [u8]>> {
    let mut lines = fields.all(name);
    let mut joined = std::borrow::Cow::Borrowed(lines.next()?);
    for line in lines {
        let joined = joined.to_mut();
        joined.extend_from_slice(b", ");
        joined.extend_from_slice(line);
    }
    Some(joined)
}

struct Members<F>(F);

impl<'de, F: FnMut(Member<'de>)> ListVisitor<'de> for Members<F> {
    type Out = ();
    type Error = Infallible;

    fn entry(&mut self) -> Result<impl EntryVisitor<'de>, Infallible> {
        Ok(Value(&mut self.0))
    }

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}

struct Entries<F>(F);

impl<'de, F: FnMut(&'de KeyRef, Member<'de>)> DictionaryVisitor<'de> for Entries<F> {
    type Out = ();
    type Error = Infallible;

    fn entry(&mut self, key: &'de KeyRef) -> Result<impl EntryVisitor<'de>, Infallible> {
        let take = &mut self.0;
        Ok(Value(move |member: Member<'de>| take(key, member)))
    }

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}

struct Value<F>(F);

impl<'de, F: FnOnce(Member<'de>)> EntryVisitor<'de> for Value<F> {
    type Error = Infallible;

    fn item(self) -> Result<impl ItemVisitor<'de>, Infallible> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Infallible> {
        (self.0)(Member::InnerList);
        Ok(Ignored)
    }
}

impl<'de, F: FnOnce(Member<'de>)> ItemVisitor<'de> for Value<F> {
    type Out = ();
    type Error = Infallible;

    fn bare_item(
        self,
        item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = ()>, Infallible> {
        (self.0)(Member::Item(item));
        Ok(Ignored)
    }
}
