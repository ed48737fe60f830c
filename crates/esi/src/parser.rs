//! The parser: bytes in any pieces become parts in order.

use std::ops::Range;

use crate::tag::{Include, Tag};
use crate::text::Variable;

/// The longest tag, its brackets included. No URL that servers accept is longer.
pub const MAX_TAG: usize = 8 << 10;

/// The longest variable, `$(` and `)` included.
const MAX_VARIABLE: usize = 256;

/// A part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// These bytes of the body. Several ranges may follow one another.
    Text(Range<u64>),
    /// A fragment.
    Include(Box<Include>),
    /// The value of a variable.
    Variable(Variable),
}

/// Reads a body.
#[derive(Debug, Default)]
pub struct Parser {
    /// The position of the next byte.
    at: u64,
    /// The position of the first byte of text that was not reported.
    text_from: u64,
    /// The bytes before `at` that may be markup.
    held: Vec<u8>,
    /// What they are, as far as that is known.
    kind: Kind,
    /// Whether the text is that of `<esi:vars>`.
    has_variables: bool,
    /// Whether the text is that of `<esi:remove>`.
    is_removed: bool,
    /// Whether the text is that of `<!--esi`.
    is_commented: bool,
}

/// What held bytes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// The beginning of any markup.
    #[default]
    Unknown,
    /// A tag; with the quote that has to be closed.
    Tag(Option<u8>),
    /// A variable.
    Variable,
}

/// What the held bytes turn out to be.
enum Verdict {
    /// More bytes decide.
    Open,
    /// So many bytes at the beginning are text.
    Text(usize),
    /// All of them are markup.
    Markup(Markup),
}

enum Markup {
    CommentBegin,
    CommentEnd,
    Tag,
    Variable,
}

impl Parser {
    /// A parser at the beginning of a body.
    pub fn new() -> Parser {
        Parser::default()
    }

    /// Takes the next bytes, and adds the parts that they complete. All text that is known to be text is among them.
    pub fn push(&mut self, mut bytes: &[u8], parts: &mut Vec<Part>) {
        while !bytes.is_empty() {
            if self.held.is_empty() {
                let text = self.find_markup(bytes).unwrap_or(bytes.len());
                self.at += text as u64;
                bytes = &bytes[text..];
            }
            let Some((&byte, rest)) = bytes.split_first() else { break };
            bytes = rest;
            self.held.push(byte);
            self.at += 1;
            self.judge_held(byte, parts);
        }
        self.report_text(parts);
    }

    /// Ends the body. Markup that is not whole is text.
    pub fn finish(mut self, parts: &mut Vec<Part>) {
        self.held.clear();
        self.report_text(parts);
    }

    /// The position of the first byte that was neither reported nor left out.
    pub(crate) fn undecided_from(&self) -> u64 {
        self.text_from
    }

    /// The first byte that may begin markup.
    fn find_markup(&self, bytes: &[u8]) -> Option<usize> {
        match (self.is_commented, self.has_variables) {
            (false, false) => memchr::memchr(b'<', bytes),
            (true, false) => memchr::memchr2(b'<', b'-', bytes),
            (false, true) => memchr::memchr2(b'<', b'$', bytes),
            (true, true) => memchr::memchr3(b'<', b'-', b'$', bytes),
        }
    }

    /// Judges the held bytes, of which `last` is new.
    fn judge_held(&mut self, last: u8, parts: &mut Vec<Part>) {
        loop {
            match self.verdict(last) {
                Verdict::Open => return,
                Verdict::Text(len) => {
                    self.kind = Kind::Unknown;
                    self.held.drain(..len);
                    let text = self.find_markup(&self.held).unwrap_or(self.held.len());
                    self.held.drain(..text);
                    if self.held.is_empty() {
                        return;
                    }
                }
                Verdict::Markup(markup) => {
                    self.report_text(parts);
                    self.text_from = self.at;
                    self.kind = Kind::Unknown;
                    let held = std::mem::take(&mut self.held);
                    self.apply(markup, &held, parts);
                    self.held = held;
                    self.held.clear();
                    return;
                }
            }
        }
    }

    fn verdict(&mut self, last: u8) -> Verdict {
        match self.kind {
            Kind::Unknown => self.begun(),
            // Well-formed markup has no bare `<` in a value (XML 1.0 §2.4), so this one begins something else.
            Kind::Tag(_) if last == b'<' => Verdict::Text(self.held.len() - 1),
            Kind::Tag(None) if last == b'>' => Verdict::Markup(Markup::Tag),
            Kind::Tag(quote) => {
                self.kind = Kind::Tag(match (quote, last) {
                    (None, b'"' | b'\'') => Some(last),
                    (Some(quote), _) if quote == last => None,
                    (quote, _) => quote,
                });
                if self.held.len() == MAX_TAG { Verdict::Text(MAX_TAG) } else { Verdict::Open }
            }
            Kind::Variable => match last {
                b')' => Verdict::Markup(Markup::Variable),
                b'<' | b'$' => Verdict::Text(self.held.len() - 1),
                _ if self.held.len() == MAX_VARIABLE => Verdict::Text(MAX_VARIABLE),
                _ => Verdict::Open,
            },
        }
    }

    /// The verdict on bytes that are the beginning of some markup, or not.
    fn begun(&mut self) -> Verdict {
        let markups: [(&[u8], bool); 5] = [
            (b"<esi:", true),
            (b"</esi:", true),
            (b"<!--esi", true),
            (b"-->", self.is_commented),
            (b"$(", self.has_variables),
        ];
        let held = &self.held[..];
        let Some((markup, _)) = markups.iter().find(|(markup, counts)| *counts && markup.starts_with(held))
        else {
            return Verdict::Text(1);
        };
        if markup.len() > held.len() {
            return Verdict::Open;
        }
        match held {
            b"<!--esi" => return Verdict::Markup(Markup::CommentBegin),
            b"-->" => return Verdict::Markup(Markup::CommentEnd),
            b"$(" => self.kind = Kind::Variable,
            _ => self.kind = Kind::Tag(None),
        }
        Verdict::Open
    }

    fn apply(&mut self, markup: Markup, held: &[u8], parts: &mut Vec<Part>) {
        match markup {
            Markup::CommentBegin => self.is_commented = true,
            Markup::CommentEnd => self.is_commented = false,
            Markup::Variable => {
                let variable = held.get(2..held.len() - 1).and_then(Variable::parse);
                parts.extend(variable.filter(|_| !self.is_removed).map(Part::Variable));
            }
            Markup::Tag => match Tag::parse(held) {
                Tag::RemoveEnd => self.is_removed = false,
                _ if self.is_removed => {}
                Tag::Remove => self.is_removed = true,
                Tag::Vars => self.has_variables = true,
                Tag::VarsEnd => self.has_variables = false,
                Tag::Include(include) => parts.push(Part::Include(include)),
                Tag::Nothing => {}
            },
        }
    }

    /// Reports the text before the held bytes.
    fn report_text(&mut self, parts: &mut Vec<Part>) {
        let end = self.at - self.held.len() as u64;
        if self.text_from < end && !self.is_removed {
            parts.push(Part::Text(self.text_from..end));
        }
        self.text_from = end;
    }
}
