//! Integers (RFC 7541 §5.1).

use super::super::fault::Fault;

/// Reads an integer whose first `bits` bits are the low ones of the first byte, and returns it with its
/// bytes. At most 2^28 - 1 + 2^8: no table or string here is larger.
#[inline]
pub(super) fn read(bytes: &[u8], bits: u32) -> Result<(usize, usize), Fault> {
    let mask = (1usize << bits) - 1;
    let first = usize::from(*bytes.first().ok_or(Fault::TruncatedBlock)?) & mask;
    if first < mask {
        return Ok((first, 1));
    }
    let mut value = first;
    for at in 1..=4 {
        let byte = *bytes.get(at).ok_or(Fault::TruncatedBlock)?;
        value += usize::from(byte & 0x7f) << (7 * (at - 1));
        if byte & 0x80 == 0 {
            return Ok((value, at + 1));
        }
    }
    Err(Fault::InvalidInteger)
}

/// Writes `value` with its first `bits` bits below `flags`.
#[inline]
pub(super) fn write(out: &mut Vec<u8>, flags: u8, bits: u32, value: usize) {
    let mask = (1usize << bits) - 1;
    if value < mask {
        return out.push(flags | value as u8);
    }
    out.push(flags | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_appendix_c_1() {
        for (value, bits, bytes) in [(10, 5, &[10][..]), (1337, 5, &[31, 154, 10]), (42, 8, &[42])] {
            let mut out = Vec::new();
            write(&mut out, 0, bits, value);
            assert_eq!(out, bytes);
            assert_eq!(read(&out, bits), Ok((value, bytes.len())));
        }
    }

    #[test]
    fn an_integer_of_many_bytes_is_refused() {
        assert_eq!(read(&[31, 0x80, 0x80, 0x80, 0x80, 0], 5), Err(Fault::InvalidInteger));
        assert_eq!(read(&[31, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], 5), Err(Fault::InvalidInteger));
        assert_eq!(read(&[31, 0x80], 5), Err(Fault::TruncatedBlock));
        assert_eq!(read(&[], 5), Err(Fault::TruncatedBlock));
    }
}
