//! Changed old programs: each is upgraded to a program without errors, or refused.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use sandarac_vcl::{Limits, NoFiles, UpgradeOptions, UpgradeRefusal, parse, upgrade};

/// The number of changed programs of each old file.
const PER_FILE: usize = 60;

/// The words that changes write into a program.
const WORDS: &[&str] = &[
    "purge;",
    "esi;",
    "restart;",
    "error 404 \"x\";",
    "error;",
    "return (lookup);",
    "return (fetch);",
    "return (hit_for_pass);",
    "C{ int a; }C",
    "if (req.request == \"PURGE\") { purge; }",
    "if (obj.status == 503) { set obj.http.X = obj.response; }",
    "set req.backend = b;",
    "set obj.ttl = 0s;",
    "set beresp.saintmode = 1s;",
    "log \"a\" req.url;",
    "remove req.http.A;",
    "synthetic {\"a\"};",
    "call vcl_error;",
    "director x random { { .backend = { .host = \"a\"; } } }",
    "director y client { { .backend = x; .weight = 2; } }",
    "sub vcl_hit { set obj.http.X = \"y\"; }",
    "sub vcl_fetch { set req.grace = 1 m; pass; }",
    "sub vcl_timeout { return (fetch); }",
    "/* x */",
    "# y\n",
    ";",
    "}",
    "{",
    "beresp.cacheable",
    "req.backend.healthy",
    "\"%22%7d\"",
    "req.esi_level",
];

#[test]
fn changed_programs_are_upgraded_or_refused() {
    let mut random = Random(0x5eed);
    let (mut upgraded, mut refused) = (0, 0);
    for text in old_files() {
        for _ in 0..PER_FILE {
            let mut changed = text.clone();
            for _ in 0..=random.below(3) {
                change(&mut changed, &mut random);
            }
            match is_upgraded(&changed) {
                true => upgraded += 1,
                false => refused += 1,
            }
        }
    }
    // Most changes are mistakes; the others show that the output is checked at all.
    assert!(upgraded > 500 && refused > 100, "{upgraded} upgraded, {refused} refused");
}

#[test]
fn prefixes_of_programs_are_upgraded_or_refused() {
    for text in old_files() {
        for end in (0..text.len()).step_by(41) {
            is_upgraded(&text[..end]);
        }
    }
}

/// Cuts, copies, doubles, or writes a word at a random place.
fn change(text: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(text.len());
    let end = (at + random.below(60)).min(text.len());
    match random.below(6) {
        0 => drop(text.drain(at..end)),
        1 => {
            let copy = text[at..end].to_vec();
            let into = random.below(text.len());
            text.splice(into..into, copy);
        }
        2 => {
            // A whole line moves.
            let start = text[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            let end =
                text[at..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |end| at + end + 1);
            let line: Vec<u8> = text.drain(start..end).collect();
            let into = random.below(text.len());
            let into =
                text[into..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |at| into + at + 1);
            text.splice(into..into, line);
        }
        _ => {
            let word = WORDS[random.below(WORDS.len())];
            // After a mark that may end a statement, so that many programs have no mistake.
            let marks = |byte: &u8| matches!(byte, b';' | b'{' | b'}');
            let place = text[at..].iter().position(marks).map_or(text.len(), |found| at + found + 1);
            text.splice(place..place, format!(" {word} ").into_bytes());
        }
    }
    if text.is_empty() {
        text.push(b' ');
    }
}

/// Whether the program is upgraded rather than refused. A program that is not refused has no errors, and its
/// second upgrade changes nothing.
fn is_upgraded(text: &[u8]) -> bool {
    let read = |text: &[u8]| parse("main.vcl", Arc::from(text), &mut NoFiles, Limits::default());
    let parsed = read(text);
    let shown = || String::from_utf8_lossy(text).into_owned();
    let new = match upgrade(&parsed, UpgradeOptions::default()) {
        Ok(new) => new,
        Err(UpgradeRefusal::Unreadable(_)) => return false,
        Err(refusal) => panic!("{refusal}: {}", shown()),
    };
    new.list(&parsed.sources);
    let (id, new_text) = new.files().next().expect("a file");
    new.diff(&parsed.sources, id);
    if new.dialect != sandarac_vcl::Dialect::Old {
        return false;
    }
    let again = read(new_text);
    assert!(!again.has_errors(), "{:?} of {}", again.diagnostics, shown());
    let second = upgrade(&again, UpgradeOptions::default()).expect("an upgrade");
    assert!(second.changes.is_empty(), "{}", shown());
    true
}

fn old_files() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vcl/old");
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("the corpus").map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| !path.to_string_lossy().ends_with(".expected.vcl"));
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("an old file")).collect()
}

/// Numbers that look random, the same in every run (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}
