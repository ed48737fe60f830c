//! Properties that hold for every message.

mod support;

use proptest::prelude::*;
use sandarac_message::{FieldsBuf, Method, Name};
use sandarac_wire::h1::encode::{self, Head};
use sandarac_wire::h1::{BodyFraming, Limits, Parsed, Refusal, chunked, request, response};
use sandarac_wire::proxy_protocol;
use support::generate::{body, fields, near_http, reason, target, token};
use support::{Message, lines, read_chunks, read_request, read_response, relaxed, text};

fn write_body(out: &mut Vec<u8>, framing: BodyFraming, body: &[u8], trailers: &FieldsBuf) {
    if framing == BodyFraming::Chunked {
        for chunk in body.chunks(7) {
            encode::chunk_size(out, chunk.len());
            out.extend_from_slice(chunk);
            out.extend_from_slice(encode::CRLF);
        }
        encode::last_chunk(out, trailers.view());
    } else {
        out.extend_from_slice(body);
    }
}

/// The result does not depend on how the bytes are cut: a prefix is either incomplete, or gives the result of
/// the whole.
fn cuts_agree<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    read: impl Fn(&[u8]) -> Result<Option<T>, Refusal>,
) -> Result<(), TestCaseError> {
    let whole = read(bytes);
    for cut in 0..bytes.len() {
        let early = read(&bytes[..cut]);
        prop_assert!(early == Ok(None) || early == whole, "{cut}: {early:?}, whole: {whole:?}");
    }
    Ok(())
}

fn request_head(bytes: &[u8]) -> Result<Option<(String, usize)>, Refusal> {
    let mut spans = Vec::new();
    Ok(match request::parse(bytes, &Limits::default(), &mut spans)? {
        Parsed::Partial => None,
        Parsed::Complete(request) => Some((format!("{request:?}"), request.head_len)),
    })
}

fn response_head(bytes: &[u8], method: Method) -> Result<Option<(String, usize)>, Refusal> {
    let mut spans = Vec::new();
    Ok(match response::parse(bytes, &Limits::default(), &mut spans, method)? {
        Parsed::Partial => None,
        Parsed::Complete(response) => Some((format!("{response:?}"), response.head_len)),
    })
}

/// Reads only the head, because a body may extend to the end of the connection. Refusals are ignored: an
/// incomplete line may be refused although the complete one would be dropped.
fn repaired_head(bytes: &[u8]) -> Result<Option<String>, Refusal> {
    let (mut spans, mut anew) = (Vec::new(), Vec::new());
    let parsed = response::parse_or_repair(bytes, &Limits::default(), &mut spans, &mut anew, Method::Get);
    Ok(match parsed {
        Ok(Parsed::Complete(response)) => Some(format!("{response:?}")),
        Ok(Parsed::Partial) | Err(_) => None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_written_request_is_read_back(method in token(1..12), target in target(), fields in fields(), (framing, body) in body(), trailers in fields()) {
        let mut wire = Vec::new();
        let mut head = Head::request(&mut wire, method.as_bytes(), &target);
        head.known(Name::Host, b"example.com");
        head.fields(fields.view(), framing);
        head.finish();
        write_body(&mut wire, framing, &body, &trailers);
        let len = wire.len();
        wire.extend_from_slice(b"GET");
        let read = read_request(&wire).unwrap().unwrap();
        prop_assert_eq!(read.start, (method, text(&target)));
        prop_assert_eq!(read.len, len);
        prop_assert_eq!(read.body, body);
        let framing_line = match framing {
            BodyFraming::Length(len) => ("Content-Length".to_owned(), len.to_string()),
            _ => ("Transfer-Encoding".to_owned(), "chunked".to_owned()),
        };
        let mut expected = vec![("Host".to_owned(), "example.com".to_owned())];
        expected.extend(lines(&fields));
        expected.push(framing_line);
        prop_assert_eq!(read.fields, expected);
        prop_assert!(read.trailers.iter().all(|line| lines(&trailers).contains(line)));
    }

    #[test]
    fn a_written_response_is_read_back(status in 200u16..600, reason in reason(), fields in fields(), (framing, body) in body()) {
        prop_assume!(!matches!(status, 204 | 304));
        let mut wire = Vec::new();
        let mut head = Head::response(&mut wire, status, &reason);
        head.fields(fields.view(), framing);
        head.finish();
        write_body(&mut wire, framing, &body, &FieldsBuf::new());
        let read = read_response(&wire, Method::Get).unwrap().unwrap();
        prop_assert_eq!(read.start, (status.to_string(), text(&reason)));
        prop_assert_eq!(read.body, body);
        prop_assert_eq!(&read.fields[..fields.view().len()], lines(&fields));
        prop_assert_eq!(read.len, wire.len());
    }

    #[test]
    fn a_head_that_grew_behind_its_first_line_is_written_the_same(
        before in fields(),
        framed in prop::collection::vec("(content-length|Transfer-Encoding|CONTENT-LENGTH): (7|007|chunked|gzip)", 0..3),
        after in fields(),
        gap: bool,
        framing in prop::sample::select(vec![
            BodyFraming::None, BodyFraming::UntilClose, BodyFraming::Length(7), BodyFraming::Chunked,
        ]),
    ) {
        let framed = framed.iter().filter_map(|line| line.split_once(": "));
        let framed = framed.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let all: FieldsBuf = lines(&before).into_iter().chain(framed).chain(lines(&after)).collect();
        let mut expected = Vec::new();
        let mut head = Head::request(&mut expected, b"POST", b"/");
        head.fields(all.view(), framing);
        head.finish();

        let mut first_line = Vec::new();
        encode::request_line(&mut first_line, b"POST", b"/");
        let mut grown = FieldsBuf::after(first_line, all.view().len());
        if gap {
            grown.push(b"Proxy-Connection", b"close").unwrap();
            grown.remove(Name::ProxyConnection);
        }
        grown.extend(all.view(), |_| true).unwrap();
        let mut written = encode::lines(grown, framing);
        written.extend_from_slice(encode::CRLF);
        prop_assert_eq!(text(&written), text(&expected));
    }

    #[test]
    fn writing_what_was_read_gives_the_same_bytes(target in target(), fields in fields(), (framing, _) in body()) {
        let mut wire = Vec::new();
        let mut head = Head::request(&mut wire, b"POST", &target);
        head.known(Name::Host, b"a:1");
        head.fields(fields.view(), framing);
        head.finish();
        let mut spans = Vec::new();
        let Ok(Parsed::Complete(request)) = request::parse(&wire, &Limits::default(), &mut spans) else {
            return Err(TestCaseError::fail("not read"));
        };
        let mut again = Vec::new();
        let mut head = Head::request(&mut again, request.head.method_text, request.head.target);
        head.fields(request.head.fields, request.framing);
        head.finish();
        prop_assert_eq!(text(&again), text(&wire));
    }

    #[test]
    fn a_message_is_read_the_same_however_it_is_cut(bytes in near_http()) {
        cuts_agree(&bytes, request_head)?;
        cuts_agree(&bytes, |bytes| response_head(bytes, Method::Get))?;
        cuts_agree(&bytes, repaired_head)?;
        cuts_agree(&bytes, read_request)?;
        cuts_agree(&bytes, |bytes| read_chunks(&mut chunked::Decoder::new(), bytes))?;
        cuts_agree(&bytes, |bytes| proxy_protocol::parse(bytes).map_err(|_| Refusal::Nul))?;
    }

    #[test]
    fn what_is_refused_has_a_fault_that_the_other_reader_finds_too(bytes in near_http()) {
        if let Err(refusal) = read_request(&bytes) {
            prop_assert!(!relaxed::request(&bytes).faults.is_empty(), "{refusal:?}");
        }
        if let Err(refusal) = read_response(&bytes, Method::Get) {
            prop_assert!(!relaxed::response(&bytes, "GET").faults.is_empty(), "{refusal:?}");
        }
    }

    #[test]
    fn what_is_accepted_has_no_fault_that_the_other_reader_can_find(bytes in near_http()) {
        if let Ok(Some(Message { len, .. })) = read_request(&bytes) {
            let faults = relaxed::request(&bytes[..len]).faults;
            prop_assert!(faults.is_empty(), "{faults:?}");
        }
        if let Ok(Some(Message { len, .. })) = read_response(&bytes, Method::Get) {
            let faults = relaxed::response(&bytes[..len], "GET").faults;
            prop_assert!(faults.is_empty(), "{faults:?}");
        }
    }

    #[test]
    fn a_chunked_body_is_decoded_the_same_from_any_pieces(bytes in near_http(), cuts in proptest::collection::vec(0usize..80, 0..6)) {
        let whole = read_chunks(&mut chunked::Decoder::new(), &bytes);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let mut decoder = chunked::Decoder::new();
        let (mut body, mut used) = (Vec::new(), 0);
        let mut pieces = Ok(None);
        for piece in cuts.windows(2) {
            match read_piece(&mut decoder, &bytes[piece[0]..piece[1]], &mut body) {
                Ok(None) => used = piece[1],
                Ok(Some((trailers, len))) => {
                    pieces = Ok(Some((std::mem::take(&mut body), trailers, piece[0] + len)));
                    break;
                }
                Err(refusal) => {
                    pieces = Err(refusal);
                    break;
                }
            }
        }
        prop_assert!(used <= bytes.len());
        prop_assert_eq!(pieces, whole);
    }
}

type End = (Vec<(String, String)>, usize);

fn read_piece(
    decoder: &mut chunked::Decoder,
    piece: &[u8],
    body: &mut Vec<u8>,
) -> Result<Option<End>, Refusal> {
    let mut at = 0;
    loop {
        let decoded = decoder.decode(&piece[at..])?;
        if let chunked::Event::Data(range) = &decoded.event {
            body.extend_from_slice(&piece[at..][range.clone()]);
        }
        at += decoded.consumed;
        match decoded.event {
            chunked::Event::Data(_) => {}
            chunked::Event::NeedMore => return Ok(None),
            chunked::Event::End(trailers) => return Ok(Some((lines(&trailers), at))),
        }
    }
}
