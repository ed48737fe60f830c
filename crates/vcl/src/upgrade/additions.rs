//! Texts that are added to a program: its version, imports, `vcl_init`, and the start of `vcl_recv`.

use crate::diagnostic::Edit;
use crate::edits::OverlappingEdits;
use crate::parser::Parsed;
use crate::source::{FileId, Span};
use crate::tree::{Block, Declaration, DeclarationKind, Director, ElseBlock, Statement, StatementKind, Sub};
use crate::upgrade::change::Change;
use crate::upgrade::constructs;
use crate::upgrade::facts::Facts;
use crate::upgrade::state::State;
use crate::upgrade::visit;
use crate::upgrade::walker::{Needs, Walker, first_line};

/// The indentation where the program shows none.
const INDENT: &str = "    ";

/// A change that no list shows.
fn addition(construct: &'static constructs::Construct, span: Span, becomes: String, text: String) -> Change {
    let edits = vec![Edit { span, text }];
    Change { construct, span, was: String::new(), becomes, edits, decision: None }
}

impl Facts<'_> {
    /// One level of indentation.
    pub(super) fn unit(&self) -> String {
        let mut statements = self.subs.iter().filter_map(|(sub, _)| sub.block.statements.first());
        let indents = statements.find_map(|first| {
            let indent = self.layout.indent(first.span);
            (self.layout.begins_line(first.span) && !indent.is_empty()).then_some(indent)
        });
        indents.unwrap_or_else(|| INDENT.to_owned())
    }

    /// `vcl_init` with these statements.
    fn init_sub(&self, statements: &[String]) -> String {
        let unit = self.unit();
        let lines: Vec<String> = statements.iter().map(|statement| format!("{unit}{statement}\n")).collect();
        format!("sub vcl_init {{\n{}}}", lines.concat())
    }

    /// The directors, and the objects for saint mode.
    pub(super) fn objects(
        &self,
        list: &[Declaration],
        main: Span,
        stray: &[Edit],
        needs: &mut Needs,
    ) -> Result<Vec<Change>, OverlappingEdits> {
        let first_sub = self.subs.iter().map(|&(_, span)| span).find(|span| span.file == main.file);
        let mut early: Vec<String> =
            self.saints.keys().filter_map(|backend| self.saint_statement(backend)).collect();
        let mut changes = Vec::new();
        let mut directors: Vec<(&Director, Span)> = Vec::new();
        visit::each_declaration(list, &mut |declaration| {
            if let DeclarationKind::Director(director) = &declaration.kind {
                directors.push((director, declaration.span));
            }
        });
        for (director, span) in directors {
            let name = &*director.name.text;
            let kind = &*director.kind.text;
            let Some(constructor) = Facts::constructor(kind) else {
                changes.extend(self.unknown_director(director, span));
                continue;
            };
            needs.modules.insert("directors");
            let is_late = first_sub.is_some_and(|first| first.file == span.file && first.start < span.start);
            let text = self.director_text(director, span, stray)?;
            let edit = match is_late {
                true if text.backends.is_empty() => {
                    let above = self.layout.with_comments_above(span).before().to(span.before());
                    let comments = self.layout.text(above);
                    let comments = comments.lines().map(str::trim).filter(|line| !line.is_empty());
                    early.extend(comments.map(str::to_owned));
                    self.layout.remove_paragraph(span)
                }
                true => Edit { span, text: text.backends },
                false => {
                    let statements: Vec<String> = early.drain(..).chain(text.statements.clone()).collect();
                    let blank = if text.backends.is_empty() { "" } else { "\n\n" };
                    let init = self.init_sub(&statements);
                    Edit { span, text: format!("{}{blank}{init}", text.backends) }
                }
            };
            if is_late {
                early.extend(text.statements);
            }
            let was = format!("director {name} {kind}");
            let becomes = format!("new {name} = directors.{constructor}(); in vcl_init");
            let construct = &constructs::DIRECTOR;
            for member in &text.choosing_members {
                let mut walker = Walker::new(self, State::Init, span);
                let question =
                    format!("`{member}` chooses by the request and cannot be a member of `{name}`");
                let choices =
                    ["set `req.backend_hint` to one or the other in `vcl_recv`", "leave it out, as here"];
                walker.decide(construct, director.name.span, question, &choices, Vec::new());
                changes.extend(walker.changes);
            }
            changes.push(Change { construct, span, was, becomes, edits: vec![edit], decision: None });
        }
        if !early.is_empty() {
            let init = self.init_sub(&early);
            let (place, text) = match first_sub {
                Some(first) => (self.layout.with_comments_above(first).before(), format!("{init}\n\n")),
                None => (main.after(), format!("\n{init}\n")),
            };
            changes.push(addition(&constructs::DIRECTOR, place, "sub vcl_init".to_owned(), text));
        }
        if changes.iter().any(|change| change.decision.is_none()) {
            changes.extend(self.subs.iter().flat_map(|&(sub, span)| self.init_returns(sub, span)));
        }
        Ok(changes)
    }

    fn unknown_director(&self, director: &Director, span: Span) -> Vec<Change> {
        let mut walker = Walker::new(self, State::Init, span);
        let edits = self.layout.comment_out(span);
        match &*director.kind.text {
            "dns" => {
                let question = "directors of the kind `dns` are gone";
                let choices = [
                    "new NAME = dynamic.director(port = \"80\"); in `vcl_init`, with the module `dynamic`",
                    "a backend for each host, and `set req.backend_hint` by `req.http.Host`",
                ];
                walker.decide(&constructs::DNS_DIRECTOR, span, question, &choices, edits);
            }
            kind => {
                let question = format!("there are no directors of the kind `{}`", first_line(kind));
                let choices = ["a director of the module `directors`"];
                walker.decide(&constructs::DIRECTOR, span, question, &choices, edits);
            }
        }
        walker.changes
    }

    /// The returns of an old `vcl_init`, which would end it before the objects are made.
    fn init_returns(&self, sub: &Sub, span: Span) -> Vec<Change> {
        if &*sub.name.text != "vcl_init" {
            return Vec::new();
        }
        let mut returns = Vec::new();
        visit::each_statement(&sub.block.statements, &mut |statement| {
            if let StatementKind::Return(found) = &statement.kind {
                let is_ok = found.action.as_ref().is_none_or(|action| &*action.name.text == "ok");
                returns.push((statement.span, is_ok));
            }
        });
        let last = sub.block.statements.last().map(|last| last.span);
        let mut walker = Walker::new(self, State::Init, span);
        for (place, is_ok) in returns.into_iter().filter(|&(_, is_ok)| is_ok) {
            walker.anchor = place;
            if is_ok && Some(place) == last {
                let becomes = "nothing, because `vcl_init` goes on";
                let edit = self.layout.remove(place);
                walker.change(&constructs::DIRECTOR, place, "return (ok)", becomes, vec![edit]);
            } else {
                let question = "this ends `vcl_init`, so that directors below it are not made";
                walker.decide(&constructs::DIRECTOR, place, question, &["test the opposite"], Vec::new());
            }
        }
        walker.changes
    }

    /// The statement that sends requests to the first director, if nothing else does.
    pub(super) fn default_statement(&self) -> Option<String> {
        let first = self.first?;
        let backend = Walker::new(self, State::Recv, self.subs.first()?.1).backend_of(first)?;
        let recv = self.subs.iter().find(|(sub, _)| &*sub.name.text == "vcl_recv");
        let is_set = recv.is_some_and(|(sub, _)| sets_backend(&sub.block.statements));
        (!is_set).then(|| format!("set req.backend_hint = {backend};"))
    }

    /// The statements at the start of `vcl_recv`.
    pub(super) fn recv_start(&self, needs: &Needs, main: Span) -> Option<Change> {
        let default = self.default_statement();
        let lines: Vec<String> = default.clone().into_iter().chain(needs.recv.clone()).collect();
        if lines.is_empty() {
            return None;
        }
        let recv = self.subs.iter().find(|(sub, _)| &*sub.name.text == "vcl_recv");
        let (place, text) = match recv {
            Some((Sub { block: Block { statements, open, .. }, .. }, _)) => {
                let first = statements.first().map(|first| first.span);
                let indent = match first {
                    Some(first) if self.layout.begins_line(first) => {
                        format!("\n{}", self.layout.indent(first))
                    }
                    Some(_) => " ".to_owned(),
                    None => format!("\n{}", self.unit()),
                };
                let end = if first.is_none() { "\n" } else { "" };
                let text: Vec<String> = lines.iter().map(|line| format!("{indent}{line}")).collect();
                (open.after(), text.concat() + end)
            }
            None => {
                let unit = self.unit();
                let text: Vec<String> = lines.iter().map(|line| format!("{unit}{line}\n")).collect();
                (main.after(), format!("\nsub vcl_recv {{\n{}}}\n", text.concat()))
            }
        };
        let mut change = addition(&constructs::DIRECTOR_DEFAULT, place, lines.join(" "), text);
        if let (Some(_), Some(first)) = (default, self.first) {
            change.was = format!("{first} comes first");
        }
        Some(change)
    }

    /// The version line and the imports.
    pub(super) fn head(&self, parsed: &Parsed, file: FileId, needs: &Needs) -> Vec<Change> {
        let modules = needs.modules.iter().filter(|module| !self.imports.contains(*module));
        let imports: Vec<String> = modules
            .map(|&module| match (module, self.purge_module()) {
                ("purge", alias) if alias != "purge" => format!("import purge as {alias};"),
                _ => format!("import {module};"),
            })
            .collect();
        let start = Span::new(file, 0, 0);
        let leading = parsed.program.declarations.iter();
        let leading =
            leading.take_while(|declaration| matches!(declaration.kind, DeclarationKind::Import(_)));
        let mut version = "vcl 4.1;\n\n".to_owned();
        let mut changes = Vec::new();
        match leading.last() {
            _ if imports.is_empty() => {}
            Some(last) => {
                let text: Vec<String> = imports.iter().map(|import| format!("\n{import}")).collect();
                changes.push(addition(
                    &constructs::IMPORT,
                    last.span.after(),
                    imports.join(" "),
                    text.concat(),
                ));
            }
            None => version += &format!("{}\n\n", imports.join("\n")),
        }
        changes.insert(0, addition(&constructs::VERSION, start, "vcl 4.1;".to_owned(), version));
        changes
    }
}

/// Whether statements set the backend of every request before anything can return or read it.
fn sets_backend(statements: &[Statement]) -> bool {
    for statement in statements {
        match &statement.kind {
            StatementKind::Set(set) if set.target.is("req.backend") => return true,
            StatementKind::If { branches, otherwise: Some(ElseBlock { block, .. }) }
                if branches
                    .iter()
                    .map(|branch| &branch.block)
                    .chain([block])
                    .all(|block| sets_backend(&block.statements)) =>
            {
                return true;
            }
            StatementKind::Set(_) | StatementKind::Unset(_) => {}
            _ => {
                let list = std::slice::from_ref(statement);
                let mut ends = visit::reads(list, &|path| path.text().starts_with("req.backend"));
                visit::each_statement(list, &mut |inner| {
                    ends |= !matches!(
                        inner.kind,
                        StatementKind::Set(_) | StatementKind::Unset(_) | StatementKind::If { .. }
                    );
                });
                if ends {
                    return false;
                }
            }
        }
    }
    false
}
