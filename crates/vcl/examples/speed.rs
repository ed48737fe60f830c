//! Measures how long the parse of 10 000 lines takes.
//!
//! `cargo run --release -p sandarac-vcl --example speed`

use std::sync::Arc;
use std::time::Instant;

use sandarac_vcl::{Limits, NoFiles, parse};

/// Lines as real programs have them: conditions, patterns, assignments, comments.
const LINES: &str = r#"
# The pages of the shop: no cookies, and one copy for each language.
sub shop_recv {
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    if (req.url ~ "(?i)\.(css|js|jpg|png|svg|woff2?)(\?.*)?$") {
        unset req.http.Cookie;
        set req.url = regsub(req.url, "\?v=[0-9a-f]+$", "");
    } elsif (req.http.Cookie ~ "(^|; )session=" || req.url ~ "^/(cart|checkout|account)(/|$)") {
        return (pass);
    } else {
        set req.http.X-Language = std.tolower(regsub(req.http.Accept-Language, "^([a-z]{2}).*$", "\1"));
        set req.http.X-Key = req.http.Host + ":" + req.http.X-Language + ":" + req.restarts;
    }
    set req.grace = 10s;
    set req.http.X-Note = {"a "quoted" text"};
    call normalize;
}
"#;

fn main() {
    const WANTED: usize = 10_000;
    const RUNS: usize = 21;
    let repeats = WANTED.div_ceil(LINES.lines().count());
    let text = format!("vcl 4.1;\n{}", LINES.repeat(repeats));
    let lines = text.lines().count();
    let text: Arc<[u8]> = text.into_bytes().into();
    let mut times: Vec<_> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            let parsed = parse("shop.vcl", text.clone(), &mut NoFiles, Limits::default());
            let elapsed = start.elapsed();
            assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics.first());
            elapsed
        })
        .collect();
    times.sort();
    println!(
        "{lines} lines, {} bytes: median {:.1} ms, slowest {:.1} ms of {RUNS} runs",
        text.len(),
        times[RUNS / 2].as_secs_f64() * 1000.0,
        times[RUNS - 1].as_secs_f64() * 1000.0
    );
}
