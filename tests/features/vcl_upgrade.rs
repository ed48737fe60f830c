//! `sandarac vcl upgrade`: old VCL files, their new text, and the list of what changes.

use std::fs;
use std::path::{Path, PathBuf};

use sandarac_test_support::{Output, TempDir};

use crate::sandarac;

/// The file of a CouchDB user.
fn couchdb() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vcl/old/couchdb.vcl");
    fs::read_to_string(path).expect("the old file")
}

fn write(dir: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, text).expect("a file can be written");
    path
}

fn upgrade(arguments: &[&str], file: &Path) -> Output {
    let setup =
        ["vcl", "upgrade"].iter().chain(arguments).fold(sandarac(), |setup, argument| setup.arg(*argument));
    setup.arg(file.display().to_string()).run()
}

#[test]
fn an_old_file_is_upgraded_without_a_question() {
    let dir = TempDir::new();
    let file = write(&dir, "couch.vcl", &couchdb());
    let output = upgrade(&[], &file).success();
    assert!(output.stdout.starts_with("vcl 4.1;\n\nimport directors;\n"), "{output:?}");
    assert!(output.stdout.contains("    set req.backend_hint = couchdb.backend();\n    return (hash);\n"));
    for line in [
        "couch.vcl is VCL 2 or 3 (no `vcl 4.1;`): 4 constructs to change, none needs a decision\n",
        " 11  director couchdb round-robin  → new couchdb = directors.round_robin(); in vcl_init\n",
        " 17  req.request (twice)           → req.method\n",
        " 20  set req.backend = couchdb     → set req.backend_hint = couchdb.backend()\n",
        " 21  return (lookup)               → return (hash)\n",
        "warning: requests with cookies are looked up\n",
        "warning: writes go to `default` because it is the first backend\n",
    ] {
        assert!(output.stderr.contains(line), "{line}: {}", output.stderr);
    }
    let new = write(&dir, "new.vcl", &output.stdout);
    let again = upgrade(&[], &new).success();
    assert_eq!(again.stdout, output.stdout);
    assert!(again.stderr.contains("is VCL 4.1: nothing to change"), "{again:?}");
}

#[test]
fn a_diff_shows_what_changes_and_writes_nothing() {
    let dir = TempDir::new();
    let text = "sub vcl_recv {\n    if (req.request == \"GET\") {\n        return (lookup);\n    }\n}\n";
    let file = write(&dir, "old.vcl", text);
    let name = file.display().to_string();
    let output = upgrade(&["--diff"], &file).success();
    let wanted = format!(
        "--- {name}\n+++ {name}\n@@ -1,5 +1,7 @@\n+vcl 4.1;\n+\n sub vcl_recv {{\n\
         -    if (req.request == \"GET\") {{\n-        return (lookup);\n\
         +    if (req.method == \"GET\") {{\n+        return (hash);\n     }}\n }}\n"
    );
    assert_eq!(output.stdout, wanted);
    assert_eq!(fs::read_to_string(&file).expect("the file"), text);
}

#[test]
fn a_file_and_those_that_it_includes_are_written_in_place() {
    let dir = TempDir::new();
    let file = write(&dir, "old.vcl", "include \"part.vcl\";\nsub vcl_recv { remove req.http.Cookie; }\n");
    let part = write(&dir, "part.vcl", "sub vcl_fetch { return (hit_for_pass); }\n");
    let output = upgrade(&[], &file).success();
    assert!(output.stderr.contains("note: --in-place writes included files, which change too"), "{output:?}");
    assert_eq!(upgrade(&["--in-place"], &file).success().stdout, "");
    let text = |path: &Path| fs::read_to_string(path).expect("a file");
    assert_eq!(text(&file), "vcl 4.1;\n\ninclude \"part.vcl\";\nsub vcl_recv { unset req.http.Cookie; }\n");
    assert_eq!(
        text(&part),
        "sub vcl_backend_response { set beresp.uncacheable = true; set beresp.ttl = 120s; return (deliver); }\n"
    );
}

#[test]
fn decisions_and_mistakes_have_exit_statuses() {
    let dir = TempDir::new();
    let file =
        write(&dir, "c.vcl", "sub vcl_recv {\n    C{ syslog(1, \"a\"); }C\n    remove req.http.A;\n}\n");
    let output = upgrade(&[], &file);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(
        output.stdout.contains("    # DECISION inline-c: C is not run\n    #   - std.syslog"),
        "{output:?}"
    );
    assert!(output.stderr.contains("1 needs a decision"), "{output:?}");
    let new = write(&dir, "new.vcl", &output.stdout);
    let again = upgrade(&[], &new);
    assert_eq!((again.status.code(), &again.stdout), (Some(4), &output.stdout), "{again:?}");
    assert!(again.stderr.contains("1 decision left, each marked by a comment"), "{again:?}");

    let file = write(&dir, "wrong.vcl", "sub vcl_recv { remove req.http.A }\n");
    let output = upgrade(&[], &file);
    assert_eq!((output.status.code(), &*output.stdout), (Some(1), ""), "{output:?}");
    assert!(
        output.stderr.contains("missing-semicolon") && output.stderr.contains("mended first"),
        "{output:?}"
    );

    let output = upgrade(&[], &dir.join("none.vcl"));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stderr.contains("cannot read"), "{output:?}");
}

#[test]
fn the_version_can_be_named() {
    let dir = TempDir::new();
    let file = write(&dir, "old.vcl", "sub vcl_recv { if (req.url ~ \"a%20b\") { error 404 \"x\"; } }\n");
    for (version, status, text) in [("2", 0, "\"a b\""), ("3", 0, "\"a%20b\"")] {
        let output = upgrade(&["--from", version], &file);
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        assert!(output.stdout.contains(text), "{output:?}");
    }
    assert_eq!(upgrade(&[], &file).status.code(), Some(4));
}
