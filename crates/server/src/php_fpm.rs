//! php-fpm on this machine: where its socket is, and whether it answers there.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// The address of php-fpm as a URL: its first socket at the usual places that answers, else the first that is there.
pub(crate) fn find() -> Option<String> {
    let sockets = sockets_in(Path::new("/run"));
    let answers = sockets.iter().find(|socket| probe(socket).is_ok());
    let socket = answers.or(sockets.first())?;
    Some(format!("fcgi+unix:{}", socket.display()))
}

/// The sockets of php-fpm at the usual places below `run`: those of Debian, where that of the newest version comes first among
/// those with a version in their names, then those of Fedora, Arch Linux and Alpine.
fn sockets_in(run: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(run.join("php")).into_iter().flatten().flatten();
    let mut versions: Vec<(Vec<u32>, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let version = name.to_str()?.strip_prefix("php")?.strip_suffix("-fpm.sock")?.to_owned();
            let numbers: Option<_> = version.split('.').map(|number| number.parse().ok()).collect();
            Some((numbers?, entry.path()))
        })
        .collect();
    versions.sort();
    let debian =
        std::iter::once(run.join("php/php-fpm.sock")).chain(versions.into_iter().rev().map(|(_, path)| path));
    let others = ["php-fpm/www.sock", "php-fpm/php-fpm.sock", "php-fpm.sock"].map(|name| run.join(name));
    debian.chain(others).filter(|path| path.exists()).collect()
}

/// Whether a process accepts connections at a socket. It does not wait.
///
/// # Errors
/// The reason why none does, with a remedy.
pub(crate) fn probe(path: &Path) -> Result<(), String> {
    let shown = path.display();
    match try_connect(path) {
        // A full queue is that of a process.
        Ok(()) | Err(Errno::AGAIN) => Ok(()),
        Err(Errno::NOENT) => Err(match sockets_in(Path::new("/run")).first() {
            Some(other) => format!("php-fpm has no socket at {shown}, but one at {}", other.display()),
            None => format!(
                "php-fpm has no socket at {shown}: install it (Debian: apt install php-fpm) or start it (systemctl start \
                 'php*-fpm')"
            ),
        }),
        Err(Errno::CONNREFUSED) => Err(format!(
            "php-fpm does not listen at {shown}, although its socket is there: start it (systemctl start 'php*-fpm')"
        )),
        Err(Errno::ACCESS) => Err(format!(
            "this user may not use the socket of php-fpm, {shown}: run Sandarac with the group of that file (ls -l), or set \
             listen.acl_users of php-fpm"
        )),
        Err(errno) => Err(format!("php-fpm cannot be reached at {shown}: {}", io::Error::from(errno))),
    }
}

fn try_connect(path: &Path) -> Result<(), Errno> {
    let address = SocketAddrUnix::new(path.as_os_str().as_bytes())?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// A directory with these files. Removed when dropped.
    struct Run(PathBuf);

    impl Run {
        fn with(name: &str, files: &[&str]) -> Run {
            let run = std::env::temp_dir().join(format!("sandarac-{name}-{}", std::process::id()));
            for file in files {
                let path = run.join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            Run(run)
        }
    }

    impl Drop for Run {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_socket_without_a_version_comes_first_then_that_of_the_newest() {
        let files = [
            "php/php8.2-fpm.sock",
            "php/php8.10-fpm.sock",
            "php/php-fpm.sock",
            "php/php8.2-fpm.pid",
            "php/phpx-fpm.sock",
            "php-fpm/www.sock",
        ];
        let run = Run::with("places", &files);
        let found = sockets_in(&run.0);
        let names: Vec<_> =
            found.iter().map(|path| path.strip_prefix(&run.0).unwrap().to_str().unwrap()).collect();
        let expected =
            ["php/php-fpm.sock", "php/php8.10-fpm.sock", "php/php8.2-fpm.sock", "php-fpm/www.sock"];
        assert_eq!(names, expected);
        assert_eq!(sockets_in(Path::new("/nowhere")), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_socket_without_a_listener_and_a_missing_one_have_other_remedies() {
        let run = Run::with("probe", &["x"]);
        let path = run.0.join("fpm.sock");
        assert!(probe(&path).unwrap_err().contains("php-fpm has no socket at"));
        let listener = UnixListener::bind(&path).unwrap();
        assert_eq!(probe(&path), Ok(()));
        drop(listener);
        let refused = probe(&path).unwrap_err();
        assert!(refused.contains("does not listen") && refused.contains("systemctl start"), "{refused}");
    }
}
