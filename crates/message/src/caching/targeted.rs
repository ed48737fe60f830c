//! Fields that speak to some caches only: targeted Cache-Control fields (RFC 9213) and Surrogate-Control (W3C Edge
//! Architecture).

use std::convert::Infallible;

use sfv::visitor::{
    DictionaryVisitor, EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ParameterVisitor,
};
use sfv::{BareItemFromInput, KeyRef, Parser};

use super::directives::{ResponseDirectives, delta_seconds};
use crate::{Fields, Name};

/// The device token by which Surrogate-Control can address this cache, and the value of the `Surrogate-Capability`
/// request field that announces it.
pub const SURROGATE_DEVICE: &str = "sandarac";
/// See [`SURROGATE_DEVICE`].
pub const SURROGATE_CAPABILITY: &str = "sandarac=\"Surrogate/1.0\"";

/// The directives of the first field that is addressed to this cache, present, valid and not empty; `None` where
/// Cache-Control and Expires count.
pub(super) fn targeted(fields: Fields<'_>) -> Option<ResponseDirectives> {
    structured(fields, Name::SandaracCacheControl)
        .or_else(|| structured(fields, Name::CdnCacheControl))
        .or_else(|| surrogate(fields))
}

/// Reads one targeted field (RFC 9213 §2.1). A syntax error anywhere, or a known directive whose last value has another
/// type than it should, makes the field count as absent.
fn structured(fields: Fields<'_>, name: Name) -> Option<ResponseDirectives> {
    let mut lines = fields.all(name);
    let first = lines.next()?;
    let Some(second) = lines.next() else {
        return read_dictionary(first);
    };
    let mut joined = [first, b", ", second].concat();
    for line in lines {
        joined.extend_from_slice(b", ");
        joined.extend_from_slice(line);
    }
    read_dictionary(&joined)
}

fn read_dictionary(text: &[u8]) -> Option<ResponseDirectives> {
    let mut found = Found { values: [Value::Absent; KEYS.len()], any: false };
    Parser::new(text).parse_dictionary_with_visitor(&mut found).ok()?;
    found.any.then(|| found.directives()).flatten()
}

const KEYS: [&str; 12] = [
    "no-store",
    "no-cache",
    "private",
    "public",
    "must-revalidate",
    "proxy-revalidate",
    "must-understand",
    "immutable",
    "max-age",
    "s-maxage",
    "stale-while-revalidate",
    "stale-if-error",
];

#[derive(Clone, Copy)]
enum Value {
    Absent,
    Flag(bool),
    Integer(i64),
    String,
    Wrong,
}

/// The last value of every known key: a later one replaces an earlier one whatever its type (RFC 9651 §4.2.2).
struct Found {
    values: [Value; KEYS.len()],
    any: bool,
}

impl Found {
    fn flag(&self, at: usize) -> Option<bool> {
        match self.values[at] {
            Value::Absent => Some(false),
            Value::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    /// `no-cache` and `private` may name fields; that form is taken for the stricter plain one.
    fn flag_or_names(&self, at: usize) -> Option<bool> {
        match self.values[at] {
            Value::String => Some(true),
            _ => self.flag(at),
        }
    }

    fn seconds(&self, at: usize) -> Option<Option<u32>> {
        match self.values[at] {
            Value::Absent => Some(None),
            Value::Integer(number) => Some(Some(u32::try_from(number.max(0)).unwrap_or(u32::MAX))),
            _ => None,
        }
    }

    fn directives(&self) -> Option<ResponseDirectives> {
        Some(ResponseDirectives {
            no_store: self.flag(0)?,
            no_cache: self.flag_or_names(1)?,
            private: self.flag_or_names(2)?,
            public: self.flag(3)?,
            must_revalidate: self.flag(4)?,
            proxy_revalidate: self.flag(5)?,
            must_understand: self.flag(6)?,
            immutable: self.flag(7)?,
            max_age: self.seconds(8)?,
            s_maxage: self.seconds(9)?,
            stale_while_revalidate: self.seconds(10)?,
            stale_if_error: self.seconds(11)?,
        })
    }
}

impl<'de> DictionaryVisitor<'de> for &mut Found {
    type Out = ();
    type Error = Infallible;

    fn entry(&mut self, key: &'de KeyRef) -> Result<impl EntryVisitor<'de>, Infallible> {
        self.any = true;
        Ok(KEYS.iter().position(|known| *known == key.as_str()).map(|at| Slot(&mut self.values[at])))
    }

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}

struct Slot<'a>(&'a mut Value);

impl<'de> EntryVisitor<'de> for Slot<'_> {
    type Error = Infallible;

    fn item(self) -> Result<impl ItemVisitor<'de>, Infallible> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Infallible> {
        *self.0 = Value::Wrong;
        Ok(Ignored)
    }
}

impl<'de> ItemVisitor<'de> for Slot<'_> {
    type Out = ();
    type Error = Infallible;

    fn bare_item(
        self,
        item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = ()>, Infallible> {
        *self.0 = match item {
            BareItemFromInput::Boolean(flag) => Value::Flag(flag),
            BareItemFromInput::Integer(number) => Value::Integer(number.into()),
            BareItemFromInput::String(_) => Value::String,
            _ => Value::Wrong,
        };
        Ok(Ignored)
    }
}

/// Reads Surrogate-Control: `no-store`, and `max-age=N` or `max-age=N+M`, where M is how long past N it may be served
/// while it is fetched again or the origin fails. Members addressed to other devices, `content` and what is malformed
/// are passed over; `None` where nothing is left.
fn surrogate(fields: Fields<'_>) -> Option<ResponseDirectives> {
    let mut directives = ResponseDirectives::default();
    let mut any = false;
    for member in fields.list(Name::SurrogateControl) {
        let mut parts = member.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let directive = parts.next().unwrap_or_default();
        let mut devices = parts.peekable();
        if devices.peek().is_some()
            && !devices.any(|device| device.eq_ignore_ascii_case(SURROGATE_DEVICE.as_bytes()))
        {
            continue;
        }
        if directive.eq_ignore_ascii_case(b"no-store") {
            directives.no_store = true;
            any = true;
        } else if let Some((name, value)) = directive.split_at_checked(8)
            && name.eq_ignore_ascii_case(b"max-age=")
            && directives.max_age.is_none()
        {
            let (fresh, extension) = match memchr::memchr(b'+', value) {
                Some(at) => (&value[..at], delta_seconds(&value[at + 1..])),
                None => (value, None),
            };
            if let Some(fresh) = delta_seconds(fresh) {
                directives.max_age = Some(fresh);
                directives.stale_while_revalidate = extension;
                directives.stale_if_error = extension;
                any = true;
            }
        }
    }
    any.then_some(directives)
}
