//! Diagnostics as JSON for machines.

use serde_json::{Value, json};

use crate::diagnostic::{Diagnostic, Severity};
use crate::source::{Sources, Span};

/// A diagnostic as an object.
///
/// | member | |
/// |---|---|
/// | `rule` | the name of the rule |
/// | `severity` | `error` or `warning` |
/// | `message` | one sentence |
/// | `at` | a place |
/// | `label` | words for that place, or `null` |
/// | `related` | list of `{"at": PLACE, "label": "…"}` |
/// | `notes` | list of sentences |
/// | `included_from` | list of places: the include statements that lead to the file, the innermost first |
/// | `mend` | `null`, or `{"text": "…", "edits": [{"at": PLACE, "text": "…"}]}` |
///
/// A place has `file`, `line` and `column` (from 1, in characters), `end_line` and `end_column` (after the
/// last character), and `start` and `end` in bytes.
pub fn to_json(sources: &Sources, diagnostic: &Diagnostic) -> Value {
    let severity = match diagnostic.rule.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let related = diagnostic.related.iter();
    let related: Vec<Value> = related
        .map(|related| json!({ "at": place(sources, related.span), "label": related.label }))
        .collect();
    let mend = diagnostic.mend.as_ref().map(|mend| {
        let edits = mend.edits.iter();
        let edits: Vec<Value> =
            edits.map(|edit| json!({ "at": place(sources, edit.span), "text": edit.text })).collect();
        json!({ "text": mend.text, "edits": edits })
    });
    let chain = sources.include_chain(diagnostic.span.file);
    let included_from: Vec<Value> = chain.into_iter().map(|span| place(sources, span)).collect();
    json!({
        "rule": diagnostic.rule.name,
        "severity": severity,
        "message": diagnostic.message,
        "at": place(sources, diagnostic.span),
        "label": diagnostic.label,
        "related": related,
        "notes": diagnostic.notes,
        "mend": mend,
        "included_from": included_from,
    })
}

fn place(sources: &Sources, span: Span) -> Value {
    let (start, end) = (sources.position(span), sources.position(span.after()));
    json!({
        "file": sources.file(span.file).name(),
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": end.column,
        "start": span.start,
        "end": span.end,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::rules;

    #[test]
    fn an_object_has_the_place_in_lines_columns_and_bytes() {
        let mut sources = Sources::default();
        let file = sources.add("a.vcl", Arc::from("é\nset x".as_bytes()), None);
        let span = Span::new(file, 3, 6);
        let diagnostic = Diagnostic::new(&rules::EXPECTED, span, "bad").mend("write `a`", span.after(), "a");
        let place = |columns: [u32; 2], bytes: [u32; 2]| {
            let [column, end_column] = columns;
            let [start, end] = bytes;
            json!({
                "file": "a.vcl", "line": 2, "column": column, "end_line": 2, "end_column": end_column,
                "start": start, "end": end,
            })
        };
        let expected = json!({
            "rule": "expected", "severity": "error", "message": "bad", "at": place([1, 4], [3, 6]), "label": null,
            "related": [], "notes": [], "included_from": [],
            "mend": {"text": "write `a`", "edits": [{"at": place([4, 4], [6, 6]), "text": "a"}]},
        });
        assert_eq!(to_json(&sources, &diagnostic), expected);
    }
}
