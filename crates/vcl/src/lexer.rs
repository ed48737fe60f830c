//! Bytes to tokens and comments.

use crate::diagnostic::Diagnostic;
use crate::rules;
use crate::source::{FileId, Span};
use crate::token::{Comment, StringKind, Token, TokenKind};

/// A file in tokens.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    /// The tokens in the order of the file; the last is [`TokenKind::End`].
    pub tokens: Vec<Token>,
    /// The comments in the order of the file.
    pub comments: Vec<Comment>,
    /// The mistakes of the lexer.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether `max_tokens` was reached before the end of the file.
    pub is_cut: bool,
}

/// The tokens of a file, at most `max_tokens`. Reading stops early after `max_errors` mistakes.
///
/// Texts longer than 4 GiB are not accepted; [`crate::Limits`] prevent them.
pub fn lex(file: FileId, text: &[u8], max_tokens: usize, max_errors: usize) -> Tokens {
    let mut lexer = Lexer { file, text, at: 0, reported_at: None, out: Tokens::default() };
    lexer.skip_byte_order_mark();
    loop {
        lexer.skip_blank();
        if lexer.at >= text.len() || lexer.out.diagnostics.len() >= max_errors {
            break;
        }
        if lexer.out.tokens.len() >= max_tokens {
            lexer.out.is_cut = true;
            break;
        }
        lexer.token();
    }
    let end = text.len();
    let is_damaged = lexer.out.is_cut || lexer.reported_at == Some(end);
    let end = end as u32;
    lexer.out.tokens.push(Token { kind: TokenKind::End, is_damaged, start: end, end });
    lexer.out
}

/// The state of the lexer. Strings, comments and blocks of C are read by `lexer_text`.
pub(crate) struct Lexer<'t> {
    pub(crate) file: FileId,
    pub(crate) text: &'t [u8],
    /// The next byte.
    pub(crate) at: usize,
    /// The end of the last mistake that no token holds.
    pub(crate) reported_at: Option<usize>,
    pub(crate) out: Tokens,
}

impl Lexer<'_> {
    pub(crate) fn rest(&self) -> &[u8] {
        &self.text[self.at..]
    }

    pub(crate) fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start as u32, end as u32)
    }

    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        self.out.diagnostics.push(diagnostic);
    }

    /// Adds a token from `at` to `end`, and goes on after it.
    pub(crate) fn push(&mut self, kind: TokenKind, end: usize, is_damaged: bool) {
        let is_damaged = is_damaged || self.reported_at == Some(self.at);
        self.out.tokens.push(Token { kind, is_damaged, start: self.at as u32, end: end as u32 });
        self.at = end;
    }

    fn skip_byte_order_mark(&mut self) {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        if self.text.starts_with(MARK) {
            let span = self.span(0, MARK.len());
            let message = "the file begins with a byte order mark";
            self.report(Diagnostic::new(&rules::BYTE_ORDER_MARK, span, message).mend(
                "save the file as UTF-8 without a byte order mark",
                span,
                "",
            ));
            self.at = MARK.len();
        }
    }

    /// Skips blanks, and collects comments.
    fn skip_blank(&mut self) {
        loop {
            let blanks = self.rest().iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
            let blanks = blanks.count();
            if blanks > 0 && self.reported_at == Some(self.at) {
                self.reported_at = Some(self.at + blanks);
            }
            self.at += blanks;
            if !self.comment() {
                return;
            }
        }
    }

    fn token(&mut self) {
        match self.text[self.at] {
            b'C' if self.rest().starts_with(b"C{") => self.inline_c(),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.name(),
            b'0'..=b'9' => self.number(),
            b'"' if self.rest().starts_with(b"\"\"\"") => self.long_string(StringKind::Triple),
            b'"' => self.short_string(),
            b'{' if self.rest().starts_with(b"{\"") => self.long_string(StringKind::Long),
            b':' => self.colon(),
            b'\'' | b'`' => self.foreign_string(),
            0xe2 if self.rest().starts_with("“".as_bytes()) || self.rest().starts_with("‘".as_bytes()) => {
                self.foreign_string();
            }
            _ => self.punctuation(),
        }
    }

    fn name(&mut self) {
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let end = self.at + self.rest().iter().take_while(is_part).count();
        let starts_badly = self.text[self.at] == b'_';
        if starts_badly {
            let after_dot = self.out.tokens.last().is_some_and(|token| token.kind == TokenKind::Dot);
            let message = "a name begins with a letter, not with `_`";
            let mut diagnostic =
                Diagnostic::new(&rules::NAME_CHARACTER, self.span(self.at, self.at + 1), message);
            if after_dot {
                let name = String::from_utf8_lossy(&self.text[self.at..end]).into_owned();
                let quoted = format!("\"{name}\"");
                let text = format!("write the name of a header field in quotes: `{quoted}`");
                diagnostic = diagnostic.mend(text, self.span(self.at, end), quoted);
            }
            self.report(diagnostic);
        }
        self.push(TokenKind::Name, end, false);
    }

    fn number(&mut self) {
        let digits = |from: usize| from + self.text[from..].iter().take_while(|b| b.is_ascii_digit()).count();
        let mut end = digits(self.at);
        let mut kind = TokenKind::Integer;
        if self.text.get(end) == Some(&b'.') {
            kind = TokenKind::Real;
            end = digits(end + 1);
        }
        // varnishd counts digits: 15 of an integer, 12 before and 3 after the point of a real number.
        let (limit, whole) = match kind {
            TokenKind::Integer => (15, end - self.at),
            _ => (12, digits(self.at) - self.at),
        };
        let decimals = (end - self.at).saturating_sub(whole + 1);
        let is_long = whole > limit || decimals > 3;
        if is_long {
            let message = match kind {
                TokenKind::Integer => format!("an integer has at most 15 digits, this one has {whole}"),
                _ if decimals > 3 => format!("a number has at most 3 decimals, this one has {decimals}"),
                _ => format!("a number has at most 12 digits before the point, this one has {whole}"),
            };
            self.report(Diagnostic::new(&rules::NUMBER_RANGE, self.span(self.at, end), message));
        }
        self.push(kind, end, false);
    }

    /// A BLOB literal, whose base64 the parser checks, or a colon.
    fn colon(&mut self) {
        let is_base64 = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
        let length = self.text[self.at + 1..].iter().take_while(is_base64).count();
        let end = self.at + 1 + length;
        if self.text.get(end) != Some(&b':') {
            if self.rest().starts_with(b":=") {
                return self.foreign_operator(":=", "=", TokenKind::Assign);
            }
            return self.push(TokenKind::Colon, self.at + 1, false);
        }
        self.push(TokenKind::Blob, end + 1, false);
    }

    fn punctuation(&mut self) {
        const FOREIGN: &[(&str, &str, TokenKind)] = &[
            ("===", "==", TokenKind::Equal),
            ("!==", "!=", TokenKind::NotEqual),
            ("<>", "!=", TokenKind::NotEqual),
            ("=~", "~", TokenKind::Match),
            ("~=", "~", TokenKind::Match),
            ("!=~", "!~", TokenKind::NotMatch),
            ("~!", "!~", TokenKind::NotMatch),
            ("~~", "~", TokenKind::Match),
        ];
        const DOUBLE: &[(&[u8], TokenKind)] = &[
            (b"==", TokenKind::Equal),
            (b"!=", TokenKind::NotEqual),
            (b"<=", TokenKind::LessOrEqual),
            (b">=", TokenKind::GreaterOrEqual),
            (b"!~", TokenKind::NotMatch),
            (b"&&", TokenKind::And),
            (b"||", TokenKind::Or),
            (b"+=", TokenKind::AddAssign),
            (b"-=", TokenKind::SubtractAssign),
            (b"*=", TokenKind::MultiplyAssign),
            (b"/=", TokenKind::DivideAssign),
        ];
        for &(written, meant, kind) in FOREIGN {
            if self.rest().starts_with(written.as_bytes()) {
                return self.foreign_operator(written, meant, kind);
            }
        }
        for &(text, kind) in DOUBLE {
            if self.rest().starts_with(text) {
                return self.push(kind, self.at + 2, false);
            }
        }
        let kind = match self.text[self.at] {
            b'{' => TokenKind::OpenBrace,
            b'}' => TokenKind::CloseBrace,
            b'(' => TokenKind::OpenParenthesis,
            b')' => TokenKind::CloseParenthesis,
            b'[' => TokenKind::OpenBracket,
            b']' => TokenKind::CloseBracket,
            b';' => TokenKind::Semicolon,
            b',' => TokenKind::Comma,
            b'.' => TokenKind::Dot,
            b'=' => TokenKind::Assign,
            b'<' => TokenKind::Less,
            b'>' => TokenKind::Greater,
            b'~' => TokenKind::Match,
            b'!' => TokenKind::Not,
            b'+' => TokenKind::Plus,
            b'-' => TokenKind::Minus,
            b'*' => TokenKind::Star,
            b'/' => TokenKind::Slash,
            b'%' => TokenKind::Percent,
            b'&' => return self.foreign_operator("&", "&&", TokenKind::And),
            b'|' => return self.foreign_operator("|", "||", TokenKind::Or),
            _ => return self.unknown(),
        };
        self.push(kind, self.at + 1, false);
    }

    /// An operator of another language.
    fn foreign_operator(&mut self, written: &str, meant: &str, kind: TokenKind) {
        let end = self.at + written.len();
        let span = self.span(self.at, end);
        let message = format!("VCL has no operator `{written}`");
        self.report(Diagnostic::new(&rules::UNKNOWN_OPERATOR, span, message).mend(
            format!("write `{meant}`"),
            span,
            meant,
        ));
        self.push(kind, end, false);
    }

    /// Characters that no token begins with. One token holds all that follow each other.
    fn unknown(&mut self) {
        let is_unknown = |byte: &u8| !byte.is_ascii_graphic() && !byte.is_ascii_whitespace() || *byte == 0x0c;
        let first = self.rest().utf8_chunks().next();
        let character = first.and_then(|chunk| chunk.valid().chars().next());
        let length = match self.text[self.at] {
            byte if byte.is_ascii_graphic() => 1,
            _ => self.rest().iter().take_while(|byte| is_unknown(byte)).count().max(1),
        };
        let end = self.at + length;
        let span = self.span(self.at, end);
        let diagnostic = match (self.text[self.at], character) {
            (0, _) => Diagnostic::new(&rules::NUL_BYTE, span, "the file contains a NUL byte"),
            (byte, _) if byte < b' ' || byte == 0x7f => {
                let message = format!("the control character 0x{byte:02x} stands outside of a string");
                Diagnostic::new(&rules::UNKNOWN_CHARACTER, span, message).mend("remove it", span, "")
            }
            (_, Some('\u{a0}')) => {
                let message = "a no-break space is not a space of VCL";
                Diagnostic::new(&rules::UNKNOWN_CHARACTER, span, message).mend("write a space", span, " ")
            }
            (_, Some(character)) => {
                let message = format!("`{character}` has no meaning in VCL outside of strings and comments");
                Diagnostic::new(&rules::UNKNOWN_CHARACTER, span, message)
            }
            (_, None) => Diagnostic::new(&rules::INVALID_UTF8, span, "these bytes are not UTF-8"),
        };
        self.report(diagnostic);
        self.push(TokenKind::Unknown, end, true);
    }
}
