//! Classifiers: they sort requests into classes.

mod part;
mod pattern;
mod settings;
mod table;
mod template;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandarac_balance::MAX_CLASS_BYTES;
use sandarac_message::Fields;

use part::{host, path, segment};
use pattern::Pattern;
pub(crate) use settings::ClassSettings;
use table::Table;
pub use table::{TABLE_BYTES, TableError};
use template::ClassTemplate;

/// What of a request a classifier looks at.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The host, in any letter case, with or without a port; empty where the request has none.
    pub host: &'a [u8],
    /// The method.
    pub method: &'a [u8],
    /// Path and query, as received.
    pub target: &'a [u8],
    /// The fields.
    pub fields: Fields<'a>,
}

/// Sorts requests into classes.
#[derive(Clone, Debug)]
pub struct Classifier {
    how: How,
    fingerprint: u64,
}

#[derive(Clone, Debug)]
enum How {
    Host,
    /// By a segment of the path, the first being 1.
    PathSegment(u32),
    Template(ClassTemplate),
    Pattern(Pattern),
    File {
        path: PathBuf,
        table: Arc<Table>,
    },
}

impl PartialEq for Classifier {
    fn eq(&self, other: &Classifier) -> bool {
        self.fingerprint == other.fingerprint && self.table_path() == other.table_path()
    }
}

impl Classifier {
    fn new(how: How) -> Classifier {
        let mut hasher = blake3::Hasher::new();
        how.canonical(&mut |bytes| {
            hasher.update(bytes);
        });
        let first = hasher.finalize().as_bytes().first_chunk().copied().unwrap_or_default();
        Classifier { how, fingerprint: u64::from_be_bytes(first) }
    }

    /// The first eight bytes, in network order, of BLAKE3 over its canonical text; for a table file, over what the file says,
    /// whatever its order and its comments. Classifiers of equal fingerprints make equal classes.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The class of a request, of 1 to 256 bytes. `None` where the request has nothing of what it goes by, where nothing
    /// matches, and where the class would be longer. What cannot be borrowed is put into `buffer`, whatever that held.
    pub fn classify<'a>(&'a self, subject: Subject<'a>, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        buffer.clear();
        let class = match &self.how {
            How::Host => host(subject.host, buffer),
            How::PathSegment(number) => match path(subject.target) {
                Cow::Borrowed(path) => segment(path, *number)?,
                Cow::Owned(path) => {
                    buffer.extend_from_slice(segment(&path, *number)?);
                    buffer
                }
            },
            How::Template(template) => template.fill(&subject, buffer)?,
            How::Pattern(pattern) => pattern.class(&subject, buffer)?,
            How::File { table, .. } => table.class(&subject)?,
        };
        (1..=MAX_CLASS_BYTES).contains(&class.len()).then_some(class)
    }

    /// The file that its table is in, by absolute path, where it goes by one. Until [`Classifier::with_table`] was given
    /// what is in it, no request has a class.
    pub fn table_path(&self) -> Option<&Path> {
        match &self.how {
            How::File { path, .. } => Some(path),
            _ => None,
        }
    }

    /// How many lines of its table are in use, where it goes by one; 0 until [`Classifier::with_table`] was given it.
    pub fn table_len(&self) -> Option<usize> {
        match &self.how {
            How::File { table, .. } => Some(table.len()),
            _ => None,
        }
    }

    /// The same classifier with `text`, the whole of its file, for its table. One that has no table stays as it is.
    ///
    /// # Errors
    /// The first line that cannot be read, or that no line has a class.
    pub fn with_table(&self, text: &[u8]) -> Result<Classifier, TableError> {
        match &self.how {
            How::File { path, .. } => {
                let table = Table::read(text).map_err(|error| error.of(path))?;
                Ok(Classifier::new(How::File { path: path.clone(), table: Arc::new(table) }))
            }
            _ => Ok(self.clone()),
        }
    }
}

impl How {
    /// Gives `write` the text, in parts, that is the same for classifiers that make the same classes.
    fn canonical(&self, write: &mut dyn FnMut(&[u8])) {
        match self {
            How::File { table, .. } => {
                write(b"table\n");
                table.canonical(write);
            }
            other => write(other.to_string().as_bytes()),
        }
    }
}

impl std::fmt::Display for How {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            How::Host => f.write_str("host"),
            How::PathSegment(number) => write!(f, "path_segment({number})"),
            How::Template(template) => write!(f, "{template}"),
            How::Pattern(pattern) => write!(f, "{pattern}"),
            How::File { path, .. } => write!(f, "the table {}", path.display()),
        }
    }
}

impl std::fmt::Display for Classifier {
    /// Writes it in short, as explanations have it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.how)
    }
}
