//! Finding delimiters, eight bytes at a time.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = ONES << 7;

/// The first position from `from` of a byte below `LOW` or of DEL; the length where there is none.
#[inline(always)]
fn find_low<const LOW: u8>(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(block) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*block);
        let low = word.wrapping_sub(ONES * LOW as u64);
        let del = (word ^ (ONES * 0x7f)).wrapping_sub(ONES);
        // A borrow can only raise a false mark above a true one, and the lowest mark is the one taken.
        let marks = (low | del) & !word & HIGHS;
        if marks != 0 {
            return at + marks.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while at < bytes.len() && bytes[at] >= LOW && bytes[at] != 0x7f {
        at += 1;
    }
    at
}

/// The first position from `from` of a byte that cannot stand in a field value: a control byte other than HTAB
/// (RFC 9110 §5.5). The length where there is none.
#[inline(always)]
pub(super) fn find_value_end(bytes: &[u8], from: usize) -> usize {
    let mut at = find_low::<0x20>(bytes, from);
    while bytes.get(at) == Some(&b'\t') {
        at = find_low::<0x20>(bytes, at + 1);
    }
    at
}

/// The first position from `from` of a space or control byte; the length where there is none.
#[inline(always)]
pub(super) fn find_target_end(bytes: &[u8], from: usize) -> usize {
    find_low::<0x21>(bytes, from)
}

/// The first position from `from` of a byte that cannot stand in a token (RFC 9110 §5.6.2); the length where there is
/// none.
#[inline(always)]
pub(super) fn find_token_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < bytes.len() && TCHAR[bytes[at] as usize] {
        at += 1;
    }
    at
}

static TCHAR: [bool; 256] = {
    let mut table = [false; 256];
    let text = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut i = 0;
    while i < text.len() {
        table[text[i] as usize] = true;
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_are_found_wherever_they_stand() {
        for byte in 0..=255u8 {
            for filler in [b'!', b'~', 0x80, 0xff] {
                for at in 0..40 {
                    let mut bytes = [filler; 40];
                    bytes[at] = byte;
                    let control = byte < 0x20 || byte == 0x7f;
                    let value_end = if control && byte != b'\t' { at } else { 40 };
                    assert_eq!(find_value_end(&bytes, 0), value_end, "{byte:#x} at {at}");
                    let target_end = if control || byte == b' ' { at } else { 40 };
                    assert_eq!(find_target_end(&bytes, 0), target_end, "{byte:#x} at {at}");
                    assert_eq!(find_target_end(&bytes, at), target_end, "{byte:#x} at {at}");
                }
            }
            assert_eq!(find_token_end(&[byte], 0) == 1, sandarac_message::is_tchar(byte), "{byte:#x}");
        }
    }
}
