//! Media types (RFC 9110 §8.3.1), as far as caches care: which bodies are worth compressing, which belong to every
//! page, which are streams, and which a client accepts.

use crate::glob::Glob;
use crate::weighted::thousandths;
use crate::{Fields, Name};

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
    let essence = essence(content_type);
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
    let essence = essence(content_type);
    let ends_in_xml = essence.len() > 4 && essence[essence.len() - 4..].eq_ignore_ascii_case(b"+xml");
    let known: [&[u8]; 3] = [b"text/html", b"text/xml", b"application/xml"];
    ends_in_xml || known.iter().any(|known| essence.eq_ignore_ascii_case(known))
}

/// The type without its parameters.
fn essence(content_type: &[u8]) -> &[u8] {
    content_type.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii()
}

/// Whether the type is a style, a script, an image or a font: what pages are made of, the same for all who see them.
pub fn is_asset(content_type: &[u8]) -> bool {
    let essence = essence(content_type).to_ascii_lowercase();
    let starts: [&[u8]; 4] = [b"image/", b"font/", b"application/font-", b"application/x-font-"];
    let known: [&[u8]; 5] = [
        b"text/css",
        b"text/javascript",
        b"application/javascript",
        b"application/x-javascript",
        b"application/vnd.ms-fontobject",
    ];
    starts.iter().any(|start| essence.starts_with(start)) || known.contains(&&*essence)
}

/// Whether bodies of this type are streams of events, images or calls. What one client has seen of such a stream is
/// nothing that the next could use.
pub fn is_stream(content_type: &[u8]) -> bool {
    let essence = essence(content_type).to_ascii_lowercase();
    matches!(&*essence, b"text/event-stream" | b"multipart/x-mixed-replace")
        || essence.starts_with(b"application/grpc")
}

/// Whether the type, without its parameters and in lower case, matches one of these.
pub fn is_one_of(content_type: &[u8], types: &[Glob]) -> bool {
    let essence = essence(content_type).to_ascii_lowercase();
    types.iter().any(|known| known.matches(&essence))
}

/// Whether a client would be content with a body of this type (RFC 9110 §12.5.1): it has no Accept, or that
/// admits the type. Pages and data often have other forms at the same URL, so that a wildcard admits them
/// only if the client names nothing that it likes as much: a browser, which names HTML, is not content with a
/// feed, nor a reader of feeds with HTML.
pub fn is_accepted(request: Fields<'_>, content_type: &[u8]) -> bool {
    if !request.has(Name::Accept) {
        return true;
    }
    let essence = essence(content_type);
    let main = essence.split(|&byte| byte == b'/').next().unwrap_or_default();
    let (mut is_named, mut by_wildcard, mut named) = (false, 0, 0);
    for range in request.list(Name::Accept) {
        let (weight, range) = (weight(range), self::essence(range));
        if range == b"*/*" {
            by_wildcard = by_wildcard.max(weight);
            continue;
        }
        named = named.max(weight);
        let covers = range.strip_suffix(b"/*").is_some_and(|range| range.eq_ignore_ascii_case(main));
        is_named |= weight > 0 && (covers || range.eq_ignore_ascii_case(essence));
    }
    is_named || (by_wildcard > 0 && (by_wildcard > named || !has_forms(essence)))
}

/// The weight of a range of Accept, in thousandths. One that cannot be read counts as none.
fn weight(range: &[u8]) -> u16 {
    let parameters = range.split(|&byte| byte == b';').skip(1).map(<[u8]>::trim_ascii);
    let weight = |parameter: &[u8]| match parameter {
        [b'q' | b'Q', b'=', weight @ ..] => Some(thousandths(weight).unwrap_or(1000)),
        _ => None,
    };
    parameters.into_iter().find_map(weight).unwrap_or(1000)
}

/// Whether a type, without its parameters, is that of a page or of data, which an application may send in
/// several forms.
fn has_forms(essence: &[u8]) -> bool {
    let essence = essence.to_ascii_lowercase();
    !is_asset(&essence)
        && (is_markup(&essence) || essence.ends_with(b"+json") || essence == b"application/json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldsBuf;

    #[test]
    fn assets_and_streams_are_known_in_any_case_and_with_parameters() {
        let assets: [&[u8]; 4] =
            [b"Text/CSS; charset=utf-8", b"image/png", b"font/woff2", b"application/font-woff"];
        assert!(assets.into_iter().all(is_asset));
        let others: [&[u8]; 4] = [b"text/html", b"application/json", b"", b"images/png"];
        assert!(!others.into_iter().any(is_asset));
        let streams: [&[u8]; 3] = [
            b"text/Event-Stream;charset=utf-8",
            b"multipart/x-mixed-replace; boundary=x",
            b"application/grpc+proto",
        ];
        assert!(streams.into_iter().all(is_stream));
        assert!(!is_stream(b"multipart/mixed"));
    }

    fn accepts(accept: &str, content_type: &str) -> bool {
        let fields: FieldsBuf = [("Accept", accept)].into_iter().collect();
        is_accepted(fields.view(), content_type.as_bytes())
    }

    #[test]
    fn a_client_accepts_what_it_names_and_anything_without_accept() {
        for accept in
            ["text/html,application/xml;q=0.9,*/*;q=0.8", "TEXT/html", "text/*", "a/b, text/html ;q=1", "*/*"]
        {
            assert!(accepts(accept, "text/html; charset=utf-8"), "{accept}");
        }
        for accept in
            ["application/json", "text/plain", "image/*", "", "application/json, */*;q=0.0", "text/html;Q=0"]
        {
            assert!(!accepts(accept, "text/html"), "{accept}");
        }
        assert!(is_accepted(FieldsBuf::new().view(), b"text/html"));
    }

    #[test]
    fn a_wildcard_admits_a_form_only_where_nothing_is_liked_as_much() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8";
        let reader = "application/rss+xml, application/atom+xml;q=0.6, */*;q=0.1";
        let script = "application/json, text/plain, */*";
        for (accept, content_type) in [
            (browser, "application/pdf"),
            (browser, "image/jpeg"),
            (browser, "application/xml"),
            (reader, "application/atom+xml"),
            (script, "text/plain"),
            (script, "text/css"),
            ("*/*, text/html;q=0.5", "application/atom+xml"),
            ("text/css,*/*;q=0.1", "text/javascript"),
            ("image/avif,*/*;q=0.5", "image/svg+xml"),
        ] {
            assert!(accepts(accept, content_type), "{content_type} for {accept}");
        }
        for (accept, content_type) in [
            (browser, "application/rss+xml"),
            (browser, "application/json"),
            (browser, "application/ld+json; charset=utf-8"),
            (reader, "text/html"),
            (script, "text/html; charset=utf-8"),
        ] {
            assert!(!accepts(accept, content_type), "{content_type} for {accept}");
        }
    }

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
