//! Records as lines. For any bytes from a client, a line stays one line, its fields stay separate, and it cannot
//! control a terminal.

use std::io::Write as _;
use std::str::FromStr;

use sandarac_message::Version;
use sandarac_message::civil::Civil;
use sandarac_message::printable::is_unseen;
use sandarac_proxy::Record;

use super::basic_user;

/// The format of an access log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The NCSA combined format, as in Apache and nginx.
    #[default]
    Combined,
    /// One JSON object per line, with all fields of the exchange.
    Json,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        match text {
            "combined" => Ok(Format::Combined),
            "json" => Ok(Format::Json),
            _ => Err(format!("there is no log format {text:?}; there are \"combined\" and \"json\"")),
        }
    }
}

impl Format {
    /// Appends `record` as one line, with its line feed; nothing if it is of a fragment and the format is combined.
    pub fn write(self, record: &Record<'_>, out: &mut Vec<u8>) {
        match self {
            // Nobody visited a fragment, and nothing in this format tells it from a page.
            Format::Combined if record.page.is_some() => {}
            Format::Combined => combined(record, out),
            Format::Json => json(record, out),
        }
    }
}

fn version(version: Version) -> &'static str {
    match version {
        Version::Http10 => "HTTP/1.0",
        Version::Http11 => "HTTP/1.1",
        Version::Http2 => "HTTP/2.0",
    }
}

/// Writing to a vector cannot fail; this is the one place that relies on it.
macro_rules! put {
    ($out:expr, $($format:tt)*) => { write!($out, $($format)*).expect("a vector takes what is written to it") };
}

fn combined(record: &Record<'_>, out: &mut Vec<u8>) {
    match record.client {
        Some(client) => put!(out, "{client}"),
        None => out.push(b'-'),
    }
    out.extend_from_slice(b" - ");
    word(record.authorization.and_then(basic_user).as_deref(), out);
    put!(out, " [{}] \"", Civil::of(record.time).ncsa());
    escape(record.method, out);
    out.push(b' ');
    escape(record.target, out);
    put!(out, " {}\" {:03} ", version(record.version), record.status);
    match record.bytes {
        0 => out.push(b'-'),
        bytes => put!(out, "{bytes}"),
    }
    for value in [record.referer, record.user_agent] {
        out.extend_from_slice(b" \"");
        escape(value.unwrap_or(b"-"), out);
        out.push(b'"');
    }
    out.push(b'\n');
}

/// An unquoted value; its spaces are escaped, because they separate the fields.
fn word(value: Option<&[u8]>, out: &mut Vec<u8>) {
    match value {
        None | Some(b"") => out.push(b'-'),
        Some(value) => {
            for (at, part) in value.split(|&byte| byte == b' ').enumerate() {
                if at > 0 {
                    out.extend_from_slice(b"\\x20");
                }
                escape(part, out);
            }
        }
    }
}

/// Escapes as Apache does: quotes and backslashes with a backslash, bytes other than printable ASCII as `\xHH`.
fn escape(value: &[u8], out: &mut Vec<u8>) {
    for &byte in value {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b' '..=b'~' => out.push(byte),
            _ => put!(out, "\\x{byte:02x}"),
        }
    }
}

fn json(record: &Record<'_>, out: &mut Vec<u8>) {
    put!(out, "{{\"time\":\"{}\"", Civil::of(record.time).rfc3339());
    put!(out, ",\"session\":{},\"request\":{}", record.session, record.request);
    if let Some(fetch) = record.fetch {
        put!(out, ",\"fetch\":{fetch}");
    }
    if let Some(page) = record.page {
        put!(out, ",\"page\":{page}");
    }
    text("id", record.id.map(str::as_bytes), out);
    if let Some(client) = record.client {
        put!(out, ",\"client\":\"{client}\"");
    }
    text("user", record.authorization.and_then(basic_user).as_deref(), out);
    if let Some(tls) = record.tls {
        put!(out, ",\"tls_version\":\"{}\",\"tls_cipher\":\"{}\"", tls.version_name(), tls.suite_name());
        text("tls_server_name", tls.server_name.as_deref().map(str::as_bytes), out);
        put!(out, ",\"tls_resumed\":{}", tls.resumed);
        text("tls_client_certificate", tls.certificate_digest.as_deref().map(str::as_bytes), out);
    }
    text("method", Some(record.method), out);
    text("host", Some(record.host).filter(|host| !host.is_empty()), out);
    text("target", Some(record.target), out);
    put!(out, ",\"version\":\"{}\",\"status\":{}", version(record.version), record.status);
    put!(out, ",\"bytes\":{},\"duration_us\":{}", record.bytes, record.duration.as_micros());
    for (name, duration) in [("first_byte_us", record.first_byte), ("origin_us", record.origin)] {
        if let Some(duration) = duration {
            put!(out, ",\"{name}\":{}", duration.as_micros());
        }
    }
    text("cache", Some(record.outcome.text().as_bytes()), out);
    text("reason", record.reason.map(str::as_bytes), out);
    text("field", record.field, out);
    text("backend", record.backend.map(str::as_bytes), out);
    text("backend_protocol", record.backend_protocol.map(str::as_bytes), out);
    text("error", record.error.map(str::as_bytes), out);
    text("referer", record.referer, out);
    text("user_agent", record.user_agent, out);
    out.extend_from_slice(b"}\n");
}

/// A member with a string; left out if there is none. Bytes that are not UTF-8 are written as the four characters
/// `\xHH`.
fn text(name: &str, value: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(value) = value else {
        return;
    };
    put!(out, ",\"{name}\":\"");
    for chunk in value.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '"' | '\\' => out.extend_from_slice(&[b'\\', letter as u8]),
                // JSON allows DEL, the C1 controls and bidirectional controls unescaped; terminals obey them.
                letter if is_unseen(letter) => put!(out, "\\u{:04x}", letter as u32),
                letter => out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        for byte in chunk.invalid() {
            put!(out, "\\\\x{byte:02x}");
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;
    use proptest::prelude::*;

    fn line(format: Format, record: &Record<'_>) -> String {
        let mut out = Vec::new();
        format.write(record, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn combined_is_what_log_tools_read() {
        assert_eq!(
            line(Format::Combined, &example()),
            "192.0.2.7 - - [21/Nov/2026:13:55:36 +0000] \"GET /articles/3?q=%22 HTTP/1.1\" 200 8192 \"-\" \"curl/8\"\n"
        );
    }

    /// Regression: bidirectional controls, and characters that some readers take for a line end, were written
    /// unescaped.
    #[test]
    fn json_escapes_what_is_not_to_be_seen() {
        let record = Record { target: "/a\u{202e}gpj\u{2028}é".as_bytes(), ..example() };
        assert!(line(Format::Json, &record).contains("\"/a\\u202egpj\\u2028é\""));
    }

    #[test]
    fn combined_escapes_what_would_forge_a_field_or_a_line() {
        let record = Record {
            client: None,
            authorization: Some(b"Basic YSBiOg=="),
            target: b"/\"\\\xff",
            user_agent: Some(b"x\n1.2.3.4 - - \x1b[2J"),
            bytes: 0,
            ..example()
        };
        assert_eq!(
            line(Format::Combined, &record),
            "- - a\\x20b [21/Nov/2026:13:55:36 +0000] \"GET /\\\"\\\\\\xff HTTP/1.1\" 200 - \"-\" \
             \"x\\x0a1.2.3.4 - - \\x1b[2J\"\n"
        );
    }

    #[test]
    fn json_has_everything_that_is_known_and_nothing_that_is_not() {
        assert_eq!(
            line(Format::Json, &example()),
            "{\"time\":\"2026-11-21T13:55:36.042Z\",\"session\":4,\"request\":17,\"client\":\"192.0.2.7\",\
             \"method\":\"GET\",\"host\":\"example.org\",\"target\":\"/articles/3?q=%22\",\"version\":\"HTTP/1.1\",\
             \"status\":200,\"bytes\":8192,\"duration_us\":314,\"first_byte_us\":120,\"cache\":\"hit\",\
             \"user_agent\":\"curl/8\"}\n"
        );
        let record = Record { fetch: Some(18), reason: Some("vary"), backend: Some("app"), ..example() };
        let value: serde_json::Value = serde_json::from_str(&line(Format::Json, &record)).unwrap();
        assert_eq!(value["fetch"], 18);
        assert_eq!(value["reason"], "vary");
        assert_eq!(value["backend"], "app");
    }

    #[test]
    fn fragments_are_no_visits() {
        let record = Record { page: Some(16), ..example() };
        assert_eq!(line(Format::Combined, &record), "");
        assert!(line(Format::Json, &record).contains(",\"request\":17,\"page\":16,"));
    }

    proptest! {
        #[test]
        fn hostile_bytes_stay_in_their_field(bytes: Vec<u8>) {
            let record = Record {
                referer: Some(&bytes), target: &bytes, user_agent: Some(&bytes), ..example()
            };
            let combined = line(Format::Combined, &record);
            prop_assert!(combined.trim_end_matches('\n').bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            prop_assert_eq!(combined.split(' ').nth(3), Some("[21/Nov/2026:13:55:36"));
            let json = line(Format::Json, &record);
            prop_assert!(!json.trim_end_matches('\n').chars().any(is_unseen));
            let value: serde_json::Value = serde_json::from_str(&json).unwrap();
            if let Ok(text) = std::str::from_utf8(&bytes) {
                prop_assert_eq!(value["target"].as_str(), Some(text));
            }
        }
    }
}
