//! A hash for rings, tables and class keys: fast, well spread, and the same on every machine, so that several
//! balancers send a class to the same backend. It does not resist chosen collisions by itself; use a secret
//! seed against these.

/// 2⁶⁴ divided by the golden ratio, and odd: its multiples are spread evenly.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes all bits of `z` into all others: the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The hash of `bytes` under `seed`.
pub fn hash(bytes: &[u8], seed: u64) -> u64 {
    let mut state = mix(seed ^ (bytes.len() as u64).wrapping_mul(STEP));
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        state = mix(state.wrapping_add(STEP) ^ u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(state.wrapping_add(STEP) ^ u64::from_le_bytes(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_the_length_and_the_seed_count() {
        let texts: [&[u8]; 8] =
            [b"", b"\0", b"\0\0", b"a", b"abcdefgh", b"abcdefgi", b"abcdefgh\0", b"bbcdefgh"];
        let mut hashes: Vec<_> = texts.iter().flat_map(|text| [hash(text, 0), hash(text, 1)]).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 16);
    }

    #[test]
    fn hashes_are_the_same_everywhere() {
        assert_eq!(hash(b"www.example.com", 0), hash(b"www.example.com", 0));
        let buckets = (0..64_000_u32).fold([0_u32; 64], |mut buckets, n| {
            buckets[(hash(format!("site-{n}").as_bytes(), 0) % 64) as usize] += 1;
            buckets
        });
        assert!(buckets.iter().all(|count| (850..1150).contains(count)), "{buckets:?}");
    }
}
