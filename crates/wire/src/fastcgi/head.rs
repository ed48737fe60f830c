//! The head of a CGI response (RFC 3875 §6), at the start of an application's output.
//!
//! The head is written anew as one of HTTP/1.1 and read by [`crate::h1`], so that a field of an application passes the
//! same grammar, and the same repairs, as one of an HTTP origin.

use super::Refusal;
use crate::h1::response::{self, Response};
use crate::h1::{self, Limits, Parsed};
use sandarac_message::{MAX_HEAD, Method, Span};

/// Memory for a head, reused for each.
#[derive(Debug, Default)]
pub struct Rewritten {
    /// The head as one of HTTP/1.1.
    head: Vec<u8>,
    /// The same with repairs.
    repaired: Vec<u8>,
}

/// A head that is complete.
#[derive(Clone, Copy, Debug)]
pub struct CgiHead<'a> {
    /// The head as one of HTTP/1.1. Its `head_len` and `keep_alive` mean nothing here. The body is framed by its
    /// Content-Length, else by the end of the output.
    pub response: Response<'a>,
    /// Bytes of the head as received; the body begins after them.
    pub head_len: usize,
}

/// Finds the end of a head in `output`, whose first `seen` bytes hold none: the number of bytes to the end of its
/// empty line.
pub fn end(output: &[u8], seen: usize) -> Option<usize> {
    let mut at = seen.saturating_sub(2);
    while let Some(lf) = memchr::memchr(b'\n', &output[at..]) {
        at += lf + 1;
        match &output[at..] {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
    None
}

/// Reads the head at the start of `output`, for a request with method `method`. `head_len` is what [`end`] found.
///
/// Lines end in CR LF or in LF, the same throughout (RFC 3875 §6.2 leaves both open). `Status` gives the status;
/// without it, it is 302 with a `Location` and 200 otherwise.
pub fn parse<'a>(
    output: &[u8],
    head_len: usize,
    limits: &Limits,
    spans: &'a mut Vec<Span>,
    memory: &'a mut Rewritten,
    method: Method,
) -> Result<CgiHead<'a>, Refusal> {
    if head_len > limits.head.min(MAX_HEAD) {
        return Err(Refusal::Head(h1::Refusal::HeadTooLarge));
    }
    let Rewritten { head, repaired } = memory;
    rewrite(&output[..head_len], head)?;
    // The status line is longer than the line that it replaces, if there was one.
    let roomier = Limits { head: limits.head + ADDED, ..*limits };
    let parsed = response::parse_or_repair(head, &roomier, spans, repaired, method).map_err(Refusal::Head)?;
    match parsed {
        Parsed::Complete(response) => Ok(CgiHead { response, head_len }),
        Parsed::Partial => Err(Refusal::Head(h1::Refusal::InvalidFieldName)),
    }
}

/// Bytes that a status line may add: its version and status.
const ADDED: usize = b"HTTP/1.1 200 \r\n".len();

/// Writes the head in `received`, including its empty line, as one of HTTP/1.1.
fn rewrite(received: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    out.clear();
    let (mut status, mut redirects, mut is_crlf) = (None, false, None);
    for line in lines(received) {
        let ended = line.strip_suffix(b"\r");
        // An LF within a value may have been injected.
        if *is_crlf.get_or_insert(ended.is_some()) != ended.is_some() {
            return Err(Refusal::Head(h1::Refusal::BareLf));
        }
        let line = ended.unwrap_or(line);
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (name, value) = (&line[..colon], line.get(colon + 1..).unwrap_or_default().trim_ascii());
        if name.eq_ignore_ascii_case(b"status") {
            if status.replace(read_status(value)?).is_some() {
                return Err(Refusal::InvalidStatus);
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            return Err(Refusal::TransferEncoding);
        } else if name.eq_ignore_ascii_case(b"location") {
            redirects = true;
        }
    }
    let default: (&[u8], &[u8]) = if redirects { (b"302", b"Found") } else { (b"200", b"OK") };
    let (code, reason) = status.unwrap_or(default);
    for part in [b"HTTP/1.1 ", code, b" ", reason, b"\r\n"] {
        out.extend_from_slice(part);
    }
    // A folded line (RFC 9112 §5.2) after Status would continue another field.
    let mut after_status = false;
    for line in lines(received) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
        if after_status && matches!(line.first(), Some(b' ' | b'\t')) {
            return Err(Refusal::InvalidStatus);
        }
        after_status = name.eq_ignore_ascii_case(b"status");
        if !after_status {
            out.extend_from_slice(line);
            out.extend_from_slice(b"\r\n");
        }
    }
    Ok(())
}

/// The lines of a head, without their LF.
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.strip_suffix(b"\n").unwrap_or(head).split(|&byte| byte == b'\n')
}

/// The code and the reason of a Status value (RFC 3875 §6.3.3). An application has no interim responses.
fn read_status(value: &[u8]) -> Result<(&[u8], &[u8]), Refusal> {
    let (code, rest) = value.split_at_checked(3).ok_or(Refusal::InvalidStatus)?;
    let valid = matches!(code[0], b'2'..=b'9') && code.iter().all(u8::is_ascii_digit);
    match rest {
        [] if valid => Ok((code, b"")),
        [b' ', reason @ ..] if valid => Ok((code, reason.trim_ascii_start())),
        _ => Err(Refusal::InvalidStatus),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h1::BodyFraming;

    /// The head as a line of text, with the framing of the body and the length of the head.
    fn read(output: &[u8]) -> Result<(String, BodyFraming, usize), Refusal> {
        let head_len = end(output, 0).expect("a whole head");
        let (mut spans, mut memory) = (Vec::new(), Rewritten::default());
        let head = parse(output, head_len, &Limits::default(), &mut spans, &mut memory, Method::Get)?;
        let Response { head: parsed, framing, .. } = head.response;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields = parsed.fields.iter().map(|field| format!("{}: {}", text(field.name), text(field.value)));
        let lines: Vec<String> =
            std::iter::once(format!("{} {}", parsed.status, text(parsed.reason))).chain(fields).collect();
        Ok((lines.join(" | "), framing, head.head_len))
    }

    #[track_caller]
    fn reads(output: &[u8], expected: &str) {
        assert_eq!(read(output).unwrap().0, expected);
    }

    #[test]
    fn a_response_without_status_is_200() {
        let head = b"X-Powered-By: PHP/8.2.29\r\nContent-type: text/html; charset=UTF-8\r\n\r\nbody";
        let (lines, framing, len) = read(head).unwrap();
        assert_eq!(lines, "200 OK | X-Powered-By: PHP/8.2.29 | Content-type: text/html; charset=UTF-8");
        assert_eq!((framing, len), (BodyFraming::UntilClose, head.len() - 4));
    }

    #[test]
    fn status_gives_the_status_wherever_it_is() {
        reads(
            b"Status: 404 Not Found\r\nContent-type: text/html\r\n\r\n",
            "404 Not Found | Content-type: text/html",
        );
        reads(b"Content-type: a/b\r\nstatus:503\r\n\r\n", "503  | Content-type: a/b");
        reads(b"Status: 404\r\n\r\n", "404 ");
    }

    #[test]
    fn a_location_without_status_redirects() {
        reads(b"Location: /b\r\n\r\n", "302 Found | Location: /b");
        reads(b"Status: 201 Created\r\nLocation: /b\r\n\r\n", "201 Created | Location: /b");
    }

    #[test]
    fn lines_end_in_lf_or_in_crlf_but_not_in_both() {
        reads(b"Content-Type: a/b\nX: 1\n\nbody", "200 OK | Content-Type: a/b | X: 1");
        for mixed in
            [&b"Content-Type: a/b\r\nX: 1\nY: 2\r\n\r\n"[..], b"Content-Type: a/b\n\r\n", b"A: b\r\n\n"]
        {
            assert_eq!(read(mixed), Err(Refusal::Head(h1::Refusal::BareLf)));
        }
    }

    #[test]
    fn content_length_frames_the_body() {
        assert_eq!(read(b"Content-Length: 12\r\n\r\n").unwrap().1, BodyFraming::Length(12));
        assert_eq!(read(b"Status: 304\r\nETag: \"a\"\r\n\r\n").unwrap().1, BodyFraming::None);
    }

    #[test]
    fn folded_lines_and_repeated_lengths_are_repaired_as_those_of_http_origins() {
        reads(b"X: a\r\n b\r\n\r\n", "200 OK | X: a b");
        reads(b"Content-Length: 5\nContent-Length: 5\n\n", "200 OK | Content-Length: 5");
    }

    #[test]
    fn what_has_no_single_reading_is_refused() {
        let head = |refusal| Refusal::Head(refusal);
        for (bytes, refusal) in [
            (&b"Status: 100 Continue\r\n\r\n"[..], Refusal::InvalidStatus),
            (b"Status: 20\r\n\r\n", Refusal::InvalidStatus),
            (b"Status: 2000\r\n\r\n", Refusal::InvalidStatus),
            (b"Status: OK\r\n\r\n", Refusal::InvalidStatus),
            (b"Status: 200\r\nStatus: 404\r\n\r\n", Refusal::InvalidStatus),
            (b"X: 1\r\nStatus: 200\r\n 404\r\n\r\n", Refusal::InvalidStatus),
            (b"Transfer-Encoding: chunked\r\n\r\n", Refusal::TransferEncoding),
            (b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", head(h1::Refusal::RepeatedContentLength)),
            (b"HTTP/1.1 200 OK\r\nX: 1\r\n\r\n", head(h1::Refusal::InvalidFieldName)),
            (b"<b>Warning</b> in x.php\r\n\r\n", head(h1::Refusal::InvalidFieldName)),
            (b"X : 1\r\n\r\n", head(h1::Refusal::SpaceInFieldName)),
            (b"X: a\rb\r\n\r\n", head(h1::Refusal::BareCr)),
            (b"X: a\0\r\n\r\n", head(h1::Refusal::Nul)),
        ] {
            assert_eq!(read(bytes), Err(refusal), "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn a_head_is_bounded() {
        let mut long = b"X: ".to_vec();
        long.resize(40_000, b'a');
        long.extend_from_slice(b"\r\n\r\n");
        assert_eq!(read(&long), Err(Refusal::Head(h1::Refusal::HeadTooLarge)));
    }

    #[test]
    fn the_end_is_found_in_pieces() {
        let output = b"A: 1\r\nB: 2\r\n\r\nbody";
        for seen in 0..=output.len() - 5 {
            let first = end(&output[..seen], 0);
            let found = first.or_else(|| end(output, seen));
            assert_eq!(found, Some(output.len() - 4), "after {seen} bytes");
        }
    }
}
