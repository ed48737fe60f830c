//! Numbers in decimal digits. Every response has some, and the formatter of the standard library takes ten
//! times as long.

/// The digits of `value`, at the end of `buffer`.
pub fn digits(value: u64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut at = buffer.len();
    let mut rest = value;
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &buffer[at..];
        }
    }
}

/// Appends the digits of `value` to `out`.
pub fn append(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(digits(value, &mut [0; 20]));
}

#[cfg(test)]
mod tests {
    use super::append;

    #[test]
    fn digits_are_those_of_the_standard_library() {
        for value in [0, 7, 10, 99, 100, 18_446_744_073_709_551_615] {
            let mut out = b"n=".to_vec();
            append(&mut out, value);
            assert_eq!(out, format!("n={value}").into_bytes());
        }
    }
}
