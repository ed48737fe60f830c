//! Inline C: refused at its place, with what does its work.

use crate::check::checker::Checker;
use crate::check::rules;
use crate::diagnostic::Diagnostic;
use crate::source::Span;

/// Functions of C with what does their work in VCL.
const REPLACEMENTS: &[(&str, &str)] = &[
    ("VRT_SetHdr", "`set req.http.NAME = …;`"),
    ("VRT_GetHdr", "the variable `req.http.NAME`"),
    ("syslog", "`std.syslog(…)`"),
    ("strftime", "`std.strftime(…)`"),
    ("VRT_time_string", "a TIME as a text"),
    ("gettimeofday", "the variable `now`"),
    ("time(", "the variable `now`"),
    ("random(", "`std.random(…)`"),
    ("rand(", "`std.random(…)`"),
    ("getenv", "`std.getenv(…)`"),
    ("strtol", "`std.integer(…)`"),
    ("atoi", "`std.integer(…)`"),
    ("strtod", "`std.real(…)`"),
    ("atof", "`std.real(…)`"),
    ("fopen", "`std.fileread(…)`"),
    ("inet_pton", "`std.ip(…)`"),
    ("strcasestr", "a match with `~ \"(?i)…\"`"),
    ("strstr", "`std.strstr(…)`"),
    ("strcmp", "a comparison with `==`"),
    ("tolower", "`std.tolower(…)`"),
    ("toupper", "`std.toupper(…)`"),
    ("regexec", "a match with `~`"),
    ("gethostname", "the variable `server.hostname`"),
    ("crypt", "the module `blob` for codings"),
    ("SHA", "the module `blob` for codings"),
    ("MD5", "the module `blob` for codings"),
];

impl Checker<'_> {
    /// Reports a block of C.
    pub(super) fn inline_c(&mut self, span: Span) {
        let text = self.text(span);
        let mut replacements: Vec<String> = Vec::new();
        for (function, replacement) in REPLACEMENTS {
            if text.contains(function) && replacements.len() < 3 {
                replacements.push(format!("`{}` by {replacement}", function.trim_end_matches('(')));
            }
        }
        let mark = Span::new(span.file, span.start, (span.start + 2).min(span.end));
        let diagnostic = Diagnostic::new(&rules::INLINE_C, mark, "C is not compiled here");
        self.report(match replacements.is_empty() {
            true => diagnostic.advice("do its work with variables and modules"),
            false => diagnostic.advice(format!("replace {}", replacements.join(", "))),
        });
    }
}
