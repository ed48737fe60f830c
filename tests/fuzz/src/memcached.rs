//! Responses of memcached: however cut the same, bounded, and every value whole.

use sandarac_wire::memcached::{Code, Line, MAX_LINE, Refusal, Value, parse};

const MAX_VALUE: u64 = 512;

/// Reads a stream, `step` bytes at a time. Returns what was read, as text.
fn read(bytes: &[u8], step: usize) -> (Vec<String>, Option<Refusal>) {
    let (mut read, mut value) = (Vec::new(), None::<Value>);
    let (mut at, mut arrived) = (0, 0);
    loop {
        if let Some(pending) = &mut value {
            match pending.take(&bytes[at..arrived]) {
                Ok(taken) => at += taken,
                Err(refusal) => return (read, Some(refusal)),
            }
            if pending.is_complete() {
                read.push(format!("{:?}", value.take().and_then(Value::finish)));
            }
        }
        if value.is_none() {
            match parse(&bytes[at..arrived], MAX_VALUE) {
                Ok(Some(parsed)) => {
                    assert!(parsed.len <= MAX_LINE && bytes[at..at + parsed.len].ends_with(b"\r\n"));
                    at += parsed.len;
                    read.push(format!("{:?}", parsed.line));
                    if let Line::Meta(meta) = parsed.line
                        && let Code::Value(size) = meta.code
                    {
                        assert!(size <= MAX_VALUE);
                        value = Some(if size % 3 == 0 {
                            Value::skipped(size)
                        } else {
                            Value::kept(size as usize)
                        });
                    }
                    continue;
                }
                Ok(None) => assert!(arrived - at < MAX_LINE),
                Err(refusal) => return (read, Some(refusal)),
            }
        }
        if arrived == bytes.len() {
            return (read, None);
        }
        arrived = (arrived + step).min(bytes.len());
    }
}

/// Checks one input.
pub(crate) fn run(bytes: &[u8]) {
    let whole = read(bytes, bytes.len().max(1));
    for step in [1, 3, 64] {
        assert_eq!(read(bytes, step), whole);
    }
}
