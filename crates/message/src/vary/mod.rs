//! Vary (RFC 9110 §12.5.5, RFC 9111 §4.1): the requests that a stored response answers.
//!
//! The key of a variant is the normalised text of the selecting fields itself, not a hash of it, because
//! clients choose these values and must not be able to choose a collision.

mod normalise;

use crate::{Fields, Name};
use normalise::{Expected, RAW_CODINGS, normalise};

/// How Vary is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VaryRule {
    /// Names that select nothing, in any letter case.
    pub ignored: Vec<Box<[u8]>>,
    /// Names of fields that are written for each client on the way to the origin, in any letter case, in
    /// addition to those that carry the client's address. A response that varies on them serves no other
    /// request.
    pub written: Vec<Box<[u8]>>,
    /// Whether each list of content codings with its weights is a variant of its own, instead of the
    /// [`Codings`](crate::codings::Codings) it reduces to.
    pub raw_codings: bool,
    /// Whether a response that lets an origin read it (`Access-Control-Allow-Origin`) varies on Origin, although it
    /// does not say so.
    pub of_allowed_origin: bool,
}

impl VaryRule {
    fn ignores(&self, name: &[u8]) -> bool {
        self.ignored.iter().any(|ignored| ignored.eq_ignore_ascii_case(name))
    }
}

const ORIGIN: &[u8] = b"origin";

/// Whether a response names the one origin whose scripts may read it (Fetch §3.2.3): applications copy it from the
/// request.
fn allows_one_origin(response: Fields<'_>) -> bool {
    response.all_named(b"Access-Control-Allow-Origin").any(|value| value != b"*")
}

/// What a response varies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VarySpec {
    /// Nothing: it answers every request to its target.
    None,
    /// Something that is not in requests: it answers no other request.
    Star,
    /// The fields with these names: lower case, sorted, without duplicates.
    Names(Vec<Box<[u8]>>),
}

impl VarySpec {
    /// Reads Vary over all its lines. A member that is not a field name counts as `*`.
    pub fn of(response: Fields<'_>, rule: &VaryRule) -> VarySpec {
        let of_origin = rule.of_allowed_origin && allows_one_origin(response) && !rule.ignores(ORIGIN);
        if !response.has(Name::Vary) && !of_origin {
            return VarySpec::None;
        }
        let mut names: Vec<Box<[u8]>> = if of_origin { vec![ORIGIN.into()] } else { Vec::new() };
        for member in response.list(Name::Vary) {
            if member == b"*" || !crate::is_token(member) {
                return VarySpec::Star;
            }
            if rule.ignores(member) {
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

    /// Whether the field with this name, in lower case, is one that it varies on.
    pub fn has_name(&self, name: &[u8]) -> bool {
        matches!(self, VarySpec::Names(names) if names.iter().any(|known| **known == *name))
    }

    /// The spec of names in the form of [`VarySpec::Names`], read back from storage. `None` if there are
    /// none, or they do not have that form.
    pub fn of_names(names: Vec<Box<[u8]>>) -> Option<VarySpec> {
        let is_lower = |name: &[u8]| !name.iter().any(u8::is_ascii_uppercase) || *name == *RAW_CODINGS;
        let valid = names.iter().all(|name| crate::is_token(name) && is_lower(name));
        let sorted = names.windows(2).all(|pair| pair[0] < pair[1]);
        (valid && sorted && !names.is_empty()).then_some(VarySpec::Names(names))
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

    /// Whether a response that varies on this, and was selected by the request of `key`, answers `request`.
    pub fn matches(&self, request: Fields<'_>, key: &VaryKey) -> bool {
        *self != VarySpec::Star && key.matches(request)
    }
}

/// Whether proxies write the client's address into a field of this name.
fn is_of_client(name: &[u8]) -> bool {
    matches!(Name::of(name), Name::XForwardedFor | Name::Forwarded) || name.eq_ignore_ascii_case(b"x-real-ip")
}

/// The names that a stored response varies on, with the normalised values of the request it answered: `name`
/// LF for an absent field, `name:value` LF for a present one. Keys are equal exactly when they select the
/// same requests.
///
/// The lines may be followed by the same lines as sent by that request. Most clients send what other clients
/// of their kind have sent before, and comparing that takes a fraction of the time of normalising.
#[derive(Clone, Default)]
pub struct VaryKey(Box<[u8]>);

/// Ends a key that has lines as sent, preceded by their length in one byte. No other key ends like this.
const MARK: u8 = 0;

/// No field name contains it, so no key of names begins with it.
const STAR: &[u8] = b"*:";
/// No field value contains it.
const END: u8 = b'\n';

impl VaryKey {
    /// The key as bytes, for storage.
    pub fn as_bytes(&self) -> &[u8] {
        self.parts().0
    }

    /// A key read back from storage. Bytes that are not a key match no request.
    pub fn from_bytes(bytes: impl Into<Box<[u8]>>) -> VaryKey {
        let bytes = bytes.into();
        let names = bytes.split(|&byte| byte == END).map(|line| split_line(line).0);
        let valid = bytes.is_empty()
            || (bytes.ends_with(&[END])
                && names.take(bytes.iter().filter(|&&byte| byte == END).count()).all(crate::is_token));
        let bytes = if valid { bytes } else { STAR.into() };
        VaryKey(bytes)
    }

    /// Whether the response varies on something that is not in requests, so that it answers none.
    pub fn is_star(&self) -> bool {
        *self.0 == *STAR
    }

    /// The names that the response varies on: before the first colon of each line.
    pub fn names(&self) -> VarySpec {
        let lines = self.as_bytes().split(|&byte| byte == END).filter(|line| !line.is_empty());
        let names: Vec<Box<[u8]>> = lines.map(|line| split_line(line).0.into()).collect();
        if names.is_empty() { VarySpec::None } else { VarySpec::Names(names) }
    }

    /// Whether the response varies on the field with this name, in lower case.
    pub fn has_name(&self, name: &[u8]) -> bool {
        self.as_bytes().split(|&byte| byte == END).any(|line| !line.is_empty() && split_line(line).0 == name)
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

    /// The normalised lines, and the lines as sent, if they are kept.
    fn parts(&self) -> (&[u8], &[u8]) {
        match &*self.0 {
            [lines @ .., len, MARK] => lines.split_at(lines.len().saturating_sub(usize::from(*len))),
            lines => (lines, &[]),
        }
    }
}

/// Whether the request's fields equal the normalised lines of a key.
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

/// Whether the request's fields equal these lines byte for byte, each on one line.
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

/// Appends a field as sent by the request to lines for [`was_sent`]; `None` if it has several lines.
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

/// The name at the start of a line, and the rest.
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

#[cfg(test)]
mod tests;
