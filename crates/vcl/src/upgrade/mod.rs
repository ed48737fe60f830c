//! The upgrade of programs in VCL 2 and 3 to VCL 4.1.
//!
//! [`upgrade`] finds the constructs of the old dialects and what becomes of each. It keeps comments and
//! layout: only the constructs are edited. A question that the program does not answer becomes a
//! [`Decision`], with a marked comment and its choices in the new text.

mod actions;
mod additions;
mod assignments;
mod change;
mod conditions;
pub mod constructs;
mod diff;
mod directors;
mod expressions;
mod facts;
mod layout;
mod list;
mod output;
mod refusal;
mod state;
mod subs;
mod variables;
mod visit;
mod walker;
mod warnings;

use crate::diagnostic::{Diagnostic, Edit};
use crate::dialect::{Dialect, OldVersion};
use crate::lexer::lex;
use crate::parser::Parsed;
use crate::rules;
use crate::source::{FileId, Span};
use crate::token::TokenKind;
use crate::tree::{AclItem, BackendBody, DeclarationKind};

pub use change::{Change, Decision};
pub use constructs::Construct;
use facts::Facts;
use output::NewFile;
pub use refusal::UpgradeRefusal;
use state::State;
use walker::{Needs, Walker};

/// Facts that the program may not show.
#[derive(Clone, Copy, Debug, Default)]
pub struct UpgradeOptions {
    /// The version of the program; `None` for what its names and statements show.
    pub version: Option<OldVersion>,
}

/// A program in VCL 4.1, with what was changed.
#[derive(Clone, Debug)]
pub struct Upgrade {
    /// The dialect that the program was in.
    pub dialect: Dialect,
    /// The version that it was in, if it is old and shows it.
    pub version: Option<OldVersion>,
    /// The changes, in the order of the files and of their text.
    pub changes: Vec<Change>,
    /// Facts about the program that a person should know, each a sentence without a full stop.
    pub warnings: Vec<String>,
    files: Vec<NewFile>,
}

impl Upgrade {
    /// The new text of a file.
    pub fn text(&self, file: FileId) -> &[u8] {
        self.files.iter().find(|new| new.id == file).map_or(&[], |new| &new.text)
    }

    /// The new texts of all files, the main file first.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &[u8])> {
        self.files.iter().map(|new| (new.id, &*new.text))
    }

    /// The decisions that a person has to make.
    pub fn decisions(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.decision.is_some())
    }
}

/// The number of marked comments for decisions in a text.
pub fn decisions_left(text: &[u8]) -> usize {
    let is_marked = |line: &&[u8]| {
        let comment = line.trim_ascii_start().strip_prefix(b"# ");
        comment
            .and_then(|rest| rest.strip_prefix(change::MARK.as_bytes()))
            .is_some_and(|rest| rest.starts_with(b" "))
    };
    text.split(|&byte| byte == b'\n').filter(is_marked).count()
}

/// The program in VCL 4.1. One that is in VCL 4 stays as it is, but for a missing version.
///
/// The new text is read again, so that it has no mistake of syntax.
pub fn upgrade(parsed: &Parsed, options: UpgradeOptions) -> Result<Upgrade, UpgradeRefusal> {
    let is_old = parsed.program.dialect == Dialect::Old;
    let is_mistake = |diagnostic: &&Diagnostic| {
        let rule = diagnostic.rule.name;
        diagnostic.is_error() && rule != rules::INCLUDE.name && rule != rules::MISSING_VERSION.name
    };
    let mistakes = parsed.diagnostics.iter().filter(is_mistake).count();
    if is_old && mistakes > 0 {
        return Err(UpgradeRefusal::Unreadable(mistakes));
    }
    let (version, mut changes, warnings) = match is_old {
        true => {
            let facts = Facts::of(parsed, options.version);
            let version = facts.version;
            let changes = changes(parsed, facts)?;
            (version, changes.0, changes.1)
        }
        false => (None, version_line(parsed), Vec::new()),
    };
    changes.sort_by_key(|change| change.span);
    let files = output::files(parsed, &changes)?;
    output::check_shared(parsed, &files)?;
    if is_old {
        output::check(parsed, &files)?;
    }
    Ok(Upgrade { dialect: parsed.program.dialect, version, changes, warnings, files })
}

/// The missing version line of a program in VCL 4.
fn version_line(parsed: &Parsed) -> Vec<Change> {
    let missing = parsed.diagnostics.iter().filter(|found| found.rule.name == rules::MISSING_VERSION.name);
    let with_edits = missing.filter_map(|found| found.mend.as_ref().map(|mend| (found.span, &mend.edits)));
    let change = |(span, edits): (Span, &Vec<Edit>)| Change {
        construct: &constructs::VERSION,
        span,
        was: String::new(),
        becomes: "vcl 4.1;".to_owned(),
        edits: edits.clone(),
        decision: None,
    };
    with_edits.filter(|(_, edits)| !edits.is_empty()).map(change).collect()
}

/// The changes and the warnings of an old program.
fn changes(parsed: &Parsed, mut facts: Facts<'_>) -> Result<(Vec<Change>, Vec<String>), UpgradeRefusal> {
    let Some((main_id, main_file)) = parsed.sources.files().next() else { return Ok(Default::default()) };
    let main = Span::new(main_id, 0, main_file.text().len() as u32);
    let stray = stray_semicolons(parsed);
    facts.find_copied(&stray)?;
    let mut needs = Needs::default();
    let mut changes = Vec::new();
    let mut failed = None;
    visit::each_declaration(&parsed.program.declarations, &mut |declaration| {
        let span = declaration.span;
        let mut walker = Walker::new(&facts, State::Init, span);
        match &declaration.kind {
            DeclarationKind::Backend(backend) => {
                if let BackendBody::Properties(properties) = &backend.body {
                    walker.properties(&properties.items);
                }
            }
            DeclarationKind::Probe(probe) => walker.properties(&probe.properties.items),
            DeclarationKind::Acl(acl) => acl.items.iter().for_each(|item| {
                if let AclItem::Entry(entry) = item {
                    walker.string(&entry.address);
                }
            }),
            DeclarationKind::InlineC => walker.inline_c(span),
            DeclarationKind::Sub(sub) => match facts.sub(sub, span, &stray) {
                Ok(sub) => {
                    walker.needs = sub.needs;
                    walker.changes = sub.changes;
                }
                Err(error) => failed = Some(error),
            },
            _ => {}
        }
        needs.merge(walker.needs);
        changes.append(&mut walker.changes);
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    let purge = facts.purge_sub(&facts.unit(), &stray)?;
    needs.merge(purge.needs);
    changes.extend(purge.changes);
    changes.extend(facts.objects(&parsed.program.declarations, main, &stray, &mut needs)?);
    changes.extend(facts.recv_start(&needs, main));
    // Among insertions at the start of the file, the version is the first.
    changes.splice(0..0, facts.head(parsed, main_id, &needs));
    changes.extend(stray.into_iter().map(|edit| Change {
        construct: &constructs::STRAY_SEMICOLON,
        span: edit.span,
        was: "};".to_owned(),
        becomes: "}".to_owned(),
        edits: vec![edit],
        decision: None,
    }));
    let warnings = warnings::warnings(parsed, &facts);
    Ok((changes, warnings))
}

/// The removals of semicolons that end nothing.
fn stray_semicolons(parsed: &Parsed) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (id, file) in parsed.sources.files() {
        let tokens = lex(id, file.text(), usize::MAX, usize::MAX).tokens;
        let mut before = TokenKind::CloseBrace;
        for token in tokens {
            let ends_nothing = matches!(
                before,
                TokenKind::CloseBrace | TokenKind::OpenBrace | TokenKind::Semicolon | TokenKind::InlineC
            );
            if token.kind == TokenKind::Semicolon && ends_nothing {
                edits.push(Edit { span: token.span(id), text: String::new() });
            }
            before = token.kind;
        }
    }
    edits
}
