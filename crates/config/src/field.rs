//! Field names, field values, methods and other tokens of HTTP, as settings.

use std::fmt;

use sandarac_message::is_token;

use crate::report::Complaint;
use crate::setting::Kind;
use crate::value::{Key, Text};

/// A token of HTTP (RFC 9110 §5.6.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Token(Box<str>);

impl Token {
    /// The default upgrade protocol.
    pub(crate) const WEBSOCKET: &'static str = "websocket";

    /// A default.
    pub(crate) fn literal(text: &'static str) -> Token {
        debug_assert!(is_token(text.as_bytes()));
        Token(text.into())
    }

    /// The token.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Text for Token {
    fn form() -> Kind {
        Kind::Text {
            name: "word",
            form: "a word of letters, digits and -._~+!#$%&'*^`|",
            examples: &["sandarac"],
        }
    }

    fn from_text(text: &str) -> Result<Token, Complaint> {
        match is_token(text.as_bytes()) && text.len() <= 64 {
            true => Ok(Token(text.into())),
            false => Err(Complaint::new(format!("{text:?} is not {}", Token::form().words()))),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// The name of a field (RFC 9110 §5.1), in its original letter case.
#[derive(Clone, Debug)]
pub(crate) struct FieldName(Box<str>);

impl FieldName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialEq for FieldName {
    fn eq(&self, other: &FieldName) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Text for FieldName {
    fn form() -> Kind {
        Kind::Text { name: "field name", form: "the name of a field", examples: &["X-Frame-Options"] }
    }

    fn from_text(text: &str) -> Result<FieldName, Complaint> {
        match is_token(text.as_bytes()) && text.len() <= sandarac_message::MAX_NAME {
            true => Ok(FieldName(text.into())),
            false => Err(Complaint::new(format!("{text:?} is not the name of a field"))),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

impl Key for FieldName {
    const WHAT: &'static str = "field names";

    fn from_key(key: &str) -> Result<FieldName, Complaint> {
        FieldName::from_text(key)
    }
}

/// The value of a field (RFC 9110 §5.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldValue(Box<str>);

impl FieldValue {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Text for FieldValue {
    fn form() -> Kind {
        Kind::Text { name: "field value", form: "the value of a field", examples: &["DENY"] }
    }

    fn from_text(text: &str) -> Result<FieldValue, Complaint> {
        if text.chars().any(|c| c.is_control() && c != '\t') {
            return Err(Complaint::new(
                "the value of a field holds no line breaks or other control characters",
            ));
        }
        if text.len() > 8192 {
            return Err(Complaint::new("the value of a field is longer than 8 KiB"));
        }
        Ok(FieldValue(text.trim_matches([' ', '\t']).into()))
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// A status that a cache may have a rule for: 200 to 599.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) u16);

impl Key for Status {
    const WHAT: &'static str = "status codes";

    fn from_key(key: &str) -> Result<Status, Complaint> {
        match key.parse() {
            Ok(status @ 200..=599) if key.len() == 3 => Ok(Status(status)),
            _ => Err(Complaint::new(format!("{key:?} is not a status code from 200 to 599"))),
        }
    }
}
