//! Comments that silence warnings: `# vcl-check: allow NAME, NAME`.

use std::collections::HashMap;

use crate::diagnostic::Diagnostic;
use crate::parser::Parsed;
use crate::source::FileId;

/// The words before the names.
const MARK: &str = "vcl-check: allow ";

/// Removes warnings that a comment silences: on the line of the comment, on the next one, and everywhere if
/// it stands before the first declaration of the main file.
pub(in crate::check) fn retain_unsilenced(parsed: &Parsed, diagnostics: &mut Vec<Diagnostic>) {
    let mut by_line: HashMap<(FileId, usize), Vec<String>> = HashMap::new();
    let mut everywhere: Vec<String> = Vec::new();
    let first = parsed.program.declarations.first().map(|declaration| declaration.span);
    for comment in &parsed.comments {
        let text = String::from_utf8_lossy(parsed.sources.bytes(comment.span)).into_owned();
        let Some((_, names)) = text.split_once(MARK) else { continue };
        let names = names.trim_end_matches("*/").split([',', ' ']).map(str::trim);
        let names: Vec<String> = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let file = comment.span.file;
        if first.is_some_and(|first| first.file == file && comment.span.end <= first.start) {
            everywhere.extend(names);
            continue;
        }
        let line = parsed.sources.position(comment.span.after()).line;
        by_line.entry((file, line)).or_default().extend(names.iter().cloned());
        by_line.entry((file, line + 1)).or_default().extend(names);
    }
    if everywhere.is_empty() && by_line.is_empty() {
        return;
    }
    diagnostics.retain(|diagnostic| {
        let name = diagnostic.rule.name;
        let line = parsed.sources.position(diagnostic.span).line;
        let here = by_line.get(&(diagnostic.span.file, line));
        let is_silent = everywhere.iter().chain(here.into_iter().flatten()).any(|silenced| silenced == name);
        diagnostic.is_error() || !is_silent
    });
}
