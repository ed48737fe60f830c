//! The words of the grammar.

/// The words that begin statements of VCL 4, but for function calls.
pub(super) const STATEMENTS: &[&str] =
    &["set", "unset", "call", "if", "return", "new", "include", "else", "elseif", "elsif", "elif"];

/// The words that begin statements of VCL 2 and 3 only.
pub(super) const OLD_STATEMENTS: &[&str] =
    &["remove", "error", "synthetic", "log", "panic", "purge", "esi", "rollback"];

/// The words that begin declarations.
pub(super) const DECLARATIONS: &[&str] =
    &["vcl", "import", "include", "backend", "probe", "acl", "sub", "director", "unused"];

/// The functions that are called without a module, in any dialect.
pub(super) const FUNCTIONS: &[&str] = &[
    "ban",
    "ban_url",
    "hash_data",
    "regsub",
    "regsuball",
    "synthetic",
    "purge",
    "purge_url",
    "purge_hash",
    "log",
    "panic",
    "error",
    "rollback",
];

/// The actions of any dialect.
pub(super) const ACTIONS: &[&str] = &[
    "abandon",
    "deliver",
    "discard",
    "fail",
    "fetch",
    "hash",
    "hit_for_pass",
    "insert",
    "keep",
    "lookup",
    "merge",
    "miss",
    "ok",
    "pass",
    "pipe",
    "purge",
    "restart",
    "retry",
    "synth",
    "vcl",
];

/// The units of time with their lengths in seconds.
pub(super) const DURATION_UNITS: [(&str, f64); 7] = [
    ("ms", 0.001),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
    ("d", 86400.0),
    ("w", 604_800.0),
    // A year has 365 days.
    ("y", 31_536_000.0),
];

/// The units of size with their numbers of bytes; the case of their letters does not count.
pub(super) const BYTE_UNITS: [(&str, f64); 5] =
    [("B", 1.0), ("KB", 1024.0), ("MB", 1_048_576.0), ("GB", 1_073_741_824.0), ("TB", 1_099_511_627_776.0)];

/// Other words for units of time.
const OTHER_UNITS: &[(&str, &[&str])] = &[
    ("ms", &["msec", "msecs", "millisecond", "milliseconds"]),
    ("s", &["sec", "secs", "second", "seconds"]),
    ("m", &["min", "mins", "minute", "minutes"]),
    ("h", &["hr", "hrs", "hour", "hours"]),
    ("d", &["day", "days"]),
    ("w", &["week", "weeks"]),
    ("y", &["yr", "year", "years"]),
];

/// Whether a statement begins with the word.
pub(super) fn begins_statement(word: &str, is_v4: bool) -> bool {
    STATEMENTS.contains(&word) || (!is_v4 && OLD_STATEMENTS.contains(&word))
}

/// The unit of time meant by another word for it.
pub(super) fn meant_unit(word: &str) -> Option<&'static str> {
    let lower = word.to_ascii_lowercase();
    // `M` may be meant as megabytes.
    let is_unit = |unit: &&str| *unit == lower && word != "M";
    let known = DURATION_UNITS.iter().map(|&(unit, _)| unit).find(is_unit);
    known.or_else(|| OTHER_UNITS.iter().find(|(_, words)| words.contains(&&*lower)).map(|&(unit, _)| unit))
}
