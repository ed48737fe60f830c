//! Values of attributes, and the variables in them.

use crate::escape::escape_url;

/// The value of an attribute: a URL with variables in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(Box<[Piece]>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(Box<[u8]>),
    Variable(Variable),
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
        let value = without_entities(value);
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

    /// The URL. `value` gives variables their values, as they are in the request.
    pub fn url<'v>(&self, value: impl Fn(&Variable) -> Option<&'v [u8]>) -> Vec<u8> {
        let mut url = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => url.extend_from_slice(text),
                Piece::Variable(variable) => escape_url(value(variable).unwrap_or_default(), &mut url),
            }
        }
        url
    }

    /// Passes the size of each allocation to `note`.
    pub(crate) fn allocations(&self, note: &mut dyn FnMut(usize)) {
        note(size_of_val(&*self.0));
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => note(text.len()),
                Piece::Variable(variable) => variable.allocations(note),
            }
        }
    }
}

/// The five entities of XML, by name. An ampersand that begins none of them is itself, as in many URLs.
fn without_entities(value: &[u8]) -> Vec<u8> {
    const ENTITIES: [(&[u8], u8); 5] =
        [(b"&amp;", b'&'), (b"&lt;", b'<'), (b"&gt;", b'>'), (b"&quot;", b'"'), (b"&apos;", b'\'')];
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&first, after)) = rest.split_first() {
        let entity = ENTITIES.iter().find_map(|(text, byte)| Some((*byte, rest.strip_prefix(*text)?)));
        let (byte, after) = entity.unwrap_or((first, after));
        out.push(byte);
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(value: &str) -> String {
        let value = Text::parse(value.as_bytes()).url(|variable| match variable {
            Variable::Query(name) if **name == *b"id" => Some(b"7/8"),
            Variable::Cookie(name) if **name == *b"lang" => Some(b"de"),
            _ => None,
        });
        String::from_utf8(value).expect("text")
    }

    #[test]
    fn entities_and_variables_are_replaced_once() {
        assert_eq!(url("/a?b=1&amp;c=2&d=3"), "/a?b=1&c=2&d=3");
        assert_eq!(url("/a?id=$(QUERY_STRING{id})&l=$(HTTP_COOKIE{lang})!"), "/a?id=7%2F8&l=de!");
        assert_eq!(url("/&amp;lt;"), "/&lt;");
    }

    #[test]
    fn variables_that_there_are_not_are_empty() {
        assert_eq!(url("/$(HTTP_HOST)$(QUERY_STRING)$(HTTP_COOKIE{x})$()/"), "//");
        assert_eq!(url("/$(HTTP_COOKIE{lang"), "/$(HTTP_COOKIE{lang");
        assert_eq!(url(""), "");
    }
}
