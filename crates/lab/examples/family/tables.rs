//! The tables: scenarios, groups, bars.

use std::collections::BTreeMap;

use crate::Options;
use crate::draw::{Drawn, PLENTY, Speeds};
use crate::run::{Key, Outcome};

/// The algorithms that the subject is compared with; the best of the hashing ones counts as one.
const REFERENCES: [&[&str]; 3] =
    [&["published"], &["least_requests"], &["hashing 1.25", "hashing 2", "hashing 4"]];

/// Fewer loads per request than this are as good as none.
const FEW_LOADS: f64 = 0.01;

/// The part of the throughput, or of the inverse p99 under open load, of `published` and of `least_requests`
/// that is enough.
const ENOUGH: [f64; 2] = [0.95, 0.97];

/// The percentage of scenarios in which that must be so.
const MOST: usize = 95;

/// How the subject compares with a reference in a scenario.
#[derive(Clone, Copy)]
struct Ratios {
    throughput: f64,
    p99: f64,
    loads: f64,
}

struct Judged<'a> {
    drawn: &'a Drawn,
    /// Of the subject.
    loads: f64,
    overlap: f64,
    ratios: Vec<Ratios>,
}

pub(crate) fn print(drawn: &[Drawn], options: &Options, outcomes: &BTreeMap<Key, Outcome>) {
    let mut references: Vec<Vec<&str>> = REFERENCES.iter().map(|labels| labels.to_vec()).collect();
    references.extend(options.against.as_deref().map(|label| vec![label]));
    let present = |labels: &Vec<&str>| outcomes.keys().any(|(_, _, label)| labels.contains(&label.as_str()));
    references.retain(present);
    let judged: Vec<Judged<'_>> =
        drawn.iter().filter_map(|drawn| judge(drawn, options, &references, outcomes)).collect();
    print_scenarios(&judged, &references);
    print_groups(&judged, &references);
    print_bars(&judged);
}

fn judge<'a>(
    drawn: &'a Drawn,
    options: &Options,
    references: &[Vec<&str>],
    outcomes: &BTreeMap<Key, Outcome>,
) -> Option<Judged<'a>> {
    let of = |seed: u64, label: &str| outcomes.get(&(drawn.number, seed, label.to_owned()));
    let own: Vec<&Outcome> = (1..=options.seeds).filter_map(|seed| of(seed, &options.subject)).collect();
    if own.is_empty() {
        return None;
    }
    let compare = |labels: &Vec<&str>| {
        let mut each = Vec::new();
        for own in &own {
            let others: Vec<&Outcome> = labels.iter().filter_map(|label| of(own.seed, label)).collect();
            let best = |number: fn(&Outcome) -> f64| others.iter().map(move |other| number(other));
            each.push(Ratios {
                throughput: own.throughput / best(|other| other.throughput).fold(0.0, f64::max),
                p99: own.p99_ms / best(|other| other.p99_ms).fold(f64::INFINITY, f64::min),
                loads: own.loads.max(FEW_LOADS)
                    / best(|other| other.loads).fold(f64::INFINITY, f64::min).max(FEW_LOADS),
            });
        }
        Ratios {
            throughput: median(each.iter().map(|ratios| ratios.throughput)),
            p99: median(each.iter().map(|ratios| ratios.p99)),
            loads: median(each.iter().map(|ratios| ratios.loads)),
        }
    };
    Some(Judged {
        drawn,
        loads: median(own.iter().map(|own| own.loads)),
        overlap: median(own.iter().map(|own| own.overlap)),
        ratios: references.iter().map(compare).collect(),
    })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn name(labels: &[&str]) -> String {
    labels[0].split(' ').next().unwrap_or_default().to_owned()
}

fn describe(drawn: &Drawn) -> String {
    let sandarac_lab::Scenario { sites, workers, load, .. } = &drawn.scenario;
    let sandarac_lab::Popularity::Zipf(zipf) = sites.popularity else { unreachable!("all are Zipf") };
    let sandarac_lab::Load::Clients { count, .. } = load else { unreachable!("all are drawn closed") };
    format!(
        "{:3} | {} {} | {} sites × {}, {} a request, {:.1}+{:.1} ms, {} workers, memory {:.2}, {:.1} clients, zipf {:.2}, churn {:.2}",
        drawn.number,
        if drawn.open { "open" } else { "closed" },
        match drawn.speeds {
            Speeds::Equal => "equal",
            Speeds::OneSlow => "one slow",
            Speeds::Mixed => "mixed",
        },
        sites.count,
        sites.objects,
        sites.objects_per_request,
        workers.fixed_ms,
        workers.load_ms,
        workers.count,
        drawn.memory,
        f64::from(*count) / f64::from(workers.count),
        zipf,
        sites.churn,
    )
}

fn print_scenarios(judged: &[Judged<'_>], references: &[Vec<&str>]) {
    let names = references.iter().map(|labels| format!(" of {}: throughput, p99 |", name(labels)));
    println!("| scenario | load | |{} loads/request | overlap |", names.collect::<String>());
    println!("|---|---|---|{}---|---|", "---|".repeat(references.len()));
    for scenario in judged {
        let ratios = scenario.ratios.iter().map(|of| format!(" {:.2}, {:.2} |", of.throughput, of.p99));
        println!(
            "| {} |{} {:.3} | {:.0} % |",
            describe(scenario.drawn),
            ratios.collect::<String>(),
            scenario.loads,
            100.0 * scenario.overlap,
        );
    }
}

/// A group of scenarios.
type Group = (&'static str, fn(&Drawn) -> bool);

const GROUPS: [Group; 9] = [
    ("all", |_| true),
    ("memory 0.3 to 1", |drawn| drawn.memory < 1.0),
    ("memory 1 to 3", |drawn| (1.0..3.0).contains(&drawn.memory)),
    ("memory 3 to 6", |drawn| drawn.memory >= 3.0),
    ("closed", |drawn| !drawn.open),
    ("open", |drawn| drawn.open),
    ("equal", |drawn| drawn.speeds == Speeds::Equal),
    ("one slow", |drawn| drawn.speeds == Speeds::OneSlow),
    ("mixed speeds", |drawn| drawn.speeds == Speeds::Mixed),
];

/// Geometric means. The throughput of an open load is that of its source, so only closed loads count for it.
fn print_groups(judged: &[Judged<'_>], references: &[Vec<&str>]) {
    let names = references.iter().map(|labels| format!(" of {0}: throughput | p99 | loads |", name(labels)));
    println!("\n| geometric means | scenarios |{} overlap |", names.collect::<String>());
    println!("|---|---|{}---|", "---|---|---|".repeat(references.len()));
    for (name, belongs) in GROUPS {
        let members: Vec<&Judged<'_>> = judged
            .iter()
            .filter(|scenario| scenario.drawn.number != PLENTY && belongs(scenario.drawn))
            .collect();
        if members.is_empty() {
            continue;
        }
        let mean = |at: usize, closed: bool, number: fn(&Ratios) -> f64| {
            let counted = members.iter().filter(|scenario| !(closed && scenario.drawn.open));
            let logs: Vec<f64> = counted.map(|scenario| number(&scenario.ratios[at]).ln()).collect();
            (logs.iter().sum::<f64>() / logs.len() as f64).exp()
        };
        let columns = (0..references.len()).map(|at| {
            let throughput = mean(at, true, |ratios| ratios.throughput);
            let (p99, loads) = (mean(at, false, |ratios| ratios.p99), mean(at, false, |ratios| ratios.loads));
            let throughput = if throughput.is_nan() { "–".to_owned() } else { format!("{throughput:.3}") };
            format!(" {throughput} | {p99:.3} | {loads:.3} |")
        });
        let overlap = members.iter().map(|scenario| scenario.overlap).sum::<f64>() / members.len() as f64;
        println!("| {name} | {} |{} {:.0} % |", members.len(), columns.collect::<String>(), 100.0 * overlap);
    }
}

fn print_bars(judged: &[Judged<'_>]) {
    println!();
    for (at, enough, of) in [(0, ENOUGH[0], "published"), (1, ENOUGH[1], "least_requests")] {
        let ratio = |scenario: &Judged<'_>| {
            let ratios = scenario.ratios.get(at)?;
            Some(if scenario.drawn.open { 1.0 / ratios.p99 } else { ratios.throughput })
        };
        let counted = || judged.iter().filter(|scenario| scenario.drawn.number != PLENTY);
        let below: Vec<String> = counted()
            .filter_map(|scenario| ratio(scenario).map(|ratio| (scenario, ratio)))
            .filter(|(_, ratio)| *ratio < enough)
            .map(|(scenario, ratio)| format!("{} ({ratio:.2})", scenario.drawn.number))
            .collect();
        let holds = 100 * (counted().count() - below.len()) >= MOST * counted().count();
        println!(
            "At least {enough} of {of}, in throughput, or in p99 under open load: {} of {}, {}. Below: {}",
            counted().count() - below.len(),
            counted().count(),
            if holds { "holds" } else { "does not hold" },
            below.join(", ")
        );
    }
}
