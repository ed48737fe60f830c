//! The flag, the check of a configuration, and a reload.

use std::fs;

use sandarac_test_support::{Signal, eventually};

use super::{site, tree};
use crate::sandarac;

#[test]
fn one_flag_serves_a_directory_by_its_relative_path() {
    let setup = sandarac();
    fs::create_dir(setup.dir().join("public")).unwrap();
    fs::write(setup.dir().join("public/index.html"), "hello").unwrap();
    let proxy = setup.option("--files", "./public").start();
    assert_eq!(proxy.get("/").expect(200).text(), "hello");
}

#[test]
fn the_check_explains_the_route_and_warns_of_a_directory_that_is_not_there() {
    let tree = tree(&[("a.txt", "a")]);
    let missing = tree.join("missing");
    let checked = sandarac().without_admin().arg("check").config(site(&missing, "listing = true")).run();
    assert!(checked.status.success(), "{checked:?}");
    assert!(
        checked.stdout.contains(&format!("everything → files in {}", missing.display())),
        "{}",
        checked.stdout
    );
    assert!(checked.stdout.contains("index.html, or else a list of its files"), "{}", checked.stdout);
    assert!(
        checked.stderr.contains(&format!("no file in {} is served", missing.display())),
        "{}",
        checked.stderr
    );
    let page = site(tree.path(), "not_found = \"/404.html\"");
    let told = sandarac().without_admin().arg("check").config(page).run().stderr;
    assert!(told.contains("/404.html is not in "), "{told}");
    let file = sandarac().without_admin().arg("check").config(site(&tree.join("a.txt"), "")).run();
    assert!(file.stderr.contains("is not a directory"), "{}", file.stderr);
}

#[test]
fn a_reload_changes_the_directory() {
    let (one, two) = (tree(&[("a.txt", "one")]), tree(&[("a.txt", "two")]));
    let proxy = sandarac().config(site(one.path(), "files_valid = \"1h\"")).start();
    let mut client = proxy.connect();
    assert_eq!(client.get("/a.txt").expect(200).text(), "one");
    fs::write(proxy.dir().join("sandarac.toml"), site(two.path(), "files_valid = \"1h\"")).unwrap();
    proxy.signal(Signal::Hangup);
    eventually("the other directory", || (proxy.get("/a.txt").text() == "two").then_some(()));
}
