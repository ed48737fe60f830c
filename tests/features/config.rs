//! The command line and the configuration file: what is accepted, and how errors are reported.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};

use sandarac_test_support::{Listener, Origin, TempDir, reply, within};

use crate::{pool, sandarac, site};

#[test]
fn a_minimal_file_is_complete() {
    let origin = Origin::new(|_| reply(200).body("ok"));
    let proxy = sandarac().config(site(&origin.url(), "", "")).start();
    assert_eq!(proxy.get("/").expect(200).text(), "ok");
}

#[test]
fn flags_count_more_than_the_file() {
    let origin = Origin::new(|_| reply(200).body("ok"));
    let text = site("http://127.0.0.1:9", "", "[cache]\nmemory = \"1GiB\"\nprofile = \"safe\"");
    let proxy = sandarac()
        .config(text)
        .before(&origin)
        .option("--memory", "32MiB")
        .rfc()
        .option("--listen", "127.0.0.1:0")
        .start();
    assert_eq!(proxy.get("/").expect(200).text(), "ok");
    let status = proxy.admin_json(&["status", "--json"]);
    assert_eq!(status["cache"]["limit_bytes"].as_u64(), Some(32 << 20));
    assert_eq!(status["profile"].as_str(), Some("rfc"));
}

#[test]
fn faults_are_shown_with_their_place_and_what_was_meant() {
    for (line, marked, help) in [
        ("adress = \"127.0.0.1:0\"", "adress", "address"),
        ("address = \"localhost:0\"", "localhost:0", "127.0.0.1:0"),
        ("address = 80", "80", ":8080"),
    ] {
        let text = format!(
            "[[listen]]\n{line}\n\n[pool.app]\nbackends = [\"http://127.0.0.1:9\"]\n\n[[route]]\npool = \"app\"\n"
        );
        for command in [None, Some("check")] {
            let setup = sandarac().config(text.clone());
            let setup = command.into_iter().fold(setup, |setup, command| setup.arg(command));
            let said = setup.run().failure().stderr;
            assert!(said.contains("sandarac.toml") && said.contains(":2:") && said.contains(line), "{said}");
            assert!(said.contains(marked) && said.contains(help), "{said}");
        }
    }
}

#[test]
fn more_faults_are_told_plainly() {
    for (text, word) in [
        (site("http://127.0.0.1:9", "pol = \"app\"", ""), "pool"),
        (site("http://127.0.0.1:9", "", "[cache]\nmemory = \"256 parrots\""), "256 parrots"),
        (site("http://127.0.0.1:9", "", "[timeouts]\nhead = \"5\""), "head"),
        (site("http://127.0.0.1:9", "", "[cahce]\n"), "cache"),
        (site("http://127.0.0.1:9", "cache = \"sometimes\"", ""), "lookup"),
        (site("gopher://127.0.0.1:9", "", ""), "http://"),
        (site("http://127.0.0.1:9", "", "").replace("pool = \"app\"", "pool = \"ap\""), "app"),
        ("[[listen]\naddress = \"127.0.0.1:0\"".to_owned(), "sandarac.toml"),
        (String::new(), "listen"),
    ] {
        let said = sandarac().config(text.clone()).arg("check").run().failure().stderr;
        assert!(said.contains(word), "{word} is missing for\n{text}\nin\n{said}");
    }
}

#[test]
fn check_accepts_what_is_right_and_starts_nothing() {
    let text = site("http://127.0.0.1:9", "", "");
    let output = sandarac().config(text).arg("check").run().success();
    assert!(!output.stderr.contains("listening"), "{output:?}");
}

#[test]
fn a_quiet_check_prints_only_errors() {
    let text = |keys: &str| site("h2://127.0.0.1:9", keys, "");
    let check = |keys: &str, quiet: &[&str]| {
        let setup = sandarac().config(text(keys)).arg("check");
        quiet.iter().fold(setup, |setup, flag| setup.arg(*flag)).run()
    };
    let loud = check("gather = true", &[]).success();
    assert!(loud.stderr.contains("warning: `gather` has no effect"), "{loud:?}");
    assert!(!loud.stdout.contains("warning") && loud.stdout.contains("Listens on"), "{loud:?}");
    let quiet = check("gather = true", &["-q"]).success();
    assert_eq!((&*quiet.stdout, &*quiet.stderr), ("", ""));
    let wrong = check("gathers = true", &["-q"]).failure();
    assert!(wrong.stdout.is_empty() && wrong.stderr.contains("gathers"), "{wrong:?}");
}

/// Regression: `check` accepted each of these, and the start failed or behaved unexpectedly.
#[test]
fn check_looks_at_the_machine() {
    for (tables, said) in [
        ("[log]\naccess = \"/nowhere/access.log\"", "the access log /nowhere/access.log cannot be written"),
        ("[admin]\nlisten = \"unix:/nowhere/admin\"", "the admin socket /nowhere/admin has no directory"),
    ] {
        let output = sandarac().config(site("http://127.0.0.1:9", "", tables)).arg("check").run().failure();
        assert!(output.stderr.contains(said), "{output:?}");
    }
    for (tables, said) in [
        (
            "[log]\naccess = \"/var/log/sandarac-test/nowhere/a\"",
            "warning: the access log /var/log/sandarac-test/nowhere/a cannot be written",
        ),
        ("[cache]\nmemory = \"1000TiB\"", "warning: the cache may hold 1000TiB, more than the "),
        ("[cache]\nttl = \"1m\"\ndefault_ttl = \"2m\"", "`default_ttl` has no effect beside `ttl`"),
    ] {
        let output = sandarac().config(site("http://127.0.0.1:9", "", tables)).arg("check").run().success();
        assert!(output.stderr.contains(said), "{output:?}");
    }
}

#[test]
fn check_reads_tables_of_classes() {
    let dir = TempDir::new();
    let path = dir.path().join("classes");
    let pool = format!("balance = \"resume\"\nclass = {{ file = \"{}\" }}\n[[route]]", path.display());
    let text = by_whoever(&site("http://127.0.0.1:9", "", "").replace("[[route]]", &pool));
    let missing = sandarac().config(text.clone()).arg("check").run().success();
    assert!(missing.stderr.contains("warning: no request has a class yet"), "{missing:?}");
    std::fs::write(&path, "/blog blog\n/shop\n").unwrap();
    let said = sandarac().config(text.clone()).arg("check").run().failure().stderr;
    assert!(said.contains(&format!("{}:2: a line has a pattern and a class", path.display())), "{said}");
    std::fs::write(&path, "/blog blog\n").unwrap();
    let output = sandarac().config(text).arg("check").run().success();
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn check_reads_the_secret_of_the_shared_tier() {
    let dir = TempDir::new();
    let path = dir.path().join("secret");
    let tier = format!("[cache.shared]\nservers = \"10.0.0.1\"\nsecret_file = \"{}\"", path.display());
    let text = by_whoever(&site("http://127.0.0.1:9", "", &tier));
    let missing = sandarac().config(text.clone()).arg("check").run().failure().stderr;
    assert!(missing.contains(&format!("error: cannot read {}: No such file", path.display())), "{missing}");
    assert!(missing.contains(&format!("secret_file = \"{}\"", path.display())), "{missing}");
    let permit = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    std::fs::write(&path, "too short to be a secret").unwrap();
    permit(0o600);
    let short = sandarac().config(text.clone()).arg("check").run().failure().stderr;
    assert!(short.contains("a secret of 24 bytes; at least 32 are needed"), "{short}");
    assert!(!short.contains("too short to be"), "{short}");
    std::fs::write(&path, [7; 32]).unwrap();
    let output = sandarac().config(text.clone()).arg("check").run().success();
    assert!(output.stderr.is_empty() && output.stdout.contains("Shared tier: memcached at 10.0.0.1:11211"));
    permit(0o644);
    let open = sandarac().config(text).arg("check").run().success().stderr;
    assert!(open.starts_with("warning: every user of this machine may read"), "{open}");
}

/// The configuration with whoever runs the tests as its user: if that is root, it is meant.
fn by_whoever(text: &str) -> String {
    format!("user = \"{}\"\n{text}", rustix::process::geteuid().as_raw())
}

#[test]
fn the_schema_and_the_defaults_are_printed() {
    let schema = sandarac().arg("config").arg("--schema").run().success().stdout;
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    assert!(schema["properties"]["listen"].is_object() && schema["properties"]["cache"].is_object());
    let defaults = sandarac().arg("config").arg("--defaults").run().success().stdout;
    for word in ["first_byte_timeout", "memory", "256MiB", "profile"] {
        assert!(defaults.contains(word), "{word}");
    }
    sandarac().config(defaults).arg("check").run().success();
}

#[test]
fn a_file_that_is_no_text_is_told_with_its_place() {
    let setup = sandarac().arg("check").option("-c", "./latin.toml");
    std::fs::write(setup.dir().join("latin.toml"), b"# caf\xe9\n").unwrap();
    let said = setup.run().failure().stderr;
    assert!(said.contains("not UTF-8") && said.contains("./latin.toml:1:6"), "{said}");
}

#[test]
fn an_admin_socket_in_use_or_in_no_directory_is_told_once() {
    let origin = Origin::new(|_| reply(200));
    let first = sandarac().before(&origin).start();
    let path = first.admin_path().display().to_string();
    let worker = Listener::new();
    let second = sandarac().config(pool(&[worker.url()], "balance = \"resume\"")).option("--admin", &path);
    let said = second.run().failure().stderr;
    assert!(said.contains("another process answers there") && said.matches("--admin").count() == 1, "{said}");
    assert!(worker.is_silent(), "it had begun to ask its workers");
    let setup =
        sandarac().before(&origin).option("--listen", "127.0.0.1:0").option("--admin", "./slip/admin.sock");
    let slip = setup.dir().join("slip");
    let said = setup.run().failure().stderr;
    assert!(said.contains("there is no directory ./slip"), "{said}");
    assert!(!slip.exists());
}

#[test]
fn unknown_flags_and_commands_are_told() {
    let said = sandarac().arg("--lissen").arg(":80").run().failure().stderr;
    assert!(said.contains("--listen"), "{said}");
    sandarac().arg("statsu").run().failure();
    let help = sandarac().arg("--help").run().success().stdout;
    for word in ["--listen", "--backend", "demo", "check", "purge"] {
        assert!(help.contains(word), "{word}");
    }
    assert!(sandarac().arg("--version").run().success().stdout.contains("sandarac"));
}

#[test]
fn a_second_process_on_a_port_fails_loudly() {
    let origin = Origin::new(|_| reply(200));
    let first = sandarac().before(&origin).start();
    let output = sandarac()
        .before(&origin)
        .option("--listen", first.address().to_string())
        .option("--admin", "./second")
        .run()
        .failure();
    assert!(output.stderr.contains(&first.address().to_string()), "{output:?}");
    first.get("/").expect(200);
}

#[test]
fn a_unix_socket_left_behind_is_taken_over_and_a_live_one_is_not() {
    let dir = TempDir::new();
    let origin = Origin::new(|_| reply(200));
    let path = dir.join("front");
    drop(UnixListener::bind(&path).unwrap());
    // A process that another test is starting may hold a copy of the socket until its `exec`.
    within("nobody to listen any more", || UnixStream::connect(&path).is_err().then_some(()));
    let listen = format!("unix:{}", path.display());
    let live = sandarac().config(site(&origin.url(), "", "").replace("127.0.0.1:0", &listen)).start();
    live.get("/").expect(200);
    sandarac().before(&origin).option("--listen", listen).option("--admin", "./second").run().failure();
    live.get("/").expect(200);
}
