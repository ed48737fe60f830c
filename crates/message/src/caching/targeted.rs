//! Fields addressed to some caches only: targeted Cache-Control fields (RFC 9213) and Surrogate-Control (W3C
//! Edge Architecture).

use sfv::BareItemFromInput;

use super::directives::{ResponseDirectives, delta_seconds};
use crate::structured::{self, Member};
use crate::{Fields, Name};

/// The device token that addresses this cache in Surrogate-Control. [`SURROGATE_CAPABILITY`] announces it to
/// the origin.
pub const SURROGATE_DEVICE: &str = "sandarac";
/// The value of the `Surrogate-Capability` request field; see [`SURROGATE_DEVICE`].
pub const SURROGATE_CAPABILITY: &str = "sandarac=\"Surrogate/1.0\"";

/// The same for a route whose pages are assembled from fragments (ESI 1.0).
pub const SURROGATE_CAPABILITY_ESI: &str = "sandarac=\"Surrogate/1.0 ESI/1.0\"";

/// Whether Surrogate-Control asks this cache to process ESI: `content="ESI/1.0"`, for all devices or this one.
pub fn announces_esi(fields: Fields<'_>) -> bool {
    fields.list(Name::SurrogateControl).any(|member| {
        let (directive, is_addressed) = addressed(member);
        let value = directive.strip_prefix(b"content=").unwrap_or_default();
        let value = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        is_addressed
            && value.split(|&byte| byte == b' ').any(|content| content.eq_ignore_ascii_case(b"ESI/1.0"))
    })
}

/// A member of Surrogate-Control without its devices, and whether these are all, or this one.
fn addressed(member: &[u8]) -> (&[u8], bool) {
    let mut parts = member.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let directive = parts.next().unwrap_or_default();
    let mut devices = parts.peekable();
    let is_addressed = devices.peek().is_none()
        || devices.any(|device| device.eq_ignore_ascii_case(SURROGATE_DEVICE.as_bytes()));
    (directive, is_addressed)
}

/// The directives of the first field that is addressed to this cache, present, valid and not empty; `None` if
/// Cache-Control and Expires apply.
pub(super) fn targeted(fields: Fields<'_>) -> Option<ResponseDirectives> {
    dictionary(fields, Name::SandaracCacheControl)
        .or_else(|| dictionary(fields, Name::CdnCacheControl))
        .or_else(|| surrogate(fields))
}

/// Reads one targeted field (RFC 9213 §2.1). A syntax error, or a known directive whose last value has the
/// wrong type, makes the whole field count as absent.
fn dictionary(fields: Fields<'_>, name: Name) -> Option<ResponseDirectives> {
    let (mut values, mut any) = ([Value::Absent; KEYS.len()], false);
    structured::dictionary(fields, name, |key, member| {
        any = true;
        if let Some(at) = KEYS.iter().position(|known| *known == key.as_str()) {
            // A later value replaces an earlier one of any type (RFC 9651 §4.2.2).
            values[at] = Value::of(member);
        }
    })?;
    any.then(|| Found(values).directives()).flatten()
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

impl Value {
    fn of(member: Member<'_>) -> Value {
        match member {
            Member::Item(BareItemFromInput::Boolean(flag)) => Value::Flag(flag),
            Member::Item(BareItemFromInput::Integer(number)) => Value::Integer(number.into()),
            Member::Item(BareItemFromInput::String(_)) => Value::String,
            _ => Value::Wrong,
        }
    }
}

/// The value of every known key.
struct Found([Value; KEYS.len()]);

impl Found {
    fn flag(&self, at: usize) -> Option<bool> {
        match self.0[at] {
            Value::Absent => Some(false),
            Value::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    /// `no-cache` and `private` may name fields; that form is treated as the stricter plain one.
    fn flag_or_names(&self, at: usize) -> Option<bool> {
        match self.0[at] {
            Value::String => Some(true),
            _ => self.flag(at),
        }
    }

    fn seconds(&self, at: usize) -> Option<Option<u32>> {
        match self.0[at] {
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

/// Reads Surrogate-Control: `no-store`, and `max-age=N` or `max-age=N+M`, where M is how long past N the
/// response may be served while it is fetched again or the origin fails. Members for other devices, `content`
/// and malformed members are ignored. `None` if nothing is left.
fn surrogate(fields: Fields<'_>) -> Option<ResponseDirectives> {
    let mut directives = ResponseDirectives::default();
    let mut any = false;
    for member in fields.list(Name::SurrogateControl) {
        let (directive, is_addressed) = addressed(member);
        if !is_addressed {
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
