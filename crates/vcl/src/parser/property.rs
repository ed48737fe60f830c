//! Backends, probes and directors: blocks of properties.

use crate::diagnostic::Diagnostic;
use crate::parser::cursor::{Parse, Parser, Place};
use crate::rules;
use crate::source::Span;
use crate::token::TokenKind;
use crate::tree::{
    DeclarationKind, Director, DirectorMember, Expression, ExpressionKind, LinkOperator, Name, Properties,
    Property, PropertyItem, PropertyValue,
};

/// The properties whose values are durations, in any block.
const DURATIONS: &[&str] = &[
    "connect_timeout",
    "first_byte_timeout",
    "between_bytes_timeout",
    "wait_timeout",
    "backend_wait_timeout",
    "timeout",
    "interval",
    "ttl",
];

impl Parser<'_, '_> {
    /// Properties in braces. `what` names the block in messages.
    pub(super) fn properties(&mut self, what: &str) -> Parse<Properties> {
        self.enter()?;
        let start = self.at;
        let open = self.open_list(what)?;
        let mut items = Vec::new();
        while !self.list_ends(open, what) {
            items.extend(self.property_item());
        }
        self.depth -= 1;
        Ok(Properties { items, span: self.span_from(start) })
    }

    /// Takes the `{` of a list of entries or properties. A missing one is reported and assumed if entries
    /// follow.
    pub(super) fn open_list(&mut self, what: &str) -> Parse<Span> {
        if let Some(token) = self.eat(TokenKind::OpenBrace) {
            return Ok(token.span(self.file));
        }
        if matches!(self.kind(), TokenKind::Dot | TokenKind::String(_)) {
            let place = self.here();
            self.fail(
                Diagnostic::new(
                    &rules::MISSING_BRACE,
                    place,
                    format!("`{{` is missing after the name of the {what}"),
                )
                .mend("write `{` here", place, " {"),
            );
            return Ok(place);
        }
        let place = self.here();
        let failed = self.unexpected("`{`");
        if !self.replaces_brace() {
            return Err(failed);
        }
        self.bump();
        Ok(place)
    }

    /// Takes the `}` of a list if it is next; also `true`, with an error, where the list ends without one.
    pub(super) fn list_ends(&mut self, open: Span, what: &str) -> bool {
        match self.kind() {
            TokenKind::CloseBrace => {
                let last = self.previous_span();
                self.bump();
                self.note_alignment(open, last);
                true
            }
            TokenKind::End => {
                self.unclosed(open, what);
                true
            }
            TokenKind::Name if self.at_declaration() => {
                self.unclosed(open, what);
                true
            }
            _ => false,
        }
    }

    fn property_item(&mut self) -> Option<PropertyItem> {
        self.item(|parser| match parser.kind() {
            TokenKind::Name if parser.at_word("include") => {
                let items = parser.include(|parser| parser.items_to_end(Parser::property_item));
                items.map(PropertyItem::Include)
            }
            TokenKind::String(_) | TokenKind::Not => parser.acl_entry().map(PropertyItem::Address),
            _ => parser.property().map(PropertyItem::Property),
        })
    }

    fn property(&mut self) -> Parse<Property> {
        let start = self.at;
        let name = self.property_name()?;
        if self.eat(TokenKind::Assign).is_none() {
            self.missing_equals_sign(&name)?;
        }
        if self.kind() == TokenKind::OpenBrace {
            let value = PropertyValue::Block(self.properties("block")?);
            if self.kind() == TokenKind::Semicolon {
                self.stray_semicolon();
            }
            return Ok(Property { name, value, span: self.span_from(start) });
        }
        if let (TokenKind::String(_), TokenKind::String(_)) = (self.kind(), self.nth(1).kind) {
            let mut strings = Vec::new();
            while let TokenKind::String(_) = self.kind() {
                strings.push(self.string("a string")?);
            }
            self.semicolon()?;
            let value = PropertyValue::Strings(strings);
            return Ok(Property { name, value, span: self.span_from(start) });
        }
        if matches!(self.kind(), TokenKind::Semicolon | TokenKind::CloseBrace) {
            let message = format!("the value of `.{}` is missing", name.text);
            return Err(self.fail(Diagnostic::new(&rules::EXPECTED, self.here(), message)));
        }
        let value = self.expression_in(Place::Property)?;
        self.check_constant(&name, &value);
        self.semicolon()?;
        Ok(Property { name, value: PropertyValue::Constant(value), span: self.span_from(start) })
    }

    fn property_name(&mut self) -> Parse<Name> {
        let is_bare = self.kind() == TokenKind::Name
            && matches!(self.nth(1).kind, TokenKind::Assign | TokenKind::Colon | TokenKind::String(_));
        if is_bare {
            let name = self.name("a property")?;
            let message = "the name of a property begins with `.`";
            self.report(Diagnostic::new(&rules::EXPECTED, name.span, message).mend(
                format!("write `.{}`", name.text),
                name.span.before(),
                ".",
            ));
            return Ok(name);
        }
        if self.eat(TokenKind::Dot).is_none() {
            return Err(self.unexpected("a property, such as `.host`"));
        }
        self.name("the name of a property after `.`")
    }

    fn missing_equals_sign(&mut self, name: &Name) -> Parse<()> {
        let (span, here) = (self.span(), self.here());
        let message = format!("`=` is missing after `.{}`", name.text);
        match self.kind() {
            TokenKind::Colon | TokenKind::Equal => {
                self.report(Diagnostic::new(&rules::EXPECTED, span, "a value is assigned with `=`").mend(
                    "write `=`",
                    span,
                    "=",
                ));
                self.bump();
                Ok(())
            }
            TokenKind::String(_)
            | TokenKind::Integer
            | TokenKind::Real
            | TokenKind::Name
            | TokenKind::OpenBrace => {
                self.fail(Diagnostic::new(&rules::EXPECTED, here, message).mend("write `=`", here, " ="));
                Ok(())
            }
            _ => Err(self.unexpected("`=`")),
        }
    }

    /// Reports a value that is computed, and a duration without a unit.
    fn check_constant(&mut self, name: &Name, value: &Expression) {
        let is_constant = matches!(
            value.kind,
            ExpressionKind::String(_)
                | ExpressionKind::Integer(_)
                | ExpressionKind::Real(_)
                | ExpressionKind::Duration { .. }
                | ExpressionKind::Bytes { .. }
                | ExpressionKind::UnknownUnit { .. }
                | ExpressionKind::Boolean(_)
                | ExpressionKind::Blob(_)
                | ExpressionKind::Path(_)
                | ExpressionKind::Invalid
        );
        let is_reported = matches!(&value.kind, ExpressionKind::Chain(chain)
            if chain.rest.iter().any(|link| link.operator == LinkOperator::SideBySide));
        if !(is_constant || is_reported && self.is_v4()) {
            let message = format!("the value of `.{}` is computed, and it has to be a constant", name.text);
            self.report(Diagnostic::new(&rules::CONSTANT, value.span, message));
        } else if is_constant && self.is_v4() && DURATIONS.contains(&&*name.text) {
            self.needs_unit(value, &format!("`.{}`", name.text));
        }
    }

    /// `director NAME KIND { … }`
    pub(super) fn director(&mut self) -> Parse<DeclarationKind> {
        let start = self.at;
        self.bump();
        let name = self.symbol_name("director")?;
        let kind = self.name("the kind of the director")?;
        if self.is_v4() {
            let span = self.span_from(start);
            self.report(
                Diagnostic::new(
                    &rules::OLD_SYNTAX,
                    span,
                    "directors of VCL 2 and 3 are objects of a module in VCL 4",
                )
                .advice(format!(
                    "write `import directors;` and, in `sub vcl_init`, `new {} = directors.{}();`",
                    name.text,
                    kind.text.replace('-', "_")
                )),
            );
        }
        self.enter()?;
        let start = self.at;
        let open = self.open_list("director")?;
        let (mut properties, mut members) = (Vec::new(), Vec::new());
        while !self.list_ends(open, "director") {
            if self.kind() == TokenKind::OpenBrace {
                let properties = self.properties("member")?;
                members.push(DirectorMember { properties });
            } else if let Some(PropertyItem::Property(property)) = self.property_item() {
                properties.push(property);
            }
        }
        self.depth -= 1;
        let body = self.span_from(start);
        Ok(DeclarationKind::Director(Director { name, kind, properties, members, body }))
    }
}
