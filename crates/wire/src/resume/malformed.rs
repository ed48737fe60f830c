//! Faults in a résumé and in the fields of its protocol.

crate::faults::faults! {
    /// Why a whole field or document is ignored. The fault is counted and never fails a request.
    Malformed {
        /// Not a structured field of the type, or not a JSON object.
        Syntax = "syntax" "not a structured field, or not a JSON object",
        /// More bytes than [`super::MAX_FIELD`], [`super::MAX_SKILLS_FIELD`] or [`super::MAX_DOCUMENT`].
        TooLarge = "too-large" "too many bytes",
        /// More classes than [`super::MAX_CLASSES`].
        TooMany = "too-many" "too many classes",
        /// Neither a String nor a Byte Sequence, longer than [`super::MAX_CLASS`], or a JSON name that is not
        /// a class.
        Class = "class" "not a class of at most 256 bytes",
        /// Missing, not a number, or out of bounds.
        Score = "score" "not a score above 0 and at most 1e9",
        /// Missing, or not 1 to 32 letters, digits, `-` and `_`.
        Id = "id" "not an instance of 1 to 32 letters, digits, - and _",
        /// Missing, or not an integer from 1.
        Rev = "rev" "not a revision of 1 or more",
        /// Missing, or not an integer from 0.
        InFlight = "inflight" "not a number of requests",
        /// Not an integer from 1.
        Concurrency = "concurrency" "not a number of requests, 1 or more",
        /// Not 1 to [`super::MAX_VERSION`] bytes of 0x20 to 0x7E.
        Version = "version" "not a version of 1 to 128 printable bytes",
        /// Missing, or not an integer from 1.
        History = "history" "not a history of 1 request or more",
        /// Missing, or not a JSON object.
        Skills = "skills" "no object of skills",
        /// Missing, or not 16 hexadecimal digits in lower case.
        By = "by" "not a fingerprint of 16 hexadecimal digits",
        /// Not `<instance>.<revision>`.
        Known = "known" "not an instance and a revision",
    }
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name(), self.text())
    }
}

impl std::error::Error for Malformed {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_stands_at_its_own_number() {
        for (at, reason) in Malformed::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, at, "{reason}");
        }
    }
}
