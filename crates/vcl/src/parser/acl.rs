//! Access lists.

use crate::diagnostic::Diagnostic;
use crate::parser::cursor::{Parse, Parser};
use crate::rules;
use crate::source::Span;
use crate::suggest::closest;
use crate::token::TokenKind;
use crate::tree::{Acl, AclEntry, AclFlag, AclItem, AclMask, DeclarationKind};

/// The flags of access lists.
const FLAGS: [&str; 4] = ["log", "table", "pedantic", "fold"];

impl Parser<'_, '_> {
    /// `acl NAME FLAGS { … }`
    pub(super) fn acl(&mut self) -> Parse<DeclarationKind> {
        self.bump();
        let name = self.symbol_name("acl")?;
        let mut flags = Vec::new();
        while let TokenKind::Plus | TokenKind::Minus = self.kind() {
            flags.push(self.acl_flag()?);
        }
        self.enter()?;
        let start = self.at;
        let open = self.open_list("acl")?;
        let mut items = Vec::new();
        while !self.list_ends(open, "acl") {
            items.extend(self.acl_item());
        }
        self.depth -= 1;
        Ok(DeclarationKind::Acl(Acl { name, flags, items, body: self.span_from(start) }))
    }

    fn acl_flag(&mut self) -> Parse<AclFlag> {
        let start = self.at;
        let sign = self.bump();
        if self.kind() != TokenKind::Name || self.token().start != sign.end {
            let message = "the name of a flag follows its sign directly, such as `+log`";
            return Err(self.fail(Diagnostic::new(&rules::UNKNOWN_FLAG, sign.span(self.file), message)));
        }
        let name = self.name("the name of a flag")?;
        if !FLAGS.contains(&&*name.text) {
            let message = format!("there is no flag `{}` of access lists", name.text);
            let diagnostic = Diagnostic::new(&rules::UNKNOWN_FLAG, name.span, message);
            self.report(match closest(&name.text, FLAGS) {
                Some(meant) => diagnostic.mend(format!("did you mean `{meant}`?"), name.span, meant),
                None => diagnostic.note("the flags are log, table, pedantic and fold"),
            });
        }
        Ok(AclFlag { is_set: sign.kind == TokenKind::Plus, name, span: self.span_from(start) })
    }

    fn acl_item(&mut self) -> Option<AclItem> {
        self.item(|parser| match parser.kind() {
            TokenKind::Name if parser.at_word("include") => {
                parser.include(|parser| parser.items_to_end(Parser::acl_item)).map(AclItem::Include)
            }
            _ => parser.acl_entry().map(AclItem::Entry),
        })
    }

    /// `! ("ADDRESS"/MASK);`, all but the address optional.
    pub(super) fn acl_entry(&mut self) -> Parse<AclEntry> {
        let start = self.at;
        let mut is_negated = self.eat(TokenKind::Not).is_some();
        let open = self.eat(TokenKind::OpenParenthesis).map(|token| token.span(self.file));
        if self.kind() == TokenKind::Not && open.is_some() {
            if is_negated {
                return Err(self.unexpected("an address in quotes"));
            }
            self.bump();
            is_negated = true;
        }
        if matches!(self.kind(), TokenKind::Integer | TokenKind::Real | TokenKind::Name | TokenKind::Colon) {
            let address = self.at;
            self.bump();
            return Err(self.bare_address(address));
        }
        let address = self.string("an address in quotes")?;
        let mut mask = None;
        if let Some(slash) = self.eat(TokenKind::Slash) {
            mask = Some(self.acl_mask(slash.span(self.file))?);
        }
        if let Some(open) = open {
            self.close_parenthesis(open)?;
        }
        if let TokenKind::String(_) | TokenKind::Not = self.kind() {
            // Entries on one line without a `;` between them.
            let place = self.here();
            self.fail(
                Diagnostic::new(&rules::MISSING_SEMICOLON, place, "`;` is missing at the end of this entry")
                    .mend("write `;` here", place, ";"),
            );
        } else {
            self.acl_semicolon()?;
        }
        Ok(AclEntry { is_negated, is_optional: open.is_some(), address, mask, span: self.span_from(start) })
    }

    /// Takes the `;`, or a `,` in its place with an error.
    fn acl_semicolon(&mut self) -> Parse<()> {
        if self.kind() != TokenKind::Comma {
            return self.semicolon();
        }
        let span = self.span();
        let message = "entries end with `;`";
        self.fail(Diagnostic::new(&rules::MISSING_SEMICOLON, span, message).mend("write `;`", span, ";"));
        self.bump();
        Ok(())
    }

    fn acl_mask(&mut self, slash: Span) -> Parse<AclMask> {
        let token = self.token();
        let span = self.span();
        match token.kind {
            TokenKind::Integer => {
                self.bump();
                Ok(AclMask { bits: self.text_of(token).parse().unwrap_or(i64::MAX), span })
            }
            TokenKind::String(_) => {
                let bits = self.text_of(token).trim_matches('"').to_owned();
                let message = "the mask is a number without quotes";
                self.report(Diagnostic::new(&rules::EXPECTED, span, message).mend(
                    format!("write `/{bits}`"),
                    span,
                    bits.clone(),
                ));
                self.bump();
                Ok(AclMask { bits: bits.parse().unwrap_or(i64::MAX), span })
            }
            TokenKind::Real => {
                let message = "the mask is a number of bits";
                let failed = self.fail(
                    Diagnostic::new(&rules::EXPECTED, span, message)
                        .advice("write `/24` for 255.255.255.0, `/16` for 255.255.0.0, `/8` for 255.0.0.0"),
                );
                Err(failed)
            }
            _ => {
                let message = "the number of bits is missing after `/`";
                Err(self.fail(Diagnostic::new(&rules::EXPECTED, slash, message)))
            }
        }
    }
}
