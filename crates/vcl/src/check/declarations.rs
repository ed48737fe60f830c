//! Declarations: backends, probes, access lists, subs.

use crate::check::access_lists::is_host_name;
use crate::check::checker::Checker;
use crate::check::rules;
use crate::check::symbols::SymbolKind;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::suggest::closest;
use crate::table::{BACKEND_PROPERTIES, PROBE_PROPERTIES, PropertyKind, PropertyRow};
use crate::tree::{
    BackendBody, Declaration, DeclarationKind, Expression, ExpressionKind, Properties, Property,
    PropertyItem, PropertyValue,
};

/// Other names that people try for properties.
const RENAMED: &[(&str, &str)] = &[
    ("hostname", "host"),
    ("address", "host"),
    ("ip", "host"),
    ("connection_timeout", "connect_timeout"),
    ("timeout", "connect_timeout"),
    ("maxconn", "max_connections"),
    ("status", "expected_response"),
    ("expected_status", "expected_response"),
    ("path", "url"),
];

impl<'p> Checker<'p> {
    pub(super) fn declaration(&mut self, declaration: &'p Declaration) {
        match &declaration.kind {
            DeclarationKind::Backend(backend) => {
                if let BackendBody::Properties(properties) = &backend.body {
                    let given = self.properties(properties, BACKEND_PROPERTIES, "backend");
                    self.backend_address(&given, backend.name.span, properties);
                }
            }
            DeclarationKind::Probe(probe) => {
                self.probe(&probe.properties);
            }
            DeclarationKind::Acl(acl) => self.acl(acl),
            DeclarationKind::Sub(sub) => {
                let symbol = self.symbols.get(&sub.name.text).map(|symbol| symbol.kind);
                if let Some(SymbolKind::Sub(index)) = symbol {
                    self.sub = Some(index);
                }
                self.block(&sub.block);
                self.sub = None;
            }
            DeclarationKind::Unused(path) => {
                let name = path.text();
                match self.symbols.get(&name) {
                    Some(_) => self.symbols.mark_used(&name),
                    None => self.unknown_name(&path.names[0], |_| true),
                }
            }
            DeclarationKind::InlineC => self.inline_c(declaration.span),
            DeclarationKind::Version(_)
            | DeclarationKind::Import(_)
            | DeclarationKind::Include(_)
            | DeclarationKind::Director(_)
            | DeclarationKind::Invalid => {}
        }
    }

    fn backend_address(&mut self, given: &[&'p Property], name: Span, properties: &Properties) {
        let find = |wanted: &str| given.iter().find(|property| &*property.name.text == wanted);
        match (find("host"), find("path")) {
            (Some(_), None) | (None, Some(_)) => {}
            // A misspelt `.host`, or one that the parser could not read, was reported.
            (None, None) if self.has_error_within(properties.span) => {}
            (None, None) if given.iter().any(|property| means_host(&property.name.text)) => {}
            (None, None) => {
                let message = "the backend has neither `.host` nor `.path`";
                let inner = properties.span.start + 1;
                let place = Span::new(properties.span.file, inner, inner);
                self.report(Diagnostic::new(&rules::PROPERTY, name, message).mend(
                    "write `.host = \"127.0.0.1\";`, or another address",
                    place,
                    " .host = \"127.0.0.1\";",
                ));
            }
            (Some(host), Some(path)) => {
                let message = "a backend has a host or a path, not both";
                self.report(
                    Diagnostic::new(&rules::PROPERTY, path.name.span, message)
                        .related(host.name.span, "the host is here"),
                );
            }
        }
        if let (Some(path), Some(port)) = (find("path"), find("port")) {
            let message = "a Unix socket has no port";
            self.report(
                Diagnostic::new(&rules::PROPERTY, port.name.span, message)
                    .related(path.name.span, "the socket is here"),
            );
        }
    }

    /// Whether the parser reported an error within a span.
    fn has_error_within(&self, span: Span) -> bool {
        self.parsed.diagnostics.iter().any(|error| {
            let place = error.span;
            error.is_error() && place.file == span.file && span.start <= place.start && place.end <= span.end
        })
    }

    fn probe(&mut self, properties: &'p Properties) {
        let given = self.properties(properties, PROBE_PROPERTIES, "probe");
        let find = |wanted: &str| given.iter().find(|property| &*property.name.text == wanted);
        if let (Some(url), Some(request)) = (find("url"), find("request")) {
            let message = "a probe has a URL or a request, not both";
            self.report(
                Diagnostic::new(&rules::PROPERTY, request.name.span, message)
                    .related(url.name.span, "the URL is here"),
            );
        }
        let integer = |property: Option<&&'p Property>| match &property?.value {
            PropertyValue::Constant(Expression { kind: ExpressionKind::Integer(value), .. }) => Some(*value),
            _ => None,
        };
        let (window, threshold) = (integer(find("window")).unwrap_or(8), integer(find("threshold")));
        if let (Some(threshold), Some(property)) =
            (threshold.filter(|&value| value > window), find("threshold"))
        {
            let message = format!("{threshold} of {window} probes can never be good");
            self.report(
                Diagnostic::new(&rules::NUMBER, property.span, message)
                    .advice(format!("write at most {window}, or raise `.window`")),
            );
        }
        if let (Some(window @ 65..), Some(property)) = (integer(find("window")), find("window")) {
            let message = format!("a window has at most 64 probes, not {window}");
            self.report(Diagnostic::new(&rules::NUMBER, property.span, message));
        }
    }

    /// Checks properties, and returns them in order, those of included files too.
    fn properties(
        &mut self,
        properties: &'p Properties,
        known: &'static [PropertyRow],
        of: &str,
    ) -> Vec<&'p Property> {
        let mut given = Vec::new();
        flatten(&properties.items, &mut given);
        for (at, property) in given.iter().enumerate() {
            let name = &property.name;
            if let Some(first) = given[..at].iter().find(|other| other.name.text == name.text) {
                let message = format!("`.{}` is given twice", name.text);
                self.report(
                    Diagnostic::new(&rules::PROPERTY, name.span, message)
                        .related(first.name.span, "given here first")
                        .advice("remove one of the two"),
                );
                continue;
            }
            match known.iter().find(|row| row.name == &*name.text) {
                Some(row) => self.property(property, row),
                None => self.unknown_property_name(property, known, of),
            }
        }
        given
    }

    fn unknown_property_name(&mut self, property: &Property, known: &'static [PropertyRow], of: &str) {
        let name = &property.name;
        let message = format!("a {of} has no `.{}`", name.text);
        let diagnostic = Diagnostic::new(&rules::PROPERTY, name.span, message);
        let names = known.iter().map(|row| row.name);
        let renamed =
            RENAMED.iter().find(|(old, new)| *old == &*name.text && names.clone().any(|n| n == *new));
        self.report(match renamed.map(|row| row.1).or_else(|| closest(&name.text, names.clone())) {
            Some(meant) => diagnostic.mend(format!("did you mean `.{meant}`?"), name.span, meant),
            None => {
                let all: Vec<String> = names.map(|name| format!(".{name}")).collect();
                diagnostic.note(format!("it has {}", all.join(" ")))
            }
        });
    }

    fn property(&mut self, property: &'p Property, row: &'static PropertyRow) {
        let name = row.name;
        let value = match (&property.value, row.kind) {
            (PropertyValue::Invalid, _) | (PropertyValue::Strings(_), PropertyKind::Lines) => return,
            (PropertyValue::Block(block), PropertyKind::Probe) => return self.probe(block),
            (PropertyValue::Block(block), _) => {
                let message = format!("`.{name}` has no braces");
                self.report(Diagnostic::new(&rules::PROPERTY, block.span, message));
                return;
            }
            (PropertyValue::Strings(strings), _) => {
                let message = format!("`.{name}` is one string");
                self.report(Diagnostic::new(&rules::PROPERTY, strings[1].span, message));
                return;
            }
            (PropertyValue::Constant(value), _) => value,
        };
        let written = self.short_text(value.span);
        let wrong = |kind: &str| {
            Diagnostic::new(&rules::PROPERTY, value.span, format!("the value of `.{name}` has to be {kind}"))
        };
        match (row.kind, &value.kind) {
            (_, ExpressionKind::Invalid | ExpressionKind::UnknownUnit { .. }) => {}
            (PropertyKind::Text | PropertyKind::Lines, ExpressionKind::String(literal)) => {
                let text = self.text(literal.content);
                self.property_text(name, &text, literal.content);
            }
            (PropertyKind::Port, ExpressionKind::String(literal)) => {
                let text = self.text(literal.content);
                let is_service = text.bytes().any(|byte| byte.is_ascii_alphabetic());
                if is_service && !is_host_name(&text) {
                    let message = format!("`{text}` is neither a port nor the name of a service");
                    self.report(Diagnostic::new(&rules::PROPERTY, literal.content, message));
                } else if !is_service && text.parse::<u16>().map_or(true, |port| port == 0) {
                    let message = format!("`{text}` is no port: they go from 1 to 65535");
                    self.report(Diagnostic::new(&rules::NUMBER, literal.content, message));
                }
            }
            (PropertyKind::Text | PropertyKind::Lines | PropertyKind::Port, _) => {
                let quoted = format!("\"{written}\"");
                self.report(wrong("a string").mend(format!("write `{quoted}`"), value.span, quoted.clone()));
            }
            (PropertyKind::Integer(least), &ExpressionKind::Integer(number)) => {
                let most = match name {
                    "proxy_header" => 2,
                    "expected_response" => 999,
                    _ => i64::MAX,
                };
                if number < least || number > most {
                    let message = match most {
                        i64::MAX => format!("`.{name}` is at least {least}"),
                        _ => format!("`.{name}` is a number from {least} to {most}"),
                    };
                    self.report(Diagnostic::new(&rules::NUMBER, value.span, message));
                }
            }
            (PropertyKind::Integer(_), ExpressionKind::String(literal)) => {
                let text = self.text(literal.content);
                let diagnostic = wrong("a number");
                self.report(match text.parse::<i64>() {
                    Ok(_) => diagnostic.mend(format!("write `{text}` without quotes"), value.span, text),
                    Err(_) => diagnostic,
                });
            }
            (PropertyKind::Integer(_), _) => self.report(wrong("a number")),
            (PropertyKind::Duration, ExpressionKind::Duration { .. }) => {}
            // The parser reports a number without its unit.
            (PropertyKind::Duration, ExpressionKind::Integer(_) | ExpressionKind::Real(_)) => {}
            (PropertyKind::Duration, ExpressionKind::String(literal)) => {
                let text = self.text(literal.content);
                self.report(wrong("a duration").mend(
                    format!("write `{text}` without quotes"),
                    value.span,
                    text,
                ));
            }
            (PropertyKind::Duration, _) => self.report(wrong("a duration, such as `5s`")),
            (PropertyKind::Boolean, ExpressionKind::Boolean(_)) => {}
            (PropertyKind::Boolean, _) => self.report(wrong("`true` or `false`")),
            (PropertyKind::Blob, ExpressionKind::Blob(_)) => {}
            (PropertyKind::Blob, _) => self.report(wrong("base64 between colons, such as `:aGVsbG8=:`")),
            (PropertyKind::Probe, ExpressionKind::Path(path)) if path.names.len() == 1 => {
                self.named_symbol(&path.names[0], "probe", |kind| matches!(kind, SymbolKind::Probe));
            }
            (PropertyKind::Backend, ExpressionKind::Path(path)) if path.names.len() == 1 => {
                self.named_symbol(&path.names[0], "backend", |kind| matches!(kind, SymbolKind::Backend));
            }
            (PropertyKind::Probe, _) => self.report(wrong("the name of a probe, or a probe in braces")),
            (PropertyKind::Backend, _) => self.report(wrong("the name of a backend")),
        }
    }

    fn property_text(&mut self, name: &str, text: &str, span: Span) {
        let message = match name {
            "path" if !text.starts_with(['/', '@']) => "the path of a socket is absolute: it begins with `/`",
            "host" if text.is_empty() => "the host is empty",
            "host" if text.contains("://") => "a host has no `http://` before it",
            "host" if text.contains('/') => "a host has no path",
            "url" if text.is_empty() => "the URL is empty",
            _ => return,
        };
        let diagnostic = Diagnostic::new(&rules::PROPERTY, span, message);
        let host = text.split("://").nth(1).and_then(|rest| rest.split('/').next());
        self.report(match host {
            Some(host) if name == "host" && text.starts_with("http://") => {
                diagnostic.mend(format!("write `\"{host}\"`"), span, host)
            }
            _ => diagnostic,
        });
    }

    /// A symbol of one kind by its name.
    fn named_symbol(
        &mut self,
        name: &crate::tree::Name,
        what: &str,
        is_kind: impl Fn(SymbolKind) -> bool + Copy,
    ) {
        match self.symbols.get(&name.text) {
            Some(symbol) if is_kind(symbol.kind) => {
                self.symbols.mark_used(&name.text);
                if symbol.at > self.at {
                    let message = format!("the {what} `{}` is defined only later", name.text);
                    self.report(
                        Diagnostic::new(&rules::UNKNOWN_SYMBOL, name.span, message)
                            .related(symbol.span, "defined here")
                            .advice("move its definition before this backend"),
                    );
                }
            }
            Some(symbol) => {
                self.symbols.mark_used(&name.text);
                let message = format!("`{}` is {}, not a {what}", name.text, symbol.kind.described());
                self.report(
                    Diagnostic::new(&rules::TYPE, name.span, message).related(symbol.span, "defined here"),
                );
            }
            None if &*name.text == "default" => {}
            None => {
                let message = format!("there is no {what} `{}`", name.text);
                let diagnostic = Diagnostic::new(&rules::UNKNOWN_SYMBOL, name.span, message);
                let meant = self.symbols.closest(&name.text, is_kind);
                let diagnostic = match meant {
                    Some(meant) => {
                        self.symbols.mark_used(meant);
                        diagnostic.mend(format!("did you mean `{meant}`?"), name.span, meant)
                    }
                    None => diagnostic.advice(format!("define it: `{what} {} {{ … }}`", name.text)),
                };
                self.report(diagnostic);
            }
        }
    }
}

/// Collects properties, those of included files too.
fn flatten<'p>(items: &'p [PropertyItem], given: &mut Vec<&'p Property>) {
    for item in items {
        match item {
            PropertyItem::Property(property) => given.push(property),
            PropertyItem::Include(include) => {
                include.parts.iter().for_each(|part| flatten(&part.items, given));
            }
            PropertyItem::Address(_) => {}
        }
    }
}

/// Whether a name of no property is probably meant as `.host`.
fn means_host(name: &str) -> bool {
    let is_known = BACKEND_PROPERTIES.iter().any(|row| row.name == name);
    let is_renamed = RENAMED.contains(&(name, "host"));
    !is_known && (is_renamed || closest(name, BACKEND_PROPERTIES.iter().map(|row| row.name)) == Some("host"))
}
