//! Files that a VCL program includes, read from the disk.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use sandarac_message::glob::Glob;
use sandarac_vcl::{IncludeRequest, LoadError, LoadedFile, Loader};

/// The folders of included files without flags, after that of the program.
const FOLDERS: [&str; 2] = ["/etc/varnish", "/usr/share/varnish/vcl"];

/// A reader of included files. A path that begins with `/` is absolute, one that begins with `./` is relative
/// to the including file; others are looked for in folders, in order.
pub(super) struct IncludeFiles {
    folders: Vec<PathBuf>,
    /// Files that were read, so that a program sees one state of each.
    files: HashMap<PathBuf, Arc<[u8]>>,
}

impl IncludeFiles {
    /// A reader for the program at `main`, with the given folders, or the usual ones if there are none.
    pub(super) fn new(main: &Path, folders: &[PathBuf]) -> IncludeFiles {
        let usual = || {
            let own = main.parent().map(Path::to_path_buf);
            own.into_iter().chain(FOLDERS.iter().map(PathBuf::from)).collect()
        };
        let folders = if folders.is_empty() { usual() } else { folders.to_vec() };
        IncludeFiles { folders, files: HashMap::new() }
    }

    /// The paths that a path may mean, in order.
    fn candidates(&self, path: &str, from: &str) -> Vec<PathBuf> {
        if path.starts_with('/') {
            return vec![PathBuf::from(path)];
        }
        match path.strip_prefix("./") {
            Some(rest) => vec![Path::new(from).parent().unwrap_or(Path::new("")).join(rest)],
            None => self.folders.iter().map(|folder| folder.join(path)).collect(),
        }
    }

    fn read(&mut self, path: &Path) -> Result<LoadedFile, LoadError> {
        let name = path.display().to_string();
        if let Some(text) = self.files.get(path) {
            return Ok(LoadedFile { name, text: text.clone() });
        }
        let text = fs::read(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => LoadError::NotFound,
            _ => LoadError::Unreadable(error.to_string()),
        })?;
        let text: Arc<[u8]> = Arc::from(text);
        self.files.insert(path.to_path_buf(), text.clone());
        Ok(LoadedFile { name, text })
    }
}

impl Loader for IncludeFiles {
    fn load(&mut self, request: IncludeRequest<'_>) -> Result<Vec<LoadedFile>, LoadError> {
        let candidates = self.candidates(request.path, request.from);
        if request.is_pattern {
            let found = candidates.iter().map(|pattern| matches(pattern)).find(|found| !found.is_empty());
            let found = found.ok_or(LoadError::NoMatch)?;
            return found.iter().map(|path| self.read(path)).collect();
        }
        for path in candidates {
            match self.read(&path) {
                Err(LoadError::NotFound) => {}
                found => return found.map(|file| vec![file]),
            }
        }
        Err(LoadError::NotFound)
    }
}

/// The files that match a pattern, in the order of their names. `*` stands for any part of one name, and does
/// not match the dot that a hidden name begins with.
fn matches(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let Component::Normal(name) = component else {
            found.iter_mut().for_each(|path| path.push(component));
            continue;
        };
        let name = name.to_string_lossy();
        if !name.contains('*') {
            found.iter_mut().for_each(|path| path.push(&*name));
            continue;
        }
        let glob = Glob::new(name.as_bytes());
        let names_below = |folder: &PathBuf| {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name()).collect::<Vec<_>>()
        };
        found = found
            .iter()
            .flat_map(|folder| {
                let mut names = names_below(folder);
                names.retain(|entry| {
                    let entry = entry.to_string_lossy();
                    glob.matches(entry.as_bytes()) && (name.starts_with('.') || !entry.starts_with('.'))
                });
                names.sort();
                names.into_iter().map(|name| folder.join(name)).collect::<Vec<_>>()
            })
            .collect();
    }
    found.retain(|path| path.is_file());
    found
}
