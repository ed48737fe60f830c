//! A slow parser of whole bodies, written from the rules in the crate's documentation, and what it makes of a body.

use sandarac_esi::{Include, MAX_TAG, Parser, Part, Variable};

/// What a page is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Text(Vec<u8>),
    Include(Box<Include>),
    Variable(Variable),
}

/// Adds text, joined with text before it.
pub(crate) fn add_text(items: &mut Vec<Item>, text: &[u8]) {
    match items.last_mut() {
        _ if text.is_empty() => {}
        Some(Item::Text(before)) => before.extend_from_slice(text),
        _ => items.push(Item::Text(text.to_vec())),
    }
}

/// The items of a whole body.
pub(crate) fn reference(body: &[u8]) -> Vec<Item> {
    let (mut items, mut at) = (Vec::new(), 0);
    let (mut removed, mut vars, mut commented) = (false, false, false);
    while at < body.len() {
        let rest = &body[at..];
        let text = |items: &mut Vec<Item>, len: usize| {
            if !removed {
                add_text(items, &rest[..len]);
            }
            len
        };
        at += if rest.starts_with(b"<!--esi") {
            commented = true;
            7
        } else if commented && rest.starts_with(b"-->") {
            commented = false;
            3
        } else if vars && rest.starts_with(b"$(") {
            match end(rest, 2, 256, b"<$", |byte, _| byte == b')') {
                Ok(len) => {
                    if !removed && let Some(Item::Variable(variable)) = one(&wrapped_variable(&rest[..len])) {
                        items.push(Item::Variable(variable));
                    }
                    len
                }
                Err(len) => text(&mut items, len),
            }
        } else if rest.starts_with(b"<esi:") || rest.starts_with(b"</esi:") {
            let begin = if rest[1] == b'/' { 6 } else { 5 };
            match end(rest, begin, MAX_TAG, b"<", |byte, quoted| byte == b'>' && !quoted) {
                Ok(len) => {
                    let tag = &rest[..len];
                    let (name, closes) = name(&tag[begin..len - 1]);
                    match (name, begin == 6, closes) {
                        ("remove", true, _) => removed = false,
                        _ if removed => {}
                        ("remove", false, false) => removed = true,
                        ("vars", false, false) => vars = true,
                        ("vars", true, _) => vars = false,
                        ("include", false, _) => items.extend(one(tag)),
                        _ => {}
                    }
                    len
                }
                Err(len) => text(&mut items, len),
            }
        } else {
            text(&mut items, 1)
        };
    }
    items
}

/// The length of the markup that begins `rest`, or that of the text that it is.
fn end(
    rest: &[u8],
    from: usize,
    max: usize,
    bad: &[u8],
    ends: impl Fn(u8, bool) -> bool,
) -> Result<usize, usize> {
    let mut quote = None;
    for (at, &byte) in rest.iter().enumerate().skip(from) {
        if bad.contains(&byte) {
            return Err(at);
        }
        if ends(byte, quote.is_some()) {
            return Ok(at + 1);
        }
        match quote {
            None if byte == b'"' || byte == b'\'' => quote = Some(byte),
            Some(open) if open == byte => quote = None,
            _ => {}
        }
        if at + 1 == max {
            return Err(max);
        }
    }
    Err(rest.len())
}

/// The name of a tag, and whether the tag closes itself. No name if something follows that ends none.
fn name(inner: &[u8]) -> (&str, bool) {
    let closes = inner.ends_with(b"/");
    let inner = inner.strip_suffix(b"/").unwrap_or(inner);
    let len = inner.iter().position(|byte| !byte.is_ascii_lowercase()).unwrap_or(inner.len());
    match inner.get(len) {
        Some(byte) if !byte.is_ascii_whitespace() => ("", closes),
        _ => (std::str::from_utf8(&inner[..len]).expect("letters"), closes),
    }
}

/// A variable where the parser reads it.
fn wrapped_variable(variable: &[u8]) -> Vec<u8> {
    [b"<esi:vars>", variable].concat()
}

/// The one item of markup that is whole; the parser itself reads it. Tests of its own say how.
fn one(markup: &[u8]) -> Option<Item> {
    let mut parts = Vec::new();
    let mut parser = Parser::new();
    parser.push(markup, &mut parts);
    parser.finish(&mut parts);
    match parts.pop()? {
        Part::Text(_) => None,
        Part::Include(include) => Some(Item::Include(include)),
        Part::Variable(variable) => Some(Item::Variable(variable)),
    }
}
