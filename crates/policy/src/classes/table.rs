//! A table that maps hosts and paths to classes.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::Subject;
use super::part::path;
use crate::pattern::{HostPattern, PathPattern, bare_host};

/// The most paths with stars that one host may have, because they are tried one by one.
const MAX_GLOBS: usize = 100;

/// A table. Of the lines that match a request, the most specific counts, wherever it is in the file. In order
/// of precedence:
///
/// - by host: a host without a star, then one with a star, the longer before the shorter, then a line without
///   a host;
/// - within a host: a path that matches alone, then those that match everything below them, the longer before
///   the shorter, then the first matching path with stars, then the whole host.
#[derive(Debug, Default)]
pub struct ClassTable {
    exact: HashMap<Box<[u8]>, Paths>,
    /// By suffix, which begins with a dot.
    under: HashMap<Box<[u8]>, Paths>,
    any: Paths,
    len: usize,
}

/// The paths of a host.
#[derive(Debug, Default)]
struct Paths {
    /// By the path, or the start of it.
    starts: BTreeMap<Box<[u8]>, Here>,
    /// The most slashes of a key in `starts`. The start of a path with more slashes cannot be among them.
    depth: usize,
    globs: Vec<(PathPattern, Class)>,
}

/// The classes of a path.
#[derive(Debug, Default)]
struct Here {
    /// For this path alone.
    alone: Option<Class>,
    /// For this path, unless it ends in a slash, and everything below it.
    below: Option<Class>,
}

/// A class, and the line that defined it.
#[derive(Debug)]
struct Class {
    name: Box<[u8]>,
    line: usize,
}

/// Why a line cannot be added to a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableConflict {
    /// An earlier line has another class for the same pattern.
    OtherClass {
        /// The number of the earlier line.
        line: usize,
        /// Its class.
        class: Box<[u8]>,
    },
    /// The host has the maximum number of paths with stars.
    TooManyGlobs,
}

impl fmt::Display for TableConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableConflict::OtherClass { line, class } => {
                let class = String::from_utf8_lossy(class);
                write!(f, "line {line} has another class for the same, {class:?}")
            }
            TableConflict::TooManyGlobs => write!(f, "a host has at most {MAX_GLOBS} paths with stars"),
        }
    }
}

impl std::error::Error for TableConflict {}

impl ClassTable {
    /// Sets the class of the requests that match a host and a path. `line` is the line number in the file,
    /// for reports of conflicts. A repeated pattern with the same class is allowed.
    ///
    /// # Errors
    /// [`TableConflict`]; the table is unchanged.
    pub fn add(
        &mut self,
        host: HostPattern,
        path: PathPattern,
        class: &[u8],
        line: usize,
    ) -> Result<(), TableConflict> {
        let paths = match host {
            HostPattern::Any => &mut self.any,
            HostPattern::Exact(name) => self.exact.entry(name.into_boxed_bytes()).or_default(),
            HostPattern::Under(suffix) => self.under.entry(suffix.into_boxed_bytes()).or_default(),
        };
        let new = paths.add(path, Class { name: class.into(), line })?;
        self.len += usize::from(new);
        Ok(())
    }

    /// The number of its patterns.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no pattern.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The class of a request. A host that begins with `www.` and is not in the table is looked up without
    /// it.
    pub(crate) fn class<'t>(&'t self, subject: &Subject<'_>) -> Option<&'t [u8]> {
        if self.len == 0 {
            return None;
        }
        let path = path(subject.target);
        let bare = bare_host(subject.host);
        // No name in the DNS is longer (RFC 1035 §2.3.4), and neither is a pattern.
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

    /// Passes its content to `write`, the same for equal tables.
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
    /// Adds a path. Returns false if it was present already.
    fn add(&mut self, path: PathPattern, class: Class) -> Result<bool, TableConflict> {
        let place = match path {
            PathPattern::Exact(start) => &mut self.here(start).alone,
            PathPattern::Below(start) | PathPattern::Prefix(start) => &mut self.here(start).below,
            PathPattern::Glob(_) => match self.globs.iter().find(|(glob, _)| *glob == path) {
                Some((_, first)) => return class.agrees_with(first),
                None if self.globs.len() == MAX_GLOBS => {
                    return Err(TableConflict::TooManyGlobs);
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
        // The starts of the path, from the shortest: up to each slash, without and with it. The first slash
        // begins every path, and adds nothing to the host.
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
    /// Returns false for a repeated pattern; an error if its class differs from that of the `first`.
    fn agrees_with(&self, first: &Class) -> Result<bool, TableConflict> {
        match self.name == first.name {
            true => Ok(false),
            false => Err(TableConflict::OtherClass { line: first.line, class: first.name.clone() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_message::Fields;

    fn below(path: &str) -> PathPattern {
        PathPattern::Below(path.as_bytes().into())
    }

    #[test]
    fn the_most_exact_line_counts() {
        let mut table = ClassTable::default();
        let glob = PathPattern::Glob(["/", ".php"].map(|part| part.as_bytes().into()).into());
        for (line, (host, path, class)) in (1..).zip([
            (HostPattern::Any, below(""), "rest"),
            (HostPattern::Under(".example".into()), below(""), "under"),
            (HostPattern::Exact("a.example".into()), below("/blog"), "blog"),
            (HostPattern::Exact("a.example".into()), PathPattern::Exact(b"/blog"[..].into()), "front"),
            (HostPattern::Exact("a.example".into()), glob, "php"),
        ]) {
            table.add(host, path, class.as_bytes(), line).unwrap();
        }
        for (host, target, class) in [
            ("A.example:80", "/blog", "front"),
            ("www.a.example", "/blog/x?y", "blog"),
            ("a.example", "/x.php", "php"),
            ("a.example", "/", "under"),
            ("example", "/", "rest"),
        ] {
            let (host, target) = (host.as_bytes(), target.as_bytes());
            let subject = Subject { host, method: b"GET", target, fields: Fields::default() };
            assert_eq!(table.class(&subject), Some(class.as_bytes()), "{subject:?}");
        }
    }

    #[test]
    fn a_pattern_has_one_class() {
        let mut table = ClassTable::default();
        let mut add = |class: &str, line| table.add(HostPattern::Any, below("/a"), class.as_bytes(), line);
        assert_eq!((add("a", 1), add("a", 2)), (Ok(()), Ok(())));
        assert_eq!(add("b", 3), Err(TableConflict::OtherClass { line: 1, class: b"a"[..].into() }));
        assert_eq!(table.len(), 1);
    }
}
