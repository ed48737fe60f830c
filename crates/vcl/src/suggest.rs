//! "Did you mean": the known word that is closest to an unknown one.

/// The candidate probably meant by `word`, if one is near enough: up to a third of its letters wrong,
/// missing, added or swapped with their neighbour. Case does not count.
pub fn closest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // Longer words are not typing errors, and the comparison takes quadratic time.
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let (distance, candidate) = candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&word, candidate), candidate))
        .min_by_key(|&(distance, _)| distance)?;
    (distance <= word.chars().count().max(candidate.len()) / 3).then_some(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood_and_other_words_are_not() {
        let words = ["set", "unset", "call", "return"];
        assert_eq!(closest("retrun", words), Some("return"));
        assert_eq!(closest("SET", words), Some("set"));
        assert_eq!(closest("unste", words), Some("unset"));
        assert_eq!(closest("deliver", words), None);
        assert_eq!(closest("", words), None);
        assert_eq!(closest(&"r".repeat(100_000), words), None);
    }
}
