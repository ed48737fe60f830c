//! "Did you mean": the known word that is closest to an unknown one.

/// The candidate probably meant by `word`, if one is near enough: up to a third of its letters wrong, missing, added or
/// swapped with their neighbour, or one a prefix of the other.
pub fn closest<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    // Longer words are not typing errors, and the comparison takes quadratic time.
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    let word = word.to_ascii_lowercase().replace('-', "_");
    let near = candidates
        .iter()
        .map(|&candidate| (strsim::osa_distance(&word, candidate), candidate))
        .min_by_key(|&(d, _)| d)?;
    if near.0 <= (word.chars().count().max(near.1.len()) / 3).max(1) {
        return Some(near.1);
    }
    let begins =
        |candidate: &&str| word.len() >= 3 && (candidate.starts_with(&word) || word.starts_with(*candidate));
    candidates.iter().copied().find(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood_and_other_words_are_not() {
        let names = ["backends", "balance", "max_in_flight", "connect_timeout"];
        assert_eq!(closest("backend", &names), Some("backends"));
        assert_eq!(closest("balacne", &names), Some("balance"));
        assert_eq!(closest("max-in-flight", &names), Some("max_in_flight"));
        assert_eq!(closest("connect", &names), Some("connect_timeout"));
        assert_eq!(closest("memory", &names), None);
        assert_eq!(closest("", &names), None);
        assert_eq!(closest("x", &[]), None);
        assert_eq!(closest(&"b".repeat(100_000), &names), None);
    }
}
