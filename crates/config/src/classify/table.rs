//! A table of hosts, paths and the classes of what is there.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};

use sandarac_balance::MAX_CLASS_BYTES;

use crate::classify::Subject;
use crate::classify::part::path;
use crate::pattern::{HostPattern, PathPattern, bare_host};
use crate::report::Complaint;
use crate::value::Text;

/// The most bytes of a table.
pub const TABLE_BYTES: usize = 16 << 20;

/// The most lines of a table that name a class.
const LINES: usize = 100_000;

/// The longest line, in bytes.
const LINE: usize = 4096;

/// The most paths with stars that one host may have: they are tried one by one.
const GLOBS: usize = 100;

/// A table. Of the lines that match a request the most exact counts, wherever it stands: a host without a star before one
/// with a star, the longer before the shorter, and any of them before a line without a host; for one host, a path that
/// matches alone before those that match what is below them, the longer before the shorter; then the paths with stars, the
/// first of them that matches; and last what is for the whole host.
#[derive(Debug, Default)]
pub(crate) struct Table {
    exact: HashMap<Box<[u8]>, Paths>,
    /// By suffixes, which begin with a dot.
    under: HashMap<Box<[u8]>, Paths>,
    any: Paths,
    len: usize,
}

/// The paths of a host.
#[derive(Debug, Default)]
struct Paths {
    /// By what paths are or begin with.
    starts: BTreeMap<Box<[u8]>, Here>,
    /// The most slashes of a key in `starts`: the start of a path with more of them is there no longer.
    depth: usize,
    globs: Vec<(PathPattern, Class)>,
}

/// What is known of a path.
#[derive(Debug, Default)]
struct Here {
    /// Of this path alone.
    alone: Option<Class>,
    /// Of this path, unless it ends in a slash, and all that is below it.
    below: Option<Class>,
}

/// A class, and the line that gave it.
#[derive(Debug)]
struct Class {
    name: Box<[u8]>,
    line: usize,
}

/// Why a file is no table of classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableError {
    /// The file.
    pub path: PathBuf,
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong with it, in one sentence.
    pub message: String,
    /// What to do, or what was probably meant.
    pub help: Option<String>,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for TableError {}

/// A complaint about a line.
#[derive(Debug)]
pub(crate) struct BadLine {
    line: usize,
    complaint: Complaint,
}

impl BadLine {
    pub(crate) fn of(self, path: &Path) -> TableError {
        let BadLine { line, complaint: Complaint { message, help } } = self;
        TableError { path: path.to_path_buf(), line, message, help }
    }
}

impl Table {
    /// Reads a table: lines of a pattern and a class, with white space between; `#` at the start of a line or after white
    /// space begins a comment. At least one line has a class.
    pub(crate) fn read(text: &[u8]) -> Result<Table, BadLine> {
        let bad = |line: usize, message: String| BadLine { line, complaint: Complaint::new(message) };
        if text.len() > TABLE_BYTES {
            return Err(bad(1, format!("the file has more than {TABLE_BYTES} bytes")));
        }
        let mut table = Table::default();
        for (number, line) in (1..).zip(text.split(|&byte| byte == b'\n')) {
            if line.len() > LINE {
                return Err(bad(number, format!("the line has more than {LINE} bytes")));
            }
            let line =
                std::str::from_utf8(line).map_err(|_| bad(number, "the line is not UTF-8".to_owned()))?;
            let mut words = line.split_whitespace().take_while(|word| !word.starts_with('#'));
            let Some(pattern) = words.next() else { continue };
            let (Some(class), None) = (words.next(), words.next()) else {
                return Err(bad(number, "a line has a pattern and a class, with a blank between".to_owned()));
            };
            if class.len() > MAX_CLASS_BYTES {
                return Err(bad(number, format!("a class has at most {MAX_CLASS_BYTES} bytes")));
            }
            if table.len == LINES {
                return Err(bad(number, format!("the file has more than {LINES} lines with a class")));
            }
            let class = Class { name: class.as_bytes().into(), line: number };
            let added = table.add(pattern, class);
            added.map_err(|complaint| BadLine { line: number, complaint })?;
        }
        if table.len == 0 {
            // More likely one that is being written than one that takes all classes away.
            return Err(bad(1, "no line of the file has a class".to_owned()));
        }
        Ok(table)
    }

    fn add(&mut self, pattern: &str, class: Class) -> Result<(), Complaint> {
        let (host, path) = pattern.split_at(pattern.find(['/', '=']).unwrap_or(pattern.len()));
        if path.starts_with("//") && host.ends_with(':') {
            // It says so, and what to write.
            HostPattern::from_text(pattern)?;
        }
        let host = if host.is_empty() { HostPattern::Any } else { HostPattern::from_text(host)? };
        let paths = match host {
            HostPattern::Any => &mut self.any,
            HostPattern::Exact(name) => self.exact.entry(name.into_boxed_bytes()).or_default(),
            HostPattern::Under(suffix) => self.under.entry(suffix.into_boxed_bytes()).or_default(),
        };
        let path =
            if path.is_empty() { PathPattern::Below(Box::default()) } else { PathPattern::from_text(path)? };
        let new = paths.add(path, class)?;
        self.len += usize::from(new);
        Ok(())
    }

    /// How many patterns it holds.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The class of a request. A host that begins with `www.` and is not in the table goes by the name without.
    pub(crate) fn class<'t>(&'t self, subject: &Subject<'_>) -> Option<&'t [u8]> {
        if self.len == 0 {
            return None;
        }
        let path = path(subject.target);
        let bare = bare_host(subject.host);
        // No name in the DNS is longer (RFC 1035 §2.3.4), and none of a pattern is either.
        let mut buffer = [0; 255];
        let name: &[u8] = match buffer.get_mut(..bare.len()) {
            Some(name) => {
                name.copy_from_slice(bare);
                name.make_ascii_lowercase();
                name
            }
            None => &[],
        };
        let exact = self.exact.get(name).or_else(|| self.exact.get(name.strip_prefix(b"www.")?));
        let of = |paths: &'t Paths| paths.class(&path);
        if let Some(class) = exact.and_then(of) {
            return Some(class);
        }
        if !self.under.is_empty() {
            let dots = name.iter().enumerate().filter(|&(at, &byte)| byte == b'.' && at > 0);
            if let Some(class) = dots.filter_map(|(at, _)| self.under.get(&name[at..])).find_map(of) {
                return Some(class);
            }
        }
        of(&self.any)
    }

    /// Gives `write` what it says, the same for tables that say the same.
    pub(crate) fn canonical(&self, write: &mut dyn FnMut(&[u8])) {
        let mut hosts: Vec<(&[u8], &[u8], &Paths)> = vec![(b"*", b"", &self.any)];
        hosts.extend(self.under.iter().map(|(suffix, paths)| (&b"*"[..], &**suffix, paths)));
        hosts.extend(self.exact.iter().map(|(name, paths)| (&b""[..], &**name, paths)));
        hosts.sort_by_key(|&(star, name, _)| (star, name));
        for (star, name, paths) in hosts {
            let mut line = |path: &[&[u8]], class: &Class| {
                [star, name].iter().chain(path).for_each(|part| write(part));
                write(b" ");
                write(&class.name);
                write(b"\n");
            };
            for (start, Here { alone, below }) in &paths.starts {
                alone.iter().for_each(|class| line(&[b"=", start], class));
                below.iter().for_each(|class| line(&[start], class));
            }
            for (glob, class) in &paths.globs {
                line(&[glob.to_string().as_bytes()], class);
            }
        }
    }
}

impl Paths {
    /// Whether it was not there already.
    fn add(&mut self, path: PathPattern, class: Class) -> Result<bool, Complaint> {
        let place = match path {
            PathPattern::Exact(start) => &mut self.here(start).alone,
            PathPattern::Below(start) | PathPattern::Prefix(start) => &mut self.here(start).below,
            PathPattern::Glob(_) => match self.globs.iter().find(|(glob, _)| *glob == path) {
                Some((_, first)) => return class.agrees_with(first),
                None if self.globs.len() == GLOBS => {
                    return Err(Complaint::new(format!("a host has at most {GLOBS} paths with stars")));
                }
                None => {
                    self.globs.push((path, class));
                    return Ok(true);
                }
            },
        };
        match place {
            Some(first) => class.agrees_with(first),
            None => {
                *place = Some(class);
                Ok(true)
            }
        }
    }

    fn here(&mut self, start: Box<[u8]>) -> &mut Here {
        self.depth = self.depth.max(start.iter().filter(|&&byte| byte == b'/').count());
        self.starts.entry(start).or_default()
    }

    fn class(&self, path: &[u8]) -> Option<&[u8]> {
        let whole = self.starts.get(path);
        let alone = whole.and_then(|here| here.alone.as_ref());
        // What begins the path, from the shortest: nothing up to each slash, then the slash with it. The first slash begins
        // every path, and says no more than the host.
        let slashes = path.iter().enumerate().filter(|&(_, &byte)| byte == b'/').take(self.depth + 1).skip(1);
        let starts = slashes.flat_map(|(at, _)| [&path[..at], &path[..=at]]);
        let below_of = |start: &[u8]| self.starts.get(start)?.below.as_ref();
        let below = || {
            let longest = starts.filter_map(below_of).last();
            whole.filter(|_| path != b"/").and_then(|here| here.below.as_ref()).or(longest)
        };
        let glob = || self.globs.iter().find(|(glob, _)| glob.matches(path)).map(|(_, class)| class);
        let anything = || below_of(b"/").or_else(|| below_of(b""));
        alone.or_else(below).or_else(glob).or_else(anything).map(|class| &*class.name)
    }
}

impl Class {
    /// That the pattern is not new; refused where it has another class than the `first` time.
    fn agrees_with(&self, first: &Class) -> Result<bool, Complaint> {
        match self.name == first.name {
            true => Ok(false),
            false => {
                let name = String::from_utf8_lossy(&first.name);
                Err(Complaint::new(format!("line {} has another class for the same, {name:?}", first.line)))
            }
        }
    }
}
