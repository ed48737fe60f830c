//! Assignments and removals.

use crate::diagnostic::Edit;
use crate::source::Span;
use crate::tree::{Assignment, ExpressionKind, Path, Unset};
use crate::upgrade::constructs;
use crate::upgrade::facts::is_zero;
use crate::upgrade::state::State;
use crate::upgrade::visit;
use crate::upgrade::walker::Walker;

/// The storage that every process has.
const ANY_PROCESS: &str = "Transient";

impl Walker<'_, '_> {
    /// `set TARGET = VALUE;`
    pub(super) fn set(&mut self, span: Span, set: &Assignment) {
        let target = set.target.text();
        match &*target {
            "req.backend" => self.set_backend(span, set),
            "req.hash" => {
                let opening = span.before().to(set.value.span.before());
                let edits = vec![
                    Edit { span: opening, text: "hash_data(".to_owned() },
                    Edit { span: set.value.span.after(), text: ")".to_owned() },
                ];
                let operator = self.text(set.operator_span);
                let was = format!("set req.hash {operator} TEXT");
                self.change(&constructs::HASH, span, was, "hash_data(TEXT)", edits);
                self.expression(&set.value);
            }
            "beresp.cacheable" | "obj.cacheable" => self.set_cacheable(span, set),
            "beresp.saintmode" => {
                self.module("saintmode");
                let opening = span.before().to(set.value.span.before());
                let edits = vec![
                    Edit { span: opening, text: "saintmode.blacklist(".to_owned() },
                    Edit { span: set.value.span.after(), text: ")".to_owned() },
                ];
                let question = "the module `saintmode` has to be installed; it keeps a list for each backend";
                let choices = [
                    "install it; later versions call the function `saintmode.denylist`",
                    "remove it, and let probes and retries do its work",
                ];
                self.decide(&constructs::SAINT_MODE, span, question, &choices, edits);
                self.expression(&set.value);
            }
            "beresp.storage" => self.set_storage(span, set),
            "obj.prefetch" | "beresp.prefetch" => {
                let was = format!("set {target}");
                let layout = self.facts.layout;
                let note = "# Objects are not fetched before they expire: grace refreshes them.";
                let edits = match layout.begins_line(span) && layout.ends_line(span) {
                    true => vec![Edit { span, text: note.to_owned() }],
                    false => layout.comment_out(span),
                };
                self.change(&constructs::PREFETCH, span, was, "nothing; grace refreshes objects", edits);
            }
            "obj.ttl" if self.state == State::Hit && is_zero(&set.value) => self.purge_now(span),
            "req.grace" if self.state == State::Fetch => {
                self.replace(&constructs::CLIENT_REQUEST, set.target.span, "beresp.grace");
                self.expression(&set.value);
            }
            _ => {
                self.rename(&set.target);
                self.expression(&set.value);
                self.check_forwarded_for(set);
                self.check_request_in_fetch(&set.target);
            }
        }
    }

    /// `unset TARGET;`
    pub(super) fn unset(&mut self, span: Span, unset: &Unset) {
        if unset.is_remove {
            let target = self.text(unset.target.span);
            let edits = vec![Edit { span: unset.keyword, text: "unset".to_owned() }];
            let (was, becomes) = (format!("remove {target}"), format!("unset {target}"));
            self.change(&constructs::UNSET, span, was, becomes, edits);
        }
        self.rename(&unset.target);
    }

    fn set_backend(&mut self, span: Span, set: &Assignment) {
        let hint = if self.state.is_backend() { "bereq.backend" } else { "req.backend_hint" };
        let mut edits = vec![Edit { span: set.target.span, text: hint.to_owned() }];
        let value = self.text(set.value.span);
        let mut becomes = value.clone();
        if let ExpressionKind::Path(path) = &set.value.kind {
            let name = path.single().map_or("", |name| &*name.text);
            if let Some(backend) = self.backend_of(name) {
                edits.push(Edit { span: set.value.span, text: backend.clone() });
                becomes = backend;
            }
        } else {
            self.expression(&set.value);
        }
        let was = format!("set req.backend = {value}");
        self.change(&constructs::RENAMED, span, was, format!("set {hint} = {becomes}"), edits);
    }

    fn set_cacheable(&mut self, span: Span, set: &Assignment) {
        match set.value.kind {
            ExpressionKind::Boolean(false) => {
                self.whole(&constructs::CACHEABLE, span, "set beresp.uncacheable = true");
            }
            _ => {
                let edits = self.facts.layout.comment_out(span);
                let question = "a response is stored if its `beresp.ttl` is above 0s";
                let choices = ["set beresp.ttl = 120s;", "remove it, if `beresp.ttl` is set elsewhere"];
                self.decide(&constructs::CACHEABLE, span, question, &choices, edits);
            }
        }
    }

    fn set_storage(&mut self, span: Span, set: &Assignment) {
        let ExpressionKind::String(literal) = &set.value.kind else {
            let edits = self.facts.layout.comment_out(span);
            let question = "a storage is a symbol, which cannot be computed";
            let choices = ["set beresp.storage = storage.NAME; under a condition for each"];
            return self.decide(&constructs::STORAGE, span, question, &choices, edits);
        };
        let name = self.text(literal.content);
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(|each| each.is_ascii_alphanumeric() || each == '_');
        if !is_name {
            let edits = self.facts.layout.comment_out(span);
            let question = "a storage is a symbol, and this text is no name";
            return self.decide(
                &constructs::STORAGE,
                span,
                question,
                &["set beresp.storage = storage.NAME;"],
                edits,
            );
        }
        let symbol = format!("storage.{name}");
        if name == ANY_PROCESS {
            return self.replace(&constructs::STORAGE, set.value.span, symbol);
        }
        let edits = vec![Edit { span: set.value.span, text: symbol }];
        let question = format!("the command line has to name the storage `{name}`");
        let choices = ["keep it, if the command line has `-s NAME=…`", "remove it"];
        self.decide(&constructs::STORAGE, span, question, &choices, edits);
    }

    /// The address of the client is added before `vcl_recv` now; a program that adds it does so again.
    fn check_forwarded_for(&mut self, set: &Assignment) {
        let is_field = |path: &Path| path.text().eq_ignore_ascii_case("req.http.X-Forwarded-For");
        let appends = self.state == State::Recv
            && is_field(&set.target)
            && visit::has_path(&set.value, &is_field)
            && visit::has_path(&set.value, &|path| path.is("client.ip"));
        if appends {
            let question = "X-Forwarded-For has the client's address already, so this adds it twice";
            let choices = ["remove it", "keep it, if an address that is sent twice does no harm"];
            self.decide(&constructs::FORWARDED_FOR, set.target.span, question, &choices, Vec::new());
        }
    }

    /// A change of the request in the old `vcl_fetch` was seen by `vcl_deliver`.
    fn check_request_in_fetch(&mut self, target: &Path) {
        let text = target.text();
        if self.state != State::Fetch || !text.starts_with("req.") {
            return;
        }
        let is_read = self.facts.read_by_clients.contains(&text.to_ascii_lowercase());
        if is_read {
            let question = format!("`{text}` is read on the client's side, which does not see this change");
            let choices = [
                "set a field of `beresp` here and read it as `resp` there; it is stored with the response",
                "leave it, if only the backend side reads it",
            ];
            self.decide(&constructs::REQUEST_SET_IN_FETCH, target.span, question, &choices, Vec::new());
        }
    }
}
