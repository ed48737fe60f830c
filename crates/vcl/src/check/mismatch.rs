//! Values of the wrong type, and how to convert them.

use crate::check::checker::Checker;
use crate::check::rules;
use crate::check::symbols::SymbolKind;
use crate::diagnostic::Diagnostic;
use crate::table::Type;
use crate::tree::{Expression, ExpressionKind};

/// Whether a text is written like a duration: a number and a unit.
fn is_duration(text: &str) -> bool {
    let unit = text.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    unit.len() < text.len() && matches!(unit, "ms" | "s" | "m" | "h" | "d" | "w" | "y")
}

impl Checker<'_> {
    /// Reports a value of the type `found` at a place that needs `expected`.
    pub(super) fn mismatch(&mut self, value: &Expression, found: Type, expected: Type, context: &str) {
        let message = match expected {
            Type::Bool if context == "a condition" => {
                format!("a value of type {found} is no condition")
            }
            _ => format!("{context} is of type {expected}, not {found}"),
        };
        let diagnostic = Diagnostic::new(&rules::TYPE, value.span, message);
        let diagnostic = self.mended_value(diagnostic, value, found, expected);
        self.report(diagnostic);
    }

    /// Adds the correction of a value of the type `found` to one of the type `expected`.
    pub(super) fn mended_value(
        &mut self,
        diagnostic: Diagnostic,
        value: &Expression,
        found: Type,
        expected: Type,
    ) -> Diagnostic {
        let span = value.span;
        let written = self.short_text(span);
        let literal = match &value.kind {
            ExpressionKind::String(literal) => Some(self.text(literal.content)),
            _ => None,
        };
        let is_number = match &value.kind {
            ExpressionKind::Integer(_) | ExpressionKind::Real(_) => true,
            ExpressionKind::Negative(inner) => matches!(inner.kind, ExpressionKind::Integer(_)),
            _ => false,
        };
        match (expected, literal) {
            (Type::Duration, Some(text)) if is_duration(&text) => {
                diagnostic.mend(format!("write `{text}` without quotes"), span, text)
            }
            (Type::Int, Some(text)) if text.parse::<i64>().is_ok() => {
                diagnostic.mend(format!("write `{text}` without quotes"), span, text)
            }
            (Type::Real, Some(text)) if text.parse::<f64>().is_ok() => {
                diagnostic.mend(format!("write `{text}` without quotes"), span, text)
            }
            (Type::Bool, Some(text)) if matches!(&*text, "true" | "false") => {
                diagnostic.mend(format!("write `{text}` without quotes"), span, text)
            }
            (Type::Stevedore, Some(text)) => {
                let name = format!("storage.{text}");
                diagnostic.mend(format!("write `{name}`"), span, name.clone())
            }
            (Type::Backend, Some(text)) => match self.symbols.get(&text) {
                Some(_) => {
                    self.symbols.mark_used(&text);
                    diagnostic.mend(format!("write `{text}` without quotes"), span, text)
                }
                None => diagnostic.advice("name a backend, without quotes"),
            },
            (Type::Acl, _) => diagnostic.advice("name an access list"),
            (Type::Duration, _) if is_number => {
                diagnostic.mend(format!("a duration has a unit: write `{written}s`"), span.after(), "s")
            }
            (Type::Bytes, _) if is_number => {
                let number = written.parse::<u64>().unwrap_or_default();
                let size = match number % 1024 == 0 && number > 0 {
                    true => format!("{}KB", number / 1024),
                    false => format!("{written}B"),
                };
                diagnostic.mend(format!("a size has a unit: write `{size}`"), span, size.clone())
            }
            (Type::Duration, _) if found == Type::Time => {
                diagnostic.advice("a difference of two times is a duration: `TIME - now`")
            }
            (Type::Int, _) if found == Type::Real && is_number => {
                let whole = written.split('.').next().unwrap_or_default().to_owned();
                diagnostic.mend(format!("write `{whole}`"), span, whole.clone())
            }
            (Type::Header, _) => diagnostic.advice("name a field, such as `req.http.Cookie`"),
            (Type::Http, _) => diagnostic.advice("name a request or response, such as `req`"),
            _ => match self.conversion(value, expected).filter(|_| found.is_text()) {
                Some(converted) => diagnostic.mend(format!("write `{converted}`"), span, converted.clone()),
                None => match (expected, found) {
                    (Type::Int | Type::Real, Type::Int | Type::Real | Type::Duration | Type::Time) => {
                        let name = if expected == Type::Int { "integer" } else { "real" };
                        let source = match found {
                            Type::Int => "integer",
                            Type::Real => "real",
                            Type::Duration => "duration",
                            _ => "time",
                        };
                        let converted = format!("std.{name}({source} = {written})");
                        diagnostic.mend(format!("write `{converted}`"), span, converted.clone())
                    }
                    (Type::Bool, _) => diagnostic.advice("compare it, such as with `==` or `>`"),
                    _ => diagnostic,
                },
            },
        }
    }

    /// The call that converts a text to a type.
    pub(super) fn conversion(&self, value: &Expression, expected: Type) -> Option<String> {
        let written = self.short_text(value.span);
        Some(match expected {
            Type::Duration => format!("std.duration({written}, 0s)"),
            Type::Int => format!("std.integer({written}, 0)"),
            Type::Real => format!("std.real({written}, 0.0)"),
            Type::Bytes => format!("std.bytes({written}, 0B)"),
            Type::Ip => format!("std.ip({written}, \"0.0.0.0\")"),
            Type::Time => format!("std.time({written}, now)"),
            _ => return None,
        })
    }

    /// Reports a director, or a text, where a backend is needed. Returns whether it did.
    pub(super) fn backend_value(&mut self, value: &Expression, context: &str) -> Option<()> {
        let ExpressionKind::Path(path) = &value.kind else {
            return None;
        };
        let name = path.single()?;
        match self.symbols.get(&name.text) {
            Some(symbol) => {
                let SymbolKind::Object(class) = symbol.kind else {
                    return None;
                };
                self.symbols.mark_used(&name.text);
                let message = format!("{context} is of type BACKEND, and `{}` is an object", name.text);
                let diagnostic =
                    Diagnostic::new(&rules::TYPE, value.span, message).related(symbol.span, "made here");
                let has_backend = class.is_none_or(|class| class.method("backend").is_some());
                self.report(match has_backend {
                    true => {
                        let call = format!("{}.backend()", name.text);
                        diagnostic.mend(format!("write `{call}`"), value.span, call.clone())
                    }
                    false => diagnostic,
                });
            }
            None if &*name.text == "default" => return None,
            None => {
                let message = format!("there is no backend `{}`", name.text);
                let diagnostic = Diagnostic::new(&rules::UNKNOWN_SYMBOL, value.span, message);
                let is_candidate =
                    |kind: SymbolKind| matches!(kind, SymbolKind::Backend | SymbolKind::Object(_));
                let meant = self.symbols.closest(&name.text, is_candidate).map(str::to_owned);
                if meant.is_none() && !self.is_news(&name.text) {
                    return Some(());
                }
                let diagnostic = match meant {
                    Some(meant) => {
                        self.symbols.mark_used(&meant);
                        diagnostic.mend(format!("did you mean `{meant}`?"), value.span, meant)
                    }
                    None => {
                        diagnostic.advice(format!("define it: `backend {} {{ .host = \"…\"; }}`", name.text))
                    }
                };
                self.report(diagnostic);
            }
        }
        Some(())
    }
}
