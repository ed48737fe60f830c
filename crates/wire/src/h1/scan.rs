//! Searching for delimiters, sixteen bytes at a time.
//!
//! For each class of bytes, a `marks` function returns a bit for each byte of a block that is *not* in the
//! class, and a predicate handles the bytes that do not fill a block.

/// The bytes checked at a time.
const BLOCK: usize = 16;

/// The first position from `from`, which is at most the length, of a byte outside the class; the length if
/// there is none.
#[inline(always)]
fn find(bytes: &[u8], from: usize, marks: fn(&[u8; BLOCK]) -> u32, is_member: fn(u8) -> bool) -> usize {
    let mut rest = &bytes[from..];
    while let Some((block, after)) = rest.split_first_chunk() {
        let marks = marks(block);
        if marks != 0 {
            return bytes.len() - rest.len() + marks.trailing_zeros() as usize;
        }
        rest = after;
    }
    let at = bytes.len() - rest.len();
    match bytes.last_chunk() {
        // The last block, without the part of it that was already checked.
        Some(block) => {
            let marks = marks(block) >> (BLOCK - rest.len());
            if marks == 0 { bytes.len() } else { at + marks.trailing_zeros() as usize }
        }
        None => at + rest.iter().take_while(|&&byte| is_member(byte)).count(),
    }
}

/// The first position from `from` of a byte not allowed in a field value: a control byte other than HTAB (RFC
/// 9110 §5.5). The length if there is none.
#[inline(always)]
pub(crate) fn find_value_end(bytes: &[u8], from: usize) -> usize {
    let at = find_control(bytes, from);
    // Nearly all values end at the first control byte, the CR.
    if bytes.get(at) == Some(&b'\t') { find_value_end_after_tab(bytes, at) } else { at }
}

#[cold]
fn find_value_end_after_tab(bytes: &[u8], tab: usize) -> usize {
    let mut at = tab;
    while bytes.get(at) == Some(&b'\t') {
        at = find_control(bytes, at + 1);
    }
    at
}

/// The first position from `from` of a control byte; the length if there is none.
#[inline(always)]
pub(crate) fn find_control(bytes: &[u8], from: usize) -> usize {
    find(bytes, from, block::control_marks, |byte| byte >= b' ' && byte != 0x7f)
}

/// The first position from `from` of a space or control byte; the length if there is none.
#[inline(always)]
pub(crate) fn find_target_end(bytes: &[u8], from: usize) -> usize {
    find(bytes, from, block::target_marks, |byte| byte > b' ' && byte != 0x7f)
}

/// The first position from `from` of a byte that is not a letter, digit, hyphen or full stop, the bytes of
/// nearly all tokens and hosts; the length if there is none.
#[inline(always)]
pub(crate) fn find_plain_end(bytes: &[u8], from: usize) -> usize {
    find(bytes, from, block::plain_marks, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
}

/// The first position from `from` of a byte not allowed in a token (RFC 9110 §5.6.2); the length if there is
/// none.
#[inline(always)]
pub(crate) fn find_token_end(bytes: &[u8], from: usize) -> usize {
    let mut at = find_plain_end(bytes, from);
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

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[allow(unsafe_code)]
mod block {
    use super::BLOCK;
    use std::arch::x86_64::*;

    /// Marks control bytes.
    #[inline(always)]
    pub(crate) fn control_marks(block: &[u8; BLOCK]) -> u32 {
        #[target_feature(enable = "sse2")]
        #[inline]
        fn marks(bytes: __m128i) -> i32 {
            _mm_movemask_epi8(controls(bytes, 0x1f))
        }
        // SAFETY: this module is only compiled where SSE2 is available.
        unsafe { marks(load(block)) as u32 }
    }

    /// Marks spaces and control bytes.
    #[inline(always)]
    pub(crate) fn target_marks(block: &[u8; BLOCK]) -> u32 {
        #[target_feature(enable = "sse2")]
        #[inline]
        fn marks(bytes: __m128i) -> i32 {
            _mm_movemask_epi8(controls(bytes, b' '))
        }
        // SAFETY: this module is only compiled where SSE2 is available.
        unsafe { marks(load(block)) as u32 }
    }

    /// Marks bytes that are not letters, digits, hyphens or full stops.
    #[inline(always)]
    pub(crate) fn plain_marks(block: &[u8; BLOCK]) -> u32 {
        #[target_feature(enable = "sse2")]
        #[inline]
        fn marks(bytes: __m128i) -> i32 {
            let lower = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
            let letters = within(lower, b'a', 25);
            let digits = within(bytes, b'0', 9);
            let stops = within(bytes, b'-', 1);
            _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(letters, digits), stops)) ^ 0xffff
        }
        // SAFETY: this module is only compiled where SSE2 is available.
        unsafe { marks(load(block)) as u32 }
    }

    /// Bytes up to `last`, and DEL.
    #[target_feature(enable = "sse2")]
    #[inline]
    fn controls(bytes: __m128i, last: u8) -> __m128i {
        let del = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));
        _mm_or_si128(del, _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(last as i8)), bytes))
    }

    /// Bytes from `first` to `first + span`.
    #[target_feature(enable = "sse2")]
    #[inline]
    fn within(bytes: __m128i, first: u8, span: u8) -> __m128i {
        let above = _mm_sub_epi8(bytes, _mm_set1_epi8(first as i8));
        _mm_cmpeq_epi8(_mm_min_epu8(above, _mm_set1_epi8(span as i8)), above)
    }

    #[target_feature(enable = "sse2")]
    #[inline]
    fn load(block: &[u8; BLOCK]) -> __m128i {
        // SAFETY: the load needs sixteen readable bytes at any alignment, which a block has.
        unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
mod block {
    use super::BLOCK;

    #[inline(always)]
    fn marks(block: &[u8; BLOCK], is_marked: fn(u8) -> bool) -> u32 {
        block.iter().enumerate().fold(0, |marks, (at, &byte)| marks | u32::from(is_marked(byte)) << at)
    }

    /// Marks control bytes.
    #[inline(always)]
    pub(crate) fn control_marks(block: &[u8; BLOCK]) -> u32 {
        marks(block, |byte| byte < b' ' || byte == 0x7f)
    }

    /// Marks spaces and control bytes.
    #[inline(always)]
    pub(crate) fn target_marks(block: &[u8; BLOCK]) -> u32 {
        marks(block, |byte| byte <= b' ' || byte == 0x7f)
    }

    /// Marks bytes that are not letters, digits, hyphens or full stops.
    #[inline(always)]
    pub(crate) fn plain_marks(block: &[u8; BLOCK]) -> u32 {
        marks(block, |byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'-' | b'.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_are_found_wherever_they_stand() {
        for byte in 0..=255u8 {
            let control = byte < 0x20 || byte == 0x7f;
            for len in [3, 15, 16, 17, 40] {
                for at in 0..len {
                    let expect = |outside: bool| if outside { at } else { len };
                    for filler in [b'!', b'a', b'~', 0x80, 0xff] {
                        let mut bytes = [filler; 40];
                        bytes[at] = byte;
                        let bytes = &bytes[..len];
                        assert_eq!(find_value_end(bytes, 0), expect(control && byte != b'\t'), "{byte:#x}");
                        assert_eq!(find_target_end(bytes, 0), expect(control || byte == b' '), "{byte:#x}");
                        assert_eq!(find_target_end(bytes, at), expect(control || byte == b' '), "{byte:#x}");
                        assert_eq!(find_target_end(bytes, at + 1), len);
                    }
                    for filler in [b'Z', b'-', b'_', b'0'] {
                        let mut bytes = [filler; 40];
                        bytes[at] = byte;
                        let end = expect(!sandarac_message::is_tchar(byte));
                        assert_eq!(find_token_end(&bytes[..len], 0), end, "{byte:#x} at {at} of {len}");
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_is_found_in_nothing() {
        assert_eq!((find_value_end(b"", 0), find_target_end(b"", 0), find_token_end(b"", 0)), (0, 0, 0));
        assert_eq!(find_value_end(&[b'a'; 16], 16), 16);
    }
}
