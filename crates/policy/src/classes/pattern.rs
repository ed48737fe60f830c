//! Classes found by a regular expression in a part of a request.

use std::fmt;

use regex::bytes::Regex;

use super::{ClassPart, Subject};

/// A regular expression whose group [`ClassPattern::GROUP`] is the class.
#[derive(Clone, Debug)]
pub struct ClassPattern {
    regex: Regex,
    of: ClassPart,
}

impl ClassPattern {
    /// The name of the group.
    pub const GROUP: &str = "class";

    /// Finds classes with `regex` in one part of a request. Without the group, no request has a class.
    pub fn new(regex: Regex, of: ClassPart) -> ClassPattern {
        ClassPattern { regex, of }
    }

    pub(crate) fn class<'b>(&self, subject: &Subject<'_>, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        let value = self.of.value(subject)?;
        buffer.extend_from_slice(self.regex.captures(&value)?.name(ClassPattern::GROUP)?.as_bytes());
        Some(buffer)
    }
}

impl fmt::Display for ClassPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of the {}", self.regex, self.of)
    }
}
