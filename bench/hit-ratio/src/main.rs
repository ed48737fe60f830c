//! Compares the hit ratios of Sandarac's store with those of other cache policies, on synthetic traces.
//!
//! Every policy gets the same requests and the same bytes of memory. A request is a hit if its body did not
//! come from the origin; so is one that was answered after a 304. Hits count after a warm-up.

mod cache;
mod cost;
mod options;
mod ours;
mod patterns;
mod policies;
mod random;
mod report;
mod results;
mod traces;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use cache::Cache;
use options::Options;
use policies::Kind;
use results::{Ratio, Results};
use traces::{RECIPES, Recipe, Trace};

/// One of so many requests belongs to the warm-up, in which hits do not count.
const WARM_UP: usize = 5;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    if options.help {
        println!("{}", options::USAGE);
        return ExitCode::SUCCESS;
    }
    if options.list {
        report::list();
        return ExitCode::SUCCESS;
    }
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let earlier = options.against.as_deref().map(Results::read).transpose()?;
    if let Some(earlier) = &earlier {
        earlier.must_be_comparable(options.seed, options.requests)?;
    }
    let began = Instant::now();
    let results = measure(options);
    report::tables(&results);
    if let Some(earlier) = &earlier {
        report::against(&results, earlier);
    }
    println!(
        "\n{} requests in most traces, seed {}; {:.0} s",
        options.requests,
        options.seed,
        began.elapsed().as_secs_f64()
    );
    options.out.as_deref().map_or(Ok(()), |path| results.write(path))
}

/// Runs all selected policies on all selected traces.
fn measure(options: &Options) -> Results {
    // The traces that take longest stand last.
    let recipes: Vec<&Recipe> = RECIPES.iter().filter(|recipe| options.takes(recipe)).rev().collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while let Some(&recipe) = recipes.get(next.fetch_add(1, Relaxed)) {
                    let began = Instant::now();
                    let trace = recipe.make(options.seed, options.requests);
                    let ratios: Vec<_> =
                        options.policies.iter().map(|&kind| (kind, ratio(kind, &trace))).collect();
                    eprintln!("{} {:.1} s", recipe.name, began.elapsed().as_secs_f64());
                    done.lock().expect("no thread panics").push((recipe.name, ratios));
                }
            });
        }
    });
    let mut traces = done.into_inner().expect("no thread panics");
    traces.sort_by_key(|(name, _)| RECIPES.iter().position(|recipe| recipe.name == *name));
    Results::new(options.seed, options.requests, traces)
}

/// Plays a trace against a cache.
fn ratio(kind: Kind, trace: &Trace) -> Ratio {
    let mut cache: Box<dyn Cache> = kind.make(trace);
    let warm = trace.requests.len() / WARM_UP;
    let (mut hits, mut hit_bytes, mut bytes) = (0u64, 0u64, 0u64);
    for (number, request) in trace.requests.iter().enumerate() {
        let hit = cache.request(number, request);
        if number >= warm {
            let size = u64::from(request.size);
            bytes += size;
            hits += u64::from(hit);
            hit_bytes += if hit { size } else { 0 };
        }
    }
    let counted = (trace.requests.len() - warm) as f64;
    Ratio { objects: 100.0 * hits as f64 / counted, bytes: 100.0 * hit_bytes as f64 / bytes as f64 }
}
