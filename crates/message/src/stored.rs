//! The head of a stored response, kept in its wire form.

use crate::tags::is_for_proxies;
use crate::{Field, Fields, FieldsBuf, MAX_HEAD, ResponseHead, Span, TooLarge, Version};

/// The bytes before the reason phrase: `HTTP/1.1 200 `.
const REASON_AT: usize = 13;

/// The head of a stored response: `HTTP/1.1 200 OK CR LF` and its field lines, without the empty line that
/// ends a head. A hit writes these bytes, then its own fields (such as Age), then the empty line. The spans
/// allow rules and other encodings to use the fields without parsing again.
///
/// Rules may see other fields than clients: fields for caches only ([`is_for_proxies`]) are hidden from
/// clients, and edits may replace, remove or add fields. The lines are in this order: for clients only, for
/// both, for rules only. A validation that does not mention a hidden field leaves it as it was.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredHead {
    encoded: Box<[u8]>,
    spans: Box<[Span]>,
    status: u16,
    /// Bytes of `encoded` that are sent to clients.
    shown: u16,
    /// Fields that are sent to clients.
    shown_fields: u16,
    /// How many of these, at the beginning, are for clients only.
    substitutes: u16,
}

impl StoredHead {
    /// Encodes a head. Clients get all fields but those for caches only. `status` MUST have three digits,
    /// `reason` no control bytes.
    pub fn new(status: u16, reason: &[u8], fields: &FieldsBuf) -> Result<StoredHead, TooLarge> {
        StoredHead::encode(status, reason, fields.view(), Fields::default(), |_| false)
    }

    /// Encodes a head whose clients get `edited` instead of `fields`.
    pub fn edited(
        status: u16,
        reason: &[u8],
        fields: &FieldsBuf,
        edited: &FieldsBuf,
    ) -> Result<StoredHead, TooLarge> {
        let (fields, edited) = (fields.view(), edited.view());
        let is_changed = |field: &Field<'_>| !fields.all_named(field.name).eq(edited.all_named(field.name));
        StoredHead::encode(status, reason, fields, edited, is_changed)
    }

    /// The same response with another status and other fields. `change` is applied both to the fields that
    /// rules see and to those that clients get.
    pub fn changed(
        &self,
        status: u16,
        reason: &[u8],
        change: impl Fn(FieldsBuf) -> Result<FieldsBuf, TooLarge>,
    ) -> Result<StoredHead, TooLarge> {
        let fields = change(FieldsBuf::copy_of(self.fields()))?;
        let hides_edited = |field: Field<'_>| !is_for_proxies(&field);
        if self.substitutes == 0 && !self.hidden().iter().any(hides_edited) {
            return StoredHead::new(status, reason, &fields);
        }
        StoredHead::edited(status, reason, &fields, &change(FieldsBuf::copy_of(self.shown()))?)
    }

    fn encode(
        status: u16,
        reason: &[u8],
        fields: Fields<'_>,
        edited: Fields<'_>,
        is_changed: impl Fn(&Field<'_>) -> bool,
    ) -> Result<StoredHead, TooLarge> {
        let for_rules = |field: &Field<'_>| is_for_proxies(field) || is_changed(field);
        StoredHead::assemble(
            status,
            reason,
            edited.iter().filter(|field| !is_for_proxies(field) && is_changed(field)),
            fields.iter().filter(|field| !for_rules(field)),
            fields.iter().filter(for_rules),
        )
    }

    /// A head made of its [`StoredHead::sections`]: fields for clients only, for both, for rules only. The
    /// first two MUST NOT have fields for caches only. `status` MUST have three digits, `reason` no control
    /// bytes.
    pub fn from_sections(
        status: u16,
        reason: &[u8],
        [for_clients, for_both, for_rules]: [Fields<'_>; 3],
    ) -> Result<StoredHead, TooLarge> {
        StoredHead::assemble(status, reason, for_clients.iter(), for_both.iter(), for_rules.iter())
    }

    fn assemble<'a>(
        status: u16,
        reason: &[u8],
        for_clients: impl Iterator<Item = Field<'a>> + Clone,
        for_both: impl Iterator<Item = Field<'a>> + Clone,
        for_rules: impl Iterator<Item = Field<'a>> + Clone,
    ) -> Result<StoredHead, TooLarge> {
        debug_assert!((100..1000).contains(&status));
        debug_assert!(!reason.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        let all = || for_clients.clone().chain(for_both.clone()).chain(for_rules.clone());
        let (lines, count) =
            all().fold((0, 0), |(lines, count), field| (lines + field.encoded_len(), count + 1));
        let capacity = REASON_AT + reason.len() + 2 + lines;
        if capacity > MAX_HEAD {
            return Err(TooLarge);
        }
        let digit = |value: u16| b'0' + (value % 10) as u8;
        let mut encoded = Vec::with_capacity(capacity);
        encoded.extend_from_slice(b"HTTP/1.1 ");
        encoded.extend_from_slice(&[digit(status / 100), digit(status / 10), digit(status), b' ']);
        encoded.extend_from_slice(reason);
        encoded.extend_from_slice(b"\r\n");
        let mut spans = Vec::with_capacity(count);
        for field in for_clients {
            append(&mut encoded, &mut spans, field)?;
        }
        let substitutes = spans.len();
        for field in for_both {
            append(&mut encoded, &mut spans, field)?;
        }
        let (shown, shown_fields) = (encoded.len(), spans.len());
        for field in for_rules {
            append(&mut encoded, &mut spans, field)?;
        }
        debug_assert_eq!(encoded.len(), capacity);
        Ok(StoredHead {
            encoded: encoded.into_boxed_slice(),
            spans: spans.into_boxed_slice(),
            status,
            // Less than MAX_HEAD, as checked above.
            shown: shown as u16,
            shown_fields: shown_fields as u16,
            substitutes: substitutes as u16,
        })
    }

    /// The status code.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The reason phrase.
    pub fn reason(&self) -> &[u8] {
        let line = self.status_line();
        &line[REASON_AT..line.len() - 2]
    }

    /// The fields that rules see; those hidden from clients are last.
    pub fn fields(&self) -> Fields<'_> {
        Fields::new(&self.encoded, &self.spans[self.substitutes as usize..])
    }

    /// The fields sent to clients, in any form of the response.
    pub fn shown(&self) -> Fields<'_> {
        Fields::new(&self.encoded, &self.spans[..self.shown_fields as usize])
    }

    fn hidden(&self) -> Fields<'_> {
        Fields::new(&self.encoded, &self.spans[self.shown_fields as usize..])
    }

    /// The head as rules see it.
    pub fn view(&self) -> ResponseHead<'_> {
        ResponseHead {
            status: self.status,
            reason: self.reason(),
            version: Version::Http11,
            fields: self.fields(),
        }
    }

    /// The status line and field lines in their wire form, without the empty line.
    pub fn encoded(&self) -> &[u8] {
        &self.encoded[..self.shown as usize]
    }

    /// The status line and all field lines, those that clients do not get included, without the empty line.
    /// The lines are those of [`StoredHead::sections`].
    pub fn encoded_with_hidden(&self) -> &[u8] {
        &self.encoded
    }

    /// The fields for clients only, for both clients and rules, and for rules only.
    pub fn sections(&self) -> [Fields<'_>; 3] {
        let all = Fields::new(&self.encoded, &self.spans);
        let (shown, for_rules) = all.split_at(self.shown_fields as usize);
        let (for_clients, for_both) = shown.split_at(self.substitutes as usize);
        [for_clients, for_both, for_rules]
    }

    /// The status line alone, including its CR LF: the start of [`StoredHead::encoded`].
    pub fn status_line(&self) -> &[u8] {
        &self.encoded[..self.spans.first().map_or(self.encoded.len(), |span| span.name_range().start)]
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        self.encoded.len() + size_of_val(&*self.spans)
    }
}

/// Appends a field line and its span.
fn append(encoded: &mut Vec<u8>, spans: &mut Vec<Span>, field: Field<'_>) -> Result<(), TooLarge> {
    let name_at = encoded.len();
    encoded.extend_from_slice(field.name);
    encoded.extend_from_slice(b": ");
    let value_at = encoded.len();
    encoded.extend_from_slice(field.value);
    encoded.extend_from_slice(b"\r\n");
    let span = Span::new(encoded, name_at, field.name.len(), value_at, field.value.len());
    spans.push(span.ok_or(TooLarge)?);
    Ok(())
}

impl std::fmt::Debug for StoredHead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.view().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;

    #[test]
    fn a_stored_head_is_what_goes_on_the_wire_and_can_be_read() {
        let fields: FieldsBuf =
            [("content-TYPE", "text/html"), ("X-A", ""), ("ETag", "\"x\"")].into_iter().collect();
        let head = StoredHead::new(203, b"Non-Authoritative", &fields).unwrap();
        let text = "HTTP/1.1 203 Non-Authoritative\r\ncontent-TYPE: text/html\r\nX-A: \r\nETag: \"x\"\r\n";
        assert_eq!(head.encoded(), text.as_bytes());
        assert_eq!(head.status_line(), b"HTTP/1.1 203 Non-Authoritative\r\n");
        assert_eq!(head.status(), 203);
        assert_eq!(head.reason(), &b"Non-Authoritative"[..]);
        assert_eq!(head.fields().get(Name::Etag), Some(&b"\"x\""[..]));
        assert_eq!(FieldsBuf::copy_of(head.fields()).view().len(), 3);
        assert_eq!(head.heap_size(), text.len() + 3 * size_of::<Span>());
    }

    #[test]
    fn removed_fields_take_no_room() {
        let mut fields: FieldsBuf = [("A", "1"), ("B", "2")].into_iter().collect();
        fields.remove_named(b"a");
        assert_eq!(StoredHead::new(200, b"", &fields).unwrap().encoded(), b"HTTP/1.1 200 \r\nB: 2\r\n");
    }

    #[test]
    fn a_head_too_large_for_spans_is_refused() {
        let fields: FieldsBuf = [("A", "x".repeat(MAX_HEAD - 10))].into_iter().collect();
        assert_eq!(StoredHead::new(200, b"OK", &fields).err(), Some(TooLarge));
    }

    #[test]
    fn fields_for_caches_only_are_kept_but_not_shown() {
        let fields =
            [("Surrogate-Key", "a b"), ("Content-Type", "text/plain"), ("xkey", "c")].into_iter().collect();
        let head = StoredHead::new(200, b"OK", &fields).unwrap();
        assert_eq!(head.encoded(), b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n");
        assert_eq!(head.fields().get(crate::Name::SurrogateKey), Some(&b"a b"[..]));
        assert_eq!(head.fields().get(crate::Name::XKey), Some(&b"c"[..]));
        assert_eq!(head.shown().iter().map(|field| field.name).collect::<Vec<_>>(), [b"Content-Type"]);
    }

    #[test]
    fn clients_get_the_edited_fields_and_rules_the_others() {
        let fields: FieldsBuf = [("A", "1"), ("Vary", "X-T"), ("Cache-Control", "max-age=1"), ("Xkey", "k")]
            .into_iter()
            .collect();
        let mut edited = fields.clone();
        edited.remove_named(b"Vary");
        edited.replace(b"cache-control", b"no-cache").unwrap();
        edited.push(b"A", b"2").unwrap();
        let head = StoredHead::edited(200, b"OK", &fields, &edited).unwrap();
        assert_eq!(head.encoded(), b"HTTP/1.1 200 OK\r\nA: 1\r\ncache-control: no-cache\r\nA: 2\r\n");
        let rules = "A: 1, Vary: X-T, Cache-Control: max-age=1, Xkey: k";
        assert_eq!(text(head.fields()), rules);
        let part = head
            .changed(206, b"Partial Content", |mut fields| fields.set(Name::Age, b"0").map(|()| fields))
            .unwrap();
        assert_eq!(text(part.shown()), "A: 1, cache-control: no-cache, A: 2, Age: 0");
        assert_eq!(part.fields().get(Name::CacheControl), Some(&b"max-age=1"[..]));
        for head in [head, part] {
            let again = StoredHead::from_sections(head.status(), head.reason(), head.sections());
            assert!(again.is_ok_and(|again| again == head));
        }
    }

    #[test]
    fn a_head_has_three_sections() {
        let fields: FieldsBuf = [("A", "1"), ("B", "2"), ("Xkey", "k")].into_iter().collect();
        let mut edited = fields.clone();
        edited.replace(b"A", b"3").unwrap();
        let head = StoredHead::edited(200, b"OK", &fields, &edited).unwrap();
        assert_eq!(head.sections().map(text), ["A: 3", "B: 2", "A: 1, Xkey: k"]);
        assert_eq!(head.encoded_with_hidden(), b"HTTP/1.1 200 OK\r\nA: 3\r\nB: 2\r\nA: 1\r\nXkey: k\r\n");
        let [for_clients, _, for_rules] = head.sections();
        let too_long: FieldsBuf = [("A", "x".repeat(MAX_HEAD - 20))].into_iter().collect();
        let refused = StoredHead::from_sections(200, b"OK", [for_clients, too_long.view(), for_rules]);
        assert_eq!(refused.err(), Some(TooLarge));
    }

    fn text(fields: Fields<'_>) -> String {
        let line =
            |field: Field<'_>| format!("{}: {}", field.name.escape_ascii(), field.value.escape_ascii());
        fields.iter().map(line).collect::<Vec<_>>().join(", ")
    }
}
