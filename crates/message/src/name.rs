//! Known field names, as small integers.
//!
//! A name is recognised once, when the field is parsed; from then on rules compare one byte instead of a
//! string.

macro_rules! names {
    ($($variant:ident = $text:literal),* $(,)?) => {
        /// A field name that some rule uses or that browsers send with most requests, or [`Name::Other`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum Name {
            Other,
            $($variant),*
        }

        impl Name {
            /// The name in its usual spelling; empty for [`Name::Other`].
            pub const fn text(self) -> &'static str {
                match self {
                    Name::Other => "",
                    $(Name::$variant => $text),*
                }
            }

            /// Every known name.
            pub const ALL: &'static [Name] = &[$(Name::$variant),*];
        }
    };
}

names! {
    Accept = "Accept",
    AcceptCharset = "Accept-Charset",
    AcceptEncoding = "Accept-Encoding",
    AcceptLanguage = "Accept-Language",
    AcceptRanges = "Accept-Ranges",
    Age = "Age",
    Allow = "Allow",
    AltSvc = "Alt-Svc",
    Authorization = "Authorization",
    CacheControl = "Cache-Control",
    CacheGroupInvalidation = "Cache-Group-Invalidation",
    CacheGroups = "Cache-Groups",
    CacheStatus = "Cache-Status",
    CacheTag = "Cache-Tag",
    CdnCacheControl = "CDN-Cache-Control",
    Connection = "Connection",
    ContentEncoding = "Content-Encoding",
    ContentLanguage = "Content-Language",
    ContentLength = "Content-Length",
    ContentLocation = "Content-Location",
    ContentRange = "Content-Range",
    ContentType = "Content-Type",
    Cookie = "Cookie",
    Date = "Date",
    Etag = "ETag",
    Expect = "Expect",
    Expires = "Expires",
    Forwarded = "Forwarded",
    Host = "Host",
    IfMatch = "If-Match",
    IfModifiedSince = "If-Modified-Since",
    IfNoneMatch = "If-None-Match",
    IfRange = "If-Range",
    IfUnmodifiedSince = "If-Unmodified-Since",
    KeepAlive = "Keep-Alive",
    LastModified = "Last-Modified",
    Location = "Location",
    MaxForwards = "Max-Forwards",
    Origin = "Origin",
    Pragma = "Pragma",
    Priority = "Priority",
    ProxyAuthenticate = "Proxy-Authenticate",
    ProxyAuthenticationInfo = "Proxy-Authentication-Info",
    ProxyAuthorization = "Proxy-Authorization",
    ProxyConnection = "Proxy-Connection",
    ProxyStatus = "Proxy-Status",
    Range = "Range",
    Referer = "Referer",
    RequestClass = "Request-Class",
    RetryAfter = "Retry-After",
    SandaracCacheControl = "Sandarac-Cache-Control",
    SecChUa = "Sec-CH-UA",
    SecChUaMobile = "Sec-CH-UA-Mobile",
    SecChUaPlatform = "Sec-CH-UA-Platform",
    SecFetchDest = "Sec-Fetch-Dest",
    SecFetchMode = "Sec-Fetch-Mode",
    SecFetchSite = "Sec-Fetch-Site",
    SecFetchUser = "Sec-Fetch-User",
    Server = "Server",
    SetCookie = "Set-Cookie",
    SurrogateControl = "Surrogate-Control",
    SurrogateKey = "Surrogate-Key",
    Te = "TE",
    Trailer = "Trailer",
    TransferEncoding = "Transfer-Encoding",
    Upgrade = "Upgrade",
    UpgradeInsecureRequests = "Upgrade-Insecure-Requests",
    UserAgent = "User-Agent",
    Vary = "Vary",
    Via = "Via",
    Warning = "Warning",
    WorkerSkills = "Worker-Skills",
    WorkerState = "Worker-State",
    XForwardedFor = "X-Forwarded-For",
    XForwardedHost = "X-Forwarded-Host",
    XForwardedProto = "X-Forwarded-Proto",
    XKey = "xkey",
}

/// A name of up to 32 bytes as four words. Together they hold every byte of it, some twice, so that comparing
/// two names takes a few instructions instead of a loop over letters.
type Words = [u64; 4];

/// Sets the case bit of every byte.
const CASE: u64 = 0x2020_2020_2020_2020;

#[inline(always)]
const fn words(name: &[u8]) -> Option<Words> {
    let len = name.len();
    if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
        if len <= 16 {
            return Some([first, last, 0, 0]);
        }
        if len > 32 {
            return None;
        }
        let (_, rest) = name.split_at(8);
        let second = match rest.first_chunk() {
            Some(second) => u64::from_le_bytes(*second),
            None => 0,
        };
        let (rest, _) = name.split_at(len - 8);
        let third = match rest.last_chunk() {
            Some(third) => u64::from_le_bytes(*third),
            None => 0,
        };
        return Some([first, last, second, third]);
    }
    if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        return Some([u32::from_le_bytes(*first) as u64, u32::from_le_bytes(*last) as u64, 0, 0]);
    }
    if len == 0 {
        return None;
    }
    Some([name[0] as u64, name[len / 2] as u64 | (name[len - 1] as u64) << 8, 0, 0])
}

/// The case bits of the letters in `word`. In other bytes that bit is significant (`-` and CR differ in it),
/// and has to be equal.
const fn letters(word: u64) -> u64 {
    let bytes = word.to_le_bytes();
    let mut mask = [0; 8];
    let mut i = 0;
    while i < 8 {
        if bytes[i].is_ascii_alphabetic() {
            mask[i] = 0x20;
        }
        i += 1;
    }
    u64::from_le_bytes(mask)
}

/// A known name, for comparison.
#[derive(Clone, Copy)]
struct Entry {
    name: Name,
    len: u8,
    words: Words,
    letters: Words,
}

const EMPTY: Entry = Entry { name: Name::Other, len: 0, words: [0; 4], letters: [0; 4] };

const BUCKETS: usize = 512;

#[inline(always)]
const fn bucket(words: &Words, len: usize, seed: u64) -> usize {
    let mixed = (words[0] | CASE) ^ (words[1] | CASE).rotate_left(23) ^ (len as u64) << 59;
    (mixed.wrapping_mul(seed) >> 48) as usize % BUCKETS
}

/// A seed with which no two known names share a bucket, and the bucket of each.
const PERFECT: (u64, [u8; BUCKETS]) = {
    let mut seed = 0x9e37_79b9_7f4a_7c15;
    'seeds: loop {
        let mut table = [0; BUCKETS];
        let mut i = 0;
        while i < Name::ALL.len() {
            let name = Name::ALL[i].text().as_bytes();
            let at = match words(name) {
                Some(words) => bucket(&words, name.len(), seed),
                None => panic!("a known name is empty or too long"),
            };
            if table[at] != 0 {
                seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(2);
                continue 'seeds;
            }
            table[at] = Name::ALL[i] as u8;
            i += 1;
        }
        break (seed, table);
    }
};

static TABLE: [u8; BUCKETS] = PERFECT.1;

/// Indexed by [`Name`] as a number; [`Name::Other`] is first.
static ENTRIES: [Entry; Name::ALL.len() + 1] = {
    let mut entries = [EMPTY; Name::ALL.len() + 1];
    let mut i = 0;
    while i < Name::ALL.len() {
        let name = Name::ALL[i];
        let text = name.text().as_bytes();
        let Some(mut words) = words(text) else { panic!("a known name is empty or too long") };
        let mut masks = [0; 4];
        let mut k = 0;
        while k < 4 {
            masks[k] = letters(words[k]);
            words[k] |= masks[k];
            k += 1;
        }
        entries[name as usize] = Entry { name, len: text.len() as u8, words, letters: masks };
        i += 1;
    }
    entries
};

impl Name {
    /// Recognises `name` in any letter case (RFC 9110 §5.1).
    #[inline]
    pub fn of(name: &[u8]) -> Name {
        let Some(words) = words(name) else { return Name::Other };
        let entry = &ENTRIES[TABLE[bucket(&words, name.len(), PERFECT.0)] as usize];
        let differs = |k: usize| (words[k] | entry.letters[k]) ^ entry.words[k];
        let same = entry.len as usize == name.len()
            && differs(0) | differs(1) == 0
            && (name.len() <= 16 || differs(2) | differs(3) == 0);
        if same { entry.name } else { Name::Other }
    }
}

/// A set of known names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameSet([u64; 2]);

impl NameSet {
    pub(crate) const EMPTY: NameSet = NameSet([0; 2]);

    /// Every known name but these, and not [`Name::Other`].
    pub(crate) const fn known_but(names: &[Name]) -> NameSet {
        assert!(Name::ALL.len() < 128, "more names than bits");
        let mut set = [0; 2];
        let mut i = 0;
        while i < Name::ALL.len() {
            set[Name::ALL[i] as usize / 64] |= 1 << (Name::ALL[i] as usize % 64);
            i += 1;
        }
        let mut i = 0;
        while i < names.len() {
            set[names[i] as usize / 64] &= !(1 << (names[i] as usize % 64));
            i += 1;
        }
        NameSet(set)
    }

    #[inline(always)]
    pub(crate) const fn has(self, name: Name) -> bool {
        self.0[name as usize / 64 % 2] >> (name as usize % 64) & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_name_is_recognised_in_any_case() {
        for &name in Name::ALL {
            assert_eq!(Name::of(name.text().as_bytes()), name);
            assert_eq!(Name::of(name.text().to_ascii_uppercase().as_bytes()), name);
            assert_eq!(Name::of(name.text().to_ascii_lowercase().as_bytes()), name);
        }
    }

    #[test]
    fn a_set_has_all_names_but_some() {
        let set = NameSet::known_but(&[Name::Cookie, Name::XKey]);
        let lacking = |name: &&Name| !set.has(**name);
        assert_eq!(Name::ALL.iter().filter(lacking).collect::<Vec<_>>(), [&Name::Cookie, &Name::XKey]);
        assert!(!set.has(Name::Other) && !NameSet::EMPTY.has(Name::Accept));
    }

    #[test]
    fn other_names_are_other() {
        let long = "X".repeat(40);
        for name in [
            "",
            "X",
            "Cache-Contro",
            "Cache-Controls",
            "Cache\rControl",
            "Hos\u{7f}",
            "hosT\0",
            "X-Anything",
            &long,
        ] {
            assert_eq!(Name::of(name.as_bytes()), Name::Other, "{name:?}");
        }
    }
}
