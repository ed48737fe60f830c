//! Range and Content-Range: what is selected lies within, covers what was asked for and never twice; what is written is read
//! back. The first eight bytes are the length of the representation.

use sandarac_message::range::{
    ByteRange, ContentRange, MAX_RANGES, Multipart, RangeSpec, Selection, parse, select,
};

fn check_range(range: ByteRange, complete: u64) {
    assert!(range.first <= range.last && range.last < complete);
    let named = ContentRange::of(range, complete);
    let mut text = Vec::new();
    named.write(&mut text);
    assert_eq!(ContentRange::parse(&text), Some(named));
    assert_eq!(named.is_whole(), range.len() == complete);
    if let Some(missing) = named.lacks(None) {
        let missing = missing.resolve(complete).expect("what is missing is there");
        assert!(missing.last < range.first || missing.first > range.last);
        let all = named.union(&ContentRange::of(missing, complete)).expect("they touch");
        assert!(all.range.covers(&range) && all.range.covers(&missing));
    }
}

/// Checks one input.
pub(crate) fn run(input: &[u8]) {
    let Some((complete, value)) = input.split_first_chunk::<8>() else { return };
    let complete = u64::from_le_bytes(*complete);
    if let Some(content_range) = ContentRange::parse(value) {
        let mut text = Vec::new();
        content_range.write(&mut text);
        assert_eq!(ContentRange::parse(&text), Some(content_range));
        let _ = (content_range.is_whole(), content_range.lacks(None));
        let _ = content_range.union(&content_range);
    }
    let specs = parse(value);
    let selection = select(value, complete);
    let Some(specs) = specs else {
        assert_eq!(selection, Selection::Whole);
        return;
    };
    assert!(!specs.is_empty() && specs.len() <= MAX_RANGES);
    for spec in &specs {
        let mut text = Vec::new();
        spec.write(&mut text);
        assert_eq!(parse(&text), Some(vec![*spec]));
        if let RangeSpec::From(first, Some(last)) = spec {
            assert!(first <= last);
        }
    }
    let wanted: Vec<ByteRange> = specs.iter().filter_map(|spec| spec.resolve(complete)).collect();
    let selected = match selection {
        Selection::Whole => panic!("a valid Range was ignored"),
        Selection::Unsatisfiable => {
            assert!(wanted.is_empty());
            return;
        }
        Selection::Single(range) => vec![range],
        Selection::Several(ranges) => {
            assert!(ranges.len() > 1);
            ranges
        }
    };
    for (at, range) in selected.iter().enumerate() {
        check_range(*range, complete);
        assert!(selected[..at].iter().all(|other| other.last < range.first || range.last < other.first));
    }
    assert!(wanted.iter().all(|wanted| selected.iter().any(|range| range.covers(wanted))));

    let multipart = Multipart::new(u128::from(complete), Some(b"text/plain"), complete);
    let mut frame = Vec::new();
    for range in &selected {
        multipart.part(*range, &mut frame);
    }
    multipart.end(&mut frame);
    let content = selected.iter().try_fold(frame.len() as u64, |sum, range| sum.checked_add(range.len()));
    if let Some(content) = content {
        assert_eq!(multipart.content_length(&selected), content);
    }
}
