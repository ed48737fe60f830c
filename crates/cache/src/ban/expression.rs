//! The expression of a ban: its grammar and its meaning.

use regex::bytes::Regex;

use super::parse::{self, ExpressionError};
use crate::Object;

/// An expression over the host, path, status and response fields of an object:
///
/// ```text
/// host == "example.org" && path ~ "^/news/" && !(status >= 400 || field.Content-Type ~ "^image/")
/// ```
/// `==` and `!=` compare bytes, `~` and `!~` search by regular expression (of the `regex` crate), and `status` may also be
/// compared by `<`, `<=`, `>` and `>=`. A field test holds where it holds for one of the field's lines; a negated one
/// where it holds for none, so also where the field is missing. Hosts are compared in lower case. `&&` binds more than
/// `||`; text stands in double quotes, with `\"` and `\\` in it.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    root: Node,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Status(Order, u16),
    Text(Subject, Matcher),
}

/// What a text is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Host,
    Path,
    Field(Box<[u8]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Equal,
    Less,
    AtMost,
    More,
    AtLeast,
}

#[derive(Clone, Debug)]
pub(super) enum Matcher {
    Equal(Box<[u8]>),
    Pattern(Regex),
}

impl Expression {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Expression, ExpressionError> {
        Ok(Expression { text: text.to_owned(), root: parse::parse(text)? })
    }

    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it holds for an object.
    pub fn matches(&self, object: &Object) -> bool {
        self.root.matches(object)
    }
}

impl std::str::FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Expression, ExpressionError> {
        Expression::parse(text)
    }
}

impl Node {
    fn matches(&self, object: &Object) -> bool {
        match self {
            Node::All(nodes) => nodes.iter().all(|node| node.matches(object)),
            Node::Any(nodes) => nodes.iter().any(|node| node.matches(object)),
            Node::Not(node) => !node.matches(object),
            Node::Status(order, status) => order.holds(object.head().status(), *status),
            Node::Text(Subject::Host, matcher) => matcher.matches(&object.host().to_ascii_lowercase()),
            Node::Text(Subject::Path, matcher) => matcher.matches(object.path()),
            Node::Text(Subject::Field(name), matcher) => {
                object.fields().all_named(name).any(|value| matcher.matches(value))
            }
        }
    }
}

impl Order {
    fn holds(self, status: u16, other: u16) -> bool {
        match self {
            Order::Equal => status == other,
            Order::Less => status < other,
            Order::AtMost => status <= other,
            Order::More => status > other,
            Order::AtLeast => status >= other,
        }
    }
}

impl Matcher {
    fn matches(&self, text: &[u8]) -> bool {
        match self {
            Matcher::Equal(other) => **other == *text,
            Matcher::Pattern(pattern) => pattern.is_match(text),
        }
    }
}
