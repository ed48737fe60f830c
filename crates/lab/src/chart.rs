//! Charts of reports.

use std::fmt::Write;

use crate::measure::{Phase, Report};

const WIDTH: f64 = 960.0;
const LABELS: f64 = 210.0;
const ROW: f64 = 18.0;
const TOP: f64 = 64.0;
const GAP: f64 = 14.0;
const LINES: f64 = 220.0;

/// A column of bars: its heading, its format, and the figure of a phase.
struct Column {
    heading: &'static str,
    decimals: usize,
    value: fn(&Phase) -> f64,
}

const COLUMNS: [Column; 5] = [
    Column { heading: "loads per request", decimals: 3, value: |phase| phase.loads },
    Column { heading: "requests per second", decimals: 0, value: |phase| phase.throughput },
    Column { heading: "p50, ms", decimals: 1, value: |phase| phase.p50_ms },
    Column { heading: "p99, ms", decimals: 1, value: |phase| phase.p99_ms },
    Column { heading: "overlap, %", decimals: 0, value: |phase| phase.overlap * 100.0 },
];

/// Colours of the lines, which people with colour blindness can distinguish (Okabe and Ito 2008).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// An SVG chart of the measurements: bars for each algorithm, over its first phase. If the scenario has
/// events, also the loads per request over time.
pub fn chart(title: &str, reports: &[Report]) -> String {
    let events = reports.iter().any(|report| report.phases.len() > 1);
    let bars = TOP + ROW * reports.len() as f64;
    let height =
        bars + 20.0 + if events { LINES + 50.0 + ROW * reports.len().div_ceil(3) as f64 } else { 0.0 };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"12\" y=\"24\" \
         font-size=\"15\" font-weight=\"bold\">{}</text>\n",
        escaped(title)
    );
    for (row, report) in reports.iter().enumerate() {
        let y = TOP + ROW * row as f64 + 12.0;
        text(&mut svg, LABELS - 8.0, y, "end", &report.label);
    }
    let width = (WIDTH - LABELS - 12.0) / COLUMNS.len() as f64 - GAP;
    for (at, column) in COLUMNS.iter().enumerate() {
        let x = LABELS + (width + GAP) * at as f64;
        text(&mut svg, x, TOP - 10.0, "start", column.heading);
        let values: Vec<f64> =
            reports.iter().map(|report| report.phases.first().map_or(0.0, column.value)).collect();
        let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        for (row, value) in values.iter().enumerate() {
            let y = TOP + ROW * row as f64;
            let long = (value / most * (width - 40.0)).max(0.5);
            line(
                &mut svg,
                format_args!(
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{long:.1}\" height=\"14\" fill=\"{}\"/>",
                    if row == 0 { COLOURS[0] } else { "#9db4c0" }
                ),
            );
            text(&mut svg, x + long + 4.0, y + 11.0, "start", &format!("{value:.*}", column.decimals));
        }
    }
    if events {
        over_time(&mut svg, reports, bars + 40.0);
    }
    svg.push_str("</svg>\n");
    svg
}

/// A line for each algorithm: loads per request, window by window.
fn over_time(svg: &mut String, reports: &[Report], top: f64) {
    text(svg, 12.0, top - 8.0, "start", "loads per request over time, logarithmic; dashed: an event");
    let (left, right) = (50.0, WIDTH - 20.0);
    let values =
        || reports.iter().flat_map(|report| &report.loads_over_time).copied().filter(|&loads| loads > 0.0);
    let (least, most) = values()
        .fold((f64::MAX, f64::MIN_POSITIVE), |(least, most), value| (least.min(value), most.max(value)));
    let (low, high) =
        (least.min(most).log10().floor(), most.log10().ceil().max(least.min(most).log10().floor() + 1.0));
    let y = |loads: f64| top + LINES * (high - loads.max(10_f64.powf(low)).log10()) / (high - low);
    for power in low as i32..=high as i32 {
        let at = y(10_f64.powi(power));
        line(svg, format_args!("<path d=\"M{left} {at:.1}H{right}\" stroke=\"#ddd\"/>"));
        text(svg, left - 6.0, at + 4.0, "end", &format!("{}", 10_f64.powi(power)));
    }
    let windows = reports.iter().map(|report| report.loads_over_time.len()).max().unwrap_or(1).max(2);
    let x = |window: f64| left + (right - left) * window / (windows - 1) as f64;
    if let Some(report) = reports.first() {
        let mut before = 0;
        for phase in &report.phases[..report.phases.len().saturating_sub(1)] {
            before += phase.requests;
            let at = x(before as f64 / report.window as f64);
            line(
                svg,
                format_args!("<path d=\"M{at:.1} {top}v{LINES}\" stroke=\"#888\" stroke-dasharray=\"4 3\"/>"),
            );
        }
    }
    for (row, report) in reports.iter().enumerate() {
        let colour = COLOURS[row % COLOURS.len()];
        let points = report
            .loads_over_time
            .iter()
            .enumerate()
            .map(|(window, &loads)| format!("{:.1},{:.1}", x(window as f64), y(loads)));
        let points = points.collect::<Vec<_>>().join(" ");
        line(
            svg,
            format_args!(
                "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.2\"/>"
            ),
        );
        let (at, under) = (left + 300.0 * (row % 3) as f64, top + LINES + 24.0 + ROW * (row / 3) as f64);
        line(
            svg,
            format_args!(
                "<rect x=\"{at}\" y=\"{:.1}\" width=\"14\" height=\"4\" fill=\"{colour}\"/>",
                under - 6.0
            ),
        );
        text(svg, at + 20.0, under, "start", &report.label);
    }
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    line(
        svg,
        format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escaped(text)),
    );
}

fn line(svg: &mut String, content: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(svg, "{content}");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
