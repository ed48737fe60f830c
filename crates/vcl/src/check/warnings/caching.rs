//! Warnings about storing: under which key, and for whom.

use crate::check::checker::Checker;
use crate::check::rules;
use crate::check::warnings::visit;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::tree::{
    AssignmentOperator, Block, DeclarationKind, Expression, ExpressionKind, Statement, StatementKind,
};

/// The variables that tell one host from another.
const HOSTS: [&str; 4] = ["req.http.host", "server.ip", "bereq.http.host", "req.http.x-forwarded-host"];

/// Whether an expression is a duration of no length, or less.
fn is_zero(value: &Expression) -> bool {
    match &value.kind {
        ExpressionKind::Duration { seconds, .. } => *seconds <= 0.0,
        ExpressionKind::Negative(_) => true,
        _ => false,
    }
}

/// The action that a statement returns, with its place.
fn action(statement: &Statement) -> Option<(&str, Span)> {
    match &statement.kind {
        StatementKind::Return(end) => {
            end.action.as_ref().map(|action| (&*action.name.text, action.name.span))
        }
        _ => None,
    }
}

/// A statement that sets a variable, with its value.
fn set<'s>(statement: &'s Statement, name: &str) -> Option<(&'s Expression, Span)> {
    match &statement.kind {
        StatementKind::Set(assignment)
            if assignment.operator == AssignmentOperator::Assign
                && assignment.target.text().eq_ignore_ascii_case(name) =>
        {
            Some((&assignment.value, assignment.target.span.to(assignment.value.span)))
        }
        _ => None,
    }
}

impl<'p> Checker<'p> {
    /// The blocks of all subs with a name.
    fn blocks(&self, name: &str) -> Vec<&'p Block> {
        let subs = self.declarations.iter().filter_map(|declaration| match &declaration.kind {
            DeclarationKind::Sub(sub) if &*sub.name.text == name => Some(&sub.block),
            _ => None,
        });
        subs.collect()
    }

    pub(super) fn caching(&mut self) {
        for block in self.blocks("vcl_backend_response") {
            self.zero_ttl(block);
            self.stored_cookie(block);
            self.vary(block);
        }
        for block in self.blocks("vcl_hash") {
            self.key_without_host(block);
        }
        for block in self.blocks("vcl_recv") {
            self.cookies_of_lookups(block);
        }
    }

    /// Warns of a lifetime of zero that is delivered without the mark that the key is not cacheable: all
    /// requests for it wait for each other.
    fn zero_ttl(&mut self, block: &Block) {
        let mut pending: Vec<Span> = Vec::new();
        let mut found = Vec::new();
        visit::statements(block, &mut |statement| {
            if let Some((value, span)) = set(statement, "beresp.ttl") {
                pending.clear();
                if is_zero(value) {
                    pending.push(span);
                }
            }
            if set(statement, "beresp.uncacheable").is_some() {
                pending.clear();
            }
            match action(statement) {
                Some(("deliver", _)) => found.append(&mut pending),
                Some(("pass", _)) => pending.clear(),
                _ => {}
            }
        });
        // The mark may also stand before.
        let mut marks = false;
        visit::statements(block, &mut |statement| marks |= set(statement, "beresp.uncacheable").is_some());
        for span in found.into_iter().filter(|_| !marks) {
            let message =
                "requests for this key wait for each other, because it is not marked as not cacheable";
            self.report(
                Diagnostic::new(&rules::ZERO_TTL, span, message)
                    .note("the built-in VCL, which would mark it, is not reached after `return (deliver)`")
                    .advice(
                        "write `set beresp.uncacheable = true;` and a lifetime for the mark, such as 120s",
                    ),
            );
        }
    }

    /// Warns of a lifetime for responses that may set cookies, which all clients would get.
    fn stored_cookie(&mut self, block: &Block) {
        let (mut ttl, mut delivered, mut is_handled) = (None, false, false);
        visit::statements(block, &mut |statement| {
            if let Some((value, span)) = set(statement, "beresp.ttl")
                && !is_zero(value)
                && ttl.is_none()
            {
                ttl = Some(span);
            }
            delivered |= ttl.is_some() && matches!(action(statement), Some(("deliver", _)));
            is_handled |= match &statement.kind {
                StatementKind::Unset(unset) => {
                    unset.target.text().eq_ignore_ascii_case("beresp.http.set-cookie")
                }
                StatementKind::Call(_) => true,
                StatementKind::Set(assignment) => assignment.target.is("beresp.uncacheable"),
                _ => false,
            };
            visit::own_expressions(statement, &mut |expression| {
                is_handled |= visit::mentions(expression, "beresp.http.set-cookie")
                    || visit::mentions(expression, "beresp.http.cache-control");
            });
        });
        if let (Some(span), true, false) = (ttl, delivered, is_handled) {
            let message = "a response with `Set-Cookie` is stored too, and its cookie goes to all clients";
            self.report(
                Diagnostic::new(&rules::STORED_COOKIE, span, message)
                    .note(
                        "the built-in VCL, which would not store it, is not reached after `return (deliver)`",
                    )
                    .advice("test `beresp.http.Set-Cookie` first, or write `unset beresp.http.Set-Cookie;`"),
            );
        }
    }

    /// Warns of variants by fields that differ for nearly every client.
    fn vary(&mut self, block: &Block) {
        let mut found = Vec::new();
        visit::statements(block, &mut |statement| {
            found.extend(set(statement, "beresp.http.vary").map(|(value, _)| (value, value.span)));
        });
        for (value, span) in found {
            let text = self.template(value).to_ascii_lowercase();
            let field =
                text.split(',').map(str::trim).find(|name| matches!(*name, "user-agent" | "cookie" | "*"));
            if let Some(field) = field {
                let message = format!("nearly every client has its own `{field}`, so that nothing is shared");
                self.report(
                    Diagnostic::new(&rules::WIDE_VARY, span, message)
                        .advice("in `vcl_recv`, reduce it to a field with a few values, and vary by that"),
                );
            }
        }
    }

    /// Warns of a key that is the same for all hosts.
    fn key_without_host(&mut self, block: &Block) {
        let (mut has_host, mut end, mut keyed) = (false, None, Vec::new());
        visit::statements(block, &mut |statement| {
            has_host |= matches!(statement.kind, StatementKind::Call(_));
            if let Some(("lookup", span)) = action(statement) {
                end = Some(span);
            }
            visit::own_expressions(statement, &mut |expression| {
                has_host |= HOSTS.iter().any(|name| visit::mentions(expression, name));
                if let ExpressionKind::Path(path) = &expression.kind {
                    keyed.push(path.text());
                }
            });
        });
        if let (Some(span), false) = (end, has_host || keyed.iter().any(|name| self.is_made_of_host(name))) {
            let message = "the key has no host, so that all hosts share their objects";
            self.report(
                Diagnostic::new(&rules::KEY_WITHOUT_HOST, span, message)
                    .note("the built-in VCL, which would add it, is not reached after `return (lookup)`")
                    .advice("write `hash_data(req.http.Host);`"),
            );
        }
    }

    /// Whether a field is set to a value made of the host, or after a test of it.
    fn is_made_of_host(&self, field: &str) -> bool {
        let mut is_made = false;
        for declaration in &self.declarations {
            if let DeclarationKind::Sub(sub) = &declaration.kind {
                visit::statements(&sub.block, &mut |statement| {
                    let has_host = |value: &Expression| HOSTS.iter().any(|name| visit::mentions(value, name));
                    is_made |= set(statement, field).is_some_and(|(value, _)| has_host(value));
                    let StatementKind::If { branches, .. } = &statement.kind else { return };
                    for branch in branches.iter().filter(|branch| has_host(&branch.condition)) {
                        visit::statements(&branch.block, &mut |inner| is_made |= set(inner, field).is_some());
                    }
                });
            }
        }
        is_made
    }

    /// Warns of lookups for requests with cookies: the response to one client is stored for all.
    fn cookies_of_lookups(&mut self, block: &Block) {
        let (mut is_handled, mut found) = (false, None);
        visit::statements(block, &mut |statement| {
            is_handled |= match &statement.kind {
                StatementKind::Unset(unset) => unset.target.text().eq_ignore_ascii_case("req.http.cookie"),
                StatementKind::Set(assignment) => {
                    assignment.target.text().eq_ignore_ascii_case("req.http.cookie")
                }
                StatementKind::Call(_) => true,
                _ => false,
            };
            visit::own_expressions(statement, &mut |expression| {
                is_handled |= visit::mentions(expression, "req.http.cookie");
            });
            if let (Some(("hash", span)), false) = (action(statement), is_handled) {
                found = found.or(Some(span));
            }
        });
        let is_keyed = self.blocks("vcl_hash").into_iter().any(|block| {
            let mut is_keyed = false;
            visit::expressions(block, &mut |e| is_keyed |= visit::mentions(e, "req.http.cookie"));
            is_keyed
        });
        if let (Some(span), false) = (found, is_keyed) {
            let message = "requests with cookies are looked up, so that the page of one client may go to all";
            self.report(
                Diagnostic::new(&rules::CACHED_COOKIES, span, message)
                    .note("the built-in VCL, which would pass them, is not reached after `return (hash)`")
                    .advice(
                        "write `unset req.http.Cookie;` first, or `return (pass)` for requests with cookies",
                    ),
            );
        }
    }
}
