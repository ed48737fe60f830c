//! HPACK: the examples of RFC 7541, Appendix C, and a round trip.

use proptest::prelude::*;
use sandarac_message::Name;
use sandarac_wire::h2::Fault;
use sandarac_wire::h2::hpack::encode::{self, Strings};
use sandarac_wire::h2::hpack::{Decoder, huffman};

const BOUND: usize = 256 * 1024;

type List = Vec<(Vec<u8>, Vec<u8>)>;

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<List, Fault> {
    let (mut out, mut list) = (Vec::new(), Vec::new());
    decoder.decode(block, &mut out, BOUND, |out, at| {
        list.push((out[at.name.clone()].to_vec(), out[at.value.clone()].to_vec()));
        assert_eq!(out[at.name.end..at.value.start], *b": ");
        assert_eq!(out[at.value.end..], *b"\r\n");
    })?;
    Ok(list)
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn list(fields: &[(&str, &str)]) -> List {
    fields.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

fn check(decoder: &mut Decoder, block: &str, fields: &[(&str, &str)]) {
    assert_eq!(decode(decoder, &hex(block)), Ok(list(fields)), "{block}");
}

#[test]
fn single_fields_of_appendix_c_2() {
    check(
        &mut Decoder::new(4096),
        "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
        &[("custom-key", "custom-header")],
    );
    check(&mut Decoder::new(4096), "040c 2f73 616d 706c 652f 7061 7468", &[(":path", "/sample/path")]);
    check(&mut Decoder::new(4096), "1008 7061 7373 776f 7264 0673 6563 7265 74", &[("password", "secret")]);
    check(&mut Decoder::new(4096), "82", &[(":method", "GET")]);
}

#[test]
fn requests_of_appendix_c_3_and_c_4() {
    let plain = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    let coded = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    for [first, second, third] in [plain, coded] {
        let mut decoder = Decoder::new(4096);
        let authority = (":authority", "www.example.com");
        check(&mut decoder, first, &[(":method", "GET"), (":scheme", "http"), (":path", "/"), authority]);
        check(
            &mut decoder,
            second,
            &[
                (":method", "GET"),
                (":scheme", "http"),
                (":path", "/"),
                authority,
                ("cache-control", "no-cache"),
            ],
        );
        check(
            &mut decoder,
            third,
            &[
                (":method", "GET"),
                (":scheme", "https"),
                (":path", "/index.html"),
                authority,
                ("custom-key", "custom-value"),
            ],
        );
    }
}

#[test]
fn responses_of_appendix_c_6_with_eviction() {
    let mut decoder = Decoder::new(256);
    let common = [
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ];
    check(
        &mut decoder,
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e
         919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        &[&[(":status", "302")][..], &common].concat(),
    );
    check(&mut decoder, "4883 640e ffc1 c0bf", &[&[(":status", "307")][..], &common].concat());
    check(
        &mut decoder,
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7
         821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed
         4ee5 b106 3d50 07",
        &[
            (":status", "200"),
            ("cache-control", "private"),
            ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
            ("location", "https://www.example.com"),
            ("content-encoding", "gzip"),
            ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"),
        ],
    );
}

#[test]
fn invalid_blocks_are_refused_by_name() {
    for (block, fault) in [
        ("80", Fault::InvalidIndex),
        ("be", Fault::InvalidIndex),
        ("7f00 01 61", Fault::InvalidIndex),
        ("ff", Fault::TruncatedBlock),
        ("ffff ffff ff0f", Fault::InvalidInteger),
        ("00", Fault::TruncatedBlock),
        ("0005 6161", Fault::TruncatedBlock),
        ("00 0161", Fault::TruncatedBlock),
        ("00 81ff 0161", Fault::InvalidHuffman),
        ("3fe2 1f", Fault::InvalidTableSize),
        ("82 20", Fault::InvalidTableSize),
        ("20 20 20", Fault::InvalidTableSize),
    ] {
        assert_eq!(decode(&mut Decoder::new(4096), &hex(block)), Err(fault), "{block}");
    }
}

#[test]
fn a_lowered_limit_needs_an_update() {
    let mut decoder = Decoder::new(4096);
    check(&mut decoder, "400161 0162", &[("a", "b")]);
    decoder.set_table_size(0);
    assert_eq!(decode(&mut decoder, &hex("82")), Err(Fault::InvalidTableSize));
    check(&mut decoder, "20 82", &[(":method", "GET")]);
    assert_eq!(decode(&mut decoder, &hex("be")), Err(Fault::InvalidIndex));
    check(&mut decoder, "400161 0162", &[("a", "b")]);
    assert_eq!(decode(&mut decoder, &hex("be")), Err(Fault::InvalidIndex));
}

#[test]
fn a_block_that_grows_many_times_over_is_refused() {
    let mut block = vec![0x40, 1, b'a'];
    block.extend([0x7f, 0xa1, 0x1e]);
    block.extend([b'x'; 4000]);
    block.extend([0xbe; 100]);
    assert_eq!(decode(&mut Decoder::new(4096), &block), Err(Fault::HeaderBomb));
}

#[test]
fn sensitive_fields_are_never_indexed() {
    for name in [Name::Authorization, Name::Cookie, Name::SetCookie, Name::ProxyAuthorization] {
        let mut out = Vec::new();
        encode::field(&mut out, name, name.text().as_bytes(), b"x", Strings::Plain);
        assert_eq!(out[0] & 0xf0, 0x10, "{name:?}");
    }
}

#[test]
fn an_encoded_head_is_small_and_independent_of_the_connection() {
    let mut out = Vec::new();
    encode::status(&mut out, 200);
    encode::field(&mut out, Name::ContentType, b"Content-Type", b"text/html", Strings::Plain);
    encode::field(&mut out, Name::Other, b"Link", b"</x>", Strings::Plain);
    encode::field(&mut out, Name::Other, b"X-Y", b"\r\n", Strings::Plain);
    encode::status(&mut out, 503);
    assert_eq!(out, b"\x88\x0f\x10\x09text/html\x0f\x1e\x04</x>\x00\x03x-y\x02  \x08\x03503");
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(
        fields in prop::collection::vec(("[A-Za-z-]{1,40}", "[ -~\\u{80}-\\u{ff}]{0,300}"), 0..20),
        shortest: bool,
    ) {
        let strings = if shortest { Strings::Shortest } else { Strings::Plain };
        let mut out = Vec::new();
        let mut expected = List::new();
        for (name, value) in &fields {
            encode::field(&mut out, Name::of(name.as_bytes()), name.as_bytes(), value.as_bytes(), strings);
            expected.push((name.to_ascii_lowercase().into_bytes(), value.as_bytes().to_vec()));
        }
        prop_assert_eq!(decode(&mut Decoder::new(4096), &out), Ok(expected));
    }

    #[test]
    fn huffman_text_survives(text: Vec<u8>) {
        let (mut coded, mut decoded) = (Vec::new(), Vec::new());
        huffman::encode(&text, &mut coded);
        prop_assert_eq!(huffman::decode(&coded, &mut decoded), Ok(()));
        prop_assert_eq!(decoded, text);
    }

    #[test]
    fn huffman_text_has_one_coding(coded: Vec<u8>) {
        let (mut decoded, mut again) = (Vec::new(), Vec::new());
        if huffman::decode(&coded, &mut decoded).is_ok() {
            huffman::encode(&decoded, &mut again);
            prop_assert_eq!(again, coded);
        }
    }
}

#[test]
fn a_value_that_is_written_in_place_is_one_string() {
    for len in [0, 1, 126, 127, 128, 300] {
        let value = "v".repeat(len);
        let mut block = Vec::new();
        encode::written(&mut block, Name::CacheStatus, |out| out.extend_from_slice(value.as_bytes()));
        assert_eq!(decode(&mut Decoder::new(4096), &block), Ok(list(&[("cache-status", &value)])), "{len}");
    }
    let mut block = Vec::new();
    encode::written(&mut block, Name::CacheStatus, |out| out.extend_from_slice(b"a\r\nb"));
    assert_eq!(decode(&mut Decoder::new(4096), &block), Ok(list(&[("cache-status", "a  b")])));
}
