//! Reading ban expressions.

use std::ops::Range;

use regex::bytes::RegexBuilder;

use super::condition::{Matcher, Node, Order, Subject};

/// The deepest nesting of parentheses and negations.
const DEPTH: usize = 32;
/// The longest expression, in bytes: a purge plugin's pattern of 16 KiB with every byte of it quoted, and the
/// test around it.
const LENGTH: usize = 33 * 1024;
/// The largest compiled regular expression, in bytes.
const PATTERN: usize = 1 << 20;

/// An error in an expression: its position, the fault, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// The bytes of the expression that are wrong; empty if something is missing there.
    pub at: Range<usize>,
    /// The fault.
    pub what: String,
    /// The text to write instead.
    pub instead: String,
}

impl std::fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "column {}: {}; {}", self.at.start + 1, self.what, self.instead)
    }
}

impl std::error::Error for ExpressionError {}

type Result<T> = std::result::Result<T, ExpressionError>;

fn error<T>(at: Range<usize>, what: impl Into<String>, instead: impl Into<String>) -> Result<T> {
    Err(ExpressionError { at, what: what.into(), instead: instead.into() })
}

pub(super) fn parse(text: &str) -> Result<Node> {
    if text.len() > LENGTH {
        return error(
            LENGTH..text.len(),
            format!("longer than {LENGTH} bytes"),
            "split it into several bans",
        );
    }
    let mut parser = Parser { text, at: 0, depth: 0 };
    let node = parser.any()?;
    let rest = parser.peek();
    if rest.is_empty() {
        return Ok(node);
    }
    let what = format!("`{rest}` after the end of a test");
    error(parser.next_range(), what, "join tests with && or ||")
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

const SUBJECTS: &str = "write host, path, status or field.NAME";

impl<'a> Parser<'a> {
    fn any(&mut self) -> Result<Node> {
        let mut nodes = vec![self.all()?];
        while self.take("||") {
            nodes.push(self.all()?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::Any(nodes) })
    }

    fn all(&mut self) -> Result<Node> {
        let mut nodes = vec![self.one()?];
        while self.take("&&") {
            nodes.push(self.one()?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::All(nodes) })
    }

    fn one(&mut self) -> Result<Node> {
        let at = self.next_range();
        if self.depth == DEPTH {
            return error(at, format!("nested deeper than {DEPTH}"), "split it into several bans");
        }
        self.depth += 1;
        let node = if self.take("!") {
            Node::Not(Box::new(self.one()?))
        } else if self.take("(") {
            let node = self.any()?;
            if !self.take(")") {
                return error(self.next_range(), "a parenthesis is not closed", "write `)`");
            }
            node
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn test(&mut self) -> Result<Node> {
        let at = self.next_range();
        let subject = self.word();
        match subject {
            "status" => self.status(),
            "host" => self.compare(Subject::Host),
            "path" => self.compare(Subject::Path),
            "" if at.is_empty() => error(at, "a test is missing", SUBJECTS),
            "" => error(at.clone(), format!("`{}` where a test should begin", &self.text[at]), SUBJECTS),
            _ => match subject.strip_prefix("field.") {
                Some(name) if sandarac_message::is_token(name.as_bytes()) => {
                    self.compare(Subject::Field(name.as_bytes().into()))
                }
                Some(_) => error(at, "no field name after `field.`", "write for instance field.Content-Type"),
                None => error(at, format!("`{subject}` cannot be tested"), SUBJECTS),
            },
        }
    }

    fn status(&mut self) -> Result<Node> {
        let at = self.next_range();
        let operator = self.operator();
        let (order, negated) = match operator {
            "==" => (Order::Equal, false),
            "!=" => (Order::Equal, true),
            "<" => (Order::Less, false),
            "<=" => (Order::AtMost, false),
            ">" => (Order::More, false),
            ">=" => (Order::AtLeast, false),
            _ => return error(at, wrong(operator, "a status"), "write ==, !=, <, <=, > or >="),
        };
        let at = self.next_range();
        let number = self.word();
        match number.parse() {
            Ok(status) if (100..=599).contains(&status) => {
                let node = Node::Status(order, status);
                Ok(if negated { Node::Not(Box::new(node)) } else { node })
            }
            _ => error(at, "no status code", "write a number from 100 to 599"),
        }
    }

    fn compare(&mut self, subject: Subject) -> Result<Node> {
        let at = self.next_range();
        let operator = self.operator();
        if !["==", "!=", "~", "!~"].contains(&operator) {
            return error(at, wrong(operator, "text"), "write ==, !=, ~ or !~");
        }
        let (text, at) = self.string()?;
        let matcher = if operator.ends_with('~') {
            let pattern = RegexBuilder::new(&text).unicode(false).size_limit(PATTERN).build();
            match pattern {
                Ok(pattern) => Matcher::Pattern(pattern),
                Err(cause) => {
                    let cause = cause.to_string();
                    let cause =
                        cause.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                    return error(
                        at,
                        format!("invalid regular expression: {cause}"),
                        "write \\\\ before characters meant literally",
                    );
                }
            }
        } else if subject == Subject::Host {
            Matcher::Equal(text.to_ascii_lowercase().into_bytes().into())
        } else {
            Matcher::Equal(text.into_bytes().into())
        };
        let node = Node::Text(subject, matcher);
        Ok(if operator.starts_with('!') { Node::Not(Box::new(node)) } else { node })
    }

    /// A quoted text and its place.
    fn string(&mut self) -> Result<(String, Range<usize>)> {
        let at = self.next_range();
        if !self.take("\"") {
            return error(at, "the text is not in quotes", "write it as \"text\"");
        }
        let mut text = String::new();
        let mut chars = self.text[self.at..].char_indices();
        while let Some((offset, char)) = chars.next() {
            match char {
                '"' => {
                    self.at += offset + 1;
                    return Ok((text, at.start..self.at));
                }
                '\\' => match chars.clone().next() {
                    Some((_, escaped @ ('"' | '\\'))) => {
                        text.push(escaped);
                        chars.next();
                    }
                    // Keeps the backslash: most escapes belong to the regular expression.
                    _ => text.push('\\'),
                },
                char => text.push(char),
            }
        }
        error(at.start..self.text.len(), "the quotes are not closed", "write `\"` after the text")
    }

    fn operator(&mut self) -> &'a str {
        let operators = ["==", "!=", "!~", "<=", ">=", "~", "<", ">"];
        match operators.into_iter().find(|operator| self.peek().starts_with(operator)) {
            Some(operator) => {
                self.take(operator);
                operator
            }
            None => "",
        }
    }

    /// Letters, digits and the other characters of field names.
    fn word(&mut self) -> &'a str {
        let rest = self.peek();
        let end = rest
            .find(|char: char| !(char.is_ascii_alphanumeric() || "-._".contains(char)))
            .unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.peek().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// The rest of the text, without leading white space.
    fn peek(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_ascii_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    /// The next run of characters without white space.
    fn next_range(&mut self) -> Range<usize> {
        let rest = self.peek();
        let len = rest.find(|char: char| char.is_ascii_whitespace()).unwrap_or(rest.len());
        self.at..self.at + len
    }
}

fn wrong(operator: &str, of: &str) -> String {
    match operator {
        "" => format!("no comparison of {of}"),
        operator => format!("`{operator}` does not compare {of}"),
    }
}
