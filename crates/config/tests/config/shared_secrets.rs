//! The files of secrets and of the password of the shared tier, read by a scripted reader.

use std::io;
use std::path::Path;

use sandarac_config::{Credentials, Diagnostics, SecretContent, Warning};
use sandarac_wire::memcached::Login;

use crate::{BASE, load};

const NEW: &[u8] = b"new: 0123456789abcdef0123456789abcdef";
const OLD: &[u8] = b"old: 0123456789abcdef0123456789abcdef";

/// What reading the files named in `[cache.shared]` gives, if they have these contents and modes.
fn credentials(more: &str, files: &[(&str, &[u8], u32)]) -> Result<(Credentials, Vec<Warning>), Diagnostics> {
    let text = format!("{BASE}[[route]]\npool = \"app\"\n[cache.shared]\nservers = \"127.0.0.1\"\n{more}\n");
    load(&text).cache.shared.unwrap().credentials(|path: &Path| {
        let file = files.iter().find(|(name, ..)| Path::new(name) == path);
        let (_, bytes, mode) = file.ok_or(io::ErrorKind::NotFound)?;
        Ok(SecretContent { bytes: bytes.to_vec(), mode: *mode })
    })
}

fn refused(more: &str, files: &[(&str, &[u8], u32)]) -> String {
    credentials(more, files).unwrap_err().to_string()
}

fn warned(more: &str, files: &[(&str, &[u8], u32)]) -> Vec<String> {
    let (_, warnings) = credentials(more, files).unwrap_or_else(|errors| panic!("{errors}"));
    warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn without_files_entries_have_checksums_and_nobody_logs_in() {
    let (credentials, warnings) = credentials("", &[]).unwrap();
    assert!(warnings.is_empty() && credentials.login.is_none());
    assert_eq!(
        format!("{:?}", credentials.sealer),
        format!("{:?}", sandarac_wire::entry::Sealer::checksum())
    );
}

#[test]
fn the_first_secret_seals_and_the_second_verifies() {
    use sandarac_wire::entry::{Sealer, Secret};
    let files = [("/new", NEW, 0o100_640), ("/old", OLD, 0o600), ("/password", &b"pass\r\n"[..], 0o400)];
    let more = "secret_file = [\"/new\", \"/old\"]\nuser = \"a\"\npassword_file = \"/password\"";
    let (made, warnings) = credentials(more, &files).unwrap();
    assert!(warnings.is_empty());
    let expected = Sealer::keyed(Secret::new(NEW).unwrap(), Some(Secret::new(OLD).unwrap()));
    assert_eq!(format!("{:?}", made.sealer), format!("{expected:?}"));
    assert_eq!(made.login, Some(Login::new("a", "pass").unwrap()));
}

#[test]
fn a_file_that_is_no_secret_is_refused_with_the_line_that_names_it() {
    let expected = "\
error: cannot read /new: entity not found
 --> sandarac.toml:9:15
  |
9 | secret_file = \"/new\"
  |               ^^^^^^
  = help: make one with: (umask 077; openssl rand -hex 32 > /new), and copy it to all nodes
";
    assert_eq!(refused("secret_file = \"/new\"", &[]), expected);
    let short = refused("secret_file = \"/new\"", &[("/new", &NEW[..31], 0o600)]);
    assert!(
        short.starts_with("error: /new holds a secret of 31 bytes; at least 32 are needed\n --> "),
        "{short}"
    );
    assert!(short.contains("help: make one with: (umask 077; openssl rand -hex 32 > /new)"), "{short}");
    let long = refused("secret_file = \"/new\"", &[("/new", &[7; 4097], 0o600)]);
    assert!(long.contains("/new has more than 4096 bytes"), "{long}");
    let both = refused("secret_file = [\"/new\", \"/old\"]", &[]);
    assert!(both.contains("cannot read /new") && both.contains("cannot read /old"), "{both}");
}

#[test]
fn a_password_that_memcached_does_not_accept_is_refused_and_not_shown() {
    let refusal = |password: &[u8]| {
        refused("user = \"a\"\npassword_file = \"/password\"", &[("/password", password, 0o600)])
    };
    for password in [&b"hunter 2"[..], b"hunter2\n\n", b"hunter2\xff", b"", b"\n"] {
        let text = refusal(password);
        assert!(text.starts_with("error: ") && text.contains("/password"), "{text}");
        assert!(text.contains("password_file = \"/password\"") && !text.contains("hunter"), "{text}");
    }
}

#[test]
fn a_file_open_to_every_user_gets_a_warning() {
    let secret = "secret_file = \"/new\"";
    let open = warned(secret, &[("/new", NEW, 0o100_644)]);
    assert!(
        open[0].starts_with("warning: every user of this machine may read /new\n --> sandarac.toml:9:15"),
        "{open:?}"
    );
    assert!(open[0].contains("help: chmod 0600 /new"), "{open:?}");
    assert!(warned(secret, &[("/new", NEW, 0o602)])[0].contains("may change /new"));
    assert!(warned(secret, &[("/new", NEW, 0o660)]).is_empty());
    let twice = warned("secret_file = [\"/new\", \"/old\"]", &[("/new", NEW, 0o600), ("/old", NEW, 0o600)]);
    assert!(twice[0].starts_with("warning: both files hold the same secret"), "{twice:?}");
}

#[test]
fn no_output_shows_a_secret() {
    let files = [("/new", NEW, 0o644), ("/password", &b"hunter2"[..], 0o644)];
    let more = "secret_file = \"/new\"\nuser = \"a\"\npassword_file = \"/password\"";
    let (made, warnings) = credentials(more, &files).unwrap();
    let content = SecretContent { bytes: NEW.to_vec(), mode: 0 };
    let shown = format!("{made:?}{warnings:?}{content:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("abcdef"), "{shown}");
    assert!(!shown.contains(&format!("{:?}", &NEW[..4])[1..10]), "{shown}");
}
