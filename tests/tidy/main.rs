//! Promises about the shape of the repository: arrows between crates that only point downward, pure crates
//! that are pure, and files that can be read in one sitting.

mod circles;

use std::fs;
use std::path::{Path, PathBuf};

/// Every crate, and which of the others it may use. ARCHITECTURE.md draws the same.
const MAY_USE: [(&str, &[&str]); 17] = [
    ("message", &[]),
    ("coding", &["message"]),
    ("balance", &[]),
    ("wire", &["message", "coding"]),
    ("tier", &["message", "balance", "wire"]),
    ("esi", &[]),
    ("vcl", &[]),
    ("cache", &["esi", "message", "tier", "wire"]),
    ("policy", &["message", "coding", "balance"]),
    ("config", &["message", "coding", "balance", "wire", "cache", "policy"]),
    ("net", &["message", "wire"]),
    ("tls", &[]),
    ("acme", &["message", "balance"]),
    ("discover", &["message", "balance", "config", "net"]),
    (
        "proxy",
        &[
            "message", "coding", "esi", "balance", "wire", "cache", "tier", "policy", "config", "net", "tls",
            "discover",
        ],
    ),
    ("lab", &["message", "balance", "wire", "cache", "policy", "config", "net", "discover", "proxy"]),
    (
        "server",
        &[
            "message", "balance", "wire", "cache", "policy", "config", "net", "tls", "acme", "discover",
            "proxy", "lab", "vcl",
        ],
    ),
];

/// Crates without sockets, threads, clocks and ambient randomness.
const PURE: [&str; 10] =
    ["message", "coding", "esi", "vcl", "balance", "wire", "cache", "tier", "policy", "config"];

/// What would make them impure. Types such as `SocketAddr` are values and stay allowed.
const IMPURE: [&str; 8] = [
    "Instant::now",
    "SystemTime::now",
    "thread::spawn",
    "TcpStream",
    "TcpListener",
    "UnixStream",
    "UdpSocket",
    "RandomState",
];

/// A source file of a crate that has more lines is two files; so is a file of tests from outside.
const LONGEST_SOURCE: usize = 600;
const LONGEST: usize = 1000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(directory: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the directory is there").flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with("node_modules") {
            files(&path, ending, found);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
}

/// The crates of this repository among the dependencies of a crate, those for its tests left out.
fn uses(name: &str) -> Vec<String> {
    let manifest =
        fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).expect("a manifest");
    let after = manifest.split_once("\n[dependencies]").map_or("", |(_, after)| after);
    let dependencies = after.split("\n[").next().unwrap_or_default();
    let own = |line: &str| Some(line.strip_prefix("sandarac-")?.split(['.', ' ', '=']).next()?.to_owned());
    dependencies.lines().filter_map(own).collect()
}

#[test]
fn arrows_between_crates_only_point_downward() {
    let crates: Vec<String> = fs::read_dir(root().join("crates"))
        .expect("there are crates")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    for name in &crates {
        let (_, allowed) = MAY_USE.iter().find(|(known, _)| known == name).unwrap_or_else(|| {
            panic!("crate {name} has no place in the table of arrows");
        });
        for used in uses(name) {
            assert!(allowed.contains(&used.as_str()), "{name} must not use {used}");
        }
    }
}

#[test]
fn pure_crates_have_no_sockets_threads_clocks_or_chance() {
    for name in PURE {
        let mut sources = Vec::new();
        files(&root().join("crates").join(name).join("src"), "rs", &mut sources);
        for path in sources.iter().filter(|path| !path.to_string_lossy().contains("test")) {
            let text = fs::read_to_string(path).expect("a source file");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for impure in IMPURE {
                let found =
                    code.lines().any(|line| line.contains(impure) && !line.trim_start().starts_with("//"));
                assert!(!found, "{} has {impure}", path.display());
            }
        }
    }
}

/// Files of the crate `proxy`, without tests, that have a line with one of these texts, by their paths in it.
fn of_proxy_with(texts: &[&str]) -> Vec<String> {
    let directory = root().join("crates/proxy/src");
    let mut sources = Vec::new();
    files(&directory, "rs", &mut sources);
    assert!(sources.len() > 100);
    let has_one = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("a source file");
        text.lines().any(|line| texts.iter().any(|text| line.contains(text)))
    };
    let names = sources.iter().filter(|path| has_one(path));
    let names =
        names.map(|path| path.strip_prefix(&directory).expect("a path below it").display().to_string());
    let mut names: Vec<String> = names.filter(|name| !name.contains("test")).collect();
    names.sort();
    names
}

/// Rules have to see every response: each is made as an `Outgoing`, and begins where its client is known.
#[test]
fn responses_begin_in_one_place() {
    assert_eq!(of_proxy_with(&[" Response {", "(Response {", "Response::new("]), ["outgoing/mod.rs"]);
    assert_eq!(of_proxy_with(&["client.begin("]), ["at_once.rs", "downstream/mod.rs"]);
    assert_eq!(of_proxy_with(&["down.begin("]), ["exchange/state.rs"]);
}

#[test]
fn no_file_is_longer_than_can_be_read() {
    let mut sources = Vec::new();
    for directory in ["crates", "tests", "fuzz"] {
        files(&root().join(directory), "rs", &mut sources);
    }
    assert!(sources.len() > 100);
    for path in sources {
        let name = path.strip_prefix(root()).expect("a path below the root").display().to_string();
        let is_source = name.starts_with("crates/") && name.split('/').nth(2) == Some("src");
        let most = if is_source { LONGEST_SOURCE } else { LONGEST };
        let lines = fs::read_to_string(&path).expect("a source file").lines().count();
        assert!(lines <= most, "{name} has {lines} lines, more than {most}");
    }
}
