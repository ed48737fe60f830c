//! Regular expressions for classes, as settings.

use regex::bytes::{Regex, RegexBuilder};
use sandarac_policy::{ClassPart, ClassPattern};

use crate::classify::part::read_part;
use crate::report::Complaint;
use crate::setting::Kind;
use crate::value::Text;

/// The longest expression, in bytes.
const MAX_EXPRESSION_BYTES: usize = 4096;

/// The largest compiled expression, in bytes. It bounds the time of a request: matching takes at most that many steps
/// for each byte examined.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// A regular expression with a group `class`.
#[derive(Clone, Debug)]
pub(crate) struct Expression(pub(crate) Regex);

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
        if text.len() > MAX_EXPRESSION_BYTES {
            return Err(Complaint::new(format!(
                "a regular expression has at most {MAX_EXPRESSION_BYTES} bytes"
            )));
        }
        // Requests are bytes in any encoding.
        let regex = RegexBuilder::new(text).unicode(false).size_limit(MAX_COMPILED_BYTES).build().map_err(
            |error| {
                let told = error.to_string();
                let why = told.lines().last().unwrap_or_default().trim_start_matches("error: ");
                Complaint::new(format!("no regular expression: {why}"))
            },
        )?;
        if !regex.capture_names().flatten().any(|name| name == ClassPattern::GROUP) {
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
pub(crate) struct Of(pub(crate) ClassPart);

impl Text for Of {
    fn form() -> Kind {
        Kind::Text {
            name: "part of a request",
            form: "\"host\", \"path\", \"query\", \"header:NAME\" or \"cookie:NAME\"",
            examples: &[],
        }
    }

    fn from_text(text: &str) -> Result<Of, Complaint> {
        read_part(text, &["host", "path", "query", "header:", "cookie:"]).map(Of)
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}
