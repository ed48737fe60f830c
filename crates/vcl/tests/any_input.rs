//! Inputs that are no programs: cut, changed and hostile ones. None makes the parser panic, loop or nest
//! without bound.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sandarac_vcl::check::{BasicPatterns, check as check_program};
use sandarac_vcl::{
    IncludeRequest, Limits, LoadError, LoadedFile, Loader, NoFiles, Parsed, parse, render, to_json,
};

/// The time that one input may take in a build without optimisation, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn every_prefix_of_a_program_is_read() {
    for text in programs() {
        for end in 0..text.len() {
            check(&text[..end]);
        }
    }
}

#[test]
fn programs_with_changed_bytes_are_read() {
    const MARKS: &[u8] = b"{}();,.\"'\n+-*/=~!<>&|:%#\0\xff C0";
    let mut random = Random(0x5eed);
    for text in programs() {
        for _ in 0..400 {
            let mut bytes = text.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len());
                let mark = MARKS[random.below(MARKS.len())];
                match random.below(4) {
                    0 => bytes[at] = mark,
                    1 => bytes.insert(at, mark),
                    2 => drop(bytes.remove(at)),
                    _ => {
                        let end = (at + random.below(40)).min(bytes.len());
                        let copy = bytes[at..end].to_vec();
                        let into = random.below(bytes.len());
                        bytes.splice(into..into, copy);
                    }
                }
            }
            check(&bytes);
        }
    }
}

#[test]
fn deep_and_long_texts_are_an_error_in_bounded_time_on_a_small_stack() {
    // The stack of a thread has 2 MiB if nothing else was said.
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(read_deep_and_long_texts);
    thread.expect("a thread").join().expect("no panic");
}

fn read_deep_and_long_texts() {
    let million = 1 << 20;
    let inputs: Vec<(&str, Vec<u8>)> = vec![
        ("parentheses", b"(".repeat(million / 2)),
        (
            "parentheses in a sub",
            [b"vcl 4.1; sub a { set req.url = ".to_vec(), b"(".repeat(million / 2)].concat(),
        ),
        ("braces in a sub", [b"vcl 4.1; sub a ".to_vec(), b"{".repeat(million / 2)].concat()),
        ("conditions", [b"vcl 4.1; sub a { ".to_vec(), b"if (a) {".repeat(million / 8)].concat()),
        (
            "conditions without braces",
            [b"vcl 4.1; sub a { ".to_vec(), b"if (a)\n ".repeat(million / 8)].concat(),
        ),
        ("negations", [b"vcl 4.1; sub a { if (".to_vec(), b"!".repeat(million / 2)].concat()),
        ("signs", [b"vcl 4.1; sub a { set b = ".to_vec(), b"-".repeat(million / 2)].concat()),
        ("calls", [b"vcl 4.1; sub a { ".to_vec(), b"b(".repeat(million / 2)].concat()),
        ("members", [b"vcl 4.1; sub a { set b = (c)".to_vec(), b".d()".repeat(million / 4)].concat()),
        ("blocks of properties", [b"vcl 4.1; backend a {".to_vec(), b".b = {".repeat(million / 6)].concat()),
        ("closing braces", b"}".repeat(million)),
        ("quotes", b"\"".repeat(million)),
        ("quotes on lines", b"\"\n".repeat(million / 2)),
        ("openings of long strings", b"acl a {\"".repeat(million / 8)),
        ("openings of comments", b"/*".repeat(million / 2)),
        ("openings of C", b"C{ ".repeat(million / 3)),
        ("colons", b":".repeat(million)),
        ("a long name", [b"vcl 4.1; sub ".to_vec(), b"a".repeat(65_536), b" { call }".to_vec()].concat()),
        (
            "a long number",
            [b"vcl 4.1; sub a { set b = ".to_vec(), b"9".repeat(65_536), b"; }".to_vec()].concat(),
        ),
        ("NUL bytes", b"\0".repeat(million)),
        ("bytes that are not UTF-8", b"\xff".repeat(million)),
        ("such bytes with words", b"\xff a ".repeat(million / 4)),
        ("characters without a meaning", "é ".repeat(million / 3).into_bytes()),
        ("more bytes than a program may have", b" ".repeat(9 << 20)),
        (
            "more words than a program may have",
            [b"vcl 4.1; sub a { ".to_vec(), b"b();".repeat(million / 2)].concat(),
        ),
        (
            "a million entries",
            [b"vcl 4.1; acl a { ".to_vec(), b"\"a\";\n".repeat(1_000_000), b"}".to_vec()].concat(),
        ),
    ];
    for (name, text) in inputs {
        let start = Instant::now();
        let parsed = read(&text, &mut NoFiles);
        assert!(parsed.has_errors(), "{name}");
        let shown: usize = parsed.diagnostics.iter().map(|found| render(&parsed.sources, found).len()).sum();
        assert!(shown < 1 << 20, "{name}: the messages have {shown} bytes");
        assert!(start.elapsed() < PATIENCE, "{name}: {:?}", start.elapsed());
    }
}

#[test]
fn long_chains_of_operators_do_not_nest() {
    for operator in [" + b", " && b", " || b", " * 2", " \"c\""] {
        let chain = operator.repeat(50_000);
        let parsed = read(format!("sub vcl_fetch {{ set a = b{chain}; }}").as_bytes(), &mut NoFiles);
        assert_eq!(parsed.diagnostics, [], "{operator}");
    }
    let branches = "elsif (a) { }\n".repeat(50_000);
    let parsed = read(format!("vcl 4.1; sub a {{ if (a) {{ }}\n{branches} }}").as_bytes(), &mut NoFiles);
    assert_eq!(parsed.diagnostics, []);
}

/// A loader whose files include two others each, without end.
struct Endless(usize);

impl Loader for Endless {
    fn load(&mut self, _: IncludeRequest<'_>) -> Result<Vec<LoadedFile>, LoadError> {
        self.0 += 1;
        let text = b"include \"a\"; include \"b\";";
        Ok(vec![LoadedFile { name: self.0.to_string(), text: Arc::from(&text[..]) }])
    }
}

#[test]
fn endless_includes_reach_a_limit() {
    let parsed = read(b"vcl 4.1; include \"a\";", &mut Endless(0));
    let names: Vec<&str> = parsed.diagnostics.iter().map(|found| found.rule.name).collect();
    assert_eq!(names, ["limit-includes"]);
    let limits = Limits { include_depth: usize::MAX, nesting: 50, ..Limits::default() };
    let text: Arc<[u8]> = Arc::from(&b"vcl 4.1; include \"a\";"[..]);
    let parsed = parse("main.vcl", text.clone(), &mut Endless(0), limits);
    assert_eq!(parsed.diagnostics[0].rule.name, "limit-nesting");
    let limits = Limits { include_depth: 10, files: 5, ..Limits::default() };
    let parsed = parse("main.vcl", text, &mut Endless(0), limits);
    assert_eq!(parsed.diagnostics[0].rule.name, "limit-files");
}

#[test]
fn large_programs_are_checked_in_bounded_time_on_a_small_stack() {
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(check_large_programs);
    thread.expect("a thread").join().expect("no panic");
}

fn check_large_programs() {
    let many = |count: usize, part: &dyn Fn(usize) -> String| (0..count).map(part).collect::<String>();
    let head = "vcl 4.1; backend default none;\n";
    for text in [
        // A chain of calls, a ring, and calls of subs that do not exist but have similar names.
        many(50_000, &|at| format!("sub s{at} {{ call s{}; }}\n", at + 1)) + "sub vcl_recv { call s0; }",
        many(50_000, &|at| format!("sub s{at} {{ call s{}; }}\n", (at + 1) % 50_000)),
        many(20_000, &|at| format!("sub normalise_{at} {{ call normalize_{at}; }}\n")),
        // Entries, conditions, arguments, variables and patterns in large numbers.
        format!(
            "acl a {{ {} }}",
            many(200_000, &|at| format!("\"10.{}.{}.0\"/24;\n", at / 256 % 256, at % 256))
        ),
        format!(
            "sub vcl_recv {{ {} }}",
            many(40_000, &|at| format!("set req.http.X{at} = req.ulr + {at};\n"))
        ),
        format!("sub vcl_recv {{ if (req.url ~ \"{}\") {{ }} }}", "(a+)*[".repeat(100_000)),
        format!("sub vcl_recv {{ std.log({}); }}", "1, ".repeat(200_000)),
        format!("sub vcl_recv {{ set req.url = {}; }}", "req.url + ".repeat(100_000) + "1"),
        format!("sub vcl_recv {{ {} }}", "return (restart); ban(\"a\");".repeat(30_000)),
    ] {
        check(format!("{head}{text}").as_bytes());
    }
}

#[test]
fn many_errors_end_with_one_that_tells_their_number() {
    let text = format!("vcl 4.1; sub a {{ {} }}", "set b;\n".repeat(1000));
    let parsed = read(text.as_bytes(), &mut NoFiles);
    assert_eq!(parsed.diagnostics.len(), 101);
    assert!(parsed.diagnostics.iter().any(|found| found.rule.name == "limit-errors"));
}

/// Reads a text, and shows each diagnostic in both forms.
fn check(text: &[u8]) {
    let start = Instant::now();
    let parsed = read(text, &mut NoFiles);
    for found in &check_program(&parsed, &BasicPatterns) {
        assert!(found.span.end as usize <= text.len(), "{found:?}");
        render(&parsed.sources, found);
        to_json(&parsed.sources, found);
    }
    assert!(start.elapsed() < PATIENCE, "{}", String::from_utf8_lossy(text));
}

fn read(text: &[u8], loader: &mut dyn Loader) -> Parsed {
    parse("main.vcl", Arc::from(text), loader, Limits::default())
}

/// The programs of the transcripts: small ones, with mistakes of all kinds.
fn programs() -> Vec<Vec<u8>> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let entries = |name: &str| fs::read_dir(tests.join(name)).expect("the transcripts");
    let entries = entries("transcripts").chain(entries("checked"));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let mut programs = Vec::new();
    for path in paths {
        let text = fs::read_to_string(path).expect("a transcript");
        for case in format!("\n{text}").split("\n== ").skip(1) {
            let program = case.split("\n-").next().and_then(|part| part.split_once('\n'));
            programs.extend(program.map(|(_, program)| program.as_bytes().to_vec()));
        }
    }
    assert!(programs.len() > 50, "only {} programs were found", programs.len());
    programs
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
