//! Refusals of responses.

crate::faults::faults! {
    /// Why a response was refused. The connection MUST be closed, because it is unknown where the next
    /// response begins.
    Refusal {
        /// A line of more than [`super::MAX_LINE`] bytes.
        LineTooLong = "line-too-long" "response line too long",
        /// LF without CR.
        BareLf = "bare-lf" "LF without CR",
        /// A control byte in a line; CR without LF is one.
        ControlByte = "control-byte" "control byte in a response line",
        /// A line that begins with no known word.
        UnknownReply = "unknown-reply" "unknown response",
        /// Words where none can be, or none where one must be.
        InvalidReply = "invalid-reply" "malformed response line",
        /// The size of a value is not a number.
        InvalidSize = "invalid-size" "invalid size of a value",
        /// A value larger than the caller's bound.
        ValueTooLarge = "value-too-large" "value larger than the bound",
        /// A flag whose token is missing or is not a number of its range.
        InvalidFlag = "invalid-flag" "invalid flag",
        /// A flag that occurs twice, or two flags that contradict each other.
        RepeatedFlag = "repeated-flag" "repeated or contradictory flags",
        /// A value that is not followed by CR LF.
        InvalidValueEnd = "invalid-value-end" "no CR LF after a value",
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Refusal {}
