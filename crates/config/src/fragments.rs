//! Pages with fragments, as a setting of a route.

use sandarac_policy::{CacheRule, FragmentRule};

use crate::compress::{ACCEPT_ENCODING, CompressChoice, asks_for_a_coding};
use crate::definition::Value;
use crate::report::{At, Node, Report};
use crate::setting::Kind;
use crate::suggest::closest;

/// `true`, `false`, or `"announced"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentChoice(pub(crate) Option<FragmentRule>);

impl Value for FragmentChoice {
    fn kind() -> Kind {
        Kind::Either(vec![Kind::Bool, Kind::Choice(vec![ANNOUNCED])])
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<FragmentChoice> {
        let value = node.get_ref();
        let choice = match (value.as_bool(), value.as_str()) {
            (Some(true), _) => Some(FragmentRule::Markup),
            (Some(false), _) => None,
            (_, Some(ANNOUNCED)) => Some(FragmentRule::Announced),
            (_, text) => {
                let meant = text.and_then(|text| closest(text, &[ANNOUNCED]));
                let error = report.unexpected(node, &FragmentChoice::kind());
                error.help = error.help.take().or(meant.map(|meant| format!("did you mean {meant:?}?")));
                return None;
            }
        };
        Some(FragmentChoice(choice))
    }

    fn show(&self) -> Option<String> {
        Some(match self.0 {
            None => "false".to_owned(),
            Some(FragmentRule::Markup) => "true".to_owned(),
            Some(FragmentRule::Announced) => format!("{ANNOUNCED:?}"),
        })
    }
}

const ANNOUNCED: &str = "announced";

/// Reports what keeps the pages of a route from being read.
pub(crate) fn check_fragments(
    fragments: &At<FragmentChoice>,
    compress: &At<CompressChoice>,
    report: &mut Report,
) {
    if fragments.value.0.is_some() && asks_for_a_coding(&compress.value) {
        let message = "backends are asked for gzip, in which no fragments can be found";
        let error = report.error(compress.place.clone(), message);
        error.help = Some("backend = \"plain\"".to_owned());
        error.also = fragments.place.clone().map(|place| (place, "pages with fragments".to_owned()));
    }
}

/// Has backends asked for bodies without a coding, whatever clients accept: fragments are found in no other. One form serves
/// clients of every coding, because a page is assembled for each of them.
pub(crate) fn ask_for_plain_bodies(fragments: FragmentChoice, rule: &mut CacheRule) {
    if fragments.0.is_none() {
        return;
    }
    rule.accept_encoding = Some("identity");
    let ignored = &mut rule.policy.vary.ignored;
    if !ignored.iter().any(|name| **name == *ACCEPT_ENCODING) {
        ignored.push(ACCEPT_ENCODING.into());
    }
}
