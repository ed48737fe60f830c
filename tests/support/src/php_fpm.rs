//! Debian's php-fpm with a configuration of its own, in a temporary directory.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::temp::TempDir;
use crate::wait::within;
use rustix::process::{Pid, Signal, kill_process};

/// A running php-fpm, and the directory with its scripts. Stopped and removed when dropped.
pub struct PhpFpm {
    server: Child,
    dir: TempDir,
}

impl PhpFpm {
    /// Starts php-fpm with this many processes. Scripts go into its [`root`](PhpFpm::root).
    ///
    /// # Panics
    /// If php-fpm is missing.
    #[track_caller]
    pub fn start(processes: usize) -> PhpFpm {
        let alone = ["-n", "-d", "zend_extension=opcache", "-d", "opcache.revalidate_freq=3600"];
        PhpFpm::with(processes, "", &alone)
    }

    /// The same with the modules of the machine, for an application that is installed elsewhere, and `more` lines for its pool.
    ///
    /// # Panics
    /// If php-fpm is missing.
    #[track_caller]
    pub fn of_application(processes: usize, more: &str) -> PhpFpm {
        PhpFpm::with(processes, more, &[])
    }

    #[track_caller]
    fn with(processes: usize, more: &str, arguments: &[&str]) -> PhpFpm {
        let dir = TempDir::new();
        fs::create_dir(dir.join("release")).expect("a directory can be made");
        let path = dir.path().display();
        let configuration = format!(
            "[global]\nerror_log = {path}/fpm.log\n\
             [www]\nlisten = {path}/fpm.sock\nlisten.mode = 0600\nuser = root\nping.path = /ping\n\
             pm = static\npm.max_children = {processes}\ncatch_workers_output = no\n\
             php_admin_flag[log_errors] = on\nphp_admin_flag[display_errors] = off\n\
             php_admin_value[post_max_size] = 64M\nphp_admin_value[upload_max_filesize] = 64M\n{more}\n"
        );
        fs::write(dir.join("fpm.conf"), configuration).expect("a file can be written");
        let mut command = Command::new(binary());
        command.arg("--nodaemonize").args(arguments);
        if rustix::process::getuid().is_root() {
            command.arg("--allow-to-run-as-root");
        }
        command.arg("--fpm-config").arg(dir.join("fpm.conf")).stdin(Stdio::null());
        let said = fs::File::create(dir.join("fpm.out")).expect("a file can be made");
        command.stdout(said.try_clone().expect("a file can be shared")).stderr(said);
        let server = command.spawn().expect("php-fpm starts");
        let mut fpm = PhpFpm { server, dir };
        within("php-fpm to be ready", || {
            let log = fs::read_to_string(fpm.dir.join("fpm.log")).unwrap_or_default();
            let ended = fpm.server.try_wait().ok().flatten();
            assert!(ended.is_none(), "php-fpm ended: {log}{}", fpm.said());
            log.contains("ready to handle connections").then_some(())
        });
        fpm
    }

    /// Whether there is a php-fpm.
    pub fn is_installed() -> bool {
        newest().is_some()
    }

    /// The document root.
    pub fn root(&self) -> PathBuf {
        self.dir.join("release")
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.join("fpm.sock")
    }

    /// A path beside the document root.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Writes a file below the document root.
    pub fn file(&self, name: &str, text: &str) {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a directory can be made");
        fs::write(path, text).expect("a file can be written");
    }

    fn said(&self) -> String {
        fs::read_to_string(self.dir.join("fpm.out")).unwrap_or_default()
    }
}

impl Drop for PhpFpm {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.server), Signal::TERM);
        let deadline = Instant::now() + Duration::from_secs(5);
        while matches!(self.server.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
        if thread::panicking() {
            let log = fs::read_to_string(self.dir.join("fpm.log")).unwrap_or_default();
            eprintln!("--- what php-fpm said ---\n{log}{}---", self.said());
        }
    }
}

/// The binary of the newest version. Debian names it by the version.
fn newest() -> Option<PathBuf> {
    let found = fs::read_dir("/usr/sbin").into_iter().flatten().flatten().map(|entry| entry.path());
    let is_fpm =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("php-fpm"));
    found.filter(is_fpm).max()
}

#[track_caller]
fn binary() -> PathBuf {
    newest().expect(
        "this test runs Debian's php-fpm, which is missing. Install it as root (apt-get install --no-install-recommends \
         php-fpm), or let ./check do it.",
    )
}
