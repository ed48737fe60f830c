//! The one table of the language: variables, functions, types, subs with their actions, and properties.
//!
//! The checker, completion and the manual read it. The rows are data: texts in files beside this one, which
//! are read once, and constants.

mod absent;
mod modules;
mod properties;
mod subs;
mod types;
mod variables;

pub use absent::{AbsentModule, Edition, absent_module};
pub use modules::{BUILTIN_MODULE, Class, Function, Module, Parameter, module, modules};
pub use properties::{BACKEND_PROPERTIES, PROBE_PROPERTIES, PropertyKind, PropertyRow};
pub use subs::{ACTIONS, ActionArguments, ActionRow, BUILTIN_HOOKS, SUBS, SubRow, Subs};
pub use types::{Type, arithmetic, is_comparable};
pub use variables::{Access, Variable, variable, variables};

/// The versions that have a variable or a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// 7.1.1 and 8.
    #[default]
    Both,
    /// 8, and not 7.1.1.
    From8,
    /// 9, and not 8.
    From9,
    /// 7.1.1, and not 8.
    Until7,
}

/// The rows of a text: lines that are neither empty nor comments.
fn rows(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests;
