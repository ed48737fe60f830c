//! MediaWiki, installed into a directory of its own and served by PHP.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use sandarac_test_support::{Address, TempDir, within};

/// Where Debian puts MediaWiki.
const PROGRAM: &str = "/usr/share/mediawiki";
/// How long a script of MediaWiki's may take: that which makes the database takes a few, on a slow disk many more.
const SECONDS: &str = "120";
/// The wiki's only account. The name is in no page that does not show who is logged in.
pub(crate) const EDITOR: &str = "Edwina";
pub(crate) const PASSWORD: &str = "correct horse battery staple";
/// What the pages hold that the wiki begins with.
pub(crate) const TEXT: &str = "Nothing has happened yet.";

/// A running wiki: its own files and database, and a process with several workers. Stopped and removed when dropped.
pub(crate) struct Wiki {
    server: Child,
    address: Address,
    dir: TempDir,
}

impl Wiki {
    /// Installs a wiki with a main page and the pages `News` and `Quiet`, and starts it on a free port.
    ///
    /// # Panics
    /// If a Debian package is missing, with its name.
    #[track_caller]
    pub(crate) fn start() -> Wiki {
        need_packages();
        let dir = TempDir::new();
        install(&dir);
        for page in ["News", "Quiet"] {
            let text = File::create_new(dir.join(page)).and_then(|mut file| file.write_all(TEXT.as_bytes()));
            text.expect("a file can be written");
            let text = File::open(dir.join(page)).expect("it was written");
            run(maintenance(&dir, "edit.php").arg(page).stdin(text));
        }
        // Tells which requests came, before they are answered; then PHP goes on as if this were not there.
        let router = "<?php file_put_contents( __DIR__ . '/requests', \
                      \"{$_SERVER['REQUEST_METHOD']} {$_SERVER['REQUEST_URI']}\\n\", FILE_APPEND | LOCK_EX );\n\
                      return false;\n";
        fs::write(dir.join("router.php"), router).expect("a file can be written");
        let output = File::create(dir.join("server.log")).expect("a file can be made");
        let server = php(&dir)
            .env("PHP_CLI_SERVER_WORKERS", "4")
            .args(["-S", "127.0.0.1:0", "-t", PROGRAM])
            .arg(dir.join("router.php"))
            .stdin(Stdio::null())
            .stderr(output)
            .process_group(0)
            .spawn()
            .expect("PHP starts");
        // From here on the process ends with the value, whatever happens.
        let mut wiki = Wiki { server, address: Address::parse("127.0.0.1:0"), dir };
        wiki.address = within("PHP to tell where it listens", || {
            let log = fs::read_to_string(wiki.dir.join("server.log")).unwrap_or_default();
            let told = log.split_once("Development Server (http://")?.1.split_once(')')?.0;
            Some(Address::parse(told))
        });
        wiki
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Makes it known as the site at `proxy`, which it purges of what changes.
    pub(crate) fn stand_behind(&self, proxy: &Address) {
        let settings = format!(
            "\n$wgServer = 'http://{proxy}';\n$wgUseCdn = true;\n$wgCdnServers = [ '{proxy}' ];\n\
             $wgCdnServersNoPurge = [ '127.0.0.1' ];\n"
        );
        let file = OpenOptions::new().append(true).open(self.dir.join("LocalSettings.php"));
        file.and_then(|mut file| file.write_all(settings.as_bytes())).expect("the settings can be written");
    }

    /// The requests that came to it so far, as `GET /index.php/Main_Page`.
    pub(crate) fn requests(&self) -> Vec<String> {
        let log = fs::read_to_string(self.dir.join("requests")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

impl Drop for Wiki {
    fn drop(&mut self) {
        // An interrupt ends the workers, and PHP itself once they have ended; whatever it holds up is killed.
        let group = Pid::from_child(&self.server);
        let _ = kill_process_group(group, Signal::INT);
        let deadline = Instant::now() + Duration::from_secs(5);
        while matches!(self.server.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.server.wait();
        if thread::panicking() {
            let log = fs::read_to_string(self.dir.join("server.log")).unwrap_or_default();
            eprintln!("--- what PHP said ---\n{log}---");
        }
    }
}

/// Makes the database, the account and `LocalSettings.php`.
fn install(dir: &TempDir) {
    fs::create_dir(dir.join("data")).expect("a directory can be made");
    let mut command = maintenance(dir, "install.php");
    command.args(["--dbtype", "sqlite", "--dbname", "wiki", "--dbpath"]).arg(dir.join("data"));
    // The address is not known yet.
    command.arg("--confpath").arg(dir.path()).args(["--server", "http://127.0.0.1", "--scriptpath", ""]);
    command.args(["--pass", PASSWORD, "Village", EDITOR]);
    run(&mut command);
}

fn php(dir: &TempDir) -> Command {
    in_wiki(dir, "php")
}

fn in_wiki(dir: &TempDir, program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir.path()).env("MW_CONFIG_FILE", dir.join("LocalSettings.php"));
    command
}

/// A script of MediaWiki's, which is ended if it takes longer than [`SECONDS`].
fn maintenance(dir: &TempDir, script: &str) -> Command {
    let mut command = in_wiki(dir, "timeout");
    command.stdin(Stdio::null()).args(["--kill-after=5", SECONDS, "php"]);
    command.arg(Path::new(PROGRAM).join("maintenance").join(script));
    command
}

/// Runs a script that reads no more than it is given, to its end.
#[track_caller]
fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let said =
        [output.stdout, output.stderr].map(|stream| String::from_utf8_lossy(&stream).into_owned()).concat();
    assert_ne!(
        output.status.code(),
        Some(124),
        "{command:?} took longer than {SECONDS} s. If the disk is slow, let TMPDIR name a directory in memory, such as \
         /dev/shm. It said: {said}"
    );
    assert!(output.status.success(), "{command:?} failed: {said}");
}

/// # Panics
/// If a Debian package is missing that the wiki needs, with the names of all that are.
#[track_caller]
fn need_packages() {
    let modules = Command::new("php").arg("-m").output().map(|output| output.stdout).unwrap_or_default();
    let modules = String::from_utf8_lossy(&modules).to_lowercase();
    let has_module = |name: &str| modules.lines().any(|line| line == name);
    let needs = [
        ("php-cli", has_module("core")),
        ("php-sqlite3", has_module("pdo_sqlite")),
        ("php-mbstring", has_module("mbstring")),
        ("php-xml", has_module("dom")),
        ("php-intl", has_module("intl")),
        ("mediawiki", Path::new(PROGRAM).join("maintenance/install.php").exists()),
    ];
    let missing: Vec<&str> = needs.iter().filter(|(_, there)| !there).map(|(package, _)| *package).collect();
    assert!(
        missing.is_empty(),
        "this test runs Debian's MediaWiki, and these packages are missing: {0}. Install them as root \
         (apt-get install --no-install-recommends {0}), or let ./check do it.",
        missing.join(" ")
    );
}
