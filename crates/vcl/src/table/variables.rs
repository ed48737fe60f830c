//! Variables, read from `variables.txt`.

use std::sync::LazyLock;

use crate::dialect::Dialect;
use crate::table::{Release, Subs, Type, rows};

/// A variable, or all variables whose names have one beginning.
#[derive(Debug)]
pub struct Variable {
    /// The name; a `*` at its end stands for any word, and so does `<name>`.
    pub name: &'static str,
    /// The type.
    pub kind: Type,
    /// The subs that may read it.
    pub read: Subs,
    /// The subs that may set it.
    pub set: Subs,
    /// The subs that may unset it.
    pub unset: Subs,
    /// The syntax that has it; `None` for both.
    pub syntax: Option<Dialect>,
    /// The versions that have it.
    pub release: Release,
    /// The versions that have its `unset`, if it has one.
    pub unset_release: Release,
    /// Its meaning in one sentence.
    pub text: &'static str,
}

/// A kind of use of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A read.
    Read,
    /// An assignment.
    Set,
    /// A removal.
    Unset,
}

impl Variable {
    /// The subs that may use it so.
    pub fn subs(&self, access: Access) -> Subs {
        match access {
            Access::Read => self.read,
            Access::Set => self.set,
            Access::Unset => self.unset,
        }
    }

    /// Whether it has the name. The name of a field does not count its case.
    fn matches(&self, name: &str) -> bool {
        if let Some(prefix) = self.name.strip_suffix('*') {
            return name.len() > prefix.len() && name.starts_with(prefix);
        }
        match self.name.split_once("<name>") {
            Some((before, after)) => {
                let middle = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                middle.is_some_and(|middle| !middle.is_empty() && !middle.contains('.'))
            }
            None if self.name.contains(".http.") => self.name.eq_ignore_ascii_case(name),
            None => self.name == name,
        }
    }
}

/// All variables, in the order of the table.
pub fn variables() -> &'static [Variable] {
    static VARIABLES: LazyLock<Vec<Variable>> =
        LazyLock::new(|| rows(include_str!("variables.txt")).map(variable_of_row).collect());
    &VARIABLES
}

/// The variable of this name; if the syntax does not have it, the one of the other syntax.
pub fn variable(name: &str, dialect: Dialect) -> Option<&'static Variable> {
    let mut found = variables().iter().filter(|variable| variable.matches(name));
    let first = found.next()?;
    let is_of_syntax = |variable: &&Variable| variable.syntax.is_none_or(|syntax| syntax == dialect);
    match is_of_syntax(&first) {
        true => Some(first),
        false => found.find(|variable| variable.name == first.name && is_of_syntax(variable)).or(Some(first)),
    }
}

/// # Panics
/// If the row is not of the form that the head of the table describes.
fn variable_of_row(row: &'static str) -> Variable {
    let columns: Vec<&'static str> = row.split('|').map(str::trim).collect();
    let &[name_and_type, read, set, unset, limits, text] = columns.as_slice() else {
        panic!("not a row of the table: {row}")
    };
    let (name, kind) = name_and_type.split_once(' ').expect("a name and a type");
    let limit = |word: &str| limits.split_whitespace().any(|limit| limit == word);
    let release = match (limit("8"), limit("9")) {
        (true, _) => Release::From8,
        (_, true) => Release::From9,
        _ => Release::Both,
    };
    let syntax = match (limit("4.0"), limit("4.1")) {
        (true, _) => Some(Dialect::V4_0),
        (_, true) => Some(Dialect::V4_1),
        _ => None,
    };
    Variable {
        name,
        kind: Type::named(kind).expect("a type"),
        read: Subs::named(read),
        set: Subs::named(set),
        unset: Subs::named(unset),
        syntax,
        release,
        unset_release: if limit("unset:8") { Release::From8 } else { release },
        text,
    }
}
