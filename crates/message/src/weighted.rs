//! Members of weighted lists.

/// A member of a weighted list (RFC 9110 §12.4.2).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weighted<'a> {
    pub(crate) text: &'a [u8],
    /// Thousandths.
    pub(crate) weight: u16,
}

impl<'a> Weighted<'a> {
    /// Reads `text` or `text;q=weight`; nothing else.
    pub(crate) fn of(member: &'a [u8]) -> Option<Weighted<'a>> {
        if crate::is_token(member) {
            return Some(Weighted { text: member, weight: 1000 });
        }
        let mut parts = member.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let text = parts.next()?;
        let weight = match (parts.next(), parts.next()) {
            (None, _) => 1000,
            (Some([b'q' | b'Q', b'=', weight @ ..]), None) => thousandths(weight)?,
            _ => return None,
        };
        crate::is_token(text).then_some(Weighted { text, weight })
    }
}

/// A weight in thousandths (RFC 9110 §12.4.2).
pub(crate) fn thousandths(text: &[u8]) -> Option<u16> {
    let (whole, fraction) = match text {
        [whole] => (*whole, &[][..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (*whole, fraction),
        _ => return None,
    };
    let mut number = 0;
    for at in 0..3 {
        let digit = *fraction.get(at).unwrap_or(&b'0');
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number * 10 + u16::from(digit - b'0');
    }
    match whole {
        b'0' => Some(number),
        b'1' if number == 0 => Some(1000),
        _ => None,
    }
}
