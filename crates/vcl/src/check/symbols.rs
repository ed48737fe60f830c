//! Names that a program defines: backends, probes, access lists, subs, modules and objects.

use std::collections::HashMap;

use crate::source::Span;
use crate::suggest::closest;
use crate::table::{Class, Module};

/// The symbols that an unknown name is compared with, because each comparison takes time.
const MAX_CANDIDATES: usize = 500;

/// The kind of a symbol.
#[derive(Clone, Copy, Debug)]
pub(super) enum SymbolKind {
    Acl,
    Backend,
    Probe,
    /// A sub with its index among all.
    Sub(usize),
    /// A module; `None` if it is not provided, which was reported.
    Module(Option<&'static Module>),
    /// An object with its class; `None` if that is unknown, which is reported at its definition.
    Object(Option<&'static Class>),
}

impl SymbolKind {
    /// The kind in words, with an article.
    pub(super) fn described(self) -> &'static str {
        match self {
            SymbolKind::Acl => "an access list",
            SymbolKind::Backend => "a backend",
            SymbolKind::Probe => "a probe",
            SymbolKind::Sub(_) => "a sub",
            SymbolKind::Module(_) => "a module",
            SymbolKind::Object(_) => "an object",
        }
    }
}

/// A symbol.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbol {
    pub(super) kind: SymbolKind,
    /// The name at its definition.
    pub(super) span: Span,
    /// The declaration that defines it.
    pub(super) at: usize,
    /// Whether it is used, or need not be.
    pub(super) is_used: bool,
    /// Whether it is defined again with another kind, which was reported.
    pub(super) is_ambiguous: bool,
}

/// The symbols by name.
#[derive(Debug, Default)]
pub(super) struct Symbols<'p> {
    by_name: HashMap<&'p str, Symbol>,
    /// The names in the order of their definitions.
    order: Vec<&'p str>,
}

impl<'p> Symbols<'p> {
    pub(super) fn get(&self, name: &str) -> Option<Symbol> {
        self.by_name.get(name).copied()
    }

    pub(super) fn mark_used(&mut self, name: &str) {
        if let Some(symbol) = self.by_name.get_mut(name) {
            symbol.is_used = true;
        }
    }

    pub(super) fn mark_ambiguous(&mut self, name: &str) {
        if let Some(symbol) = self.by_name.get_mut(name) {
            symbol.is_ambiguous = true;
        }
    }

    /// The names with their symbols, in the order of their definitions.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'p str, Symbol)> {
        self.order.iter().map(|name| (*name, self.by_name[name]))
    }

    /// The name of such a symbol that is closest to `name`, among the first ones if there are very many.
    pub(super) fn closest(&self, name: &str, is_candidate: impl Fn(SymbolKind) -> bool) -> Option<&'p str> {
        let candidates = self.iter().take(MAX_CANDIDATES).filter(|(_, symbol)| is_candidate(symbol.kind));
        closest(name, candidates.map(|(name, _)| name))
    }

    pub(super) fn insert(&mut self, name: &'p str, symbol: Symbol) {
        self.by_name.insert(name, symbol);
        self.order.push(name);
    }
}
