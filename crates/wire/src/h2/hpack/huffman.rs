//! Huffman coding of strings (RFC 7541 §5.2).

use super::super::fault::Fault;
use super::huffman_code::{CODES, EOS, GROUPS, LONGEST, SHORT, SHORT_BITS, SORTED};

/// Appends what `coded` stands for to `out`. At most 8/5 as many bytes.
pub fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    out.reserve(coded.len() * 8 / 5 + 1);
    let mut rest = coded;
    // The bits that are not decoded, at the top, and their number.
    let (mut window, mut bits) = (0u64, 0usize);
    loop {
        while bits <= 56
            && let Some((&byte, after)) = rest.split_first()
        {
            window |= u64::from(byte) << (56 - bits);
            bits += 8;
            rest = after;
        }
        if bits < LONGEST {
            break;
        }
        while bits >= LONGEST {
            let (symbol, length) = symbol(window).ok_or(Fault::InvalidHuffman)?;
            out.push(symbol);
            window <<= length;
            bits -= length;
        }
    }
    // The end: padding of ones makes the rest a whole window.
    window |= u64::MAX >> bits;
    while let Some((symbol, length)) = symbol(window) {
        if length > bits {
            break;
        }
        out.push(symbol);
        window = window << length | ((1 << length) - 1);
        bits -= length;
    }
    // Fewer than eight ones remain, or the padding is wrong.
    if bits < 8 && window == u64::MAX { Ok(()) } else { Err(Fault::InvalidHuffman) }
}

/// The first symbol of a window, and its bits; `None` if it is EOS.
#[inline(always)]
fn symbol(window: u64) -> Option<(u8, usize)> {
    let (short, length) = SHORT[(window >> (64 - SHORT_BITS)) as usize];
    if length > 0 {
        return Some((short, length.into()));
    }
    long_symbol((window >> 32) as u32)
}

fn long_symbol(window: u32) -> Option<(u8, usize)> {
    for (length, group) in GROUPS.iter().enumerate().skip(SHORT_BITS + 1) {
        if window <= group.last {
            let place = group.at as usize + ((window - group.first) >> (32 - length)) as usize;
            let symbol = SORTED[place];
            return (symbol != EOS).then_some((symbol as u8, length));
        }
    }
    None
}

/// Bytes of `text` when it is coded.
pub fn coded_len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|&byte| usize::from(CODES[byte as usize].1)).sum();
    bits.div_ceil(8)
}

/// Appends `text`, coded, to `out`.
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut window, mut bits) = (0u64, 0u32);
    for &byte in text {
        let (code, length) = CODES[byte as usize];
        window = window << length | u64::from(code);
        bits += u32::from(length);
        while bits >= 8 {
            bits -= 8;
            out.push((window >> bits) as u8);
        }
    }
    if bits > 0 {
        out.push((window << (8 - bits)) as u8 | 0xff >> bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(coded: &[u8]) -> Result<Vec<u8>, Fault> {
        let mut out = Vec::new();
        decode(coded, &mut out).map(|()| out)
    }

    #[test]
    fn every_byte_in_every_position_of_a_byte() {
        for byte in 0..=u8::MAX {
            for before in 0..12 {
                let mut text = vec![b'0'; before];
                text.extend([byte, b'a', byte]);
                let mut coded = Vec::new();
                encode(&text, &mut coded);
                assert_eq!(coded.len(), coded_len(&text));
                assert_eq!(decoded(&coded), Ok(text));
            }
        }
    }

    #[test]
    fn the_example_of_appendix_c_4() {
        let coded = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(decoded(&coded), Ok(b"www.example.com".to_vec()));
    }

    #[test]
    fn padding_is_fewer_than_eight_ones() {
        assert_eq!(decoded(&[]), Ok(vec![]));
        // `0` is 00000.
        assert_eq!(decoded(&[0b0000_0111]), Ok(b"0".to_vec()));
        assert_eq!(decoded(&[0b0000_0110]), Err(Fault::InvalidHuffman));
        assert_eq!(decoded(&[0b0000_0011]), Err(Fault::InvalidHuffman));
        assert_eq!(decoded(&[0b0000_0111, 0xff]), Err(Fault::InvalidHuffman));
        assert_eq!(decoded(&[0xff]), Err(Fault::InvalidHuffman));
        // `&` is 11111000.
        assert_eq!(decoded(&[0b1111_1000]), Ok(b"&".to_vec()));
    }

    #[test]
    fn eos_is_refused() {
        assert_eq!(decoded(&[0xff; 4]), Err(Fault::InvalidHuffman));
        assert_eq!(decoded(&[0xff; 40]), Err(Fault::InvalidHuffman));
        assert_eq!(decoded(&[0x07, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0]), Err(Fault::InvalidHuffman));
    }
}
