//! Helpers of the codec's integration tests: reading whole messages, and the corpus.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod corpus;
pub(crate) mod generate;
pub(crate) mod hyper_peer;
pub(crate) mod relaxed;

use sandarac_message::{FieldsBuf, Method, Version};
use sandarac_wire::h1::{BodyFraming, Limits, Parsed, Refusal, chunked, request, response};

/// A whole message as read by the codec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// Method and target, or status and reason.
    pub(crate) start: (String, String),
    pub(crate) version: Version,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    /// Bytes of the whole message.
    pub(crate) len: usize,
}

/// Each byte as the character of its number, so that nothing is lost.
pub(crate) fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

pub(crate) fn lines(fields: &FieldsBuf) -> Vec<(String, String)> {
    fields.view().iter().map(|field| (text(field.name), text(field.value))).collect()
}

/// Reads one request with its body from `bytes`; `None` if it is incomplete.
pub(crate) fn read_request(bytes: &[u8]) -> Result<Option<Message>, Refusal> {
    let mut spans = Vec::new();
    let Parsed::Complete(request) = request::parse(bytes, &Limits::default(), &mut spans)? else {
        return Ok(None);
    };
    let start = (text(request.head.method_text), text(request.head.target));
    let fields = request.head.fields.iter().map(|field| (text(field.name), text(field.value))).collect();
    let after = &bytes[request.head_len..];
    let Some((body, trailers, body_len)) = read_body(after, request.framing)? else { return Ok(None) };
    let len = request.head_len + body_len;
    Ok(Some(Message { start, version: request.head.version, fields, body, trailers, len }))
}

/// Reads one response with its body from `bytes`; `None` if it is incomplete. A body until close ends with
/// `bytes`.
pub(crate) fn read_response(bytes: &[u8], method: Method) -> Result<Option<Message>, Refusal> {
    let mut spans = Vec::new();
    let Parsed::Complete(response) = response::parse(bytes, &Limits::default(), &mut spans, method)? else {
        return Ok(None);
    };
    let start = (response.head.status.to_string(), text(response.head.reason));
    let fields = response.head.fields.iter().map(|field| (text(field.name), text(field.value))).collect();
    let after = &bytes[response.head_len..];
    let Some((body, trailers, body_len)) = read_body(after, response.framing)? else { return Ok(None) };
    let len = response.head_len + body_len;
    Ok(Some(Message { start, version: response.head.version, fields, body, trailers, len }))
}

/// Reads one response, repairing it if it has only one reading. The repairs are listed before the message.
pub(crate) fn read_repaired(bytes: &[u8], method: Method) -> Result<Option<String>, Refusal> {
    let (mut spans, mut anew) = (Vec::new(), Vec::new());
    let parsed = response::parse_or_repair(bytes, &Limits::default(), &mut spans, &mut anew, method)?;
    let Parsed::Complete(response) = parsed else { return Ok(None) };
    let mut repairs = response.repairs;
    assert!(repairs.is_empty() || !response.keep_alive);
    let after = &bytes[response.head_len..];
    let body = if response.framing == BodyFraming::Chunked {
        let mut decoder = chunked::Decoder::of_response();
        let Some((body, _, _)) = read_chunks(&mut decoder, after)? else { return Ok(None) };
        repairs.extend(decoder.repairs());
        body
    } else {
        let Some((body, _, _)) = read_body(after, response.framing)? else { return Ok(None) };
        body
    };
    let names: Vec<&str> = repairs.iter().map(|repair| repair.name()).collect();
    let mut parts =
        vec![format!("{}: {} {}", names.join(" "), response.head.status, text(response.head.reason))];
    parts.extend(
        response.head.fields.iter().map(|field| format!("{}: {}", text(field.name), text(field.value))),
    );
    parts.push(text(&body));
    Ok(Some(parts.join(" | ")))
}

type Body = (Vec<u8>, Vec<(String, String)>, usize);

fn read_body(bytes: &[u8], framing: BodyFraming) -> Result<Option<Body>, Refusal> {
    match framing {
        BodyFraming::None => Ok(Some((Vec::new(), Vec::new(), 0))),
        BodyFraming::Length(len) => {
            let body = usize::try_from(len).ok().and_then(|len| bytes.get(..len));
            Ok(body.map(|body| (body.to_vec(), Vec::new(), body.len())))
        }
        BodyFraming::Chunked => read_chunks(&mut chunked::Decoder::new(), bytes),
        BodyFraming::UntilClose => Ok(Some((bytes.to_vec(), Vec::new(), bytes.len()))),
    }
}

/// Decodes a chunked body that starts at the start of `bytes`.
pub(crate) fn read_chunks(decoder: &mut chunked::Decoder, bytes: &[u8]) -> Result<Option<Body>, Refusal> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let decoded = decoder.decode(&bytes[at..])?;
        if let chunked::Event::Data(range) = &decoded.event {
            assert!(!range.is_empty() && range.end == decoded.consumed);
            body.extend_from_slice(&bytes[at..][range.clone()]);
        }
        at += decoded.consumed;
        match decoded.event {
            chunked::Event::Data(_) => {}
            chunked::Event::NeedMore => {
                assert_eq!(at, bytes.len());
                return Ok(None);
            }
            chunked::Event::End(trailers) => return Ok(Some((body, lines(&trailers), at))),
        }
    }
}
