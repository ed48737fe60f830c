//! Statuses and ranges of them.

use std::fmt;

use crate::definition::Value;
use crate::limited::Bounded;
use crate::report::{Complaint, Node, Report};
use crate::setting::Kind;
use crate::value::Text;

/// Status codes from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatusRange {
    first: u16,
    last: u16,
}

impl StatusRange {
    /// Statuses that are not errors: 2xx and 3xx.
    pub(crate) const NO_ERROR: StatusRange = StatusRange { first: 200, last: 399 };

    /// Any status.
    pub(crate) const ANY: StatusRange = StatusRange { first: 100, last: 599 };

    /// Whether `status` is one of them.
    pub fn contains(self, status: u16) -> bool {
        (self.first..=self.last).contains(&status)
    }
}

impl fmt::Display for StatusRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatusRange { first, last } if first == last => write!(f, "{first}"),
            StatusRange { first, last } => write!(f, "{first}-{last}"),
        }
    }
}

/// One status, as a number.
type Single = Bounded<100, 599>;

/// A range, as text.
struct Range(StatusRange);

impl Text for Range {
    fn form() -> Kind {
        Kind::Text { name: "range of them", form: "a range of status codes", examples: &["200-399"] }
    }

    fn from_text(text: &str) -> Result<Range, Complaint> {
        let not = || Complaint::new(format!("{text:?} is not {}", Range::form().words()));
        let (first, last) = text.split_once('-').ok_or_else(|| {
            let number = text.trim().parse::<u64>().is_ok_and(|number| Single::checked(number).is_ok());
            if number { not().help(format!("without quotes: {}", text.trim())) } else { not() }
        })?;
        let status = |text: &str| match text.trim() {
            digits if digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok().filter(|status| (100..=599).contains(status)).ok_or_else(not)
            }
            _ => Err(not()),
        };
        let (first, last) = (status(first)?, status(last)?);
        if first > last {
            return Err(not().help(format!("did you mean \"{last}-{first}\"?")));
        }
        Ok(Range(StatusRange { first, last }))
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

impl Value for StatusRange {
    fn kind() -> Kind {
        Kind::Either(vec![<Single as Value>::kind(), Range::form()])
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<StatusRange> {
        if node.get_ref().is_str() {
            return <Range as Value>::read(node, report).map(|range| range.0);
        }
        let status = <Single as Value>::read(node, report)?.get() as u16;
        Some(StatusRange { first: status, last: status })
    }

    fn show(&self) -> Option<String> {
        Some(if self.first == self.last { self.to_string() } else { format!("\"{self}\"") })
    }
}
