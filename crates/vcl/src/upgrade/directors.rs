//! Directors, backends, and the objects that take their place.

use std::collections::BTreeSet;

use crate::diagnostic::Edit;
use crate::edits::OverlappingEdits;
use crate::source::Span;
use crate::tree::{
    Director, DirectorMember, ExpressionKind, OldStatement, PropertyItem, PropertyValue, StatementKind,
};
use crate::upgrade::change::rewritten;
use crate::upgrade::constructs;
use crate::upgrade::facts::Facts;
use crate::upgrade::state::State;
use crate::upgrade::walker::{Walker, first_line};

/// The text that takes the place of a director.
pub(super) struct DirectorText {
    /// The comments of the director, then the backends that it described, each in lines.
    pub(super) backends: String,
    /// The statements of `vcl_init`.
    pub(super) statements: Vec<String>,
    /// The members that are directors which choose by the request, so that `vcl_init` cannot add them.
    pub(super) choosing_members: Vec<Box<str>>,
}

impl Walker<'_, '_> {
    /// The expression for a director or for a backend with saint mode; `None` for others.
    pub(super) fn backend_of(&self, name: &str) -> Option<String> {
        let Some((director, _)) = self.facts.directors.get(name) else {
            return self.facts.saint(name).map(|object| format!("{object}.backend()"));
        };
        Some(match &*director.kind.text {
            "client" => format!("{name}.backend(client.identity)"),
            "hash" => format!("{name}.backend({})", self.facts.key(self.state)),
            _ => format!("{name}.backend()"),
        })
    }

    /// The properties of a backend, probe or director.
    pub(super) fn properties(&mut self, of: &[PropertyItem]) {
        for item in of {
            match item {
                PropertyItem::Property(property) if &*property.name.text == "saintmode_threshold" => {
                    let was = self.text(property.span).trim_end_matches(';').to_owned();
                    let edit = self.facts.layout.remove(property.span);
                    let becomes = "the second argument of `saintmode.saintmode`";
                    self.change(
                        &constructs::SAINT_MODE,
                        property.span,
                        first_line(&was),
                        becomes,
                        vec![edit],
                    );
                }
                PropertyItem::Property(property) => match &property.value {
                    PropertyValue::Constant(value) => {
                        let is_time =
                            property.name.text.ends_with("timeout") || &*property.name.text == "interval";
                        match &value.kind {
                            ExpressionKind::Integer(_) | ExpressionKind::Real(_) if is_time => {
                                let (was, becomes) = (self.text(value.span), self.text(value.span) + "s");
                                let edit = Edit { span: value.span.after(), text: "s".to_owned() };
                                self.change(&constructs::DURATION, value.span, was, becomes, vec![edit]);
                            }
                            ExpressionKind::Path(_) => {}
                            _ => self.expression(value),
                        }
                    }
                    PropertyValue::Strings(strings) => strings.iter().for_each(|text| self.string(text)),
                    PropertyValue::Block(block) => self.properties(&block.items),
                    PropertyValue::Invalid => {}
                },
                PropertyItem::Include(include) => {
                    include.parts.iter().for_each(|part| self.properties(&part.items));
                }
                PropertyItem::Address(_) => {}
            }
        }
    }
}

impl Facts<'_> {
    /// The name by which the module `purge` is imported.
    pub(super) fn purge_module(&self) -> &'static str {
        if self.names.contains("purge") { "purge_module" } else { "purge" }
    }

    /// The constructor of a kind of directors.
    pub(super) fn constructor(kind: &str) -> Option<&'static str> {
        Some(match kind {
            "round-robin" => "round_robin",
            "random" => "random",
            "fallback" => "fallback",
            "hash" | "client" => "hash",
            _ => return None,
        })
    }

    /// The text by which a director of the kind `hash` chooses: what `vcl_hash` adds without a condition.
    fn key(&self, state: State) -> String {
        let mut parts = Vec::new();
        let mut is_complete = false;
        for (sub, _) in self.subs.iter().filter(|(sub, _)| &*sub.name.text == "vcl_hash") {
            for statement in &sub.block.statements {
                match &statement.kind {
                    StatementKind::Set(set) if set.target.is("req.hash") => {
                        parts.push(self.layout.text(set.value.span));
                    }
                    StatementKind::Function(call) if call.function.is("hash_data") => {
                        let list = call.arguments.list.iter();
                        parts.extend(list.map(|argument| self.layout.text(argument.value.span)));
                    }
                    StatementKind::Return(_) | StatementKind::Old(OldStatement::Action(_)) => {
                        is_complete = true
                    }
                    _ => {}
                }
            }
        }
        let is_plain = |part: &String| part.starts_with("req.url") || part.starts_with("req.http.");
        parts.retain(is_plain);
        if !is_complete || parts.is_empty() {
            parts.extend(["req.url".to_owned(), "req.http.host".to_owned()]);
        }
        let mut seen = BTreeSet::new();
        parts.retain(|part| seen.insert(part.to_ascii_lowercase()));
        let key = parts.join(" + ");
        if state.is_backend() { key.replace("req.", "bereq.") } else { key }
    }

    /// The statement that makes the saint-mode object of a backend, if it has one.
    pub(super) fn saint_statement(&self, backend: &str) -> Option<String> {
        let object = self.saint(backend)?;
        let threshold = self.saints.get(backend)?;
        Some(format!("new {object} = saintmode.saintmode({backend}, {threshold});"))
    }

    /// The backends and statements for a director of a kind that has a constructor.
    pub(super) fn director_text(
        &self,
        director: &Director,
        span: Span,
        stray: &[Edit],
    ) -> Result<DirectorText, OverlappingEdits> {
        let name = &*director.name.text;
        let kind = &*director.kind.text;
        let constructor = Facts::constructor(kind).unwrap_or_default();
        let has_weights = matches!(kind, "random" | "hash" | "client");
        let mut statements = vec![format!("new {name} = directors.{constructor}();")];
        let mut backends = Vec::new();
        let mut copied = Vec::new();
        let mut choosing_members: Vec<Box<str>> = Vec::new();
        for (at, member) in director.members.iter().enumerate() {
            let value = member_property(member, "backend");
            let backend = match value {
                Some(PropertyValue::Constant(value)) => {
                    let backend = self.layout.text(value.span);
                    let member = self.directors.get(&*backend).map(|(director, _)| &*director.kind.text);
                    if matches!(member, Some("hash" | "client")) {
                        choosing_members.push(backend.into());
                        continue;
                    }
                    let walker = Walker::new(self, State::Init, span);
                    walker.backend_of(&backend).unwrap_or(backend)
                }
                Some(PropertyValue::Block(properties)) => {
                    let backend = self.free_name(&format!("{name}{}", at + 1));
                    let mut walker = Walker::new(self, State::Init, span);
                    walker.properties(&properties.items);
                    let edits = walker.changes.into_iter().flat_map(|change| change.edits);
                    let text = rewritten(self.layout, properties.span, edits.chain(stray.iter().cloned()))?;
                    let text =
                        dedented(&text, &self.layout.indent(properties.span), &self.layout.indent(span));
                    copied.push(properties.span);
                    backends.push(format!("backend {backend} {text}"));
                    backend
                }
                _ => continue,
            };
            let weight = match member_property(member, "weight") {
                Some(PropertyValue::Constant(weight)) => self.layout.text(weight.span),
                _ => "1".to_owned(),
            };
            statements.push(match has_weights {
                true => format!("{name}.add_backend({backend}, {weight});"),
                false => format!("{name}.add_backend({backend});"),
            });
        }
        let is_copied =
            |comment: &Span| copied.iter().any(|copy| copy.start <= comment.start && comment.end <= copy.end);
        let comments = self.layout.comments_within(span).filter(|comment| !is_copied(comment));
        let comments = comments.map(|comment| self.layout.text(comment).trim_end().to_owned());
        let lines: Vec<String> = comments.chain(backends).collect();
        Ok(DirectorText { backends: lines.join("\n"), statements, choosing_members })
    }
}

fn member_property<'p>(member: &'p DirectorMember, name: &str) -> Option<&'p PropertyValue> {
    member.properties.items.iter().find_map(|item| match item {
        PropertyItem::Property(property) if &*property.name.text == name => Some(&property.value),
        _ => None,
    })
}

/// A text whose lines after the first begin with `to` where they began with `from`.
pub(super) fn dedented(text: &str, from: &str, to: &str) -> String {
    let mut lines = text.split('\n');
    let mut out = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        out.push('\n');
        match line.strip_prefix(from) {
            Some(rest) => out.extend([to, rest]),
            None => out.push_str(line),
        }
    }
    out
}
