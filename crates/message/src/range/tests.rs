use proptest::prelude::*;

use super::*;

fn range(first: u64, last: u64) -> ByteRange {
    ByteRange { first, last }
}

#[test]
fn range_fields_select_bytes() {
    // RFC 9110 §14.1.2, of a representation of 1000 bytes
    for (value, expected) in [
        ("bytes=0-1", Selection::Single(range(0, 1))),
        ("bytes=1-", Selection::Single(range(1, 999))),
        ("bytes=-1", Selection::Single(range(999, 999))),
        ("bytes=-5000", Selection::Single(range(0, 999))),
        ("bytes=990-5000", Selection::Single(range(990, 999))),
        ("Bytes=0-0", Selection::Single(range(0, 0))),
        ("bytes= 0-0 , ", Selection::Single(range(0, 0))),
        ("bytes=0-99999999999999999999999", Selection::Single(range(0, 999))),
        ("bytes=1000-", Selection::Unsatisfiable),
        ("bytes=-0", Selection::Unsatisfiable),
        ("bytes=1000-1001,-0", Selection::Unsatisfiable),
        ("bytes=99999999999999999999999-", Selection::Unsatisfiable),
        ("bytes=1000-, 5-6", Selection::Single(range(5, 6))),
        ("bytes=500-599,0-99", Selection::Several(vec![range(500, 599), range(0, 99)])),
        // Overlapping, touching, nearly touching.
        ("bytes=0-9,5-14", Selection::Single(range(0, 14))),
        ("bytes=0-9,10-19", Selection::Single(range(0, 19))),
        ("bytes=0-9,50-59", Selection::Single(range(0, 59))),
        ("bytes=0-9,100-109,5-104", Selection::Single(range(0, 109))),
        ("bytes=800-,0-9,-1", Selection::Several(vec![range(800, 999), range(0, 9)])),
        // Ignored.
        ("", Selection::Whole),
        ("bytes", Selection::Whole),
        ("bytes=", Selection::Whole),
        ("bytes=,", Selection::Whole),
        ("bytes=-", Selection::Whole),
        ("bytes=a-b", Selection::Whole),
        ("bytes=5", Selection::Whole),
        ("bytes=5-4", Selection::Whole),
        ("bytes=0-1,5-4", Selection::Whole),
        ("bytes=--1", Selection::Whole),
        ("bytes=+1-2", Selection::Whole),
        ("bytes=1 -2", Selection::Whole),
        ("bytes =1-2", Selection::Whole),
        ("items=1-2", Selection::Whole),
    ] {
        assert_eq!(select(value.as_bytes(), 1000), expected, "{value}");
    }
    assert_eq!(select(b"bytes=0-", 0), Selection::Unsatisfiable);
}

#[test]
fn too_many_ranges_get_the_whole() {
    let many = |count: usize| format!("bytes={}", vec!["0-0"; count].join(","));
    assert_eq!(select(many(MAX_RANGES).as_bytes(), 10), Selection::Single(range(0, 0)));
    assert_eq!(select(many(MAX_RANGES + 1).as_bytes(), 10), Selection::Whole);
}

#[test]
fn content_range_is_read_strictly() {
    let whole = ContentRange::of(range(0, 9), 10);
    for (value, expected) in [
        ("bytes 0-9/10", Some(whole)),
        ("BYTES 0-9/10", Some(whole)),
        ("bytes 4-9/*", Some(ContentRange { range: range(4, 9), complete: None })),
        ("bytes */10", None),
        ("bytes */*", None),
        ("bytes 0-10/10", None),
        ("bytes 5-4/10", None),
        ("bytes 0-9", None),
        ("bytes=0-9/10", None),
        ("items 0-9/10", None),
        ("bytes 0-9/10 ", None),
        ("", None),
    ] {
        assert_eq!(ContentRange::parse(value.as_bytes()), expected, "{value}");
    }
    assert!(whole.is_whole());
    assert!(!ContentRange::of(range(0, 8), 10).is_whole());
    let mut unsatisfied = Vec::new();
    ContentRange::write_unsatisfied(10, &mut unsatisfied);
    assert_eq!(unsatisfied, b"bytes */10");
}

#[test]
fn stored_parts_serve_what_they_cover() {
    let held = ContentRange::of(range(4, 9), 10);
    let unknown = ContentRange { complete: None, ..held };
    for (spec, of_known, of_unknown) in [
        (RangeSpec::From(6, Some(8)), Some(range(6, 8)), Some(range(6, 8))),
        (RangeSpec::From(6, None), Some(range(6, 9)), None),
        (RangeSpec::Suffix(1), Some(range(9, 9)), None),
        (RangeSpec::Suffix(6), Some(range(4, 9)), None),
        (RangeSpec::Suffix(7), None, None),
        (RangeSpec::From(3, Some(5)), None, None),
        (RangeSpec::From(6, Some(10)), Some(range(6, 9)), None),
        (RangeSpec::From(10, None), None, None),
    ] {
        assert_eq!(held.serves(&spec), of_known, "{spec:?}");
        assert_eq!(unknown.serves(&spec), of_unknown, "{spec:?}");
    }
}

#[test]
fn parts_combine_and_know_what_they_lack() {
    // RFC 9111 §3.4
    let part = |first, last| ContentRange::of(range(first, last), 10);
    assert_eq!(part(0, 4).union(&part(5, 9)), Some(part(0, 9)));
    assert_eq!(part(5, 9).union(&part(0, 6)), Some(part(0, 9)));
    assert_eq!(part(0, 3).union(&part(5, 9)), None);
    assert_eq!(part(0, 4).union(&ContentRange::of(range(5, 9), 11)), None);
    let open = ContentRange { range: range(5, 9), complete: None };
    assert_eq!(part(0, 4).union(&open), Some(part(0, 9)));
    assert_eq!(part(0, 4).union(&ContentRange { range: range(5, 10), complete: None }), None);
    let begun = ContentRange { range: range(0, 4), complete: None };
    let spec = RangeSpec::From;
    for (held, wanted, lacks) in [
        (part(0, 4), None, Some(spec(5, None))),
        (part(3, 9), None, Some(spec(0, Some(2)))),
        (part(3, 6), None, None),
        (part(0, 9), None, None),
        (part(0, 4), Some(spec(2, Some(6))), Some(spec(5, Some(6)))),
        (part(0, 4), Some(spec(5, None)), Some(spec(5, None))),
        (part(0, 4), Some(spec(2, Some(99))), Some(spec(5, None))),
        (part(0, 4), Some(spec(6, None)), None),
        (part(0, 4), Some(spec(1, Some(4))), None),
        (part(5, 9), Some(spec(2, Some(4))), Some(spec(2, Some(4)))),
        (part(5, 9), Some(spec(2, Some(7))), Some(spec(2, Some(4)))),
        (part(5, 9), Some(spec(2, Some(3))), None),
        (part(5, 8), Some(spec(2, Some(9))), None),
        (part(5, 9), Some(RangeSpec::Suffix(7)), Some(spec(3, Some(4)))),
        (part(0, 4), Some(spec(10, None)), None),
        (open, None, None),
        (begun, None, Some(spec(5, None))),
        (begun, Some(spec(3, None)), Some(spec(5, None))),
        (begun, Some(spec(5, Some(8))), Some(spec(5, Some(8)))),
        (begun, Some(spec(6, Some(8))), None),
        (begun, Some(spec(1, Some(4))), None),
        (begun, Some(RangeSpec::Suffix(3)), None),
        (open, Some(spec(2, Some(7))), Some(spec(2, Some(4)))),
    ] {
        assert_eq!(held.lacks(wanted), lacks, "{held:?} {wanted:?}");
    }
}

#[test]
fn parts_are_framed_as_rfc_9110_shows() {
    let frame = Multipart::new(0, Some(b"text/plain"), 8000);
    let boundary = "a".repeat(24);
    let mut out = Vec::new();
    frame.content_type(&mut out);
    assert_eq!(String::from_utf8(out).unwrap(), format!("multipart/byteranges; boundary={boundary}"));
    let mut out = Vec::new();
    frame.part(range(500, 999), &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        format!("\r\n--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes 500-999/8000\r\n\r\n")
    );
    let mut out = Vec::new();
    frame.end(&mut out);
    assert_eq!(String::from_utf8(out).unwrap(), format!("\r\n--{boundary}--\r\n"));
    assert_ne!(format!("{:?}", Multipart::new(1, None, 0)), format!("{:?}", Multipart::new(2, None, 0)));
}

proptest! {
    #[test]
    fn selected_ranges_are_inside_and_apart(value in "bytes=([0-9]{0,4}-[0-9]{0,4},){0,40}", complete in 0..2000u64) {
        let ranges = match select(value.as_bytes(), complete) {
            Selection::Whole | Selection::Unsatisfiable => Vec::new(),
            Selection::Single(range) => vec![range],
            Selection::Several(ranges) => ranges,
        };
        prop_assert!(ranges.iter().map(ByteRange::len).sum::<u64>() <= complete);
        for (at, one) in ranges.iter().enumerate() {
            prop_assert!(one.first <= one.last && one.last < complete);
            prop_assert!(ranges[..at].iter().all(|other| other.last < one.first || one.last < other.first));
        }
    }

    #[test]
    fn every_byte_asked_for_is_selected(specs in proptest::collection::vec((0..500u64, 0..100u64), 1..20)) {
        let value = specs.iter().map(|(first, len)| format!("{first}-{}", first + len)).collect::<Vec<_>>().join(",");
        let ranges = match select(format!("bytes={value}").as_bytes(), 700) {
            Selection::Single(range) => vec![range],
            Selection::Several(ranges) => ranges,
            other => panic!("{other:?}"),
        };
        for (first, len) in specs {
            let asked = ByteRange { first, last: first + len };
            prop_assert!(ranges.iter().any(|range| range.covers(&asked)));
        }
    }

    #[test]
    fn formatted_values_read_back(first: u64, len in 0..1000u64, more in 0..1000u64, open: bool) {
        let last = first.saturating_add(len);
        let complete = (!open && last < u64::MAX - more).then(|| last + 1 + more);
        let value = ContentRange { range: ByteRange { first, last }, complete };
        let mut out = Vec::new();
        value.write(&mut out);
        prop_assert_eq!(ContentRange::parse(&out), Some(value));
        for spec in [RangeSpec::From(first, None), RangeSpec::From(first, Some(last)), RangeSpec::Suffix(len)] {
            let mut out = Vec::new();
            spec.write(&mut out);
            prop_assert_eq!(parse(&out), Some(vec![spec]));
        }
    }

    #[test]
    fn content_length_is_what_is_sent(seed: u128, lens in proptest::collection::vec(0..50u64, 0..5)) {
        let frame = Multipart::new(seed, None, 1000);
        let ranges: Vec<_> = lens.iter().map(|len| ByteRange { first: 7, last: 7 + len }).collect();
        let mut body = Vec::new();
        for range in &ranges {
            frame.part(*range, &mut body);
            body.resize(body.len() + range.len() as usize, 0);
        }
        frame.end(&mut body);
        prop_assert_eq!(frame.content_length(&ranges), body.len() as u64);
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>, complete: u64) {
        select(&bytes, complete);
        select(&[b"bytes=", &bytes[..]].concat(), complete);
        if let Some(range) = ContentRange::parse(&[b"bytes ", &bytes[..]].concat()) {
            range.lacks(None);
            range.lacks(Some(RangeSpec::From(complete, None)));
            range.lacks(Some(RangeSpec::From(0, Some(complete))));
            range.is_whole();
            range.union(&range);
        }
    }
}
