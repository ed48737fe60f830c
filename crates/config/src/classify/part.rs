//! Names of the parts of a request that classes are made of.

use sandarac_message::is_token;
use sandarac_policy::ClassPart;

use crate::report::Complaint;
use crate::suggest::closest;

/// The largest segment number.
const DEEPEST: u32 = 100;

/// The names of parts; those that end in a colon take a word after it.
const NAMES: [&str; 9] =
    ["host", "path", "query", "target", "method", "segment:", "header:", "cookie:", "query:"];

/// Reads the name of a part, one of `allowed`, which are of [`NAMES`].
pub(crate) fn read_part(text: &str, allowed: &[&str]) -> Result<ClassPart, Complaint> {
    let unknown = || {
        let complaint = Complaint::new(format!("{text:?} is no part of a request"));
        let name = text.split_once(':').map_or(text, |(name, _)| name);
        match closest(name, &allowed.iter().map(|name| name.trim_end_matches(':')).collect::<Vec<_>>()) {
            Some(meant) if meant != name => complaint.help(format!("did you mean `{meant}`?")),
            _ => complaint.help(format!("known: {}", allowed.join(", "))),
        }
    };
    let (name, word) = text.split_once(':').map_or((text, None), |(name, word)| (name, Some(word)));
    let key = if word.is_some() { format!("{name}:") } else { name.to_owned() };
    if !allowed.contains(&&*key) {
        return Err(unknown());
    }
    Ok(match (name, word) {
        ("host", None) => ClassPart::Host,
        ("path", None) => ClassPart::Path,
        ("query", None) => ClassPart::Query,
        ("target", None) => ClassPart::Target,
        ("method", None) => ClassPart::Method,
        ("segment", Some(number)) => ClassPart::Segment(segment_number(number)?),
        ("header", Some(word)) => ClassPart::Header(token(word, "a field")?),
        ("cookie", Some(word)) => ClassPart::Cookie(token(word, "a cookie")?),
        ("query", Some(word)) => ClassPart::Parameter(parameter(word)?),
        _ => return Err(unknown()),
    })
}

/// Reads the name of any part.
pub(crate) fn template_part(text: &str) -> Result<ClassPart, Complaint> {
    read_part(text, &NAMES)
}

fn token(word: &str, of: &str) -> Result<Box<str>, Complaint> {
    match is_token(word.as_bytes()) && word.len() <= 64 {
        true => Ok(word.into()),
        false => Err(Complaint::new(format!("{word:?} is not the name of {of}"))),
    }
}

fn parameter(word: &str) -> Result<Box<str>, Complaint> {
    let letter = |byte: u8| byte.is_ascii_graphic() && !b"&=#{}".contains(&byte);
    match (1..=64).contains(&word.len()) && word.bytes().all(letter) {
        true => Ok(word.into()),
        false => Err(Complaint::new(format!("{word:?} is not the name of a query parameter"))),
    }
}

/// The number of a segment.
pub(crate) fn segment_number(text: &str) -> Result<u32, Complaint> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number @ 1..=DEEPEST) if digits => Ok(number),
        _ => Err(Complaint::new(format!("{text:?} is not a number from 1 to {DEEPEST}"))
            .help("the first segment of /a/b is 1")),
    }
}
