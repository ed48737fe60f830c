//! `return` and its actions.

use crate::check::checker::Checker;
use crate::check::flow::RequirementKind;
use crate::check::rules;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::suggest::closest;
use crate::table::{ACTIONS, ActionArguments, ActionRow, SubRow, Subs, Type};
use crate::tree::{Action, Arguments, ExpressionKind, Return};

/// Actions meant by one that a sub may not return.
const MEANT: &[(&str, &str, &str)] = &[
    ("vcl_recv", "lookup", "hash"),
    ("vcl_recv", "deliver", "hash"),
    ("vcl_recv", "fetch", "pass"),
    ("vcl_recv", "miss", "hash"),
    ("vcl_recv", "hit", "hash"),
    ("vcl_recv", "error", "synth"),
    ("vcl_hash", "hash", "lookup"),
    ("vcl_hash", "deliver", "lookup"),
    ("vcl_pass", "pass", "fetch"),
    ("vcl_pass", "deliver", "fetch"),
    ("vcl_miss", "deliver", "fetch"),
    ("vcl_miss", "lookup", "fetch"),
    ("vcl_miss", "hash", "fetch"),
    ("vcl_miss", "miss", "fetch"),
    ("vcl_hit", "fetch", "pass"),
    ("vcl_hit", "miss", "pass"),
    ("vcl_hit", "lookup", "deliver"),
    ("vcl_hit", "hit", "deliver"),
    ("vcl_pipe", "pass", "pipe"),
    ("vcl_pipe", "deliver", "pipe"),
    ("vcl_deliver", "retry", "restart"),
    ("vcl_deliver", "ok", "deliver"),
    ("vcl_synth", "retry", "restart"),
    ("vcl_backend_fetch", "deliver", "fetch"),
    ("vcl_backend_fetch", "pass", "fetch"),
    ("vcl_backend_fetch", "hash", "fetch"),
    ("vcl_backend_response", "restart", "retry"),
    ("vcl_backend_response", "fetch", "deliver"),
    ("vcl_backend_response", "hash", "deliver"),
    ("vcl_backend_response", "synth", "error"),
    ("vcl_backend_error", "restart", "retry"),
    ("vcl_backend_error", "fetch", "retry"),
    ("vcl_init", "deliver", "ok"),
    ("vcl_fini", "deliver", "ok"),
    ("vcl_fini", "fail", "ok"),
];

/// The action meant in a sub by a name that is no action, or of old programs.
fn meant_action(name: &str) -> Option<&'static str> {
    match name {
        "deny" | "block" | "reject" | "error" | "synthetic" => Some("synth"),
        "miss" => Some("fetch"),
        "bypass" => Some("pass"),
        "cache" | "insert" => Some("hash"),
        _ => closest(name, ACTIONS.iter().map(|row| row.name)),
    }
}

impl Checker<'_> {
    /// `return (ACTION);` or `return;`
    pub(super) fn returned(&mut self, statement: &Return) {
        let builtin = self.sub.filter(|&sub| self.subs[sub].is_builtin());
        let Some(action) = &statement.action else {
            if let Some(sub) = builtin {
                let name = self.subs[sub].name;
                let message = format!("`return` in `{}` needs an action", name.text);
                let actions = actions_of(self.subs[sub].subs);
                self.report(
                    Diagnostic::new(&rules::ACTION, statement.keyword, message)
                        .note(format!("`{}` may return {actions}", name.text))
                        .advice("write `return (ACTION);`"),
                );
            }
            return;
        };
        let name = &action.name;
        let Some(row) = ACTIONS.iter().find(|row| row.name == &*name.text) else {
            self.unknown_action(action, builtin);
            return;
        };
        self.require(row.subs, name.span, RequirementKind::Action(row));
        let is_allowed = builtin.is_none_or(|sub| row.subs.contains(self.subs[sub].subs));
        match is_allowed {
            true => self.action_arguments(action, row),
            // The action is another one, so that only the parts of the arguments are checked.
            false => action.arguments.iter().flat_map(|a| &a.list).for_each(|argument| {
                self.expression(&argument.value);
            }),
        }
    }

    fn unknown_action(&mut self, action: &Action, builtin: Option<usize>) {
        let name = &action.name;
        let message = format!("there is no action `{}`", name.text);
        let diagnostic = Diagnostic::new(&rules::UNKNOWN_ACTION, name.span, message);
        let sub = builtin.map(|sub| self.subs[sub].subs);
        if &*name.text == "hit_for_pass" {
            self.report(diagnostic.note("`hit_for_pass` is of VCL 3").advice(
                "write `set beresp.uncacheable = true; set beresp.ttl = 120s;` and `return (deliver);`",
            ));
            return;
        }
        let diagnostic = match sub {
            Some(sub) => {
                let sub_name = sub.rows().next().map_or("", |row| row.name);
                diagnostic.note(format!("`{sub_name}` may return {}", actions_of(sub)))
            }
            None => diagnostic,
        };
        let meant = MEANT
            .iter()
            .find(|(of, written, _)| {
                *written == &*name.text && sub.is_some_and(|sub| sub.rows().any(|row| row.name == *of))
            })
            .map(|&(_, _, meant)| meant)
            .or_else(|| meant_action(&name.text));
        self.report(match meant {
            Some("synth") if action.arguments.is_none() => {
                diagnostic.mend("did you mean `synth(403)`?", name.span, "synth(403)")
            }
            Some(meant) => diagnostic.mend(format!("did you mean `{meant}`?"), name.span, meant),
            None => diagnostic,
        });
    }

    /// The error about an action that a sub may not return.
    pub(super) fn wrong_action(&self, action: &ActionRow, span: Span, row: &SubRow) -> Diagnostic {
        let message = format!("`{}` cannot return `{}`", row.name, action.name);
        let diagnostic = Diagnostic::new(&rules::ACTION, span, message).note(format!(
            "`{}` may return {}",
            row.name,
            actions_of(row.subs)
        ));
        let meant = MEANT.iter().find(|(sub, name, _)| *sub == row.name && *name == action.name);
        match meant {
            Some((_, _, meant)) => diagnostic.mend(format!("write `return ({meant})`"), span, *meant),
            None if row.name == "vcl_deliver" && action.name == "pass" => diagnostic
                .advice("decide in `vcl_recv`, or set `beresp.uncacheable` in `vcl_backend_response`"),
            None => diagnostic.advice(format!("`{}` can be returned by {}", action.name, action.subs)),
        }
    }

    fn action_arguments(&mut self, action: &Action, row: &ActionRow) {
        let list = action.arguments.as_ref().map_or(&[][..], |arguments| &arguments.list);
        let name = row.name;
        match (row.arguments, list) {
            (ActionArguments::None, []) | (ActionArguments::OptionalDuration, []) => {}
            (ActionArguments::OptionalStatus | ActionArguments::OptionalText, []) => {}
            (ActionArguments::None, [_, ..]) => {
                let span = action.arguments.as_ref().map_or(action.name.span, |arguments| arguments.span);
                let message = format!("the action `{name}` has no arguments");
                self.report(Diagnostic::new(&rules::ACTION_ARGUMENTS, span, message).mend(
                    format!("write `return ({name})`"),
                    span,
                    "",
                ));
            }
            (ActionArguments::Status, []) => {
                let message = format!("`{name}` needs a status");
                self.report(Diagnostic::new(&rules::ACTION_ARGUMENTS, action.name.span, message).mend(
                    format!("write `{name}(503)`, or another status"),
                    action.name.span.after(),
                    "(503)",
                ));
            }
            // The parser reports a number without its unit.
            (ActionArguments::OptionalDuration, [argument])
                if matches!(argument.value.kind, ExpressionKind::Integer(_)) => {}
            (ActionArguments::OptionalDuration, [argument]) => {
                self.value(&argument.value, Type::Duration, "the length of `pass`");
            }
            (ActionArguments::OptionalText, [argument]) => {
                // A number is no reason, although it would become a text.
                if let Some(found) = self.expression(&argument.value)
                    && !found.is_text()
                {
                    self.mismatch(&argument.value, found, Type::String, "the reason of `fail`");
                }
            }
            (ActionArguments::Status | ActionArguments::OptionalStatus, [status, rest @ ..])
                if rest.len() <= 1 =>
            {
                self.value(&status.value, Type::Int, "a status");
                self.status(&status.value.kind, status.value.span);
                for reason in rest {
                    self.value(&reason.value, Type::String, "the reason");
                }
            }
            (ActionArguments::Label, [argument])
                if matches!(argument.value.kind, ExpressionKind::Path(_)) => {}
            (ActionArguments::Label, _) => {
                let message = "`vcl` has the name of a label as its argument, such as `vcl(shop)`";
                self.report(Diagnostic::new(&rules::ACTION_ARGUMENTS, action.name.span, message));
            }
            (_, [.., last]) => {
                let message = format!("`{name}` has too many arguments");
                self.report(Diagnostic::new(&rules::ACTION_ARGUMENTS, last.value.span, message));
            }
        }
        self.unnamed(action.arguments.as_ref());
    }

    /// Reports arguments by name where there are no names.
    fn unnamed(&mut self, arguments: Option<&Arguments>) {
        for name in arguments.iter().flat_map(|a| &a.list).filter_map(|argument| argument.name.as_ref()) {
            let message = "arguments of actions have no names";
            self.report(Diagnostic::new(&rules::ACTION_ARGUMENTS, name.span, message));
        }
    }

    /// Reports a constant that is no status.
    pub(super) fn status(&mut self, kind: &ExpressionKind, span: Span) {
        if let &ExpressionKind::Integer(status) = kind
            && (!(100..=65535).contains(&status) || status % 1000 < 100)
        {
            let message = format!("{status} is no status: it has three digits, from 100 to 999");
            self.report(
                Diagnostic::new(&rules::NUMBER, span, message)
                    .note("a multiple of 1000 may be added, which the client does not see"),
            );
        }
    }
}

/// The actions of a sub in words.
fn actions_of(sub: Subs) -> String {
    let names: Vec<String> = ACTIONS
        .iter()
        .filter(|row| !(row.subs & sub).is_empty())
        .map(|row| format!("`{}`", row.name))
        .collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}
