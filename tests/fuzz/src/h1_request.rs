//! Request heads: however cut the same; taken only without a fault that the relaxed reader can find; written anew they
//! are read the same.

use crate::common::{body_len, check_fields, check_prefixes, request_faults};
use sandarac_message::{Span, Version};
use sandarac_wire::h1::encode::Head;
use sandarac_wire::h1::request::{self, Request};
use sandarac_wire::h1::{BodyFraming, Limits, Parsed, Refusal};

fn read<'a>(bytes: &'a [u8], spans: &'a mut Vec<Span>) -> Result<Option<Request<'a>>, Refusal> {
    Ok(match request::parse(bytes, &Limits::default(), spans)? {
        Parsed::Complete(request) => Some(request),
        Parsed::Partial => None,
    })
}

/// All that a reading says, but for the spelling of the framing fields.
fn said(request: &Request<'_>) -> String {
    let fields: Vec<_> = request.head.fields.iter().map(|field| (field.name, field.value)).collect();
    format!(
        "{:?} {:?} {fields:?} {:?} {} {} {}",
        request.head.method_text,
        request.head.target,
        request.framing,
        request.keep_alive,
        request.expect_continue,
        request.upgrade
    )
}

/// Checks one input.
pub(crate) fn run(bytes: &[u8]) {
    check_prefixes(bytes, |bytes| {
        let mut spans = Vec::new();
        Ok(read(bytes, &mut spans)?.map(|request| format!("{request:?}")))
    });
    let mut spans = Vec::new();
    match read(bytes, &mut spans) {
        Ok(Some(request)) => check(bytes, &request),
        Ok(None) => assert!(bytes.len() < Limits::default().head),
        Err(refusal) => {
            assert!(!request_faults(bytes).is_empty(), "{refusal:?}");
        }
    }
}

fn check(bytes: &[u8], request: &Request<'_>) {
    assert!(request.head_len <= bytes.len() && bytes[..request.head_len].ends_with(b"\r\n\r\n"));
    assert_ne!(request.framing, BodyFraming::UntilClose);
    assert!(!request.head.target.is_empty());
    check_fields(request.head.fields);
    if let Ok(Some(body)) = body_len(&bytes[request.head_len..], request.framing) {
        let faults = request_faults(&bytes[..request.head_len + body]);
        assert!(faults.is_empty(), "{faults:?}");
    }

    let mut out = Vec::new();
    let mut head = Head::request(&mut out, request.head.method_text, request.head.target);
    head.fields(request.head.fields, request.framing);
    head.finish();
    let mut spans = Vec::new();
    let again = match read(&out, &mut spans) {
        // What a client of version 1.0 may leave out, the next hop has to be given.
        Err(Refusal::MissingHost) if request.head.version == Version::Http10 => return,
        // A head near the limit can pass it when it is written out with the usual white space.
        Err(Refusal::HeadTooLarge) => return,
        other => other.expect("what was taken is taken again").expect("and is whole"),
    };
    let spelled = |request: &Request<'_>| {
        request.head.fields.iter().any(|field| {
            field.is(b"content-length") && field.value.starts_with(b"0") && field.value != b"0"
                || field.is(b"transfer-encoding") && field.value != b"chunked"
        })
    };
    if request.head.version == Version::Http11 && !spelled(request) {
        assert_eq!(said(request), said(&again));
    }
    assert_eq!(request.framing, again.framing);
}
