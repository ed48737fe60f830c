//! The rule of a route that sends bodies in the coding that the client prefers.

use sandarac_coding::Level;
use sandarac_message::codings::{Coding, CodingWeights};
use sandarac_message::glob::Glob;
use sandarac_message::media_type::is_compressible;
use sandarac_message::range::ContentRange;
use sandarac_message::recoding::Uncompressed;
use sandarac_message::{Fields, Name};

/// Which bodies are sent in which coding.
#[derive(Clone, Debug, PartialEq)]
pub struct CompressRule {
    /// The codings that bodies are sent in, by falling preference.
    pub codings: Vec<Coding>,
    /// The media types whose bodies are compressed; those that usually shrink if it is `None`.
    pub types: Option<Vec<Glob>>,
    /// Shorter bodies are not compressed.
    pub min_size: u64,
    /// How much is spent on a smaller body.
    pub level: Level,
    /// Whether responses that set cookies or are private are compressed too.
    pub private: bool,
}

/// The body that a request gets of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyCoding {
    /// As it came; with the reason if the client would take another one.
    AsItCame(Option<Uncompressed>),
    /// In this coding, or in none.
    In(Option<Coding>),
}

/// What a request says about codings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodingWish {
    weights: CodingWeights,
    /// Whether it asks for a part of the body. Only a body as it came has parts that can be told apart.
    of_part: bool,
}

impl CodingWish {
    /// Reads it. A request without `Accept-Encoding`, or with a malformed one, accepts no coding.
    pub fn of(request: Fields<'_>) -> CodingWish {
        // One pass: every hit runs this.
        let (mut accepts, mut repeated, mut of_part) = (None, false, false);
        for field in request.iter() {
            match field.id {
                Name::Range | Name::IfRange => of_part = true,
                Name::AcceptEncoding => repeated |= accepts.replace(field.value).is_some(),
                _ => {}
            }
        }
        let weights = match accepts {
            None => Some(CodingWeights::default()),
            Some(_) if repeated => CodingWeights::of_lines(request.all(Name::AcceptEncoding)),
            Some(line) => CodingWeights::of_lines(std::iter::once(line)),
        };
        CodingWish { weights: weights.unwrap_or_default(), of_part }
    }

    /// The coding that the request prefers among those of a rule; `None` if it prefers none of them, or wants a part.
    pub fn best(&self, rule: &CompressRule) -> Option<Coding> {
        if self.of_part { None } else { self.weights.best(&rule.codings) }
    }
}

impl CompressRule {
    /// The body that a request gets of a response with this status, these fields, and `len` bytes if that is known.
    pub fn choose(
        &self,
        wish: &CodingWish,
        status: u16,
        response: Fields<'_>,
        len: Option<u64>,
    ) -> BodyCoding {
        let mut codings = response.list(Name::ContentEncoding).filter(|coding| *coding != b"identity");
        let (first, second) = (codings.next(), codings.next());
        let Some(name) = first else {
            return match wish.best(self) {
                None => BodyCoding::AsItCame(None),
                Some(coding) => match self.judge(status, response, len) {
                    Ok(()) => BodyCoding::In(Some(coding)),
                    Err(reason) => BodyCoding::AsItCame(Some(reason)),
                },
            };
        };
        match Coding::of(name).filter(|_| second.is_none()) {
            Some(coding) if wish.weights.of(coding) > 0 => BodyCoding::AsItCame(None),
            Some(_) if !has_whole_body(status) => BodyCoding::AsItCame(Some(Uncompressed::Status)),
            Some(_) if has_directive(response, b"no-transform") => {
                BodyCoding::AsItCame(Some(Uncompressed::NoTransform))
            }
            Some(_) => BodyCoding::In(None),
            None => BodyCoding::AsItCame(Some(Uncompressed::CodingUnknown)),
        }
    }

    /// Whether some client may get another body of this response than others. A 206 or 304 varies if the whole may.
    pub fn varies(&self, status: u16, response: Fields<'_>, len: Option<u64>) -> bool {
        let part = response.get(Name::ContentRange).and_then(ContentRange::parse);
        let (whole, len, has_type) = match status {
            206 => (200, part.and_then(|part| part.complete), part.is_some()),
            304 => (200, None, response.has(Name::ContentType)),
            other => (other, len, true),
        };
        if response.has(Name::ContentEncoding) {
            return has_whole_body(whole);
        }
        let takes = !has_type || self.takes(response.get(Name::ContentType));
        takes && self.judge_of_type(whole, response, len).is_ok()
    }

    /// Whether a response without a coding is compressed for clients that accept that.
    fn judge(&self, status: u16, response: Fields<'_>, len: Option<u64>) -> Result<(), Uncompressed> {
        if !self.takes(response.get(Name::ContentType)) {
            return Err(Uncompressed::Type);
        }
        self.judge_of_type(status, response, len)
    }

    /// The same, for one of a type that is compressed.
    fn judge_of_type(&self, status: u16, response: Fields<'_>, len: Option<u64>) -> Result<(), Uncompressed> {
        if len.is_some_and(|len| len < self.min_size) {
            return Err(Uncompressed::Short);
        }
        if !has_whole_body(status) {
            return Err(Uncompressed::Status);
        }
        if has_directive(response, b"no-transform") {
            return Err(Uncompressed::NoTransform);
        }
        if self.private {
            return Ok(());
        }
        if response.has(Name::SetCookie) {
            return Err(Uncompressed::SetCookie);
        }
        if has_directive(response, b"private") {
            return Err(Uncompressed::Private);
        }
        Ok(())
    }

    fn takes(&self, content_type: Option<&[u8]>) -> bool {
        let Some(content_type) = content_type else { return false };
        match &self.types {
            None => is_compressible(content_type),
            Some(types) => {
                let essence =
                    content_type.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
                let essence = essence.to_ascii_lowercase();
                types.iter().any(|pattern| pattern.matches(&essence))
            }
        }
    }
}

/// Whether a response of this status has a body that is all of a representation.
fn has_whole_body(status: u16) -> bool {
    status >= 200 && !matches!(status, 204..=206 | 304)
}

/// Whether `Cache-Control` has a directive, with an argument or without.
fn has_directive(response: Fields<'_>, directive: &[u8]) -> bool {
    response.list(Name::CacheControl).any(|member| {
        let name = member.split(|&byte| byte == b'=').next().unwrap_or_default();
        name.trim_ascii().eq_ignore_ascii_case(directive)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_message::FieldsBuf;

    fn rule() -> CompressRule {
        CompressRule {
            codings: vec![Coding::Zstd, Coding::Brotli, Coding::Gzip],
            types: None,
            min_size: 1000,
            level: Level::Normal,
            private: false,
        }
    }

    fn fields(text: &str) -> FieldsBuf {
        text.lines().filter_map(|line| line.split_once(": ")).collect()
    }

    fn chosen(rule: &CompressRule, request: &str, response: &str, len: u64) -> BodyCoding {
        let wish = CodingWish::of(fields(request).view());
        rule.choose(&wish, 200, fields(response).view(), Some(len))
    }

    #[test]
    fn text_is_compressed_and_the_rest_is_not() {
        use Uncompressed::{NoTransform, Private, SetCookie, Short, Type};
        const HTML: &str = "Content-Type: text/html; charset=utf-8";
        for (response, len, reason) in [
            (HTML, 1000, None),
            (HTML, 999, Some(Short)),
            ("Content-Type: image/png", 5000, Some(Type)),
            ("ETag: \"a\"", 5000, Some(Type)),
            (&format!("{HTML}\nCache-Control: max-age=1, No-Transform"), 5000, Some(NoTransform)),
            (&format!("{HTML}\nSet-Cookie: a=1"), 5000, Some(SetCookie)),
            (&format!("{HTML}\nCache-Control: private"), 5000, Some(Private)),
            (&format!("{HTML}\nCache-Control: private=\"x\""), 5000, Some(Private)),
            (&format!("{HTML}\nCache-Control: max-age=60\nContent-Encoding: identity"), 5000, None),
        ] {
            let expected = match reason {
                None => BodyCoding::In(Some(Coding::Gzip)),
                reason => BodyCoding::AsItCame(reason),
            };
            assert_eq!(chosen(&rule(), "Accept-Encoding: gzip", response, len), expected, "{response}");
        }
        let all = CompressRule { private: true, ..rule() };
        let personal = "Content-Type: text/html\nSet-Cookie: a=1\nCache-Control: private";
        assert_eq!(chosen(&all, "Accept-Encoding: br", personal, 5000), BodyCoding::In(Some(Coding::Brotli)));
    }

    #[test]
    fn a_request_for_a_part_gets_what_came() {
        for request in ["Range: bytes=0-1\nAccept-Encoding: gzip", "If-Range: \"a\"\nAccept-Encoding: gzip"] {
            assert_eq!(chosen(&rule(), request, "Content-Type: text/html", 5000), BodyCoding::AsItCame(None));
        }
        let gzip = "Content-Type: text/html\nContent-Encoding: gzip";
        for (request, expected) in [
            ("Range: bytes=0-1\nAccept-Encoding: gzip", BodyCoding::AsItCame(None)),
            ("Range: bytes=0-1\nAccept-Encoding: br", BodyCoding::In(None)),
            ("If-Range: \"a\"", BodyCoding::In(None)),
        ] {
            assert_eq!(chosen(&rule(), request, gzip, 5000), expected, "{request}");
        }
    }

    #[test]
    fn a_206_and_a_304_vary_if_the_whole_may() {
        for (status, response, varies) in [
            (206, "Content-Type: text/html\nContent-Range: bytes 0-9/5000", true),
            (206, "Content-Type: text/html\nContent-Range: bytes 0-9/999", false),
            (206, "Content-Type: text/html\nContent-Range: bytes 0-9/*", true),
            (206, "Content-Type: image/png\nContent-Range: bytes 0-9/5000", false),
            (206, "Content-Encoding: gzip\nContent-Range: bytes 0-9/5000", true),
            (206, "Content-Type: multipart/byteranges; boundary=x", true),
            (304, "ETag: \"a\"", true),
            (304, "Content-Type: image/png", false),
            (304, "Cache-Control: private", false),
            (204, "Content-Type: text/html", false),
        ] {
            assert_eq!(
                rule().varies(status, fields(response).view(), Some(10)),
                varies,
                "{status} {response}"
            );
        }
    }

    #[test]
    fn a_coding_that_came_is_kept_for_those_who_take_it_and_removed_for_the_others() {
        let gzip = "Content-Type: text/html\nContent-Encoding: gzip";
        for (request, expected) in [
            ("Accept-Encoding: gzip, br", BodyCoding::AsItCame(None)),
            ("Accept-Encoding: br", BodyCoding::In(None)),
            ("Accept: */*", BodyCoding::In(None)),
            ("Accept-Encoding: gzip;;", BodyCoding::In(None)),
        ] {
            assert_eq!(chosen(&rule(), request, gzip, 5), expected, "{request}");
        }
        for (codings, reason) in [
            ("gzip, br", Uncompressed::CodingUnknown),
            ("deflate", Uncompressed::CodingUnknown),
            ("gzip\nCache-Control: no-transform", Uncompressed::NoTransform),
        ] {
            let response = format!("Content-Encoding: {codings}");
            assert_eq!(chosen(&rule(), "", &response, 5), BodyCoding::AsItCame(Some(reason)), "{codings}");
        }
    }

    #[test]
    fn statuses_without_a_whole_body_stay() {
        let wish = CodingWish::of(fields("Accept-Encoding: gzip").view());
        for (status, coded) in
            [(200, true), (404, true), (500, true), (204, false), (206, false), (304, false)]
        {
            let chosen = rule().choose(&wish, status, fields("Content-Type: text/html").view(), None);
            assert_eq!(chosen == BodyCoding::In(Some(Coding::Gzip)), coded, "{status}");
        }
    }

    #[test]
    fn types_can_be_listed() {
        let rule = CompressRule { types: Some(vec![Glob::new("application/x-*")]), ..rule() };
        let of = |response: &str| chosen(&rule, "Accept-Encoding: gzip", response, 5000);
        assert_eq!(of("Content-Type: Application/X-Thing ; a=b"), BodyCoding::In(Some(Coding::Gzip)));
        assert_eq!(of("Content-Type: text/html"), BodyCoding::AsItCame(Some(Uncompressed::Type)));
    }
}
