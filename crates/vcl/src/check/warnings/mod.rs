//! Warnings: valid programs that probably do not do what is meant, or that cost more than they should.

mod caching;
mod guards;
mod hosts;
mod overwritten;
mod silence;
mod visit;

use crate::check::checker::Checker;
use crate::check::patterns::has_nested_quantifiers;
use crate::check::rules;
use crate::diagnostic::Diagnostic;
use crate::tree::{DeclarationKind, ExpressionKind};

pub(super) use silence::retain_unsilenced;

impl Checker<'_> {
    /// Adds the warnings about the program.
    pub(super) fn warnings(&mut self) {
        self.guards();
        self.caching();
        for at in 0..self.declarations.len() {
            if let DeclarationKind::Sub(sub) = &self.declarations[at].kind {
                self.overwritten(&sub.block);
                self.host_patterns(&sub.block);
                self.nested_quantifiers(&sub.block);
            }
        }
    }

    /// Warns of patterns whose time grows exponentially with their text.
    fn nested_quantifiers(&mut self, block: &crate::tree::Block) {
        let mut found = Vec::new();
        visit::expressions(block, &mut |expression| match &expression.kind {
            ExpressionKind::Comparison(comparison) => found.extend(visit::string(&comparison.right)),
            ExpressionKind::Call(call) => {
                found.extend(call.arguments.list.get(1).and_then(|argument| visit::string(&argument.value)));
            }
            _ => {}
        });
        for literal in found {
            if has_nested_quantifiers(self.parsed.sources.bytes(literal.content)) {
                let message =
                    "a repeated group consists of a repetition, so that its time may grow exponentially";
                self.report(
                    Diagnostic::new(&rules::NESTED_QUANTIFIERS, literal.span, message)
                        .advice("repeat only once, such as `[a-z]+` for `([a-z]+)*`"),
                );
            }
        }
    }
}
