//! The new texts of the files, and their check.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostic::Edit;
use crate::dialect::Dialect;
use crate::edits::{OverlappingEdits, apply_edits};
use crate::limits::Limits;
use crate::loader::{IncludeRequest, LoadError, LoadedFile, Loader};
use crate::parser::{Parsed, parse};
use crate::rules;
use crate::source::{FileId, SourceFile};
use crate::upgrade::change::{Change, merged};
use crate::upgrade::refusal::UpgradeRefusal;

/// A file with its edits and its new text.
#[derive(Clone, Debug)]
pub(super) struct NewFile {
    pub(super) id: FileId,
    /// The edits in the order of the text; none is within another.
    pub(super) edits: Vec<Edit>,
    pub(super) text: Vec<u8>,
}

/// All files, the main file first.
pub(super) fn files(parsed: &Parsed, changes: &[Change]) -> Result<Vec<NewFile>, OverlappingEdits> {
    let mut edits = merged(changes.iter().flat_map(|change| change.edits.iter().cloned()));
    // A file that is included twice has the same edits twice.
    edits.dedup();
    let file = |(id, file): (FileId, &SourceFile)| {
        let has_carriage_returns = ends_lines_with_carriage_returns(file.text());
        let edits = edits.iter().filter(|edit| edit.span.file == id).map(|edit| match has_carriage_returns {
            true => Edit { span: edit.span, text: edit.text.replace("\r\n", "\n").replace('\n', "\r\n") },
            false => edit.clone(),
        });
        let edits: Vec<Edit> = edits.collect();
        let text = apply_edits(file.text(), &edits)?;
        Ok(NewFile { id, edits, text })
    };
    parsed.sources.files().map(file).collect()
}

fn ends_lines_with_carriage_returns(text: &[u8]) -> bool {
    memchr::memchr(b'\n', text).is_some_and(|at| at > 0 && text[at - 1] == b'\r')
}

/// The new texts of the included files, in the order in which the parser asks for them.
struct NewFiles<'u> {
    parsed: &'u Parsed,
    files: &'u [NewFile],
    next: usize,
}

impl Loader for NewFiles<'_> {
    fn load(&mut self, request: IncludeRequest<'_>) -> Result<Vec<LoadedFile>, LoadError> {
        let mut loaded = Vec::new();
        while let Some(NewFile { id, text, .. }) = self.files.get(self.next) {
            let file = self.parsed.sources.file(*id);
            let is_of_request = file.included_from().is_some_and(|from| {
                let statement = String::from_utf8_lossy(self.parsed.sources.bytes(from)).into_owned();
                let is_same_file = self.parsed.sources.file(from.file).name() == request.from;
                is_same_file && statement.contains(request.path)
            });
            if !is_of_request || (!request.is_pattern && !loaded.is_empty()) {
                break;
            }
            loaded.push(LoadedFile { name: file.name().to_owned(), text: Arc::from(&**text) });
            self.next += 1;
        }
        if loaded.is_empty() { Err(LoadError::NotFound) } else { Ok(loaded) }
    }
}

/// Checks that each file that is included more than once has one new text.
pub(super) fn check_shared(parsed: &Parsed, files: &[NewFile]) -> Result<(), UpgradeRefusal> {
    let mut texts: BTreeMap<&str, &[u8]> = BTreeMap::new();
    for file in files {
        let name = parsed.sources.file(file.id).name();
        if *texts.entry(name).or_insert(&file.text) != file.text {
            return Err(UpgradeRefusal::SharedFile(name.to_owned()));
        }
    }
    Ok(())
}

/// Reads the new texts, which must have no mistake.
pub(super) fn check(parsed: &Parsed, files: &[NewFile]) -> Result<(), UpgradeRefusal> {
    let Some(NewFile { id, text, .. }) = files.first() else { return Ok(()) };
    let name = parsed.sources.file(*id).name();
    let mut loader = NewFiles { parsed, files, next: 1 };
    let read = parse(name, Arc::from(&**text), &mut loader, Limits::default());
    let mistake =
        read.diagnostics.iter().find(|found| found.is_error() && found.rule.name != rules::INCLUDE.name);
    match mistake {
        Some(mistake) => {
            let line = read.sources.position(mistake.span).line;
            Err(UpgradeRefusal::Output(format!("{} (line {line} of the new text)", mistake.message)))
        }
        None if read.program.dialect != Dialect::V4_1 => {
            Err(UpgradeRefusal::Output("the version is missing".to_owned()))
        }
        None => Ok(()),
    }
}
