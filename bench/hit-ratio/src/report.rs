//! The tables that are printed.

use crate::policies::Kind;
use crate::results::{Ratio, Results};
use crate::traces::RECIPES;

/// A trace whose object hits fell by more points than this is marked.
const LOSS: f64 = 1.5;

/// Prints the names of traces and policies.
pub(crate) fn list() {
    for recipe in RECIPES {
        println!("{:<16} {}", recipe.name, recipe.text);
    }
    println!();
    for kind in Kind::ALL {
        println!("{:<16} {}", kind.name(), kind.text());
    }
}

/// Prints the tables of object hits and byte hits, and the summary of the store.
pub(crate) fn tables(results: &Results) {
    table(results, "object hits, %", |ratio| ratio.objects);
    println!();
    table(results, "byte hits, %", |ratio| ratio.bytes);
    summary(results);
}

fn table(results: &Results, title: &str, column: impl Fn(Ratio) -> f64) {
    let Some((_, first)) = results.traces.first() else { return };
    print!("{title:<16}");
    first.iter().for_each(|(kind, _)| print!("{:>8}", kind.name()));
    println!();
    for (name, ratios) in &results.traces {
        print!("{name:<16}");
        ratios.iter().for_each(|(_, ratio)| print!("{:>8.1}", column(*ratio)));
        println!();
    }
}

fn summary(results: &Results) {
    let ours: Vec<(&String, Ratio)> =
        results.traces.iter().filter_map(|(name, _)| Some((name, results.of(name, Kind::Ours)?))).collect();
    if ours.is_empty() {
        return;
    }
    println!("\nours");
    println!("mean of object hits            {:>7.2} %", mean(ours.iter().map(|(_, ratio)| ratio.objects)));
    println!("mean of byte hits              {:>7.2} %", mean(ours.iter().map(|(_, ratio)| ratio.bytes)));
    println!(
        "geometric mean of object hits  {:>7.2} %",
        geometric_mean(ours.iter().map(|(_, ratio)| ratio.objects))
    );
    let parts = ours.iter().filter_map(|(name, ratio)| Some(ratio.objects / best_other(results, name)?));
    let parts: Vec<f64> = parts.collect();
    if !parts.is_empty() {
        println!("object hits / those of the best other online policy of the trace:");
        println!("geometric mean                 {:>9.4}", geometric_mean(parts.into_iter()));
    }
}

/// The object hits of the best online policy beside the store.
fn best_other(results: &Results, trace: &str) -> Option<f64> {
    let others = Kind::ALL.into_iter().filter(|kind| kind.is_online() && *kind != Kind::Ours);
    others.filter_map(|kind| results.of(trace, kind)).map(|ratio| ratio.objects).max_by(f64::total_cmp)
}

/// Prints the difference between the store and an earlier one, in points.
pub(crate) fn against(results: &Results, earlier: &Results) {
    println!("\n{:<16}{:>9}{:>9}{:>9}{:>9}", "ours", "objects", "change", "bytes", "change");
    let mut changes = Vec::new();
    for (name, _) in &results.traces {
        let (Some(now), Some(before)) = (results.of(name, Kind::Ours), earlier.of(name, Kind::Ours)) else {
            continue;
        };
        let (objects, bytes) = (now.objects - before.objects, now.bytes - before.bytes);
        let mark = if objects < -LOSS { "  LOST" } else { "" };
        println!("{name:<16}{:>9.1}{objects:>+9.2}{:>9.1}{bytes:>+9.2}{mark}", now.objects, now.bytes);
        changes.push((objects, bytes));
    }
    if !changes.is_empty() {
        let objects = mean(changes.iter().map(|(objects, _)| *objects));
        let bytes = mean(changes.iter().map(|(_, bytes)| *bytes));
        println!("{:<16}{:>9}{objects:>+9.2}{:>9}{bytes:>+9.2}", "mean", "", "");
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

/// A trace without hits counts as a thousandth, so that it does not hide all others.
fn geometric_mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    mean(values.map(|value| value.max(0.001).ln())).exp()
}
