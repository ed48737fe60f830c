//! Parsing of pages: their parts, whatever pieces they come in.

#[path = "support/reference.rs"]
mod reference;

use bytes::Bytes;
use proptest::prelude::*;
use reference::{Item, add_text, reference};
use sandarac_esi::{MAX_PARTS, MAX_TAG, PageStream, Parser, Part, Segment, TemplateBuilder, Text, Variable};
use std::collections::VecDeque;

/// The items of a body that comes in pieces of `piece` bytes.
fn parsed(body: &[u8], piece: usize) -> Vec<Item> {
    let mut parts = Vec::new();
    let mut parser = Parser::new();
    body.chunks(piece).for_each(|piece| parser.push(piece, &mut parts));
    parser.finish(&mut parts);
    let mut items = Vec::new();
    for part in parts {
        match part {
            Part::Text(range) => add_text(&mut items, &body[range.start as usize..range.end as usize]),
            Part::Include(include) => items.push(Item::Include(include)),
            Part::Variable(variable) => items.push(Item::Variable(variable)),
        }
    }
    items
}

/// The same by way of the stream.
fn streamed(body: &[u8], piece: usize) -> Vec<Item> {
    let (mut stream, mut segments) = (PageStream::new(), VecDeque::new());
    for piece in body.chunks(piece) {
        stream.push(Bytes::copy_from_slice(piece), &mut segments);
    }
    stream.finish(&mut segments);
    let mut items = Vec::new();
    for segment in segments {
        match segment {
            Segment::Text(text) => add_text(&mut items, &text),
            Segment::Include(include) => items.push(Item::Include(include)),
            Segment::Variable(variable) => items.push(Item::Variable(variable)),
        }
    }
    items
}

fn url(text: &Text) -> String {
    String::from_utf8(text.url(|_| Some(b"?")).expect("a URL")).expect("text")
}

/// A page as text: includes as `[src|alt|continue]`, variables as `{name}`.
#[track_caller]
fn page(body: &str) -> String {
    let items = parsed(body.as_bytes(), usize::MAX);
    for piece in 1..9 {
        assert_eq!(parsed(body.as_bytes(), piece), items, "{body:?} in pieces of {piece}");
        assert_eq!(streamed(body.as_bytes(), piece), items, "{body:?} in pieces of {piece}");
    }
    assert_eq!(reference(body.as_bytes()), items, "{body:?}");
    items
        .iter()
        .map(|item| match item {
            Item::Text(text) => String::from_utf8_lossy(text).into_owned(),
            Item::Include(include) => {
                let alt = include.alt.as_ref().map(|alt| format!("|{}", url(alt))).unwrap_or_default();
                let continues = if include.continues { "|continue" } else { "" };
                format!("[{}{alt}{continues}]", url(&include.src))
            }
            Item::Variable(Variable::Query(name) | Variable::Cookie(name)) => {
                format!("{{{}}}", String::from_utf8_lossy(name))
            }
        })
        .collect()
}

#[test]
fn includes_are_found_with_their_attributes() {
    assert_eq!(page("a<esi:include src=\"/b\"/>c"), "a[/b]c");
    assert_eq!(
        page("<esi:include  src = '/b?x=1&amp;y=2'\n alt=\"/c\" onerror='continue' />"),
        "[/b?x=1&y=2|/c|continue]"
    );
    assert_eq!(page("<esi:include onerror=\"abort\" max-age=\"5\" src=\"/>\"/>"), "[/>]");
    assert_eq!(page("<esi:include src=\"/a\">x</esi:include>y"), "[/a]xy");
    assert_eq!(page("<esi:include src=\"/a\"/><esi:include src=\"/b\"/>"), "[/a][/b]");
    assert_eq!(page("<esi:include src=\"/$(QUERY_STRING{id})\"/>"), "[/%3F]");
}

#[test]
fn includes_without_one_usable_src_vanish() {
    for tag in [
        "<esi:include/>",
        "<esi:include src=\"\"/>",
        "<esi:include src=/b/>",
        "<esi:include src/>",
        "<esi:include src=\"/a\" src=\"/b\"/>",
        "<esi:include src=\"/a\" alt=\"/b\" alt=\"/c\"/>",
        "<esi:include src=\"/a\" alt/>",
        "<esi:include =\"/a\" x/>",
        "<esi:includes src=\"/a\"/>",
        "<esi:include-src=\"/a\"/>",
        "<esi:/>",
        "<esi:inline name=\"x\"/>",
        "</esi:include src=\"/a\">",
    ] {
        assert_eq!(page(&format!("a{tag}b")), "ab", "{tag}");
    }
}

#[test]
fn removed_and_commented_text_vanishes() {
    assert_eq!(page("a<esi:remove>b<esi:include src=\"/c\"/><p>d</p></esi:remove>e"), "ae");
    assert_eq!(page("a<esi:comment text=\"b > c\"/>d"), "ad");
    assert_eq!(page("a<esi:remove/>b"), "ab");
    // The first end ends it, as in Varnish.
    assert_eq!(page("a<esi:remove>b<esi:remove>c</esi:remove>d</esi:remove>e"), "ade");
    assert_eq!(page("a<esi:remove>b"), "a");
    assert_eq!(page("a</esi:remove>b"), "ab");
}

#[test]
fn text_that_browsers_would_take_for_a_comment_is_used() {
    assert_eq!(page("a<!--esi <esi:include src=\"/b\"/>c-->d-->"), "a [/b]cd-->");
    assert_eq!(page("a<!-- esi <esi:include src=\"/b\"/> -->"), "a<!-- esi [/b] -->");
    assert_eq!(page("<!--esi a -- b--->c-->d"), " a -- b-c-->d");
    assert_eq!(page("<!--esi a"), " a");
}

#[test]
fn variables_are_values_only_where_they_are_asked_for() {
    let value = "$(QUERY_STRING{id})";
    assert_eq!(page(&format!("{value}<esi:vars>{value}</esi:vars>{value}")), format!("{value}{{id}}{value}"));
    assert_eq!(page("<esi:vars>$(HTTP_COOKIE{lang}) $(HTTP_HOST)$(X{y}) $1 $(</esi:vars>"), "{lang}  $1 $(");
    assert_eq!(page("<esi:vars><esi:include src=\"/a\"/>$$(QUERY_STRING{a})"), "[/a]${a}");
    assert_eq!(page("<esi:vars>$($(QUERY_STRING{a})"), "$({a}");
    let long = format!("$({})", "x".repeat(300));
    assert_eq!(page(&format!("<esi:vars>{long}")), long);
    assert_eq!(page(&format!("<esi:remove><esi:vars>{value}</esi:vars></esi:remove>{value}")), value);
}

#[test]
fn what_is_no_tag_is_text() {
    for text in [
        "a < b <e <es <esi <esi- <ESI:include src=\"/a\"/>",
        "<esi:include src=\"/a\"",
        "<esi:include src=\"/a\" ",
        "<",
        "</esi",
        "<!--es",
        "<<</ <!- <!-- --> $(QUERY_STRING{a})",
    ] {
        assert_eq!(page(text), text);
    }
    assert_eq!(page("<<esi:include src=\"/a\"/>"), "<[/a]");
    assert_eq!(page("<esi:include src=\"/a <esi:include src=\"/b\"/>"), "<esi:include src=\"/a [/b]");
    assert_eq!(page("<esi:include src=\"/a<b\"/>"), "<esi:include src=\"/a<b\"/>");
}

#[test]
fn a_tag_that_is_too_long_is_text() {
    let tag = |len: usize| {
        let (begin, end) = ("<esi:include src=\"/", "\"/>");
        format!("{begin}{}{end}", "x".repeat(len - begin.len() - end.len()))
    };
    assert_eq!(page(&tag(MAX_TAG)).len(), MAX_TAG - "<esi:include src=\"\"/>".len() + "[]".len());
    assert_eq!(page(&tag(MAX_TAG + 1)), tag(MAX_TAG + 1));
}

#[test]
fn a_template_joins_text_and_has_a_bound() {
    let template = |body: &str, piece: usize| {
        let mut builder = TemplateBuilder::default();
        body.as_bytes().chunks(piece).for_each(|piece| builder.push(piece));
        builder.finish()
    };
    let plain = template("a < b < c", 2).expect("a template");
    assert!(plain.is_plain(9) && plain.parts() == [Part::Text(0..9)]);
    assert!(template("", 1).expect("a template").is_plain(0));
    let page = template("ab<esi:comment text=\"\"/>cd<esi:include src=\"/x\"/>", 3).expect("a template");
    assert!(!page.is_plain(50) && page.parts().len() == 3);
    let mut bytes = 0;
    page.allocations(|size| bytes += size);
    assert!(bytes > 3 * size_of::<Part>());
    let many = |count: usize| "<esi:include src=\"/x\"/>".repeat(count);
    assert_eq!(template(&many(MAX_PARTS), 7).map(|template| template.parts().len()), Some(MAX_PARTS));
    assert!(template(&many(MAX_PARTS + 1), 7).is_none() && template(&many(3 * MAX_PARTS), 9999).is_none());
}

/// Markup, broken markup, and text.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        "<esi:include src=\"/a\"/>",
        "<esi:include ",
        "src='/b'",
        "alt=\"/c\" ",
        "onerror=\"continue\"",
        "/>",
        ">",
        "<",
        "<esi:",
        "</esi:",
        "<esi:remove>",
        "</esi:remove>",
        "<esi:comment text='>'/>",
        "<!--esi",
        "-->",
        "--",
        "-",
        "<esi:vars>",
        "</esi:vars>",
        "$(QUERY_STRING{a})",
        "$(HTTP_COOKIE{b",
        "$(",
        ")",
        "$",
        "\"",
        "'",
        "text",
        " ",
        "\n",
        "<p>",
        "<!--",
        "esi:",
    ]);
    prop::collection::vec(word, 0..40).prop_map(|words| words.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn pieces_make_no_difference_and_the_reference_agrees(body in body(), piece in 1usize..20) {
        let expected = reference(&body);
        prop_assert_eq!(&parsed(&body, usize::MAX), &expected);
        prop_assert_eq!(&parsed(&body, piece), &expected);
        prop_assert_eq!(&streamed(&body, piece), &expected);
    }
}
