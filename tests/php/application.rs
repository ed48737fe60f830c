//! `--php`: a PHP application from its directory alone.

use std::fs;
use std::os::unix::fs::symlink;

use sandarac_test_support::{Sandarac, Setup, get, post, request};

use crate::fpm::Fpm;

/// An application with a front controller, a page of its own, one in a directory, and files.
fn application() -> Fpm {
    let fpm = Fpm::start(2);
    fpm.file("index.php", "<?php echo 'front ', $_SERVER['REQUEST_URI'], ' ', $_SERVER['REQUEST_METHOD'];");
    fpm.file("page.php", "<?php echo 'page ', $_SERVER['PATH_INFO'] ?? '-';");
    fpm.file("blog/index.php", "<?php echo 'blog';");
    fpm.file("notes/index.html", "notes");
    fpm.file("style.css", "b {}");
    fpm.file("config.inc.php", "<?php $password = 'secret';");
    fpm.file("old.phtml", "secret");
    fpm.file(".env", "secret");
    fpm
}

fn serving(fpm: &Fpm) -> Sandarac {
    let setup = Setup::new(env!("CARGO_BIN_EXE_sandarac")).option("--php", fpm.root().display().to_string());
    setup.option("--php-fpm", fpm.socket().display().to_string()).start()
}

#[test]
fn files_scripts_and_the_front_controller_are_found_in_this_order() {
    let fpm = application();
    let proxy = serving(&fpm);
    for (path, expected) in [
        ("/", "front / GET"),
        ("/about/us?x=1", "front /about/us?x=1 GET"),
        ("/page.php", "page -"),
        ("/page.php/a/b", "page /a/b"),
        ("/blog/", "blog"),
        ("/notes/", "notes"),
        ("/style.css", "b {}"),
        ("/missing.php", "front /missing.php GET"),
    ] {
        assert_eq!(proxy.get(path).expect(200).text(), expected, "{path}");
    }
    assert_eq!(proxy.get("/blog").expect(301).field("location"), Some("/blog/"));
    assert_eq!(proxy.exchange(&post("/form", "a=b")).expect(200).text(), "front /form POST");
    assert_eq!(proxy.exchange(&post("/style.css", "a=b")).expect(200).text(), "front /style.css POST");
}

#[test]
fn no_source_and_no_hidden_file_is_sent() {
    let fpm = application();
    let proxy = serving(&fpm);
    for path in [
        "/config.inc.php",
        "/config.inc.php/",
        "/config.inc.php%20",
        "/config.inc%2ephp",
        "/config.inc.PHP",
        "/old.phtml",
        "/.env",
        "/%2eenv",
        "/style.css/x.php",
    ] {
        let answer = proxy.exchange(&get(path));
        assert!(!answer.text().contains("secret") && !answer.text().contains("<?php"), "{path}: {answer:?}");
    }
}

/// A site whose route has these `keys`, and a pool with or without a front controller.
fn site(fpm: &Fpm, fastcgi: &str, keys: &str) -> Sandarac {
    let (socket, root) = (fpm.socket().display().to_string(), fpm.root().display().to_string());
    let config = format!(
        "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[pool.php]\nbackends = [\"fcgi+unix:{socket}\"]\n{fastcgi}\n\
         [[route]]\nphp = {root:?}\ncache = \"pass\"\n{keys}\n"
    );
    Setup::new(env!("CARGO_BIN_EXE_sandarac")).config(config).start()
}

/// Regression: POST ran what a link led to wherever that was.
#[test]
fn a_script_that_a_link_leads_to_runs_by_the_rule_of_the_route_with_any_method() {
    let fpm = application();
    fs::create_dir(fpm.beside("lib")).unwrap();
    fs::write(fpm.beside("lib/out.php"), "<?php echo 'outside ', $_SERVER['PATH_INFO'] ?? '-';").unwrap();
    for (link, target) in [
        ("in.php", "page.php".into()),
        ("out.php", fpm.beside("lib/out.php")),
        ("up.php", "../lib/out.php".into()),
        ("dir", fpm.beside("lib")),
    ] {
        symlink(target, fpm.root().join(link)).unwrap();
    }
    let also = format!("also = [{:?}]", fpm.beside("lib").display().to_string());
    for (keys, inside, outside) in
        [("", 200, 403), ("symlinks = \"never\"", 403, 403), (also.as_str(), 200, 200)]
    {
        let proxy = site(&fpm, "", keys);
        for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS"] {
            for (path, status) in [
                ("/page.php", 200),
                ("/in.php", inside),
                ("/in.php/more", inside),
                ("/out.php", outside),
                ("/out.php/more", outside),
                ("/up.php", outside),
                ("/dir/out.php", outside),
            ] {
                let answer = proxy.exchange(&request(method, path));
                assert_eq!(answer.status, status, "{keys} {method} {path}: {}", answer.text());
            }
        }
    }
}

/// Regression: scripts in hidden directories ran, and scripts whose own names are hidden.
#[test]
fn a_hidden_script_does_not_run_with_any_method() {
    let fpm = application();
    for hidden in [".h/x.php", ".h/index.php", ".dot.php", "blog/.y.php", ".well-known/x.php"] {
        fpm.file(hidden, "<?php echo 'hidden';");
    }
    let root = fpm.root().display().to_string();
    let alone = site(&fpm, &format!("fastcgi = {{ root = {root:?} }}"), "");
    let front = site(&fpm, "", "");
    for method in ["GET", "POST", "PUT"] {
        for path in ["/.h/x.php", "/.h/", "/.dot.php", "/%2edot.php", "/blog/.y.php", "/.h/x.php/a"] {
            alone.exchange(&request(method, path)).expect(404);
            // It is answered like one that is not there.
            let answer = front.exchange(&request(method, path)).expect(200).text();
            assert!(answer.starts_with("front "), "{method} {path}: {answer}");
        }
        for proxy in [&alone, &front] {
            assert_eq!(proxy.exchange(&request(method, "/.well-known/x.php")).expect(200).text(), "hidden");
            assert_eq!(proxy.exchange(&request(method, "/page.php/.h")).expect(200).text(), "page /.h");
        }
    }
}

#[test]
fn a_command_line_that_cannot_work_says_why_at_once() {
    let fpm = application();
    let (root, socket) = (fpm.root().display().to_string(), fpm.socket().display().to_string());
    let nowhere = fpm.beside("none").display().to_string();
    let refused = |arguments: &[(&str, &str)]| {
        let setup = Setup::new(env!("CARGO_BIN_EXE_sandarac")).option("--listen", "127.0.0.1:0");
        arguments.iter().fold(setup, |setup, (name, value)| setup.option(name, *value)).run().failure().stderr
    };
    let told = refused(&[("--php", &nowhere), ("--php-fpm", &socket)]);
    assert!(told.contains("--php: ") && told.contains("No such file or directory"), "{told}");
    let told = refused(&[("--files", &nowhere)]);
    assert!(told.contains("--files: ") && told.contains("No such file or directory"), "{told}");
    let told = refused(&[("--php", &root), ("--php-fpm", &nowhere)]);
    assert!(told.contains("php-fpm has no socket at"), "{told}");
}

#[test]
fn check_warns_of_scripts_and_sockets_that_are_not_there() {
    let fpm = application();
    let config = |root: &str, socket: &str| {
        let config = format!(
            "user = \"{}\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n[pool.php]\nbackends = [\"fcgi+unix:{socket}\"]\n\
             [[route]]\nphp = {root:?}\n",
            rustix::process::geteuid().as_raw()
        );
        Setup::new(env!("CARGO_BIN_EXE_sandarac")).arg("check").config(config)
    };
    let (root, socket) = (fpm.root().display().to_string(), fpm.socket().display().to_string());
    let quiet = config(&root, &socket).run().success().stderr;
    assert!(!quiet.contains("warning"), "{quiet}");
    fs::remove_file(fpm.root().join("index.php")).unwrap();
    let told = config(&root, "/nowhere/fpm.sock").run().success().stderr;
    assert!(told.contains("`front_controller`") && told.contains("/index.php"), "{told}");
    assert!(told.contains("php-fpm has no socket at /nowhere/fpm.sock"), "{told}");
    let silent = config(&root, "/nowhere/fpm.sock").arg("--quiet").run().success().stderr;
    assert_eq!(silent, "");
    let told = config("/nowhere", &socket).run().success().stderr;
    assert!(told.contains("`root` /nowhere: No such file or directory"), "{told}");
}

#[test]
fn a_script_that_only_php_fpm_misses_is_not_remembered() {
    // It looks for the files itself, as on another machine.
    let fpm = application();
    let proxy = fpm.site("", "local = false\nfront_controller = \"/later.php\"", "");
    let missing = proxy.get("/x").expect(404);
    assert_eq!(missing.text(), "File not found.\n");
    fpm.file("later.php", "<?php echo 'later';");
    assert_eq!(proxy.get("/x").expect(200).text(), "later");
}
