//! The conditions that an expression is made of.

use regex::bytes::Regex;

use sandarac_message::Fields;

/// The attributes of a response that expressions are about.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// The host it was requested from.
    pub host: &'a [u8],
    /// The path and query it was requested by.
    pub path: &'a [u8],
    /// Its status.
    pub status: u16,
    /// Its fields. `None` if it was joined from parts, whose fields may have differed.
    pub fields: Option<Fields<'a>>,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Status(Order, u16),
    Text(Subject, Matcher),
}

/// The text of an object that a condition tests.
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

impl Node {
    /// Whether it holds, if every test of an unknown field has the result `unknown`.
    pub(super) fn matches(&self, response: &Attributes<'_>, unknown: bool) -> bool {
        match self {
            Node::All(nodes) => nodes.iter().all(|node| node.matches(response, unknown)),
            Node::Any(nodes) => nodes.iter().any(|node| node.matches(response, unknown)),
            Node::Not(node) => !node.matches(response, !unknown),
            Node::Status(order, status) => order.holds(response.status, *status),
            Node::Text(Subject::Host, matcher) => matcher.matches(&response.host.to_ascii_lowercase()),
            Node::Text(Subject::Path, matcher) => matcher.matches(response.path),
            Node::Text(Subject::Field(name), matcher) => {
                let holds = |fields: Fields<'_>| fields.all_named(name).any(|value| matcher.matches(value));
                response.fields.map_or(unknown, holds)
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
