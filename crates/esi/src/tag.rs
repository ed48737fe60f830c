//! Tags of ESI, from `<esi:` or `</esi:` to `>`.

use crate::text::Text;

/// An include.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Include {
    /// The URL of the fragment.
    pub src: Text,
    /// The URL of another one, if the first fails.
    pub alt: Option<Text>,
    /// Whether the page goes on without it (`onerror="continue"`).
    pub continues: bool,
}

impl Include {
    /// Passes the size of each allocation to `note`.
    pub(crate) fn allocations(&self, note: &mut dyn FnMut(usize)) {
        self.src.allocations(note);
        self.alt.iter().for_each(|alt| alt.allocations(note));
    }
}

/// A tag.
pub(crate) enum Tag {
    Include(Box<Include>),
    /// The beginning of what is removed.
    Remove,
    /// The end of that.
    RemoveEnd,
    /// The beginning of text with variables.
    Vars,
    /// The end of that.
    VarsEnd,
    /// One that means nothing: it vanishes.
    Nothing,
}

impl Tag {
    /// Reads a whole tag, with its brackets.
    pub(crate) fn parse(tag: &[u8]) -> Tag {
        let inner = tag.strip_suffix(b">").unwrap_or(tag);
        let (is_end, inner) = match inner.strip_prefix(b"</esi:") {
            Some(inner) => (true, inner),
            None => (false, inner.strip_prefix(b"<esi:").unwrap_or(inner)),
        };
        let name_len = inner.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        let (name, rest) = inner.split_at(name_len);
        let is_empty = inner.ends_with(b"/");
        let rest = rest.strip_suffix(b"/").unwrap_or(rest);
        if rest.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
            return Tag::Nothing;
        }
        match (name, is_end) {
            (b"include", false) => {
                include(rest).map_or(Tag::Nothing, |include| Tag::Include(Box::new(include)))
            }
            (b"remove", false) if !is_empty => Tag::Remove,
            (b"remove", true) => Tag::RemoveEnd,
            (b"vars", false) if !is_empty => Tag::Vars,
            (b"vars", true) => Tag::VarsEnd,
            _ => Tag::Nothing,
        }
    }
}

/// An include with these attributes. Without one `src`, or with a malformed attribute, there is none.
fn include(mut rest: &[u8]) -> Option<Include> {
    let (mut src, mut alt, mut continues) = (None, None, false);
    while let Some(Attribute { name, value, after }) = Attribute::parse(rest)? {
        match name {
            b"src" if src.is_none() && !value.is_empty() => src = Some(Text::parse(value)),
            b"src" => return None,
            b"alt" if alt.is_none() => alt = Some(Text::parse(value)),
            b"alt" => return None,
            b"onerror" => continues = value == b"continue",
            // Other implementations have more of them.
            _ => {}
        }
        rest = after;
    }
    Some(Include { src: src?, alt, continues })
}

struct Attribute<'a> {
    name: &'a [u8],
    value: &'a [u8],
    after: &'a [u8],
}

impl Attribute<'_> {
    /// The first attribute of `rest`, whose value MUST be in quotes. `Some(None)` if there is no more, `None` if it is
    /// malformed.
    fn parse(rest: &[u8]) -> Option<Option<Attribute<'_>>> {
        let rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Some(None);
        }
        let len =
            rest.iter().take_while(|byte| !byte.is_ascii_whitespace() && !b"=\"'".contains(byte)).count();
        let (name, rest) = rest.split_at(len);
        let rest = rest.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
        let (quote, rest) = rest.split_first().filter(|(quote, _)| b"\"'".contains(quote))?;
        let end = memchr::memchr(*quote, rest)?;
        Some(Some(Attribute { name, value: &rest[..end], after: &rest[end + 1..] }))
    }
}
