//! Values of attributes, and the variables in them.

use crate::escape::{escape_url, is_segment};

/// The value of an attribute: a URL with variables in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(Box<[Piece]>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(Box<[u8]>),
    Variable(Variable),
    /// The value has a character reference that names none: there is no URL.
    Undecodable,
}

/// A variable that a visitor's request gives a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Variable {
    /// `$(QUERY_STRING{name})`: the parameter of this name.
    Query(Box<[u8]>),
    /// `$(HTTP_COOKIE{name})`: the cookie of this name.
    Cookie(Box<[u8]>),
}

impl Variable {
    /// Reads what is between `$(` and `)`. `None` for a variable that there is not; it has no value.
    pub(crate) fn parse(inner: &[u8]) -> Option<Variable> {
        let at = memchr::memchr(b'{', inner)?;
        let name = inner[at + 1..].strip_suffix(b"}")?;
        match &inner[..at] {
            b"QUERY_STRING" => Some(Variable::Query(name.into())),
            b"HTTP_COOKIE" => Some(Variable::Cookie(name.into())),
            _ => None,
        }
    }

    /// Passes the size of each allocation to `note`.
    pub(crate) fn allocations(&self, note: &mut dyn FnMut(usize)) {
        let (Variable::Query(name) | Variable::Cookie(name)) = self;
        note(name.len());
    }
}

impl Text {
    /// Reads a value as it is between its quotes.
    pub(crate) fn parse(value: &[u8]) -> Text {
        let Some(value) = without_references(value) else {
            return Text([Piece::Undecodable].into());
        };
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut rest = &value[..];
        while let Some((&first, after)) = rest.split_first() {
            let inner = rest.strip_prefix(b"$(");
            match inner.and_then(|inner| Some((inner, memchr::memchr(b')', inner)?))) {
                Some((inner, end)) => {
                    if let Some(variable) = Variable::parse(&inner[..end]) {
                        if !literal.is_empty() {
                            pieces.push(Piece::Literal(std::mem::take(&mut literal).into()));
                        }
                        pieces.push(Piece::Variable(variable));
                    }
                    rest = &inner[end + 1..];
                }
                None => {
                    literal.push(first);
                    rest = after;
                }
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal.into()));
        }
        Text(pieces.into())
    }

    /// The URL. `value` gives variables their values, as they are in the request. `None` if a value in the path would lead
    /// to another one: nothing, `.`, `..`, or what has a separator; and if the text cannot be decoded.
    pub fn url<'v>(&self, value: impl Fn(&Variable) -> Option<&'v [u8]>) -> Option<Vec<u8>> {
        let mut url = Vec::new();
        let mut is_query = false;
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => {
                    is_query |= text.contains(&b'?');
                    url.extend_from_slice(text);
                }
                Piece::Variable(variable) => {
                    let value = value(variable).unwrap_or_default();
                    if !is_query && !is_segment(value) {
                        return None;
                    }
                    escape_url(value, &mut url);
                }
                Piece::Undecodable => return None,
            }
        }
        Some(url)
    }

    /// Passes the size of each allocation to `note`.
    pub(crate) fn allocations(&self, note: &mut dyn FnMut(usize)) {
        note(size_of_val(&*self.0));
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => note(text.len()),
                Piece::Variable(variable) => variable.allocations(note),
                Piece::Undecodable => {}
            }
        }
    }
}

/// The value with its references decoded, once: the five entities of XML by their names, and characters by
/// their numbers (XML 1.0 §4.1, §4.6). An ampersand that begins none of these is itself, as in many URLs. `None`
/// if `&#` begins no character.
fn without_references(value: &[u8]) -> Option<Vec<u8>> {
    const ENTITIES: [(&[u8], u8); 5] =
        [(b"&amp;", b'&'), (b"&lt;", b'<'), (b"&gt;", b'>'), (b"&quot;", b'"'), (b"&apos;", b'\'')];
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&first, after)) = rest.split_first() {
        if let Some(number) = rest.strip_prefix(b"&#") {
            let end = memchr::memchr(b';', number)?;
            out.extend_from_slice(character(&number[..end])?.encode_utf8(&mut [0; 4]).as_bytes());
            rest = &number[end + 1..];
            continue;
        }
        let entity = ENTITIES.iter().find_map(|(text, byte)| Some((*byte, rest.strip_prefix(*text)?)));
        let (byte, after) = entity.unwrap_or((first, after));
        out.push(byte);
        rest = after;
    }
    Some(out)
}

/// The character of XML (§2.2) with this number, in decimal digits or, after `x`, in hexadecimal ones.
fn character(number: &[u8]) -> Option<char> {
    let (digits, radix) = number.strip_prefix(b"x").map_or((number, 10), |digits| (digits, 16));
    // from_str_radix would take a sign.
    let text = str::from_utf8(digits).ok().filter(|text| text.chars().all(|digit| digit.is_digit(radix)))?;
    let character = char::from_u32(u32::from_str_radix(text, radix).ok()?)?;
    let is_allowed = matches!(character, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
    is_allowed.then_some(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(value: &str) -> String {
        let url = Text::parse(value.as_bytes()).url(|variable| match variable {
            Variable::Query(name) if **name == *b"id" => Some(b"7/8"),
            Variable::Cookie(name) if **name == *b"lang" => Some(b"de"),
            _ => None,
        });
        String::from_utf8(url.expect("a URL")).expect("text")
    }

    #[test]
    fn entities_and_variables_are_replaced_once() {
        assert_eq!(url("/a?b=1&amp;c=2&d=3"), "/a?b=1&c=2&d=3");
        assert_eq!(url("/a?id=$(QUERY_STRING{id})&l=$(HTTP_COOKIE{lang})!"), "/a?id=7%2F8&l=de!");
        assert_eq!(url("/&amp;lt;"), "/&lt;");
    }

    /// Regression: everything from `#` was taken for a fragment, and dropped.
    #[test]
    fn references_to_characters_are_decoded_once() {
        assert_eq!(url("/song?title=rock&#39;n&#x27;roll&amp;id=1"), "/song?title=rock'n'roll&id=1");
        assert_eq!(url("/a?b=&#38;amp;&#0000038;&#x000026;"), "/a?b=&amp;&&");
        assert_eq!(url("/&#228;&#xE4;&#x1F600;"), "/ää😀");
        assert_eq!(url("/x?&#36;(QUERY_STRING{id})"), "/x?7%2F8", "like any other dollar sign");
    }

    #[test]
    fn a_reference_to_no_character_leaves_no_url() {
        for value in [
            "/a?b=&#39",
            "/a?b=&#;",
            "/a?b=&#x;",
            "/a?b=&#X27;",
            "/a?b=&#+39;",
            "/a?b=&#-1;",
            "/a?b=&#3 9;",
            "/a?b=&#0;",
            "/a?b=&#11;",
            "/a?b=&#xD800;",
            "/a?b=&#xFFFE;",
            "/a?b=&#x110000;",
            "/a?b=&#99999999999;",
            "/a?b=&#quot;",
        ] {
            assert_eq!(Text::parse(value.as_bytes()).url(|_| None), None, "{value}");
        }
    }

    #[test]
    fn a_value_in_a_path_is_a_part_of_one_segment() {
        let url = |value: &[u8]| {
            let text = Text::parse(b"/users/$(QUERY_STRING{id})/x?y=$(QUERY_STRING{id})");
            text.url(|_| Some(value)).map(|url| String::from_utf8(url).expect("text"))
        };
        for value in ["", ".", "..", "%2e", "%2E.", "%2e%2e", "a/..", "%2F", "a%2fb", "\\", "a%5cb"] {
            assert_eq!(url(value.as_bytes()), None, "{value}");
        }
        for value in ["...", ".a", "a..b", "%2ea", "%252e", "a%20b", "%2"] {
            let escaped = if value == "%2" { "%252" } else { value };
            assert_eq!(url(value.as_bytes()), Some(format!("/users/{escaped}/x?y={escaped}")));
        }
        let query = Text::parse(b"/x?$(QUERY_STRING{id})").url(|_| Some(b"../%2e%2e/"));
        assert_eq!(query.as_deref(), Some(&b"/x?..%2F%2e%2e%2F"[..]));
        assert_eq!(Text::parse(b"/$(HTTP_COOKIE{x})").url(|_| None), None);
    }

    #[test]
    fn variables_that_there_are_not_are_empty() {
        assert_eq!(url("/$(HTTP_HOST)$(QUERY_STRING)$()/?$(HTTP_COOKIE{x})"), "//?");
        assert_eq!(url("/$(HTTP_COOKIE{lang"), "/$(HTTP_COOKIE{lang");
        assert_eq!(url(""), "");
    }
}
