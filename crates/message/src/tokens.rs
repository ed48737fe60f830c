//! Tokens (RFC 9110 §5.6.2), and the bytes they are made of.

/// Whether `bytes` is a token (RFC 9110 §5.6.2).
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_tchar(byte))
}

/// Whether `byte` is allowed in a token (RFC 9110 §5.6.2).
pub fn is_tchar(byte: u8) -> bool {
    TCHARS[byte as usize]
}

const TCHARS: [bool; 256] = alphanumeric_or(b"!#$%&'*+-.^_`|~");

/// Marks the bytes that are ASCII letters, digits or one of `marks`.
pub(crate) const fn alphanumeric_or(marks: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < marks.len() {
        table[marks[at] as usize] = true;
        at += 1;
    }
    table
}
