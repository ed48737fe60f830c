//! Fields as tests write them.

use crate::FieldsBuf;

/// Fields written one per line.
pub(crate) fn fields(text: &str) -> FieldsBuf {
    text.lines().map(|line| line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""))).collect()
}

/// The same text, of fields.
pub(crate) fn lines(fields: &FieldsBuf) -> String {
    let mut out = Vec::new();
    fields.encode(&mut out);
    String::from_utf8(out).unwrap().replace("\r\n", "\n").trim_end().to_owned()
}
