//! Documentation of the settings: the listing of defaults, the manual page and the JSON schema.

use serde_json::{Map, Value as Json, json};

use crate::definition::Section;
use crate::file::File;
use crate::setting::{Absent, Kind, Setting};

/// Every setting, starting at the top of the file.
pub fn settings() -> Vec<Setting> {
    File::settings()
}

/// A table of the file, and those of its settings that are not tables.
struct Table {
    /// Its name as in headers, such as `[[listen]]`; empty for the top of the file.
    header: String,
    about: &'static str,
    settings: Vec<Setting>,
    /// Whether it is one of several ways to write a setting, or usually left out.
    optional: bool,
}

/// The tables in the order of the manual, the top of the file first. A nested table follows its parent; the rules that
/// a route may have for itself are described only in `[cache]`.
fn tables() -> Vec<Table> {
    let mut tables = vec![Table { header: String::new(), about: "", settings: Vec::new(), optional: false }];
    gather("", File::settings(), &mut tables, 0);
    tables
}

fn gather(path: &str, settings: Vec<Setting>, tables: &mut Vec<Table>, own: usize) {
    for setting in settings {
        let name = if path.is_empty() { setting.name.to_owned() } else { format!("{path}.{}", setting.name) };
        let inner = setting.kind.settings().filter(|_| name != "route.cache").map(<[Setting]>::to_vec);
        let optional = matches!(setting.absent, Absent::Unset { .. }) || setting.kind.is_table_or_other();
        let at = tables.len();
        if let Some(inner) = inner {
            let (header, name) = match &setting.kind {
                Kind::List(of) if matches!(**of, Kind::Table(_)) => (format!("[[{name}]]"), name),
                Kind::Map { .. } => (format!("[{name}.NAME]"), format!("{name}.NAME")),
                _ => (format!("[{name}]"), name),
            };
            // The tables in an optional one are left out with it.
            let within = optional || tables[own].optional;
            tables.push(Table { header, about: setting.text, settings: Vec::new(), optional: within });
            gather(&name, inner, tables, at);
            if optional {
                tables[own].settings.push(setting);
            }
        } else {
            tables[own].settings.push(setting);
        }
    }
}

/// `text` in lines of at most 100 characters, the first prefixed by `first` and the others by `other`.
fn wrapped(text: &str, first: &str, other: &str) -> String {
    const WIDTH: usize = 100;
    let mut out = String::from(first);
    let mut column = first.chars().count();
    for (at, word) in text.split_ascii_whitespace().enumerate() {
        let width = word.chars().count();
        if at > 0 && column + 1 + width > WIDTH {
            out.push('\n');
            out.push_str(other);
            column = other.chars().count();
        } else if at > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.push('\n');
    out
}

/// `words` with an initial capital and a full stop.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).chain(['.']).collect())
}

/// Every setting with its default, unit and text, as a starting file. Settings without a default are in comments;
/// required ones have an example value.
pub fn defaults() -> String {
    let mut out = String::new();
    for Table { header, about, settings, optional } in tables() {
        let off = if optional { "# " } else { "" };
        if !header.is_empty() {
            out.push('\n');
            out.push_str(&wrapped(about, "# ", "# "));
            out.push_str(&format!("{off}{}\n", header.replace("NAME", "app")));
        }
        for Setting { name, text, kind, absent, .. } in settings {
            out.push('\n');
            out.push_str(&wrapped(&format!("{text} {}", sentence(&kind.brief())), "# ", "# "));
            // A pool needs backends or a source, and a route a pool, an answer or a redirect: with the first of these
            // the listing is a complete configuration.
            let needed = [("[pool.NAME]", "backends"), ("[[route]]", "pool")].contains(&(&header, name));
            out.push_str(&match absent {
                Absent::Unset { example, .. } if needed => format!("{name} = {example}\n"),
                Absent::Value(value) => format!("{off}{name} = {value}\n"),
                Absent::Required { example } => format!("{off}{name} = {example}\n"),
                Absent::Unset { means, example } => {
                    format!("{}# {name} = {example}\n", wrapped(&format!("Unless set: {means}."), "# ", "# "))
                }
            });
        }
    }
    out.trim_start().to_owned()
}

const INTRODUCTION: &str = "\
# Settings

<!-- Generated from the definitions in crates/config; `SANDARAC_BLESS=1 cargo test -p sandarac-config` writes it anew. -->

A configuration is a TOML file. One listener, one pool and one route make a complete one:

```toml
[[listen]]
address = \":8080\"

[pool.app]
backends = [\"http://127.0.0.1:8000\"]

[[route]]
pool = \"app\"
```

`sandarac check -c FILE` checks a file and explains what it does; `sandarac config --defaults` prints every setting as a
file to start from, and `sandarac config --schema` the JSON schema for editors. Flags override the file. Unknown keys
are errors. Durations and sizes carry their unit: `\"1h30m\"`, `\"64MiB\"`. Where several values are allowed, a
single one may be written without brackets. A reload (`sandarac reload`, or SIGHUP) applies every change, except those
marked as needing a restart.
";

/// The manual page of all settings, in Markdown.
pub fn manual() -> String {
    let mut out = String::from(INTRODUCTION);
    for Table { header, about, settings, .. } in tables() {
        if header.is_empty() {
            out.push_str("\n## At the top of the file\n");
        } else {
            out.push_str(&format!("\n## `{header}`\n\n{}", wrapped(about, "", "")));
        }
        for Setting { name, text, kind, absent, fixed } in settings {
            let absent = match absent {
                Absent::Value(value) => format!("Default: `{value}`."),
                Absent::Required { example } => format!("Required, for example `{example}`."),
                Absent::Unset { means, example } => format!("Unless set: {means}. For example `{example}`."),
            };
            let fixed = if fixed { " A change needs a restart." } else { "" };
            let text = format!("**`{name}`**: {text} *{}* {absent}{fixed}", sentence(&kind.brief()));
            out.push('\n');
            out.push_str(&wrapped(&text, "- ", "  "));
        }
    }
    out
}

/// The JSON schema of the file (draft 2020-12), for editors.
pub fn schema() -> String {
    let mut schema = object(&File::settings());
    schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_owned(), json!("Sandarac configuration"));
    format!("{:#}\n", Json::Object(schema))
}

fn object(settings: &[Setting]) -> Map<String, Json> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for Setting { name, text, kind, absent, .. } in settings {
        let mut property = of_kind(kind);
        property.insert(
            "description".to_owned(),
            json!(text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")),
        );
        match absent {
            Absent::Value(value) => {
                if let Some(value) = from_toml(value) {
                    property.insert("default".to_owned(), value);
                }
            }
            Absent::Unset { example, .. } => {
                if let Some(value) = from_toml(example) {
                    property.insert("examples".to_owned(), json!([value]));
                }
            }
            // Listeners, pools and routes may come from flags.
            Absent::Required { example } => {
                if !example.is_empty() {
                    required.push(json!(name));
                }
            }
        }
        properties.insert((*name).to_owned(), Json::Object(property));
    }
    let mut object = Map::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("properties".to_owned(), Json::Object(properties));
    object.insert("additionalProperties".to_owned(), json!(false));
    if !required.is_empty() {
        object.insert("required".to_owned(), Json::Array(required));
    }
    object
}

fn of_kind(kind: &Kind) -> Map<String, Json> {
    let schema = match kind {
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Integer { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Kind::Decimal { least, most } => json!({ "type": "number", "minimum": least, "maximum": most }),
        // A number without a unit is the most common mistake.
        Kind::Text { name: "duration" | "size", examples, .. } => {
            json!({ "type": "string", "pattern": "[A-Za-z]\\s*$", "examples": examples })
        }
        Kind::Text { examples: [], .. } => json!({ "type": "string" }),
        Kind::Text { examples, .. } => json!({ "type": "string", "examples": examples }),
        Kind::Choice(names) => json!({ "enum": names }),
        Kind::List(of) => {
            let array = json!({ "type": "array", "items": of_kind(of) });
            match **of {
                Kind::Table(_) => array,
                _ => json!({ "anyOf": [of_kind(of), array] }),
            }
        }
        Kind::Map { of, .. } => json!({ "type": "object", "additionalProperties": of_kind(of) }),
        Kind::Table(settings) => Json::Object(object(settings)),
        Kind::Either(kinds) => json!({ "anyOf": kinds.iter().map(of_kind).collect::<Vec<_>>() }),
    };
    match schema {
        Json::Object(map) => map,
        _ => Map::new(),
    }
}

/// A TOML value as JSON; `None` if JSON has none.
fn from_toml(text: &str) -> Option<Json> {
    let value = toml::de::DeValue::parse(text).ok()?;
    to_json(value.get_ref())
}

fn to_json(value: &toml::de::DeValue<'_>) -> Option<Json> {
    use toml::de::DeValue;
    Some(match value {
        DeValue::String(text) => json!(text),
        DeValue::Integer(number) => json!(i64::from_str_radix(number.as_str(), number.radix()).ok()?),
        DeValue::Boolean(yes) => json!(yes),
        DeValue::Array(items) => items.iter().map(|item| to_json(item.get_ref())).collect::<Option<_>>()?,
        DeValue::Table(table) => {
            let entry = |(key, value): (&toml::Spanned<_>, &toml::Spanned<_>)| {
                let key: &std::borrow::Cow<'_, str> = key.get_ref();
                Some((key.to_string(), to_json(value.get_ref())?))
            };
            Json::Object(table.iter().map(entry).collect::<Option<_>>()?)
        }
        DeValue::Float(number) => json!(number.as_str().parse::<f64>().ok()?),
        DeValue::Datetime(_) => return None,
    })
}
