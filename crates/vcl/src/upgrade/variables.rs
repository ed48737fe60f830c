//! Variables that have other names, or none.

use crate::diagnostic::Edit;
use crate::source::Span;
use crate::tree::{ExpressionKind, Path, Statement, StatementKind};
use crate::upgrade::constructs::{self, Construct};
use crate::upgrade::state::State;
use crate::upgrade::visit;
use crate::upgrade::walker::Walker;

/// A variable that cannot be used in a state.
struct Unavailable {
    construct: &'static Construct,
    reason: String,
    choices: &'static [&'static str],
}

impl Walker<'_, '_> {
    /// The replacement of a variable or of its first name; `None` if it stays.
    pub(super) fn variable(&mut self, path: &Path) -> Option<(Span, String, &'static Construct)> {
        let text = path.text();
        let state = self.state;
        let whole = |new: &str, construct| Some((path.span, new.to_owned(), construct));
        let first = |new: &str, construct| Some((path.names[0].span, new.to_owned(), construct));
        let request = if state.is_backend() { "bereq" } else { "req" };
        match &*text {
            "client.port" | "server.port" => {
                let std = self.module("std");
                return whole(&format!("{std}.port({}.ip)", path.names[0].text), &constructs::PORT);
            }
            "req.request" => return whole(&format!("{request}.method"), &constructs::RENAMED),
            "bereq.request" if matches!(state, State::Pass | State::Miss) => {
                return whole("req.method", &constructs::BACKEND_REQUEST);
            }
            "bereq.request" => return whole("bereq.method", &constructs::RENAMED),
            "req.backend.healthy" => {
                self.module("std");
                let backend = if state.is_backend() { "bereq.backend" } else { "req.backend_hint" };
                return whole(&format!("std.healthy({backend})"), &constructs::HEALTHY);
            }
            "req.backend" if state.is_backend() => return whole("bereq.backend", &constructs::RENAMED),
            "req.backend" => return whole("req.backend_hint", &constructs::RENAMED),
            "beresp.response" => return whole("beresp.reason", &constructs::REASON),
            "resp.response" => return whole("resp.reason", &constructs::REASON),
            "obj.response" => {
                let object = match state {
                    State::Fetch | State::BackendError => "beresp",
                    State::Deliver | State::Synth => "resp",
                    _ => "obj",
                };
                return whole(&format!("{object}.reason"), &constructs::REASON);
            }
            "req.restarts" if state.is_backend() => return whole("bereq.retries", &constructs::RESTART),
            "req.esi" if state == State::Deliver => return whole("resp.do_esi", &constructs::ESI),
            _ => {}
        }
        let (object, member) = (&*path.names[0].text, path.names.get(1).map_or("", |name| &*name.text));
        match (object, member) {
            ("req", "http" | "url" | "proto" | "xid") if state.is_backend() => {
                first("bereq", &constructs::CLIENT_REQUEST)
            }
            ("bereq", "http" | "url" | "proto") if matches!(state, State::Pass | State::Miss) => {
                first("req", &constructs::BACKEND_REQUEST)
            }
            ("obj", _) if state.is_backend() => first("beresp", &constructs::OBJECT),
            ("obj", "http" | "status" | "proto") if matches!(state, State::Synth | State::Deliver) => {
                first("resp", &constructs::OBJECT)
            }
            _ => None,
        }
    }

    /// Changes a variable that is read.
    pub(super) fn read(&mut self, path: &Path) {
        if let Some(name) = path.single() {
            if let Some(backend) = self.backend_of(&name.text) {
                self.replace(&constructs::DIRECTOR, path.span, backend);
            }
            return;
        }
        match &*path.text() {
            "req.esi_level" if self.state.is_backend() => self.esi_level(path),
            "beresp.cacheable" | "obj.cacheable" => {
                let object = if self.state.is_backend() { "beresp" } else { "obj" };
                self.replace(&constructs::CACHEABLE, path.span, format!("{object}.ttl > 0s"));
            }
            _ => self.rename(path),
        }
    }

    /// Renames a variable.
    pub(super) fn rename(&mut self, path: &Path) {
        if let Some((span, new, construct)) = self.variable(path) {
            let edits = vec![Edit { span, text: new.clone() }];
            let becomes = new + &self.text(span.after().to(path.span));
            let was = self.text(path.span);
            self.change(construct, path.span, was, becomes, edits);
        }
    }

    fn esi_level(&mut self, path: &Path) {
        self.module("std");
        self.needs.recv.push("set req.http.X-Esi-Level = req.esi_level;".to_owned());
        let text = "std.integer(bereq.http.X-Esi-Level, 0)".to_owned();
        let question = "the ESI level reaches this sub in a field of the request, which the backend sees too";
        let choices = ["keep the field", "test the URL of fragments instead"];
        self.decide(
            &constructs::ESI_LEVEL,
            path.span,
            question,
            &choices,
            vec![Edit { span: path.span, text }],
        );
    }

    /// Whether the statement uses a variable without a successor. Such a statement becomes a comment, and the
    /// condition of one with blocks stays, both as a decision.
    pub(super) fn is_unavailable(&mut self, statement: &Statement) -> bool {
        let mut found = None;
        visit::each_expression(statement, &mut |part| {
            if let (None, ExpressionKind::Path(path)) = (&found, &part.kind) {
                found = self.unavailable(path);
            }
        });
        let found = found.or_else(|| self.unavailable_target(statement));
        let Some(Unavailable { construct, reason, choices }) = found else { return false };
        let is_block = matches!(statement.kind, StatementKind::If { .. });
        let edits = if is_block { Vec::new() } else { self.facts.layout.comment_out(statement.span) };
        self.decide(construct, statement.span, reason, choices, edits);
        !is_block
    }

    /// A variable that cannot be read in this state.
    fn unavailable(&self, path: &Path) -> Option<Unavailable> {
        let text = path.text();
        let state = self.state;
        let is_request = &*path.names[0].text == "req";
        Some(match &*text {
            "obj.lastuse" | "obj.last_use" => Unavailable {
                construct: &constructs::LAST_USE,
                reason: format!("`{text}` has no successor"),
                choices: &["use `obj.age` or `obj.hits`", "remove it"],
            },
            "beresp.backend.ip" | "beresp.backend.port" => Unavailable {
                construct: &constructs::GONE,
                reason: format!("`{text}` has no successor"),
                choices: &["use `beresp.backend.name`", "remove it"],
            },
            "beresp.pipe" | "obj.pipe" | "req.hash" | "obj.prefetch" | "req.keep" => Unavailable {
                construct: &constructs::GONE,
                reason: format!("`{text}` has no successor"),
                choices: &["remove it"],
            },
            "obj.ttl" | "obj.grace" | "obj.keep" | "obj.hits" | "obj.cacheable" if state == State::Synth => {
                Unavailable {
                    construct: &constructs::GONE,
                    reason: format!("a synthetic response has no `{text}`"),
                    choices: &["remove it"],
                }
            }
            "req.esi" if state != State::Deliver => Unavailable {
                construct: &constructs::ESI,
                reason: "ESI is switched off when the response is delivered".to_owned(),
                choices: &["set resp.do_esi = false; in `vcl_deliver`"],
            },
            "bereq.connect_timeout" | "bereq.first_byte_timeout" | "bereq.between_bytes_timeout"
                if matches!(state, State::Pass | State::Miss) =>
            {
                Unavailable {
                    construct: &constructs::BACKEND_REQUEST,
                    reason: format!("`{text}` is set in `vcl_backend_fetch`"),
                    choices: &["set it there, under a condition on `bereq`"],
                }
            }
            "req.restarts" | "req.backend" | "req.backend.healthy" | "req.request" | "req.esi_level" => {
                return None;
            }
            _ if is_request && state.is_backend() && path.names.len() > 1 => match &*path.names[1].text {
                "http" | "url" | "proto" | "xid" => return None,
                _ => Unavailable {
                    construct: &constructs::CLIENT_REQUEST,
                    reason: format!("`{text}` does not exist in `{}`", state.sub()),
                    choices: &["set it in `vcl_recv`", "set a field in `vcl_recv` and read it here"],
                },
            },
            _ => return None,
        })
    }

    /// A variable that cannot be set or unset in this state.
    fn unavailable_target(&self, statement: &Statement) -> Option<Unavailable> {
        let target = match &statement.kind {
            StatementKind::Set(set) => &set.target,
            StatementKind::Unset(unset) => &unset.target,
            _ => return None,
        };
        let text = target.text();
        match &*text {
            "req.hash" | "obj.prefetch" | "beresp.prefetch" => None,
            "req.grace" if self.state == State::Fetch && !self.sets_grace() => None,
            "obj.ttl" if super::facts::is_purge(statement) && self.state == State::Hit => None,
            _ if self.state == State::Hit && &*target.names[0].text == "obj" => Some(Unavailable {
                construct: &constructs::OBJECT,
                reason: "a stored object cannot be changed".to_owned(),
                choices: &["set `resp.*` in `vcl_deliver`", "set `beresp.*` in `vcl_backend_response`"],
            }),
            "req.esi_level" if self.state.is_backend() => None,
            "req.proto" | "bereq.proto" | "beresp.proto" | "resp.proto" | "obj.proto" => Some(Unavailable {
                construct: &constructs::GONE,
                reason: format!("`{text}` cannot be set"),
                choices: &["remove it"],
            }),
            _ => self.unavailable(target),
        }
    }

    /// Whether the old `vcl_fetch` sets the grace of the response.
    fn sets_grace(&self) -> bool {
        self.facts.any_statement(State::Fetch, &|statement| {
            matches!(&statement.kind, StatementKind::Set(set)
                if set.target.is("beresp.grace") || set.target.is("obj.grace"))
        })
    }
}
