//! Faults in items of the shared tier.

crate::faults::faults! {
    /// Why an item is not used, or cannot be written. A reader treats the item as absent and counts the
    /// fault; a log that is not used has lost its position.
    EntryError {
        /// It does not begin with [`super::MAGIC`].
        Magic = "magic" "not an item of Sandarac",
        /// A version other than [`super::VERSION`].
        Version = "version" "unknown version of the format",
        /// A number that is no [`super::Kind`].
        Kind = "kind" "unknown kind of item",
        /// A purge log where another item is expected, or the other way round.
        UnexpectedKind = "unexpected-kind" "not the kind of item that belongs under its key",
        /// It ends before its declared end.
        Truncated = "truncated" "the item ends early",
        /// Bytes follow its declared end.
        TrailingBytes = "trailing-bytes" "bytes after the end of the item",
        /// It has a checksum, and the reader has a secret.
        Unsealed = "unsealed" "not sealed, and this node has a secret",
        /// It is sealed by a secret, and the reader has none.
        Sealed = "sealed" "sealed, and this node has no secret",
        /// It is sealed by a secret that the reader does not have.
        UnknownSecret = "unknown-secret" "sealed by another secret",
        /// The checksum does not match the content and the key.
        Checksum = "checksum" "the checksum does not match",
        /// The keyed digest does not match the content and the key.
        Seal = "seal" "the seal does not match",
        /// A body, a text, a list or a record beyond its bound.
        TooLarge = "too-large" "larger than the format allows",
        /// A TTL of zero or above [`super::MAX_TTL`].
        Ttl = "ttl" "the TTL is zero or above 30 days",
        /// A flag of the lifetimes that has no meaning.
        Lifetimes = "lifetimes" "unknown flags of lifetimes",
        /// An unknown coding of the body at rest.
        Coding = "coding" "unknown coding of the body",
        /// A compressed body that is damaged, or has another length than it declares.
        Inflated = "inflated" "the body does not inflate to its length",
        /// The head is refused by the parser of responses, is not in the form that is stored, has fields of
        /// the connection, or shows clients a field for caches only.
        Head = "head" "not the head of a stored response",
        /// An interim status, 206 or 304.
        Status = "status" "not the status of a complete response",
        /// Content-Length disagrees with the body, or a status without a body has one.
        Length = "length" "the head announces another length",
        /// The names or values of Vary are not in their normal form, or answer no request.
        Vary = "vary" "not the key of a variant",
        /// The number of chunks does not follow from the total and the size, or exceeds
        /// [`super::MAX_CHUNKS`].
        Chunks = "chunks" "the chunks do not add up to the body",
        /// An unknown reason of a mark.
        Mark = "mark" "unknown reason of a mark",
        /// An unknown form or effect of a purge, a time out of range, or a ban that is no UTF-8.
        Purge = "purge" "not a purge that is known here",
        /// A position in another log: the server has lost the one it refers to.
        OtherLog = "other-log" "the position is of another purge log",
        /// A position before the first record that is still in the log.
        BeforeLog = "before-log" "the position is older than the purge log",
        /// A position past the end of the log: records are missing.
        BeyondLog = "beyond-log" "the position is beyond the purge log",
    }
}

impl std::fmt::Display for EntryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name(), self.text())
    }
}

impl std::error::Error for EntryError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_its_number_and_its_own_name() {
        for (at, error) in EntryError::ALL.iter().enumerate() {
            assert_eq!(*error as usize, at, "{error}");
            assert_eq!(EntryError::ALL.iter().filter(|other| other.name() == error.name()).count(), 1);
        }
    }
}
