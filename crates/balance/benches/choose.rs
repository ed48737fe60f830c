//! The cost of a choice by résumé, with a thousand workers and ten thousand classes. `cargo bench -p
//! sandarac-balance`
//!
//! These times include the effect of other load on the machine. Instruction counts do not: run `valgrind
//! --tool=callgrind BENCH CHOICES SKILLED` on the program that cargo built, with two numbers of choices, and
//! divide the difference of the counts by the difference of the choices.

use std::time::{Duration, Instant};

use sandarac_balance::{Algorithm, AttemptOutcome, Backend, Pool};

const WORKERS: usize = 1000;
const CLASSES: usize = 10_000;
const CHOICES: u32 = 1_000_000;
const IN_FLIGHT: usize = 100;

/// How many workers are skilled in each class.
const SKILLED: [usize; 3] = [1, 8, WORKERS / 2];

fn main() {
    let backend = |n: usize| Backend::new(format!("unix:/workers/{n}").parse().expect("an address"));
    let numbers: Vec<u32> = std::env::args().skip(1).filter_map(|number| number.parse().ok()).collect();
    let choices = numbers.first().copied().unwrap_or(CHOICES);
    let only = numbers.get(1).map(|&skilled| skilled as usize);
    for skilled in SKILLED.into_iter().filter(|&skilled| only.is_none_or(|only| only == skilled)) {
        let pool = Pool::new("app", (0..WORKERS).map(backend).collect(), Algorithm::Resume);
        let names: Vec<Vec<u8>> =
            (0..CLASSES).map(|class| format!("site-{class}.example").into_bytes()).collect();
        // Every class has this many skilled workers in sequence. With half the pool skilled in each, fewer
        // classes fit.
        let classes = if skilled > 100 { 500 } else { CLASSES };
        for (worker, &id) in pool.ids().iter().enumerate() {
            let mine = (0..classes).filter(|class| (worker + WORKERS - class % WORKERS) % WORKERS < skilled);
            let skills = mine.map(|class| (names[class].as_slice(), 100.0 + (worker * class % 17) as f64));
            let resumes = pool.resumes().expect("the pool goes by résumés");
            resumes.whole(id, 0, &format!("{worker}"), 1, skills).expect("they are believed");
        }
        // A hundred requests are in flight. Half of them end before as many begin, so that no clock is read
        // for each.
        let mut held = Vec::with_capacity(IN_FLIGHT);
        let (mut choosing, mut giving_back) = (Duration::ZERO, Duration::ZERO);
        let mut n = 0;
        while n < choices {
            let started = Instant::now();
            while held.len() < IN_FLIGHT {
                let class = &names[(n as usize).wrapping_mul(7919) % classes];
                let now = Duration::from_micros(u64::from(n));
                held.push(pool.pick(Some(class), now, &[]).expect("there is room"));
                n += 1;
            }
            let chosen = Instant::now();
            let now = Duration::from_micros(u64::from(n));
            for at in (0..IN_FLIGHT / 2).rev() {
                held.swap_remove(2 * at).finish(AttemptOutcome::Answered, now);
            }
            choosing += chosen - started;
            giving_back += chosen.elapsed();
        }
        let nanos = |time: Duration| time.as_nanos() as f64 / f64::from(n);
        println!(
            "{WORKERS} workers, {classes} classes, {skilled} skilled in each: {:.0} ns to choose, {:.0} ns to give back and learn",
            nanos(choosing),
            nanos(giving_back),
        );
    }
}
