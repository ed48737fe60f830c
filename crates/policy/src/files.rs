//! The rule of a route that serves files.

use std::path::PathBuf;
use std::time::Duration;

/// How requests find files in a directory tree, and which files they may get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRule {
    /// The directory tree, by absolute path.
    pub root: PathBuf,
    /// Further directory trees that symbolic links may lead to, by absolute path.
    pub also: Vec<PathBuf>,
    /// Which symbolic links are followed.
    pub symlinks: Symlinks,
    /// The names that are tried, in order.
    pub names: Vec<FileName>,
    /// The page for requests without a file, sent with the status 404.
    pub not_found: Option<FileName>,
    /// The names of files that stand for their directory, in order.
    pub index: Vec<Box<str>>,
    /// Whether a directory without such a file is listed.
    pub listing: bool,
    /// Whether `NAME.br`, `NAME.zst` and `NAME.gz` are sent in place of `NAME` to clients that accept the coding.
    pub precompressed: bool,
    /// How long an open file, or the absence of one, is used before the directory is asked again.
    pub valid: Duration,
}

impl FileRule {
    /// The rule for the files of a directory tree, each by its own path.
    pub fn of(root: PathBuf) -> FileRule {
        FileRule {
            root,
            also: Vec::new(),
            symlinks: Symlinks::Inside,
            names: vec![FileName::path()],
            not_found: None,
            index: Vec::new(),
            listing: false,
            precompressed: false,
            valid: Duration::ZERO,
        }
    }
}

/// Which symbolic links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symlinks {
    /// Those that lead to a place inside the tree, or inside one of the further trees.
    Inside,
    /// None.
    Never,
}

/// A name below the root: literal text, with the path of the request at one place or nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName {
    before: Box<str>,
    after: Option<Box<str>>,
}

impl FileName {
    /// What stands for the path of the request.
    pub const PLACE: &str = "{path}";

    /// The path of the request itself.
    pub fn path() -> FileName {
        FileName { before: Box::default(), after: Some(Box::default()) }
    }

    /// Reads a name such as `{path}.html`. `None` if it has the path twice.
    pub fn of(text: &str) -> Option<FileName> {
        let Some((before, after)) = text.split_once(FileName::PLACE) else {
            return Some(FileName { before: text.into(), after: None });
        };
        (!after.contains(FileName::PLACE))
            .then(|| FileName { before: before.into(), after: Some(after.into()) })
    }

    /// Whether this is the path of the request and nothing else.
    pub fn is_path(&self) -> bool {
        self.before.is_empty() && self.after.as_deref() == Some("")
    }

    /// The name for a request of `path`.
    pub fn fill(&self, path: &[u8]) -> Vec<u8> {
        match &self.after {
            Some(after) => [self.before.as_bytes(), path, after.as_bytes()].concat(),
            None => self.before.as_bytes().to_vec(),
        }
    }
}

impl std::fmt::Display for FileName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.after {
            Some(after) => write!(f, "{}{}{after}", self.before, FileName::PLACE),
            None => f.write_str(&self.before),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_path_at_one_place_or_nowhere() {
        for (text, filled) in [
            ("{path}", "/a"),
            ("{path}/index.html", "/a/index.html"),
            ("/x{path}.html", "/x/a.html"),
            ("/404.html", "/404.html"),
        ] {
            let name = FileName::of(text).expect("a name");
            assert_eq!(name.fill(b"/a"), filled.as_bytes());
            assert_eq!(name.to_string(), text);
            assert_eq!(name.is_path(), text == "{path}");
        }
        assert_eq!(FileName::of("{path}{path}"), None);
        assert!(FileName::path().is_path());
    }
}
