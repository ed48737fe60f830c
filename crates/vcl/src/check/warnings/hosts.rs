//! Patterns of host names.

use crate::check::checker::Checker;
use crate::check::rules;
use crate::check::warnings::visit;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::tree::{Block, ComparisonOperator, ExpressionKind};

impl Checker<'_> {
    /// Warns of patterns of host names that match other hosts too.
    pub(super) fn host_patterns(&mut self, block: &Block) {
        let mut found = Vec::new();
        visit::expressions(block, &mut |expression| {
            if let ExpressionKind::Comparison(comparison) = &expression.kind
                && matches!(comparison.operator, ComparisonOperator::Match | ComparisonOperator::NotMatch)
                && let ExpressionKind::Path(path) = &comparison.left.kind
                && matches!(&*path.text().to_ascii_lowercase(), "req.http.host" | "bereq.http.host")
            {
                found.extend(visit::string(&comparison.right));
            }
        });
        for literal in found {
            let pattern = self.text(literal.content);
            let Some(dot) = bare_dot(&pattern) else { continue };
            let start = literal.content.start + dot as u32;
            let span = Span::new(literal.content.file, start, start + 1);
            let message = "`.` matches any character, so that other hosts match too";
            let diagnostic = Diagnostic::new(&rules::HOST_PATTERN, span, message);
            let diagnostic = match pattern.ends_with('$') {
                true => diagnostic,
                false => diagnostic.note("without `$`, the name may go on: `example.org.attacker.example`"),
            };
            self.report(diagnostic.mend("write `\\.`", span, "\\."));
        }
    }
}

/// The first `.` between letters or digits that is neither escaped nor repeated.
fn bare_dot(pattern: &str) -> Option<usize> {
    let bytes = pattern.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric();
    (1..bytes.len().saturating_sub(1))
        .find(|&at| bytes[at] == b'.' && is_word(bytes[at - 1]) && is_word(bytes[at + 1]))
}
