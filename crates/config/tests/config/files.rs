//! Routes that serve files.

use std::path::Path;
use std::time::Duration;

use sandarac_config::{Config, Flags, explain};
use sandarac_policy::{Action, FileRule, Forward, Symlinks};

use crate::{load, refused, warnings};

const LISTEN: &str = "[[listen]]\naddress = \":8080\"\n\n";
const POOL: &str = "[pool.app]\nbackends = [\"http://127.0.0.1:8000\"]\n\n";

fn route(keys: &str) -> String {
    format!("{LISTEN}{POOL}[[route]]\n{keys}\n")
}

fn files(config: &Config) -> (&FileRule, Option<&Forward>) {
    let Action::Files { rule, fallback } = &config.routes.all()[0].action else { panic!("it serves files") };
    (rule, fallback.as_ref())
}

#[test]
fn a_directory_is_all_that_is_needed() {
    let config = load(&format!("{LISTEN}[[route]]\nfiles = \"/srv/www\"\n"));
    let (rule, fallback) = files(&config);
    assert_eq!(rule.root, Path::new("/srv/www"));
    assert!(rule.names.len() == 1 && rule.names[0].is_path() && fallback.is_none());
    assert_eq!(rule.index, [Box::from("index.html")]);
    assert_eq!((rule.listing, rule.precompressed, rule.symlinks), (false, true, Symlinks::Inside));
    assert_eq!(rule.valid, Duration::from_secs(1));
}

#[test]
fn names_are_tried_before_a_pool_which_has_the_rules_of_the_route() {
    let config = load(&route(
        "files = \"/srv/www\"\ntry = [\"{path}\", \"{path}.html\", \"pool:app\"]\ncache = \"pass\"",
    ));
    let (rule, fallback) = files(&config);
    assert_eq!(rule.names[1].fill(b"/a"), b"/a.html");
    assert!(fallback.is_some_and(|forward| forward.cache.is_none()));
    let told = explain(&config);
    assert!(told.contains("everything → files in /srv/www"), "{told}");
    assert!(told.contains("tried in order: {path}, {path}.html"), "{told}");
    assert!(told.contains("without a file, or with other methods: pool app, bypassing the cache"), "{told}");
}

#[test]
fn mistakes_are_named_with_what_was_meant() {
    for (keys, message, help) in [
        ("files = \"www\"", "\"www\" is not a path from the root", ""),
        ("root = \"/srv/www\"", "unknown key `root`", "here it is called `files`"),
        ("files = \"/a\"\ntry_files = [\"{path}\"]", "unknown key `try_files`", "here it is called `try`"),
        ("files = \"/a\"\ntry = [\"$uri\"]", "\"$uri\" is not", "\"{path}\"?"),
        ("files = \"/a\"\ntry = [\"index.html\"]", "\"index.html\" is not", "\"/index.html\"?"),
        ("files = \"/a\"\ntry = [\"@app\"]", "\"@app\" is not", "a pool is written \"pool:app\""),
        ("files = \"/a\"\ntry = [\"/../b\"]", "\"/../b\" is not", "cannot lead out"),
        (
            "files = \"/a\"\ntry = [\"{path}\", \"pool:apps\"]",
            "there is no pool called `apps`",
            "did you mean \"app\"?",
        ),
        ("files = \"/a\"\ntry = [\"pool:app\", \"{path}\"]", "a pool is the last in `try`", ""),
        ("files = \"/a\"\ntry = [\"pool:app\"]", "`try` has no file", "only pool = \"app\""),
        ("files = \"/a\"\npool = \"app\"", "only one of `pool`, `files`", "try = [\"{path}\", \"pool:app\"]"),
        ("files = \"/a\"\nsymlinks = \"outside\"", "\"outside\" is not", ""),
        ("files = \"/a\"\nsymlinks = \"never\"\nalso = [\"/b\"]", "symlinks = \"never\"", ""),
        (
            "files = \"/a\"\nerror_page = \"/404.html\"",
            "unknown key `error_page`",
            "here it is called `not_found`",
        ),
        (
            "files = \"/a\"\ntry = [\"{path}\", \"=404\"]",
            "\"=404\" is not",
            "`not_found` names a page for it",
        ),
        ("files = \"/a\"\nnot_found = \"404.html\"", "\"404.html\" is not", "\"/404.html\"?"),
        ("files = \"/a\"\nnot_found = \"404 /404.html\"", "is not a path below", "\"/404.html\"?"),
        ("files = \"/a\"\nnot_found = \"/../404.html\"", "is not a path below", "cannot lead out"),
        (
            "files = \"/a\"\nnot_found = \"{path}/404.html\"",
            "is not a path below",
            "one page for all requests",
        ),
        ("files = \"/a\"\nindex = [\"a/b.html\"]", "\"a/b.html\" is not the name of a file", ""),
    ] {
        let told = refused(&route(keys)).to_string();
        assert!(told.contains(message) && told.contains(help), "{keys}\n{told}");
    }
}

#[test]
fn settings_without_effect_are_named() {
    let told = warnings(&route("pool = \"app\"\nlisting = true")).join("\n");
    assert!(told.contains("`listing` has no effect on a route without `files`"), "{told}");
    let told = warnings(&route("files = \"/\"\ntry = [\"{path}\", \"pool:app\"]")).join("\n");
    assert!(told.contains("the whole file system"), "{told}");
}

#[test]
fn a_page_for_what_is_not_there_is_explained_and_has_no_effect_where_a_pool_answers() {
    let page = "files = \"/srv/www\"\nnot_found = \"/404.html\"";
    let config = load(&format!("{LISTEN}[[route]]\n{page}\n"));
    assert_eq!(files(&config).0.not_found.as_ref().map(ToString::to_string).as_deref(), Some("/404.html"));
    assert!(explain(&config).contains("what is not there: 404 with /404.html"), "{}", explain(&config));
    let told = warnings(&route(&format!("{page}\ntry = [\"{{path}}\", \"pool:app\"]"))).join("\n");
    assert!(
        told.contains("`not_found` has no effect: the pool in `try` answers requests without a file"),
        "{told}"
    );
    let told = warnings(&route("pool = \"app\"\nnot_found = \"/404.html\"")).join("\n");
    assert!(told.contains("`not_found` has no effect on a route without `files`"), "{told}");
    let leads = "[pool.app]\nbackends = [\"http://a\"]\nx_accel_redirect = true\n";
    let told = warnings(&format!("{LISTEN}{leads}[[route]]\n{page}\ninternal = true\n")).join("\n");
    assert!(
        told.contains("`not_found` has no effect: no client gets an answer from an internal route"),
        "{told}"
    );
}

#[test]
fn a_flag_serves_a_directory_alone_or_before_backends() {
    let flags =
        Flags { listen: vec![":8080".to_owned()], files: Some("/srv/www".to_owned()), ..Flags::default() };
    let (config, _) = Config::from_flags(&flags).unwrap();
    assert_eq!(files(&config).0.root, Path::new("/srv/www"));
    let flags = Flags { backends: vec!["http://127.0.0.1:8000".to_owned()], ..flags };
    let (config, _) = Config::from_flags(&flags).unwrap();
    let (rule, fallback) = files(&config);
    assert!(rule.names.len() == 1 && fallback.is_some_and(|forward| forward.cache.is_some()));
}
