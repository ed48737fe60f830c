//! Content codings that a request accepts (RFC 9110 §12.5.3), in the canonical form used to compare and fetch
//! variants.

use crate::weighted::Weighted;
use crate::{Fields, Name};

/// The codings that clients and origins have in common. An origin chooses among them by its own preference.
/// Weights above zero, order and rarer codings (deflate, compress) would only multiply variants.
const COMMON: [&[u8]; 3] = [b"gzip", b"br", b"zstd"];

/// The common codings that a request accepts, and whether it refuses a response without any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codings {
    accepted: [bool; COMMON.len()],
    identity_refused: bool,
}

impl Codings {
    /// Reads `Accept-Encoding` over all its lines. A request without it accepts no coding here, although by
    /// RFC 9110 it accepts any: such a response also suits clients that know none. `None` if a line is
    /// malformed.
    pub fn of(request: Fields<'_>) -> Option<Codings> {
        Codings::of_lines(request.all(Name::AcceptEncoding))
    }

    pub(crate) fn of_lines<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<Codings> {
        let (mut named, mut identity, mut others) = ([None; COMMON.len()], None, None);
        for member in lines.flat_map(crate::members) {
            let coding = Weighted::of(member)?;
            // RFC 9110 §8.4.1.3: an old spelling.
            let name = if coding.text.eq_ignore_ascii_case(b"x-gzip") { b"gzip" } else { coding.text };
            let weight = if name == b"*" {
                &mut others
            } else if name.eq_ignore_ascii_case(b"identity") {
                &mut identity
            } else if let Some(at) = COMMON.iter().position(|known| name.eq_ignore_ascii_case(known)) {
                &mut named[at]
            } else {
                continue;
            };
            // A coding that is refused anywhere is refused.
            *weight = Some(weight.map_or(coding.weight, |before: u16| before.min(coding.weight)));
        }
        Some(Codings {
            accepted: named.map(|weight| weight.or(others).unwrap_or(0) > 0),
            identity_refused: identity.or(others) == Some(0),
        })
    }

    /// Whether they include this coding.
    pub fn accepts(self, coding: &[u8]) -> bool {
        let known = COMMON.iter().position(|known| coding.eq_ignore_ascii_case(known));
        known.is_some_and(|known| self.accepted[known])
    }

    /// Whether they include each coding of a response.
    pub fn accept(self, response: Fields<'_>) -> bool {
        response.list(Name::ContentEncoding).all(|coding| self.accepts(coding))
    }

    /// The field value in pieces; none if no coding is accepted, and none is refused.
    pub(crate) fn pieces(self) -> impl Iterator<Item = &'static [u8]> {
        let accepted = COMMON.into_iter().zip(self.accepted).filter(|(_, accepted)| *accepted);
        let refused = self.identity_refused.then_some(&b"identity;q=0"[..]);
        let members = accepted.map(|(name, _)| name).chain(refused);
        members.enumerate().flat_map(|(at, member)| [if at > 0 { &b", "[..] } else { b"" }, member])
    }

    /// The equivalent value of `Accept-Encoding`.
    pub fn value(self) -> Vec<u8> {
        let value: Vec<u8> = self.pieces().flatten().copied().collect();
        if value.is_empty() { b"identity".to_vec() } else { value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldsBuf;

    #[test]
    fn what_makes_no_difference_to_origins_is_left_out() {
        for (received, canonical) in [
            ("gzip", "gzip"),
            ("GZip", "gzip"),
            ("x-gzip", "gzip"),
            ("gzip, deflate", "gzip"),
            ("gzip, deflate, br, zstd", "gzip, br, zstd"),
            ("zstd;q=0.1, br;q=1.0, gzip;q=0.5", "gzip, br, zstd"),
            ("br, gzip;q=0", "br"),
            ("br, br;q=0.000", "identity"),
            ("", "identity"),
            ("identity", "identity"),
            ("deflate, compress, dcb", "identity"),
            ("*", "gzip, br, zstd"),
            ("*, br;q=0", "gzip, zstd"),
            ("gzip, *;q=0", "gzip, identity;q=0"),
            ("gzip, *;q=0, identity;q=0.1", "gzip"),
            ("identity;q=0", "identity;q=0"),
            ("br, identity;q=0.0", "br, identity;q=0"),
        ] {
            let fields: FieldsBuf = [("Accept-Encoding", received)].into_iter().collect();
            let value = Codings::of(fields.view()).map(Codings::value);
            assert_eq!(value.as_deref(), Some(canonical.as_bytes()), "{received}");
        }
        assert_eq!(Codings::of(Fields::default()).map(Codings::value).as_deref(), Some(&b"identity"[..]));
    }

    #[test]
    fn a_response_in_another_coding_is_not_accepted() {
        let fields = |name: &str, value: &str| [(name, value)].into_iter().collect::<FieldsBuf>();
        let codings = Codings::of(fields("Accept-Encoding", "gzip, deflate, br").view()).unwrap();
        for (coding, accepted) in
            [("gzip", true), ("BR", true), ("zstd", false), ("deflate", false), ("gzip, br", true)]
        {
            assert_eq!(codings.accept(fields("Content-Encoding", coding).view()), accepted, "{coding}");
        }
        assert!(codings.accept(Fields::default()));
    }

    #[test]
    fn what_is_malformed_has_no_canonical_form() {
        for received in ["gzip;q=2", "gzip br", "gzip;level=1", "\"gzip\""] {
            let fields: FieldsBuf = [("Accept-Encoding", received)].into_iter().collect();
            assert_eq!(Codings::of(fields.view()), None, "{received}");
        }
    }
}
