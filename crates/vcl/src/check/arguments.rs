//! Arguments of functions, by position and by name.

use crate::check::checker::Checker;
use crate::check::flow::RequirementKind;
use crate::check::rules;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::suggest::closest;
use crate::table::{Function, Parameter, Release, Subs, Type};
use crate::tree::{Argument, Arguments, Expression, ExpressionKind, LinkOperator};

/// The functions that convert one of several values, which differ in their names, to their type.
const CONVERSIONS: &[&str] = &["std.duration", "std.bytes", "std.integer", "std.real", "std.time"];

impl Checker<'_> {
    /// Checks the arguments of a call. `name` is that of the function, for messages.
    pub(super) fn arguments(&mut self, name: &str, function: &'static Function, arguments: &Arguments) {
        let before = arguments.span.before();
        // The mark of the call as a whole: from its name to its parentheses.
        let last_name = name.rsplit('.').next().unwrap_or(name).len() as u32;
        let call = Span::new(before.file, before.start.saturating_sub(last_name), before.start);
        self.require_function(name, function, call);
        if function.release == Release::Until7 {
            let message = format!("`{name}` is gone in version 8");
            let diagnostic = Diagnostic::new(&rules::REMOVED_FUNCTION, call, message);
            self.report(match name {
                "std.real2integer" => diagnostic.advice("write `std.integer(real = …, fallback = …)`"),
                "std.real2time" => diagnostic.advice("write `std.time(real = …, fallback = …)`"),
                "std.time2integer" => diagnostic.advice("write `std.integer(time = …, fallback = …)`"),
                "std.time2real" => diagnostic.advice("write `std.real(time = …, fallback = …)`"),
                _ => diagnostic.mend("write `format_date`", call, "format_date"),
            });
        }
        if arguments.list.iter().any(|argument| was_reported(&argument.value)) {
            self.mark_uses(arguments);
            return;
        }
        let mut given: Vec<Option<&Argument>> = vec![None; function.parameters.len()];
        let mut named: Option<&Argument> = None;
        for (at, argument) in arguments.list.iter().enumerate() {
            let parameter = match &argument.name {
                Some(written) => {
                    named = Some(argument);
                    let found = function.parameters.iter().position(|p| p.name == Some(&*written.text));
                    if found.is_none() {
                        self.unknown_argument(name, function, argument);
                        return;
                    }
                    found
                }
                None if named.is_some() => {
                    let message = "an argument without a name stands after one with a name";
                    let diagnostic = Diagnostic::new(&rules::ARGUMENTS, argument.value.span, message);
                    let free = function.parameters.iter().zip(&given).find(|(_, given)| given.is_none());
                    self.report(match free.and_then(|(parameter, _)| parameter.name) {
                        Some(free) => diagnostic.mend(
                            format!("write `{free} = {}`", self.short_text(argument.value.span)),
                            argument.value.span.before(),
                            format!("{free} = "),
                        ),
                        None => diagnostic,
                    });
                    return;
                }
                None => Some(at).filter(|&at| at < function.parameters.len()),
            };
            let Some(parameter) = parameter else {
                self.too_many(name, function, argument);
                return;
            };
            if given[parameter].is_some() {
                let message = "this argument is given twice";
                self.report(Diagnostic::new(&rules::ARGUMENTS, argument.value.span, message));
                return;
            }
            given[parameter] = Some(argument);
        }
        for (parameter, given) in function.parameters.iter().zip(&given) {
            match given {
                Some(argument) => self.argument(name, parameter, &argument.value),
                None if !parameter.is_optional => {
                    self.missing_argument(name, function, parameter, arguments);
                    return;
                }
                None => {}
            }
        }
        let given: Vec<(&'static Parameter, &Argument)> =
            function.parameters.iter().zip(given).filter_map(|(p, given)| Some((p, given?))).collect();
        self.meaning(name, &given, arguments, call);
    }

    fn argument(&mut self, function: &str, parameter: &'static Parameter, value: &Expression) {
        let context = match parameter.name {
            Some(name) => format!("the argument `{name}` of `{function}`"),
            None => format!("the argument of `{function}`"),
        };
        if parameter.kind == Type::Enum {
            self.word(parameter, value, &context);
            return;
        }
        self.value(value, parameter.kind, &context);
    }

    /// A word that an ENUM allows.
    fn word(&mut self, parameter: &'static Parameter, value: &Expression, context: &str) {
        let written = match &value.kind {
            ExpressionKind::Path(path) => path.text(),
            ExpressionKind::String(literal) => self.text(literal.content),
            _ => String::new(),
        };
        let is_word = matches!(value.kind, ExpressionKind::Path(_));
        if is_word && parameter.words.contains(&&*written) {
            return;
        }
        let message = match (is_word, written.is_empty()) {
            (true, _) => format!("`{written}` is no word for {context}"),
            (false, _) => format!("{context} is a word without quotes"),
        };
        let diagnostic = Diagnostic::new(&rules::ARGUMENTS, value.span, message)
            .note(format!("the words are {}", parameter.words.join(", ")));
        let same = parameter.words.iter().find(|word| word.eq_ignore_ascii_case(&written)).copied();
        let near = || {
            let upper = written.to_ascii_uppercase();
            parameter.words.iter().copied().find(|word| strsim::osa_distance(&upper, word) <= word.len() / 3)
        };
        self.report(match same.or_else(near) {
            Some(meant) => diagnostic.mend(format!("write `{meant}`"), value.span, meant),
            None => diagnostic,
        });
    }

    fn unknown_argument(&mut self, function: &str, known: &'static Function, argument: &Argument) {
        let Some(name) = &argument.name else { return };
        let names: Vec<&'static str> =
            known.parameters.iter().filter_map(|parameter| parameter.name).collect();
        let message = format!("`{function}` has no argument `{}`", name.text);
        let diagnostic = Diagnostic::new(&rules::ARGUMENTS, name.span, message);
        let meant = match &*name.text {
            "default" if names.contains(&"fallback") => Some("fallback"),
            "int" if names.contains(&"integer") => Some("integer"),
            "string" | "str" if names.contains(&"s") => Some("s"),
            text => closest(text, names.iter().copied()),
        };
        self.report(match meant {
            Some(meant) => diagnostic.mend(format!("write `{meant}`"), name.span, meant),
            None if names.is_empty() => diagnostic.advice("leave out the name"),
            None => diagnostic.note(format!("its arguments are {}", known.signature)),
        });
    }

    fn too_many(&mut self, function: &str, known: &'static Function, argument: &Argument) {
        let count = known.parameters.len();
        let message = match count {
            0 => format!("`{function}` has no arguments"),
            1 => format!("`{function}` has only one argument"),
            _ => format!("`{function}` has only {count} arguments"),
        };
        let diagnostic = Diagnostic::new(&rules::ARGUMENTS, argument.value.span, message);
        self.report(match function {
            "directors.round_robin"
            | "directors.random"
            | "directors.fallback"
            | "directors.hash"
            | "directors.shard" => diagnostic.advice("add each backend with `.add_backend(…)`"),
            _ if count == 0 => diagnostic.advice("remove it"),
            _ => diagnostic.note(format!("its arguments are ({})", known.signature)),
        });
    }

    fn missing_argument(
        &mut self,
        function: &str,
        known: &'static Function,
        parameter: &Parameter,
        arguments: &Arguments,
    ) {
        let described = match parameter.name {
            Some(name) => format!("`{name}` ({})", parameter.kind),
            None => format!("of type {}", parameter.kind),
        };
        let message = format!("the argument {described} of `{function}` is missing");
        let end = Span::new(arguments.span.file, arguments.span.end.saturating_sub(1), arguments.span.end);
        self.report(
            Diagnostic::new(&rules::ARGUMENTS, end, message)
                .note(format!("its arguments are ({})", known.signature)),
        );
    }

    /// Checks that arguments make sense together, and that constants are what functions accept.
    fn meaning(
        &mut self,
        name: &str,
        given: &[(&'static Parameter, &Argument)],
        arguments: &Arguments,
        call: Span,
    ) {
        let value = |wanted: &str| {
            given.iter().find(|(parameter, _)| parameter.name == Some(wanted)).map(|(_, given)| &given.value)
        };
        if CONVERSIONS.contains(&name) {
            let sources: Vec<&&Argument> =
                given.iter().filter(|(p, _)| p.name != Some("fallback")).map(|(_, given)| given).collect();
            let message = match sources.as_slice() {
                [] => format!("`{name}` has nothing to convert"),
                [_] => return,
                _ => format!("`{name}` converts one value, not {}", sources.len()),
            };
            let span = sources.get(1).map_or(arguments.span, |argument| argument.value.span);
            self.report(Diagnostic::new(&rules::ARGUMENTS, span, message));
            return;
        }
        match name {
            "blob.encode" | "blob.transcode" | ".encode" => {
                let word = |wanted| value(wanted).map(|value| self.text(value.span));
                let (coding, case) = (word("encoding").unwrap_or_default(), word("case"));
                let has_case = matches!(&*coding, "HEX" | "URL");
                if let (false, Some("UPPER" | "LOWER"), Some(value)) =
                    (has_case, case.as_deref(), value("case"))
                {
                    let message = format!("{coding} has no upper and lower case");
                    self.report(Diagnostic::new(&rules::ARGUMENTS, value.span, message).mend(
                        "write `DEFAULT`",
                        value.span,
                        "DEFAULT",
                    ));
                }
            }
            "blob.decode" | "blob.blob" => self.decoded(value("decoding"), value("encoded")),
            ".backend" => {
                if let Some(resolve) = value("resolve")
                    && self.text(resolve.span) == "NOW"
                {
                    let others = Subs::CLIENT | Subs::BACKEND | Subs::FINI;
                    self.require(others, call, RequirementKind::Function("backend(resolve=NOW)".into()));
                }
            }
            "ban" | "std.ban" => {
                if let [(_, given)] = given {
                    self.ban(&given.value);
                }
            }
            "regsub" | "regsuball" => {
                if let Some(replacement) = value("replacement") {
                    self.replacement(replacement);
                }
            }
            _ => {}
        }
    }

    /// A constant that is decoded.
    fn decoded(&mut self, decoding: Option<&Expression>, encoded: Option<&Expression>) {
        let (Some(decoding), Some(encoded)) = (decoding, encoded) else { return };
        let ExpressionKind::String(literal) = &encoded.kind else { return };
        let (coding, text) = (self.text(decoding.span), self.text(literal.content));
        let is_valid = |byte: u8| match &*coding {
            "HEX" => byte.is_ascii_hexdigit(),
            "BASE64" => byte.is_ascii_alphanumeric() || b"+/=".contains(&byte),
            "BASE64URL" => byte.is_ascii_alphanumeric() || b"-_=".contains(&byte),
            "BASE64URLNOPAD" => byte.is_ascii_alphanumeric() || b"-_".contains(&byte),
            _ => true,
        };
        if let Some(at) = text.bytes().position(|byte| !is_valid(byte)) {
            let start = literal.content.start + at as u32;
            let span = Span::new(literal.content.file, start, start + 1);
            let message = format!("this character is not of {coding}");
            self.report(Diagnostic::new(&rules::ARGUMENTS, span, message));
        }
    }
}

/// Whether the parser reported the argument, so that the number of arguments is uncertain.
fn was_reported(value: &Expression) -> bool {
    match &value.kind {
        ExpressionKind::Invalid => true,
        ExpressionKind::Chain(chain) => {
            chain.rest.iter().any(|link| link.operator == LinkOperator::SideBySide)
        }
        _ => false,
    }
}
