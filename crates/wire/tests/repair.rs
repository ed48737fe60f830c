//! Repairs of response heads, over arrivals in pieces.

use sandarac_message::Method;
use sandarac_wire::h1::{Limits, Parsed, Refusal, response};

fn read(bytes: &[u8]) -> Result<bool, Refusal> {
    let (mut spans, mut anew) = (Vec::new(), Vec::new());
    let parsed = response::parse_or_repair(bytes, &Limits::default(), &mut spans, &mut anew, Method::Get)?;
    Ok(matches!(parsed, Parsed::Complete(_)))
}

/// Regression: among lines that end in LF, the CR before a CR LF became a line's end, so that a bare CR was taken. Found by fuzzing.
#[test]
fn a_bare_cr_among_lines_that_end_in_lf_is_refused_however_it_arrives() {
    let head = b"HTTP/1.1 200 OK\nA: b\r\r\n\n";
    assert_eq!(read(head), Err(Refusal::BareCr));
    let refused = (0..head.len()).find(|&cut| read(&head[..cut]).is_err());
    assert_eq!(refused, Some(b"HTTP/1.1 200 OK\nA: b\r\r".len()));
}
