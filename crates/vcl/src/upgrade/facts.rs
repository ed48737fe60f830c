//! Facts about a whole old program, gathered before its parts are changed.

use std::collections::{BTreeMap, BTreeSet};

use crate::dialect::OldVersion;
use crate::parser::Parsed;
use crate::rules;
use crate::source::Span;
use crate::tree::{
    Backend, BackendBody, Block, DeclarationKind, Director, Expression, ExpressionKind, LinkOperator,
    OldStatement, Properties, PropertyItem, PropertyValue, Statement, StatementKind, Sub,
};
use crate::upgrade::conditions::{Statuses, pure_method};
use crate::upgrade::layout::Layout;
use crate::upgrade::state::State;
use crate::upgrade::visit;

/// The threshold of saint mode where none is written.
const SAINT_MODE_THRESHOLD: i64 = 10;

/// Facts about a program.
pub(super) struct Facts<'p> {
    pub(super) layout: Layout<'p>,
    pub(super) version: Option<OldVersion>,
    /// The subs in order, with the spans of their declarations.
    pub(super) subs: Vec<(&'p Sub, Span)>,
    /// The states in which each sub runs, by its name; a sub that nothing calls has none.
    pub(super) states: BTreeMap<&'p str, BTreeSet<State>>,
    /// The directors of kinds that have a successor, by name.
    pub(super) directors: BTreeMap<&'p str, (&'p Director, Span)>,
    /// The backends with the threshold of their saint mode, which is 0 for none; empty if it is not used.
    pub(super) saints: BTreeMap<&'p str, i64>,
    /// The first backend or director, which takes requests without another one.
    pub(super) first: Option<&'p str>,
    /// The methods that purge in `vcl_hit` and `vcl_miss`, and are looked up in `vcl_recv`.
    pub(super) purge_methods: BTreeSet<String>,
    /// The statuses that `error` makes on the side of the client.
    pub(super) client_statuses: Statuses,
    /// The statuses of errors on the side of the backend.
    pub(super) backend_statuses: Statuses,
    /// Whether `vcl_recv` depends on the number of restarts.
    pub(super) recv_reads_restarts: bool,
    /// The variables of the request that `vcl_deliver` and `vcl_error` read, in small letters.
    pub(super) read_by_clients: BTreeSet<String>,
    /// The groups of states of the subs of the user that are not one text in all of them, each with the first
    /// group that has the same text.
    pub(super) copied: BTreeMap<&'p str, BTreeMap<State, State>>,
    /// All names of declarations.
    pub(super) names: BTreeSet<&'p str>,
    /// The modules that are imported.
    pub(super) imports: BTreeSet<&'p str>,
}

impl<'p> Facts<'p> {
    /// The facts of a program; `version` counts more than what its text shows.
    pub(super) fn of(parsed: &'p Parsed, version: Option<OldVersion>) -> Facts<'p> {
        let layout = Layout { sources: &parsed.sources, comments: &parsed.comments };
        let subs = visit::subs(&parsed.program.declarations);
        let mut facts = Facts {
            layout,
            version: None,
            states: states(&subs),
            subs,
            directors: BTreeMap::new(),
            saints: BTreeMap::new(),
            first: None,
            purge_methods: BTreeSet::new(),
            client_statuses: Statuses::default(),
            backend_statuses: Statuses::only(503),
            recv_reads_restarts: false,
            read_by_clients: BTreeSet::new(),
            copied: BTreeMap::new(),
            names: BTreeSet::new(),
            imports: BTreeSet::new(),
        };
        facts.version = version.or(parsed.program.old_version).or_else(|| facts.shown_version());
        facts.declarations(parsed);
        facts.errors();
        if parsed.diagnostics.iter().any(|found| found.rule.name == rules::INCLUDE.name) {
            // A file that could not be read may make any error.
            facts.client_statuses.add(None);
            facts.backend_statuses.add(None);
        }
        facts.purges();
        facts.client_reads();
        facts.recv_reads_restarts = facts.any_statement(State::Recv, &depends_on_restarts);
        facts
    }

    fn declarations(&mut self, parsed: &'p Parsed) {
        let uses_saint_mode = self.subs.iter().any(|(sub, _)| {
            let mut found = false;
            visit::each_statement(&sub.block.statements, &mut |statement| {
                found |=
                    matches!(&statement.kind, StatementKind::Set(set) if set.target.is("beresp.saintmode"));
            });
            found
        });
        visit::each_declaration(&parsed.program.declarations, &mut |declaration| {
            let name = match &declaration.kind {
                DeclarationKind::Backend(backend) => {
                    if uses_saint_mode {
                        self.saints.insert(&backend.name.text, threshold(backend));
                    }
                    self.first = self.first.or(Some(&*backend.name.text));
                    &backend.name
                }
                DeclarationKind::Director(director) => {
                    self.first = self.first.or(Some(&*director.name.text));
                    if &*director.kind.text != "dns" {
                        self.directors.insert(&director.name.text, (director, declaration.span));
                    }
                    &director.name
                }
                DeclarationKind::Sub(sub) => &sub.name,
                DeclarationKind::Acl(acl) => &acl.name,
                DeclarationKind::Probe(probe) => &probe.name,
                DeclarationKind::Import(import) => {
                    self.imports.insert(&import.module.text);
                    &import.module
                }
                _ => return,
            };
            self.names.insert(&name.text);
        });
    }

    /// Whether a sub with this name runs in the state.
    pub(super) fn runs_in(&self, sub: &str, state: State) -> bool {
        self.states.get(sub).is_some_and(|states| states.contains(&state))
    }

    /// Whether `test` accepts a statement, at any depth, of a sub that runs in the state.
    pub(super) fn any_statement(&self, state: State, test: &dyn Fn(&'p Statement) -> bool) -> bool {
        let mut found = false;
        for (sub, _) in self.subs.iter().filter(|(sub, _)| self.runs_in(&sub.name.text, state)) {
            visit::each_statement(&sub.block.statements, &mut |statement| found |= test(statement));
        }
        found
    }

    fn errors(&mut self) {
        let Facts { subs, states, client_statuses, backend_statuses, .. } = self;
        for (sub, _) in subs {
            let states = states.get(&*sub.name.text);
            let is_in = |test: &dyn Fn(State) -> bool| {
                states.map_or(test(State::Recv), |states| states.iter().any(|&state| test(state)))
            };
            visit::each_statement(&sub.block.statements, &mut |statement| {
                if let StatementKind::Set(set) = &statement.kind
                    && set.target.is("obj.status")
                {
                    // Statements below may test the new status.
                    let status = match set.value.kind {
                        ExpressionKind::Integer(number) => Some(number),
                        _ => None,
                    };
                    client_statuses.add(status);
                    backend_statuses.add(status);
                }
                let StatementKind::Old(OldStatement::Error { status, .. }) = &statement.kind else { return };
                let status = match status.as_ref().map(|status| &status.kind) {
                    None => Some(503),
                    Some(ExpressionKind::Integer(number)) => Some(*number),
                    Some(_) => None,
                };
                if is_in(&|state| state == State::Fetch) {
                    backend_statuses.add(status);
                }
                if is_in(&|state| !state.is_backend() && state != State::Synth) {
                    client_statuses.add(status);
                }
            });
        }
    }

    fn client_reads(&mut self) {
        let mut read = BTreeSet::new();
        for (sub, _) in &self.subs {
            let name = &*sub.name.text;
            if !self.runs_in(name, State::Deliver) && !self.runs_in(name, State::Synth) {
                continue;
            }
            visit::each_statement(&sub.block.statements, &mut |statement| {
                visit::each_expression(statement, &mut |part| {
                    if let ExpressionKind::Path(path) = &part.kind {
                        read.insert(path.text().to_ascii_lowercase());
                    }
                });
            });
        }
        self.read_by_clients = read;
    }

    fn purges(&mut self) {
        let mut methods = BTreeSet::new();
        for state in [State::Hit, State::Miss] {
            for (sub, _) in self.subs.iter().filter(|(sub, _)| *sub.name.text == *state.sub()) {
                for statement in &sub.block.statements {
                    let StatementKind::If { branches, .. } = &statement.kind else { continue };
                    methods.extend(branches.iter().filter(|branch| purges(&branch.block)).filter_map(
                        |branch| {
                            pure_method(&branch.condition).map(|literal| self.layout.text(literal.content))
                        },
                    ));
                }
            }
        }
        methods.retain(|method| {
            self.any_statement(State::Recv, &|statement| {
                let StatementKind::If { branches, .. } = &statement.kind else { return false };
                branches.iter().any(|branch| {
                    let is_method = super::conditions::required_method(&branch.condition)
                        .is_some_and(|literal| self.layout.text(literal.content) == *method);
                    is_method && looks_up(&branch.block)
                })
            })
        });
        self.purge_methods = methods;
    }

    /// The version that the statements show where the names do not.
    fn shown_version(&self) -> Option<OldVersion> {
        let (mut only_v2, mut only_v3) = (0, 0);
        for (sub, _) in &self.subs {
            let is_fetch = &*sub.name.text == "vcl_fetch";
            visit::each_statement(&sub.block.statements, &mut |statement| {
                match &statement.kind {
                    StatementKind::Old(OldStatement::Action(_)) => only_v2 += 1,
                    StatementKind::Old(OldStatement::Purge) => only_v3 += 1,
                    StatementKind::Function(call) if call.function.is("purge") => only_v2 += 1,
                    StatementKind::Return(found) if is_fetch => {
                        let action = found.action.as_ref().map_or("", |action| &*action.name.text);
                        only_v2 += usize::from(action == "pass");
                    }
                    StatementKind::Set(set) if is_fetch && &*set.target.names[0].text == "obj" => {
                        only_v2 += 1
                    }
                    _ => {}
                }
                visit::each_expression(statement, &mut |part| {
                    let ExpressionKind::Chain(chain) = &part.kind else { return };
                    let has = |operator| chain.rest.iter().any(|link| link.operator == operator);
                    only_v2 += usize::from(has(LinkOperator::SideBySide));
                    only_v3 += usize::from(has(LinkOperator::Add));
                });
            });
        }
        match (only_v2, only_v3) {
            (0, 0) => None,
            (old, new) if old > new => Some(OldVersion::V2),
            _ => Some(OldVersion::V3),
        }
    }

    /// A name that nothing in the program has: `wanted`, or `wanted` with a number.
    pub(super) fn free_name(&self, wanted: &str) -> String {
        let numbered = (2..).map(|number| format!("{wanted}_{number}"));
        let mut candidates = std::iter::once(wanted.to_owned()).chain(numbered);
        candidates.find(|name| !self.names.contains(&**name)).unwrap_or_default()
    }

    /// The object of the module `saintmode` for a backend, if it has one.
    pub(super) fn saint(&self, backend: &str) -> Option<String> {
        let threshold = *self.saints.get(backend)?;
        (threshold > 0).then(|| self.free_name(&format!("{backend}_saint")))
    }
}

/// The states in which each sub runs, by the calls.
fn states<'p>(subs: &[(&'p Sub, Span)]) -> BTreeMap<&'p str, BTreeSet<State>> {
    let mut calls: BTreeMap<&str, BTreeSet<&'p str>> = BTreeMap::new();
    let mut states: BTreeMap<&'p str, BTreeSet<State>> = BTreeMap::new();
    let mut waiting: Vec<(&'p str, State)> = Vec::new();
    for (sub, _) in subs {
        let called = calls.entry(&sub.name.text).or_default();
        visit::each_statement(&sub.block.statements, &mut |statement| {
            if let StatementKind::Call(name) = &statement.kind {
                called.insert(&name.text);
            }
        });
        waiting.extend(State::of_sub(&sub.name.text).iter().map(|&state| (&*sub.name.text, state)));
    }
    while let Some((name, state)) = waiting.pop() {
        if states.entry(name).or_default().insert(state) {
            waiting.extend(calls.get(name).into_iter().flatten().map(|&called| (called, state)));
        }
    }
    states
}

/// The threshold of a backend's saint mode.
fn threshold(backend: &Backend) -> i64 {
    let BackendBody::Properties(Properties { items, .. }) = &backend.body else { return 0 };
    let found = items.iter().find_map(|item| match item {
        PropertyItem::Property(property) if &*property.name.text == "saintmode_threshold" => {
            Some(&property.value)
        }
        _ => None,
    });
    match found {
        Some(PropertyValue::Constant(Expression { kind: ExpressionKind::Integer(number), .. })) => *number,
        _ => SAINT_MODE_THRESHOLD,
    }
}

/// Whether a condition on the number of restarts decides about more than the addresses of clients.
fn depends_on_restarts(statement: &Statement) -> bool {
    let StatementKind::If { branches, .. } = &statement.kind else { return false };
    let is_about_restarts =
        |condition: &Expression| visit::has_path(condition, &|path| path.is("req.restarts"));
    let is_about_addresses = |statement: &Statement| {
        let target = match &statement.kind {
            StatementKind::Set(set) => &set.target,
            StatementKind::Unset(unset) => &unset.target,
            kind => return matches!(kind, StatementKind::If { .. }),
        };
        target.text().eq_ignore_ascii_case("req.http.X-Forwarded-For")
    };
    let mut depends = false;
    if branches.iter().any(|branch| is_about_restarts(&branch.condition)) {
        visit::each_statement(std::slice::from_ref(statement), &mut |inner| {
            depends |= !is_about_addresses(inner);
        });
    }
    depends
}

/// Whether a statement purges the object of a hit: `purge;` or `set obj.ttl = 0s;`.
pub(super) fn is_purge(statement: &Statement) -> bool {
    match &statement.kind {
        StatementKind::Old(OldStatement::Purge) => true,
        StatementKind::Set(set) => set.target.is("obj.ttl") && is_zero(&set.value),
        _ => false,
    }
}

/// Whether an expression is the constant 0, with or without a unit.
pub(super) fn is_zero(value: &Expression) -> bool {
    match value.kind {
        ExpressionKind::Integer(number) => number == 0,
        ExpressionKind::Real(number) => number == 0.0,
        ExpressionKind::Duration { seconds, .. } => seconds == 0.0,
        _ => false,
    }
}

fn purges(block: &Block) -> bool {
    let mut found = false;
    visit::each_statement(&block.statements, &mut |statement| found |= is_purge(statement));
    found
}

fn looks_up(block: &Block) -> bool {
    let mut found = false;
    visit::each_statement(&block.statements, &mut |statement| {
        let name = match &statement.kind {
            StatementKind::Return(found) => found.action.as_ref().map(|action| &action.name),
            StatementKind::Old(OldStatement::Action(name)) => Some(name),
            _ => None,
        };
        found |= name.is_some_and(|name| &*name.text == "lookup");
    });
    found
}
