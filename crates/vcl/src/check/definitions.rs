//! The definitions of a program, and those that nothing uses.

use crate::check::checker::Checker;
use crate::check::flow::SubFlow;
use crate::check::rules;
use crate::check::symbols::{Symbol, SymbolKind};
use crate::diagnostic::Diagnostic;
use crate::suggest::closest;
use crate::table::{self, BUILTIN_HOOKS, Edition, SUBS, Subs, absent_module, module, modules};
use crate::tree::{
    Arguments, BackendBody, Block, DeclarationKind, ExpressionKind, Import, Name, New, Path, StatementKind,
};

/// The built-in sub meant by another name that begins with `vcl_`.
fn meant_sub(name: &str) -> Option<&'static str> {
    match name {
        "vcl_fetch" => Some("vcl_backend_response"),
        "vcl_error" => Some("vcl_synth"),
        _ => closest(name, SUBS.iter().map(|row| row.name)),
    }
}

impl<'p> Checker<'p> {
    /// Collects the symbols of all declarations, and reports names that are defined twice.
    pub(super) fn collect_symbols(&mut self) {
        for at in 0..self.declarations.len() {
            self.at = at;
            match &self.declarations[at].kind {
                DeclarationKind::Import(import) => self.import(import),
                DeclarationKind::Backend(backend) => {
                    let is_first = !self.symbols.iter().any(|(_, s)| matches!(s.kind, SymbolKind::Backend));
                    self.define(&backend.name, SymbolKind::Backend);
                    // Without another choice, requests go to `default`, or else to the first backend.
                    if is_first || matches!(backend.body, BackendBody::None) {
                        self.symbols.mark_used(&backend.name.text);
                    }
                }
                DeclarationKind::Probe(probe) => self.define(&probe.name, SymbolKind::Probe),
                DeclarationKind::Acl(acl) => self.define(&acl.name, SymbolKind::Acl),
                DeclarationKind::Sub(sub) => {
                    self.define_sub(&sub.name);
                    self.objects(&sub.block);
                }
                _ => {}
            }
        }
        self.symbols.mark_used("default");
    }

    fn define(&mut self, name: &'p Name, kind: SymbolKind) {
        let symbol = Symbol { kind, span: name.span, at: self.at, is_used: false, is_ambiguous: false };
        let Some(other) = self.symbols.get(&name.text) else {
            if &*name.text != "default" || matches!(kind, SymbolKind::Backend | SymbolKind::Probe) {
                self.symbols.insert(&name.text, symbol);
            }
            return;
        };
        let is_default = &*name.text == "default"
            && matches!(
                (kind, other.kind),
                (SymbolKind::Probe, SymbolKind::Backend) | (SymbolKind::Backend, SymbolKind::Probe)
            );
        if is_default {
            return;
        }
        self.symbols.mark_used(&name.text);
        self.symbols.mark_ambiguous(&name.text);
        let message = format!("the name `{}` is defined twice", name.text);
        self.report(
            Diagnostic::new(&rules::DEFINED_TWICE, name.span, message)
                .label(format!("defined again, as {}", kind.described()))
                .related(other.span, format!("defined here first, as {}", other.kind.described()))
                .advice("give it another name, or remove one of the two"),
        );
    }

    fn define_sub(&mut self, name: &'p Name) {
        let text: &'p str = &name.text;
        let index = self.subs.len();
        let builtin = SUBS.iter().find(|row| row.name == text);
        if let Some(row) = builtin {
            if let Some(Symbol { kind: SymbolKind::Sub(_), .. }) = self.symbols.get(text) {
                return;
            }
            self.subs.push(SubFlow::new(name, row.subs));
        } else if text.starts_with("vcl_") && !BUILTIN_HOOKS.contains(&text) {
            let meant = meant_sub(text);
            // The statements of an old sub are not for its successor as they are.
            let is_old = matches!(text, "vcl_fetch" | "vcl_error");
            let subs = meant.and_then(|meant| SUBS.iter().find(|row| row.name == meant && !is_old));
            self.subs.push(SubFlow::new(name, subs.map_or(Subs::NONE, |row| row.subs)));
            self.unknown_sub(name, meant);
        } else {
            // A hook is called by the built-in VCL.
            let reach = match text {
                _ if text.starts_with("vcl_req_") => Subs::RECV,
                _ if text.starts_with("vcl_beresp_") => Subs::BACKEND_RESPONSE,
                _ if text.starts_with("vcl_refresh_") => Subs::BACKEND_REFRESH,
                _ => Subs::NONE,
            };
            self.subs.push(SubFlow::new(name, reach));
            self.subs[index].is_hook = !reach.is_empty();
        }
        let is_known = self.symbols.get(text).is_none();
        self.define(name, SymbolKind::Sub(index));
        if text.starts_with("vcl_") && is_known {
            self.symbols.mark_used(text);
        }
    }

    fn unknown_sub(&mut self, name: &Name, meant: Option<&str>) {
        let message = format!("there is no built-in sub `{}`", name.text);
        let diagnostic = Diagnostic::new(&rules::UNKNOWN_SUB, name.span, message);
        self.report(match (&*name.text, meant) {
            ("vcl_fetch", _) => diagnostic
                .note("`vcl_fetch` is of VCL 2 and 3; its work is done by `vcl_backend_response`")
                .mend("write `vcl_backend_response`", name.span, "vcl_backend_response"),
            ("vcl_error", _) => diagnostic
                .note("`vcl_error` is of VCL 2 and 3")
                .advice("write `vcl_synth` for responses of our own, `vcl_backend_error` for failed fetches"),
            (_, Some(meant)) => diagnostic.mend(format!("did you mean `{meant}`?"), name.span, meant),
            _ => diagnostic
                .note("names that begin with `vcl_` are reserved")
                .advice("give the sub a name without `vcl_`"),
        });
    }

    /// Defines the objects that the statements of a sub make.
    fn objects(&mut self, block: &'p Block) {
        for statement in &block.statements {
            match &statement.kind {
                StatementKind::New(new) => self.object(new),
                StatementKind::Block(block) => self.objects(block),
                StatementKind::If { branches, otherwise } => {
                    branches.iter().for_each(|branch| self.objects(&branch.block));
                    otherwise.iter().for_each(|branch| self.objects(&branch.block));
                }
                StatementKind::Include(include) => {
                    for part in &include.parts {
                        for statement in &part.items {
                            if let StatementKind::New(new) = &statement.kind {
                                self.object(new);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn object(&mut self, new: &'p New) {
        let class = match new.constructor.names.as_slice() {
            [module, class] => match self.symbols.get(&module.text).map(|symbol| symbol.kind) {
                Some(SymbolKind::Module(Some(module))) => module.class(&class.text),
                _ => None,
            },
            _ => None,
        };
        self.define(&new.name, SymbolKind::Object(class));
        self.symbols.mark_used(&new.name.text);
    }

    fn import(&mut self, import: &'p Import) {
        let name = &import.module;
        let known = module(&name.text).filter(|module| module.name != table::BUILTIN_MODULE);
        if known.is_none() {
            self.unknown_module(name);
        }
        let local = import.alias.as_ref().unwrap_or(name);
        if let Some(Symbol { kind: SymbolKind::Module(_), .. }) = self.symbols.get(&local.text) {
            return;
        }
        self.define(local, SymbolKind::Module(known));
        self.symbols.mark_used(&local.text);
    }

    fn unknown_module(&mut self, name: &Name) {
        let span = name.span;
        if let Some(absent) = absent_module(&name.text) {
            let message = format!("the module `{}` is not provided here", name.text);
            let edition = match absent.edition {
                Edition::Free => "free software",
                Edition::Enterprise => "part of the enterprise edition of Varnish Software",
            };
            let diagnostic = Diagnostic::new(&rules::UNKNOWN_MODULE, span, message)
                .label(absent.text)
                .note(format!("it is {edition}"));
            self.report(match absent.replacement {
                Some(replacement) => diagnostic.advice(format!("its work is done here by {replacement}")),
                None => diagnostic.note("nothing here does its work"),
            });
            return;
        }
        let message = format!("there is no module `{}`", name.text);
        let names = modules().iter().map(|module| module.name).filter(|name| *name != table::BUILTIN_MODULE);
        let diagnostic = Diagnostic::new(&rules::UNKNOWN_MODULE, span, message);
        self.report(match closest(&name.text, names) {
            Some(meant) => diagnostic.mend(format!("did you mean `{meant}`?"), span, meant),
            None => diagnostic,
        });
    }

    /// Counts the names in arguments that are not checked as used.
    pub(super) fn mark_uses(&mut self, arguments: &Arguments) {
        for argument in &arguments.list {
            if let ExpressionKind::Path(Path { names, .. }) = &argument.value.kind {
                self.symbols.mark_used(&names[0].text);
            }
        }
    }

    /// Reports symbols that nothing uses. After errors of the grammar a use may be lost, so that there are
    /// no such reports then.
    pub(super) fn unused(&mut self) {
        if self.parsed.has_errors() {
            return;
        }
        let unused: Vec<(&str, Symbol)> = self.symbols.iter().filter(|(_, s)| !s.is_used).collect();
        for (name, symbol) in unused {
            let what = match symbol.kind {
                SymbolKind::Acl => "access list",
                SymbolKind::Backend => "backend",
                SymbolKind::Probe => "probe",
                SymbolKind::Sub(_) => "sub",
                SymbolKind::Module(_) | SymbolKind::Object(_) => continue,
            };
            let message = format!("the {what} `{name}` is never used");
            self.report(
                Diagnostic::new(&rules::UNUSED, symbol.span, message)
                    .advice(format!("use it, remove it, or write `unused {name};`")),
            );
        }
        let has_backend =
            self.symbols.iter().any(|(_, s)| matches!(s.kind, SymbolKind::Backend | SymbolKind::Object(_)));
        if let (false, Some(first)) = (has_backend, self.parsed.program.declarations.first()) {
            let message = "the program has no backend";
            let advice = "declare one, such as `backend default { .host = \"127.0.0.1\"; }`, or \
                          `backend default none;`";
            self.report(Diagnostic::new(&rules::NO_BACKEND, first.span, message).advice(advice));
        }
    }
}
