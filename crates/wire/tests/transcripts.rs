//! Messages that the codec accepts, as sent on the wire. The messages it refuses are in the corpus: see
//! `smuggling.rs`.

mod support;

use sandarac_message::{FieldsBuf, MAX_HEAD, Method, Version};
use sandarac_wire::h1::encode::{self, Head};
use sandarac_wire::h1::response::Kind;
use sandarac_wire::h1::{BodyFraming, Limits, Parsed, Refusal, chunked, may_be_complete, request, response};
use support::{read_chunks, read_repaired, read_request, read_response, text};

/// The properties of a request's connection.
#[derive(Debug, PartialEq)]
struct Asked {
    framing: BodyFraming,
    keep_alive: bool,
    expect_continue: bool,
    upgrade: bool,
}

fn asked(head: &str) -> Asked {
    let mut spans = Vec::new();
    match request::parse(head.as_bytes(), &Limits::default(), &mut spans) {
        Ok(Parsed::Complete(request)) => Asked {
            framing: request.framing,
            keep_alive: request.keep_alive,
            expect_continue: request.expect_continue,
            upgrade: request.upgrade,
        },
        other => panic!("{head:?}: {other:?}"),
    }
}

fn answered(head: &str, method: Method) -> (Kind, BodyFraming, bool) {
    let mut spans = Vec::new();
    match response::parse(head.as_bytes(), &Limits::default(), &mut spans, method) {
        Ok(Parsed::Complete(response)) => (response.kind, response.framing, response.keep_alive),
        other => panic!("{head:?}: {other:?}"),
    }
}

#[test]
fn a_request_is_read_as_it_was_sent() {
    let head = b"GET /a?b=c HTTP/1.1\r\nhOst: example.com\r\nX-Tab: \ta\tb \t\r\nX-Empty:\r\nX-Blank: \t \r\nX-High: \xe4\r\n\r\nnext";
    let mut spans = Vec::new();
    let Ok(Parsed::Complete(request)) = request::parse(head, &Limits::default(), &mut spans) else {
        panic!("not read")
    };
    assert_eq!(request.head.method, Method::Get);
    assert_eq!(request.head.method_text, &b"GET"[..]);
    assert_eq!(request.head.target, &b"/a?b=c"[..]);
    assert_eq!(request.head.version, Version::Http11);
    assert_eq!(&head[request.head_len..], b"next");
    let fields: Vec<_> = request.head.fields.iter().map(|field| (field.name, field.value)).collect();
    let expected: [(&[u8], &[u8]); 5] = [
        (b"hOst", b"example.com"),
        (b"X-Tab", b"a\tb"),
        (b"X-Empty", b""),
        (b"X-Blank", b""),
        (b"X-High", b"\xe4"),
    ];
    assert_eq!(fields, expected);
}

#[test]
fn targets_pass_as_they_came() {
    let odd: Vec<u8> = (b'!'..=0xff).filter(|&byte| byte != 0x7f).collect();
    let targets: [&[u8]; 8] =
        [b"*", b"http://a/b", b"a:443", b"/<>\"`{}|\\^", b"/%zz%", b"/\xff\xfe", b"/a#b", &odd];
    for target in targets {
        let head = [b"OPTIONS ", target, b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
        let message = read_request(&head).unwrap().unwrap();
        assert_eq!(message.start, ("OPTIONS".to_owned(), text(target)));
    }
}

#[test]
fn hosts_of_every_lawful_form_are_taken() {
    for host in [
        "a",
        "A.b-c_d~e",
        "10.0.0.1",
        "a:80",
        "a:",
        "a:65535",
        "[::1]",
        "[::ffff:1.2.3.4]:8080",
        "%41",
        "a!$&'()*+;=b",
    ] {
        let head = format!("GET / HTTP/1.1\r\nHost: \t{host} \r\n\r\n");
        assert!(read_request(head.as_bytes()).unwrap().is_some(), "{host}");
    }
    assert!(read_request(b"GET / HTTP/1.0\r\n\r\n").unwrap().is_some(), "1.0 knows no Host");
}

#[test]
fn pipelined_requests_follow_one_another_and_an_empty_line_between_is_skipped() {
    let wire = b"POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nho\r\n0\r\n\r\nGET /3 HTTP/1.0\r\n\r\n";
    let mut rest = &wire[..];
    let mut read = Vec::new();
    while let Some(message) = read_request(rest).unwrap() {
        rest = &rest[message.len..];
        read.push((message.start.1, text(&message.body)));
    }
    let expected =
        [("/1", "hi"), ("/2", "ho"), ("/3", "")].map(|(target, body)| (target.into(), body.into()));
    assert_eq!(read, expected);
    assert!(rest.is_empty());
}

#[test]
fn persistence_follows_version_and_connection() {
    for (version, connection, keep_alive) in [
        ("1.1", "", true),
        ("1.1", "Connection: keep-alive\r\n", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "connection: TE , CLOSE\r\n", false),
        ("1.1", "Connection: x\r\nConnection: close\r\n", false),
        ("1.1", "Connection: closed\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: x,keep-alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let head = format!("GET / HTTP/{version}\r\nHost: a\r\n{connection}\r\n");
        assert_eq!(asked(&head).keep_alive, keep_alive, "{head}");
        let head = format!("HTTP/{version} 200 OK\r\nContent-Length: 0\r\n{connection}\r\n");
        assert_eq!(answered(&head, Method::Get).2, keep_alive, "{head}");
    }
}

#[test]
fn upgrade_and_expectation_need_http_1_1_and_what_belongs_to_them() {
    let get =
        |version: &str, fields: &str| asked(&format!("GET / HTTP/{version}\r\nHost: a\r\n{fields}\r\n"));
    assert!(get("1.1", "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n").upgrade);
    assert!(!get("1.1", "Upgrade: websocket\r\n").upgrade);
    assert!(!get("1.1", "Connection: upgrade\r\n").upgrade);
    assert!(!get("1.0", "Connection: upgrade\r\nUpgrade: websocket\r\n").upgrade);
    assert!(get("1.1", "Expect: 100-Continue\r\n").expect_continue);
    assert!(!get("1.0", "Expect: 100-continue\r\n").expect_continue);
}

#[test]
fn request_bodies_are_framed_by_their_fields() {
    let framing = |fields: &str| asked(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).framing;
    assert_eq!(framing(""), BodyFraming::None);
    assert_eq!(framing("Content-Length: 0\r\n"), BodyFraming::Length(0));
    assert_eq!(framing("content-length:\t007 \r\n"), BodyFraming::Length(7));
    assert_eq!(framing("Content-Length: 18446744073709551615\r\n"), BodyFraming::Length(u64::MAX));
    assert_eq!(framing("transfer-encoding:Chunked\r\n"), BodyFraming::Chunked);
    assert_eq!(framing("Transfer-Encoding:   chunked\r\n"), BodyFraming::Chunked);
}

#[test]
fn response_bodies_are_framed_by_status_method_and_fields() {
    use BodyFraming::{Chunked, Length, None, UntilClose};
    for (method, status, fields, kind, framing, keep_alive) in [
        (Method::Get, "200 OK", "Content-Length: 5\r\n", Kind::Final, Length(5), true),
        (Method::Get, "200 OK", "Transfer-Encoding: chunked\r\n", Kind::Final, Chunked, true),
        (Method::Get, "200 OK", "", Kind::Final, UntilClose, false),
        (Method::Get, "200", "Content-Length: 0\r\n", Kind::Final, Length(0), true),
        (Method::Head, "200 OK", "Content-Length: 5\r\n", Kind::Final, None, true),
        (Method::Head, "200 OK", "Transfer-Encoding: chunked\r\n", Kind::Final, None, true),
        (Method::Head, "200 OK", "", Kind::Final, None, true),
        (Method::Get, "204 No Content", "", Kind::Final, None, true),
        (Method::Get, "204 No Content", "Content-Length: 0\r\n", Kind::Final, None, true),
        (Method::Get, "304 Not Modified", "Content-Length: 5\r\n", Kind::Final, None, true),
        (Method::Get, "205 Reset Content", "Content-Length: 0\r\n", Kind::Final, Length(0), true),
        (Method::Get, "100 Continue", "", Kind::Interim, None, true),
        (Method::Get, "103 Early Hints", "Link: </a>\r\n", Kind::Interim, None, true),
        (Method::Get, "101 Switching Protocols", "", Kind::Switching, None, false),
        (Method::Connect, "200 OK", "Content-Length: 5\r\n", Kind::Tunnel, None, false),
        (Method::Connect, "403 Forbidden", "Content-Length: 5\r\n", Kind::Final, Length(5), true),
    ] {
        let head = format!("HTTP/1.1 {status}\r\n{fields}\r\n");
        assert_eq!(answered(&head, method), (kind, framing, keep_alive), "{method:?} {head}");
    }
}

#[test]
fn a_response_is_read_as_it_was_sent() {
    let wire = b"HTTP/1.1 404 Nicht \xe4\tda \r\nX: y\r\nContent-Length: 2\r\n\r\nhi";
    let message = read_response(wire, Method::Get).unwrap().unwrap();
    assert_eq!(message.start, ("404".to_owned(), "Nicht \u{e4}\tda ".to_owned()));
    assert_eq!(message.body, b"hi");
    let message = read_response(b"HTTP/1.0 200 \r\n\r\nuntil close", Method::Get).unwrap().unwrap();
    assert_eq!(message.version, Version::Http10);
    assert_eq!(message.start.1.as_str(), "");
    assert_eq!(message.body, b"until close");
}

#[test]
fn what_is_just_within_a_limit_is_taken_and_one_more_is_not() {
    let limits = Limits { head: 100, fields: 2, target: 10 };
    let parse = |head: String| {
        let mut spans = Vec::new();
        request::parse(head.as_bytes(), &limits, &mut spans)
            .map(|parsed| matches!(parsed, Parsed::Complete(_)))
    };
    let filled = |len: usize| format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(len - 32));
    assert_eq!(parse(filled(100)), Ok(true));
    assert_eq!(parse(filled(101)), Err(Refusal::HeadTooLarge));
    assert_eq!(parse(filled(101)[..99].to_owned()), Ok(false));
    assert_eq!(parse(filled(101)[..100].to_owned()), Err(Refusal::HeadTooLarge));
    let target = |len: usize| format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", "/".repeat(len));
    assert_eq!(parse(target(10)), Ok(true));
    assert_eq!(parse(target(11)), Err(Refusal::TargetTooLong));
    assert_eq!(parse("GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\n".into()), Ok(true));
    assert_eq!(
        parse("GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nX: 2\r\n\r\n".into()),
        Err(Refusal::TooManyFields)
    );
    let many_methods = format!("{}X", "M".repeat(100));
    assert_eq!(parse(many_methods), Err(Refusal::HeadTooLarge));
}

#[test]
fn limits_beyond_what_spans_can_describe_are_cut_to_it() {
    let limits = Limits { head: usize::MAX, fields: usize::MAX, target: usize::MAX };
    let head = |len: usize| format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(len - 32));
    let mut spans = Vec::new();
    assert!(matches!(
        request::parse(head(MAX_HEAD).as_bytes(), &limits, &mut spans),
        Ok(Parsed::Complete(_))
    ));
    let refused = request::parse(head(MAX_HEAD + 1).as_bytes(), &limits, &mut spans).err();
    assert_eq!(refused, Some(Refusal::HeadTooLarge));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(1001));
    assert_eq!(request::parse(many.as_bytes(), &limits, &mut spans).err(), Some(Refusal::TooManyFields));
}

#[test]
fn parsing_allocates_nothing_once_the_spans_have_room() {
    let mut spans = Vec::with_capacity(8);
    let room = spans.as_ptr();
    for _ in 0..3 {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\n\r\n";
        assert!(request::parse(head, &Limits::default(), &mut spans).is_ok());
        assert_eq!(spans.len(), 3);
        assert_eq!(spans.as_ptr(), room);
    }
}

#[test]
fn a_head_in_pieces_is_parsed_again_only_where_a_line_ended() {
    let (limits, head) = (Limits::default(), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let worth: Vec<usize> =
        (1..=head.len()).filter(|&len| may_be_complete(&head[..len], len - 1, &limits)).collect();
    assert_eq!(worth, [16, 25, 27]);
    assert!(may_be_complete(&vec![b'a'; limits.head], limits.head - 1, &limits));
}

#[test]
fn chunks_are_decoded_in_place_however_they_arrive() {
    let wire = b"5\r\nhello\r\n00A;name=value;flag;q=\"a\\\"; b\"\r\n, world :)\r\n0;last\r\nX-Sum: 1\r\nETag: \"x\"\r\n\r\nnext";
    let (body, trailers, len) = read_chunks(&mut chunked::Decoder::new(), wire).unwrap().unwrap();
    assert_eq!(text(&body), "hello, world :)");
    assert_eq!(
        trailers,
        [("X-Sum", "1"), ("ETag", "\"x\"")].map(|(name, value)| (name.into(), value.into()))
    );
    assert_eq!(&wire[len..], b"next");

    let mut decoder = chunked::Decoder::new();
    let mut pieces = Vec::new();
    for (at, byte) in wire[..len].iter().enumerate() {
        assert!(!decoder.is_end());
        let decoded = decoder.decode(&[*byte]).unwrap();
        assert_eq!(decoded.consumed, 1);
        match decoded.event {
            chunked::Event::Data(_) => pieces.push(*byte),
            chunked::Event::NeedMore => {}
            chunked::Event::End(_) => assert_eq!(at, len - 1),
        }
    }
    assert_eq!(pieces, body);
    assert!(decoder.is_end());
    assert_eq!(decoder.decode(b"next").unwrap().consumed, 0);
}

/// Some readers treat a line that begins with white space as a separate field, or ignore it.
#[test]
fn a_length_over_two_lines_is_not_repaired() {
    for fields in ["Content-Length: 5\r\n 1\r\n", "Content-Length:\r\n 5\r\n", " Content-Length: 5\r\n"] {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\nhello");
        assert!(read_repaired(head.as_bytes(), Method::Get).is_err(), "{fields}");
    }
}

#[test]
fn a_response_with_several_faults_is_repaired_as_a_whole() {
    let head = "HTTP/1.7  200 OK\nX: y\n z\nContent-Length: 5\nContent-Length: 5,5\n\nhello";
    let read = read_repaired(head.as_bytes(), Method::Get).unwrap().unwrap();
    let repairs = "bare-lf minor-version status-spaces repeated-length folded-line";
    assert_eq!(read, format!("{repairs}: 200 OK | X: y z | Content-Length: 5 | hello"));
}

#[test]
fn white_space_in_chunk_extensions_is_skipped() {
    for extension in [" ;a", "; a", ";a =b", ";a= b", ";a = \"b\" ", " \t;a ;b=c ; d "] {
        let wire = format!("5{extension}\r\nhello\r\n0{extension}\r\n\r\n");
        for mut decoder in [chunked::Decoder::new(), chunked::Decoder::of_response()] {
            let (body, _, len) = read_chunks(&mut decoder, wire.as_bytes()).unwrap().unwrap();
            assert_eq!(text(&body).as_str(), "hello", "{extension}");
            assert_eq!(len, wire.len(), "{extension}");
            assert!(decoder.repairs().is_empty());
        }
    }
}

#[test]
fn the_largest_chunk_size_does_not_overflow() {
    let mut decoder = chunked::Decoder::new();
    let decoded = decoder.decode(b"ffffFFFFffffFFFF\r\nabc").unwrap();
    assert!(matches!(decoded.event, chunked::Event::Data(range) if range == (18..21)));
}

#[test]
fn trailers_that_may_not_be_there_are_dropped() {
    let forbidden = "Content-Length: 5\r\nTransfer-Encoding: x\r\nHost: a\r\nHost: b\r\nSet-Cookie: a=b\r\nCache-Control: private\r\nContent-Type: x\r\nX-Forwarded-For: a\r\nAuthorization: x\r\nTrailer: x\r\n";
    let wire = format!("0\r\n{forbidden}Server-Timing: a\r\n\r\n");
    let (_, trailers, _) = read_chunks(&mut chunked::Decoder::new(), wire.as_bytes()).unwrap().unwrap();
    assert_eq!(trailers, [("Server-Timing".to_owned(), "a".to_owned())]);
}

/// Regression: the digits before an invalid one in a size counted, and the next call continued from there.
#[test]
fn what_was_refused_as_chunks_stays_refused() {
    let mut decoder = chunked::Decoder::new();
    assert_eq!(decoder.decode(b"5G").unwrap_err(), Refusal::InvalidChunkSize);
    for input in [&b"\r\nabcde\r\n0\r\n\r\n"[..], b""] {
        assert_eq!(decoder.decode(input).unwrap_err(), Refusal::InvalidChunkSize);
    }
}

#[test]
fn a_long_body_of_small_chunks_is_no_attack() {
    let wire = "1;a=b\r\nx\r\n".repeat(100_000) + "0\r\n\r\n";
    let (body, _, _) = read_chunks(&mut chunked::Decoder::new(), wire.as_bytes()).unwrap().unwrap();
    assert_eq!(body.len(), 100_000);
}

#[test]
fn heads_are_written_with_one_framing_and_it_is_the_one_given() {
    let fields: FieldsBuf = [
        ("Host", "a"),
        ("content-LENGTH", "007"),
        ("X", "y"),
        ("Transfer-Encoding", "gzip"),
        ("Content-Length", "8"),
    ]
    .into_iter()
    .collect();
    let written = |framing| {
        let mut out = Vec::new();
        let mut head = Head::request(&mut out, b"POST", b"/");
        head.fields(fields.view(), framing);
        head.finish();
        text(&out)
    };
    let start = "POST / HTTP/1.1\r\nHost: a\r\n";
    assert_eq!(written(BodyFraming::None), format!("{start}X: y\r\n\r\n"));
    assert_eq!(written(BodyFraming::UntilClose), format!("{start}X: y\r\n\r\n"));
    assert_eq!(written(BodyFraming::Length(7)), format!("{start}content-LENGTH: 7\r\nX: y\r\n\r\n"));
    assert_eq!(written(BodyFraming::Chunked), format!("{start}X: y\r\nTransfer-Encoding: chunked\r\n\r\n"));

    let mut out = Vec::new();
    let mut head = Head::response(&mut out, 206, b"Partial Content");
    head.fields(FieldsBuf::new().view(), BodyFraming::Length(u64::MAX));
    head.finish();
    assert_eq!(text(&out), "HTTP/1.1 206 Partial Content\r\nContent-Length: 18446744073709551615\r\n\r\n");
}

#[test]
fn selected_fields_are_written_whether_they_stand_as_lines_or_not() {
    let head = "HTTP/1.1 200 OK\r\nA: 1\r\nb:  2\r\nC: 3\r\nD: 4\r\nE: 5\r\n\r\n";
    let mut spans = Vec::new();
    let Ok(Parsed::Complete(response)) =
        response::parse(head.as_bytes(), &Limits::default(), &mut spans, Method::Get)
    else {
        panic!("the head is whole");
    };
    let mut out = Vec::new();
    Head::response(&mut out, 206, b"Partial Content")
        .selected(response.head.fields, |field| field.name != b"D");
    assert_eq!(text(&out), "HTTP/1.1 206 Partial Content\r\nA: 1\r\nb: 2\r\nC: 3\r\nE: 5\r\n");
}

#[test]
fn no_value_can_end_its_line() {
    let mut out = Vec::new();
    let mut head = Head::response(&mut out, 200, b"OK\r\nX: y");
    head.field(b"A", b"1\r\n2\n3\x004\t\x7f");
    head.finish();
    assert_eq!(out, b"HTTP/1.1 200 OK  X: y\r\nA: 1  2 3 4\t\x7f\r\n\r\n");
    out.clear();
    Head::request(&mut out, b"GET", b"/a b HTTP/1.1\r\nX: y").finish();
    assert_eq!(out, b"GET /a_b_HTTP/1.1__X:_y HTTP/1.1\r\n\r\n");
}

#[test]
fn chunks_are_written_as_they_are_read() {
    let mut out = Vec::new();
    for data in [&b"a"[..], &[b'b'; 4096]] {
        encode::chunk_size(&mut out, data.len());
        out.extend_from_slice(data);
        out.extend_from_slice(encode::CRLF);
    }
    let trailers: FieldsBuf = [("X-Sum", "1")].into_iter().collect();
    encode::last_chunk(&mut out, trailers.view());
    assert!(out.starts_with(b"1\r\na\r\n1000\r\nbbb") && out.ends_with(b"b\r\n0\r\nX-Sum: 1\r\n\r\n"));
    let (body, read, len) = read_chunks(&mut chunked::Decoder::new(), &out).unwrap().unwrap();
    assert_eq!(body.len(), 4097);
    assert_eq!(read, support::lines(&trailers));
    assert_eq!(len, out.len());
    let mut none = Vec::new();
    encode::last_chunk(&mut none, FieldsBuf::new().view());
    assert_eq!(none, encode::LAST_CHUNK);
}
