//! Collects the mistakes in a file while it is read.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use crate::diagnostics::{Diagnostic, Severity};
use crate::other_words::help_for;
use crate::setting::{Kind, Setting};
use crate::suggest::closest;

/// A value in the file, with its place.
pub(crate) type Node<'i> = Spanned<DeValue<'i>>;

/// A place in the file, in bytes.
pub(crate) type Place = Range<usize>;

/// A value and its place; none for values from the command line or defaults.
#[derive(Clone, Debug, Default)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) place: Option<Place>,
}

impl<T: PartialEq> PartialEq for At<T> {
    /// The place is ignored in comparisons.
    fn eq(&self, other: &At<T>) -> bool {
        self.value == other.value
    }
}

impl<T> At<T> {
    /// A value from the command line or from a default.
    pub(crate) fn nowhere(value: T) -> At<T> {
        At { value, place: None }
    }
}

/// The reason why a text is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Complaint {
    pub(crate) fn new(message: impl Into<String>) -> Complaint {
        Complaint { message: message.into(), help: None }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Complaint {
        Complaint { help: Some(help.into()), ..self }
    }

    /// The complaint in one line, for callers that cannot show a help separately.
    pub(crate) fn into_line(self) -> String {
        match self.help {
            Some(help) => format!("{}; {help}", self.message),
            None => self.message,
        }
    }
}

/// The mistakes in the file, and the settings it may hold.
pub(crate) struct Report {
    pub(crate) found: Vec<Diagnostic>,
    /// Places of secrets, which no diagnostic may show.
    pub(crate) secrets: Vec<Place>,
    /// Every table and its keys, to find the right table for a misplaced key.
    known: Vec<(String, Vec<&'static str>)>,
    /// Whether part of the file could not be read.
    incomplete: bool,
}

impl Report {
    /// A report on a file with these `settings`.
    pub(crate) fn new(settings: Vec<Setting>) -> Report {
        let mut known = Vec::new();
        collect("", &Kind::Table(settings), &mut known);
        Report { found: Vec::new(), secrets: Vec::new(), known, incomplete: false }
    }

    pub(crate) fn error(&mut self, place: Option<Place>, message: impl Into<String>) -> &mut Diagnostic {
        self.add(Severity::Error, place, message.into())
    }

    pub(crate) fn warning(&mut self, place: Option<Place>, message: impl Into<String>) -> &mut Diagnostic {
        self.add(Severity::Warning, place, message.into())
    }

    fn add(&mut self, severity: Severity, place: Option<Place>, message: String) -> &mut Diagnostic {
        self.found.push(Diagnostic { severity, message, place, help: None, also: None, flag: false });
        let last = self.found.len() - 1;
        &mut self.found[last]
    }

    pub(crate) fn complain(&mut self, place: Option<Place>, complaint: Complaint) {
        self.error(place, complaint.message).help = complaint.help;
    }

    /// Reports a value of the wrong type.
    pub(crate) fn unexpected(&mut self, node: &Node<'_>, kind: &Kind) -> &mut Diagnostic {
        let found = match node.get_ref() {
            DeValue::Integer(_) | DeValue::Array(_) => format!("an {}", node.get_ref().type_str()),
            other => format!("a {}", other.type_str()),
        };
        let message = format!("expected {}, found {found}", kind.words());
        let may_be_bool = match kind {
            Kind::Either(kinds) => kinds.iter().any(|kind| matches!(kind, Kind::Bool)),
            kind => matches!(kind, Kind::Bool),
        };
        let help = match (kind, node.get_ref().as_str()) {
            (_, Some(text @ ("true" | "false"))) if may_be_bool => Some(format!("without quotes: {text}")),
            (_, Some("on" | "yes")) if may_be_bool => Some("write true, without quotes".to_owned()),
            (_, Some("off" | "no")) if may_be_bool => Some("write false, without quotes".to_owned()),
            (Kind::Integer { .. } | Kind::Decimal { .. }, Some(text)) if text.parse::<f64>().is_ok() => {
                Some(format!("without quotes: {text}"))
            }
            _ => None,
        };
        let error = self.error(Some(node.span()), message);
        error.help = help;
        error
    }

    /// Reports a missing setting, unless it may be present in a part that could not be read.
    pub(crate) fn missing(
        &mut self,
        place: Option<Place>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        if !self.incomplete {
            self.error(place, message).help = Some(help.into());
        }
    }

    /// Called when the file was read: settings that could not be read are not reported as missing afterwards.
    pub(crate) fn read_is_over(&mut self) {
        self.incomplete = !self.found.is_empty();
    }

    /// Reports a key that is not among `settings`, those of its table.
    pub(crate) fn unknown_key(&mut self, key: &str, place: Place, settings: &[Setting]) {
        let names: Vec<_> = settings.iter().map(|setting| setting.name).collect();
        let elsewhere: Vec<_> = self
            .known
            .iter()
            .filter(|(_, keys)| keys.contains(&key))
            .map(|(table, _)| if table.is_empty() { "the top of the file".to_owned() } else { table.clone() })
            .collect();
        let help = match closest(key, &names) {
            _ if let Some(help) = help_for(key, &names) => help,
            Some(name) => format!("did you mean `{name}`?"),
            None => {
                let belongs =
                    (!elsewhere.is_empty()).then(|| format!("`{key}` belongs to {}", elsewhere.join(" or ")));
                // A longer list would hide the table that the key belongs to.
                let listed = elsewhere.is_empty() || names.len() <= 8;
                let known = listed.then(|| format!("known here: {}", names.join(", ")));
                belongs.into_iter().chain(known).collect::<Vec<_>>().join("; ")
            }
        };
        self.error(Some(place), format!("unknown key `{key}`")).help = Some(help);
    }
}

fn collect(table: &str, kind: &Kind, known: &mut Vec<(String, Vec<&'static str>)>) {
    match kind {
        Kind::Table(settings) => {
            known.push((table.to_owned(), settings.iter().map(|setting| setting.name).collect()));
            for setting in settings {
                let inner = table.trim_matches(['[', ']']);
                let path = if inner.is_empty() {
                    setting.name.to_owned()
                } else {
                    format!("{inner}.{}", setting.name)
                };
                match &setting.kind {
                    Kind::List(of) => collect(&format!("[[{path}]]"), of, known),
                    Kind::Map { of, .. } => collect(&format!("[{path}.NAME]"), of, known),
                    other => collect(&format!("[{path}]"), other, known),
                }
            }
        }
        Kind::Either(kinds) => kinds.iter().for_each(|kind| collect(table, kind, known)),
        _ => {}
    }
}
