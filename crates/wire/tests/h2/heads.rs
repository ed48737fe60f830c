//! Heads: the rules of RFC 9113 §8, and the attacks on gateways to HTTP/1.

use sandarac_message::{Field, Fields, FieldsBuf, Method, Name, Version};
use sandarac_wire::h1::Limits;
use sandarac_wire::h2::head::encode::{self, RequestLine};
use sandarac_wire::h2::head::{request, response, trailers};
use sandarac_wire::h2::hpack::Decoder;
use sandarac_wire::h2::hpack::encode::Strings;
use sandarac_wire::h2::{HeadBuf, Refusal};

type List<'a> = &'a [(&'a str, &'a str)];

/// A block of literals, with any bytes in names and values.
pub(crate) fn block(fields: List<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            assert!(text.len() <= 254);
            if text.len() < 127 {
                out.push(text.len() as u8);
            } else {
                out.extend([127, (text.len() - 127) as u8]);
            }
            out.extend(text.as_bytes());
        }
    }
    out
}

const GET: List<'static> =
    &[(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/x")];

/// A request: its target and its fields as lines, or its refusal.
fn request_of(fields: List<'_>, end_stream: bool) -> Result<(String, String), Refusal> {
    let mut buf = HeadBuf::default();
    let mut decoder = Decoder::new(4096);
    let read =
        request::read(&mut decoder, &block(fields), end_stream, true, &Limits::default(), &mut buf).unwrap();
    read.map(|request| {
        assert_eq!(request.head.version, Version::Http2);
        (text(request.head.target), lines(request.head.fields))
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The lines as they are copied to HTTP/1.
fn lines(fields: Fields<'_>) -> String {
    let mut copy = FieldsBuf::new();
    copy.extend(fields, |_: &Field<'_>| true).unwrap();
    text(&copy.into_lines())
}

fn with<'a>(fields: List<'a>, more: List<'a>) -> Vec<(&'a str, &'a str)> {
    [fields, more].concat()
}

#[test]
fn a_request_has_host_from_its_authority() {
    let read = request_of(&with(GET, &[("accept", "*/*"), ("x-a", "b")]), true);
    let lines = "host: a.example\r\naccept: */*\r\nx-a: b\r\n";
    assert_eq!(read, Ok(("/x".to_owned(), lines.to_owned())));
}

#[test]
fn a_host_that_equals_the_authority_is_dropped() {
    let read = request_of(&with(GET, &[("x", "1"), ("host", "A.example"), ("y", "2")]), true);
    assert_eq!(read.unwrap().1, "host: a.example\r\nx: 1\r\ny: 2\r\n");
    let only_host = [(":method", "GET"), (":scheme", "http"), (":path", "/"), ("host", "b:8080")];
    assert_eq!(request_of(&only_host, true).unwrap().1, "host: b:8080\r\n");
    // A second one is refused, as in HTTP/1.1.
    let twice = with(GET, &[("host", "a.example"), ("host", "a.example")]);
    assert_eq!(request_of(&twice, true), Err(Refusal::RepeatedHost));
}

#[test]
fn cookies_are_joined() {
    let read = request_of(&with(GET, &[("cookie", "a=1"), ("cookie", "b=2"), ("cookie", "c=3")]), true);
    assert_eq!(read.unwrap().1, "host: a.example\r\ncookie: a=1; b=2; c=3\r\n");
    let scattered =
        [("cookie", "a=1"), ("x", "y"), ("cookie", "b=2"), ("cookie", ""), ("z", "z"), ("cookie", "c=3")];
    let read = request_of(&with(GET, &scattered), true);
    assert_eq!(read.unwrap().1, "host: a.example\r\ncookie: a=1; b=2; c=3\r\nx: y\r\nz: z\r\n");
}

#[test]
fn empty_cookies_leave_no_space_at_the_end() {
    for (cookies, joined) in [(&["a=1", "", ""][..], "a=1"), (&["", ""], ""), (&["", "a=1", ""], "; a=1")] {
        let fields: Vec<_> = cookies.iter().map(|cookie| ("cookie", *cookie)).collect();
        let read = request_of(&with(GET, &fields), true);
        assert_eq!(read.unwrap().1, format!("host: a.example\r\ncookie: {joined}\r\n"));
    }
}

#[test]
fn connect_has_an_authority_only_and_extended_connect_all() {
    let connect = [(":method", "CONNECT"), (":authority", "a.example:443")];
    assert_eq!(request_of(&connect, false).unwrap().0, "a.example:443");
    for more in [(":path", "/"), (":scheme", "https")] {
        assert_eq!(request_of(&with(&connect, &[more]), false), Err(Refusal::UnexpectedPseudoField));
    }
    let websocket = with(GET, &[(":protocol", "websocket")]);
    assert_eq!(request_of(&websocket, false), Err(Refusal::UnexpectedPseudoField));
    let mut websocket = websocket;
    websocket[0].1 = "CONNECT";
    assert_eq!(request_of(&websocket, false).unwrap().0, "/x");
    let mut buf = HeadBuf::default();
    let mut decoder = Decoder::new(4096);
    let limits = Limits::default();
    let read = request::read(&mut decoder, &block(&websocket), false, true, &limits, &mut buf);
    assert_eq!(read.unwrap().unwrap().protocol, Some(&b"websocket"[..]));
    let read = request::read(&mut decoder, &block(&websocket), false, false, &limits, &mut buf);
    assert_eq!(read.unwrap().unwrap_err(), Refusal::UnknownPseudoField);
}

#[test]
fn pseudo_fields_are_complete_single_first_and_known() {
    for missing in [0, 1, 3] {
        let mut fields = GET.to_vec();
        fields.remove(missing);
        assert_eq!(request_of(&fields, true), Err(Refusal::MissingPseudoField), "{missing}");
    }
    let mut fields = GET.to_vec();
    fields.remove(2);
    assert_eq!(request_of(&fields, true), Err(Refusal::MissingHost));
    for repeated in GET {
        assert_eq!(request_of(&with(GET, &[*repeated]), true), Err(Refusal::RepeatedPseudoField));
    }
    for at in 0..4 {
        let mut fields = GET.to_vec();
        let late = fields.remove(at);
        fields.extend([("host", "a.example"), late]);
        assert_eq!(request_of(&fields, true), Err(Refusal::LatePseudoField), "{late:?}");
    }
    for unknown in [":status", ":", ":foo", ":Path", ":path "] {
        assert_eq!(request_of(&with(GET, &[(unknown, "x")]), true), Err(Refusal::UnknownPseudoField));
    }
}

#[test]
fn pseudo_fields_cannot_smuggle() {
    for (at, value, refusal) in [
        (0, "", Refusal::InvalidMethod),
        (0, "GET / HTTP/1.1", Refusal::InvalidMethod),
        (0, "GET\r\nX: y", Refusal::InvalidFieldValue),
        (0, "G\0ET", Refusal::InvalidFieldValue),
        (1, "https://evil/?", Refusal::InvalidScheme),
        (1, "", Refusal::InvalidScheme),
        (1, "ftp", Refusal::InvalidScheme),
        (2, "", Refusal::InvalidHost),
        (2, "a b", Refusal::InvalidHost),
        (2, "user@a.example", Refusal::InvalidHost),
        (2, "a.example/path", Refusal::InvalidHost),
        (2, "a,b", Refusal::InvalidHost),
        (2, "a:123456789", Refusal::InvalidHost),
        (2, "a\r\nX: y", Refusal::InvalidFieldValue),
        (3, "", Refusal::InvalidTarget),
        (3, "x", Refusal::InvalidTarget),
        (3, "*", Refusal::InvalidTarget),
        (3, "http://evil/", Refusal::InvalidTarget),
        (3, "/ HTTP/1.1", Refusal::InvalidTarget),
        (3, "/\tx", Refusal::InvalidTarget),
        (3, "/ HTTP/1.1\r\nHost: evil\r\n\r\n", Refusal::InvalidFieldValue),
        (3, "/\0", Refusal::InvalidFieldValue),
        (3, "/ ", Refusal::PaddedFieldValue),
    ] {
        let mut fields = GET.to_vec();
        fields[at].1 = value;
        assert_eq!(request_of(&fields, true), Err(refusal), "{value:?}");
    }
    let mut options = GET.to_vec();
    (options[0].1, options[3].1) = ("OPTIONS", "*");
    assert_eq!(request_of(&options, true).unwrap().0, "*");
}

#[test]
fn fields_cannot_smuggle() {
    for (name, value, refusal) in [
        ("", "x", Refusal::InvalidFieldName),
        ("X-A", "x", Refusal::UpperCaseName),
        ("x a", "x", Refusal::InvalidFieldName),
        ("x ", "x", Refusal::InvalidFieldName),
        ("x:y", "x", Refusal::InvalidFieldName),
        ("x\r\ny", "x", Refusal::InvalidFieldName),
        ("x\0", "x", Refusal::InvalidFieldName),
        ("x\u{7f}", "x", Refusal::InvalidFieldName),
        ("x\u{e9}", "x", Refusal::InvalidFieldName),
        ("transfer-encoding: chunked\r\nx", "x", Refusal::InvalidFieldName),
        ("x", "a\r\nb: c", Refusal::InvalidFieldValue),
        ("x", "a\nb", Refusal::InvalidFieldValue),
        ("x", "a\rb", Refusal::InvalidFieldValue),
        ("x", "a\0b", Refusal::InvalidFieldValue),
        ("x", " a", Refusal::PaddedFieldValue),
        ("x", "a\t", Refusal::PaddedFieldValue),
        ("connection", "close", Refusal::ConnectionField),
        ("proxy-connection", "keep-alive", Refusal::ConnectionField),
        ("keep-alive", "1", Refusal::ConnectionField),
        ("transfer-encoding", "chunked", Refusal::ConnectionField),
        ("upgrade", "h2c", Refusal::ConnectionField),
        ("http2-settings", "AAA", Refusal::ConnectionField),
        ("te", "gzip", Refusal::InvalidTe),
        ("te", "trailers, gzip", Refusal::InvalidTe),
        ("host", "b.example", Refusal::HostMismatch),
        ("content-length", "", Refusal::InvalidContentLength),
        ("content-length", "+1", Refusal::InvalidContentLength),
        ("content-length", "0x1", Refusal::InvalidContentLength),
        ("content-length", "1, 1", Refusal::RepeatedContentLength),
        ("content-length", "18446744073709551616", Refusal::InvalidContentLength),
        ("content-length", "5", Refusal::UnexpectedContentLength),
        ("expect", "tea", Refusal::UnknownExpectation),
    ] {
        assert_eq!(request_of(&with(GET, &[(name, value)]), true), Err(refusal), "{name:?} {value:?}");
    }
    let two = with(GET, &[("content-length", "1"), ("content-length", "1")]);
    assert_eq!(request_of(&two, false), Err(Refusal::RepeatedContentLength));
    let hosts = [GET[0], GET[1], GET[3], ("host", "a"), ("host", "a")];
    assert_eq!(request_of(&hosts, true), Err(Refusal::RepeatedHost));
    assert!(request_of(&with(GET, &[("te", "trailers"), ("x", ""), ("y", "a\tb")]), true).is_ok());
}

#[test]
fn a_refused_head_leaves_the_table_right() {
    let mut decoder = Decoder::new(4096);
    let mut buf = HeadBuf::default();
    let limits = Limits { fields: 2, ..Limits::default() };
    // Four fields that are added to the table, the last of them after the refusal.
    let mut many = block(GET);
    for name in [b"\x40\x01a\x011", b"\x40\x01b\x012", b"\x40\x01c\x013", b"\x40\x01d\x014"] {
        many.extend(name);
    }
    let refused = request::read(&mut decoder, &many, true, false, &limits, &mut buf).unwrap();
    assert_eq!(refused.unwrap_err(), Refusal::TooManyFields);
    let mut next = block(GET);
    next.push(0xbe);
    let read = request::read(&mut decoder, &next, true, false, &limits, &mut buf).unwrap().unwrap();
    assert_eq!(lines(read.head.fields), "host: a.example\r\nd: 4\r\n");
}

#[test]
fn heads_above_the_limits_are_refused() {
    let limits = Limits { head: 120, fields: 3, target: 10 };
    let read = |fields: List<'_>| {
        let mut buf = HeadBuf::default();
        request::read(&mut Decoder::new(4096), &block(fields), true, false, &limits, &mut buf)
            .unwrap()
            .map(|_| ())
    };
    assert_eq!(read(&with(GET, &[("a", "1"), ("b", "2")])), Ok(()));
    assert_eq!(read(&with(GET, &[("a", "1"), ("b", "2"), ("c", "3")])), Err(Refusal::TooManyFields));
    assert_eq!(read(&with(GET, &[("a", &"x".repeat(60))])), Err(Refusal::HeadTooLarge));
    let mut fields = GET.to_vec();
    fields[3].1 = "/2345678901";
    assert_eq!(read(&fields), Err(Refusal::TargetTooLong));
    let long = "n".repeat(254);
    let mut buf = HeadBuf::default();
    let long = [(&long[..], "x")];
    let fields = with(GET, &long);
    assert!(
        request::read(&mut Decoder::new(0), &block(&fields), true, false, &Limits::default(), &mut buf)
            .unwrap()
            .is_ok()
    );
}

#[test]
fn responses_have_one_valid_status() {
    let read = |fields: List<'_>, end, method| {
        let mut buf = HeadBuf::default();
        let mut decoder = Decoder::new(4096);
        response::read(&mut decoder, &block(fields), end, method, &Limits::default(), &mut buf)
            .unwrap()
            .map(|response| (response.head.status, response.has_body, response.is_interim()))
    };
    let get = Method::Get;
    assert_eq!(read(&[(":status", "200"), ("content-length", "5")], false, get), Ok((200, true, false)));
    assert_eq!(
        read(&[(":status", "200"), ("content-length", "5")], true, Method::Head),
        Ok((200, false, false))
    );
    assert_eq!(read(&[(":status", "304"), ("content-length", "5")], true, get), Ok((304, false, false)));
    assert_eq!(read(&[(":status", "103")], false, get), Ok((103, false, true)));
    for status in ["", "20", "2000", "099", "600", "+20", "101", " 200"] {
        let refused = read(&[(":status", status)], false, get);
        assert!(matches!(refused, Err(Refusal::InvalidStatus | Refusal::PaddedFieldValue)), "{status}");
    }
    assert_eq!(read(&[(":status", "100")], true, get), Err(Refusal::InvalidStatus));
    assert_eq!(read(&[("x", "y")], false, get), Err(Refusal::MissingPseudoField));
    assert_eq!(read(&[(":status", "200"), (":path", "/")], false, get), Err(Refusal::UnknownPseudoField));
    let announced = [(":status", "200"), ("content-length", "5")];
    assert_eq!(read(&announced, true, get), Err(Refusal::UnexpectedContentLength));
    let connection = [(":status", "200"), ("connection", "close")];
    assert_eq!(read(&connection, true, get), Err(Refusal::ConnectionField));
}

#[test]
fn trailers_have_no_pseudo_fields() {
    let read = |fields: List<'_>| {
        let mut buf = HeadBuf::default();
        trailers::read(&mut Decoder::new(4096), &block(fields), &Limits::default(), &mut buf)
            .unwrap()
            .map(lines)
    };
    assert_eq!(read(&[("grpc-status", "0")]), Ok("grpc-status: 0\r\n".to_owned()));
    assert_eq!(read(&[(":status", "200")]), Err(Refusal::UnknownPseudoField));
    assert_eq!(read(&[("Grpc-Status", "0")]), Err(Refusal::UpperCaseName));
}

#[test]
fn trailers_have_the_fields_only_that_trailers_may_have() {
    let mut buf = HeadBuf::default();
    let mut read = |fields: List<'_>| {
        trailers::read(&mut Decoder::new(4096), &block(fields), &Limits::default(), &mut buf)
            .unwrap()
            .map(lines)
    };
    let fields = [("authorization", "x"), ("a", "1"), ("host", "x"), ("content-length", "1"), ("b", "2")];
    assert_eq!(read(&fields), Ok("a: 1\r\nb: 2\r\n".to_owned()));
    // One that is dropped counts towards the limits.
    assert_eq!(read(&vec![("host", "x"); 2000]), Err(Refusal::TooManyFields));
}

#[test]
fn an_encoded_request_is_read_without_the_fields_of_the_connection() {
    let fields: FieldsBuf = [
        ("Host", "other"),
        ("Connection", "X-Hop, upgrade"),
        ("X-Hop", "1"),
        ("Upgrade", "h2c"),
        ("HTTP2-Settings", "AA"),
        ("TE", "gzip"),
        ("Transfer-Encoding", "chunked"),
        ("Keep-Alive", "5"),
        ("Proxy-Connection", "close"),
        ("Accept-Encoding", "gzip"),
        ("X-Kept", "Value"),
    ]
    .into_iter()
    .collect();
    for strings in [Strings::Plain, Strings::Shortest] {
        let line = RequestLine {
            method: b"PURGE",
            scheme: b"https",
            authority: b"a.example",
            path: b"/x?y",
            protocol: None,
        };
        let mut out = Vec::new();
        encode::request(&mut out, &line, fields.view(), strings);
        let mut buf = HeadBuf::default();
        let mut decoder = Decoder::new(0);
        let read =
            request::read(&mut decoder, &out, true, false, &Limits::default(), &mut buf).unwrap().unwrap();
        assert_eq!((read.head.method, read.head.target), (Method::Purge, &b"/x?y"[..]));
        assert_eq!(lines(read.head.fields), "host: a.example\r\naccept-encoding: gzip\r\nx-kept: Value\r\n");
        assert_eq!(read.scheme, Some(sandarac_message::target::Scheme::Https));
    }
}

#[test]
fn an_encoded_response_is_read() {
    for status in [100, 200, 204, 206, 302, 304, 400, 404, 500, 503, 599] {
        let fields: FieldsBuf = [("Set-Cookie", "a=b"), ("Connection", "close")].into_iter().collect();
        let mut out = Vec::new();
        encode::response(&mut out, status, fields.view(), Strings::Plain);
        encode::known(&mut out, Name::Age, b"5");
        encode::field(&mut out, b"X-Y", b"z");
        let mut buf = HeadBuf::default();
        let mut decoder = Decoder::new(0);
        let read =
            response::read(&mut decoder, &out, false, Method::Get, &Limits::default(), &mut buf).unwrap();
        let head = read.unwrap().head;
        assert_eq!(head.status, status);
        assert_eq!(lines(head.fields), "set-cookie: a=b\r\nage: 5\r\nx-y: z\r\n");
    }
}
