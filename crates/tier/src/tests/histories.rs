//! The histories.

use super::world::{Kind, Totals, run};
use crate::rules::{Rule, break_rule};

/// How many histories run, unless `SANDARAC_HISTORIES` has another number.
const HISTORIES: u64 = 1000;

/// One history in five is without faults.
fn kind(seed: u64) -> Kind {
    if seed.is_multiple_of(5) { Kind::Quiet } else { Kind::Faults }
}

/// Runs histories on as many threads as there are processors. The first violation, with its seed.
fn first_violation(seeds: std::ops::Range<u64>, broken: Option<Rule>) -> Result<Totals, (u64, String)> {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let run_all = |first: u64| {
        break_rule(broken);
        let mut totals = Totals::default();
        for seed in (seeds.start + first..seeds.end).step_by(threads as usize) {
            let ran = run(seed, kind(seed), false).map_err(|violation| (seed, violation))?;
            totals.events += ran.events;
            totals.responses += ran.responses;
            totals.fetches += ran.fetches;
            totals.from_tier += ran.from_tier;
        }
        Ok(totals)
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|first| scope.spawn(move || run_all(first))).collect();
        let mut sum = Totals::default();
        for thread in running {
            let totals: Totals = thread.join().expect("a history panicked")?;
            sum.events += totals.events;
            sum.responses += totals.responses;
            sum.fetches += totals.fetches;
            sum.from_tier += totals.from_tier;
        }
        Ok(sum)
    })
}

#[test]
fn the_bounds_hold() {
    let count = std::env::var("SANDARAC_HISTORIES").map(|count| count.parse().expect("a number"));
    match first_violation(0..count.unwrap_or(HISTORIES), None) {
        Ok(totals) => {
            println!("{totals:?}");
            // The histories are not about nothing.
            assert!(totals.fetches > 0 && totals.from_tier > totals.fetches / 10, "{totals:?}");
        }
        Err((seed, _)) => {
            let trace = run(seed, kind(seed), true).expect_err("it failed before");
            panic!("history {seed}:\n{trace}");
        }
    }
}

#[test]
fn a_broken_rule_is_found() {
    for rule in [
        Rule::Log,
        Rule::Position,
        Rule::DeliverFirst,
        Rule::ConditionalFill,
        Rule::LostPosition,
        Rule::Check,
        Rule::Claim,
    ] {
        let found = first_violation(0..HISTORIES, Some(rule));
        let (seed, violation) = found.expect_err(&format!("{rule:?} was broken, and nothing found it"));
        println!("{rule:?}: history {seed}: {}", violation.trim());
    }
}
