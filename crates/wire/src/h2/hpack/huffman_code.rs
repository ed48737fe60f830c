//! The Huffman code of RFC 7541, Appendix B.
//!
//! The code is canonical: codes of one length are consecutive numbers in the order of their symbols, and
//! shorter codes are less. So the lengths determine it.

/// The number of symbols: all bytes, and EOS.
const SYMBOLS: usize = 257;

/// The longest code, in bits.
pub(super) const LONGEST: usize = 30;

/// The symbol that never occurs in data (RFC 7541 §5.2).
pub(super) const EOS: u16 = 256;

/// Bits of each symbol's code.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// Of each symbol: its code and the code's bits.
pub(super) static CODES: [(u32, u8); SYMBOLS] = {
    let mut codes = [(0, 0); SYMBOLS];
    let (mut code, mut length) = (0, 1);
    while length <= LONGEST {
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                codes[symbol] = (code, length as u8);
                code += 1;
            }
            symbol += 1;
        }
        code <<= 1;
        length += 1;
    }
    codes
};

/// The symbols in the order of their codes.
pub(super) static SORTED: [u16; SYMBOLS] = {
    let mut sorted = [0; SYMBOLS];
    let (mut at, mut length) = (0, 1);
    while length <= LONGEST {
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                sorted[at] = symbol as u16;
                at += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    sorted
};

/// The codes of one length.
#[derive(Clone, Copy)]
pub(super) struct Group {
    /// The first code, at the top of 32 bits.
    pub(super) first: u32,
    /// The last window of 32 bits that begins with one of these codes, or with a shorter one.
    pub(super) last: u32,
    /// The position of the first symbol in [`SORTED`].
    pub(super) at: u16,
}

/// Indexed by length. Lengths without codes have the `last` of the length before, so that no window ends
/// there.
pub(super) static GROUPS: [Group; LONGEST + 1] = {
    let mut groups = [Group { first: 0, last: 0, at: 0 }; LONGEST + 1];
    let (mut code, mut at, mut length): (u64, u16, usize) = (0, 0, 1);
    let mut last = 0;
    while length <= LONGEST {
        let first = code;
        let from = at;
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                code += 1;
                at += 1;
            }
            symbol += 1;
        }
        if at > from {
            last = ((code << (32 - length)) - 1) as u32;
        }
        groups[length] = Group { first: ((first << (32 - length)) & 0xffff_ffff) as u32, last, at: from };
        code <<= 1;
        length += 1;
    }
    groups
};

/// Bits by which [`SHORT`] is indexed.
pub(super) const SHORT_BITS: usize = 9;

/// Of each window of [`SHORT_BITS`] bits that begins with a whole code: the symbol and the code's bits. Of
/// the others: zero bits.
pub(super) static SHORT: [(u8, u8); 1 << SHORT_BITS] = {
    let mut table = [(0, 0); 1 << SHORT_BITS];
    let mut symbol = 0;
    while symbol < SYMBOLS - 1 {
        let (code, length) = CODES[symbol];
        if length as usize <= SHORT_BITS {
            let free = SHORT_BITS - length as usize;
            let mut rest = 0;
            while rest < 1 << free {
                table[((code as usize) << free) + rest] = (symbol as u8, length);
                rest += 1;
            }
        }
        symbol += 1;
    }
    table
};
