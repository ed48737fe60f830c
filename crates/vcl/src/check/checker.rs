//! The state of one check.

use std::collections::{HashMap, HashSet};

use crate::check::flow::SubFlow;
use crate::check::patterns::Patterns;
use crate::check::symbols::Symbols;
use crate::diagnostic::Diagnostic;
use crate::dialect::Dialect;
use crate::parser::Parsed;
use crate::source::{FileId, Span};
use crate::tree::{Declaration, DeclarationKind};

/// The diagnostics of the checker that are kept, because later ones are seldom read.
const MAX_DIAGNOSTICS: usize = 200;

/// The state of one check.
pub(super) struct Checker<'p> {
    pub(super) parsed: &'p Parsed,
    pub(super) patterns: &'p dyn Patterns,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The declarations of all files in the order of the program.
    pub(super) declarations: Vec<&'p Declaration>,
    /// The dialects of the files that differ from that of the program.
    pub(super) dialects: HashMap<FileId, Dialect>,
    pub(super) symbols: Symbols<'p>,
    /// The subs in order; those of one name are one.
    pub(super) subs: Vec<SubFlow<'p>>,
    /// The words on lines with errors of the parser, because a definition there may be lost.
    lost_words: HashSet<String>,
    /// Names that are not defined, because each is reported once.
    undefined: HashSet<String>,
    /// The declaration that is being checked.
    pub(super) at: usize,
    /// The sub that is being checked.
    pub(super) sub: Option<usize>,
}

impl<'p> Checker<'p> {
    pub(super) fn new(parsed: &'p Parsed, patterns: &'p dyn Patterns) -> Checker<'p> {
        let mut checker = Checker {
            parsed,
            patterns,
            diagnostics: Vec::new(),
            declarations: Vec::new(),
            dialects: HashMap::new(),
            symbols: Symbols::default(),
            subs: Vec::new(),
            lost_words: lost_words(parsed),
            undefined: HashSet::new(),
            at: 0,
            sub: None,
        };
        checker.flatten(&parsed.program.declarations, parsed.program.dialect);
        checker
    }

    /// Collects the declarations of a file and of those that it includes.
    fn flatten(&mut self, declarations: &'p [Declaration], mut dialect: Dialect) {
        for declaration in declarations {
            match &declaration.kind {
                DeclarationKind::Version(version) => {
                    dialect = version.dialect;
                    self.dialects.insert(declaration.span.file, dialect);
                }
                DeclarationKind::Include(include) => {
                    for part in &include.parts {
                        self.dialects.insert(part.file, dialect);
                        self.flatten(&part.items, dialect);
                    }
                }
                _ => self.declarations.push(declaration),
            }
        }
    }

    /// Adds a diagnostic, unless there are very many already.
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        if !self.is_full() {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Whether so many mistakes were found that the rest of the program is not checked.
    pub(super) fn is_full(&self) -> bool {
        self.diagnostics.len() >= MAX_DIAGNOSTICS
    }

    /// Whether a name without a definition is to be reported: once, and not if its definition may be on a
    /// line that the parser could not read.
    pub(super) fn is_news(&mut self, name: &str) -> bool {
        !self.lost_words.contains(name) && self.undefined.insert(name.to_owned())
    }

    /// The text of a span.
    pub(super) fn text(&self, span: Span) -> String {
        String::from_utf8_lossy(self.parsed.sources.bytes(span)).into_owned()
    }

    /// The text of a span, or a placeholder for one that is too long for a message.
    pub(super) fn short_text(&self, span: Span) -> String {
        const LONGEST: usize = 60;
        let text = self.text(span);
        match text.len() <= LONGEST && !text.contains('\n') {
            true => text,
            false => "…".to_owned(),
        }
    }

    /// The dialect at a place.
    pub(super) fn dialect(&self, span: Span) -> Dialect {
        self.dialects.get(&span.file).copied().unwrap_or(self.parsed.program.dialect)
    }
}

/// The words on lines with errors of the parser.
fn lost_words(parsed: &Parsed) -> HashSet<String> {
    const LONGEST_LINE: usize = 1000;
    let mut words = HashSet::new();
    for error in parsed.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()) {
        let file = parsed.sources.file(error.span.file);
        let line = file.line_range(error.span.start);
        if line.len() > LONGEST_LINE {
            continue;
        }
        let line = String::from_utf8_lossy(&file.text()[line]).into_owned();
        let is_separator = |letter: char| !letter.is_ascii_alphanumeric() && letter != '_' && letter != '-';
        words.extend(line.split(is_separator).filter(|word| !word.is_empty()).map(str::to_owned));
    }
    words
}
