//! Instructions per operation of the store, counted by callgrind: the same in every run, however busy the
//! machine.
//!
//! `cargo bench -p sandarac-cache` runs every operation a number of times and twice as often, and divides the
//! difference.

use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use sandarac_cache::{Intent, Key, Lookup, NewObject, Purge, Query, Settings, Store, Tag};
use sandarac_message::caching::{Lifetimes, RequestDirectives};
use sandarac_message::vary::{VaryRule, VarySpec};
use sandarac_message::{Fields, FieldsBuf, StoredHead, Timestamp};

const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);
const HOST: &[u8] = b"www.example.org";

/// How often an operation is run, so that the cost of its first runs cancels out.
const TIMES: usize = 20_000;

/// An operation to measure: its name, the objects in the store, and the function that runs it on the n-th.
type Operation = (&'static str, usize, fn(&Bench, usize));

const OPERATIONS: &[Operation] = &[
    ("key of a host and a target of 25 bytes", 0, |_, n| _ = black_box(key(n))),
    ("hit among 1 000 objects", 1_000, |bench, n| hit(bench, n)),
    ("hit among 100 000 objects", 100_000, |bench, n| hit(bench, n)),
    ("hit among 1 000 000 objects", 1_000_000, |bench, n| hit(bench, n)),
    ("hit of one variant of two", 1_000, |bench, n| varied_hit(bench, n)),
    ("miss, and its flight dropped", 1_000, |bench, n| {
        let Lookup::Miss(flight) = bench.lookup(bench.keys[n % 1_000].1, Fields::default()) else {
            panic!("no miss")
        };
        drop(flight);
    }),
    ("store of 1 000 bytes, another evicted", 40_000, |bench, n| {
        bench.put(&path(n + 10_000_000), &[], Fields::default(), &VarySpec::None);
    }),
    ("purge by a tag that each object of 20 000 has", 20_000, |bench, n| {
        if n == 0 {
            assert_eq!(bench.store.purge_tags(&[Tag::new(b"all")], Purge::Hard, NOW), 20_000);
        }
    }),
];

struct Bench {
    store: Arc<Store>,
    /// A key that is stored, and one that is not.
    keys: Vec<(Key, Key)>,
    head: StoredHead,
    gzip: FieldsBuf,
    body: Vec<u8>,
}

fn path(n: usize) -> Vec<u8> {
    format!("/articles/{n:010}/page").into_bytes()
}

fn key(n: usize) -> Key {
    let mut path = *b"/articles/0000000000/page";
    let (mut at, mut rest) = (19, n);
    while rest > 0 {
        path[at] = b'0' + (rest % 10) as u8;
        (at, rest) = (at - 1, rest / 10);
    }
    Key::of(b"http", HOST, &path)
}

fn hit(bench: &Bench, n: usize) {
    // In scattered order, so that consecutive lookups do not hit neighbours.
    let place = n.wrapping_mul(7_919) % bench.keys.len();
    match bench.lookup(bench.keys[place].0, Fields::default()) {
        Lookup::Hit(object) => drop(black_box(object)),
        _ => panic!("no hit"),
    }
}

fn varied_hit(bench: &Bench, n: usize) {
    if n == 0 {
        let vary = VarySpec::of(
            [("Vary", "Accept-Encoding")].into_iter().collect::<FieldsBuf>().view(),
            &VaryRule::default(),
        );
        for n in 0..1_000 {
            bench.put(&path(n), &[], bench.gzip.view(), &vary);
            bench.put(&path(n), &[], Fields::default(), &vary);
        }
    }
    match bench.lookup(bench.keys[n % 1_000].0, bench.gzip.view()) {
        Lookup::Hit(object) => drop(black_box(object)),
        _ => panic!("no hit"),
    }
}

impl Bench {
    fn new(objects: usize) -> Bench {
        let fields: FieldsBuf =
            [("Content-Type", "text/html"), ("ETag", "\"0123456789abcdef\"")].into_iter().collect();
        // With 40 000 objects, the store is full.
        let limit = if objects == 40_000 { 32 << 20 } else { 4 << 30 };
        let bench = Bench {
            store: Arc::new(Store::new(Settings::new(limit))),
            keys: (0..objects).map(|n| (key(n), key(n + 5_000_000))).collect(),
            head: StoredHead::new(200, b"OK", &fields).expect("a small head"),
            gzip: [("Accept-Encoding", "gzip")].into_iter().collect(),
            body: vec![b'x'; if objects == 1_000_000 { 10 } else { 1_000 }],
        };
        let tags = [Tag::new(b"all")];
        for n in 0..objects {
            bench.put(&path(n), &tags, Fields::default(), &VarySpec::None);
        }
        bench
    }

    fn put(&self, path: &[u8], tags: &[Tag], request: Fields<'_>, vary: &VarySpec) {
        let lifetimes = Lifetimes::fixed(NOW, Duration::from_secs(60), Duration::ZERO, Duration::ZERO);
        let (head, len) = (self.head.clone(), Some(self.body.len() as u64));
        let new_object = NewObject {
            head,
            lifetimes,
            vary: vary.key(request),
            host: HOST,
            path,
            tags,
            range: None,
            len,
            limit: None,
            resumable: false,
            copy: None,
            transaction: 1,
        };
        self.store.open(Key::of(b"http", HOST, path)).store_complete(new_object, &[&self.body], None);
    }

    fn lookup(&self, key: Key, fields: Fields<'_>) -> Lookup {
        let directives = RequestDirectives::default();
        let query = Query { fields, directives: &directives, part: None, intent: Intent::Fill };
        self.store.lookup(black_box(key), &query, NOW)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, operation, times] = &arguments[..]
        && let (Ok(operation), Ok(times)) = (operation.parse::<usize>(), times.parse::<usize>())
    {
        let (_, objects, run) = OPERATIONS[operation];
        let bench = Bench::new(objects);
        (0..times).for_each(|n| run(&bench, n));
        return;
    }
    for (at, (name, objects, _)) in OPERATIONS.iter().enumerate() {
        let tagged = name.starts_with("purge");
        let (few, many) = if tagged { (0, 1) } else { (TIMES, 2 * TIMES) };
        let (Some(few_cost), Some(many_cost)) = (instructions(at, few), instructions(at, many)) else {
            eprintln!("valgrind is needed to count instructions");
            return;
        };
        let runs = if tagged { *objects } else { many - few };
        println!("{name:<46} {:>6} instructions", (many_cost - few_cost) / runs as u64);
    }
}

/// Instructions that this program executes to run one operation `times` times.
fn instructions(operation: usize, times: usize) -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([operation.to_string(), times.to_string()])
        .output()
        .ok()?;
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{report}");
    report.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}
