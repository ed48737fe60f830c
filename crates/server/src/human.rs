//! Numbers, sizes and times in readable form.

use std::time::Duration;

/// Digits in groups of three: `24 310`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun: `1 object`, `2 400 objects`.
pub fn count(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A duration in milliseconds, with its significant digits: `0.31 ms`, `1 480 ms`.
pub fn milliseconds(duration: Duration) -> String {
    match duration.as_secs_f64() * 1000.0 {
        ms if ms < 1.0 => format!("{ms:.2} ms"),
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms => format!("{} ms", grouped(ms.round() as u64)),
    }
}

/// A duration with useful precision: `0.004 s`, `2.5 s`, `12 s`, `1 m 1 s`.
pub fn lasting(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1.0 => format!("{} s", (seconds * 1000.0).round() / 1000.0),
        seconds if seconds < 10.0 => format!("{} s", (seconds * 10.0).round() / 10.0),
        seconds => span(seconds.round() as u64),
    }
}

/// A share of a whole, in per cent. Rounded down: 100.0 % means that nothing is left.
pub fn percent(ratio: f64) -> String {
    format!("{:.1} %", (ratio * 1000.0).floor() / 10.0)
}

/// A number of bytes in the largest binary unit with a value of at least 1: `12.3 MiB`.
pub fn bytes(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in units {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    let digits = if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") };
    format!("{} {unit}", digits.trim_end_matches(".0"))
}

/// A long duration in its two largest units: `3 d 4 h`, `61 s` as `1 m 1 s`.
pub fn span(seconds: u64) -> String {
    let units = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];
    let first = units.iter().position(|&(_, length)| seconds >= length).unwrap_or(units.len() - 1);
    let mut left = seconds;
    let mut parts = Vec::new();
    for (name, length) in &units[first..units.len().min(first + 2)] {
        parts.push(format!("{} {name}", left / length));
        left %= length;
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_reading() {
        assert_eq!([grouped(7), grouped(1000), grouped(1_234_567)], ["7", "1 000", "1 234 567"]);
        assert_eq!([count(0, "ban"), count(1, "ban"), count(2400, "ban")], ["0 bans", "1 ban", "2 400 bans"]);
        assert_eq!(milliseconds(Duration::from_micros(312)), "0.31 ms");
        assert_eq!(milliseconds(Duration::from_micros(1480)), "1.5 ms");
        assert_eq!(milliseconds(Duration::from_millis(1480)), "1 480 ms");
        assert_eq!([percent(0.9999), percent(1.0)], ["99.9 %", "100.0 %"]);
        assert_eq!(
            [bytes(0), bytes(1 << 30), bytes(12_900_000), bytes(1023)],
            ["0 B", "1 GiB", "12.3 MiB", "1023 B"]
        );
        assert_eq!([span(0), span(61), span(3600), span(270_000)], ["0 s", "1 m 1 s", "1 h 0 m", "3 d 3 h"]);
        assert_eq!(
            [0.0, 0.004, 0.31, 0.9996, 1.003, 2.46, 12.345, 61.4].map(lasting),
            ["0 s", "0.004 s", "0.31 s", "1 s", "1 s", "2.5 s", "12 s", "1 m 1 s"]
        );
    }
}
