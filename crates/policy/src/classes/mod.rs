//! Classifiers, which assign requests to classes.

mod part;
mod pattern;
mod subject;
mod table;
mod template;

pub use part::ClassPart;
pub use pattern::ClassPattern;
pub use subject::Subject;
pub use table::{ClassTable, TableConflict};
pub use template::{ClassPiece, ClassTemplate};

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandarac_balance::MAX_CLASS_BYTES;

use part::{host, path, segment};

/// Assigns requests to classes.
#[derive(Clone, Debug)]
pub struct Classifier {
    rule: ClassRule,
    fingerprint: u64,
}

/// The rule of a [`Classifier`].
#[derive(Clone, Debug)]
pub enum ClassRule {
    /// The host in lower case, without port and leading `www.`.
    Host,
    /// A segment of the path, the first being 1.
    PathSegment(u32),
    /// Parts of the request, combined.
    Template(ClassTemplate),
    /// The match of a regular expression.
    Pattern(ClassPattern),
    /// A table in a file.
    File {
        /// The file, by absolute path.
        path: PathBuf,
        /// The table; empty until it was read.
        table: Arc<ClassTable>,
    },
}

impl PartialEq for Classifier {
    fn eq(&self, other: &Classifier) -> bool {
        self.fingerprint == other.fingerprint && self.table_path() == other.table_path()
    }
}

impl Classifier {
    /// The classifier with this `rule`.
    pub fn new(rule: ClassRule) -> Classifier {
        let mut hasher = blake3::Hasher::new();
        rule.canonical(&mut |bytes| {
            hasher.update(bytes);
        });
        let first = hasher.finalize().as_bytes().first_chunk().copied().unwrap_or_default();
        Classifier { rule, fingerprint: u64::from_be_bytes(first) }
    }

    /// The first eight bytes, in network order, of BLAKE3 over its canonical text; for a table file, over its
    /// content, regardless of order and comments. Classifiers of equal fingerprints make equal classes.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The class of a request, of 1 to 256 bytes. `None` if the request has none of the parts that the rule
    /// uses, if nothing matches, or if the class would be longer. A class that cannot be borrowed is written
    /// to `buffer`, whose previous content is lost.
    pub fn classify<'a>(&'a self, subject: Subject<'a>, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        buffer.clear();
        let class = match &self.rule {
            ClassRule::Host => host(subject.host, buffer),
            ClassRule::PathSegment(number) => match path(subject.target) {
                Cow::Borrowed(path) => segment(path, *number)?,
                Cow::Owned(path) => {
                    buffer.extend_from_slice(segment(&path, *number)?);
                    buffer
                }
            },
            ClassRule::Template(template) => template.fill(&subject, buffer)?,
            ClassRule::Pattern(pattern) => pattern.class(&subject, buffer)?,
            ClassRule::File { table, .. } => table.class(&subject)?,
        };
        (1..=MAX_CLASS_BYTES).contains(&class.len()).then_some(class)
    }

    /// The file of its table, by absolute path, if it uses one. No request has a class until
    /// [`Classifier::with_table`] was given the table.
    pub fn table_path(&self) -> Option<&Path> {
        match &self.rule {
            ClassRule::File { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The lines of its table in use, if it uses one; 0 until [`Classifier::with_table`] was given the table.
    pub fn table_len(&self) -> Option<usize> {
        match &self.rule {
            ClassRule::File { table, .. } => Some(table.len()),
            _ => None,
        }
    }

    /// The same classifier with `table`. A classifier without a table is returned unchanged.
    pub fn with_table(&self, table: ClassTable) -> Classifier {
        match &self.rule {
            ClassRule::File { path, .. } => {
                Classifier::new(ClassRule::File { path: path.clone(), table: Arc::new(table) })
            }
            _ => self.clone(),
        }
    }
}

impl ClassRule {
    /// Passes `write` the canonical text in parts. It is the same for classifiers that make the same classes.
    fn canonical(&self, write: &mut dyn FnMut(&[u8])) {
        match self {
            ClassRule::File { table, .. } => {
                write(b"table\n");
                table.canonical(write);
            }
            other => write(other.to_string().as_bytes()),
        }
    }
}

impl std::fmt::Display for ClassRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ClassRule::Host => f.write_str("host"),
            ClassRule::PathSegment(number) => write!(f, "path_segment({number})"),
            ClassRule::Template(template) => write!(f, "{template}"),
            ClassRule::Pattern(pattern) => write!(f, "{pattern}"),
            ClassRule::File { path, .. } => write!(f, "the table {}", path.display()),
        }
    }
}

impl std::fmt::Display for Classifier {
    /// Writes the short form used in explanations.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.rule)
    }
}
