//! Faults in coded bodies.

use std::fmt;

/// Why a coded body cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecodeError {
    /// It ends before its end is marked.
    Truncated,
    /// It is not in the coding that it is said to have, or damaged.
    Corrupt,
    /// Bytes follow its end.
    TrailingBytes,
    /// It grows beyond all reason: [`BURST`](crate::BURST) and [`RATIO`](crate::RATIO).
    Bomb,
    /// It asks for a window of more than 8 MiB, which clients of the web do not accept either (RFC 9659 §3).
    Window,
    /// It grows beyond the bound of the caller. Nothing is wrong with it otherwise.
    TooLong,
}

impl DecodeError {
    /// Every error.
    pub const ALL: [DecodeError; 6] = [
        DecodeError::Truncated,
        DecodeError::Corrupt,
        DecodeError::TrailingBytes,
        DecodeError::Bomb,
        DecodeError::Window,
        DecodeError::TooLong,
    ];

    /// Its name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            DecodeError::Truncated => "coding-truncated",
            DecodeError::Corrupt => "coding-corrupt",
            DecodeError::TrailingBytes => "coding-trailing-bytes",
            DecodeError::Bomb => "coding-bomb",
            DecodeError::Window => "coding-window",
            DecodeError::TooLong => "coding-too-long",
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DecodeError::Truncated => "the coded body ends early",
            DecodeError::Corrupt => "the body is not in its coding, or damaged",
            DecodeError::TrailingBytes => "bytes after the end of the coded body",
            DecodeError::Bomb => "the coded body grows beyond all reason",
            DecodeError::Window => "the coded body needs a window of more than 8 MiB",
            DecodeError::TooLong => "the decoded body is longer than its bound",
        })
    }
}

impl std::error::Error for DecodeError {}
