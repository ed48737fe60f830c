//! Subs: their names, their copies for several states, and `vcl_purge`.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::Edit;
use crate::edits::OverlappingEdits;
use crate::source::Span;
use crate::tree::{Block, Branch, OldStatement, StatementKind, Sub};
use crate::upgrade::change::{Change, rewritten};
use crate::upgrade::conditions::pure_method;
use crate::upgrade::constructs;
use crate::upgrade::directors::dedented;
use crate::upgrade::facts::{Facts, is_purge};
use crate::upgrade::state::{GONE_SUBS, State};
use crate::upgrade::visit;
use crate::upgrade::walker::{Needs, Walker, first_line};

/// The depth of calls up to which copies of subs call copies.
const MAX_CALL_DEPTH: usize = 30;

/// The changes of a sub, and what they need outside of it.
#[derive(Default)]
pub(super) struct SubChanges {
    pub(super) changes: Vec<Change>,
    pub(super) needs: Needs,
}

impl Needs {
    /// Adds the needs of another part.
    pub(super) fn merge(&mut self, other: Needs) {
        self.modules.extend(other.modules);
        self.recv.extend(other.recv);
        let mut seen = BTreeSet::new();
        self.recv.retain(|line| seen.insert(line.clone()));
    }
}

impl Facts<'_> {
    /// The groups of states of a sub of the user, the first of which has the name of the sub.
    fn groups(&self, name: &str) -> Vec<State> {
        let groups: BTreeSet<State> =
            self.states.get(name).into_iter().flatten().map(|state| state.group()).collect();
        if groups.is_empty() { vec![State::Recv] } else { groups.into_iter().collect() }
    }

    /// The name of a sub of the user, or of its copy, in a state.
    pub(super) fn name_in(&self, name: &str, state: State) -> String {
        let copy = self.copied.get(name).and_then(|groups| {
            let (first, _) = groups.first_key_value()?;
            groups.get(&state.group()).filter(|&same| same != first)
        });
        match copy {
            Some(copy) => self.free_name(&format!("{name}{}", copy.sub().trim_start_matches("vcl"))),
            None => name.to_owned(),
        }
    }

    /// Finds the subs of the user that are not the same text in all their states.
    pub(super) fn find_copied(&mut self, stray: &[Edit]) -> Result<(), OverlappingEdits> {
        // The names of copies are part of the texts, so that a copy may need others.
        for _ in 0..MAX_CALL_DEPTH {
            let mut copied = BTreeMap::new();
            for &(sub, span) in &self.subs {
                let name = &*sub.name.text;
                let groups = self.groups(name);
                if groups.len() < 2 || !State::of_sub(name).is_empty() {
                    continue;
                }
                let mut firsts: BTreeMap<String, State> = BTreeMap::new();
                let mut same = BTreeMap::new();
                for group in groups {
                    let mut walker = Walker::new(self, group, span);
                    walker.block(&sub.block);
                    let text = rewritten(self.layout, span, edits(&walker.changes, stray))?;
                    same.insert(group, *firsts.entry(text).or_insert(group));
                }
                if firsts.len() > 1 {
                    copied.insert(name, same);
                }
            }
            if copied == self.copied {
                return Ok(());
            }
            self.copied = copied;
        }
        Ok(())
    }

    /// The changes of a sub.
    pub(super) fn sub(&self, sub: &Sub, span: Span, stray: &[Edit]) -> Result<SubChanges, OverlappingEdits> {
        let name = &*sub.name.text;
        if GONE_SUBS.contains(&name) {
            return Ok(self.gone_sub(sub, span));
        }
        let own = State::of_sub(name);
        let states: Vec<State> = match own {
            [] => match self.copied.get(name) {
                Some(groups) => {
                    groups.iter().filter(|(group, same)| group == same).map(|(&group, _)| group).collect()
                }
                None => self.groups(name).into_iter().take(1).collect(),
            },
            _ => own
                .iter()
                .copied()
                .filter(|&state| !Walker::new(self, state, span).drops_all(&sub.block))
                .collect(),
        };
        let Some((&first, copies)) = states.split_first() else {
            return Ok(self.dropped_sub(sub, span, own));
        };
        let mut walker = self.walked(sub, span, first, false);
        for &state in copies {
            let copy = self.walked(sub, span, state, false);
            let text = rewritten(self.layout, span, edits(&copy.changes, stray))?;
            walker.needs.merge(copy.needs);
            // A decision of the copy alone is listed; its comment stands in the copy.
            let is_listed = |change: &Change| {
                walker.changes.iter().any(|other| other.span == change.span && other.decision.is_some())
            };
            let decisions = copy.changes.into_iter().filter(|change| change.decision.is_some());
            let only_here: Vec<Change> = decisions.filter(|change| !is_listed(change)).collect();
            walker.changes.extend(only_here.into_iter().map(|change| Change { edits: Vec::new(), ..change }));
            let construct = match own {
                [] => &constructs::SUB_FOR_BOTH_SIDES,
                _ => &constructs::ERROR_SUB,
            };
            if includes(sub) {
                walker.anchor = span;
                let question = "the included file is changed for one of the subs only";
                let choices = ["write a second file for the other sub"];
                walker.decide(construct, sub.name.span, question, &choices, Vec::new());
            }
            let becomes = format!("sub {} as well", self.new_name(sub, state));
            let edits = vec![Edit { span: span.after(), text: format!("\n\n{text}") }];
            walker.change(construct, sub.name.span, format!("sub {name}"), becomes, edits);
        }
        Ok(SubChanges { changes: walker.changes, needs: walker.needs })
    }

    fn new_name(&self, sub: &Sub, state: State) -> String {
        match State::of_sub(&sub.name.text) {
            [] => self.name_in(&sub.name.text, state),
            _ => state.sub().to_owned(),
        }
    }

    fn walked(&self, sub: &Sub, span: Span, state: State, keeps_all: bool) -> Walker<'_, '_> {
        let mut walker = Walker::new(self, state, span);
        walker.keeps_all = keeps_all;
        let name = self.new_name(sub, state);
        if name != *sub.name.text {
            let construct = match &*sub.name.text {
                "vcl_fetch" => &constructs::FETCH_SUB,
                "vcl_error" => &constructs::ERROR_SUB,
                _ => &constructs::SUB_FOR_BOTH_SIDES,
            };
            let edits = vec![Edit { span: sub.name.span, text: name.clone() }];
            walker.change(
                construct,
                sub.name.span,
                format!("sub {}", sub.name.text),
                format!("sub {name}"),
                edits,
            );
        }
        walker.block(&sub.block);
        walker
    }

    /// A sub of which no statement can run: one of `vcl_hit` and `vcl_miss` vanishes, `vcl_error` stays.
    fn dropped_sub(&self, sub: &Sub, span: Span, own: &[State]) -> SubChanges {
        if let [state, _, ..] = own {
            let walker = self.walked(sub, span, *state, true);
            return SubChanges { changes: walker.changes, needs: walker.needs };
        }
        let mut walker = Walker::new(self, State::Purge, span);
        let edit = self.layout.remove_paragraph(span);
        let was = format!("sub {}", sub.name.text);
        walker.change(
            &constructs::PURGE,
            span,
            was,
            "`vcl_purge`, because `return (purge)` purges before",
            vec![edit],
        );
        SubChanges { changes: walker.changes, needs: walker.needs }
    }

    /// A sub for the end of an object's life. One that does nothing else vanishes.
    fn gone_sub(&self, sub: &Sub, span: Span) -> SubChanges {
        let mut walker = Walker::new(self, State::Init, span);
        let name = &*sub.name.text;
        let is_default = sub.block.statements.iter().all(|statement| {
            let action = match &statement.kind {
                StatementKind::Return(found) => found.action.as_ref().map(|action| &action.name),
                StatementKind::Old(OldStatement::Action(name)) => Some(name),
                _ => return false,
            };
            action.is_none_or(|action| {
                matches!((name, &*action.text), ("vcl_prefetch", "fetch") | (_, "discard"))
            })
        });
        let was = format!("sub {name}");
        if is_default {
            let edit = self.layout.remove_paragraph(span);
            walker.change(
                &constructs::PREFETCH,
                span,
                was,
                "nothing; it did what happens anyway",
                vec![edit],
            );
        } else {
            let question = format!("no sub runs where `{name}` ran");
            let choices = [
                "set beresp.grace in `vcl_backend_response`, so that requests refresh old objects",
                "request the pages from time to time, such as by cron, so that they stay in the cache",
                "remove it",
            ];
            let edits = self.layout.comment_out(span);
            walker.decide(&constructs::PREFETCH, span, question, &choices, edits);
        }
        SubChanges { changes: walker.changes, needs: walker.needs }
    }

    /// The first sub with a branch for a method that purges, and the branches by method.
    fn purge_branches(&self) -> Vec<(String, Span, &Branch)> {
        let mut found: Vec<(String, Span, &Branch)> = Vec::new();
        for name in ["vcl_hit", "vcl_miss"] {
            for (sub, span) in self.subs.iter().filter(|(sub, _)| &*sub.name.text == name) {
                for statement in &sub.block.statements {
                    let StatementKind::If { branches, .. } = &statement.kind else { continue };
                    for branch in branches {
                        let method =
                            pure_method(&branch.condition).map(|text| self.layout.text(text.content));
                        let Some(method) = method.filter(|method| self.purge_methods.contains(method)) else {
                            continue;
                        };
                        if found.iter().all(|(other, ..)| *other != method) {
                            found.push((method, *span, branch));
                        }
                    }
                }
            }
        }
        found
    }

    /// `vcl_purge` in the place of the branches of `vcl_hit` and `vcl_miss`.
    pub(super) fn purge_sub(&self, unit: &str, stray: &[Edit]) -> Result<SubChanges, OverlappingEdits> {
        let branches = self.purge_branches();
        let mut result = SubChanges::default();
        let Some(&(_, place, _)) = branches.first() else { return Ok(result) };
        let mut body = String::new();
        for (method, span, branch) in &branches {
            let block = &branch.block;
            let mut walker = Walker::new(self, State::Purge, *span);
            walker.block_for_purge(block);
            let inner = block.open.after().to(block.close.before());
            let text = rewritten(self.layout, inner, edits(&walker.changes, stray))?;
            let first = block.statements.iter().find(|statement| !is_purge(statement));
            let from = first.map_or_else(String::new, |first| self.layout.indent(first.span));
            result.needs.merge(walker.needs);
            if text.trim().is_empty() {
                continue;
            }
            let outer = if branches.len() > 1 { unit.repeat(2) } else { unit.to_owned() };
            let text = dedented(text.trim(), &from, &outer);
            body += &match branches.len() {
                1 => format!("{unit}{text}\n"),
                _ => format!("{unit}if (req.method == \"{method}\") {{\n{outer}{text}\n{unit}}}\n"),
            };
        }
        if body.is_empty() {
            return Ok(result);
        }
        let text = format!("sub vcl_purge {{\n{body}}}");
        let is_removed = self.subs.iter().any(|(sub, span)| {
            let state = State::of_sub(&sub.name.text).first();
            *span == place
                && state.is_some_and(|&state| Walker::new(self, state, place).drops_all(&sub.block))
        });
        // An insertion at the start of what is removed stays.
        let place = match is_removed {
            true => self.layout.remove_paragraph(place).span.before(),
            false => self.layout.with_comments_above(place).before(),
        };
        let edit = Edit { span: place, text: format!("{text}\n\n") };
        let span = branches[0].2.keyword;
        let was = format!("{} … }}", first_line(&self.layout.text(span.to(branches[0].2.block.open))));
        result.changes.push(Change {
            construct: &constructs::PURGE,
            span,
            was,
            becomes: "sub vcl_purge".to_owned(),
            edits: vec![edit],
            decision: None,
        });
        Ok(result)
    }
}

/// Whether a sub includes a file among its statements.
fn includes(sub: &Sub) -> bool {
    let mut found = false;
    visit::each_statement(&sub.block.statements, &mut |statement| {
        found |= matches!(statement.kind, StatementKind::Include(_));
    });
    found
}

/// The edits of changes and of stray semicolons.
fn edits(changes: &[Change], stray: &[Edit]) -> impl Iterator<Item = Edit> {
    changes.iter().flat_map(|change| &change.edits).chain(stray).cloned().collect::<Vec<_>>().into_iter()
}

impl Walker<'_, '_> {
    /// The statements of a block that purged, without the purge.
    fn block_for_purge(&mut self, block: &Block) {
        let layout = self.facts.layout;
        self.statements(&block.statements, &|statement| !is_purge(statement));
        for statement in block.statements.iter().filter(|statement| is_purge(statement)) {
            let edit = layout.remove(statement.span);
            self.change(&constructs::PURGE, statement.span, "", "", vec![edit]);
        }
    }
}
