//! Escapes in logs for bytes that would break a line.

/// Reverses the escapes of Apache and nginx: `\xHH`, quotes and backslashes after a backslash, and the
/// letters of C. Anything else stays.
pub(super) fn unescape(text: &[u8]) -> Vec<u8> {
    undo(text, |after| match after {
        [letter @ (b'"' | b'\\'), ..] => Some((*letter, 1)),
        [b'n', ..] => Some((b'\n', 1)),
        [b'r', ..] => Some((b'\r', 1)),
        [b't', ..] => Some((b'\t', 1)),
        [b'b', ..] => Some((0x08, 1)),
        [b'v', ..] => Some((0x0b, 1)),
        _ => hexadecimal(after),
    })
}

/// Reverses the escapes of our own JSON for bytes that are not UTF-8: `\xHH`, from 80 on.
pub(super) fn unescape_bytes(text: &[u8]) -> Vec<u8> {
    undo(text, |after| hexadecimal(after).filter(|&(byte, _)| !byte.is_ascii()))
}

/// Replaces each backslash and the bytes after it by the byte that `escape` returns, together with their
/// number.
fn undo(text: &[u8], escape: impl Fn(&[u8]) -> Option<(u8, usize)>) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let after = &rest[at + 1..];
        match escape(after) {
            Some((byte, used)) => {
                out.push(byte);
                rest = &after[used..];
            }
            None => {
                out.push(b'\\');
                rest = after;
            }
        }
    }
    out.extend_from_slice(rest);
    out
}

fn hexadecimal(after: &[u8]) -> Option<(u8, usize)> {
    let [b'x', high, low, ..] = after else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    Some(((digit(high)? * 16 + digit(low)?) as u8, 3))
}
