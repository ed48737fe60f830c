//! `Strict-Transport-Security` (RFC 6797), as a setting of a route.

use std::time::Duration;

use crate::definition::{Value, settings};
use crate::report::{Node, Report};
use crate::setting::Kind;
use crate::value::Text;

settings! {
    /// How long browsers reach the host by https only.
    pub(crate) struct HstsSettings {
        /// How long.
        // A year, as the lists that are built into browsers demand.
        max_age: Duration = Duration::from_secs(365 * 86_400);
        /// Whether it counts for all names below the host too.
        include_subdomains: bool = false;
        /// Whether the host may be put into the lists that are built into browsers. It is hard to get out of them.
        preload: bool = false;
    }
}

/// A duration, or a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HstsChoice(HstsSettings);

impl HstsChoice {
    /// The value of the field.
    pub(crate) fn field_value(&self) -> Box<str> {
        let HstsSettings { max_age, include_subdomains, preload } = &self.0;
        let subdomains = if *include_subdomains { "; includeSubDomains" } else { "" };
        let preload = if *preload { "; preload" } else { "" };
        format!("max-age={}{subdomains}{preload}", max_age.as_secs()).into()
    }
}

impl Value for HstsChoice {
    fn kind() -> Kind {
        Kind::Either(vec![Duration::form(), HstsSettings::kind()])
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<HstsChoice> {
        match node.get_ref().is_table() {
            true => HstsSettings::read(node, report).map(HstsChoice),
            false => {
                let max_age = Value::read(node, report)?;
                Some(HstsChoice(HstsSettings { max_age, ..HstsSettings::default() }))
            }
        }
    }

    fn show(&self) -> Option<String> {
        None
    }
}
