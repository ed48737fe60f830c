//! Reports as a table.

use crate::measure::Report;

/// A table with a row for each algorithm and phase.
pub fn table(reports: &[Report]) -> String {
    let phases = reports.iter().any(|report| report.phases.len() > 1);
    let mut rows = vec![vec![
        "algorithm".to_owned(),
        "loads/request".to_owned(),
        "requests/s".to_owned(),
        "p50 ms".to_owned(),
        "p99 ms".to_owned(),
        "overlap".to_owned(),
        "fairness".to_owned(),
        "spread".to_owned(),
    ]];
    if phases {
        rows[0].insert(1, "phase".to_owned());
        rows[0].extend([
            "p99 others".to_owned(),
            "retried".to_owned(),
            "share after".to_owned(),
            "steady after".to_owned(),
        ]);
    }
    let after =
        |requests: Option<u64>| requests.map_or_else(|| "–".to_owned(), |requests| requests.to_string());
    for report in reports {
        for phase in &report.phases {
            let mut row = vec![
                report.label.clone(),
                format!("{:.4}", phase.loads),
                format!("{:.0}", phase.throughput),
                format!("{:.1}", phase.p50_ms),
                format!("{:.1}", phase.p99_ms),
                format!("{:.0} %", phase.overlap * 100.0),
                format!("{:.3}", phase.fairness),
                format!("{:.2}", phase.backlog_spread),
            ];
            if phases {
                row.insert(1, if phase.name.is_empty() { "steady".to_owned() } else { phase.name.clone() });
                row.extend([
                    format!("{:.1}", phase.p99_others_ms),
                    phase.retried.to_string(),
                    after(phase.share_after),
                    after(phase.steady_after),
                ]);
            }
            rows.push(row);
        }
    }
    let left = if phases { 2 } else { 1 };
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or_default())
        .collect();
    let mut out = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
            if at < left { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}
