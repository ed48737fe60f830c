//! The walk through a sub in one state, which collects changes.

use std::collections::BTreeSet;

use crate::diagnostic::Edit;
use crate::source::Span;
use crate::tree::{Block, Branch, ElseBlock, Include, Name, OldStatement, Statement, StatementKind};
use crate::upgrade::change::{Change, Decision};
use crate::upgrade::conditions::{pure_method, required_method};
use crate::upgrade::constructs::{self, Construct};
use crate::upgrade::facts::Facts;
use crate::upgrade::state::State;

/// The changes of a statement among which a decision is looked for, so that it is marked once.
const MAX_CHANGES_OF_STATEMENT: usize = 200;

/// Additions outside of the changed text.
#[derive(Clone, Debug, Default)]
pub(super) struct Needs {
    /// The modules.
    pub(super) modules: BTreeSet<&'static str>,
    /// The statements at the start of `vcl_recv`.
    pub(super) recv: Vec<String>,
}

/// The walk.
pub(super) struct Walker<'f, 'p> {
    pub(super) facts: &'f Facts<'p>,
    pub(super) state: State,
    /// The statement before which marked comments stand.
    pub(super) anchor: Span,
    /// The method that the conditions around the statement require.
    method: Option<String>,
    /// Whether branches for other states stay.
    pub(super) keeps_all: bool,
    pub(super) changes: Vec<Change>,
    pub(super) needs: Needs,
}

impl<'f, 'p> Walker<'f, 'p> {
    /// A walk that begins at `anchor`.
    pub(super) fn new(facts: &'f Facts<'p>, state: State, anchor: Span) -> Walker<'f, 'p> {
        Walker {
            facts,
            state,
            anchor,
            method: None,
            keeps_all: false,
            changes: Vec::new(),
            needs: Needs::default(),
        }
    }

    pub(super) fn text(&self, span: Span) -> String {
        self.facts.layout.text(span)
    }

    /// The use of a module, which is imported if it is not yet; its name.
    pub(super) fn module(&mut self, name: &'static str) -> &'static str {
        self.needs.modules.insert(name);
        name
    }

    /// Adds a change.
    pub(super) fn change(
        &mut self,
        construct: &'static Construct,
        span: Span,
        was: impl Into<String>,
        becomes: impl Into<String>,
        edits: Vec<Edit>,
    ) {
        let (was, becomes) = (was.into(), becomes.into());
        self.changes.push(Change { construct, span, was, becomes, edits, decision: None });
    }

    /// Adds the replacement of a span.
    pub(super) fn replace(&mut self, construct: &'static Construct, span: Span, text: impl Into<String>) {
        let text = text.into();
        let was = self.text(span);
        self.change(construct, span, was, text.clone(), vec![Edit { span, text }]);
    }

    /// Adds a decision with a marked comment before the statement; one of each construct for a statement.
    pub(super) fn decide(
        &mut self,
        construct: &'static Construct,
        span: Span,
        text: impl Into<String>,
        choices: &[&str],
        edits: Vec<Edit>,
    ) {
        let text = text.into();
        let choices = choices.iter().map(|&choice| choice.to_owned()).collect();
        let decision = Decision { text, choices };
        let marked = self.facts.layout.lines_before(self.anchor, &decision.comment(construct));
        // The changes of one statement are the last ones.
        let is_marked = self.changes.iter().rev().take(MAX_CHANGES_OF_STATEMENT).any(|change| {
            change.construct == construct && change.edits.first().is_some_and(|edit| edit.span == marked.span)
        });
        let was = first_line(&self.text(span));
        let becomes = decision.text.clone();
        match is_marked {
            true => self.change(construct, span, String::new(), becomes, edits),
            false => {
                // The comment ends with a line break, so that a statement that becomes one needs none.
                let place = marked.span;
                let moved = edits.into_iter().map(|edit| match edit.text.strip_prefix('\n') {
                    Some(text) if edit.span == place => {
                        Edit { span: place, text: text.trim_start_matches([' ', '\t']).to_owned() }
                    }
                    _ => edit,
                });
                let edits = std::iter::once(marked).chain(moved).collect();
                let decision = Some(decision);
                self.changes.push(Change { construct, span, was, becomes, edits, decision });
            }
        }
    }

    pub(super) fn block(&mut self, block: &Block) {
        self.statements(&block.statements, &|_| true);
    }

    /// The statements of a block that `test` accepts.
    pub(super) fn statements(&mut self, list: &[Statement], test: &dyn Fn(&Statement) -> bool) {
        for (at, statement) in list.iter().enumerate().filter(|(_, statement)| test(statement)) {
            let outer = std::mem::replace(&mut self.anchor, statement.span);
            self.statement(statement, &list[..at]);
            self.anchor = outer;
        }
    }

    fn statement(&mut self, statement: &Statement, before: &[Statement]) {
        if self.is_unavailable(statement) {
            return;
        }
        match &statement.kind {
            StatementKind::Set(set) => self.set(statement.span, set),
            StatementKind::Unset(unset) => self.unset(statement.span, unset),
            StatementKind::Call(name) => self.call(name),
            StatementKind::If { branches, otherwise } => {
                self.branches(statement.span, branches, otherwise.as_ref());
            }
            StatementKind::Return(found) => {
                if let Some(action) = &found.action {
                    self.action(statement.span, &action.name, before);
                    let arguments = action.arguments.iter().flat_map(|arguments| &arguments.list);
                    arguments.for_each(|argument| self.expression(&argument.value));
                }
            }
            StatementKind::New(new) => {
                new.arguments.list.iter().for_each(|argument| self.expression(&argument.value));
            }
            StatementKind::Function(call) => self.function(statement.span, call, true),
            StatementKind::Block(block) => self.block(block),
            StatementKind::Include(Include { parts, .. }) => {
                parts.iter().for_each(|part| self.statements(&part.items, &|_| true));
            }
            StatementKind::InlineC => self.inline_c(statement.span),
            StatementKind::Old(old) => self.old(statement.span, old, before),
            StatementKind::Unused(_) | StatementKind::Invalid => {}
        }
    }

    fn call(&mut self, name: &Name) {
        let called = self.facts.name_in(&name.text, self.state);
        if called != *name.text {
            self.replace(&constructs::SUB_FOR_BOTH_SIDES, name.span, called);
        }
    }

    fn branches(&mut self, span: Span, branches: &[Branch], otherwise: Option<&ElseBlock>) {
        let reached: Vec<bool> = branches.iter().map(|branch| self.reaches(branch)).collect();
        let first = reached.iter().position(|&is_reached| is_reached);
        let construct = match self.state {
            State::Synth | State::BackendError => &constructs::ERROR_SUB,
            _ => &constructs::PURGE,
        };
        let layout = self.facts.layout;
        let drop_of = |branch: &Branch| first_line(&layout.text(branch.keyword.to(branch.block.open)));
        match (first, otherwise) {
            (None, None) => {
                let was = format!("{} … }}", drop_of(&branches[0]));
                let edit = layout.remove(layout.with_comments_above(span));
                self.change(construct, span, was, self.reason_for_drop(&branches[0]), vec![edit]);
                return;
            }
            (None, Some(last)) => {
                // Only the last block stays, as a block by itself.
                let was = format!("{} … }}", drop_of(&branches[0]));
                let edit = Edit { span: span.before().to(last.block.open.before()), text: String::new() };
                self.change(construct, span, was, self.reason_for_drop(&branches[0]), vec![edit]);
            }
            (Some(first), _) => {
                if first > 0 {
                    let dropped = span.before().to(branches[first].keyword);
                    let was = format!("{} … }}", drop_of(&branches[0]));
                    let edit = Edit { span: dropped, text: "if".to_owned() };
                    self.change(construct, span, was, self.reason_for_drop(&branches[0]), vec![edit]);
                }
                for at in (first + 1..branches.len()).filter(|&at| !reached[at]) {
                    let dropped = branches[at - 1].block.close.after().to(branches[at].block.close);
                    let was = format!("{} … }}", drop_of(&branches[at]));
                    let edit = Edit { span: dropped, text: String::new() };
                    self.change(
                        construct,
                        branches[at].keyword,
                        was,
                        self.reason_for_drop(&branches[at]),
                        vec![edit],
                    );
                }
            }
        }
        for (branch, _) in branches.iter().zip(&reached).filter(|&(_, &reached)| reached) {
            self.expression(&branch.condition);
            let method = required_method(&branch.condition).map(|literal| self.text(literal.content));
            let outer = self.method.clone();
            self.method = method.or_else(|| outer.clone());
            self.block(&branch.block);
            self.method = outer;
        }
        if let Some(last) = otherwise {
            self.block(&last.block);
        }
    }

    fn reason_for_drop(&self, branch: &Branch) -> &'static str {
        let Facts { client_statuses, backend_statuses, .. } = self.facts;
        let is_reached =
            client_statuses.reach(&branch.condition) || backend_statuses.reach(&branch.condition);
        match self.state {
            State::Synth | State::BackendError if !is_reached => {
                "nothing, because neither `error` nor a backend causes this status"
            }
            State::Synth => "only in `vcl_backend_error`, because no `error` has this status",
            State::BackendError => "only in `vcl_synth`, because no backend causes this status",
            _ => "`vcl_purge`, because `return (purge)` purges before",
        }
    }

    /// Whether the condition of a branch can hold in this state.
    fn reaches(&self, branch: &Branch) -> bool {
        match self.state {
            _ if self.keeps_all => true,
            State::Synth => self.facts.client_statuses.reach(&branch.condition),
            State::BackendError => self.facts.backend_statuses.reach(&branch.condition),
            State::Hit | State::Miss | State::Pass => {
                let method = pure_method(&branch.condition).map(|literal| self.text(literal.content));
                !method.is_some_and(|method| self.facts.purge_methods.contains(&method))
            }
            _ => true,
        }
    }

    /// Whether no statement of a sub that has some can run in this state.
    pub(super) fn drops_all(&self, block: &Block) -> bool {
        let is_dropped = |statement: &Statement| match &statement.kind {
            StatementKind::If { branches, otherwise: None } => {
                !branches.iter().any(|branch| self.reaches(branch))
            }
            _ => false,
        };
        !block.statements.is_empty() && block.statements.iter().all(is_dropped)
    }

    /// Whether the statement is for a method that purges.
    pub(super) fn is_for_purge(&self) -> bool {
        self.method.as_ref().is_some_and(|method| self.facts.purge_methods.contains(method))
    }

    pub(super) fn inline_c(&mut self, span: Span) {
        let edits = self.facts.layout.comment_out(span);
        let code = self.text(span);
        let has = |words: &[&str]| words.iter().any(|word| code.contains(word));
        let mut choices = Vec::new();
        if has(&["syslog"]) {
            choices.push("std.syslog(PRIORITY, TEXT) writes to the system's log");
        }
        if has(&["random", "rand("]) {
            choices.push("std.random(0, 100) draws a random number");
        }
        if has(&["strftime", "gmtime", "time("]) {
            choices.push("set resp.http.Expires = now + 1h; a time becomes the text of a date");
        }
        if has(&["beresp_ttl", "obj_ttl"]) {
            choices.push("set beresp.ttl = std.duration(beresp.http.NAME + \"s\", 120s);");
        }
        if has(&["dlopen", "geo", "GeoIP", "country"]) {
            choices.push("a module for GeoIP, or an `acl` for each country");
        }
        if has(&["atoi", "strtol"]) {
            choices.push("std.integer(TEXT, 0) reads a number");
        }
        choices.push("a module of your own, or remove it");
        self.decide(&constructs::INLINE_C, span, "C is not run", &choices, edits);
    }

    fn old(&mut self, span: Span, old: &OldStatement, before: &[Statement]) {
        match old {
            OldStatement::Error { status, reason } => self.error(span, status.as_ref(), reason.as_ref()),
            OldStatement::Synthetic(value) => {
                let keyword = span.before().to(value.span.before());
                let edits = vec![
                    Edit { span: keyword, text: "synthetic(".to_owned() },
                    Edit { span: value.span.after(), text: ")".to_owned() },
                ];
                self.change(&constructs::SYNTHETIC, span, "synthetic TEXT", "synthetic(TEXT)", edits);
                self.expression(value);
            }
            OldStatement::Log(value) => {
                self.module("std");
                let keyword = span.before().to(value.span.before());
                let edits = vec![
                    Edit { span: keyword, text: "std.log(".to_owned() },
                    Edit { span: value.span.after(), text: ")".to_owned() },
                ];
                self.change(&constructs::LOG, span, "log TEXT", "std.log(TEXT)", edits);
                self.expression(value);
            }
            OldStatement::Panic(value) => {
                self.module("std");
                let keyword = span.before().to(value.span.before());
                let edits = vec![
                    Edit { span: keyword, text: "std.log(".to_owned() },
                    Edit { span: value.span.after(), text: "); return (fail)".to_owned() },
                ];
                self.change(&constructs::GONE, span, "panic TEXT", "std.log(TEXT); return (fail)", edits);
                self.expression(value);
            }
            OldStatement::Purge => self.purge_now(span),
            OldStatement::Esi => self.whole(&constructs::ESI, span, "set beresp.do_esi = true"),
            OldStatement::Rollback => {
                self.module("std");
                let request = if self.state.is_backend() { "bereq" } else { "req" };
                self.whole(&constructs::RENAMED, span, &format!("std.rollback({request})"));
            }
            OldStatement::Action(name) => self.action(span, name, before),
        }
    }

    /// Purges the object of a hit, or the variants of a miss, without a method that purges.
    pub(super) fn purge_now(&mut self, span: Span) {
        if !matches!(self.state, State::Hit | State::Miss) {
            let edits = self.facts.layout.comment_out(span);
            let choices = ["return (purge) in `vcl_recv`", "remove it"];
            self.decide(&constructs::PURGE, span, "nothing can be purged here", &choices, edits);
            return;
        }
        self.module("purge");
        let module = self.facts.purge_module();
        self.whole(&constructs::PURGE, span, &format!("{module}.hard()"));
    }

    /// Replaces a statement, but not its `;`.
    pub(super) fn whole(&mut self, construct: &'static Construct, span: Span, text: &str) {
        let was = self.text(span).trim_end_matches(';').trim_end().to_owned();
        let edit = Edit { span, text: format!("{text};") };
        self.change(construct, span, first_line(&was), text, vec![edit]);
    }
}

/// The first line of a text, for lists.
pub(super) fn first_line(text: &str) -> String {
    const LONGEST: usize = 60;
    let line = text.lines().next().unwrap_or_default().trim_end();
    match line.chars().nth(LONGEST) {
        None if text.trim_end().contains('\n') => format!("{line} …"),
        None => line.to_owned(),
        Some(_) => line.chars().take(LONGEST).chain(['…']).collect(),
    }
}
