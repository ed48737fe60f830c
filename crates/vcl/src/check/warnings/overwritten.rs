//! Settings that a later line overwrites before anything reads them.

use crate::check::checker::Checker;
use crate::check::rules;
use crate::check::warnings::visit;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::tree::{AssignmentOperator, Block, ExpressionKind, Statement, StatementKind};

/// The assignments before one that are compared with it.
const MAX_PENDING: usize = 32;

impl Checker<'_> {
    /// Warns of assignments in a row to one variable.
    pub(super) fn overwritten(&mut self, block: &Block) {
        let mut found = Vec::new();
        in_row(&block.statements, &mut found);
        for (name, first, second) in found {
            let message = format!("the value of `{name}` is overwritten before it is used");
            self.report(
                Diagnostic::new(&rules::OVERWRITTEN, first, message)
                    .related(second, "overwritten here")
                    .advice("remove one of the two"),
            );
        }
    }
}

/// Collects assignments with only other assignments between them and the next one to the same variable.
fn in_row(statements: &[Statement], found: &mut Vec<(String, Span, Span)>) {
    let mut pending: Vec<(String, Span)> = Vec::new();
    for statement in statements {
        match &statement.kind {
            StatementKind::Set(assignment) => {
                let name = assignment.target.text();
                // A value read by this assignment is used. Functions may read fields by themselves.
                let mut calls = false;
                visit::parts(&assignment.value, &mut |part| match &part.kind {
                    ExpressionKind::Path(path) => {
                        let read = path.text().to_ascii_lowercase();
                        pending.retain(|(name, _)| name.to_ascii_lowercase() != read);
                    }
                    ExpressionKind::Call(call) => {
                        let function = call.function.text().to_ascii_lowercase();
                        pending.retain(|(name, _)| !function.starts_with(&name.to_ascii_lowercase()));
                        calls |= !matches!(&*function, "regsub" | "regsuball");
                    }
                    _ => {}
                });
                if calls {
                    pending.clear();
                }
                let same = pending.iter().position(|(other, _)| other.eq_ignore_ascii_case(&name));
                let first = same.map(|at| pending.remove(at).1);
                if assignment.operator == AssignmentOperator::Assign {
                    found.extend(first.map(|first| (name.clone(), first, assignment.target.span)));
                    if pending.len() == MAX_PENDING {
                        pending.remove(0);
                    }
                    pending.push((name, assignment.target.span));
                }
            }
            StatementKind::If { branches, otherwise } => {
                pending.clear();
                branches.iter().for_each(|branch| in_row(&branch.block.statements, found));
                otherwise.iter().for_each(|branch| in_row(&branch.block.statements, found));
            }
            StatementKind::Block(block) => {
                pending.clear();
                in_row(&block.statements, found);
            }
            StatementKind::Include(include) => {
                pending.clear();
                include.parts.iter().for_each(|part| in_row(&part.items, found));
            }
            _ => pending.clear(),
        }
    }
}
