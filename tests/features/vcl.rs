//! `sandarac vcl`: programs in VCL.

use std::fs;

use sandarac_test_support::TempDir;

use crate::sandarac;

const MISTAKES: &str = "\
vcl 4.1;

import std;
include \"backends.vcl\";
include +glob \"./site/*.vcl\";

sub vcl_backend_response {
    set beresp.ttl = 120;
}

sub vcl_recv {
    set req.url = std.query_sort(req.url);
}
";

/// A folder with a program of two mistakes in `main.vcl`.
fn program() -> TempDir {
    let dir = TempDir::new();
    let write = |name: &str, text: &str| fs::write(dir.join(name), text).expect("a file can be written");
    fs::create_dir_all(dir.join("site")).expect("a folder can be made");
    write("main.vcl", MISTAKES);
    write("backends.vcl", "backend default { .host = \"127.0.0.1\"; }\n");
    write("site/a.vcl", "sub vcl_deliver { unset resp.http.Server; }\n");
    write("site/.hidden.vcl", "this is not VCL\n");
    write(
        "warning.vcl",
        "vcl 4.1;\nbackend default none;\nsub vcl_recv { return (pass); set req.url = \"/\"; }\n",
    );
    dir
}

#[test]
fn a_check_reports_all_mistakes_of_a_program_with_their_mends() {
    let dir = program();
    let main = dir.join("main.vcl").display().to_string();
    let output = sandarac().arg("vcl").arg("check").arg(&main).run().failure();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    for text in ["main.vcl:8:22", "`120s`", "main.vcl:12:", "`std.querysort`", "main.vcl: 2 errors"] {
        assert!(output.stdout.contains(text), "{text}: {}", output.stdout);
    }

    let output = sandarac().arg("vcl").arg("check").arg("--json").arg(&main).run().failure();
    let report: serde_json::Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(report["errors"], 2);
    let found = &report["diagnostics"][0];
    assert_eq!((&found["rule"], &found["at"]["line"]), (&"type".into(), &8.into()), "{report}");
    assert_eq!(found["mend"]["edits"][0]["text"], "s", "{report}");
}

#[test]
fn the_exit_status_tells_warnings_and_unreadable_files() {
    let dir = program();
    let warning = dir.join("warning.vcl").display().to_string();
    let run = |arguments: &[&str]| {
        let setup = sandarac().arg("vcl").arg("check");
        arguments.iter().fold(setup, |setup, argument| setup.arg(*argument)).run()
    };
    let output = run(&[&warning]).success();
    assert!(output.stdout.contains("warning[unreachable]"), "{output:?}");
    assert!(output.stdout.contains("warning.vcl: valid, 1 warning"), "{output:?}");
    assert_eq!(run(&[&warning, "--strict"]).status.code(), Some(3));
    let output = run(&[&dir.join("none.vcl").display().to_string()]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    // An included file is found in the folders given, and only there.
    let output = run(&[&dir.join("main.vcl").display().to_string(), "--path", "/nowhere"]);
    assert!(output.stdout.contains("error[include]"), "{output:?}");
}
