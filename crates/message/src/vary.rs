//! Vary (RFC 9110 §12.5.5, RFC 9111 §4.1): the requests that a stored response answers.
//!
//! The key of a variant is the normalised text of the selecting fields itself, not a hash of it: clients choose these
//! values, and must not be able to choose a collision.

use crate::codings::Codings;
use crate::weighted::Weighted;
use crate::{Fields, Name};

/// How Vary is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VaryRule {
    /// Names that select nothing, in any letter case.
    pub ignored: Vec<Box<[u8]>>,
    /// Names of fields that are written for each client on the way to the origin, in any letter case, beside those that say whom a
    /// request came from: what varies on them answers no other request.
    pub written: Vec<Box<[u8]>>,
    /// Whether each list of content codings with its weights is a variant, rather than the [`Codings`] that it comes to.
    pub raw_codings: bool,
}

/// What a response varies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VarySpec {
    /// Nothing: it answers every request to its target.
    None,
    /// Something no request shows: it answers no other request.
    Star,
    /// The fields of these names: lower case, in order, each once.
    Names(Vec<Box<[u8]>>),
}

impl VarySpec {
    /// Reads Vary over all its lines. A member that is no field name counts as `*`.
    pub fn of(response: Fields<'_>, rule: &VaryRule) -> VarySpec {
        if !response.has(Name::Vary) {
            return VarySpec::None;
        }
        let mut names: Vec<Box<[u8]>> = Vec::new();
        for member in response.list(Name::Vary) {
            if member == b"*" || !crate::is_token(member) {
                return VarySpec::Star;
            }
            if rule.ignored.iter().any(|name| name.eq_ignore_ascii_case(member)) {
                continue;
            }
            if is_of_client(member) || rule.written.iter().any(|name| name.eq_ignore_ascii_case(member)) {
                return VarySpec::Star;
            }
            let is_raw = rule.raw_codings && Name::of(member) == Name::AcceptEncoding;
            names.push(if is_raw { RAW_CODINGS.into() } else { member.to_ascii_lowercase().into() });
        }
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { VarySpec::None } else { VarySpec::Names(names) }
    }

    /// The key of the variant that answers `request`.
    pub fn key(&self, request: Fields<'_>) -> VaryKey {
        let mut key = Vec::new();
        let mut sent = Some(Vec::new());
        match self {
            VarySpec::None => {}
            VarySpec::Star => key.extend_from_slice(STAR),
            VarySpec::Names(names) => {
                for name in names {
                    key.extend_from_slice(name);
                    normalise(name, request.all_named(name), &mut key);
                    key.push(END);
                    sent = sent.and_then(|sent| add_sent(sent, name, request));
                }
            }
        }
        if let Some(sent) = sent.filter(|sent| *sent != key)
            && let Ok(len) = u8::try_from(sent.len())
            && len > 0
        {
            key.extend_from_slice(&sent);
            key.extend_from_slice(&[len, MARK]);
        }
        VaryKey(key.into())
    }

    /// Whether a response that varies so, and was selected by the request of `key`, answers `request`.
    pub fn matches(&self, request: Fields<'_>, key: &VaryKey) -> bool {
        *self != VarySpec::Star && key.matches(request)
    }
}

/// Whether proxies write the address of the client into a field of this name.
fn is_of_client(name: &[u8]) -> bool {
    matches!(Name::of(name), Name::XForwardedFor | Name::Forwarded) || name.eq_ignore_ascii_case(b"x-real-ip")
}

/// The names a stored response varies on, with the normalised values they had in the request it answered:
/// `name` LF where the field was absent, `name:value` LF where it was there. Keys are equal exactly when they select
/// the same requests.
///
/// Behind them it may keep the same lines as that request had them: most clients send what one of their kind has sent
/// before, and to see that takes a fraction of what normalising takes.
#[derive(Clone, Default)]
pub struct VaryKey(Box<[u8]>);

/// Ends a key that has lines as they were sent, behind their length in one byte. No other key ends so.
const MARK: u8 = 0;

/// Stands for Accept-Encoding in keys that compare it as [`VaryRule::raw_codings`] says.
const RAW_CODINGS: &[u8] = b"ACCEPT-ENCODING";

/// No field name holds it, so no key of names begins so.
const STAR: &[u8] = b"*:";
/// No field value holds it.
const END: u8 = b'\n';

impl VaryKey {
    /// The key as bytes, for storage.
    pub fn as_bytes(&self) -> &[u8] {
        self.parts().0
    }

    /// A key read back from storage. Bytes that are no key match no request.
    pub fn from_bytes(bytes: impl Into<Box<[u8]>>) -> VaryKey {
        let bytes = bytes.into();
        let names = bytes.split(|&byte| byte == END).map(|line| split_line(line).0);
        let valid = bytes.is_empty()
            || (bytes.ends_with(&[END])
                && names.take(bytes.iter().filter(|&&byte| byte == END).count()).all(crate::is_token));
        let bytes = if valid { bytes } else { STAR.into() };
        VaryKey(bytes)
    }

    /// Whether the response varies on nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        self.0.len()
    }

    /// Whether the response answers `request`. Allocates nothing.
    pub fn matches(&self, request: Fields<'_>) -> bool {
        let (normal, sent) = self.parts();
        (!sent.is_empty() && was_sent(sent, request)) || is_normal(normal, request)
    }

    /// The normalised lines, and those as they were sent, if they are kept.
    fn parts(&self) -> (&[u8], &[u8]) {
        match &*self.0 {
            [lines @ .., len, MARK] => lines.split_at(lines.len().saturating_sub(usize::from(*len))),
            lines => (lines, &[]),
        }
    }
}

/// Whether the request has the fields as the normalised lines of a key have them.
fn is_normal(mut lines: &[u8], request: Fields<'_>) -> bool {
    while !lines.is_empty() {
        let (name, expected) = split_line(lines);
        if name == b"*" {
            return false;
        }
        let mut expected = Expected(expected);
        let same = normalise(name, request.all_named(name), &mut expected);
        match expected.0.split_first() {
            Some((&END, after)) if same => lines = after,
            _ => return false,
        }
    }
    true
}

/// Whether the request has the fields byte for byte, each on one line, as these lines have them.
fn was_sent(mut lines: &[u8], request: Fields<'_>) -> bool {
    while !lines.is_empty() {
        let (name, expected) = split_line(lines);
        let mut received = request.all_named(name);
        let after = match (received.next(), received.next()) {
            (None, _) => Some(expected),
            (Some(line), None) => expected.strip_prefix(b":").and_then(|value| value.strip_prefix(line)),
            _ => None,
        };
        match after.and_then(|after| after.strip_prefix(&[END])) {
            Some(after) => lines = after,
            None => return false,
        }
    }
    true
}

/// Adds a field as the request has it to lines for [`was_sent`]; `None` where it stands on several lines.
fn add_sent(mut sent: Vec<u8>, name: &[u8], request: Fields<'_>) -> Option<Vec<u8>> {
    let mut lines = request.all_named(name);
    sent.extend_from_slice(name);
    if let Some(line) = lines.next() {
        sent.push(b':');
        sent.extend_from_slice(line);
    }
    sent.push(END);
    lines.next().is_none().then_some(sent)
}

/// The name that a line begins with, and what follows.
fn split_line(lines: &[u8]) -> (&[u8], &[u8]) {
    let end = lines.iter().position(|&byte| byte == b':' || byte == END);
    lines.split_at(end.unwrap_or(lines.len()))
}

impl PartialEq for VaryKey {
    fn eq(&self, other: &VaryKey) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for VaryKey {}

impl std::fmt::Debug for VaryKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VaryKey({})", self.as_bytes().escape_ascii())
    }
}

/// Takes normalised values piece by piece, until it answers false.
trait Sink {
    fn text(&mut self, text: &[u8]) -> bool;

    /// `text` in lower case.
    fn lower(&mut self, text: &[u8]) -> bool;
}

impl Sink for Vec<u8> {
    fn text(&mut self, text: &[u8]) -> bool {
        self.extend_from_slice(text);
        true
    }

    fn lower(&mut self, text: &[u8]) -> bool {
        self.extend(text.iter().map(u8::to_ascii_lowercase));
        true
    }
}

/// What is still expected of a value.
struct Expected<'a>(&'a [u8]);

impl Expected<'_> {
    fn take(&mut self, len: usize, same: impl Fn(&[u8]) -> bool) -> bool {
        match self.0.split_at_checked(len) {
            Some((next, rest)) if same(next) => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }
}

impl Sink for Expected<'_> {
    fn text(&mut self, text: &[u8]) -> bool {
        self.take(text.len(), |next| next == text)
    }

    fn lower(&mut self, text: &[u8]) -> bool {
        self.take(text.len(), |next| {
            next.iter().zip(text).all(|(next, byte)| *next == byte.to_ascii_lowercase())
        })
    }
}

/// Hands the normalised values of one field to `sink`, piece by piece, until it returns false: nothing for an absent
/// field, else `:` and the value. Returns whether all was taken.
fn normalise<'a>(name: &[u8], lines: impl Iterator<Item = &'a [u8]> + Clone, sink: &mut impl Sink) -> bool {
    if lines.clone().next().is_none() {
        return true;
    }
    let id = Name::of(name);
    if id == Name::AcceptEncoding
        && name != RAW_CODINGS
        && let Some(codings) = Codings::of_lines(lines.clone())
    {
        let mut pieces = codings.pieces().peekable();
        return pieces.peek().is_none() || (sink.text(b":") && pieces.all(|piece| sink.text(piece)));
    }
    if !sink.text(b":") {
        return false;
    }
    match id {
        Name::AcceptEncoding => codings(lines.clone(), sink),
        Name::AcceptLanguage => ranges(lines.clone(), sink),
        _ => None,
    }
    .unwrap_or_else(|| {
        lines.enumerate().all(|(at, line)| (at == 0 || sink.text(b",")) && squeeze(line, sink))
    })
}

/// The value without white space around commas and with single spaces elsewhere; quoted strings as they are.
fn squeeze(value: &[u8], sink: &mut impl Sink) -> bool {
    let blank = |byte: u8| byte == b' ' || byte == b'\t';
    let (mut at, mut space, mut first) = (0, false, true);
    while at < value.len() {
        let start = at;
        if blank(value[at]) {
            space = true;
            at += 1;
        } else if value[at] == b',' {
            (space, first) = (false, true);
            at += 1;
            if !sink.text(b",") {
                return false;
            }
        } else {
            let mut quoted = false;
            while at < value.len() && (quoted || !(blank(value[at]) || value[at] == b',')) {
                match value[at] {
                    b'\\' if quoted => at += 1,
                    b'"' => quoted = !quoted,
                    _ => {}
                }
                at += 1;
            }
            at = at.min(value.len());
            if (space && !first && !sink.text(b" ")) || !sink.text(&value[start..at]) {
                return false;
            }
            (space, first) = (false, false);
        }
    }
    true
}

impl Weighted<'_> {
    /// Whether it comes first in the order of names, and of weights from the greatest.
    fn precedes(&self, other: &Weighted<'_>) -> bool {
        for (one, other) in self.text.iter().zip(other.text) {
            let (one, other) = (one.to_ascii_lowercase(), other.to_ascii_lowercase());
            if one != other {
                return one < other;
            }
        }
        (self.text.len(), other.weight) < (other.text.len(), self.weight)
    }

    /// In lower case, with the weight in its shortest form and none for 1.
    fn emit(&self, sink: &mut impl Sink) -> bool {
        let lower = sink.lower(self.text);
        if !lower || self.weight == 1000 {
            return lower;
        }
        let digits =
            [self.weight / 100, self.weight / 10 % 10, self.weight % 10].map(|digit| b'0' + digit as u8);
        let shortest = digits.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
        sink.text(b";q=0") && (shortest == 0 || (sink.text(b".") && sink.text(&digits[..shortest])))
    }
}

/// The content codings of all lines in order of their names, which is no order of preference (RFC 9110 §12.5.3). `None`,
/// with nothing handed on, for what is malformed or too long to sort without allocation.
fn codings<'a>(lines: impl Iterator<Item = &'a [u8]>, sink: &mut impl Sink) -> Option<bool> {
    let mut sorted = [Weighted::default(); 16];
    let mut len = 0;
    // Loops, and the sorting by insertion: this is on the way of hits, and the lists have three or four members.
    for line in lines {
        for member in crate::members(line) {
            let mut coding = Weighted::of(member)?;
            // RFC 9110 §8.4.1.1 and §8.4.1.3: two old spellings of the same codings.
            if coding.text.eq_ignore_ascii_case(b"x-gzip") || coding.text.eq_ignore_ascii_case(b"x-compress")
            {
                coding.text = &coding.text[2..];
            }
            if len == sorted.len() {
                return None;
            }
            let mut at = len;
            while at > 0 && coding.precedes(&sorted[at - 1]) {
                sorted[at] = sorted[at - 1];
                at -= 1;
            }
            sorted[at] = coding;
            len += 1;
        }
    }
    Some(emit_all(sorted[..len].iter().copied(), sink))
}

/// Language ranges in any letter case, in the order given: some servers take it for preference (RFC 9110 §12.5.4).
fn ranges<'a>(lines: impl Iterator<Item = &'a [u8]> + Clone, sink: &mut impl Sink) -> Option<bool> {
    let members = lines.flat_map(crate::members);
    if !members.clone().all(|member| Weighted::of(member).is_some()) {
        return None;
    }
    Some(emit_all(members.filter_map(Weighted::of), sink))
}

fn emit_all<'a>(mut members: impl Iterator<Item = Weighted<'a>>, sink: &mut impl Sink) -> bool {
    let first = members.next();
    first.is_none_or(|first| first.emit(sink)) && members.all(|member| sink.text(b",") && member.emit(sink))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::FieldsBuf;

    fn fields(text: &str) -> FieldsBuf {
        text.lines().map(|line| line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""))).collect()
    }

    fn spec(text: &str) -> VarySpec {
        VarySpec::of(fields(text).view(), &VaryRule::default())
    }

    #[test]
    fn names_are_canonical_and_star_wins() {
        let names =
            |names: &[&str]| VarySpec::Names(names.iter().map(|name| name.as_bytes().into()).collect());
        for (text, expected) in [
            ("A: b", VarySpec::None),
            ("Vary:", VarySpec::None),
            ("Vary: ,", VarySpec::None),
            ("Vary: Foo", names(&["foo"])),
            ("Vary: foo, Bar,FOO\nVary: baz", names(&["bar", "baz", "foo"])),
            ("Vary: *", VarySpec::Star),
            ("Vary: *, *", VarySpec::Star),
            ("Vary: *\nVary: *", VarySpec::Star),
            ("Vary: , *", VarySpec::Star),
            ("Vary:\nVary: *", VarySpec::Star),
            ("Vary: *, Foo", VarySpec::Star),
            ("Vary: Foo, *", VarySpec::Star),
            ("Vary: Foo Bar", VarySpec::Star),
            ("Vary: \"Foo\"", VarySpec::Star),
        ] {
            assert_eq!(spec(text), expected, "{text}");
        }
        let ignored = VaryRule { ignored: vec![Box::from(&b"User-Agent"[..])], ..VaryRule::default() };
        assert_eq!(VarySpec::of(fields("Vary: user-agent").view(), &ignored), VarySpec::None);
        assert_eq!(VarySpec::of(fields("Vary: USER-AGENT, a").view(), &ignored), names(&["a"]));
    }

    /// Whether a response to the first request, varying so, answers the second.
    fn answers(vary: &str, first: &str, second: &str) -> bool {
        answers_by(&spec(&format!("Vary: {vary}")), first, second)
    }

    fn answers_by(spec: &VarySpec, first: &str, second: &str) -> bool {
        let (first, second) = (fields(first), fields(second));
        let key = spec.key(first.view());
        let matches = spec.matches(second.view(), &key);
        assert_eq!(matches, key.matches(second.view()));
        assert_eq!(
            matches,
            *spec != VarySpec::Star && key == spec.key(second.view()),
            "keys agree with matching"
        );
        matches
    }

    #[test]
    fn requests_match_on_every_selecting_field() {
        for (vary, first, second, expected) in [
            ("Foo", "Foo: 1", "Foo: 1", true),
            ("Foo", "Foo: 1", "foo: 1", true),
            ("Foo", "Foo: 1", "Foo: 2", false),
            ("Foo", "Foo: 1", "A: 1", false),
            ("Foo", "A: 1", "Foo: 1", false),
            ("Foo", "A: 1", "A: 2", true),
            ("Foo", "Foo:", "A: 1", false),
            ("Foo", "Foo: 1", "Foo: 11", false),
            ("Foo", "Foo: 11", "Foo: 1", false),
            ("foo", "FOO: 1", "Foo: 1", true),
            ("Foo, Bar", "Foo: 1\nBar: a", "Bar: a\nFoo: 1", true),
            ("Foo, Bar", "Foo: 1\nBar: a", "Foo: 1\nBar: b", false),
            ("Foo, Bar, Baz", "Foo: 1\nBaz: 789", "Foo: 1\nBaz: 789", true),
            ("Foo, Bar, Baz", "Foo: 1\nBar: abc4\nBaz: 789", "Foo: 1\nBar: abc\nBaz: 789", false),
            ("*", "Foo: 1", "Foo: 1", false),
            // A value cannot pretend to be another field.
            ("A, B", "A: 1", "A: 1\\nb:2", false),
        ] {
            assert_eq!(answers(vary, first, second), expected, "{vary}: {first} / {second}");
        }
    }

    #[test]
    fn unknown_fields_are_compared_with_white_space_normalised() {
        for (first, second, expected) in [
            ("Foo: 1, 2", "Foo: 1\nFoo: 2", true),
            ("Foo: 1,2", "Foo: 1 , \t2", true),
            ("Foo: a  b", "Foo: a b", true),
            ("Foo: ab", "Foo: a b", false),
            ("Foo: 1, 2", "Foo: 2, 1", false),
            ("Foo: A", "Foo: a", false),
            ("Foo: 1,,2", "Foo: 1,2", false),
            ("Foo: \"a, b\"", "Foo: \"a,b\"", false),
            ("Foo: \"a\\\" , b\"", "Foo: \"a\\\",b\"", false),
            ("Foo: \"a , b", "Foo: \"a,b", false),
        ] {
            assert_eq!(answers("Foo", first, second), expected, "{first} / {second}");
        }
    }

    #[test]
    fn languages_match_in_any_case_but_not_in_any_order() {
        for (first, second, expected) in [
            ("en, de", "eN, De", true),
            ("en, de", "en ,   de", true),
            ("en, de", "de, en", false),
            ("en;q=1.0, de;q=0.50", "en,de; q=0.5", true),
            ("en;q=0", "en;q=0.000", true),
            ("en", "en;q=0.9", false),
            ("en", "fr", false),
            ("*;q=0.1", "*;q=0.100", true),
            ("en;level=1", "en;level=1", true),
            ("en;q=2", "en;q=2", true),
            ("en;q=2", "en", false),
        ] {
            let line = |value| format!("Accept-Language: {value}");
            assert_eq!(
                answers("Accept-Language", &line(first), &line(second)),
                expected,
                "{first} / {second}"
            );
        }
    }

    #[test]
    fn requests_that_accept_the_same_common_codings_match() {
        let line = |value: &str| format!("Accept-Encoding: {value}");
        for (first, second, expected) in [
            ("gzip", "gzip, deflate", true),
            ("gzip, deflate, br, zstd", "zstd;q=0.5, br, gzip", true),
            ("gzip", "gzip, br", false),
            ("gzip", "gzip;q=0", false),
            ("gzip", "gzip, identity;q=0", false),
            ("gzip;q=x", "gzip;q=x", true),
            ("gzip;q=x", "gzip", false),
        ] {
            assert_eq!(
                answers("Accept-Encoding", &line(first), &line(second)),
                expected,
                "{first} / {second}"
            );
        }
        for none in ["", "identity", "deflate"] {
            assert!(answers("Accept-Encoding", &line(none), "A: 1"), "{none}");
            assert!(answers("Accept-Encoding", "A: 1", &line(none)), "{none}");
            assert!(!answers("Accept-Encoding", "A: 1", &line("br")));
        }
    }

    #[test]
    fn raw_codings_match_in_any_order() {
        let rule = VaryRule { raw_codings: true, ..VaryRule::default() };
        let spec = VarySpec::of(fields("Vary: accept-encoding").view(), &rule);
        for (first, second, expected) in [
            ("gzip, deflate, br", "br,GZIP , deflate", true),
            ("gzip, br", "x-gzip, br", true),
            ("gzip", "gzip, deflate", false),
            ("gzip", "gzip;q=0.5", false),
            ("gzip;q=1, br;q=0.8", "br;q=0.80, gzip", true),
            ("gzip", "gzip, br", false),
            ("gzip", "gzip;q=0", false),
            ("gzip", "", false),
            ("identity, *;q=0", "*;q=0.0, identity", true),
            ("gzip;q=x", "gzip;q=x", true),
            ("gzip;q=x", "gzip", false),
        ] {
            let line = |value| format!("Accept-Encoding: {value}");
            assert_eq!(answers_by(&spec, &line(first), &line(second)), expected, "{first} / {second}");
        }
        let many = (0..20).map(|n| format!("c{n}")).collect::<Vec<_>>().join(",");
        let line = format!("Accept-Encoding: {many}");
        assert!(answers_by(&spec, &line, &line), "too many to sort are compared as they are");
    }

    #[test]
    fn keys_survive_storage() {
        let spec = spec("Vary: Accept-Encoding, X");
        let request = fields("Accept-Encoding: br\nX: 1");
        let key = VaryKey::from_bytes(spec.key(request.view()).as_bytes());
        assert_eq!(key.as_bytes(), b"accept-encoding:br\nx:1\n");
        assert!(key.matches(request.view()));
        assert!(VarySpec::None.key(request.view()).is_empty());
    }

    proptest! {
        #[test]
        fn a_request_matches_its_own_key(
            lines in proptest::collection::vec(("accept-(encoding|language)|x", "[ -~]{0,30}"), 0..5),
        ) {
            let request: FieldsBuf = lines.iter().map(|(name, value)| (name, value.trim())).collect();
            let spec = spec("Vary: accept-encoding, x\nVary: accept-language");
            prop_assert!(spec.key(request.view()).matches(request.view()));
        }

        #[test]
        fn a_key_matches_the_requests_that_make_the_same_key(
            name in "accept-(encoding|language)|x",
            lines in proptest::collection::vec("[ a-z0-9=;.,*\"\\\\\t]{0,20}", 1..4),
            other in "[ a-z=;.,\"]{0,8}",
        ) {
            let spec = spec(&format!("Vary: {name}"));
            let request: FieldsBuf = lines.iter().map(|line| (&*name, line.trim())).collect();
            let key = spec.key(request.view());
            let value = key.as_bytes()[name.len() + 1..].strip_suffix(&[END]).unwrap_or_default();
            let value = std::str::from_utf8(value).unwrap();
            for value in [value, &*other, &lines[0]] {
                let request: FieldsBuf = [(&*name, value.trim())].into_iter().collect();
                prop_assert_eq!(key.matches(request.view()), key == spec.key(request.view()));
            }
        }

        #[test]
        fn no_stored_bytes_panic(bytes: Vec<u8>, value in "[ -~]{0,30}") {
            let request: FieldsBuf = [("x", value.trim())].into_iter().collect();
            VaryKey::from_bytes(bytes).matches(request.view());
        }
    }
}
