//! Facts about an old program that a person should know, although nothing has to change.

use crate::parser::Parsed;
use crate::rules;
use crate::tree::{OldStatement, Statement, StatementKind};
use crate::upgrade::conditions::required_method;
use crate::upgrade::facts::Facts;
use crate::upgrade::state::State;
use crate::upgrade::visit;

/// The warnings, each a sentence without a full stop.
pub(super) fn warnings(parsed: &Parsed, facts: &Facts<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    if looks_up_cookies(facts) {
        warnings.push("requests with cookies are looked up".to_owned());
    }
    warnings.extend(early_returns(facts));
    for (director, _) in facts.directors.values() {
        if director.properties.iter().any(|property| &*property.name.text == "retries") {
            let name = &director.name.text;
            warnings.push(format!("the director `{name}` has no `.retries`: it tries each healthy backend"));
        }
    }
    let unread = parsed.diagnostics.iter().filter(|found| found.rule.name == rules::INCLUDE.name);
    warnings.extend(unread.map(|found| format!("{}, so that it is not upgraded", found.message)));
    warnings
}

/// Whether `vcl_recv` looks up requests, and nothing there is about cookies.
fn looks_up_cookies(facts: &Facts<'_>) -> bool {
    let looks_up = facts.any_statement(State::Recv, &|statement| match &statement.kind {
        StatementKind::Return(found) => {
            found.action.as_ref().is_some_and(|action| &*action.name.text == "lookup")
        }
        StatementKind::Old(OldStatement::Action(name)) => &*name.text == "lookup",
        _ => false,
    });
    let is_cookie = |name: &str| name.eq_ignore_ascii_case("req.http.Cookie");
    let handles_cookies = facts.any_statement(State::Recv, &|statement| {
        let is_target = match &statement.kind {
            StatementKind::Set(set) => is_cookie(&set.target.text()),
            StatementKind::Unset(unset) => is_cookie(&unset.target.text()),
            _ => false,
        };
        is_target || visit::reads(std::slice::from_ref(statement), &|path| is_cookie(&path.text()))
    });
    looks_up && !handles_cookies
}

/// The requests that `vcl_recv` passes before it sets a backend.
fn early_returns(facts: &Facts<'_>) -> Option<String> {
    let (recv, _) = facts.subs.iter().find(|(sub, _)| &*sub.name.text == "vcl_recv")?;
    let sets = |statement: &Statement| match &statement.kind {
        StatementKind::Set(set) => set.target.is("req.backend"),
        _ => false,
    };
    let set = recv.block.statements.iter().position(sets)?;
    let passes = |statement: &&Statement| {
        let mut found = false;
        visit::each_statement(std::slice::from_ref(*statement), &mut |inner| {
            found |= match &inner.kind {
                StatementKind::Return(end) => {
                    end.action.as_ref().is_some_and(|action| matches!(&*action.name.text, "pass" | "pipe"))
                }
                StatementKind::Old(OldStatement::Action(name)) => matches!(&*name.text, "pass" | "pipe"),
                _ => false,
            };
        });
        found
    };
    let early = recv.block.statements[..set].iter().find(passes)?;
    let first = facts.first?;
    let is_about_methods = match &early.kind {
        StatementKind::If { branches, .. } => branches.iter().any(|branch| {
            required_method(&branch.condition).is_none()
                && visit::has_path(&branch.condition, &|path| path.is("req.request"))
        }),
        _ => false,
    };
    let requests = if is_about_methods { "writes" } else { "requests that are passed before" };
    Some(format!("{requests} go to `{first}` because it is the first backend"))
}
