//! Errors and warnings about a program, each with its place, its cause and what to write instead.

use crate::source::Span;

/// Whether a diagnostic refuses the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// It does.
    Error,
    /// It does not.
    Warning,
}

/// A kind of mistake, defined once. Its name is stable: comments that silence a warning, JSON and the manual
/// use it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The name: lower-case words joined by `-`.
    pub name: &'static str,
    /// Whether it refuses the program.
    pub severity: Severity,
    /// The rule in one sentence.
    pub text: &'static str,
}

impl Rule {
    /// A rule that refuses the program.
    pub const fn error(name: &'static str, text: &'static str) -> Rule {
        Rule { name, severity: Severity::Error, text }
    }

    /// A rule that does not refuse the program.
    pub const fn warning(name: &'static str, text: &'static str) -> Rule {
        Rule { name, severity: Severity::Warning, text }
    }
}

/// A place that explains another, with its role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// The place.
    pub span: Span,
    /// The role, such as `opened here`.
    pub label: String,
}

/// A replacement of the bytes of a span by a text; an insertion if the span is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The bytes that vanish.
    pub span: Span,
    /// The text that takes their place.
    pub text: String,
}

/// A way to correct the mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mend {
    /// The correction as an instruction, such as "write `req.method`".
    pub text: String,
    /// The edits that do it, in the order of the file; empty if a person has to decide.
    pub edits: Vec<Edit>,
}

/// One error or warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The rule that was broken.
    pub rule: &'static Rule,
    /// The mistake, in one sentence without a full stop.
    pub message: String,
    /// The place of the mistake.
    pub span: Span,
    /// Words for that place, shown beside its mark.
    pub label: Option<String>,
    /// Other places, such as that of a definition.
    pub related: Vec<Related>,
    /// Facts that explain the mistake.
    pub notes: Vec<String>,
    /// The correction, if there is one.
    pub mend: Option<Mend>,
}

impl Diagnostic {
    /// A diagnostic with neither label, related places, notes nor mend.
    pub fn new(rule: &'static Rule, span: Span, message: impl Into<String>) -> Diagnostic {
        let message = message.into();
        Diagnostic { rule, message, span, label: None, related: Vec::new(), notes: Vec::new(), mend: None }
    }

    /// Whether it refuses the program.
    pub fn is_error(&self) -> bool {
        self.rule.severity == Severity::Error
    }

    /// The same with words beside the mark.
    pub fn label(self, label: impl Into<String>) -> Diagnostic {
        Diagnostic { label: Some(label.into()), ..self }
    }

    /// The same with one more related place.
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Diagnostic {
        self.related.push(Related { span, label: label.into() });
        self
    }

    /// The same with one more note.
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// The same with a correction that a person has to do.
    pub fn advice(self, text: impl Into<String>) -> Diagnostic {
        Diagnostic { mend: Some(Mend { text: text.into(), edits: Vec::new() }), ..self }
    }

    /// The same with a correction that replaces `span` by `replacement`.
    pub fn mend(self, text: impl Into<String>, span: Span, replacement: impl Into<String>) -> Diagnostic {
        let edits = vec![Edit { span, text: replacement.into() }];
        Diagnostic { mend: Some(Mend { text: text.into(), edits }), ..self }
    }

    /// The same with one more edit in its correction.
    pub fn and_edit(mut self, span: Span, replacement: impl Into<String>) -> Diagnostic {
        if let Some(mend) = &mut self.mend {
            mend.edits.push(Edit { span, text: replacement.into() });
        }
        self
    }
}
