//! Included files, which the caller reads.

use std::sync::Arc;

/// An include statement.
#[derive(Clone, Copy, Debug)]
pub struct IncludeRequest<'r> {
    /// The path, or the pattern, as it is written.
    pub path: &'r str,
    /// Whether the path is a pattern (`include +glob`).
    pub is_pattern: bool,
    /// The name of the file with the statement, as the loader or the caller gave it.
    pub from: &'r str,
}

/// A file that was read.
#[derive(Clone, Debug)]
pub struct LoadedFile {
    /// The name. Diagnostics show it, and two files of one name are the same file.
    pub name: String,
    /// The bytes.
    pub text: Arc<[u8]>,
}

/// The reason why nothing was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// No such file.
    NotFound,
    /// A pattern that matches no file.
    NoMatch,
    /// The file exists, but cannot be read; the reason in words.
    Unreadable(String),
}

/// A source of included files.
pub trait Loader {
    /// The file, or the files that match a pattern in the order of their names.
    ///
    /// MUST return at least one file, or an error. MUST return the same for the same request, so that a
    /// program has one meaning. The parser does not ask for a file that would exceed its limits on depth and
    /// number.
    fn load(&mut self, request: IncludeRequest<'_>) -> Result<Vec<LoadedFile>, LoadError>;
}

/// A loader without files.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Loader for NoFiles {
    fn load(&mut self, _: IncludeRequest<'_>) -> Result<Vec<LoadedFile>, LoadError> {
        Err(LoadError::NotFound)
    }
}
