//! The two runs side by side, as plain text.

use std::fmt;

use super::load::{Measured, Plan};
use crate::human::{grouped, milliseconds, percent};

/// Both runs of the demo.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The load of both runs.
    pub plan: Plan,
    /// The site alone.
    pub alone: Run,
    /// The site behind the accelerator, whose memory was empty at the start.
    pub accelerated: Run,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The visitors' results.
    pub measured: Measured,
    /// The number of requests that the site itself answered meanwhile.
    pub site_requests: u64,
}

impl Comparison {
    /// Whether every response was right and no private one was leaked.
    pub fn is_sound(&self) -> bool {
        [&self.alone, &self.accelerated].iter().all(|run| run.measured.errors == 0 && run.measured.leaks == 0)
    }
}

fn ratio(numerator: f64, denominator: f64, word: &str) -> String {
    if numerator <= 0.0 || denominator <= 0.0 {
        return String::new();
    }
    match numerator / denominator {
        times if times >= 10.0 => format!("{} × {word}", grouped(times.round() as u64)),
        times => format!("{times:.1} × {word}"),
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b) = (&self.alone.measured, &self.accelerated.measured);
        let quantile = |run: &Measured, fraction| Some(*run.latencies.quantile(fraction)?.end());
        let corner = |run: &Measured| run.corner_latencies.quantile(0.5).map(|half| *half.end());
        let corner_seconds = |run: &Measured| corner(run).unwrap_or_default().as_secs_f64();
        let faster = |fraction| {
            let seconds = |run: &Measured| quantile(run, fraction).unwrap_or_default().as_secs_f64();
            ratio(seconds(a), seconds(b), "faster")
        };
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        let latency = |run: &Measured, fraction| or_none(quantile(run, fraction).map(milliseconds));
        let hits = |run: &Measured| or_none(run.hit_ratio().map(percent));
        // Per response, because the accelerated site serves many more visitors in the same time.
        let per_answer = |run: &Run| run.site_requests as f64 / run.measured.answers.max(1) as f64;
        let rows = [
            (
                "requests per second",
                grouped(a.rate().round() as u64),
                grouped(b.rate().round() as u64),
                ratio(b.rate(), a.rate(), "more"),
            ),
            ("half are answered within (p50)", latency(a, 0.5), latency(b, 0.5), faster(0.5)),
            ("99 of 100 within (p99)", latency(a, 0.99), latency(b, 0.99), faster(0.99)),
            (
                "with a personal corner (p50)",
                or_none(corner(a).map(milliseconds)),
                or_none(corner(b).map(milliseconds)),
                ratio(corner_seconds(a), corner_seconds(b), "faster"),
            ),
            ("answered from memory", hits(a), hits(b), String::new()),
            ("answered in all", grouped(a.answers), grouped(b.answers), String::new()),
            (
                "requests that reached the site",
                grouped(self.alone.site_requests),
                grouped(self.accelerated.site_requests),
                ratio(per_answer(&self.alone), per_answer(&self.accelerated), "fewer per answer"),
            ),
            ("errors", grouped(a.errors), grouped(b.errors), String::new()),
            ("private pages leaked", grouped(a.leaks), grouped(b.leaks), String::new()),
        ];
        let width = |text: &str| text.chars().count();
        let label = rows.iter().map(|row| width(row.0)).max().unwrap_or_default();
        let (left_head, right_head) = ("site alone", "with Sandarac");
        let left = rows.iter().map(|row| width(&row.1)).max().unwrap_or_default().max(width(left_head));
        let right = rows.iter().map(|row| width(&row.2)).max().unwrap_or_default().max(width(right_head));
        writeln!(f, "  {:label$}  {left_head:>left$}   {right_head:>right$}", "")?;
        for (name, alone, accelerated, gain) in rows {
            let line = format!("  {name:label$}  {alone:>left$}   {accelerated:>right$}   {gain}");
            writeln!(f, "{}", line.trim_end())?;
        }
        for (name, run) in [("site alone", a), ("with Sandarac", b)] {
            for example in &run.examples {
                writeln!(f, "  error, {name}: {example}")?;
            }
        }
        if a.leaks + b.leaks > 0 {
            writeln!(
                f,
                "\n  A PRIVATE PAGE REACHED ANOTHER VISITOR. Do not use this build; please report it."
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn run(answers: u64, latency: Duration, hits: u64, site_requests: u64) -> Run {
        let mut measured = Measured { answers, hits, labelled: hits, ..Measured::default() };
        measured.elapsed = Duration::from_secs(5);
        (0..answers).for_each(|_| measured.latencies.record(latency));
        measured.corner_latencies.record(2 * latency);
        Run { measured, site_requests }
    }

    fn comparison() -> Comparison {
        Comparison {
            plan: Plan::lasting(Duration::from_secs(5)),
            alone: run(210, Duration::from_millis(1480), 0, 210),
            accelerated: run(121_550, Duration::from_micros(812), 121_429, 121),
        }
    }

    #[test]
    fn runs_stand_side_by_side() {
        let expected = concat!(
            "                                  site alone   with Sandarac\n",
            "  requests per second                     42          24 310   579 × more\n",
            "  half are answered within (p50)    1 480 ms         0.81 ms   1 823 × faster\n",
            "  99 of 100 within (p99)            1 480 ms         0.81 ms   1 823 × faster\n",
            "  with a personal corner (p50)      2 960 ms          1.6 ms   1 823 × faster\n",
            "  answered from memory                     –          99.9 %\n",
            "  answered in all                        210         121 550\n",
            "  requests that reached the site         210             121   1 005 × fewer per answer\n",
            "  errors                                   0               0\n",
            "  private pages leaked                     0               0\n",
        );
        assert_eq!(comparison().to_string(), expected);
        assert!(comparison().is_sound());
    }

    #[test]
    fn a_leak_is_loud() {
        let mut comparison = comparison();
        comparison.accelerated.measured.leaks = 1;
        comparison.accelerated.measured.examples.push("/account came out of a cache".to_owned());
        assert!(!comparison.is_sound());
        let text = comparison.to_string();
        assert!(text.contains("A PRIVATE PAGE REACHED ANOTHER VISITOR"), "{text}");
        assert!(text.contains("error, with Sandarac: /account came out of a cache"), "{text}");
    }
}
