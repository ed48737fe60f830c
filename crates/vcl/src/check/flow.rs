//! The flow through subs: the calls of each, and what its statements require of callers.

use crate::source::Span;
use crate::table::{Access, ActionRow, Subs, Variable};
use crate::tree::Name;

/// A sub with what its statements do; subs of one name are one.
#[derive(Debug)]
pub(super) struct SubFlow<'p> {
    pub(super) name: &'p Name,
    /// The built-in sub that it is, or that calls it as a hook; or none.
    pub(super) subs: Subs,
    /// Whether the built-in VCL calls it.
    pub(super) is_hook: bool,
    pub(super) calls: Vec<SubCall>,
    pub(super) requirements: Vec<Requirement>,
}

/// A call of a sub.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubCall {
    pub(super) callee: usize,
    pub(super) span: Span,
}

/// A use that only some built-in subs allow.
#[derive(Clone, Debug)]
pub(super) struct Requirement {
    pub(super) subs: Subs,
    pub(super) span: Span,
    pub(super) kind: RequirementKind,
}

/// The kinds of such uses.
#[derive(Clone, Debug)]
pub(super) enum RequirementKind {
    Variable { variable: &'static Variable, access: Access, name: String },
    Function(String),
    Action(&'static ActionRow),
    New,
}

impl<'p> SubFlow<'p> {
    pub(super) fn new(name: &'p Name, subs: Subs) -> SubFlow<'p> {
        SubFlow { name, subs, is_hook: false, calls: Vec::new(), requirements: Vec::new() }
    }

    /// Whether it is a built-in sub, which has to end with an action.
    pub(super) fn is_builtin(&self) -> bool {
        !self.subs.is_empty() && !self.is_hook
    }
}
