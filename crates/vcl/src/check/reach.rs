//! The built-in subs that reach a statement through calls: recursion, and what each sub requires of them.

use std::collections::HashSet;

use crate::check::checker::Checker;
use crate::check::flow::{Requirement, RequirementKind};
use crate::check::rules;
use crate::diagnostic::Diagnostic;
use crate::dialect::Dialect;
use crate::source::Span;
use crate::table::{Access, SubRow, Subs, Variable, variable};

/// A requirement that a built-in sub does not meet, with the calls that lead from one to the other.
struct Violation {
    requirement: Requirement,
    row: &'static SubRow,
    calls: Vec<Span>,
}

impl Checker<'_> {
    /// Notes a use that only `subs` allow.
    pub(super) fn require(&mut self, subs: Subs, span: Span, kind: RequirementKind) {
        if let (Some(sub), true) = (self.sub, subs != Subs::ALL) {
            self.subs[sub].requirements.push(Requirement { subs, span, kind });
        }
    }

    /// Reports subs that call themselves, once for each ring.
    pub(super) fn recursion(&mut self) {
        let mut state = vec![Visit::New; self.subs.len()];
        let mut found = Vec::new();
        for start in 0..self.subs.len() {
            // A stack of our own: (sub, next call).
            let mut stack = Vec::new();
            if state[start] == Visit::New {
                state[start] = Visit::Open;
                stack.push((start, 0));
            }
            while let Some((sub, next)) = stack.pop() {
                let Some(&call) = self.subs[sub].calls.get(next) else {
                    state[sub] = Visit::Done;
                    continue;
                };
                stack.push((sub, next + 1));
                match state[call.callee] {
                    Visit::Open => found.push((sub, call)),
                    Visit::New => {
                        state[call.callee] = Visit::Open;
                        stack.push((call.callee, 0));
                    }
                    Visit::Done => {}
                }
            }
        }
        for (sub, call) in found {
            let callee = self.subs[call.callee].name;
            let message = match sub == call.callee {
                true => format!("`{}` calls itself", callee.text),
                false => format!("`{}` calls itself through `{}`", callee.text, self.subs[sub].name.text),
            };
            let diagnostic = Diagnostic::new(&rules::RECURSION, call.span, message)
                .related(callee.span, "defined here")
                .note("VCL has no recursion and no loops");
            self.report(diagnostic.advice("remove the call, or `return (restart)` to begin again"));
        }
    }

    /// Reports each use that a built-in sub reaches and does not allow; once, however many reach it.
    pub(super) fn requirements(&mut self) {
        let mut violations: Vec<Violation> = Vec::new();
        let mut reported = HashSet::new();
        // Direct uses come first, so that these are named rather than longer ways.
        let starts: Vec<usize> = (0..self.subs.len()).filter(|&at| !self.subs[at].subs.is_empty()).collect();
        for &start in &starts {
            let row = self.subs[start].subs.rows().next().expect("a built-in sub");
            let mut seen = vec![false; self.subs.len()];
            seen[start] = true;
            // Subs with the call that leads to each, and the index of its caller in this list.
            let mut queue: Vec<(usize, Option<(Span, usize)>)> = vec![(start, None)];
            let mut at = 0;
            while let Some(&(sub, _)) = queue.get(at) {
                for requirement in &self.subs[sub].requirements {
                    let place = (requirement.span.file, requirement.span.start, requirement.span.end);
                    if requirement.subs.contains(row.subs) || !reported.insert(place) {
                        continue;
                    }
                    let way = std::iter::successors(queue[at].1, |&(_, caller)| queue[caller].1);
                    let calls = way.map(|(span, _)| span).collect();
                    violations.push(Violation { requirement: requirement.clone(), row, calls });
                }
                for call in &self.subs[sub].calls {
                    if !std::mem::replace(&mut seen[call.callee], true) {
                        queue.push((call.callee, Some((call.span, at))));
                    }
                }
                at += 1;
            }
        }
        for violation in violations {
            let diagnostic = self.violation(&violation);
            let calls = violation.calls.iter().take(3);
            let diagnostic =
                calls.fold(diagnostic, |diagnostic, &span| diagnostic.related(span, "called here"));
            self.report(diagnostic);
        }
    }

    fn violation(&self, violation: &Violation) -> Diagnostic {
        let Violation { requirement: Requirement { subs, span, kind }, row, .. } = violation;
        match kind {
            RequirementKind::Action(action) => self.wrong_action(action, *span, row),
            RequirementKind::New => {
                let message = format!("objects are made in `vcl_init`, not in `{}`", row.name);
                Diagnostic::new(&rules::NOT_HERE, *span, message).advice("move it to `vcl_init`")
            }
            RequirementKind::Function(name) => {
                let message = format!("`{name}` cannot be called in `{}`", row.name);
                let diagnostic = Diagnostic::new(&rules::NOT_HERE, *span, message)
                    .note(format!("it can be called in {subs}"));
                match (&**name, row.name) {
                    ("synthetic", "vcl_recv") => {
                        diagnostic.advice("write `return (synth(200));`, and `synthetic(…)` in `vcl_synth`")
                    }
                    ("purge.hard" | "purge.soft", "vcl_recv") => {
                        diagnostic.advice("write `return (purge);`, or call it in `vcl_hit` and `vcl_miss`")
                    }
                    ("directors.lookup", _) => {
                        diagnostic.advice("compare the name with `if`, and name the backend")
                    }
                    _ => diagnostic.advice(format!("move it to {subs}")),
                }
            }
            RequirementKind::Variable { variable, access, name } => {
                misplaced_variable(variable, *access, name, *span, row)
            }
        }
    }
}

/// The state of a sub in the search for recursion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visit {
    New,
    Open,
    Done,
}

/// The object with the same members that a sub has instead of another.
fn counterpart(root: &str, sub: Subs) -> &'static [&'static str] {
    let is_response = Subs::RESPONSE.contains(sub);
    match root {
        "req" | "req_top" if Subs::BACKEND.contains(sub) || sub == Subs::PIPE => &["bereq"],
        "resp" | "obj" if is_response => &["beresp"],
        "obj" | "beresp" if (Subs::DELIVER | Subs::SYNTH).contains(sub) => &["resp", "obj"],
        "resp" | "beresp" if sub == Subs::HIT => &["obj"],
        "bereq" if Subs::CLIENT.contains(sub) => &["req"],
        _ => &[],
    }
}

/// The error about a variable in a sub that does not have it.
fn misplaced_variable(
    found: &'static Variable,
    access: Access,
    name: &str,
    span: Span,
    row: &'static SubRow,
) -> Diagnostic {
    let verb = match access {
        Access::Read => "read",
        Access::Set => "set",
        Access::Unset => "unset",
    };
    let allowed = found.subs(access);
    let message = format!("`{name}` cannot be {verb} in `{}`", row.name);
    let diagnostic =
        Diagnostic::new(&rules::NOT_HERE, span, message).note(format!("it can be {verb} in {allowed}"));
    let (root, rest) = name.split_once('.').unwrap_or((name, ""));
    let dialect = Dialect::V4_1;
    let other = counterpart(root, row.subs)
        .iter()
        .map(|other| format!("{other}.{rest}"))
        .find(|other| variable(other, dialect).is_some_and(|other| other.subs(access).contains(row.subs)));
    if let Some(other) = other {
        return diagnostic.mend(format!("write `{other}`"), span, other.clone());
    }
    if access != Access::Read && root == "obj" {
        return diagnostic.advice("an object in the cache does not change; change `resp.*` in `vcl_deliver`");
    }
    let place = match (root, allowed) {
        ("beresp", _) if allowed.contains(Subs::BACKEND_RESPONSE) => "`vcl_backend_response`".to_owned(),
        ("resp", _) if allowed.contains(Subs::DELIVER) => "`vcl_deliver`".to_owned(),
        ("bereq", _) if allowed.contains(Subs::BACKEND_FETCH) => "`vcl_backend_fetch`".to_owned(),
        _ => allowed.to_string(),
    };
    diagnostic.advice(format!("move it to {place}"))
}
