//! A setting as shown in the listing of defaults, the JSON schema and the manual: its name, text, type and default.

/// One setting, for the listing, the schema and the manual.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its key in its table.
    pub name: &'static str,
    /// Its effect, in one or more sentences.
    pub text: &'static str,
    /// The values it may hold.
    pub kind: Kind,
    /// The value if it is not written.
    pub absent: Absent,
    /// Whether a change takes effect only with a restart.
    pub fixed: bool,
}

/// The value of a setting that is not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absent {
    /// This value, as in the file.
    Value(String),
    /// No value; its meaning, and an example.
    Unset {
        /// The meaning.
        means: &'static str,
        /// An example, as in the file.
        example: &'static str,
    },
    /// It must be written; with an example.
    Required {
        /// An example, as in the file.
        example: &'static str,
    },
}

/// The values of a setting.
#[derive(Clone, Debug)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number within bounds.
    Integer {
        /// The smallest.
        least: u64,
        /// The largest.
        most: u64,
    },
    /// A number within bounds, with a fraction or without.
    Decimal {
        /// The smallest.
        least: f64,
        /// The largest.
        most: f64,
    },
    /// A string of a certain form.
    Text {
        /// The form's name: "duration".
        name: &'static str,
        /// The form in a few words, as in "expected a duration with a unit".
        form: &'static str,
        /// Strings of that form.
        examples: &'static [&'static str],
    },
    /// One of these strings.
    Choice(Vec<&'static str>),
    /// An array; one item may be written without brackets where it is not a table.
    List(Box<Kind>),
    /// A table with keys of the user's choice.
    Map {
        /// What the keys are.
        key: &'static str,
        /// The values.
        of: Box<Kind>,
    },
    /// A table of settings.
    Table(Vec<Setting>),
    /// Any one of these.
    Either(Vec<Kind>),
}

impl Kind {
    /// The kind in a few words, as in "expected a duration".
    pub fn words(&self) -> String {
        match self {
            Kind::Bool => "true or false".to_owned(),
            Kind::Integer { least, most } if *most >= u32::MAX.into() => {
                format!("a number, at least {least}")
            }
            Kind::Integer { least, most } => format!("a number from {least} to {most}"),
            Kind::Decimal { least, most } => {
                format!("a number from {least} to {most}, with a fraction or not")
            }
            Kind::Text { form, examples, .. } => match examples.first() {
                Some(example) => format!("{form}, such as {example:?}"),
                None => (*form).to_owned(),
            },
            Kind::Choice(names) => match &names[..] {
                [names @ .., last] if !names.is_empty() => {
                    let names: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
                    format!("{} or {last:?}", names.join(", "))
                }
                names => names.iter().map(|name| format!("{name:?}")).collect(),
            },
            Kind::List(of) => match **of {
                Kind::Table(_) => "an array of tables".to_owned(),
                _ => format!("an array, each item {}", of.words()),
            },
            Kind::Map { key, of } => match **of {
                Kind::Table(_) => format!("tables of settings by {key}"),
                _ => format!("a table that gives {key} {}", of.words()),
            },
            Kind::Table(_) => "a table of settings".to_owned(),
            Kind::Either(kinds) => kinds.iter().map(Kind::words).collect::<Vec<_>>().join(", or "),
        }
    }

    /// The kind in the fewest words, for the manual.
    pub fn brief(&self) -> String {
        match self {
            Kind::Text { name, .. } => (*name).to_owned(),
            Kind::List(of) => format!("{}, or an array of such", of.brief()),
            Kind::Map { key, of } => format!("table of {key}, each with a {}", of.brief()),
            Kind::Table(_) => "table".to_owned(),
            Kind::Either(kinds) => {
                let mut words: Vec<String> = Vec::new();
                for brief in kinds.iter().map(Kind::brief) {
                    // "a, or an array of such" says what "a" says.
                    words.retain(|word| !brief.starts_with(&format!("{word}, ")));
                    words.push(brief);
                }
                words.join(", or ")
            }
            Kind::Decimal { least, most } => format!("a number from {least} to {most}"),
            Kind::Bool | Kind::Integer { .. } | Kind::Choice(_) => self.words(),
        }
    }

    /// Whether it, or each of its items, may be written as a table or in another way.
    pub(crate) fn is_table_or_other(&self) -> bool {
        match self {
            Kind::List(of) => of.is_table_or_other(),
            Kind::Either(kinds) => kinds.iter().any(|kind| matches!(kind, Kind::Table(_))),
            _ => false,
        }
    }

    /// The settings of this table, of its items, or of its table alternative.
    pub fn settings(&self) -> Option<&[Setting]> {
        match self {
            Kind::Table(settings) => Some(settings),
            Kind::List(of) | Kind::Map { of, .. } => of.settings(),
            Kind::Either(kinds) => kinds.iter().find_map(Kind::settings),
            _ => None,
        }
    }
}
