//! Tables of reports.

use crate::measure::{Phase, Report};

/// A row of a table. Unknown values are shown as a dash.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The algorithm.
    pub label: String,
    /// Objects loaded per request.
    pub loads: Option<f64>,
    /// Requests per second.
    pub throughput: f64,
    /// The median duration of requests, in milliseconds; none if there was no request.
    pub p50_ms: Option<f64>,
    /// The 99th percentile of their duration, in milliseconds.
    pub p99_ms: Option<f64>,
    /// The share of the held objects that more than one worker holds.
    pub overlap: Option<f64>,
    /// Jain's fairness of the work of workers.
    pub fairness: Option<f64>,
    /// The mean over time of the spread of workers' backlogs.
    pub backlog_spread: Option<f64>,
}

impl Row {
    const HEADINGS: [&str; 8] =
        ["algorithm", "loads/request", "requests/s", "p50 ms", "p99 ms", "overlap", "fairness", "spread"];

    fn of(label: &str, phase: &Phase) -> Row {
        Row {
            label: label.to_owned(),
            loads: Some(phase.loads),
            throughput: phase.throughput,
            p50_ms: Some(phase.p50_ms),
            p99_ms: Some(phase.p99_ms),
            overlap: Some(phase.overlap),
            fairness: Some(phase.fairness),
            backlog_spread: Some(phase.backlog_spread),
        }
    }

    fn cells(&self) -> Vec<String> {
        let known = |value: Option<f64>, text: fn(f64) -> String| value.map_or_else(unknown, text);
        vec![
            self.label.clone(),
            known(self.loads, |loads| format!("{loads:.4}")),
            format!("{:.0}", self.throughput),
            known(self.p50_ms, |ms| format!("{ms:.1}")),
            known(self.p99_ms, |ms| format!("{ms:.1}")),
            known(self.overlap, |overlap| format!("{:.0} %", overlap * 100.0)),
            known(self.fairness, |fairness| format!("{fairness:.3}")),
            known(self.backlog_spread, |spread| format!("{spread:.2}")),
        ]
    }
}

fn unknown() -> String {
    "–".to_owned()
}

/// A table of these rows.
pub fn rows(rows: &[Row]) -> String {
    let headings = Row::HEADINGS.map(str::to_owned).to_vec();
    aligned(1, std::iter::once(headings).chain(rows.iter().map(Row::cells)).collect())
}

/// A table with a row for each algorithm and phase.
pub fn table(reports: &[Report]) -> String {
    let phases = reports.iter().any(|report| report.phases.len() > 1);
    let mut headings = Row::HEADINGS.map(str::to_owned).to_vec();
    if phases {
        headings.insert(1, "phase".to_owned());
        headings.extend(["p99 others", "retried", "share after", "steady after"].map(str::to_owned));
    }
    let mut lines = vec![headings];
    let after = |requests: Option<u64>| requests.map_or_else(unknown, |requests| requests.to_string());
    for report in reports {
        for phase in &report.phases {
            let mut cells = Row::of(&report.label, phase).cells();
            if phases {
                cells.insert(1, if phase.name.is_empty() { "steady".to_owned() } else { phase.name.clone() });
                cells.extend([
                    format!("{:.1}", phase.p99_others_ms),
                    phase.retried.to_string(),
                    after(phase.share_after),
                    after(phase.steady_after),
                ]);
            }
            lines.push(cells);
        }
    }
    aligned(if phases { 2 } else { 1 }, lines)
}

/// Lines of cells in columns as wide as their widest cell; the first `left` columns are left-aligned.
fn aligned(left: usize, lines: Vec<Vec<String>>) -> String {
    let widths: Vec<usize> = (0..lines[0].len())
        .map(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or_default())
        .collect();
    let mut out = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
            if at < left { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_a_dash() {
        let row = Row { label: "resume".to_owned(), throughput: 10.4, fairness: Some(1.0), ..Row::default() };
        assert_eq!(
            rows(&[row]),
            "algorithm  loads/request  requests/s  p50 ms  p99 ms  overlap  fairness  spread\n\
             resume                 –          10       –       –        –     1.000       –\n"
        );
    }
}
