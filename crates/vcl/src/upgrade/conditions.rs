//! The method or status that a condition requires.

use crate::tree::{
    Comparison, ComparisonOperator, Expression, ExpressionKind, LinkOperator, Path, StringLiteral,
};

/// The statuses that errors may have.
#[derive(Clone, Debug, Default)]
pub(super) struct Statuses {
    numbers: Vec<i64>,
    /// Whether there is a status that is not a constant.
    are_unknown: bool,
}

impl Statuses {
    /// One status.
    pub(super) fn only(number: i64) -> Statuses {
        Statuses { numbers: vec![number], are_unknown: false }
    }

    /// Adds a status; `None` for one that is not a constant.
    pub(super) fn add(&mut self, number: Option<i64>) {
        self.numbers.extend(number);
        self.are_unknown |= number.is_none();
    }

    /// Whether the condition can hold, as far as it tests `obj.status` against constants.
    pub(super) fn reach(&self, condition: &Expression) -> bool {
        let Some(ranges) = required_statuses(condition) else { return true };
        let is_in = |number: &i64| ranges.iter().any(|&(from, to)| (from..=to).contains(number));
        self.are_unknown || self.numbers.iter().any(is_in)
    }
}

/// The ranges of statuses outside of which a condition is false; `None` if it may hold for any.
fn required_statuses(condition: &Expression) -> Option<Vec<(i64, i64)>> {
    match &condition.kind {
        ExpressionKind::Parenthesized(inner) => required_statuses(inner),
        ExpressionKind::Chain(chain) => {
            let operands =
                || std::iter::once(&*chain.first).chain(chain.rest.iter().map(|link| &link.operand));
            match chain.rest.first()?.operator {
                LinkOperator::Or => {
                    let each: Option<Vec<_>> = operands().map(required_statuses).collect();
                    each.map(|ranges| ranges.concat())
                }
                // One of several tests that must all hold is enough to exclude a status.
                LinkOperator::And => operands().find_map(required_statuses),
                _ => None,
            }
        }
        ExpressionKind::Comparison(comparison) => {
            let number = match (&comparison.left.kind, &comparison.right.kind) {
                (ExpressionKind::Path(path), ExpressionKind::Integer(number)) if path.is("obj.status") => {
                    *number
                }
                _ => return None,
            };
            Some(match comparison.operator {
                ComparisonOperator::Equal => vec![(number, number)],
                ComparisonOperator::Less => vec![(i64::MIN, number.saturating_sub(1))],
                ComparisonOperator::LessOrEqual => vec![(i64::MIN, number)],
                ComparisonOperator::Greater => vec![(number.saturating_add(1), i64::MAX)],
                ComparisonOperator::GreaterOrEqual => vec![(number, i64::MAX)],
                _ => return None,
            })
        }
        _ => None,
    }
}

/// The method of a condition that tests nothing but `req.request == "METHOD"`.
pub(super) fn pure_method(condition: &Expression) -> Option<&StringLiteral> {
    match &condition.kind {
        ExpressionKind::Parenthesized(inner) => pure_method(inner),
        ExpressionKind::Comparison(comparison) => {
            let Comparison { left, operator: ComparisonOperator::Equal, right, .. } = &**comparison else {
                return None;
            };
            let is_method = |path: &Path| path.is("req.request");
            match (&left.kind, &right.kind) {
                (ExpressionKind::Path(path), ExpressionKind::String(literal))
                | (ExpressionKind::String(literal), ExpressionKind::Path(path))
                    if is_method(path) =>
                {
                    Some(literal)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// The method that a condition requires, which may test more than that.
pub(super) fn required_method(condition: &Expression) -> Option<&StringLiteral> {
    match &condition.kind {
        ExpressionKind::Parenthesized(inner) => required_method(inner),
        ExpressionKind::Chain(chain) if chain.rest.first()?.operator == LinkOperator::And => {
            let operands = std::iter::once(&*chain.first).chain(chain.rest.iter().map(|link| &link.operand));
            operands.into_iter().find_map(required_method)
        }
        _ => pure_method(condition),
    }
}
