//! Names in expressions: variables, symbols, and names that are neither.

use crate::check::checker::Checker;
use crate::check::flow::RequirementKind;
use crate::check::rules;
use crate::check::symbols::SymbolKind;
use crate::diagnostic::Diagnostic;
use crate::dialect::Dialect;
use crate::source::Span;
use crate::suggest::closest;
use crate::table::{self, Access, Module, Type, module, variable, variables};
use crate::tree::{Name, Path};

/// Variables of old programs, and other names that people try, with what they mean today.
const RENAMED: &[(&str, &str)] = &[
    ("req.request", "req.method"),
    ("bereq.request", "bereq.method"),
    ("req.backend", "req.backend_hint"),
    ("bereq.backend_hint", "bereq.backend"),
    ("beresp.response", "beresp.reason"),
    ("resp.response", "resp.reason"),
    ("obj.response", "obj.reason"),
    ("obj.lastuse", "obj.age"),
    ("req.uri", "req.url"),
    ("req.path", "req.url"),
    ("req.ip", "client.ip"),
    ("client.addr", "client.ip"),
    ("beresp.max_age", "beresp.ttl"),
    ("beresp.cacheable", "beresp.uncacheable"),
];

/// The first names of variables.
fn is_variable_root(name: &str) -> bool {
    variables().iter().any(|variable| variable.name.split('.').next() == Some(name))
}

impl Checker<'_> {
    /// The type of a variable, or of a symbol by its name.
    pub(super) fn path(&mut self, path: &Path, access: Access) -> Option<Type> {
        let first = &path.names[0];
        if is_variable_root(&first.text) {
            return self.variable(path, access);
        }
        let Some(symbol) = self.symbols.get(&first.text) else {
            // The first backend, if none has this name.
            if path.is("default") {
                return Some(Type::Backend);
            }
            return self.unknown_path(path);
        };
        self.symbols.mark_used(&first.text);
        if path.names.len() > 1 {
            let name = path.text();
            let message = match symbol.kind {
                SymbolKind::Module(None) | SymbolKind::Object(None) => return None,
                SymbolKind::Module(_) | SymbolKind::Object(_) => format!("`{name}` is no variable"),
                kind => format!("`{}` is {}, which has no parts", first.text, kind.described()),
            };
            let diagnostic = Diagnostic::new(&rules::UNKNOWN_VARIABLE, path.span, message);
            self.report(match symbol.kind {
                SymbolKind::Module(_) | SymbolKind::Object(_) => {
                    diagnostic.mend(format!("a call has parentheses: `{name}()`"), path.span.after(), "()")
                }
                _ => diagnostic.related(symbol.span, "defined here"),
            });
            return None;
        }
        match symbol.kind {
            _ if symbol.is_ambiguous => None,
            SymbolKind::Acl | SymbolKind::Backend | SymbolKind::Probe | SymbolKind::Sub(_) => {
                self.symbol_type(&first.text)
            }
            SymbolKind::Object(None) | SymbolKind::Module(None) => None,
            SymbolKind::Object(Some(_)) | SymbolKind::Module(Some(_)) => {
                let message = format!("`{}` is {}, not a value", first.text, symbol.kind.described());
                self.report(
                    Diagnostic::new(&rules::TYPE, path.span, message)
                        .related(symbol.span, "defined here")
                        .advice(format!("call one of its functions: `{}.NAME(…)`", first.text)),
                );
                None
            }
        }
    }

    /// The type of a symbol.
    pub(super) fn symbol_type(&self, name: &str) -> Option<Type> {
        match self.symbols.get(name)?.kind {
            SymbolKind::Acl => Some(Type::Acl),
            SymbolKind::Backend => Some(Type::Backend),
            SymbolKind::Probe => Some(Type::Probe),
            SymbolKind::Sub(_) => Some(Type::Sub),
            SymbolKind::Object(_) | SymbolKind::Module(_) => None,
        }
    }

    /// The type of a variable that is used; `None` if it is unknown or cannot be used so.
    pub(super) fn variable(&mut self, path: &Path, access: Access) -> Option<Type> {
        let name = path.text();
        let dialect = self.dialect(path.span);
        let is_field = path.names.get(1).is_some_and(|name| &*name.text == "http");
        let Some(found) = variable(&name, dialect) else {
            self.unknown_variable(path, access);
            return None;
        };
        if is_field && path.names.len() > 3 {
            let message = format!("the field `{}` has no parts", path.names[2].text);
            let quoted = path.names[2..].iter().map(|name| &*name.text).collect::<Vec<_>>().join(".");
            self.report(
                Diagnostic::new(&rules::UNKNOWN_VARIABLE, path.span, message)
                    .note("texts have `.upper()` and `.lower()`")
                    .advice(format!("a name of a field with dots stands in quotes: `\"{quoted}\"`")),
            );
            return None;
        }
        if let Some(syntax) = found.syntax.filter(|&syntax| syntax != dialect) {
            let message = format!("`{name}` exists only in {syntax}");
            let diagnostic = Diagnostic::new(&rules::SYNTAX_VERSION, path.span, message)
                .note(format!("this file is {dialect}"));
            self.report(match (&*name, syntax) {
                ("req.esi", _) => diagnostic.advice("set `resp.do_esi` in `vcl_deliver`"),
                ("beresp.storage_hint", _) => diagnostic.advice("set `beresp.storage = storage.NAME`"),
                (_, Dialect::V4_1) => diagnostic.advice("begin the file with `vcl 4.1;`"),
                _ => diagnostic,
            });
            return None;
        }
        let subs = found.subs(access);
        if subs.is_empty() {
            self.impossible_access(found, access, &name, path.span);
            return None;
        }
        self.require(subs, path.span, RequirementKind::Variable { variable: found, access, name });
        Some(found.kind)
    }

    fn impossible_access(&mut self, found: &table::Variable, access: Access, name: &str, span: Span) {
        let verb = match access {
            Access::Read => "read",
            Access::Set => "set",
            Access::Unset => "unset",
        };
        let message = format!("`{name}` cannot be {verb}");
        let diagnostic = Diagnostic::new(&rules::READ_ONLY, span, message);
        let can = [(Access::Read, "read"), (Access::Set, "set"), (Access::Unset, "unset")];
        let can: Vec<&str> = can
            .into_iter()
            .filter(|&(access, _)| !found.subs(access).is_empty())
            .map(|(_, verb)| verb)
            .collect();
        let diagnostic = diagnostic.note(format!("it can only be {}", can.join(" and ")));
        self.report(match (access, name.split('.').next()) {
            (Access::Set | Access::Unset, Some("obj")) => {
                diagnostic.advice("change `beresp.*` before it is stored, or `resp.*` in `vcl_deliver`")
            }
            (Access::Set, _) if name == "client.ip" => {
                diagnostic.advice("keep the other address in a field, or use the PROXY protocol")
            }
            (Access::Unset, _) if found.kind == Type::Duration => {
                diagnostic.advice(format!("write `set {name} = 0s;`"))
            }
            (Access::Unset, _) if found.kind == Type::String => {
                diagnostic.advice(format!("write `set {name} = …;`"))
            }
            _ => diagnostic,
        });
    }

    fn unknown_variable(&mut self, path: &Path, access: Access) {
        let name = path.text();
        let span = path.span;
        let root = &*path.names[0].text;
        if !is_variable_root(root) {
            if access != Access::Read && self.symbols.get(root).is_some() {
                self.symbols.mark_used(root);
                let message = format!("`{name}` is no variable, so that it cannot be set");
                self.report(Diagnostic::new(&rules::UNKNOWN_VARIABLE, span, message));
                return;
            }
            self.unknown_path(path);
            return;
        }
        let message = format!("there is no variable `{name}`");
        let diagnostic = Diagnostic::new(&rules::UNKNOWN_VARIABLE, span, message);
        if let Some((_, meant)) = RENAMED.iter().find(|(old, _)| *old == name) {
            self.report(diagnostic.mend(format!("write `{meant}`"), span, *meant));
            return;
        }
        if let [_, second] = path.names.as_slice()
            && &*second.text == "http"
        {
            self.report(diagnostic.advice(format!("name a field: `{root}.http.NAME`")));
            return;
        }
        let names = variables()
            .iter()
            .map(|variable| variable.name)
            .filter(|known| !known.contains(['*', '<']) && known.starts_with(&format!("{root}.")));
        // A field without `http` is a common slip: `req.Cookie`.
        let is_field = matches!(path.names.as_slice(), [_, second]
            if second.text.starts_with(|first: char| first.is_ascii_uppercase()));
        self.report(match closest(&name, names) {
            Some(meant) if !is_field => diagnostic.mend(format!("did you mean `{meant}`?"), span, meant),
            _ if is_field => {
                let field = format!("{root}.http.{}", path.names[1].text);
                diagnostic.mend(format!("fields stand under `http`: `{field}`"), span, field.clone())
            }
            _ => diagnostic,
        });
    }

    /// The error about a name that is neither a variable nor a symbol.
    fn unknown_path(&mut self, path: &Path) -> Option<Type> {
        let first = &path.names[0];
        if path.names.len() == 1 {
            self.unknown_name(first, |_| true);
            return None;
        }
        if module(&first.text).is_some_and(|module| module.name != table::BUILTIN_MODULE) {
            self.missing_import(first, path);
            return None;
        }
        let name = path.text();
        let message = format!("there is no variable `{name}`");
        let diagnostic = Diagnostic::new(&rules::UNKNOWN_VARIABLE, path.span, message);
        let all = variables().iter().map(|variable| variable.name).filter(|name| !name.contains(['*', '<']));
        let roots = ["req", "bereq", "beresp", "resp", "obj", "client", "server", "local", "remote"];
        self.report(match closest(&name, all) {
            Some(meant) => diagnostic.mend(format!("did you mean `{meant}`?"), path.span, meant),
            None => match closest(&first.text, roots) {
                Some(root) => diagnostic.mend(format!("did you mean `{root}`?"), first.span, root),
                None => diagnostic,
            },
        });
        None
    }

    /// The error about one word that is neither a variable nor a symbol. A symbol that is probably meant
    /// counts as used.
    pub(super) fn unknown_name(&mut self, name: &Name, is_candidate: impl Fn(SymbolKind) -> bool) {
        let message = format!("there is no symbol `{}`", name.text);
        let diagnostic = Diagnostic::new(&rules::UNKNOWN_SYMBOL, name.span, message);
        let (diagnostic, is_meant) = self.with_meant(diagnostic, name, is_candidate);
        let diagnostic = match is_meant {
            true => diagnostic,
            false => {
                let quoted = format!("\"{}\"", name.text);
                diagnostic.mend(format!("a text stands in quotes: `{quoted}`"), name.span, quoted)
            }
        };
        self.report(diagnostic);
    }

    /// The error about an unknown name with the symbol that is probably meant, which counts as used, and
    /// whether there is one.
    pub(super) fn with_meant(
        &mut self,
        diagnostic: Diagnostic,
        name: &Name,
        is_candidate: impl Fn(SymbolKind) -> bool,
    ) -> (Diagnostic, bool) {
        let meant = self.symbols.closest(&name.text, is_candidate);
        let Some((meant, symbol)) = meant.and_then(|meant| Some((meant, self.symbols.get(meant)?))) else {
            return (diagnostic, false);
        };
        self.symbols.mark_used(meant);
        let mend = format!("did you mean `{meant}`?");
        (diagnostic.related(symbol.span, "defined here").mend(mend, name.span, meant), true)
    }

    /// The module that a name stands for. A missing or unknown one is reported.
    pub(super) fn module_of(&mut self, name: &Name, path: &Path) -> Option<&'static Module> {
        match self.symbols.get(&name.text) {
            Some(symbol) => match symbol.kind {
                SymbolKind::Module(known) => {
                    if symbol.at > self.at {
                        let message = format!("the module `{}` is imported only later", name.text);
                        self.report(
                            Diagnostic::new(&rules::UNKNOWN_SYMBOL, name.span, message)
                                .related(symbol.span, "imported here")
                                .advice("move the import to the beginning of the file"),
                        );
                    }
                    known
                }
                kind => {
                    self.symbols.mark_used(&name.text);
                    let message = format!("`{}` is {}, not a module", name.text, kind.described());
                    self.report(
                        Diagnostic::new(&rules::TYPE, name.span, message)
                            .related(symbol.span, "defined here"),
                    );
                    None
                }
            },
            None => {
                self.missing_import(name, path);
                None
            }
        }
    }

    /// The error about a module that is not imported, or a name that is no module.
    pub(super) fn missing_import(&mut self, name: &Name, path: &Path) {
        let span = name.span;
        if !self.is_news(&name.text) {
            return;
        }
        let known = module(&name.text).filter(|module| module.name != table::BUILTIN_MODULE);
        if known.is_some() {
            let message = format!("the module `{}` is not imported", name.text);
            let diagnostic = Diagnostic::new(&rules::UNKNOWN_SYMBOL, span, message);
            let line = format!("import {};", name.text);
            self.report(match self.declarations.first() {
                Some(first) => diagnostic.mend(
                    format!("write `{line}` at the beginning"),
                    first.span.before(),
                    format!("{line}\n"),
                ),
                None => diagnostic.advice(format!("write `{line}` at the beginning")),
            });
            return;
        }
        let message = format!("there is no `{}`, so that `{}` cannot be called", name.text, path.text());
        let diagnostic = Diagnostic::new(&rules::UNKNOWN_SYMBOL, span, message);
        let is_candidate = |kind: SymbolKind| matches!(kind, SymbolKind::Module(_) | SymbolKind::Object(_));
        self.report(match self.symbols.closest(&name.text, is_candidate) {
            Some(meant) => diagnostic.mend(format!("did you mean `{meant}`?"), span, meant),
            None => diagnostic
                .advice(format!("make an object: `new {} = MODULE.CLASS(…);` in `vcl_init`", name.text)),
        });
    }
}
