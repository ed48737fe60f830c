//! Actions, and errors as actions.

use crate::diagnostic::Edit;
use crate::source::Span;
use crate::tree::{Expression, Name, Statement, StatementKind};
use crate::upgrade::constructs;
use crate::upgrade::facts::is_zero;
use crate::upgrade::state::State;
use crate::upgrade::walker::Walker;

/// The successor of an old action.
enum NewAction {
    /// It stays.
    Same,
    /// It has another name.
    Named(&'static str),
    /// The response is marked as not to be stored.
    Uncacheable,
    /// The request is looked up again, and misses.
    Miss,
    /// It is a decision.
    Unknown,
}

fn new_action(state: State, name: &str, is_for_purge: bool) -> NewAction {
    use NewAction::{Miss, Named, Same, Uncacheable, Unknown};
    match (state, name) {
        (State::Recv, "lookup") if is_for_purge => Named("purge"),
        (State::Recv, "lookup") => Named("hash"),
        (State::Recv, "pass" | "pipe" | "restart") => Same,
        (State::Pipe, "pipe") | (State::Hash, "lookup") => Same,
        (State::Hash, "hash") => Named("lookup"),
        (State::Pass, "pass") => Named("fetch"),
        (State::Pass, "fetch" | "restart") => Same,
        (State::Hit, "deliver" | "pass" | "restart") => Same,
        (State::Hit, "fetch" | "miss") => Miss,
        (State::Miss, "fetch" | "pass" | "restart") => Same,
        (State::Miss, "miss") => Named("fetch"),
        (State::Fetch, "hit_for_pass" | "pass") => Uncacheable,
        (State::Fetch, "insert") => Named("deliver"),
        (State::Fetch, "deliver") => Same,
        (State::Fetch | State::BackendError, "restart") => Named("retry"),
        (State::Deliver | State::Synth, "deliver" | "restart") | (State::BackendError, "deliver") => Same,
        (State::Init | State::Fini, "ok") | (_, "fail") => Same,
        _ => Unknown,
    }
}

impl Walker<'_, '_> {
    /// The statement at `span` ends with the action `name`; `before` are the statements before it.
    pub(super) fn action(&mut self, span: Span, name: &Name, before: &[Statement]) {
        // The statement is an action alone, as in 2.0.
        let is_bare = span.start == name.span.start;
        let edit = |new: &str| match is_bare {
            true => Edit { span, text: format!("return ({new});") },
            false => Edit { span: name.span, text: new.to_owned() },
        };
        let was = match is_bare {
            true => name.text.to_string(),
            false => format!("return ({})", name.text),
        };
        match new_action(self.state, &name.text, self.is_for_purge()) {
            NewAction::Same if is_bare => {
                let becomes = format!("return ({})", name.text);
                self.change(&constructs::ACTION, span, was, becomes, vec![edit(&name.text)]);
            }
            NewAction::Same => {}
            NewAction::Named("retry") if self.facts.recv_reads_restarts => {
                let question = "the next attempt was chosen in `vcl_recv`, which a retry does not run again";
                let choices = [
                    "choose it in `vcl_backend_fetch`, where `bereq.retries` counts",
                    "restart in `vcl_deliver` or `vcl_synth`, which runs `vcl_recv` again",
                ];
                self.decide(&constructs::RESTART_OR_RETRY, span, question, &choices, vec![edit("retry")]);
            }
            NewAction::Named(new) => {
                let construct = match new {
                    "retry" => &constructs::RESTART,
                    "purge" => &constructs::PURGE,
                    _ => &constructs::ACTION,
                };
                self.change(construct, span, was, format!("return ({new})"), vec![edit(new)]);
            }
            NewAction::Uncacheable => {
                let edits = self.uncacheable(span, before, edit("deliver"));
                let becomes = "set beresp.uncacheable = true; return (deliver)";
                self.change(&constructs::HIT_FOR_PASS, span, was, becomes, edits);
            }
            NewAction::Miss => {
                let separator = self.facts.layout.separator(span);
                let text = format!("set req.hash_always_miss = true;{separator}");
                let edits = vec![Edit { span: span.before(), text }, edit("restart")];
                let question = "a hit cannot become a fetch; a restart looks it up again and misses";
                let choices = [
                    "keep the restart, which runs `vcl_recv` again",
                    "set `req.hash_always_miss` in `vcl_recv` under the same condition",
                ];
                self.decide(&constructs::FETCH_IN_HIT, span, question, &choices, edits);
            }
            NewAction::Unknown => {
                let edits = if is_bare { vec![edit(&name.text)] } else { Vec::new() };
                let question = format!("`{}` cannot return `{}`", self.state.sub(), name.text);
                self.decide(&constructs::ACTION, span, question, &["return another action"], edits);
            }
        }
    }

    /// The edits for a response that is not stored. A time that was set before stays, unless it is 0.
    fn uncacheable(&self, span: Span, before: &[Statement], action: Edit) -> Vec<Edit> {
        let separator = self.facts.layout.separator(span);
        let ttl = before.iter().rev().find_map(|statement| match &statement.kind {
            StatementKind::Set(set) if set.target.is("beresp.ttl") || set.target.is("obj.ttl") => {
                Some(&set.value)
            }
            _ => None,
        });
        let mut text = format!("set beresp.uncacheable = true;{separator}");
        let mut edits = Vec::new();
        match ttl {
            None => text += &format!("set beresp.ttl = 120s;{separator}"),
            Some(value) if is_zero(value) => {
                edits.push(Edit { span: value.span, text: "120s".to_owned() });
            }
            Some(_) => {}
        }
        edits.extend([Edit { span: span.before(), text }, action]);
        edits
    }

    /// `error STATUS REASON;`
    pub(super) fn error(&mut self, span: Span, status: Option<&Expression>, reason: Option<&Expression>) {
        let name = match self.state {
            State::Fetch => "error",
            State::Hash | State::Synth | State::BackendError | State::Init | State::Fini => {
                let edits = self.facts.layout.comment_out(span);
                let question = format!("`{}` cannot end with an error", self.state.sub());
                self.decide(&constructs::ERROR, span, question, &["return (fail);", "remove it"], edits);
                return;
            }
            _ => "synth",
        };
        let Some(status) = status else {
            let text = format!("return ({name}(503))");
            self.whole(&constructs::ERROR, span, &text);
            return;
        };
        let opening = Edit { span: span.before().to(status.span.before()), text: format!("return ({name}(") };
        let mut edits = vec![opening];
        let mut end = status.span;
        if let Some(reason) = reason {
            let gap = status.span.after().to(reason.span.before());
            let written = self.text(gap);
            // A comment between the two stays.
            let text = match written.trim() {
                "" | "," => ", ".to_owned(),
                other if other.starts_with(',') => written,
                _ => format!(",{written}"),
            };
            edits.push(Edit { span: gap, text });
            end = reason.span;
        }
        edits.push(Edit { span: end.after(), text: "))".to_owned() });
        let number = self.text(status.span);
        let (was, becomes) = match reason {
            Some(_) => (format!("error {number} TEXT"), format!("return ({name}({number}, TEXT))")),
            None => (format!("error {number}"), format!("return ({name}({number}))")),
        };
        self.change(&constructs::ERROR, span, was, becomes, edits);
        self.expression(status);
        if let Some(reason) = reason {
            self.expression(reason);
        }
    }
}
