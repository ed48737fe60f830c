//! Bodies that are a function of what they claim to be, so that every byte of them can be checked anywhere.
//!
//! A page is a line that names place, version, length, owner and a digest of these, then filler made from the digest; all of it
//! cut to the length. The line also goes into the field `X-Page`, for responses whose body does not hold it.

use std::fmt;

use crate::random::{STEP, mix};

/// The response field with the line of a page.
pub(crate) const FIELD: &str = "X-Page";

/// What a body claims to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Host and target.
    pub(crate) place: String,
    pub(crate) version: u64,
    /// Bytes of the whole body.
    pub(crate) length: u64,
    /// For whom it is: a user, a variant or a nonce; `-` for everyone.
    pub(crate) owner: String,
}

/// Why a body is not that of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The first byte that is wrong, counted from the beginning of the page.
    Byte(u64),
    /// The length of the body where the page has another.
    Length(u64),
}

impl Page {
    /// The page of a line that [`Page`] displays; `None` if it is no such line, or its digest is wrong.
    pub(crate) fn parse(line: &str) -> Option<Page> {
        let mut words = line.split(' ');
        let mut value = |name: &str| words.next()?.strip_prefix(name);
        let page = Page {
            place: value("page=")?.to_owned(),
            version: value("version=")?.parse().ok()?,
            length: value("length=")?.parse().ok()?,
            owner: value("owner=")?.to_owned(),
        };
        (page.to_string() == line).then_some(page)
    }

    /// A digest of everything that the page claims.
    pub(crate) fn digest(&self) -> u64 {
        let mut digest = mix(self.version ^ mix(self.length));
        for text in [&self.place, &self.owner] {
            digest = mix(digest ^ text.len() as u64);
            for byte in text.bytes() {
                digest = mix(digest ^ u64::from(byte)).wrapping_add(STEP);
            }
        }
        digest
    }

    /// The bytes of the page from `start` on, as many of `count` as it has.
    pub(crate) fn bytes(&self, start: u64, count: usize) -> Vec<u8> {
        let count = (self.length.saturating_sub(start)).min(count as u64) as usize;
        let line = format!("{self}\n").into_bytes();
        let mut bytes = Vec::with_capacity(count + 8);
        if (start as usize) < line.len() {
            bytes.extend_from_slice(&line[start as usize..line.len().min(start as usize + count)]);
        }
        let digest = self.digest();
        while bytes.len() < count {
            let at = start + bytes.len() as u64 - line.len() as u64;
            let word = filler(digest, at / 8).to_le_bytes();
            bytes.extend_from_slice(&word[(at % 8) as usize..]);
        }
        bytes.truncate(count);
        bytes
    }

    /// Whether `bytes` are those of the page from `start` on; they may end before it does.
    pub(crate) fn check(&self, start: u64, bytes: &[u8]) -> Result<(), Fault> {
        let line = format!("{self}\n").into_bytes();
        let fault = |at: usize| Err(Fault::Byte(start + at as u64));
        let in_line = line.len().saturating_sub(start as usize).min(bytes.len());
        for at in 0..in_line {
            if bytes[at] != line[start as usize + at] {
                return fault(at);
            }
        }
        let digest = self.digest();
        let mut at = in_line;
        while at < bytes.len() {
            let place = start + at as u64 - line.len() as u64;
            let word = filler(digest, place / 8).to_le_bytes();
            let word = &word[(place % 8) as usize..];
            let piece = &bytes[at..bytes.len().min(at + word.len())];
            if piece != &word[..piece.len()] {
                let wrong = piece.iter().zip(word).position(|(one, other)| one != other).unwrap_or(0);
                return fault(at + wrong);
            }
            at += piece.len();
        }
        if start + bytes.len() as u64 > self.length {
            return Err(Fault::Length(start + bytes.len() as u64));
        }
        Ok(())
    }

    /// Whether `body` is the whole page.
    pub(crate) fn check_whole(&self, body: &[u8]) -> Result<(), Fault> {
        self.check(0, body)?;
        if body.len() as u64 == self.length { Ok(()) } else { Err(Fault::Length(body.len() as u64)) }
    }
}

/// Word `number` of the filler of a page.
fn filler(digest: u64, number: u64) -> u64 {
    mix(digest.wrapping_add(number.wrapping_mul(STEP)))
}

impl fmt::Display for Page {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Page { place, version, length, owner } = self;
        write!(
            out,
            "page={place} version={version} length={length} owner={owner} digest={:016x}",
            self.digest()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        Page { place: "a.example/x".to_owned(), version: 3, length: 1000, owner: "-".to_owned() }
    }

    #[test]
    fn a_line_is_read_back() {
        assert_eq!(Page::parse(&page().to_string()), Some(page()));
        let wrong = page().to_string().replace("version=3", "version=4");
        assert_eq!(Page::parse(&wrong), None, "the digest belongs to another version");
        assert_eq!(Page::parse(&format!("{} more", page())), None);
        assert_eq!(Page::parse(""), None);
    }

    #[test]
    fn a_whole_body_checks_out_and_any_flipped_byte_is_found() {
        let body = page().bytes(0, usize::MAX);
        assert_eq!(body.len(), 1000);
        assert_eq!(page().check_whole(&body), Ok(()));
        for at in 0..body.len() {
            let mut wrong = body.clone();
            wrong[at] ^= 1;
            assert_eq!(page().check_whole(&wrong), Err(Fault::Byte(at as u64)));
        }
    }

    #[test]
    fn a_body_of_another_url_version_length_or_owner_is_found() {
        let others = [
            Page { place: "a.example/y".to_owned(), ..page() },
            Page { version: 4, ..page() },
            Page { length: 1001, ..page() },
            Page { owner: "user-1".to_owned(), ..page() },
        ];
        for other in others {
            assert!(page().check_whole(&other.bytes(0, usize::MAX)).is_err(), "{other}");
            // From the middle of the filler, too.
            assert!(page().check(500, &other.bytes(500, 8)).is_err(), "{other}");
        }
    }

    #[test]
    fn a_body_that_is_too_short_or_too_long_is_found() {
        let body = page().bytes(0, usize::MAX);
        assert_eq!(page().check_whole(&body[..999]), Err(Fault::Length(999)));
        let longer = Page { length: 1000, ..page() };
        assert!(longer.check_whole(&[body, vec![0]].concat()).is_err());
    }

    #[test]
    fn every_part_checks_out_at_its_place_and_nowhere_else() {
        let body = page().bytes(0, usize::MAX);
        for start in [0, 1, 50, 76, 77, 78, 79, 80, 81, 500, 991, 999] {
            let part = page().bytes(start, 9);
            assert_eq!(part, &body[start as usize..body.len().min(start as usize + 9)]);
            assert_eq!(page().check(start, &part), Ok(()));
            assert!(page().check(start + 1, &part).is_err());
        }
    }

    #[test]
    fn a_page_shorter_than_its_line_is_the_beginning_of_it() {
        let short = Page { length: 10, ..page() };
        assert_eq!(short.bytes(0, 100), b"page=a.exa");
        assert_eq!(short.check_whole(b"page=a.exa"), Ok(()));
        let empty = Page { length: 0, ..page() };
        assert_eq!(empty.check_whole(b""), Ok(()));
    }
}
