//! Media types (RFC 9110 §8.3.1), as far as caches care: which bodies are worth compressing.

/// Types beside `text/*` whose content is text, or as repetitive as text.
const TEXTUAL: [&[u8]; 15] = [
    b"application/javascript",
    b"application/json",
    b"application/manifest+json",
    b"application/rtf",
    b"application/vnd.ms-fontobject",
    b"application/wasm",
    b"application/x-javascript",
    b"application/x-ndjson",
    b"application/x-sh",
    b"application/xml",
    b"application/yaml",
    b"font/otf",
    b"font/ttf",
    b"image/bmp",
    b"image/x-icon",
];

/// Whether bodies of this type usually shrink when they are compressed: text, its relatives (`…+json`,
/// `…+xml`), and the few binary formats without compression of their own. `content_type` is the value of the
/// field, parameters included.
pub fn is_compressible(content_type: &[u8]) -> bool {
    let essence = content_type.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    let ends = |suffix: &[u8]| {
        essence.len() > suffix.len() && essence[essence.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
    };
    let is_text = essence.len() > 5 && essence[..5].eq_ignore_ascii_case(b"text/");
    is_text
        || ends(b"+json")
        || ends(b"+xml")
        || ends(b"+text")
        || TEXTUAL.iter().any(|known| essence.eq_ignore_ascii_case(known))
}

/// Whether bodies of this type are markup: HTML and XML with its relatives (`…+xml`).
pub fn is_markup(content_type: &[u8]) -> bool {
    let essence = content_type.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    let ends_in_xml = essence.len() > 4 && essence[essence.len() - 4..].eq_ignore_ascii_case(b"+xml");
    let known: [&[u8]; 3] = [b"text/html", b"text/xml", b"application/xml"];
    ends_in_xml || known.iter().any(|known| essence.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_its_relatives_are_compressible() {
        let types: [&[u8]; 8] = [
            b"text/html; charset=utf-8",
            b"TEXT/CSS",
            b"application/json",
            b" Application/JSON ;charset=utf-8",
            b"application/ld+json",
            b"image/svg+xml",
            b"font/ttf",
            b"application/wasm",
        ];
        for content_type in types {
            assert!(is_compressible(content_type), "{}", content_type.escape_ascii());
        }
    }

    #[test]
    fn html_and_xml_are_markup() {
        let types: [&[u8]; 4] =
            [b"text/html; charset=utf-8", b"TEXT/HTML", b"application/xhtml+xml", b" application/xml ;q"];
        assert!(types.into_iter().all(is_markup));
        let others: [&[u8]; 5] = [b"text/plain", b"application/json", b"+xml", b"", b"image/png;x=+xml"];
        assert!(!others.into_iter().any(is_markup));
    }

    #[test]
    fn what_is_compressed_already_or_unknown_is_not() {
        let types: [&[u8]; 9] = [
            b"image/png",
            b"font/woff2",
            b"video/mp4",
            b"application/zip",
            b"application/octet-stream",
            b"text/",
            b"+json",
            b"multipart/form-data; x=text/html",
            b"",
        ];
        for content_type in types {
            assert!(!is_compressible(content_type), "{}", content_type.escape_ascii());
        }
    }
}
