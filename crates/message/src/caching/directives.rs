//! Cache-Control: the directives of requests and of responses (RFC 9111 §5.2).

use crate::{Fields, Name};

/// How stale a response a request accepts (RFC 9111 §5.2.1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaxStale {
    /// Not stale at all.
    #[default]
    No,
    /// Stale by no more than this many seconds.
    Within(u32),
    /// However stale.
    Any,
}

/// The cache directives of a request (RFC 9111 §5.2.1), including `Pragma: no-cache` if there is no
/// Cache-Control (§5.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestDirectives {
    /// Use nothing stored without validating it.
    pub no_cache: bool,
    /// Store nothing of this request or its response.
    pub no_store: bool,
    /// Respond from the cache or with 504.
    pub only_if_cached: bool,
    /// The greatest age in seconds.
    pub max_age: Option<u32>,
    /// The least freshness left, in seconds.
    pub min_fresh: Option<u32>,
    /// The accepted staleness.
    pub max_stale: MaxStale,
}

impl RequestDirectives {
    /// Reads them. The first of repeated directives counts. `max-age` and `min-fresh` that are not numbers
    /// are read as strictly as possible; `max-stale` that is not a number is ignored.
    pub fn of(fields: Fields<'_>) -> RequestDirectives {
        let mut directives = RequestDirectives::default();
        let mut controlled = false;
        let mut pragma = false;
        // One pass, because most requests have neither field and every hit runs this.
        for field in fields.iter() {
            match field.id {
                Name::CacheControl => {
                    controlled = true;
                    crate::members(field.value).for_each(|member| directives.read(Directive::of(member)));
                }
                Name::Pragma => {
                    pragma |=
                        crate::members(field.value).any(|member| member.eq_ignore_ascii_case(b"no-cache"));
                }
                _ => {}
            }
        }
        directives.no_cache |= pragma && !controlled;
        directives
    }

    /// The same for a response that was received after the request. It meets `no-cache` and `max-age`.
    pub fn of_newer_response(self) -> RequestDirectives {
        RequestDirectives { no_cache: false, max_age: None, ..self }
    }

    fn read(&mut self, directive: Directive<'_>) {
        if directive.is(b"no-cache") {
            self.no_cache = true;
        } else if directive.is(b"no-store") {
            self.no_store = true;
        } else if directive.is(b"only-if-cached") {
            self.only_if_cached = true;
        } else if directive.is(b"max-age") {
            self.max_age.get_or_insert(directive.seconds().unwrap_or(0));
        } else if directive.is(b"min-fresh") {
            self.min_fresh.get_or_insert(directive.seconds().unwrap_or(u32::MAX));
        } else if directive.is(b"max-stale") && self.max_stale == MaxStale::No {
            self.max_stale = match directive.value {
                None => MaxStale::Any,
                Some(_) => directive.seconds().map_or(MaxStale::No, MaxStale::Within),
            };
        }
    }
}

/// A flag that applies even with an argument, although none is defined for it.
const RESTRICTS: bool = true;
/// A flag that does not apply with an argument: the permission might not have been meant.
const PERMITS: bool = false;

/// The directives of a response that a shared cache obeys (RFC 9111 §5.2.2, RFC 5861, RFC 8246), from
/// whichever field applies to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ResponseDirectives {
    pub(super) no_store: bool,
    /// Without field names.
    pub(super) no_cache: bool,
    /// Without field names.
    pub(super) private: bool,
    pub(super) public: bool,
    pub(super) must_revalidate: bool,
    pub(super) proxy_revalidate: bool,
    pub(super) must_understand: bool,
    pub(super) immutable: bool,
    pub(super) max_age: Option<u32>,
    pub(super) s_maxage: Option<u32>,
    pub(super) stale_while_revalidate: Option<u32>,
    pub(super) stale_if_error: Option<u32>,
}

impl ResponseDirectives {
    /// Reads Cache-Control. In a malformed member, such as `private;max-age=60`, the words `private`,
    /// `no-store` and `no-cache` apply wherever they appear, because an origin that writes one of them wants
    /// no sharing. The first of repeated directives counts (RFC 9111 §4.2.1). A lifetime that is not a number
    /// is zero, so that the response is stale; a window that is not a number is ignored. With an argument
    /// that is not defined for it, a directive restricts as it would without, and permits nothing.
    pub(super) fn of(fields: Fields<'_>) -> ResponseDirectives {
        let mut directives = ResponseDirectives::default();
        for member in fields.list(Name::CacheControl) {
            if !is_well_formed(member) {
                directives.read_words(member);
            }
            directives.read(Directive::of(member));
        }
        directives
    }

    /// Applies the prohibiting words in a malformed member.
    fn read_words(&mut self, member: &[u8]) {
        for word in member.split(|&byte| !crate::is_tchar(byte)) {
            self.no_store |= word.eq_ignore_ascii_case(b"no-store");
            self.no_cache |= word.eq_ignore_ascii_case(b"no-cache");
            self.private |= word.eq_ignore_ascii_case(b"private");
        }
    }

    fn read(&mut self, directive: Directive<'_>) {
        let flags: [(&[u8], bool, &mut bool); 6] = [
            (b"no-store", RESTRICTS, &mut self.no_store),
            (b"public", PERMITS, &mut self.public),
            (b"must-revalidate", RESTRICTS, &mut self.must_revalidate),
            (b"proxy-revalidate", RESTRICTS, &mut self.proxy_revalidate),
            (b"must-understand", PERMITS, &mut self.must_understand),
            (b"immutable", PERMITS, &mut self.immutable),
        ];
        for (name, restricts, flag) in flags {
            if directive.is(name) {
                *flag |= restricts || directive.value.is_none();
                return;
            }
        }
        if directive.is(b"no-cache") {
            self.no_cache |= directive.field_names().is_none();
        } else if directive.is(b"private") {
            self.private |= directive.field_names().is_none();
        } else if directive.is(b"max-age") {
            self.max_age.get_or_insert(directive.seconds().unwrap_or(0));
        } else if directive.is(b"s-maxage") {
            self.s_maxage.get_or_insert(directive.seconds().unwrap_or(0));
        } else if directive.is(b"stale-while-revalidate") {
            self.stale_while_revalidate = self.stale_while_revalidate.or(directive.seconds());
        } else if directive.is(b"stale-if-error") {
            self.stale_if_error = self.stale_if_error.or(directive.seconds());
        }
    }
}

/// The field names in `no-cache="…"` and `private="…"`, which may not be reused or stored (RFC 9111 §5.2.2.4,
/// §5.2.2.7).
pub(super) fn withheld_names<'a>(fields: Fields<'a>) -> impl Iterator<Item = &'a [u8]> + Clone {
    fields
        .list(Name::CacheControl)
        .map(Directive::of)
        .filter(|directive| directive.is(b"no-cache") || directive.is(b"private"))
        .filter_map(|directive| directive.field_names())
        .flat_map(crate::members)
}

/// Whether a member is a directive (RFC 9111 §5.2): a token, optionally with a token or a quoted string as
/// its argument. The qualified forms take a quoted string only.
fn is_well_formed(member: &[u8]) -> bool {
    let Some(at) = memchr::memchr(b'=', member) else { return crate::is_token(member) };
    let (name, argument) = (&member[..at], &member[at + 1..]);
    let is_qualified = || [&b"no-cache"[..], b"private"].iter().any(|word| name.eq_ignore_ascii_case(word));
    let is_argument = match argument {
        [b'"', inner @ .., b'"'] => is_quotable(inner),
        token => crate::is_token(token) && !is_qualified(),
    };
    crate::is_token(name) && is_argument
}

/// Whether these bytes are allowed between the quotes of a quoted string (RFC 9110 §5.6.4): no quote without
/// a backslash.
fn is_quotable(inner: &[u8]) -> bool {
    let mut bytes = inner.iter();
    while let Some(byte) = bytes.next() {
        if *byte == b'"' || (*byte == b'\\' && bytes.next().is_none()) {
            return false;
        }
    }
    true
}

/// One directive of Cache-Control.
#[derive(Clone, Copy, Debug)]
struct Directive<'a> {
    /// Trimmed: a directive written `no-store =x` still restricts.
    name: &'a [u8],
    /// Without quotes. Empty if malformed, which no directive accepts as a value.
    value: Option<&'a [u8]>,
}

impl<'a> Directive<'a> {
    fn of(member: &'a [u8]) -> Directive<'a> {
        let Some(at) = memchr::memchr(b'=', member) else {
            return Directive { name: member, value: None };
        };
        let (name, value) = (&member[..at], &member[at + 1..]);
        let spaced = name.last().is_some_and(u8::is_ascii_whitespace)
            || value.first().is_some_and(u8::is_ascii_whitespace);
        let value = match value {
            _ if spaced => b"",
            [b'"', inner @ .., b'"'] => inner,
            [b'"', ..] => b"",
            token => token,
        };
        Directive { name: name.trim_ascii(), value: Some(value) }
    }

    fn is(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    fn seconds(&self) -> Option<u32> {
        delta_seconds(self.value?)
    }

    /// The field names of the qualified form. `None` if there are none, if they are not a list of names, or
    /// if one of them frames or describes the body or controls caching. The directive then counts as the
    /// stricter unqualified form (RFC 9111 §5.2.2.4).
    fn field_names(&self) -> Option<&'a [u8]> {
        let names = self.value?;
        let mut members = crate::members(names).peekable();
        members.peek()?;
        members.all(|name| crate::is_token(name) && !is_indispensable(Name::of(name))).then_some(names)
    }
}

/// Whether a response that had this field would be wrong without it.
fn is_indispensable(name: Name) -> bool {
    matches!(
        name,
        Name::Age
            | Name::CacheControl
            | Name::ContentEncoding
            | Name::ContentLength
            | Name::ContentRange
            | Name::ContentType
            | Name::Date
            | Name::Etag
            | Name::Expires
            | Name::LastModified
            | Name::TransferEncoding
            | Name::Vary
    )
}

/// Reads `delta-seconds` (RFC 9111 §1.2.2): digits only; numbers that exceed 32 bits become the maximum.
pub fn delta_seconds(text: &[u8]) -> Option<u32> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u32, |number, byte| {
        byte.is_ascii_digit().then(|| number.saturating_mul(10).saturating_add(u32::from(byte - b'0')))
    })
}
