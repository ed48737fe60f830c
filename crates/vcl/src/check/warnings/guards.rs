//! Actions that need a test before them: purges and bans an access list, restarts a limit.

use crate::check::checker::Checker;
use crate::check::rules;
use crate::check::warnings::visit;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::table::{Subs, Type};
use crate::tree::{
    Block, ComparisonOperator, DeclarationKind, Expression, ExpressionKind, Statement, StatementKind,
};

/// The calls within each other that are followed.
const MAX_CALLS: usize = 20;

/// The tests that come before a statement, or around it.
#[derive(Clone, Copy, Default)]
struct Guards {
    /// Whether the client was tested: by an access list, or by a field with a secret.
    has_client: bool,
    /// Whether the number of restarts was.
    has_restarts: bool,
}

/// The subs that reach the statement that is being visited.
struct Visit {
    guards: Guards,
    /// Subs that were visited for the built-in sub at hand, because each is visited once.
    seen: Vec<usize>,
    /// The calls that lead to the statement, because each takes a part of the stack.
    depth: usize,
    in_recv: bool,
    has_restart_rule: bool,
    found: Vec<(Span, Missing)>,
}

/// A guard that is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Client,
    Restarts,
}

impl<'p> Checker<'p> {
    /// Warns of purges and bans that any client may ask for, and of restarts without a limit.
    pub(super) fn guards(&mut self) {
        let mut visit = Visit {
            guards: Guards::default(),
            seen: Vec::new(),
            depth: 0,
            in_recv: false,
            has_restart_rule: false,
            found: Vec::new(),
        };
        for index in 0..self.subs.len() {
            let subs = self.subs[index].subs;
            if !self.subs[index].is_builtin() || !Subs::CLIENT.contains(subs) {
                continue;
            }
            visit.guards = Guards::default();
            visit.seen.clear();
            visit.in_recv = subs == Subs::RECV;
            // After a purge the request usually begins again once, with another method.
            visit.has_restart_rule = subs != Subs::PURGE;
            self.guarded_sub(index, &mut visit);
        }
        let mut found = visit.found;
        found.sort_by_key(|(span, _)| (span.file, span.start));
        found.dedup_by_key(|(span, _)| (span.file, span.start));
        for (span, missing) in found {
            self.report(match missing {
                Missing::Client => {
                    let message = "any client can remove objects from the cache here";
                    Diagnostic::new(&rules::UNGUARDED_PURGE, span, message)
                        .note("no test of `client.ip` comes before it")
                        .advice(
                            "define an `acl`, and begin with `if (client.ip !~ NAME) { return (synth(405)); }`",
                        )
                }
                Missing::Restarts => {
                    let message = "the request begins again until the limit of restarts, and then it fails";
                    Diagnostic::new(&rules::UNGUARDED_RESTART, span, message)
                        .advice("test `req.restarts == 0` before it")
                }
            });
        }
    }

    fn guarded_sub(&mut self, index: usize, visit: &mut Visit) {
        visit.seen.push(index);
        let name: &'p str = &self.subs[index].name.text;
        let blocks: Vec<&'p Block> = self
            .declarations
            .iter()
            .filter_map(|declaration| match &declaration.kind {
                DeclarationKind::Sub(sub) if &*sub.name.text == name => Some(&sub.block),
                _ => None,
            })
            .collect();
        for block in blocks {
            self.guarded(&block.statements, visit);
        }
    }

    fn guarded(&mut self, statements: &'p [Statement], visit: &mut Visit) {
        for statement in statements {
            visit::own_expressions(statement, &mut |expression| {
                if let ExpressionKind::Call(call) = &expression.kind {
                    self.guarded_call(&call.function.text(), call.function.span, visit);
                }
            });
            match &statement.kind {
                StatementKind::If { branches, otherwise } => {
                    let before = visit.guards;
                    let mut after = before;
                    for branch in branches {
                        // A later branch is reached only after the earlier tests.
                        self.test(&branch.condition, &mut after);
                        visit.guards = after;
                        self.guarded(&branch.block.statements, visit);
                    }
                    if let Some(branch) = otherwise {
                        self.guarded(&branch.block.statements, visit);
                    }
                    visit.guards = after;
                }
                StatementKind::Block(block) => self.guarded(&block.statements, visit),
                StatementKind::Include(include) => {
                    include.parts.iter().for_each(|part| self.guarded(&part.items, visit));
                }
                StatementKind::Call(name) => {
                    let callee = self.subs.iter().position(|sub| sub.name.text == name.text);
                    let is_new = |callee: &usize| visit.depth < MAX_CALLS && !visit.seen.contains(callee);
                    if let Some(callee) = callee.filter(is_new) {
                        visit.depth += 1;
                        self.guarded_sub(callee, visit);
                        visit.depth -= 1;
                    }
                }
                StatementKind::Function(call) => {
                    self.guarded_call(&call.function.text(), call.function.span, visit);
                }
                StatementKind::Set(assignment) => {
                    // The next lookup finds nothing, so that it does not lead here again.
                    visit.guards.has_restarts |= assignment.target.is("req.hash_always_miss");
                }
                StatementKind::Return(end) => {
                    let action = end.action.as_ref();
                    let (name, span) = action.map_or(("", end.keyword), |a| (&*a.name.text, a.name.span));
                    if name == "purge" && visit.in_recv && !visit.guards.has_client {
                        visit.found.push((span, Missing::Client));
                    }
                    if name == "restart" && visit.has_restart_rule && !visit.guards.has_restarts {
                        visit.found.push((span, Missing::Restarts));
                    }
                }
                _ => {}
            }
        }
    }

    fn guarded_call(&self, name: &str, span: Span, visit: &mut Visit) {
        let is_removal = matches!(name, "ban" | "std.ban" | "xkey.purge" | "xkey.softpurge");
        if is_removal && visit.in_recv && !visit.guards.has_client {
            visit.found.push((span, Missing::Client));
        }
    }

    /// Adds what a condition tests.
    fn test(&self, condition: &Expression, guards: &mut Guards) {
        guards.has_restarts |= visit::mentions(condition, "req.restarts");
        visit::parts(condition, &mut |part| {
            if let ExpressionKind::Comparison(comparison) = &part.kind {
                let is_match =
                    matches!(comparison.operator, ComparisonOperator::Match | ComparisonOperator::NotMatch);
                let is_acl = matches!(&comparison.right.kind, ExpressionKind::Path(path)
                if self.symbol_type(&path.text()) == Some(Type::Acl));
                let is_field = matches!(&comparison.left.kind, ExpressionKind::Path(path)
                if path.text().to_ascii_lowercase().starts_with("req.http.")
                    && !path.is("req.http.Host") && !path.is("req.http.host"));
                guards.has_client |= (is_match && is_acl) || (!is_match && is_field);
            }
        });
        guards.has_client |= visit::mentions(condition, "client.ip")
            || visit::mentions(condition, "local.socket")
            || visit::mentions(condition, "local.ip")
            || visit::mentions(condition, "std.ip")
            || visit::mentions(condition, "unix");
    }
}
