//! Visits of the parts of a program, in the order of its text and through included files.

use crate::source::Span;
use crate::tree::{
    Arguments, Block, Declaration, DeclarationKind, Expression, ExpressionKind, OldStatement, Path,
    Statement, StatementKind, Sub,
};

/// Each declaration, with those of included files in the places of their statements.
pub(super) fn each_declaration<'p>(list: &'p [Declaration], visit: &mut dyn FnMut(&'p Declaration)) {
    for declaration in list {
        visit(declaration);
        if let DeclarationKind::Include(include) = &declaration.kind {
            include.parts.iter().for_each(|part| each_declaration(&part.items, visit));
        }
    }
}

/// The subs with the spans of their declarations.
pub(super) fn subs(list: &[Declaration]) -> Vec<(&Sub, Span)> {
    let mut subs = Vec::new();
    each_declaration(list, &mut |declaration| {
        if let DeclarationKind::Sub(sub) = &declaration.kind {
            subs.push((sub, declaration.span));
        }
    });
    subs
}

/// Each statement, the outer ones first.
pub(super) fn each_statement<'p>(list: &'p [Statement], visit: &mut dyn FnMut(&'p Statement)) {
    for statement in list {
        visit(statement);
        match &statement.kind {
            StatementKind::If { branches, otherwise } => {
                branches.iter().for_each(|branch| each_statement(&branch.block.statements, visit));
                if let Some(last) = otherwise {
                    each_statement(&last.block.statements, visit);
                }
            }
            StatementKind::Block(Block { statements, .. }) => each_statement(statements, visit),
            StatementKind::Include(include) => {
                include.parts.iter().for_each(|part| each_statement(&part.items, visit));
            }
            _ => {}
        }
    }
}

/// Each expression of a statement, but not of the statements within it.
pub(super) fn each_expression<'p>(statement: &'p Statement, visit: &mut dyn FnMut(&'p Expression)) {
    match &statement.kind {
        StatementKind::Set(set) => within(&set.value, visit),
        StatementKind::If { branches, .. } => {
            branches.iter().for_each(|branch| within(&branch.condition, visit));
        }
        StatementKind::Return(found) => {
            if let Some(list) = found.action.as_ref().and_then(|action| action.arguments.as_ref()) {
                arguments(list, visit);
            }
        }
        StatementKind::New(new) => arguments(&new.arguments, visit),
        StatementKind::Function(call) => arguments(&call.arguments, visit),
        StatementKind::Old(OldStatement::Error { status, reason }) => {
            status.iter().chain(reason).for_each(|value| within(value, visit));
        }
        StatementKind::Old(
            OldStatement::Synthetic(value) | OldStatement::Log(value) | OldStatement::Panic(value),
        ) => within(value, visit),
        _ => {}
    }
}

/// An expression and those within it.
pub(super) fn within<'p>(expression: &'p Expression, visit: &mut dyn FnMut(&'p Expression)) {
    visit(expression);
    match &expression.kind {
        ExpressionKind::Call(call) => arguments(&call.arguments, visit),
        ExpressionKind::Member(member) => {
            within(&member.of, visit);
            if let Some(list) = &member.arguments {
                arguments(list, visit);
            }
        }
        ExpressionKind::Parenthesized(inner)
        | ExpressionKind::Not(inner)
        | ExpressionKind::Negative(inner) => within(inner, visit),
        ExpressionKind::Chain(chain) => {
            within(&chain.first, visit);
            chain.rest.iter().for_each(|link| within(&link.operand, visit));
        }
        ExpressionKind::Comparison(comparison) => {
            within(&comparison.left, visit);
            within(&comparison.right, visit);
        }
        _ => {}
    }
}

fn arguments<'p>(list: &'p Arguments, visit: &mut dyn FnMut(&'p Expression)) {
    list.list.iter().for_each(|argument| within(&argument.value, visit));
}

/// Whether an expression has a path that `test` accepts.
pub(super) fn has_path(expression: &Expression, test: &dyn Fn(&Path) -> bool) -> bool {
    let mut found = false;
    within(expression, &mut |part| {
        if let ExpressionKind::Path(path) = &part.kind {
            found |= test(path);
        }
    });
    found
}

/// Whether a statement, or one within it, reads a path that `test` accepts.
pub(super) fn reads(statements: &[Statement], test: &dyn Fn(&Path) -> bool) -> bool {
    let mut found = false;
    each_statement(statements, &mut |statement| {
        each_expression(statement, &mut |part| {
            if let ExpressionKind::Path(path) = &part.kind {
                found |= test(path);
            }
        });
    });
    found
}
