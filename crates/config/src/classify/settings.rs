//! A classifier as the file writes it.

use std::sync::Arc;

use sandarac_policy::{ClassPart, ClassPattern, ClassRule, ClassTable, ClassTemplate, Classifier};

use crate::classify::part::segment_number;
use crate::classify::pattern::{Expression, Of};
use crate::classify::template::read_class_template;
use crate::definition::{Value, settings};
use crate::path::AbsolutePath;
use crate::report::{At, Complaint, Node, Place, Report};
use crate::setting::Kind;
use crate::suggest::closest;
use crate::value::Text;

settings! {
    /// How requests are sorted into classes: a regular expression or a file.
    pub(crate) struct ClassTableSettings {
        /// The class is the match of the group `class` of this expression.
        regex: Option<At<Expression>> = None, unset "the table has a `file`" "'^/(?<class>[^/]+)'";
        /// The part of a request that `regex` searches: `host` (in lower case, without port and leading `www.`), `path`
        /// (decoded), `query`, `header:NAME` or `cookie:NAME`.
        of: At<Of> = At::nowhere(Of(ClassPart::Path));
        /// A file whose lines have a host, a path or both, as in routes, and a class: `example.com/blog blog`. It is
        /// watched. The most specific line counts, regardless of its position.
        file: Option<At<AbsolutePath>> = None, unset "the table has a `regex`" "\"/etc/sandarac/classes\"";
    }
}

/// A classifier as a string.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Short {
    Host,
    PathSegment(u32),
    Template(ClassTemplate),
}

impl Text for Short {
    fn form() -> Kind {
        Kind::Text {
            name: "`host`, `path_segment(N)` or a template",
            form: "\"host\", \"path_segment(N)\" or a template",
            examples: &["{host}/{segment:1}", "host", "path_segment(1)"],
        }
    }

    fn from_text(text: &str) -> Result<Short, Complaint> {
        if text == "host" {
            return Ok(Short::Host);
        }
        if text.contains('{') {
            return read_class_template(text).map(Short::Template);
        }
        if let Some(number) = text.strip_prefix("path_segment(").and_then(|rest| rest.strip_suffix(')')) {
            return segment_number(number.trim()).map(Short::PathSegment);
        }
        let complaint = Complaint::new(format!("{text:?} is not {}", Short::form().words()));
        let word = text.split('(').next().unwrap_or_default();
        Err(match closest(word, &["host", "path_segment"]) {
            Some("host") => complaint.help("did you mean \"host\"?"),
            Some(_) => complaint.help("did you mean \"path_segment(1)\"?"),
            None => complaint.help("parts of a request stand in braces: \"{host}/{segment:1}\""),
        })
    }

    fn text(&self) -> String {
        self.clone().rule().to_string()
    }
}

/// Reads the `class` of a pool in string form: `host`, `path_segment(1)` or a template.
///
/// # Errors
/// The mistake, and a suggestion.
pub fn classifier(text: &str) -> Result<Classifier, String> {
    Short::from_text(text).map(|short| Classifier::new(short.rule())).map_err(Complaint::into_line)
}

impl Short {
    fn rule(self) -> ClassRule {
        match self {
            Short::Host => ClassRule::Host,
            Short::PathSegment(number) => ClassRule::PathSegment(number),
            Short::Template(template) => ClassRule::Template(template),
        }
    }
}

/// A classifier, as a string or as a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ClassSettings {
    Short(Short),
    Table(Box<ClassTableSettings>, Option<Place>),
}

impl Default for ClassSettings {
    fn default() -> ClassSettings {
        ClassSettings::Short(Short::Host)
    }
}

impl Value for ClassSettings {
    fn kind() -> Kind {
        Kind::Either(vec![Short::form(), ClassTableSettings::kind()])
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<ClassSettings> {
        if node.get_ref().is_table() {
            let table = ClassTableSettings::read(node, report)?;
            return Some(ClassSettings::Table(Box::new(table), Some(node.span())));
        }
        Value::read(node, report).map(ClassSettings::Short)
    }

    fn show(&self) -> Option<String> {
        match self {
            ClassSettings::Short(short) => short.show(),
            ClassSettings::Table(..) => None,
        }
    }
}

impl ClassSettings {
    /// The classifier; on a mistake, reports it.
    pub(crate) fn make(&self, report: &mut Report) -> Option<Classifier> {
        let (table, place) = match self {
            ClassSettings::Short(short) => return Some(Classifier::new(short.clone().rule())),
            ClassSettings::Table(table, place) => (table, place),
        };
        match (&table.regex, &table.file) {
            (Some(regex), None) => Some(Classifier::new(ClassRule::Pattern(ClassPattern::new(
                regex.value.0.clone(),
                table.of.value.0.clone(),
            )))),
            (None, Some(file)) => {
                if table.of.place.is_some() {
                    report.error(table.of.place.clone(), "`of` belongs to a `regex`");
                }
                let empty = Arc::new(ClassTable::default());
                Some(Classifier::new(ClassRule::File { path: file.value.to_path(), table: empty }))
            }
            (Some(regex), Some(file)) => {
                let message = "classes come from a `regex` or from a `file`, not from both";
                report.error(file.place.clone(), message).also =
                    regex.place.clone().map(|place| (place, "the other".to_owned()));
                None
            }
            (None, None) => {
                report.missing(
                    place.clone(),
                    "a class needs a `regex` or a `file`",
                    "regex = '^/(?<class>[^/]+)'",
                );
                None
            }
        }
    }
}
