//! Comma-separated lists (RFC 9110 §5.6.1).

/// The members of one comma-separated value: trimmed, empty ones skipped, commas inside quoted strings kept.
pub fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let mut rest = value;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = match rest.iter().position(|&byte| byte == b',' || byte == b'"') {
                Some(at) if rest[at] == b'"' => quoted_end(rest),
                end => end.unwrap_or(rest.len()),
            };
            let member = rest[..end].trim_ascii();
            rest = rest.get(end + 1..).unwrap_or_default();
            if !member.is_empty() {
                return Some(member);
            }
        }
        None
    })
}

/// The end of the first member, which contains a quoted string.
fn quoted_end(value: &[u8]) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    let ends = |&byte: &u8| {
        if escaped {
            escaped = false;
        } else if quoted && byte == b'\\' {
            escaped = true;
        } else if byte == b'"' {
            quoted = !quoted;
        }
        byte == b',' && !quoted
    };
    value.iter().position(ends).unwrap_or(value.len())
}
