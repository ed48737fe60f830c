//! Walks through statements and expressions.

use crate::tree::{Block, Expression, ExpressionKind, Statement, StatementKind, StringLiteral};

/// Visits all statements of a block in order, those within others after these.
pub(super) fn statements<'b>(block: &'b Block, visit: &mut dyn FnMut(&'b Statement)) {
    list(&block.statements, visit);
}

fn list<'b>(all: &'b [Statement], visit: &mut dyn FnMut(&'b Statement)) {
    for statement in all {
        visit(statement);
        match &statement.kind {
            StatementKind::If { branches, otherwise } => {
                branches.iter().for_each(|branch| statements(&branch.block, visit));
                otherwise.iter().for_each(|branch| statements(&branch.block, visit));
            }
            StatementKind::Block(block) => statements(block, visit),
            StatementKind::Include(include) => {
                include.parts.iter().for_each(|part| list(&part.items, visit));
            }
            _ => {}
        }
    }
}

/// Visits all expressions of a block, and the expressions within them.
pub(super) fn expressions<'b>(block: &'b Block, visit: &mut dyn FnMut(&'b Expression)) {
    statements(block, &mut |statement| own_expressions(statement, visit));
}

/// Visits the expressions of one statement, but not of those within it.
pub(super) fn own_expressions<'b>(statement: &'b Statement, visit: &mut dyn FnMut(&'b Expression)) {
    match &statement.kind {
        StatementKind::Set(assignment) => parts(&assignment.value, visit),
        StatementKind::If { branches, .. } => {
            branches.iter().for_each(|branch| parts(&branch.condition, visit));
        }
        StatementKind::Return(end) => {
            let arguments = end.action.iter().filter_map(|action| action.arguments.as_ref());
            arguments.flat_map(|a| &a.list).for_each(|argument| parts(&argument.value, visit));
        }
        StatementKind::New(new) => {
            new.arguments.list.iter().for_each(|argument| parts(&argument.value, visit));
        }
        StatementKind::Function(call) => {
            call.arguments.list.iter().for_each(|argument| parts(&argument.value, visit));
        }
        _ => {}
    }
}

/// Visits an expression and all within it.
pub(super) fn parts<'b>(expression: &'b Expression, visit: &mut dyn FnMut(&'b Expression)) {
    visit(expression);
    match &expression.kind {
        ExpressionKind::Call(call) => {
            call.arguments.list.iter().for_each(|argument| parts(&argument.value, visit));
        }
        ExpressionKind::Member(member) => {
            parts(&member.of, visit);
            let arguments = member.arguments.iter().flat_map(|arguments| &arguments.list);
            arguments.for_each(|argument| parts(&argument.value, visit));
        }
        ExpressionKind::Parenthesized(inner)
        | ExpressionKind::Not(inner)
        | ExpressionKind::Negative(inner) => parts(inner, visit),
        ExpressionKind::Chain(chain) => {
            parts(&chain.first, visit);
            chain.rest.iter().for_each(|link| parts(&link.operand, visit));
        }
        ExpressionKind::Comparison(comparison) => {
            parts(&comparison.left, visit);
            parts(&comparison.right, visit);
        }
        _ => {}
    }
}

/// Whether an expression has a variable with this name; the case of letters does not count.
pub(super) fn mentions(expression: &Expression, name: &str) -> bool {
    let mut found = false;
    parts(expression, &mut |part| {
        let path = match &part.kind {
            ExpressionKind::Path(path) => Some(path),
            ExpressionKind::Call(call) => Some(&call.function),
            _ => None,
        };
        found |= path.is_some_and(|path| {
            let text = path.text().to_ascii_lowercase();
            text == name || text.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
        });
    });
    found
}

/// The string that an expression is.
pub(super) fn string(expression: &Expression) -> Option<StringLiteral> {
    match &expression.kind {
        ExpressionKind::String(literal) => Some(*literal),
        _ => None,
    }
}
