//! Calls of functions and methods.

use crate::check::checker::Checker;
use crate::check::flow::RequirementKind;
use crate::check::rules;
use crate::check::symbols::SymbolKind;
use crate::diagnostic::Diagnostic;
use crate::suggest::closest;
use crate::table::{self, Access, BUILTIN_MODULE, Function, Type, module, variable};
use crate::tree::{Arguments, Call, Name, Path};

/// Functions of old programs and of other languages, with what does their work.
const RENAMED: &[(&str, &str)] = &[
    ("std.lower", "std.tolower"),
    ("std.upper", "std.toupper"),
    ("std.lowercase", "std.tolower"),
    ("std.sort_query", "std.querysort"),
    ("std.atoi", "std.integer"),
    ("std.int", "std.integer"),
    ("std.float", "std.real"),
    ("std.is_healthy", "std.healthy"),
    ("std.get_env", "std.getenv"),
    ("ban_url", "ban"),
    ("replace", "regsuball"),
    ("tolower", "std.tolower"),
    ("lower", "std.tolower"),
    ("toupper", "std.toupper"),
    ("log", "std.log"),
];

impl Checker<'_> {
    /// The type of a call as a value.
    pub(super) fn called_value(&mut self, call: &Call) -> Option<Type> {
        let result = self.called(call)?;
        if result == Type::Void {
            let name = call.function.text();
            let message = format!("`{name}` has no value");
            self.report(
                Diagnostic::new(&rules::NO_VALUE, call.function.span, message)
                    .advice(format!("call it as a statement: `{name}(…);`")),
            );
            return None;
        }
        Some(result)
    }

    /// A call as a statement.
    pub(super) fn called_statement(&mut self, call: &Call) {
        let is_builtin = call.function.single().is_some();
        if let Some(result) = self.called(call)
            && result != Type::Void
            && is_builtin
        {
            let name = call.function.text();
            let message = format!("the value of `{name}` is not used");
            self.report(
                Diagnostic::new(&rules::NO_VALUE, call.function.span, message)
                    .advice(format!("assign it: `set VARIABLE = {name}(…);`")),
            );
        }
    }

    /// The type of the value of a call.
    fn called(&mut self, call: &Call) -> Option<Type> {
        let Call { function: path, arguments } = call;
        if let Some(name) = path.single() {
            return self.called_builtin(name, arguments);
        }
        let (last, before) = path.names.split_last().expect("a name");
        if let [first] = before
            && let Some(symbol) = self.symbols.get(&first.text)
        {
            return match symbol.kind {
                SymbolKind::Module(_) => self.called_function(path, first, last, arguments),
                SymbolKind::Object(class) => {
                    if (symbol.at, symbol.span.start) > (self.at, path.span.start) {
                        let message = format!("the object `{}` is made only later", first.text);
                        self.report(
                            Diagnostic::new(&rules::UNKNOWN_SYMBOL, first.span, message)
                                .related(symbol.span, "made here")
                                .advice("move `vcl_init` before this sub"),
                        );
                    }
                    let Some(class) = class else {
                        self.mark_uses(arguments);
                        return None;
                    };
                    self.called_method(path, class, last, arguments)
                }
                kind => {
                    self.symbols.mark_used(&first.text);
                    let message = format!("`{}` is {}, which has no functions", first.text, kind.described());
                    self.report(
                        Diagnostic::new(&rules::UNKNOWN_FUNCTION, path.span, message)
                            .related(symbol.span, "defined here"),
                    );
                    None
                }
            };
        }
        // A method of a variable, such as `req.url.lower()`.
        let of = Path { names: before.to_vec(), span: before[0].span.to(before[before.len() - 1].span) };
        if variable(&of.text(), self.dialect(path.span)).is_some() {
            let kind = self.variable(&of, Access::Read)?;
            if kind.is_text() && matches!(&*last.text, "upper" | "lower") {
                if let Some(first) = arguments.list.first() {
                    let message = format!("`{}` has no arguments", last.text);
                    self.report(Diagnostic::new(&rules::ARGUMENTS, first.value.span, message));
                }
                return Some(Type::String);
            }
            if kind == Type::Backend && &*last.text == "resolve" && arguments.list.is_empty() {
                return Some(Type::Backend);
            }
            self.unknown_property(&Path { names: vec![last.clone()], span: last.span }, kind);
            return None;
        }
        if before.len() > 1 {
            return self.path(&of, Access::Read).and(None);
        }
        self.missing_import(&before[0], path);
        self.mark_uses(arguments);
        None
    }

    fn called_builtin(&mut self, name: &Name, arguments: &Arguments) -> Option<Type> {
        let builtin = module(BUILTIN_MODULE)?;
        if builtin.function(&name.text).is_none() {
            self.mark_uses(arguments);
        }
        if let Some(function) = builtin.function(&name.text) {
            self.arguments(&name.text, function, arguments);
            return Some(function.result);
        }
        let message = format!("there is no function `{}`", name.text);
        let diagnostic = Diagnostic::new(&rules::UNKNOWN_FUNCTION, name.span, message);
        let names = builtin.functions.iter().map(|function| function.name);
        let diagnostic = match closest(&name.text, names) {
            _ if self.symbols.get(&name.text).is_some() => {
                self.symbols.mark_used(&name.text);
                diagnostic.mend(format!("write `call {};`", name.text), name.span.before(), "call ")
            }
            _ if RENAMED.iter().any(|(old, _)| *old == &*name.text) => {
                let meant = RENAMED.iter().find(|(old, _)| *old == &*name.text).map_or("", |row| row.1);
                diagnostic.mend(format!("write `{meant}`"), name.span, meant)
            }
            Some(meant) => diagnostic.mend(format!("did you mean `{meant}`?"), name.span, meant),
            None => match table::modules().iter().find(|module| module.function(&name.text).is_some()) {
                Some(module) => {
                    let full = format!("{}.{}", module.name, name.text);
                    diagnostic.mend(format!("did you mean `{full}`?"), name.span, full.clone())
                }
                None => diagnostic,
            },
        };
        self.report(diagnostic);
        None
    }

    fn called_function(
        &mut self,
        path: &Path,
        first: &Name,
        last: &Name,
        arguments: &Arguments,
    ) -> Option<Type> {
        let module = self.module_of(first, path)?;
        match module.function(&last.text) {
            Some(function) => {
                self.arguments(&format!("{}.{}", module.name, function.name), function, arguments);
                Some(function.result)
            }
            None => {
                let names = module.functions.iter().map(|function| function.name);
                self.unknown_member(path, &first.text, last, "function", names);
                self.mark_uses(arguments);
                None
            }
        }
    }

    fn called_method(
        &mut self,
        path: &Path,
        class: &'static table::Class,
        last: &Name,
        arguments: &Arguments,
    ) -> Option<Type> {
        match class.method(&last.text) {
            Some(method) => {
                self.arguments(&format!(".{}", method.name), method, arguments);
                Some(method.result)
            }
            None => {
                let object = &*path.names[0].text;
                self.unknown_member(path, object, last, "method", class.methods.iter().map(|m| m.name));
                self.mark_uses(arguments);
                None
            }
        }
    }

    /// The error about a function, method or class that its module or object does not have.
    pub(super) fn unknown_member(
        &mut self,
        path: &Path,
        of: &str,
        last: &Name,
        what: &str,
        names: impl Iterator<Item = &'static str> + Clone,
    ) {
        let written = format!("{of}.{}", last.text);
        let message = format!("there is no {what} `{}` of `{of}`", last.text);
        let diagnostic = Diagnostic::new(&rules::UNKNOWN_FUNCTION, last.span, message);
        let renamed = RENAMED.iter().find(|(old, _)| *old == written).map(|&(_, meant)| meant);
        let begins = |name: &&str| name.starts_with(&format!("{}_", last.text));
        let meant = closest(&last.text, names.clone()).or_else(|| names.clone().find(begins));
        self.report(match (renamed, meant) {
            (Some(meant), _) => diagnostic.mend(format!("write `{meant}`"), path.span, meant),
            (None, Some(meant)) => diagnostic.mend(format!("did you mean `{of}.{meant}`?"), last.span, meant),
            (None, None) => {
                let all: Vec<&str> = names.collect();
                diagnostic.note(format!("`{of}` has {}", all.join(", ")))
            }
        });
    }

    /// Notes the subs that may call a function.
    pub(super) fn require_function(&mut self, name: &str, function: &Function, span: crate::source::Span) {
        self.require(function.subs, span, RequirementKind::Function(name.to_owned()));
    }
}
