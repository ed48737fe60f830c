//! Measures the balancer's targets in simulation, and reports whether they are met.
//!
//! `cargo run --release -p sandarac-lab --example bars -- [SEEDS] [PART OF A GROUP'S NAME]` simulates the
//! scenarios of `examples/simulate` with each of the seeds 1 to SEEDS (5). It prints a table with the median
//! and the worst of the seeds for each target.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sandarac_lab::{Algorithm, AlgorithmKind, Event, EventKind, Load, Phase, Report, Scenario, simulate};

/// Slowness of workers of mixed speed, the first of 16.
const MIXED: [f64; 10] = [3.0, 3.0, 2.0, 2.0, 2.0, 2.0, 1.5, 1.5, 1.5, 1.5];

/// When workers become unequal, in measured requests.
const CHANGE: u64 = 80_000;

const RIVALS: [&str; 5] = [
    "lard",
    "lard, low 2, high 12",
    "consistent_hash, factor 1.25",
    "consistent_hash, factor 2",
    "consistent_hash, factor 4",
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seeds = arguments.next().map_or(5, |count| count.parse().expect("a number of seeds"));
    let part = arguments.next().unwrap_or_default();
    println!("| bar | needed | median | worst | holds |\n|---|---|---|---|---|");
    let wanted = groups().into_iter().filter(|group| group.name.contains(part.as_str()));
    for group in wanted {
        let reports = play(&group.scenario, seeds);
        for bar in &group.bars {
            print_bar(&group.name, bar, &reports, seeds);
        }
    }
}

/// A scenario and its targets.
struct Group {
    name: String,
    scenario: Scenario,
    bars: Vec<Bar>,
}

/// A target: a number computed from the reports of one seed, by label, and its bound.
struct Bar {
    name: String,
    value: Box<Value>,
    needed: Needed,
}

/// A number computed from the reports of one seed, by label.
type Value = dyn Fn(&BTreeMap<String, Report>) -> f64;

#[derive(Clone, Copy)]
enum Needed {
    AtMost(f64),
    AtLeast(f64),
    /// A number for information, without a bound.
    Any,
}

fn bar(name: &str, needed: Needed, value: impl Fn(&BTreeMap<String, Report>) -> f64 + 'static) -> Bar {
    Bar { name: name.to_owned(), value: Box::new(value), needed }
}

/// The last phase of an algorithm's report.
fn last<'r>(reports: &'r BTreeMap<String, Report>, label: &str) -> &'r Phase {
    reports[label].phases.last().expect("a report has a phase")
}

/// The ratio of a number of `resume` to the least one of some others.
fn to_least(
    others: &'static [&'static str],
    number: fn(&Phase) -> f64,
) -> impl Fn(&BTreeMap<String, Report>) -> f64 {
    move |reports| {
        let least = others.iter().map(|label| number(last(reports, label))).fold(f64::MAX, f64::min);
        number(last(reports, "resume")) / least
    }
}

/// The ratio of a number of `resume` to the greatest one of some others.
fn to_greatest(
    others: &'static [&'static str],
    number: fn(&Phase) -> f64,
) -> impl Fn(&BTreeMap<String, Report>) -> f64 {
    move |reports| {
        let greatest = others.iter().map(|label| number(last(reports, label))).fold(0.0, f64::max);
        number(last(reports, "resume")) / greatest
    }
}

/// Scores that are frozen after the warm-up.
const FROZEN: [&str; 1] = ["resume, frozen"];

/// The targets for equal workers.
fn where_equal(fewer_loads: f64, times_throughput: f64) -> Vec<Bar> {
    use Needed::{AtLeast, AtMost};
    let least_requests = &["least_requests"];
    vec![
        bar("loads, of those of least_requests", AtMost(fewer_loads), to_least(least_requests, |p| p.loads)),
        bar(
            "throughput, of that of least_requests",
            AtLeast(times_throughput),
            to_least(least_requests, |p| p.throughput),
        ),
        bar("loads, of the best of lard and consistent_hash", AtMost(1.0), to_least(&RIVALS, |p| p.loads)),
        bar("throughput, of the same", AtLeast(1.0), to_greatest(&RIVALS, |p| p.throughput)),
        bar("p99, of the same", AtMost(1.0), to_least(&RIVALS, |p| p.p99_ms)),
        bar("loads, of frozen scores", AtMost(1.0), to_least(&FROZEN, |p| p.loads)),
        bar("throughput, of frozen scores", AtLeast(1.0), to_least(&FROZEN, |p| p.throughput)),
        bar("p99, of frozen scores", AtMost(1.0), to_least(&FROZEN, |p| p.p99_ms)),
    ]
}

/// Adds an oracle. Returns the ratio of its throughput to that of least_requests.
fn of_oracle(scenario: &mut Scenario, price: f64) -> Bar {
    let label = format!("oracle, price {price}");
    scenario.algorithms.push(Algorithm { label: label.clone(), kind: AlgorithmKind::Oracle { price } });
    bar(&format!("throughput of an {label}, of least_requests"), Needed::Any, move |reports| {
        last(reports, &label).throughput / last(reports, "least_requests").throughput
    })
}

fn groups() -> Vec<Group> {
    use Needed::{Any, AtLeast, AtMost};
    let mut groups = Vec::new();
    for (file, memory, fewer) in
        [("memory-half", "half", 0.4), ("memory-same", "all", 0.1), ("memory-twice", "twice", 0.1)]
    {
        let equal = read(file);
        let mut bars = where_equal(fewer, 3.0);
        let mut with_oracle = equal.clone();
        if file == "memory-half" {
            for price in [2.0, 4.0, 8.0] {
                bars.push(of_oracle(&mut with_oracle, price));
            }
        }
        groups.push(Group { name: format!("caches hold {memory}"), scenario: with_oracle, bars });

        for (which, slowness) in [("one worker 3 × slower", &MIXED[..1]), ("mixed speeds", &MIXED[..])] {
            let mut rivals = equal.clone();
            rivals.algorithms.retain(|algorithm| {
                algorithm.label.starts_with("resume") || RIVALS.contains(&algorithm.label.as_str())
            });
            let from_start = Scenario {
                workers: sandarac_lab::Workers { slowness: slowness.to_vec(), ..equal.workers.clone() },
                ..rivals.clone()
            };
            let slow = |(worker, &slowness): (usize, &f64)| Event {
                at: CHANGE,
                kind: EventKind::Slow { worker: worker as u32, slowness },
            };
            let from_then = Scenario { events: slowness.iter().enumerate().map(slow).collect(), ..rivals };
            for (when, scenario) in [("always", from_start), ("from then on", from_then)] {
                let mut bars = vec![bar(
                    "p99 of the best of lard and consistent_hash, of resume's",
                    AtLeast(1.3),
                    |reports| 1.0 / to_least(&RIVALS, |p| p.p99_ms)(reports),
                )];
                // Scores frozen with the slowness in them contain all there is to know.
                let needed = if when == "always" { Any } else { AtLeast(1.3) };
                bars.push(bar("p99 of frozen scores, of resume's", needed, move |reports| {
                    1.0 / to_least(&FROZEN, |p| p.p99_ms)(reports)
                }));
                groups.push(Group { name: format!("caches hold {memory}, {which} {when}"), scenario, bars });
            }
        }
    }
    // With few clients workers are idle, however good the choice is.
    for clients in [64, 128] {
        let mut scenario = read("memory-half");
        scenario.load = Load::Clients { count: clients, think_ms: 0.0 };
        scenario
            .algorithms
            .retain(|algorithm| ["resume", "least_requests"].contains(&algorithm.label.as_str()));
        let bars = vec![
            bar(
                "throughput, of that of least_requests",
                Any,
                to_least(&["least_requests"], |p| p.throughput),
            ),
            of_oracle(&mut scenario, 8.0),
        ];
        groups.push(Group { name: format!("caches hold half, {clients} clients"), scenario, bars });
    }
    for (jitter, vary) in [(0.0, ""), (0.3, ", times vary")] {
        for (cache, memory, fewer) in [(625, "half", 0.4), (1250, "all", 0.1), (2500, "twice", 0.1)] {
            let mut scenario = read("cheap-loads");
            (scenario.workers.cache, scenario.workers.jitter) = (cache, jitter);
            // As measured in the real experiment that it models: with no loads at all, pages would not be
            // three times as cheap.
            let bars = where_equal(fewer, 1.45);
            groups.push(Group { name: format!("cheap loads{vary}, caches hold {memory}"), scenario, bars });
        }
    }
    groups.push(Group {
        name: "working set fits one".to_owned(),
        scenario: read("small-working-set"),
        bars: vec![bar(
            "throughput, of that of least_requests",
            AtLeast(0.97),
            to_least(&["least_requests"], |p| p.throughput),
        )],
    });
    let mut crowd = read("flash-crowd");
    crowd.algorithms.retain(|algorithm| algorithm.label == "resume");
    groups.push(Group {
        name: "flash crowd".to_owned(),
        scenario: crowd,
        bars: vec![bar("p99 of other classes, of what it was", AtMost(2.0), |reports| {
            let phases = &reports["resume"].phases;
            phases[1].p99_others_ms / phases[0].p99_others_ms
        })],
    });
    let mut newcomer = read("new-worker");
    newcomer.algorithms.retain(|algorithm| algorithm.label == "resume");
    groups.push(Group {
        name: "new worker at 1 % load".to_owned(),
        scenario: newcomer,
        bars: vec![bar("requests until it carries its share", AtMost(5000.0), |reports| {
            last(reports, "resume").share_after.map_or(f64::INFINITY, |requests| requests as f64)
        })],
    });
    // If the loads of a phase never return to the level, the phase counts with its whole length.
    let needs = |report: &Report, phase: usize| {
        let phase = &report.phases[phase];
        phase.steady_after.unwrap_or(phase.requests) as f64
    };
    groups.push(Group {
        name: "changed classifier".to_owned(),
        scenario: read("classifier-change"),
        bars: vec![
            bar(
                "requests to recover, of what stale reports need, uncorrected",
                AtMost(0.25),
                move |reports| needs(&reports["resume"], 1) / needs(&reports["resume, uncorrected"], 2),
            ),
            bar("requests to recover, of what stale scores need, corrected", Any, move |reports| {
                needs(&reports["resume"], 1) / needs(&reports["resume"], 2)
            }),
            bar(
                "requests to recover, of what stale résumés as published need to come so far",
                AtMost(0.25),
                move |reports| {
                    let resume = &reports["resume"];
                    needs(resume, 1) / until(&reports["published"], 2, resume.phases[0].loads * 1.1)
                },
            ),
            bar(
                "requests to be as good as published, of what that needs with stale résumés",
                Any,
                move |reports| {
                    let published = &reports["published"];
                    let level = published.phases[0].loads * 1.1;
                    until(&reports["resume"], 1, level) / until(published, 2, level)
                },
            ),
            bar("requests to recover", Any, move |reports| needs(&reports["resume"], 1)),
        ],
    });
    groups
}

/// Requests from the beginning of a phase until the loads per request of a window are at most `level`; the
/// length of the phase if they never are.
fn until(report: &Report, phase: usize, level: f64) -> f64 {
    let before: u64 = report.phases[..phase].iter().map(|phase| phase.requests).sum();
    let requests = report.phases[phase].requests;
    let (first, count) = ((before / report.window) as usize, (requests / report.window) as usize);
    let windows = &report.loads_over_time[first..first + count];
    let reached = windows.iter().position(|&loads| loads <= level).map(|at| (at as u64 + 1) * report.window);
    reached.unwrap_or(requests) as f64
}

fn read(name: &str) -> Scenario {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/simulate");
    let text =
        std::fs::read_to_string(directory.join(format!("{name}.toml"))).expect("the scenario is there");
    Scenario::from_toml(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Simulates a scenario with every algorithm and seed, on all cores. Returns the reports of each seed, by
/// label.
fn play(scenario: &Scenario, seeds: u64) -> Vec<BTreeMap<String, Report>> {
    let seeded: Vec<_> = (1..=seeds).map(|seed| Scenario { seed, ..scenario.clone() }).collect();
    let jobs: Vec<_> = (0..seeded.len())
        .flat_map(|seed| (0..scenario.algorithms.len()).map(move |algorithm| (seed, algorithm)))
        .collect();
    let next = AtomicUsize::new(0);
    let reports = Mutex::new(vec![BTreeMap::new(); seeded.len()]);
    let work = || {
        while let Some(&(seed, algorithm)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let report = simulate(&seeded[seed], &scenario.algorithms[algorithm]);
            reports.lock().expect("nobody panicked")[seed].insert(report.label.clone(), report);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
    reports.into_inner().expect("nobody panicked")
}

fn print_bar(group: &str, bar: &Bar, reports: &[BTreeMap<String, Report>], seeds: u64) {
    let mut values: Vec<f64> = reports.iter().map(&bar.value).collect();
    values.sort_by(f64::total_cmp);
    let median = values[(seeds / 2) as usize];
    let (needed, worst, holds) = match bar.needed {
        Needed::AtMost(most) => {
            let worst = values[values.len() - 1];
            (format!("≤ {most}"), worst, holds(median <= most, worst <= most))
        }
        Needed::AtLeast(least) => {
            (format!("≥ {least}"), values[0], holds(median >= least, values[0] >= least))
        }
        Needed::Any => ("–".to_owned(), values[values.len() - 1], "–"),
    };
    let show = |value: f64| if value < 100.0 { format!("{value:.3}") } else { format!("{value:.0}") };
    println!("| {group}: {} | {needed} | {} | {} | {holds} |", bar.name, show(median), show(worst));
}

fn holds(median: bool, worst: bool) -> &'static str {
    match (median, worst) {
        (true, true) => "yes",
        (true, false) => "mostly",
        _ => "**no**",
    }
}
