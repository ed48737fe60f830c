//! Pages with fragments: whatever pieces a page comes in, its parts are those that a slow parser finds, and its text is there.

use reference::{Item, add_text, reference};
use sandarac_esi::{MAX_TAG, PageStream, Part, Segment, TemplateBuilder};
use std::collections::VecDeque;

#[path = "../../../crates/esi/tests/support/reference.rs"]
mod reference;

/// The items of a page that arrives in pieces of such lengths, again and again.
fn streamed(page: &[u8], lengths: &[u8]) -> Vec<Item> {
    let (mut stream, mut segments, mut items) = (PageStream::new(), VecDeque::new(), Vec::new());
    let mut lengths = lengths.iter().cycle().map(|&length| usize::from(length) + 1);
    let mut rest = page;
    while !rest.is_empty() {
        let len = lengths.next().unwrap_or(rest.len()).min(rest.len());
        let (piece, after) = rest.split_at(len);
        stream.push(piece.to_vec().into(), &mut segments);
        let told: usize = segments
            .iter()
            .map(|segment| if let Segment::Text(text) = segment { text.len() } else { 0 })
            .sum();
        // What is neither told nor left out is a tag that has begun.
        assert!(stream.held() <= MAX_TAG + len && told <= len + MAX_TAG);
        drain(&mut segments, &mut items);
        rest = after;
    }
    stream.finish(&mut segments);
    drain(&mut segments, &mut items);
    items
}

fn drain(segments: &mut VecDeque<Segment>, items: &mut Vec<Item>) {
    for segment in segments.drain(..) {
        match segment {
            Segment::Text(text) => {
                assert!(!text.is_empty());
                add_text(items, &text);
            }
            Segment::Include(include) => items.push(Item::Include(include)),
            Segment::Variable(variable) => items.push(Item::Variable(variable)),
        }
    }
}

/// The items of a template, whose text is in the page.
fn template(page: &[u8], piece: usize) -> Option<Vec<Item>> {
    let mut builder = TemplateBuilder::default();
    page.chunks(piece).for_each(|piece| builder.push(piece));
    let template = builder.finish()?;
    let mut items = Vec::new();
    for part in template.parts() {
        match part {
            Part::Text(range) => add_text(&mut items, &page[range.start as usize..range.end as usize]),
            Part::Include(include) => {
                // No value of a visitor changes the path, or what follows it.
                let url = include.src.url(|_| Some(b"?#<>\"'\r\n &")).unwrap_or_default();
                assert!(
                    !url.windows(2).any(|pair| pair == b"\r\n")
                        || page.windows(2).any(|pair| pair == b"\r\n")
                );
                items.push(Item::Include(include.clone()));
            }
            Part::Variable(variable) => items.push(Item::Variable(variable.clone())),
        }
    }
    if template.is_plain(page.len() as u64) {
        assert!(items.iter().all(|item| matches!(item, Item::Text(text) if text == page)));
    }
    Some(items)
}

// The first bytes are lengths of pieces, the rest the page.
/// Checks one input.
pub(crate) fn run(input: &[u8]) {
    let Some((lengths, page)) = input.split_at_checked(3) else { return };
    let expected = reference(page);
    assert_eq!(streamed(page, lengths), expected);
    assert_eq!(streamed(page, &[0]), expected);
    for piece in [usize::from(lengths[0]) + 1, usize::MAX] {
        if let Some(items) = template(page, piece) {
            assert_eq!(items, expected);
        }
    }
}
