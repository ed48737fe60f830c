//! MediaWiki, installed into a directory of its own and run by php-fpm.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use sandarac_test_support::{Address, PhpFpm, TempDir};

/// Where Debian puts MediaWiki.
const PROGRAM: &str = "/usr/share/mediawiki";
/// How long a script of MediaWiki's may take: that which makes the database takes a few, on a slow disk many more.
const SECONDS: &str = "120";
/// The wiki's only account. The name is in no page that does not show who is logged in.
pub(crate) const EDITOR: &str = "Edwina";
pub(crate) const PASSWORD: &str = "correct horse battery staple";
/// What the pages hold that the wiki begins with.
pub(crate) const TEXT: &str = "Nothing has happened yet.";

/// A running wiki: its own files and database, and a php-fpm with several processes. Stopped and removed when dropped.
pub(crate) struct Wiki {
    server: PhpFpm,
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
        // Tells which requests came, before they are answered.
        let log = "<?php file_put_contents( __DIR__ . '/requests', \
                   \"{$_SERVER['REQUEST_METHOD']} {$_SERVER['REQUEST_URI']}\\n\", FILE_APPEND | LOCK_EX );\n";
        fs::write(dir.join("log.php"), log).expect("a file can be written");
        let path = dir.path().display();
        let more = format!(
            "env[MW_CONFIG_FILE] = {path}/LocalSettings.php\nphp_admin_value[auto_prepend_file] = {path}/log.php"
        );
        Wiki { server: PhpFpm::of_application(4, &more), dir }
    }

    /// The socket of its php-fpm, and the directory with its uploads.
    pub(crate) fn places(&self) -> (String, String) {
        (self.server.socket().display().to_string(), self.dir.path().display().to_string())
    }

    /// Makes it known as the site at `proxy`, which it purges of what changes.
    pub(crate) fn stand_behind(&self, proxy: &Address) {
        let settings = format!(
            "\n$wgServer = 'http://{proxy}';\n$wgUseCdn = true;\n$wgCdnServers = [ '{proxy}' ];\n\
             $wgCdnServersNoPurge = [ '127.0.0.1' ];\n$wgUsePathInfo = true;\n$wgEnableUploads = true;\n$wgUploadDirectory = '{0}/images';\n\
             $wgUploadPath = '/images';\n$wgFileExtensions[] = 'txt';\n",
            self.dir.path().display()
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

/// Makes the database, the account and `LocalSettings.php`.
fn install(dir: &TempDir) {
    for name in ["data", "images"] {
        fs::create_dir(dir.join(name)).expect("a directory can be made");
    }
    let mut command = maintenance(dir, "install.php");
    command.args(["--dbtype", "sqlite", "--dbname", "wiki", "--dbpath"]).arg(dir.join("data"));
    // The address is not known yet.
    command.arg("--confpath").arg(dir.path()).args(["--server", "http://127.0.0.1", "--scriptpath", ""]);
    command.args(["--pass", PASSWORD, "Village", EDITOR]);
    run(&mut command);
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
        ("php-fpm", PhpFpm::is_installed()),
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
