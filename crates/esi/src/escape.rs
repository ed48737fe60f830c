//! Values of visitors, written so that they are neither markup nor a part of a URL's structure.

/// Appends `value` as text of HTML: it cannot begin a tag, an entity, or the end of an attribute.
pub fn escape_html(value: &[u8], out: &mut Vec<u8>) {
    for &byte in value {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            byte => out.push(byte),
        }
    }
}

/// Whether a value in a path stays within its segment when a server has decoded it once.
pub(crate) fn is_segment(value: &[u8]) -> bool {
    let mut decoded = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&byte, after)) = rest.split_first() {
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
        match digit(0).zip(digit(1)) {
            Some((high, low)) if byte == b'%' => {
                decoded.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => {
                decoded.push(byte);
                rest = after;
            }
        }
    }
    !matches!(&*decoded, b"" | b"." | b"..") && !decoded.iter().any(|byte| b"/\\".contains(byte))
}

/// Appends `value` as a part of a path segment or of a query parameter (RFC 3986 §2.1). What is percent-encoded stays so.
pub(crate) fn escape_url(value: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for (at, &byte) in value.iter().enumerate() {
        let is_encoded =
            || value.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        match byte {
            b'-' | b'.' | b'_' | b'~' | b'+' => out.push(byte),
            b'%' if is_encoded() => out.push(byte),
            byte if byte.is_ascii_alphanumeric() => out.push(byte),
            byte => out.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_no_markup() {
        let mut out = Vec::new();
        escape_html(b"<esi:include src=\"/x\"/> & 'y'", &mut out);
        assert_eq!(out, b"&lt;esi:include src=&quot;/x&quot;/&gt; &amp; &#39;y&#39;");
    }

    #[test]
    fn a_value_is_no_structure_of_a_url() {
        let mut out = Vec::new();
        escape_url("a/../b?c=d&e#f%2F%zz \r\n+ü".as_bytes(), &mut out);
        assert_eq!(out, b"a%2F..%2Fb%3Fc%3Dd%26e%23f%2F%25zz%20%0D%0A+%C3%BC");
    }
}
