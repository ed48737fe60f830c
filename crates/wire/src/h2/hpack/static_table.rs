//! The static table (RFC 7541, Appendix A).

use sandarac_message::Name;

/// Names and values. The first has index 1.
#[rustfmt::skip]
pub(super) static ENTRIES: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// The index of the first entry with a known name; 0 if there is none.
#[inline]
pub(super) fn index_of(name: Name) -> u8 {
    INDICES[name as usize]
}

/// The index of the first entry with a name that [`Name`] does not know; 0 if there is none.
pub(super) fn index_of_other(lower_case: &[u8]) -> u8 {
    match lower_case {
        b"access-control-allow-origin" => 20,
        b"content-disposition" => 25,
        b"from" => 37,
        b"link" => 45,
        b"refresh" => 52,
        b"strict-transport-security" => 56,
        b"www-authenticate" => 61,
        _ => 0,
    }
}

static INDICES: [u8; Name::ALL.len() + 1] = {
    let mut indices = [0; Name::ALL.len() + 1];
    let mut known = 0;
    while known < Name::ALL.len() {
        let name = Name::ALL[known];
        let mut at = ENTRIES.len();
        while at > 0 {
            at -= 1;
            if name.text().as_bytes().eq_ignore_ascii_case(ENTRIES[at].0.as_bytes()) {
                indices[name as usize] = at as u8 + 1;
            }
        }
        known += 1;
    }
    indices
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_table_is_found_at_its_first_entry() {
        for (at, (name, _)) in ENTRIES.iter().enumerate().filter(|(_, (name, _))| !name.starts_with(':')) {
            let known = Name::of(name.as_bytes());
            let found = if known == Name::Other { index_of_other(name.as_bytes()) } else { index_of(known) };
            assert_eq!(usize::from(found), at + 1, "{name}");
        }
        assert_eq!(index_of(Name::Other), 0);
        assert_eq!(index_of(Name::CacheStatus), 0);
    }
}
