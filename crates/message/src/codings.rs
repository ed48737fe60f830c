//! Content codings that a request accepts (RFC 9110 §12.5.3), in the canonical form used to compare and fetch
//! variants.

use crate::weighted::Weighted;
use crate::{Fields, Name};

/// A content coding that clients and origins have in common. An origin chooses among them by its own preference. Weights
/// above zero, order and rarer codings (deflate, compress) would only multiply variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// gzip (RFC 1952).
    Gzip,
    /// Brotli (RFC 7932).
    Brotli,
    /// Zstandard (RFC 8878, RFC 9659).
    Zstd,
}

impl Coding {
    /// Every coding.
    pub const ALL: [Coding; 3] = [Coding::Gzip, Coding::Brotli, Coding::Zstd];

    /// Its name in `Content-Encoding` and `Accept-Encoding`.
    pub const fn name(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
        }
    }

    /// The coding of this name, in any letter case; `x-gzip` is an old spelling of `gzip` (RFC 9110 §8.4.1.3).
    pub fn of(name: &[u8]) -> Option<Coding> {
        if name.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Coding::Gzip);
        }
        Coding::ALL.into_iter().find(|coding| name.eq_ignore_ascii_case(coding.name().as_bytes()))
    }

    /// Its position in [`Coding::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The weights, in thousandths, that a request gives to content codings (RFC 9110 §12.5.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodingWeights {
    named: [Option<u16>; Coding::ALL.len()],
    identity: Option<u16>,
    others: Option<u16>,
}

impl CodingWeights {
    /// Reads lines of `Accept-Encoding`. A coding that is refused anywhere is refused. `None` if a line is malformed.
    pub fn of_lines<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<CodingWeights> {
        let mut weights = CodingWeights::default();
        for member in lines.flat_map(crate::members) {
            let coding = Weighted::of(member)?;
            let weight = if let Some(known) = Coding::of(coding.text) {
                &mut weights.named[known.index()]
            } else if coding.text == b"*" {
                &mut weights.others
            } else if coding.text.eq_ignore_ascii_case(b"identity") {
                &mut weights.identity
            } else {
                continue;
            };
            *weight = Some(weight.map_or(coding.weight, |before: u16| before.min(coding.weight)));
        }
        Some(weights)
    }

    /// The weight of a coding; 0 if it is not accepted.
    pub fn of(&self, coding: Coding) -> u16 {
        self.named[coding.index()].or(self.others).unwrap_or(0)
    }

    /// The weight of a response without a coding, if the request gives it one.
    pub fn identity(&self) -> Option<u16> {
        self.identity.or(self.others)
    }

    /// The best of `codings`, which are in the order of the server's preference: that of the greatest weight, or the first
    /// of several. `None` if the request accepts none, or prefers a response without a coding.
    pub fn best(&self, codings: &[Coding]) -> Option<Coding> {
        let mut best = None;
        let mut least = self.identity.unwrap_or(0);
        for &coding in codings {
            let weight = self.of(coding);
            if weight > 0 && (weight > least || (best.is_none() && weight == least)) {
                (best, least) = (Some(coding), weight);
            }
        }
        best
    }
}

/// The common codings that a request accepts, and whether it refuses a response without any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codings {
    accepted: [bool; Coding::ALL.len()],
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
        let weights = CodingWeights::of_lines(lines)?;
        Some(Codings {
            accepted: Coding::ALL.map(|coding| weights.of(coding) > 0),
            identity_refused: weights.identity() == Some(0),
        })
    }

    /// Whether they include this coding.
    pub fn accepts(self, coding: &[u8]) -> bool {
        Coding::of(coding).is_some_and(|coding| self.accepted[coding.index()])
    }

    /// Whether they include each coding of a response.
    pub fn accept(self, response: Fields<'_>) -> bool {
        response.list(Name::ContentEncoding).all(|coding| self.accepts(coding))
    }

    /// The field value in pieces; none if no coding is accepted, and none is refused.
    pub(crate) fn pieces(self) -> impl Iterator<Item = &'static [u8]> {
        let accepted = Coding::ALL.into_iter().zip(self.accepted).filter(|(_, accepted)| *accepted);
        let refused = self.identity_refused.then_some(&b"identity;q=0"[..]);
        let members = accepted.map(|(coding, _)| coding.name().as_bytes()).chain(refused);
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
    fn the_greatest_weight_wins_and_then_the_servers_order() {
        use Coding::{Brotli, Gzip, Zstd};
        for (received, best) in [
            ("gzip, deflate, br, zstd", Some(Zstd)),
            ("gzip, br", Some(Brotli)),
            ("x-gzip", Some(Gzip)),
            ("gzip;q=1.0, br;q=0.9, zstd;q=0.8", Some(Gzip)),
            ("gzip;q=0.001", Some(Gzip)),
            ("gzip;q=0, br;q=0", None),
            ("*", Some(Zstd)),
            ("*;q=0.5, zstd;q=0", Some(Brotli)),
            ("identity, gzip;q=0.5", None),
            ("identity, gzip", Some(Gzip)),
            ("identity;q=0, gzip;q=0.1", Some(Gzip)),
            ("deflate", None),
            ("", None),
        ] {
            let weights = CodingWeights::of_lines(std::iter::once(received.as_bytes())).expect("well-formed");
            assert_eq!(weights.best(&[Zstd, Brotli, Gzip]), best, "{received}");
        }
    }

    #[test]
    fn codings_are_known_by_name() {
        for (name, coding) in [
            ("GZIP", Some(Coding::Gzip)),
            ("X-Gzip", Some(Coding::Gzip)),
            ("br", Some(Coding::Brotli)),
            ("deflate", None),
        ] {
            assert_eq!(Coding::of(name.as_bytes()), coding);
        }
        Coding::ALL.iter().enumerate().for_each(|(at, coding)| assert_eq!(coding.index(), at));
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
