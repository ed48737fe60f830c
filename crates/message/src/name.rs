//! Field names that this project has rules about, as small integers.
//!
//! A name is recognised once, when the field is parsed; from then on rules compare one byte instead of a string.

macro_rules! names {
    ($($variant:ident = $text:literal),* $(,)?) => {
        /// A field name that some rule knows, or [`Name::Other`].
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
    Pragma = "Pragma",
    ProxyAuthenticate = "Proxy-Authenticate",
    ProxyAuthenticationInfo = "Proxy-Authentication-Info",
    ProxyAuthorization = "Proxy-Authorization",
    ProxyConnection = "Proxy-Connection",
    ProxyStatus = "Proxy-Status",
    Range = "Range",
    Referer = "Referer",
    RetryAfter = "Retry-After",
    SandaracCacheControl = "Sandarac-Cache-Control",
    Server = "Server",
    SetCookie = "Set-Cookie",
    SurrogateControl = "Surrogate-Control",
    SurrogateKey = "Surrogate-Key",
    Te = "TE",
    Trailer = "Trailer",
    TransferEncoding = "Transfer-Encoding",
    Upgrade = "Upgrade",
    UserAgent = "User-Agent",
    Vary = "Vary",
    Via = "Via",
    Warning = "Warning",
    XForwardedFor = "X-Forwarded-For",
    XForwardedHost = "X-Forwarded-Host",
    XForwardedProto = "X-Forwarded-Proto",
    XKey = "xkey",
}

/// One bucket per (length, first letter, last letter) hash; names that share a bucket follow one another.
const BUCKETS: usize = 256;

const fn bucket(name: &[u8]) -> usize {
    let first = name[0] | 0x20;
    let last = name[name.len() - 1] | 0x20;
    let middle = name[name.len() / 2] | 0x20;
    (name.len().wrapping_mul(7) ^ (first as usize).wrapping_mul(31) ^ (last as usize).wrapping_mul(5) ^ (middle as usize).wrapping_mul(67))
        % BUCKETS
}

/// Open-addressed table from bucket to name, filled at compile time.
static TABLE: [Name; BUCKETS] = {
    let mut table = [Name::Other; BUCKETS];
    let mut i = 0;
    while i < Name::ALL.len() {
        let mut at = bucket(Name::ALL[i].text().as_bytes());
        while !matches!(table[at], Name::Other) {
            at = (at + 1) % BUCKETS;
        }
        table[at] = Name::ALL[i];
        i += 1;
    }
    table
};

impl Name {
    /// Recognises `name` in any letter case (RFC 9110 §5.1).
    pub fn of(name: &[u8]) -> Name {
        if name.is_empty() {
            return Name::Other;
        }
        let mut at = bucket(name);
        loop {
            let candidate = TABLE[at];
            if candidate == Name::Other || candidate.text().as_bytes().eq_ignore_ascii_case(name) {
                return candidate;
            }
            at = (at + 1) % BUCKETS;
        }
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
    fn other_names_are_other() {
        for name in ["", "X", "Cache-Contro", "Cache-Controls", "Hos\u{7f}", "X-Anything"] {
            assert_eq!(Name::of(name.as_bytes()), Name::Other, "{name:?}");
        }
    }
}
