//! Classes that a regular expression finds in a part of a request.

use std::fmt;

use regex::bytes::{Regex, RegexBuilder};

use crate::classify::Subject;
use crate::classify::part::Part;
use crate::report::Complaint;
use crate::setting::Kind;
use crate::value::Text;

/// The longest expression, in bytes.
const LENGTH: usize = 4096;

/// The largest compiled expression, in bytes. It bounds the time that a request costs: matching takes at most so many
/// steps for each byte looked at.
const COMPILED: usize = 1 << 20;

/// A regular expression whose group `class` is the class.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    of: Part,
}

impl Pattern {
    pub(crate) fn new(expression: &Expression, of: Part) -> Pattern {
        Pattern { regex: expression.0.clone(), of }
    }

    pub(crate) fn class<'b>(&self, subject: &Subject<'_>, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        let value = self.of.value(subject)?;
        buffer.extend_from_slice(self.regex.captures(&value)?.name(GROUP)?.as_bytes());
        Some(buffer)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of the {}", self.regex, self.of)
    }
}

/// The name of the group.
const GROUP: &str = "class";

/// A regular expression with a group `class`.
#[derive(Clone, Debug)]
pub(crate) struct Expression(Regex);

impl PartialEq for Expression {
    fn eq(&self, other: &Expression) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Text for Expression {
    fn form() -> Kind {
        Kind::Text {
            name: "regular expression with a group `class`",
            form: "a regular expression with a group `class`",
            examples: &["^/(?<class>[^/]+)"],
        }
    }

    fn from_text(text: &str) -> Result<Expression, Complaint> {
        if text.len() > LENGTH {
            return Err(Complaint::new(format!("a regular expression has at most {LENGTH} bytes")));
        }
        // Requests are bytes, of whatever encoding.
        let regex = RegexBuilder::new(text).unicode(false).size_limit(COMPILED).build().map_err(|error| {
            let told = error.to_string();
            let why = told.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Complaint::new(format!("no regular expression: {why}"))
        })?;
        if !regex.capture_names().flatten().any(|name| name == GROUP) {
            let complaint = Complaint::new("the regular expression has no group `class`");
            return Err(complaint.help("put what the class is in (?<class>…)"));
        }
        Ok(Expression(regex))
    }

    fn text(&self) -> String {
        self.0.as_str().to_owned()
    }
}

/// The part of a request that an expression looks at.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Of(pub(crate) Part);

impl Text for Of {
    fn form() -> Kind {
        Kind::Text {
            name: "part of a request",
            form: "\"host\", \"path\", \"query\", \"header:NAME\" or \"cookie:NAME\"",
            examples: &[],
        }
    }

    fn from_text(text: &str) -> Result<Of, Complaint> {
        Part::read(text, &["host", "path", "query", "header:", "cookie:"]).map(Of)
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}
