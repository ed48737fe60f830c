//! Response heads: the same as for requests. The first byte chooses the method that was asked with.

use crate::common::{body_len, check_fields, check_prefixes, response_faults};
use sandarac_message::{Method, Span};
use sandarac_wire::h1::encode::Head;
use sandarac_wire::h1::response::{self, Kind, Response};
use sandarac_wire::h1::{BodyFraming, Limits, Parsed, Refusal};

fn read<'a>(
    bytes: &'a [u8],
    spans: &'a mut Vec<Span>,
    method: Method,
) -> Result<Option<Response<'a>>, Refusal> {
    Ok(match response::parse(bytes, &Limits::default(), spans, method)? {
        Parsed::Complete(response) => Some(response),
        Parsed::Partial => None,
    })
}

/// Checks one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let (method, name) = match choice % 3 {
        0 => (Method::Get, "GET"),
        1 => (Method::Head, "HEAD"),
        _ => (Method::Connect, "CONNECT"),
    };
    check_prefixes(bytes, |bytes| {
        let mut spans = Vec::new();
        Ok(read(bytes, &mut spans, method)?.map(|response| format!("{response:?}")))
    });
    let mut spans = Vec::new();
    match read(bytes, &mut spans, method) {
        Ok(Some(response)) => check(bytes, &response, method, name),
        Ok(None) => assert!(bytes.len() < Limits::default().head),
        Err(refusal) => {
            assert!(!response_faults(bytes, name).is_empty(), "{refusal:?}");
            check_repair(bytes, method);
        }
    }
}

/// What is repaired is read the same from any prefix that holds it, and what is written of it is read strictly.
fn check_repair(bytes: &[u8], method: Method) {
    let repair = |bytes: &[u8]| {
        let (mut spans, mut anew) = (Vec::new(), Vec::new());
        let parsed = response::parse_or_repair(bytes, &Limits::default(), &mut spans, &mut anew, method);
        // A line that is not whole may be refused although the whole one would be dropped.
        Ok(match parsed {
            Ok(Parsed::Complete(response)) => Some(format!("{response:?}")),
            Ok(Parsed::Partial) | Err(_) => None,
        })
    };
    check_prefixes(bytes, repair);
    let (mut spans, mut anew) = (Vec::new(), Vec::new());
    let parsed = response::parse_or_repair(bytes, &Limits::default(), &mut spans, &mut anew, method);
    let Ok(Parsed::Complete(response)) = parsed else { return };
    assert!(!response.repairs.is_empty() && !response.keep_alive && response.head_len <= bytes.len());
    check_fields(response.head.fields);
    if response.head.status < 600 {
        let mut out = Vec::new();
        let mut head = Head::response(&mut out, response.head.status, response.head.reason);
        head.fields(response.head.fields, response.framing);
        head.finish();
        let mut spans = Vec::new();
        let again =
            read(&out, &mut spans, method).expect("what was repaired is taken").expect("and is whole");
        assert_eq!((response.kind, response.framing), (again.kind, again.framing));
    }
}

fn check(bytes: &[u8], response: &Response<'_>, method: Method, name: &str) {
    assert!(response.head_len <= bytes.len() && bytes[..response.head_len].ends_with(b"\r\n\r\n"));
    assert!((100..600).contains(&response.head.status));
    assert!(response.kind == Kind::Final || response.framing == BodyFraming::None);
    assert!(response.framing != BodyFraming::UntilClose || !response.keep_alive);
    check_fields(response.head.fields);
    if let Ok(Some(body)) = body_len(&bytes[response.head_len..], response.framing)
        && response.kind == Kind::Final
    {
        let faults = response_faults(&bytes[..response.head_len + body], name);
        assert!(faults.is_empty(), "{faults:?}");
    }

    let mut out = Vec::new();
    let mut head = Head::response(&mut out, response.head.status, response.head.reason);
    head.fields(response.head.fields, response.framing);
    head.finish();
    let mut spans = Vec::new();
    let again = match read(&out, &mut spans, method) {
        // A head near the limit can pass it when it is written out with the usual white space.
        Err(Refusal::HeadTooLarge) => return,
        other => other.expect("what was taken is taken again").expect("and is whole"),
    };
    assert_eq!((response.kind, response.framing), (again.kind, again.framing));
    assert_eq!(response.head.reason, again.head.reason);
}
