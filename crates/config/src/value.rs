//! The types of settings, with their reading and writing.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use sandarac_policy::ByteSize;
use toml::de::{DeTable, DeValue};

use crate::definition::{Entry, Value, in_order};
use crate::quoted::quoted;
use crate::report::{At, Complaint, Node, Report};
use crate::setting::Kind;
use crate::suggest::closest;

/// A type written as a string, in the file and on the command line alike.
pub(crate) trait Text: Sized {
    /// Whether no output may show it.
    const IS_SECRET: bool = false;

    /// [`Kind::Text`] or [`Kind::Choice`].
    fn form() -> Kind;

    /// Reads it.
    fn from_text(text: &str) -> Result<Self, Complaint>;

    /// Writes it so that it can be read back.
    fn text(&self) -> String;
}

impl<T: Text> Value for T {
    fn kind() -> Kind {
        T::form()
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<T> {
        if T::IS_SECRET {
            report.secrets.push(node.span());
        }
        let bare = match node.get_ref() {
            DeValue::String(text) => {
                return T::from_text(text)
                    .map_err(|complaint| report.complain(Some(node.span()), complaint))
                    .ok();
            }
            DeValue::Integer(number) => Some(number.to_string()),
            DeValue::Boolean(yes) => Some(yes.to_string()),
            _ => None,
        };
        let error = report.unexpected(node, &T::form());
        if let Some(text) = bare {
            error.help = match T::from_text(&text) {
                _ if T::IS_SECRET => Some("strings need quotes".to_owned()),
                Ok(_) => Some(format!("strings need quotes: {}", quoted(&text))),
                Err(complaint) => complaint.help,
            };
        }
        None
    }

    fn show(&self) -> Option<String> {
        Some(quoted(&self.text()))
    }
}

impl Value for bool {
    fn kind() -> Kind {
        Kind::Bool
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<bool> {
        let value = node.get_ref().as_bool();
        if value.is_none() {
            report.unexpected(node, &Kind::Bool);
        }
        value
    }

    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl<T: Value> Value for Option<T> {
    fn kind() -> Kind {
        T::kind()
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<Option<T>> {
        T::read(node, report).map(Some)
    }

    fn show(&self) -> Option<String> {
        self.as_ref().and_then(T::show)
    }
}

impl<T: Value> Value for At<T> {
    fn kind() -> Kind {
        T::kind()
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<At<T>> {
        T::read(node, report).map(|value| At { value, place: Some(node.span()) })
    }

    fn show(&self) -> Option<String> {
        self.value.show()
    }
}

/// Whether a table stands between braces, and not under a header or in dotted keys: it contains its values.
fn is_inline(node: &Node<'_>, table: &DeTable<'_>) -> bool {
    table.values().next().is_some_and(|value| {
        let (outer, inner) = (node.span(), value.span());
        outer.start < inner.start && inner.end < outer.end
    })
}

impl<T: Value> Value for Vec<T> {
    fn kind() -> Kind {
        Kind::List(Box::new(T::kind()))
    }

    /// Reads an array; any other value is taken as its only item, but not a table under a header of its own, whose
    /// double brackets are easily forgotten.
    fn read(node: &Node<'_>, report: &mut Report) -> Option<Vec<T>> {
        match node.get_ref() {
            // Read every item, so that every mistake is reported.
            DeValue::Array(items) => {
                let read: Vec<_> = items.iter().map(|item| T::read(item, report)).collect();
                read.into_iter().collect()
            }
            DeValue::Table(table) if matches!(T::kind(), Kind::Table(_)) && !is_inline(node, table) => {
                let message = "expected an array of tables, found a table";
                report.error(Some(node.span()), message).help =
                    Some("write the name in double brackets".to_owned());
                None
            }
            _ => T::read(node, report).map(|item| vec![item]),
        }
    }

    fn show(&self) -> Option<String> {
        let items: Option<Vec<_>> = self.iter().map(T::show).collect();
        items.map(|items| format!("[{}]", items.join(", ")))
    }
}

/// A table with keys of the user's choice, in the order in which they are written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Map<K, T>(pub(crate) Vec<(At<K>, T)>);

impl<K, T> Default for Map<K, T> {
    fn default() -> Map<K, T> {
        Map(Vec::new())
    }
}

/// The keys of a [`Map`].
pub(crate) trait Key: Sized {
    /// In a few words.
    const WHAT: &'static str;

    /// Reads it.
    fn from_key(key: &str) -> Result<Self, Complaint>;
}

impl<K: Key, T: Value> Map<K, T> {
    /// Reads these entries.
    pub(crate) fn of<'t, 'i: 't>(
        entries: impl IntoIterator<Item = Entry<'t, 'i>>,
        report: &mut Report,
    ) -> Map<K, T> {
        let mut read = Vec::new();
        for (key, node) in entries {
            let place = Some(key.span());
            let value =
                K::from_key(key.get_ref()).map_err(|complaint| report.complain(place.clone(), complaint));
            if let (Ok(value), Some(entry)) = (value, T::read(node, report)) {
                read.push((At { value, place }, entry));
            }
        }
        Map(read)
    }
}

impl<K: Key, T: Value> Value for Map<K, T> {
    fn kind() -> Kind {
        Kind::Map { key: K::WHAT, of: Box::new(T::kind()) }
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<Map<K, T>> {
        let DeValue::Table(table) = node.get_ref() else {
            report.unexpected(node, &<Self as Value>::kind());
            return None;
        };
        Some(Map::of(in_order(table), report))
    }

    fn show(&self) -> Option<String> {
        self.0.is_empty().then(|| "{}".to_owned())
    }
}

impl Text for ByteSize {
    fn form() -> Kind {
        Kind::Text {
            name: "size",
            form: "a size with a unit (B, KiB, MiB, GiB, kB, MB, GB)",
            examples: &["64MiB", "1GB"],
        }
    }

    /// Reads a size. One-letter units, as in `1G`, are binary, as in `varnishd -s malloc,1G`; letter case does not
    /// matter. A fraction is allowed: `1.5GiB`.
    fn from_text(text: &str) -> Result<ByteSize, Complaint> {
        let not = || Complaint::new(format!("{text:?} is not {}", ByteSize::form().words()));
        let text = text.trim();
        let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (digits, unit) = (&text[..at], text[at..].trim_start());
        if unit.is_empty() && !digits.is_empty() {
            // No machine has so many MiB: bytes were meant.
            let meant = match digits.parse() {
                Ok(bytes) if bytes >= 1 << 20 => ByteSize(bytes).to_string(),
                _ => format!("{digits}MiB"),
            };
            return Err(Complaint::new(format!("{text:?} has no unit")).help(format!("\"{meant}\"?")));
        }
        let named = |&&(name, _): &&(&str, u64)| {
            let binary = name.strip_suffix("iB");
            name.eq_ignore_ascii_case(unit) || binary.is_some_and(|letter| letter.eq_ignore_ascii_case(unit))
        };
        let (_, bytes) = ByteSize::UNITS.iter().find(named).ok_or_else(not)?;
        scaled(digits, *bytes).map(ByteSize).ok_or_else(not)
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// `digits`, with an optional decimal point, times `unit`, rounded down; `None` if that is not a number or too large.
fn scaled(digits: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    // Nine places are a billionth of the unit.
    if whole.is_empty() || fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let parts = fraction.parse::<u128>().ok()? * u128::from(unit) / 10_u128.pow(fraction.len() as u32);
    whole.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(u64::try_from(parts).ok()?)
}

/// The units of durations, in milliseconds.
const TIMES: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// `duration` in the syntax of the file, in whole milliseconds: `1h30m`.
pub(crate) fn show_duration(duration: Duration) -> String {
    let mut left = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut out = String::new();
    for (unit, ms) in TIMES {
        if left >= ms {
            out.push_str(&format!("{}{unit}", left / ms));
            left %= ms;
        }
    }
    if out.is_empty() { "0s".to_owned() } else { out }
}

/// Reads a duration in the syntax of settings, such as `90s` or `1m 30s`.
///
/// # Errors
/// The mistake, and a suggestion.
pub fn duration(text: &str) -> Result<Duration, String> {
    Duration::from_text(text).map_err(Complaint::into_line)
}

impl Text for Duration {
    fn form() -> Kind {
        Kind::Text {
            name: "duration",
            form: "a duration with a unit (ms, s, m, h, d, w)",
            examples: &["30s", "1h30m", "100ms"],
        }
    }

    fn from_text(text: &str) -> Result<Duration, Complaint> {
        let not = || Complaint::new(format!("{text:?} is not {}", Duration::form().words()));
        // A mistake, and sums with it could overflow timestamps.
        let too_long = || Complaint::new(format!("{text:?} is more than a hundred years"));
        const LONGEST: u64 = 100 * 366 * 86_400_000;
        let mut rest = text.trim();
        if !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Complaint::new(format!("{text:?} has no unit")).help(format!("\"{rest}s\"?")));
        }
        let mut total = 0_u64;
        let mut least_unit = u64::MAX;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(not)?;
            let end =
                rest[digits..].find(|c: char| !c.is_ascii_alphabetic()).map_or(rest.len(), |at| digits + at);
            let (_, ms) = TIMES.iter().find(|(unit, _)| *unit == &rest[digits..end]).ok_or_else(not)?;
            // Larger units come first, each once; any other order is a mistake.
            if *ms >= least_unit {
                return Err(not());
            }
            least_unit = *ms;
            let number = &rest[..digits];
            let whole = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.is_empty();
            let wrong = || if whole { too_long() } else { not() };
            total = scaled(number, *ms).and_then(|ms| total.checked_add(ms)).ok_or_else(wrong)?;
            rest = rest[end..].trim_start();
        }
        match total {
            _ if least_unit == u64::MAX => Err(not()),
            total if total > LONGEST => Err(too_long()),
            total => Ok(Duration::from_millis(total)),
        }
    }

    fn text(&self) -> String {
        show_duration(*self)
    }
}

impl Text for String {
    fn form() -> Kind {
        Kind::Text { name: "string", form: "a string", examples: &[] }
    }

    fn from_text(text: &str) -> Result<String, Complaint> {
        Ok(text.to_owned())
    }

    fn text(&self) -> String {
        self.clone()
    }
}

/// A type whose values are names.
pub(crate) trait Choice: Copy + 'static {
    /// Every value with its name.
    const ALL: &'static [(&'static str, Self)];
}

/// The value of a [`Choice`] called `text`, or a complaint that lists the known names.
pub(crate) fn choose<T: Choice>(text: &str) -> Result<T, Complaint> {
    if let Some((_, value)) = T::ALL.iter().find(|(name, _)| *name == text) {
        return Ok(*value);
    }
    let names: Vec<_> = T::ALL.iter().map(|(name, _)| *name).collect();
    let complaint = Complaint::new(format!("{text:?} is not {}", Kind::Choice(names.clone()).words()));
    let peers = |(word, name, _): &&(&str, &str, &str)| *word == text && names.contains(name);
    Err(match closest(text, &names) {
        _ if let Some((_, _, help)) = PEERS_VALUES.iter().find(peers) => complaint.help(*help),
        Some(name) => complaint.help(format!("did you mean \"{name}\"?")),
        None => complaint,
    })
}

/// Values of nginx, HAProxy and Varnish that have another name here: the word, our name, and the hint.
const PEERS_VALUES: [(&str, &str, &str); 10] = [
    ("least_conn", "least_requests", LEAST_REQUESTS),
    ("leastconn", "least_requests", LEAST_REQUESTS),
    ("least_time", "peak_ewma", "nginx's `least_time` is \"peak_ewma\" here"),
    (
        "random",
        "least_requests",
        "\"least_requests\" draws two backends at random and takes the less busy one",
    ),
    ("first", "fallback", "HAProxy's `first` is \"fallback\" here"),
    ("ip_hash", "consistent_hash", NO_ADDRESS),
    ("source", "consistent_hash", NO_ADDRESS),
    ("hash", "consistent_hash", HASH),
    ("shard", "consistent_hash", HASH),
    ("uri", "consistent_hash", "HAProxy's `uri` is \"consistent_hash\" with `class = \"{path}\"` here"),
];

const LEAST_REQUESTS: &str =
    "here it is \"least_requests\", which counts requests, because connections are kept";
const NO_ADDRESS: &str = "addresses of clients are not hashed; `sticky` keeps a session at its backend";
const HASH: &str = "here it is \"consistent_hash\", with `class` for the part to hash";

/// Makes a [`Choice`] a [`Text`].
macro_rules! choice {
    ($type:ty { $($name:literal => $value:expr),* $(,)? }) => {
        impl $crate::value::Choice for $type {
            const ALL: &'static [(&'static str, $type)] = &[$(($name, $value)),*];
        }

        impl $crate::value::Text for $type {
            fn form() -> $crate::setting::Kind {
                $crate::setting::Kind::Choice(vec![$($name),*])
            }

            fn from_text(text: &str) -> Result<$type, $crate::report::Complaint> {
                $crate::value::choose(text)
            }

            fn text(&self) -> String {
                let all = <$type as $crate::value::Choice>::ALL;
                all.iter().find(|(_, value)| value == self).map_or_else(String::new, |(name, _)| (*name).to_owned())
            }
        }
    };
}
pub(crate) use choice;

/// A secret, which no listing or debug output shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Deref for Secret {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Text for Secret {
    const IS_SECRET: bool = true;

    fn form() -> Kind {
        Kind::Text { name: "secret", form: "a secret of at least 16 characters", examples: &[] }
    }

    fn from_text(text: &str) -> Result<Secret, Complaint> {
        // Sixteen random characters resist guessing over a network. The token is sent in a field value.
        if text.len() < 16 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message = "a token has at least 16 characters, none of them blank or outside ASCII";
            return Err(Complaint::new(message).help("make one with: openssl rand -hex 16"));
        }
        Ok(Secret(text.to_owned()))
    }

    fn text(&self) -> String {
        "…".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_read_in_every_usual_way() {
        for (text, bytes) in [
            ("0B", 0),
            ("1GiB", 1 << 30),
            ("64 KiB", 64 << 10),
            ("512MB", 512_000_000),
            ("1G", 1 << 30),
            ("100m", 100 << 20),
            ("1.5kB", 1500),
            ("16777215TiB", 16_777_215 << 40),
        ] {
            assert_eq!(ByteSize::from_text(text), Ok(ByteSize(bytes)), "{text}");
        }
        for text in
            ["", "B", "1", "1.B", ".5MB", "1GiBs", "-1B", "1e3B", "16777216TiB", "1.1234567891GB", "1 2B"]
        {
            assert!(ByteSize::from_text(text).is_err(), "{text}");
        }
        assert_eq!(ByteSize(1 << 31).to_string(), "2GiB");
        assert_eq!(ByteSize(1001).to_string(), "1001B");
    }

    #[test]
    fn durations_are_read_with_their_units() {
        for (text, ms) in [
            ("30s", 30_000),
            ("1h30m", 5_400_000),
            ("100ms", 100),
            ("1m 5s", 65_000),
            ("0s", 0),
            ("1.5s", 1500),
        ] {
            assert_eq!(Duration::from_text(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in
            ["", " ", "30", "s", "1y", "30m1h", "1s1s", "1 s", "-1s", "1000000000w", "99999999999999999999s"]
        {
            assert!(Duration::from_text(text).is_err(), "{text}");
        }
        assert_eq!(Duration::from_text("5").unwrap_err().help.unwrap(), "\"5s\"?");
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_as_the_same(bytes: u64, ms in 0_u64..3_000_000_000_000) {
            prop_assert_eq!(ByteSize::from_text(&ByteSize(bytes).text()), Ok(ByteSize(bytes)));
            let duration = Duration::from_millis(ms);
            prop_assert_eq!(Duration::from_text(&duration.text()), Ok(duration));
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = (ByteSize::from_text(&text), Duration::from_text(&text), Secret::from_text(&text));
        }
    }
}
