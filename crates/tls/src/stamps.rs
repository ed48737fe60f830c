//! Changes of files, found by comparison of what the file system states about them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::directory::in_subdirectory;
use crate::server::ServerSettings;

/// What the file system states about the files of some settings. Symbolic links are followed, so that a link that is
/// turned to another file is a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    device_and_inode: (u64, u64),
    size: u64,
    modified: Option<SystemTime>,
}

impl ServerSettings {
    /// The state of all files that these settings name.
    pub fn stamps(&self) -> Stamps {
        let mut paths: Vec<PathBuf> = Vec::new();
        for files in &self.certificates {
            paths.extend([files.chain.clone(), files.key.clone()]);
        }
        if let Some(directory) = &self.directory {
            paths.push(directory.clone());
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            for entry in entries {
                let path = entry.path();
                paths.extend(in_subdirectory(&path).into_iter().flat_map(|files| [files.chain, files.key]));
                paths.push(path);
            }
        }
        if let Some(clients) = &self.client_certificates {
            paths.extend(clients.ca.iter().chain(&clients.crl).cloned());
        }
        paths.extend(self.ticket_secret_file.clone());
        paths.sort();
        paths.dedup();
        let stamped = paths.into_iter().map(|path| {
            let stamp = stamp(&path);
            (path, stamp)
        });
        Stamps(stamped.collect())
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(path).ok()?;
    Some(Stamp {
        device_and_inode: (metadata.dev(), metadata.ino()),
        size: metadata.len(),
        modified: metadata.modified().ok(),
    })
}

/// Decides when changed files are loaded: once they have stayed the same from one look to the next, so that chain and
/// key that are replaced one after the other are loaded together.
#[derive(Clone, Debug)]
pub struct Watch {
    loaded: Stamps,
    changed: Option<Stamps>,
}

impl Watch {
    /// Begins with the state from before the files were loaded.
    pub fn new(loaded: Stamps) -> Watch {
        Watch { loaded, changed: None }
    }

    /// Takes the present state. Returns whether the files should be loaded now; they are not loaded again before the
    /// next change, even if they are refused.
    pub fn look(&mut self, now: Stamps) -> bool {
        if now == self.loaded {
            self.changed = None;
            return false;
        }
        if self.changed.as_ref() != Some(&now) {
            self.changed = Some(now);
            return false;
        }
        self.changed = None;
        self.loaded = now;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::certificate::CertificateFiles;
    use crate::made_tests::Directory;

    fn settings(directory: &Directory) -> ServerSettings {
        let file = |name: &str| directory.0.join(name);
        let files = CertificateFiles { chain: file("live/a.crt"), key: file("live/a.key") };
        ServerSettings { directory: Some(file("more")), ..ServerSettings::of(vec![files]) }
    }

    #[test]
    fn files_are_loaded_when_they_have_stayed_the_same() {
        let directory = Directory::new();
        let settings = settings(&directory);
        fs::create_dir(directory.0.join("live")).expect("a directory");
        let mut watch = Watch::new(settings.stamps());
        assert!(!watch.look(settings.stamps()));
        directory.write("live/a.crt", "new");
        assert!(!watch.look(settings.stamps()), "the key may follow");
        directory.write("live/a.key", "new");
        assert!(!watch.look(settings.stamps()), "the key has just come");
        assert!(watch.look(settings.stamps()));
        assert!(!watch.look(settings.stamps()), "loaded, or refused, already");
    }

    #[test]
    fn a_link_that_is_turned_is_a_change() {
        let directory = Directory::new();
        for name in ["first", "second"] {
            fs::create_dir(directory.0.join(name)).expect("a directory");
            directory.write(&format!("{name}/a.crt"), name);
            directory.write(&format!("{name}/a.key"), name);
        }
        symlink("first", directory.0.join("live")).expect("a link");
        let settings = settings(&directory);
        let mut watch = Watch::new(settings.stamps());
        symlink("second", directory.0.join("next")).expect("a link");
        fs::rename(directory.0.join("next"), directory.0.join("live")).expect("a rename");
        assert!(!watch.look(settings.stamps()));
        assert!(watch.look(settings.stamps()));
    }

    #[test]
    fn files_that_come_and_go_in_the_directory_are_changes() {
        let directory = Directory::new();
        let settings = settings(&directory);
        let mut watch = Watch::new(settings.stamps());
        let mut look_twice = |expected: bool| {
            assert!(!watch.look(settings.stamps()));
            assert_eq!(watch.look(settings.stamps()), expected);
        };
        look_twice(false);
        fs::create_dir(directory.0.join("more")).expect("a directory");
        look_twice(true);
        let path = directory.write("more/b.pem", "both");
        look_twice(true);
        fs::remove_file(path).expect("a file");
        look_twice(true);
    }

    #[test]
    fn links_that_are_turned_in_a_subdirectory_of_certbot_are_changes() {
        let directory = Directory::new();
        let live = directory.0.join("more/a.example");
        fs::create_dir_all(&live).expect("directories");
        directory.write("fullchain1.pem", "first");
        directory.write("fullchain2.pem", "second");
        symlink("../../fullchain1.pem", live.join("fullchain.pem")).expect("a link");
        let settings = settings(&directory);
        let mut watch = Watch::new(settings.stamps());
        fs::remove_file(live.join("fullchain.pem")).expect("a link");
        symlink("../../fullchain2.pem", live.join("fullchain.pem")).expect("a link");
        assert!(!watch.look(settings.stamps()));
        assert!(watch.look(settings.stamps()));
    }
}
