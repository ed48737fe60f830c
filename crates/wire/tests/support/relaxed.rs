//! A second parser of HTTP/1.1 that refuses nothing: it records each fault by the name of its refusal and
//! continues as the naive parsers do that smuggling exploits. It is written independently of the codec and in
//! another way (whole lines, strings, no state), so that each checks the other.

use super::text;
use std::collections::BTreeSet;

/// The result of reading a message.
pub(crate) struct Reading {
    /// Method and target, or status; bytes of body; bytes left for the next message.
    pub(crate) summary: String,
    /// The names of the expected refusals.
    pub(crate) faults: BTreeSet<&'static str>,
}

pub(crate) fn request(bytes: &[u8]) -> Reading {
    let mut reader = Reader { rest: bytes, faults: BTreeSet::new() };
    let mut empty_lines = 0;
    while matches!(reader.rest, [b'\r' | b'\n', ..]) {
        match reader.rest {
            [b'\r', b'\n', ..] => empty_lines += 1,
            [b'\n', ..] => reader.fault("bare-lf"),
            _ => reader.fault("bare-cr"),
        }
        reader.rest = &reader.rest[if reader.rest.starts_with(b"\r\n") { 2 } else { 1 }..];
    }
    if empty_lines > 4 {
        reader.fault("empty-lines");
    }
    let line = reader.line();
    let (method, target, version) = reader.request_line(&line);
    let preface = reader.faults.contains("http2-preface");
    let fields = if preface { Vec::new() } else { reader.fields(100, "too-many-fields") };
    reader.check_size(bytes, 32 * 1024, "head-too-large");
    if !preface && !reader.faults.contains("target-too-long") && !reader.faults.contains("head-too-large") {
        reader.host(&fields, &version);
        for (_, value) in named(&fields, "expect") {
            if !value.trim_matches([' ', '\t']).eq_ignore_ascii_case("100-continue") {
                reader.fault("unknown-expectation");
            }
        }
    }
    let body = match reader.framing(&fields, &version) {
        Framing::Chunked => reader.chunks(),
        Framing::Length(len) => reader.take(len),
        Framing::None => 0,
    };
    reader.reading(&format!("{method} {target}"), body)
}

pub(crate) fn response(bytes: &[u8], method: &str) -> Reading {
    let mut reader = Reader { rest: bytes, faults: BTreeSet::new() };
    while matches!(reader.rest, [b'\r' | b'\n', ..]) {
        reader.fault("invalid-version");
        reader.rest = &reader.rest[1..];
    }
    let line = reader.line();
    let (version, status) = reader.status_line(&line);
    let fields = reader.fields(100, "too-many-fields");
    reader.check_size(bytes, 32 * 1024, "head-too-large");
    let framing = reader.framing(&fields, &version);
    let body = match framing {
        Framing::Chunked | Framing::Length(1..) if status < 200 || status == 204 => {
            reader.fault("unexpected-body");
            0
        }
        _ if method == "HEAD" || status == 304 => 0,
        Framing::Chunked => reader.chunks(),
        Framing::Length(len) => reader.take(len),
        Framing::None => reader.take(u64::MAX),
    };
    reader.reading(&status.to_string(), body)
}

enum Framing {
    None,
    Length(u64),
    Chunked,
}

type Lines = Vec<(String, String)>;

fn named<'a>(fields: &'a Lines, name: &'static str) -> impl Iterator<Item = &'a (String, String)> {
    fields.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name))
}

fn is_token(word: &str) -> bool {
    !word.is_empty()
        && word.chars().all(|char| char.is_ascii_graphic() && !"\"(),/:;<=>?@[\\]{}".contains(char))
}

fn is_control(char: char) -> bool {
    (char < ' ' && char != '\t') || char == '\x7f'
}

/// Like atoi: the number at the start of a word.
fn atoi(word: &str, radix: u32) -> u64 {
    let word = word.trim_start_matches(|char: char| char.is_ascii_whitespace() || "+-\"\x0b".contains(char));
    let word = word.strip_prefix("0x").unwrap_or(word);
    let digits = word.chars().map_while(|char| char.to_digit(radix));
    digits.fold(0u64, |sum, digit| sum.wrapping_mul(radix.into()).wrapping_add(digit.into()))
}

struct Reader<'a> {
    rest: &'a [u8],
    faults: BTreeSet<&'static str>,
}

impl Reader<'_> {
    fn fault(&mut self, name: &'static str) {
        self.faults.insert(name);
    }

    fn reading(self, start: &str, body: usize) -> Reading {
        let start: String = start.chars().take(40).flat_map(char::escape_default).collect();
        Reading { summary: format!("{start}, body {body}, rest {}", self.rest.len()), faults: self.faults }
    }

    fn take(&mut self, len: u64) -> usize {
        let len = self.rest.len().min(usize::try_from(len).unwrap_or(usize::MAX));
        self.rest = &self.rest[len..];
        len
    }

    fn check_size(&mut self, bytes: &[u8], limit: usize, fault: &'static str) {
        let size = bytes.len() - self.rest.len();
        // A message without an end is too large as soon as it reaches the limit.
        if size > limit || size == limit && !bytes[..size].ends_with(b"\r\n\r\n") {
            self.fault(fault);
        }
    }

    /// The next line, ended by LF, with or without CR before it.
    fn line(&mut self) -> String {
        let end = self.rest.iter().position(|&byte| byte == b'\n');
        let (line, rest) = match end {
            Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
            None => (self.rest, &self.rest[self.rest.len()..]),
        };
        self.rest = rest;
        let line = match line.strip_suffix(b"\r") {
            Some(line) => line,
            None => {
                // A line cut off by the size limit has no end to check; a CR in it is found below.
                if end.is_some() && !line.contains(&b'\r') {
                    self.fault("bare-lf");
                }
                line
            }
        };
        if line.contains(&b'\r') {
            self.fault("bare-cr");
        }
        if line.contains(&0) {
            self.fault("nul");
        }
        text(line).replace(['\r', '\0'], "")
    }

    fn request_line(&mut self, line: &str) -> (String, String, String) {
        let is_space = |char: char| matches!(char, ' ' | '\t' | '\x0b' | '\x0c');
        let word = |line: &str| -> (String, String, String) {
            let end = line.find(is_space).unwrap_or(line.len());
            let next = line[end..].find(|char| !is_space(char)).map_or(line.len(), |at| end + at);
            (line[..end].into(), line[end..next].into(), line[next..].into())
        };
        let (method, gap, rest) = word(line);
        if !is_token(&method) || !gap.starts_with(' ') {
            self.fault("invalid-method");
        } else if gap != " " {
            self.fault("invalid-target");
        }
        let (target, gap, version) = word(&rest);
        let odd_gap = !gap.is_empty() && !gap.starts_with(' ');
        if target.chars().any(is_control) || odd_gap {
            self.fault("invalid-target");
        }
        if target.len() > 8 * 1024 {
            self.fault("target-too-long");
            if self.rest.is_empty() && version.is_empty() {
                return (method, target, "HTTP/1.1".into());
            }
        }
        if method.is_empty() && target.is_empty() || self.faults.contains("invalid-method") {
            return (method, target, version);
        }
        let known = version == "HTTP/1.1" || version == "HTTP/1.0";
        if gap.len() > 1 || version.ends_with(is_space) {
            self.fault("invalid-version");
        } else if version == "HTTP/2.0" && method == "PRI" {
            self.fault("http2-preface");
        } else if !known {
            let other = version.strip_prefix("HTTP/1.").map_or_else(
                || {
                    version
                        .strip_prefix("HTTP/")
                        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() && c != '1'))
                },
                |minor| minor.starts_with(|c| matches!(c, '2'..='9')),
            );
            self.fault(if other { "unsupported-version" } else { "invalid-version" });
        }
        (method, target, version)
    }

    fn status_line(&mut self, line: &str) -> (String, u16) {
        let at = line.find("HTTP/").unwrap_or_default();
        if at > 0 || !line.starts_with("HTTP/") {
            self.fault("invalid-version");
        }
        let line = &line[at..];
        let mut words = line.splitn(3, [' ', '\t']);
        let version = words.next().unwrap_or_default();
        let major_minor = version.strip_prefix("HTTP/");
        match major_minor {
            Some("1.1" | "1.0") if line[version.len()..].starts_with(' ') => {}
            Some(other) if other.starts_with("1.1") || other.starts_with("1.0") => {
                self.fault("invalid-status-line");
            }
            Some(_) => self.fault("unsupported-version"),
            None => self.fault("invalid-version"),
        }
        let rest = line[version.len()..].trim_start_matches([' ', '\t']);
        if line[version.len()..].len() - rest.len() > 1 {
            self.fault("invalid-status-line");
        }
        let (status, reason) = rest.split_once(' ').unwrap_or((rest, ""));
        let plain = status.len() == 3 && status.chars().all(|char| char.is_ascii_digit());
        if !plain || !(100..600).contains(&status.parse().unwrap_or(0)) || reason.chars().any(is_control) {
            self.fault("invalid-status-line");
        }
        let naive = atoi(status, 10) as u16;
        (version.into(), if (100..600).contains(&naive) { naive } else { 200 })
    }

    fn fields(&mut self, limit: usize, too_many: &'static str) -> Lines {
        let mut fields: Lines = Vec::new();
        while !self.rest.is_empty() {
            let line = self.line();
            if line.is_empty() {
                break;
            }
            if line.starts_with([' ', '\t']) {
                self.fault("folded-line");
                if line.trim_matches([' ', '\t']).is_empty() {
                    continue;
                }
                if let Some((_, value)) = fields.last_mut() {
                    value.push_str(&line);
                    *value = value.trim_matches([' ', '\t']).into();
                    continue;
                }
            }
            let line = line.trim_start_matches([' ', '\t']);
            let Some((name, value)) = line.split_once(':') else {
                self.fault("invalid-field-name");
                continue;
            };
            if name.contains([' ', '\t']) {
                self.fault("space-in-field-name");
            } else if name.len() > 255 {
                self.fault("field-name-too-long");
            } else if !is_token(name) {
                self.fault("invalid-field-name");
            }
            if value.chars().any(is_control) {
                self.fault("invalid-field-value");
            }
            // Tabs and everything after the value are kept for the check of Transfer-Encoding.
            fields.push((name.trim_matches([' ', '\t']).into(), value.trim_start_matches(' ').into()));
        }
        if fields.len() > limit {
            self.fault(too_many);
        }
        fields
    }

    fn host(&mut self, fields: &Lines, version: &str) {
        if self.faults.contains("folded-line") {
            return;
        }
        let hosts: Vec<&str> =
            named(fields, "host").map(|(_, value)| value.trim_matches([' ', '\t'])).collect();
        match hosts[..] {
            [] if version == "HTTP/1.1" && self.faults.is_empty() => self.fault("missing-host"),
            [] => {}
            [host] => {
                if !is_host(host) {
                    self.fault("invalid-host");
                }
            }
            [..] => self.fault("repeated-host"),
        }
    }

    fn framing(&mut self, fields: &Lines, version: &str) -> Framing {
        let lengths: Vec<&str> =
            named(fields, "content-length").map(|(_, value)| value.trim_matches([' ', '\t'])).collect();
        let codings: Vec<&str> =
            named(fields, "transfer-encoding").map(|(_, value)| value.as_str()).collect();
        if lengths.len() > 1 || lengths.iter().any(|length| length.contains(',')) {
            self.fault("repeated-content-length");
        } else if let [length] = lengths[..] {
            let digits = !length.is_empty() && length.chars().all(|char| char.is_ascii_digit());
            let damaged = self.faults.contains("nul") || self.faults.contains("invalid-field-value");
            if (!digits || length.parse::<u64>().is_err()) && !damaged {
                self.fault("invalid-content-length");
            }
        }
        self.codings(&codings);
        if !codings.is_empty() && !lengths.is_empty() {
            self.fault("transfer-encoding-and-length");
        }
        if !codings.is_empty() && version == "HTTP/1.0" {
            self.fault("transfer-encoding-in-http10");
        }
        let chunked = |coding: &&str| coding.to_ascii_lowercase().contains("chunked");
        match (codings.iter().any(chunked), lengths.last()) {
            (true, _) => Framing::Chunked,
            (false, Some(length)) => Framing::Length(atoi(length, 10)),
            (false, None) => Framing::None,
        }
    }

    fn codings(&mut self, lines: &[&str]) {
        let Some(first) = lines.first() else { return };
        if first.eq_ignore_ascii_case("chunked") {
            if lines.len() > 1 {
                self.fault("repeated-transfer-encoding");
            }
            return;
        }
        if ["nul", "invalid-field-value", "folded-line"].iter().any(|fault| self.faults.contains(fault)) {
            return;
        }
        let members: Vec<String> = first
            .trim_matches([' ', '\t'])
            .split(',')
            .map(|member| member.trim_matches([' ', '\t']).to_ascii_lowercase())
            .collect();
        let chunked = members.iter().filter(|member| *member == "chunked").count();
        let last = members.last().is_some_and(|member| member == "chunked");
        let whole = members.iter().all(|member| is_token(member));
        self.fault(match (chunked, last) {
            _ if !whole => "invalid-transfer-encoding",
            (2.., _) => "repeated-transfer-encoding",
            (1, false) => "invalid-transfer-encoding",
            (1, true) if members.len() == 1 => "invalid-transfer-encoding",
            _ => "unknown-transfer-coding",
        });
    }

    fn chunks(&mut self) -> usize {
        let (mut body, mut overhead) = (0, 0i128);
        while !self.rest.is_empty() {
            let before = self.rest.len();
            let nul_before = self.faults.remove("nul");
            let line = self.line();
            let (word, extension) = line
                .split_once(';')
                .map_or((&*line, None), |(word, ext)| (word.trim_end_matches(SPACE), Some(ext)));
            let hex = !word.is_empty() && word.chars().all(|char| char.is_ascii_hexdigit());
            let damaged = ["nul", "bare-lf", "bare-cr"].iter().any(|fault| self.faults.contains(fault));
            if self.faults.remove("nul") {
                // The codec has no separate reason for it here.
                self.fault(if extension.is_some() {
                    "invalid-chunk-extension"
                } else {
                    "invalid-chunk-size"
                });
            } else if (!hex || word.len() > 16) && !damaged {
                self.fault("invalid-chunk-size");
            }
            if nul_before {
                self.fault("nul");
            }
            if let Some(extension) = extension
                && !is_extension(extension)
                && !self.faults.contains("bare-lf")
            {
                self.fault("invalid-chunk-extension");
            }
            let size = atoi(word, 16);
            overhead += (before - self.rest.len()) as i128 - 16 - 2 * i128::from(size);
            overhead = overhead.max(0);
            if overhead > 16 * 1024 {
                self.fault("chunk-overhead");
            }
            if size == 0 {
                break;
            }
            body += self.take(size);
            match self.rest {
                [b'\r', b'\n', ..] => self.rest = &self.rest[2..],
                [] => {}
                [first, rest @ ..] => {
                    self.fault("invalid-chunk-end");
                    let skipped = match rest {
                        _ if matches!(first, b'\r' | b'\n') => 1,
                        [b'\r', ..] if first.is_ascii_hexdigit() => 0,
                        [_, third, ..] if third.is_ascii_hexdigit() => 2,
                        _ => {
                            1 + rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |end| end + 1)
                        }
                    };
                    self.rest = &self.rest[skipped..];
                }
            }
        }
        let section = self.rest;
        let faults = std::mem::take(&mut self.faults);
        self.fields(64, "trailers-too-large");
        self.check_size(section, 8 * 1024, "trailers-too-large");
        self.faults.extend(faults);
        body
    }
}

/// White space within a line.
const SPACE: [char; 2] = [' ', '\t'];

/// Whether the names and values of an extension follow the grammar, with white space around each.
fn is_extension(text: &str) -> bool {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(SPACE);
        let end = rest.find(|char| !is_token(&String::from(char))).unwrap_or(rest.len());
        if end == 0 {
            return false;
        }
        rest = rest[end..].trim_start_matches(SPACE);
        if let Some(value) = rest.strip_prefix('=').map(|value| value.trim_start_matches(SPACE)) {
            if let Some(quoted) = value.strip_prefix('"') {
                let mut escaped = false;
                let close = quoted.find(|char| {
                    let closes = char == '"' && !escaped;
                    escaped = char == '\\' && !escaped;
                    closes
                });
                let Some(close) = close else { return false };
                if quoted[..close].chars().any(is_control) {
                    return false;
                }
                rest = &quoted[close + 1..];
            } else {
                let end = value.find(|char| !is_token(&String::from(char))).unwrap_or(value.len());
                if end == 0 {
                    return false;
                }
                rest = &value[end..];
            }
        }
        rest = rest.trim_start_matches(SPACE);
        match rest.strip_prefix(';') {
            Some(next) => rest = next,
            None => return rest.is_empty(),
        }
    }
}

fn is_host(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let Some((address, tail)) = rest.split_once(']') else { return false };
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return false;
            }
            ("address", tail)
        }
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let mut chars = name.chars();
    while let Some(char) = chars.next() {
        let good = match char {
            '%' => (0..2).all(|_| chars.next().is_some_and(|digit| digit.is_ascii_hexdigit())),
            _ => char.is_ascii_alphanumeric() || "-._~!$&'()*+;=".contains(char),
        };
        if !good {
            return false;
        }
    }
    let port = match port.strip_prefix(':') {
        Some(digits) => {
            digits.is_empty()
                || digits.len() <= 5 && digits.parse::<u16>().is_ok() && !digits.starts_with('+')
        }
        None => port.is_empty(),
    };
    !name.is_empty() && port
}
