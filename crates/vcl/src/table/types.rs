//! Types, their conversions, and the operators between them.

use std::fmt;

use crate::tree::{ComparisonOperator, LinkOperator};

/// A type of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// An access list.
    Acl,
    /// A backend or director.
    Backend,
    /// Binary data.
    Blob,
    /// A body, which can only be set or removed.
    Body,
    /// True or false.
    Bool,
    /// A number of bytes.
    Bytes,
    /// A length of time.
    Duration,
    /// One of the words that an argument allows.
    Enum,
    /// A header field.
    Header,
    /// A request or response.
    Http,
    /// An integer.
    Int,
    /// An address.
    Ip,
    /// A probe.
    Probe,
    /// A real number.
    Real,
    /// A pattern, written as a string.
    Regex,
    /// A storage.
    Stevedore,
    /// A text.
    String,
    /// A sub.
    Sub,
    /// A point in time.
    Time,
    /// No value.
    Void,
}

/// The types with their names.
const NAMES: &[(Type, &str)] = &[
    (Type::Acl, "ACL"),
    (Type::Backend, "BACKEND"),
    (Type::Blob, "BLOB"),
    (Type::Body, "BODY"),
    (Type::Bool, "BOOL"),
    (Type::Bytes, "BYTES"),
    (Type::Duration, "DURATION"),
    (Type::Enum, "ENUM"),
    (Type::Header, "HEADER"),
    (Type::Http, "HTTP"),
    (Type::Int, "INT"),
    (Type::Ip, "IP"),
    (Type::Probe, "PROBE"),
    (Type::Real, "REAL"),
    (Type::Regex, "REGEX"),
    (Type::Stevedore, "STEVEDORE"),
    (Type::String, "STRING"),
    (Type::Sub, "SUB"),
    (Type::Time, "TIME"),
    (Type::Void, "VOID"),
];

impl Type {
    /// The type of a name in capital letters.
    pub fn named(name: &str) -> Option<Type> {
        NAMES.iter().find(|(_, known)| *known == name).map(|&(kind, _)| kind)
    }

    /// The name in capital letters.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(kind, _)| *kind == self).map_or("", |&(_, name)| name)
    }

    /// Whether it is a text: a header field is one.
    pub fn is_text(self) -> bool {
        matches!(self, Type::String | Type::Header)
    }

    /// Whether a value is converted to a text where one is needed.
    pub fn becomes_text(self) -> bool {
        !matches!(self, Type::Body | Type::Enum | Type::Http | Type::Regex | Type::Sub | Type::Void)
    }

    /// Whether a value may stand as a condition.
    pub fn is_condition(self) -> bool {
        self.is_text() || matches!(self, Type::Bool | Type::Int | Type::Duration | Type::Backend)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of `left OPERATOR right`; `None` if there is no such operation. Sums of values without a common
/// sum are texts.
pub fn arithmetic(left: Type, operator: LinkOperator, right: Type) -> Option<Type> {
    use LinkOperator::{Add, And, Divide, Multiply, Or, Remainder, SideBySide, Subtract};
    let is_part = |of: Type| of.becomes_text() && !matches!(of, Type::Acl | Type::Probe);
    let are_texts = is_part(left) && is_part(right);
    match operator {
        Or | And => Some(Type::Bool),
        SideBySide => are_texts.then_some(Type::String),
        Add | Subtract => match (left, right) {
            (Type::Int, Type::Int) => Some(Type::Int),
            (Type::Int | Type::Real, Type::Int | Type::Real) => Some(Type::Real),
            (Type::Duration, Type::Duration) => Some(Type::Duration),
            (Type::Bytes, Type::Bytes) => Some(Type::Bytes),
            (Type::Time, Type::Duration) => Some(Type::Time),
            (Type::Time, Type::Time) if operator == Subtract => Some(Type::Duration),
            _ if operator == Add && are_texts => Some(Type::String),
            _ => None,
        },
        Multiply | Divide => match (left, right) {
            (Type::Int, Type::Int) => Some(Type::Int),
            (Type::Real, Type::Int | Type::Real) => Some(Type::Real),
            (Type::Duration | Type::Bytes, Type::Int | Type::Real) => Some(left),
            _ => None,
        },
        Remainder => (left == Type::Int && right == Type::Int).then_some(Type::Int),
    }
}

/// Whether there is a comparison `left OPERATOR right`. The right side of a match is an access list or a
/// pattern.
pub fn is_comparable(left: Type, operator: ComparisonOperator, right: Type) -> bool {
    use ComparisonOperator::{Equal, Match, NotEqual, NotMatch};
    let left = if left.is_text() { Type::String } else { left };
    let right = if right.is_text() { Type::String } else { right };
    match operator {
        Match | NotMatch => {
            (left == Type::Ip && right == Type::Acl) || (left == Type::String && right == Type::Regex)
        }
        Equal | NotEqual => {
            left == right
                && !matches!(
                    left,
                    Type::Blob | Type::Void | Type::Enum | Type::Http | Type::Body | Type::Acl | Type::Sub
                )
        }
        _ => {
            left == right
                && matches!(
                    left,
                    Type::Int | Type::Real | Type::Duration | Type::Time | Type::Bytes | Type::String
                )
        }
    }
}
