//! Strings, comments and blocks of C: tokens that hold any bytes.

use memchr::{memchr, memchr2, memmem, memrchr};

use crate::diagnostic::Diagnostic;
use crate::lexer::Lexer;
use crate::rules;
use crate::token::{Comment, CommentKind, StringKind, TokenKind};

impl Lexer<'_> {
    /// A string in `"…"`. One that does not end within its line ends before the `;`, `)` or `{` that ends the
    /// line, so that the rest of the statement is still read.
    pub(crate) fn short_string(&mut self) {
        let content = self.at + 1;
        let stop = memchr2(b'"', b'\n', &self.text[content..]).map_or(self.text.len(), |at| content + at);
        if self.text.get(stop) == Some(&b'"') {
            self.check_bytes(content, stop);
            return self.push(TokenKind::String(StringKind::Short), stop + 1, false);
        }
        let line_end = stop;
        if let Some(end) = self.several_lines(content, line_end) {
            let span = self.span(self.at, line_end);
            let message = "a string in `\"` does not go over several lines";
            let text = "write `{\"` at its start and `\"}` at its end";
            let diagnostic = Diagnostic::new(&rules::UNTERMINATED_STRING, span, message);
            let opening = self.span(self.at, content);
            self.report(diagnostic.mend(text, opening, "{\"").and_edit(self.span(end - 1, end), "\"}"));
            return self.push(TokenKind::String(StringKind::Short), end, false);
        }
        let line = self.text[content..line_end].trim_ascii_end();
        // A block that begins on the line is not part of the string.
        let block = [&b") {"[..], b"){"].iter().filter_map(|begin| memmem::find(line, begin)).min();
        let line = &line[..block.unwrap_or(line.len())];
        let is_closer = |byte: &u8| matches!(byte, b';' | b')' | b'{' | b'}' | b' ' | b'\t' | b',');
        let closers = line.iter().rev().take_while(|byte| is_closer(byte)).count();
        let inner = line[..line.len() - closers].trim_ascii_end().len();
        let end = content + inner;
        // A quote that is missing further left turns texts into code.
        let line = memrchr(b'\n', &self.text[..self.at]).map_or(0, |at| at + 1) as u32;
        let of_text =
            [rules::UNKNOWN_CHARACTER.name, rules::UNKNOWN_OPERATOR.name, rules::FOREIGN_QUOTES.name];
        while let Some(last) = self.out.diagnostics.last()
            && last.span.start >= line
            && of_text.contains(&last.rule.name)
        {
            self.out.diagnostics.pop();
        }
        let span = self.span(self.at, end);
        let message = "this string has no closing quote on its line";
        let diagnostic = Diagnostic::new(&rules::UNTERMINATED_STRING, span, message);
        let text = "write `\"` at the end of the string";
        self.report(match inner {
            0 => self.opening_quote_is_missing(diagnostic),
            _ => diagnostic
                .mend(text, self.span(end, end), "\"")
                .note("a string of several lines is written {\"…\"}"),
        });
        self.push(TokenKind::String(StringKind::Short), end, true);
    }

    /// The diagnostic of a quote at the end of a statement: the string whose end it is has no opening quote.
    fn opening_quote_is_missing(&self, diagnostic: Diagnostic) -> Diagnostic {
        match self.out.tokens.as_slice() {
            [.., before, word] if word.kind == TokenKind::Name && before.end < word.start => {
                let written = String::from_utf8_lossy(&self.text[word.span(self.file).range()]);
                diagnostic
                    .note("this quote may be the closing one of a string whose opening quote is missing")
                    .mend(format!("write `\"` before `{written}`"), word.span(self.file).before(), "\"")
            }
            _ => diagnostic.advice("find the quote that is missing or too many on this line"),
        }
    }

    /// The end of a string that was meant to go over several lines: its first line ends within it, and the
    /// next line that has quotes has an odd number of them.
    fn several_lines(&self, content: usize, line_end: usize) -> Option<usize> {
        const MOST_LINES: usize = 30;
        let first = self.text[content..line_end].trim_ascii_end();
        if first.is_empty() || first.last().is_some_and(|byte| b";){},".contains(byte)) {
            return None;
        }
        let mut start = line_end;
        for line in self.text[line_end..].split_inclusive(|&byte| byte == b'\n').take(MOST_LINES) {
            let quotes = memchr::memchr_iter(b'"', line).count();
            if quotes % 2 == 1 {
                return memchr(b'"', line).map(|at| start + at + 1);
            }
            if quotes > 0 {
                return None;
            }
            start += line.len();
        }
        None
    }

    /// A string in `{"…"}` or `"""…"""`.
    pub(crate) fn long_string(&mut self, kind: StringKind) {
        let (opening, closing) = match kind {
            StringKind::Long => ("{\"", "\"}"),
            _ => ("\"\"\"", "\"\"\""),
        };
        let content = self.at + opening.len();
        if let Some(length) = memmem::find(&self.text[content..], closing.as_bytes()) {
            self.check_bytes(content, content + length);
            return self.push(TokenKind::String(kind), content + length + closing.len(), false);
        }
        let span = self.span(self.at, content);
        let message = format!("this string has no closing `{closing}`");
        let diagnostic = Diagnostic::new(&rules::UNTERMINATED_STRING, span, message);
        if kind == StringKind::Long && self.follows_block_name() {
            let place = self.span(self.at + 1, self.at + 1);
            self.report(diagnostic.note("`{` directly before `\"` begins a string of several lines").mend(
                "write a space after `{`",
                place,
                " ",
            ));
            return self.push(TokenKind::OpenBrace, self.at + 1, false);
        }
        self.report(diagnostic.label("opened here").advice(format!("write `{closing}` at its end")));
        self.reported_at = Some(self.text.len());
        self.push(TokenKind::String(kind), self.text.len(), true);
    }

    /// Whether the tokens before are the start of a block of entries: `acl NAME`.
    fn follows_block_name(&self) -> bool {
        match self.out.tokens.as_slice() {
            [.., keyword, name] => {
                name.kind == TokenKind::Name && &self.text[keyword.span(self.file).range()] == b"acl"
            }
            _ => false,
        }
    }

    /// A string in quotes of other languages.
    pub(crate) fn foreign_string(&mut self) {
        const QUOTES: [(&str, &[&str]); 4] =
            [("'", &["'"]), ("`", &["`", "'"]), ("“", &["”", "\""]), ("‘", &["’", "'"])];
        let Some((opening, closings)) =
            QUOTES.into_iter().find(|(opening, _)| self.rest().starts_with(opening.as_bytes()))
        else {
            return self.push(TokenKind::Unknown, self.at + 1, true);
        };
        let content = self.at + opening.len();
        let line_end = memchr(b'\n', self.rest()).map_or(self.text.len(), |at| self.at + at);
        let line = &self.text[content..line_end];
        let closing = closings
            .iter()
            .filter_map(|closing| Some((memmem::find(line, closing.as_bytes())?, closing.len())))
            .min();
        let message = format!("VCL has no strings in `{opening}`");
        let Some((length, closing)) = closing else {
            let span = self.span(self.at, content);
            let diagnostic = Diagnostic::new(&rules::FOREIGN_QUOTES, span, message);
            self.report(diagnostic.advice("write strings in double quotes: `\"…\"`"));
            return self.push(TokenKind::Unknown, content, true);
        };
        let end = content + length + closing;
        let inner = String::from_utf8_lossy(&line[..length]).into_owned();
        let (replacement, text) = match inner.contains('"') {
            true => (format!("{{\"{inner}\"}}"), "write it as `{\"…\"}`, because it contains a double quote"),
            false => (format!("\"{inner}\""), "write it in double quotes: `\"…\"`"),
        };
        let span = self.span(self.at, end);
        self.report(Diagnostic::new(&rules::FOREIGN_QUOTES, span, message).mend(text, span, replacement));
        self.push(TokenKind::String(StringKind::Foreign), end, false);
    }

    /// Reads a comment, if one begins here.
    pub(crate) fn comment(&mut self) -> bool {
        let kind = match self.rest() {
            [b'#', ..] => CommentKind::Hash,
            [b'/', b'/', ..] => CommentKind::Slashes,
            [b'/', b'*', ..] => CommentKind::Block,
            _ => return false,
        };
        let end = match kind {
            CommentKind::Block => self.block_comment_end(),
            _ => {
                let line =
                    &self.text[self.at..memchr(b'\n', self.rest()).map_or(self.text.len(), |n| self.at + n)];
                self.at + line.strip_suffix(b"\r").unwrap_or(line).len()
            }
        };
        self.check_bytes(self.at, end);
        let carries_report = self.reported_at == Some(self.at);
        self.out.comments.push(Comment { span: self.span(self.at, end), kind });
        self.at = end;
        if carries_report {
            self.reported_at = Some(end);
        }
        true
    }

    fn block_comment_end(&mut self) -> usize {
        // The search begins at the star, because `/*/` does not end a comment.
        let content = self.at + 2;
        let Some(length) = memmem::find(&self.text[content..], b"*/") else {
            let span = self.span(self.at, content);
            let message = "this comment has no closing `*/`";
            self.report(
                Diagnostic::new(&rules::UNTERMINATED_COMMENT, span, message)
                    .label("opened here")
                    .advice("write `*/` at its end"),
            );
            self.reported_at = Some(self.text.len());
            return self.text.len();
        };
        let end = content + length;
        if let Some(inner) = memmem::find(&self.text[content..end], b"/*") {
            let span = self.span(content + inner, content + inner + 2);
            let message = "`/*` stands within a comment, and comments do not nest";
            self.report(
                Diagnostic::new(&rules::NESTED_COMMENT, span, message)
                    .related(self.span(self.at, content), "the comment begins here")
                    .advice("end the first comment with `*/` before this one"),
            );
        }
        end + 2
    }

    /// A block of C.
    pub(crate) fn inline_c(&mut self) {
        let content = self.at + 2;
        let Some(length) = memmem::find(&self.text[content..], b"}C") else {
            let span = self.span(self.at, content);
            let message = "this block of C has no closing `}C`";
            self.report(
                Diagnostic::new(&rules::UNTERMINATED_C, span, message)
                    .label("opened here")
                    .advice("write `}C` at its end"),
            );
            self.reported_at = Some(self.text.len());
            return self.push(TokenKind::InlineC, self.text.len(), true);
        };
        self.push(TokenKind::InlineC, content + length + 2, false);
    }

    /// Reports a NUL byte, which ends strings in C, and bytes that are not UTF-8; the first of each.
    fn check_bytes(&mut self, start: usize, end: usize) {
        let bytes = &self.text[start..end];
        if bytes.is_ascii() && memchr(0, bytes).is_none() {
            return;
        }
        let nul = memchr(0, bytes);
        if let Some(at) = nul {
            let span = self.span(start + at, start + at + 1);
            self.report(Diagnostic::new(&rules::NUL_BYTE, span, "the file contains a NUL byte"));
        }
        if let Err(invalid) = std::str::from_utf8(bytes) {
            let at = start + invalid.valid_up_to();
            let length = invalid.error_len().unwrap_or(end - at);
            let span = self.span(at, at + length);
            let message = "these bytes are not UTF-8; they are kept as they are";
            self.report(
                Diagnostic::new(&rules::FOREIGN_ENCODING, span, message).advice("save the file as UTF-8"),
            );
        }
    }
}
