//! The expression of a ban: its grammar and its meaning.

use super::condition::{Attributes, Node};
use super::parse::{self, ExpressionError};
use crate::Object;

/// An expression over the host, path, status and response fields of an object:
///
/// ```text
/// host == "example.org" && path ~ "^/news/" && !(status >= 400 || field.Content-Type ~ "^image/")
/// ```
/// `==` and `!=` compare bytes, `~` and `!~` search by regular expression (of the `regex` crate), and
/// `status` may also be compared by `<`, `<=`, `>` and `>=`. A field test holds if it holds for one of the
/// field's lines. A negated one holds if it holds for none of them, including when the field is missing.
/// Hosts are compared in lower case. `&&` binds tighter than `||`; text is in double quotes, with `\"`
/// and `\\` in it.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    root: Node,
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
        let (host, path, status) = (object.host(), object.path(), object.head().status());
        let fields = (!object.is_joined()).then(|| object.fields());
        self.holds(&Attributes { host, path, status, fields })
    }

    /// Whether it holds for a response with these attributes, or could hold if its fields were known.
    pub fn holds(&self, response: &Attributes<'_>) -> bool {
        self.root.matches(response, true)
    }
}

impl std::str::FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Expression, ExpressionError> {
        Expression::parse(text)
    }
}
