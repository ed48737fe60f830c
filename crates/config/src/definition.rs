//! The definition of settings: each once, with its type, default and text. Reading, the listing of defaults, the JSON
//! schema and the manual are generated from it.

use toml::de::{DeTable, DeValue};

use crate::quoted::quoted;
use crate::report::{Node, Report};
use crate::setting::{Kind, Setting};

/// Tables with a short form: the table, and the setting that a string or a number sets.
const MEANT_SETTINGS: [(&str, &str, Option<&str>); 2] =
    [("redirect", "to", None), ("answer", "body", Some("status"))];

/// A type that a setting may have.
pub(crate) trait Value: Sized {
    /// The values it may hold.
    fn kind() -> Kind;

    /// Reads it. If it cannot be read, MUST report the reason.
    fn read(node: &Node<'_>, report: &mut Report) -> Option<Self>;

    /// Writes it as in the file; `None` if it is absent.
    fn show(&self) -> Option<String>;
}

/// A table whose keys are settings.
pub(crate) trait Section: Default {
    /// The settings, in the order of the manual.
    fn settings() -> Vec<Setting>;

    /// Reads the setting called `key`; false if there is none.
    fn set(&mut self, key: &str, node: &Node<'_>, report: &mut Report) -> bool;
}

impl Report {
    /// Reads a table of settings.
    pub(crate) fn section<S: Section>(&mut self, node: &Node<'_>) -> Option<S> {
        match node.get_ref() {
            DeValue::Table(table) => Some(self.table(table)),
            _ => {
                self.unexpected(node, &Kind::Table(S::settings()));
                None
            }
        }
    }

    /// Reads the settings of `table`, in the order they are written.
    pub(crate) fn table<S: Section>(&mut self, table: &DeTable<'_>) -> S {
        let mut section = S::default();
        for (key, node) in in_order(table) {
            let before = self.found.len();
            if !section.set(key.get_ref(), node, self) {
                self.unknown_key(key.get_ref(), key.span(), &S::settings());
            }
            if let Some(found) = self.found.get_mut(before) {
                found.help = found.help.take().or_else(|| in_full(key.get_ref(), node));
            }
        }
        section
    }
}

/// The full form of a `key` whose value is a setting instead of the table.
fn in_full(key: &str, node: &Node<'_>) -> Option<String> {
    match node.get_ref() {
        DeValue::Boolean(true) if key == "tls" => {
            return Some(
                "a listener has tls.certificates, tls.directory or tls.acme; a pool has backends at https:// addresses"
                    .to_owned(),
            );
        }
        DeValue::Array(_) if key == "pool" => {
            return Some("each pool has a table by its name: [pool.NAME]".to_owned());
        }
        _ => {}
    }
    let (_, text, number) = MEANT_SETTINGS.iter().find(|(table, _, _)| *table == key)?;
    match node.get_ref() {
        DeValue::String(value) => Some(format!("{key}.{text} = {}", quoted(value))),
        DeValue::Integer(value) => number.map(|number| format!("{key}.{number} = {}", value.as_str())),
        _ => None,
    }
}

/// An entry of a table.
pub(crate) type Entry<'t, 'i> = (&'t toml::Spanned<std::borrow::Cow<'i, str>>, &'t Node<'i>);

/// The entries of a table in the order in which they are written; the parser sorts them by name.
pub(crate) fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<Entry<'t, 'i>> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// Defines a table of settings: the struct, its defaults, and its [`Section`].
///
/// The doc comment of a field is the text of the setting in the manual. After the default may follow `, unset "meaning"
/// "example"` for an `Option`, or `, required "example"`, and `=> fixed` if a change needs a restart.
macro_rules! settings {
    ($(
        $(#[doc = $about:literal])*
        $vis:vis struct $section:ident {
            $(
                $(#[doc = $doc:literal])+
                $name:ident: $type:ty = $default:expr
                $(, unset $means:literal $unset:literal)?
                $(, required $required:literal)?
                $(=> $fixed:ident)?;
            )*
        }
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $section {
            $($(#[doc = $doc])+ pub $name: $type,)*
        }

        impl Default for $section {
            fn default() -> $section {
                $section { $($name: $default,)* }
            }
        }

        impl $crate::definition::Section for $section {
            fn settings() -> Vec<$crate::setting::Setting> {
                let defaults = $section::default();
                vec![$(
                    $crate::setting::Setting {
                        name: $crate::definition::bare(stringify!($name)),
                        text: concat!($($doc, "\n"),+).trim_ascii(),
                        kind: <$type as $crate::definition::Value>::kind(),
                        absent: {
                            #[allow(unused_mut, unused_assignments)]
                            let mut absent = $crate::setting::Absent::Value(
                                $crate::definition::Value::show(&defaults.$name).unwrap_or_default(),
                            );
                            $(absent = $crate::setting::Absent::Unset { means: $means, example: $unset };)?
                            $(absent = $crate::setting::Absent::Required { example: $required };)?
                            absent
                        },
                        fixed: $crate::definition::settings!(@fixed $($fixed)?),
                    },
                )*]
            }

            fn set(
                &mut self,
                key: &str,
                node: &$crate::report::Node<'_>,
                report: &mut $crate::report::Report,
            ) -> bool {
                $(if key == $crate::definition::bare(stringify!($name)) {
                    if let Some(value) = $crate::definition::Value::read(node, report) {
                        self.$name = value;
                    }
                    return true;
                })*
                false
            }
        }

        $crate::definition::settings!(@value $section);
    )*};
    (@fixed) => { false };
    (@fixed fixed) => { true };
    (@value $section:ident) => {
        impl $crate::definition::Value for $section {
            fn kind() -> $crate::setting::Kind {
                $crate::setting::Kind::Table(<$section as $crate::definition::Section>::settings())
            }

            fn read(node: &$crate::report::Node<'_>, report: &mut $crate::report::Report) -> Option<$section> {
                report.section(node)
            }

            fn show(&self) -> Option<String> {
                None
            }
        }
    };
}
pub(crate) use settings;

/// An identifier without the raw prefix of keywords.
pub(crate) fn bare(identifier: &'static str) -> &'static str {
    identifier.strip_prefix("r#").unwrap_or(identifier)
}
