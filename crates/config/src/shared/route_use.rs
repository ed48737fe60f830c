//! The use of the shared tier by routes.

use sandarac_policy::{Route, SharedUse};

use crate::definition::Value;
use crate::report::{At, Node, Report};
use crate::setting::Kind;
use crate::shared::settings::SharedSettings;
use crate::suggest::closest;

/// How a route uses the shared tier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SharedChoice(SharedUse);

impl Value for SharedChoice {
    fn kind() -> Kind {
        Kind::Either(vec![Kind::Bool, Kind::Choice(vec!["read"])])
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<SharedChoice> {
        let value = node.get_ref();
        let choice = match (value.as_bool(), value.as_str()) {
            (Some(true), _) => SharedUse::ReadWrite,
            (Some(false), _) => SharedUse::Off,
            (_, Some("read")) => SharedUse::Read,
            (_, text) => {
                let help = text.and_then(|text| match text {
                    "true" | "false" => Some(format!("without quotes: {text}")),
                    _ => closest(text, &["read"]).map(|_| "did you mean \"read\"?".to_owned()),
                });
                report.unexpected(node, &SharedChoice::kind()).help = help;
                return None;
            }
        };
        Some(SharedChoice(choice))
    }

    fn show(&self) -> Option<String> {
        Some(match self.0 {
            SharedUse::ReadWrite => "true".to_owned(),
            SharedUse::Off => "false".to_owned(),
            SharedUse::Read => "\"read\"".to_owned(),
        })
    }
}

/// The use of the shared tier by a route with a pool. Warns of a `choice` without effect.
pub(crate) fn shared_use(
    choice: &Option<At<SharedChoice>>,
    is_cached: bool,
    has_tier: bool,
    report: &mut Report,
) -> SharedUse {
    let idle = match (is_cached, has_tier) {
        (true, true) => return choice.as_ref().map_or(SharedUse::ReadWrite, |choice| choice.value.0),
        (false, _) => "`shared` has no effect on a route with cache = \"pass\"",
        (true, false) => "`shared` has no effect without [cache.shared]",
    };
    if let Some(choice) = choice {
        report.warning(choice.place.clone(), idle);
    }
    SharedUse::Off
}

/// Warns of a shared tier that no route uses.
pub(crate) fn warn_of_unused_tier(tier: &At<SharedSettings>, routes: &[Route], report: &mut Report) {
    let uses = |route: &Route| route.cache_rule().is_some_and(|rule| rule.shared != SharedUse::Off);
    if !routes.is_empty() && !routes.iter().any(uses) {
        report.warning(tier.place.clone(), "no route uses the shared tier");
    }
}
