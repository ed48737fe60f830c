//! Response lines, parsed in place.

use super::{Refusal, Remaining};

/// The longest line in bytes, with its CR LF. memcached's own lines are shorter: a key has 250 bytes, and the
/// longest lines are those of `stats settings`, which hold a path.
pub const MAX_LINE: usize = 2048;

/// A complete line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedLine<'a> {
    /// Bytes of the line with its CR LF. A value or the next line begins after them.
    pub len: usize,
    /// The content.
    pub line: Line<'a>,
}

/// A response line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// The answer to a meta command.
    Meta(Meta<'a>),
    /// `MN`, the answer to `mn`.
    NoOp,
    /// An error. It carries no opaque token, so it belongs to the request whose turn it is.
    Error(ErrorKind, &'a [u8]),
    /// One of many lines in the answer to `stats`.
    Stat {
        /// The name.
        name: &'a [u8],
        /// The value, which may be empty or have spaces.
        value: &'a [u8],
    },
    /// The end of the answer to `stats`.
    End,
    /// The answer to `version`.
    Version(&'a [u8]),
    /// The answer to a login that was accepted.
    Stored,
}

/// The side that an error blames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// `ERROR`: the server does not know the command. Some proxies and full servers add a text.
    Command,
    /// `CLIENT_ERROR`: the request was malformed, or not allowed before a login.
    Client,
    /// `SERVER_ERROR`: the server cannot do it.
    Server,
}

/// The answer to a meta command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta<'a> {
    /// The outcome.
    pub code: Code,
    /// The opaque token of the request.
    pub opaque: Option<u32>,
    /// The key, if the request asked for it.
    pub key: Option<&'a [u8]>,
    /// The state of the item.
    pub flags: ItemFlags,
}

/// The outcome of a meta command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// `HD`: success, without a value.
    Done,
    /// `VA`: success; a value of this many bytes follows, and CR LF.
    Value(u64),
    /// `EN`: no item, as the answer to `mg`.
    Miss,
    /// `NF`: no item, as the answer to other commands.
    NotFound,
    /// `NS`: not stored, because the mode's condition does not hold.
    NotStored,
    /// `EX`: the item has another CAS value.
    Exists,
}

/// The state of an item, as far as the request asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemFlags {
    /// The client flags (`f`).
    pub client_flags: Option<u32>,
    /// The CAS value (`c`).
    pub cas: Option<u64>,
    /// Bytes of the value (`s`).
    pub size: Option<u64>,
    /// The remaining lifetime (`t`).
    pub remaining: Option<Remaining>,
    /// Whether the item should be fetched anew, and by whom (`W`, `Z`).
    pub recache: Recache,
    /// Whether the item was invalidated (`X`).
    pub stale: bool,
}

/// The right to fetch an item anew, which the server gives to one requester.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recache {
    /// Not given.
    #[default]
    NotOffered,
    /// Given to this requester (`W`).
    Won,
    /// Given to another before (`Z`).
    Taken,
}

/// Reads a line at the start of `buf`; `None` if it is incomplete. A value of more than `max_value` bytes is
/// [`Refusal::ValueTooLarge`].
pub fn parse(buf: &[u8], max_value: u64) -> Result<Option<ParsedLine<'_>>, Refusal> {
    let window = &buf[..buf.len().min(MAX_LINE)];
    let Some(lf) = memchr::memchr(b'\n', window) else {
        return if window.len() == MAX_LINE { Err(Refusal::LineTooLong) } else { Ok(None) };
    };
    let text = window[..lf].strip_suffix(b"\r").ok_or(Refusal::BareLf)?;
    if text.iter().any(|byte| *byte < b' ' || *byte == 0x7f) {
        return Err(Refusal::ControlByte);
    }
    Ok(Some(ParsedLine { len: lf + 1, line: line(text, max_value)? }))
}

fn line(text: &[u8], max_value: u64) -> Result<Line<'_>, Refusal> {
    let (word, rest) = split(text);
    let meta = |code| Ok(Line::Meta(flags(code, rest)?));
    match word {
        b"HD" => meta(Code::Done),
        b"EN" => meta(Code::Miss),
        b"NF" => meta(Code::NotFound),
        b"NS" => meta(Code::NotStored),
        b"EX" => meta(Code::Exists),
        b"VA" => {
            let (size, rest) = split(rest);
            let size = number(size).ok_or(Refusal::InvalidSize)?;
            if size > max_value {
                return Err(Refusal::ValueTooLarge);
            }
            Ok(Line::Meta(flags(Code::Value(size), rest)?))
        }
        b"MN" => Ok(Line::NoOp),
        b"ERROR" => Ok(Line::Error(ErrorKind::Command, rest)),
        b"CLIENT_ERROR" => Ok(Line::Error(ErrorKind::Client, rest)),
        b"SERVER_ERROR" => Ok(Line::Error(ErrorKind::Server, rest)),
        b"STAT" => {
            let (name, value) = split(rest);
            if name.is_empty() { Err(Refusal::InvalidReply) } else { Ok(Line::Stat { name, value }) }
        }
        b"VERSION" => Ok(Line::Version(rest)),
        b"END" if rest.is_empty() => Ok(Line::End),
        b"STORED" if rest.is_empty() => Ok(Line::Stored),
        b"END" | b"STORED" => Err(Refusal::InvalidReply),
        _ => Err(Refusal::UnknownReply),
    }
}

/// The text before the first space, and after it.
fn split(text: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b' ', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[]),
    }
}

/// Reads flags. Unknown ones are skipped: a later version may add some, and none changes the framing.
fn flags(code: Code, text: &[u8]) -> Result<Meta<'_>, Refusal> {
    let mut meta = Meta { code, opaque: None, key: None, flags: ItemFlags::default() };
    let flags = &mut meta.flags;
    for word in text.split(|byte| *byte == b' ') {
        let Some((flag, token)) = word.split_first() else { continue };
        match flag {
            b'f' => once(&mut flags.client_flags, number(token).and_then(|flags| flags.try_into().ok()))?,
            b'c' => once(&mut flags.cas, number(token))?,
            b's' => once(&mut flags.size, number(token))?,
            b't' => once(&mut flags.remaining, remaining(token))?,
            b'O' => once(&mut meta.opaque, number(token).and_then(|opaque| opaque.try_into().ok()))?,
            b'k' => once(&mut meta.key, Some(token).filter(|key| !key.is_empty()))?,
            b'W' | b'Z' | b'X' if !token.is_empty() => return Err(Refusal::InvalidFlag),
            b'W' | b'Z' if flags.recache != Recache::NotOffered => return Err(Refusal::RepeatedFlag),
            b'W' => flags.recache = Recache::Won,
            b'Z' => flags.recache = Recache::Taken,
            b'X' if flags.stale => return Err(Refusal::RepeatedFlag),
            b'X' => flags.stale = true,
            _ => {}
        }
    }
    Ok(meta)
}

fn once<T>(place: &mut Option<T>, value: Option<T>) -> Result<(), Refusal> {
    let value = value.ok_or(Refusal::InvalidFlag)?;
    if place.replace(value).is_some() { Err(Refusal::RepeatedFlag) } else { Ok(()) }
}

fn remaining(token: &[u8]) -> Option<Remaining> {
    if token == b"-1" {
        return Some(Remaining::Unlimited);
    }
    number(token)?.try_into().ok().map(Remaining::Seconds)
}

/// A number in decimal digits, without a sign. `None` if it does not fit 64 bits.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, digit| {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 { None } else { value.checked_mul(10)?.checked_add(digit.into()) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u64 = 1024;

    /// Reads `line` with something behind it, and checks that no prefix of it is read otherwise.
    fn read(line: &str) -> Result<Line<'_>, Refusal> {
        let wire = [line.as_bytes(), b"VA 1 O9\r\nx\r\n"].concat();
        let whole = parse(&wire, MAX);
        for cut in 0..line.len() {
            let early = parse(&wire[..cut], MAX);
            assert!(early == Ok(None) || early == whole, "{line:?}, {cut}: {early:?}, {whole:?}");
        }
        let parsed = parse(line.as_bytes(), MAX)?.expect("the line is whole");
        assert_eq!(parsed.len, line.len());
        assert_eq!(whole, Ok(Some(parsed)));
        Ok(parsed.line)
    }

    fn meta(code: Code, opaque: u32, flags: ItemFlags) -> Result<Line<'static>, Refusal> {
        Ok(Line::Meta(Meta { code, opaque: Some(opaque), key: None, flags }))
    }

    #[test]
    fn outcomes_are_told_apart() {
        let none = ItemFlags::default();
        assert_eq!(read("HD O12\r\n"), meta(Code::Done, 12, none));
        assert_eq!(read("EN O1\r\n"), meta(Code::Miss, 1, none));
        assert_eq!(read("NF O2\r\n"), meta(Code::NotFound, 2, none));
        assert_eq!(read("NS O3\r\n"), meta(Code::NotStored, 3, none));
        assert_eq!(read("EX O4\r\n"), meta(Code::Exists, 4, none));
        assert_eq!(read("VA 0 O4294967295\r\n"), meta(Code::Value(0), u32::MAX, none));
        assert_eq!(read("VA 1024 O5\r\n"), meta(Code::Value(1024), 5, none));
        assert_eq!(read("MN\r\n"), Ok(Line::NoOp));
    }

    #[test]
    fn flags_of_an_item_come_in_any_order() {
        let Ok(Line::Meta(meta)) = read("VA 3 f7 c18446744073709551615 s3 t59 kkey O5 W X\r\n") else {
            panic!("a value");
        };
        let flags = ItemFlags {
            client_flags: Some(7),
            cas: Some(u64::MAX),
            size: Some(3),
            remaining: Some(Remaining::Seconds(59)),
            recache: Recache::Won,
            stale: true,
        };
        let whole = Meta { code: Code::Value(3), opaque: Some(5), key: Some(b"key"), flags };
        assert_eq!(meta, whole);
        assert_eq!(read("VA 3 X O5 W kkey t59 s3 c18446744073709551615 f7\r\n"), Ok(Line::Meta(whole)));
        let flags =
            ItemFlags { remaining: Some(Remaining::Unlimited), recache: Recache::Taken, ..flags_none() };
        assert_eq!(read("HD t-1 O6 Z\r\n"), super::tests::meta(Code::Done, 6, flags));
    }

    fn flags_none() -> ItemFlags {
        ItemFlags::default()
    }

    #[test]
    fn unknown_flags_and_spaces_between_flags_are_skipped() {
        assert_eq!(read("HD O1 h1 l7 b \r\n"), meta(Code::Done, 1, flags_none()));
        assert_eq!(read("HD  O1\r\n"), meta(Code::Done, 1, flags_none()));
    }

    #[test]
    fn the_lines_of_a_handshake_are_read() {
        assert_eq!(read("VERSION 1.6.18\r\n"), Ok(Line::Version(b"1.6.18")));
        assert_eq!(read("STORED\r\n"), Ok(Line::Stored));
        assert_eq!(
            read("STAT item_size_max 1048576\r\n"),
            Ok(Line::Stat { name: b"item_size_max", value: b"1048576" })
        );
        assert_eq!(read("STAT inter \r\n"), Ok(Line::Stat { name: b"inter", value: b"" }));
        assert_eq!(read("END\r\n"), Ok(Line::End));
    }

    #[test]
    fn errors_keep_their_text() {
        assert_eq!(read("ERROR\r\n"), Ok(Line::Error(ErrorKind::Command, b"")));
        assert_eq!(
            read("ERROR Too many open connections\r\n"),
            Ok(Line::Error(ErrorKind::Command, b"Too many open connections"))
        );
        assert_eq!(
            read("CLIENT_ERROR invalid flag\r\n"),
            Ok(Line::Error(ErrorKind::Client, b"invalid flag"))
        );
        assert_eq!(
            read("SERVER_ERROR object too large for cache\r\n"),
            Ok(Line::Error(ErrorKind::Server, b"object too large for cache"))
        );
    }

    #[test]
    fn malformed_lines_are_refused_by_name() {
        for (line, refusal) in [
            ("HD O1\n", Refusal::BareLf),
            ("HD\rO1\r\n", Refusal::ControlByte),
            ("HD\tO1\r\n", Refusal::ControlByte),
            ("HD k\0\r\n", Refusal::ControlByte),
            ("\r\n", Refusal::UnknownReply),
            ("hd O1\r\n", Refusal::UnknownReply),
            ("HDO1\r\n", Refusal::UnknownReply),
            (" HD O1\r\n", Refusal::UnknownReply),
            ("VALUE key 0 3\r\n", Refusal::UnknownReply),
            ("HTTP/1.1 400 Bad Request\r\n", Refusal::UnknownReply),
            ("-ERR unknown command 'version'\r\n", Refusal::UnknownReply),
            ("STAT\r\n", Refusal::InvalidReply),
            ("END O1\r\n", Refusal::InvalidReply),
            ("STORED 1\r\n", Refusal::InvalidReply),
            ("VA\r\n", Refusal::InvalidSize),
            ("VA  3\r\n", Refusal::InvalidSize),
            ("VA -1 O1\r\n", Refusal::InvalidSize),
            ("VA +1 O1\r\n", Refusal::InvalidSize),
            ("VA 1x O1\r\n", Refusal::InvalidSize),
            ("VA 18446744073709551616 O1\r\n", Refusal::InvalidSize),
            ("VA 1025 O1\r\n", Refusal::ValueTooLarge),
            ("VA 18446744073709551615 O1\r\n", Refusal::ValueTooLarge),
            ("HD O\r\n", Refusal::InvalidFlag),
            ("HD O-1\r\n", Refusal::InvalidFlag),
            ("HD O4294967296\r\n", Refusal::InvalidFlag),
            ("HD f4294967296\r\n", Refusal::InvalidFlag),
            ("HD t-2\r\n", Refusal::InvalidFlag),
            ("HD c\r\n", Refusal::InvalidFlag),
            ("HD k\r\n", Refusal::InvalidFlag),
            ("HD W1\r\n", Refusal::InvalidFlag),
            ("HD O1 O1\r\n", Refusal::RepeatedFlag),
            ("HD W W\r\n", Refusal::RepeatedFlag),
            ("HD W Z\r\n", Refusal::RepeatedFlag),
            ("HD X X\r\n", Refusal::RepeatedFlag),
        ] {
            assert_eq!(read(line), Err(refusal), "{line:?}");
        }
    }

    #[test]
    fn a_line_is_bounded() {
        let longest = format!("VERSION {}\r\n", "1".repeat(MAX_LINE - 10));
        assert!(matches!(read(&longest), Ok(Line::Version(_))));
        let endless = "1".repeat(MAX_LINE);
        assert_eq!(parse(endless.as_bytes(), MAX), Err(Refusal::LineTooLong));
        assert_eq!(parse(&endless.as_bytes()[1..], MAX), Ok(None));
    }
}
