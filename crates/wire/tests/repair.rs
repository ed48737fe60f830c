//! Repairs of response heads that arrive in pieces.

use sandarac_message::Method;
use sandarac_wire::h1::{Limits, Parsed, Refusal, response};

fn read(bytes: &[u8]) -> Result<bool, Refusal> {
    let (mut spans, mut anew) = (Vec::new(), Vec::new());
    let parsed = response::parse_or_repair(bytes, &Limits::default(), &mut spans, &mut anew, Method::Get)?;
    Ok(matches!(parsed, Parsed::Complete(_)))
}

/// Regression: among lines that end in LF, the CR before a CR LF became part of the line end, and a bare CR
/// was accepted. Found by fuzzing.
#[test]
fn a_bare_cr_among_lines_that_end_in_lf_is_refused_however_it_arrives() {
    let head = b"HTTP/1.1 200 OK\nA: b\r\r\n\n";
    assert_eq!(read(head), Err(Refusal::BareCr));
    let refused = (0..head.len()).find(|&cut| read(&head[..cut]).is_err());
    assert_eq!(refused, Some(b"HTTP/1.1 200 OK\nA: b\r\r".len()));
}

/// Regression: a line that begins with white space was joined to such a line, which removed the LF to be
/// refused. Found by fuzzing.
#[test]
fn nothing_is_joined_to_a_line_that_ends_in_another_way() {
    assert_eq!(read(b"HTTP/1.1 200 OK\r\nA: b\r\nX: y=0\n y\r\n\r\n"), Err(Refusal::BareLf));
}
