//! The tree in a written form.

use sandarac_vcl::tree::{
    AclItem, Arguments, BackendBody, Block, ComparisonOperator, DeclarationKind, Expression, ExpressionKind,
    LinkOperator, OldStatement, Properties, PropertyItem, PropertyValue, Statement, StatementKind,
};
use sandarac_vcl::{Parsed, Span};

/// The text of a span.
pub(crate) fn slice(parsed: &Parsed, span: Span) -> &str {
    std::str::from_utf8(parsed.sources.bytes(span)).expect("text")
}

/// An expression with parentheses around each chain and comparison.
pub(crate) fn expression(parsed: &Parsed, of: &Expression) -> String {
    match &of.kind {
        ExpressionKind::String(string) => {
            let mark = if string.has_escapes { "%" } else { "" };
            format!("{}{mark}", slice(parsed, string.span))
        }
        ExpressionKind::Integer(value) => value.to_string(),
        ExpressionKind::Real(value) => value.to_string(),
        ExpressionKind::Duration { seconds, .. } => format!("{seconds}s"),
        ExpressionKind::Bytes { bytes, .. } => format!("{bytes}B"),
        ExpressionKind::UnknownUnit { number, .. } => format!("{number}?"),
        ExpressionKind::Boolean(value) => value.to_string(),
        ExpressionKind::Blob(span) => format!(":{}:", slice(parsed, *span)),
        ExpressionKind::Path(path) => path.text(),
        ExpressionKind::Call(call) => {
            format!("{}{}", call.function.text(), arguments(parsed, &call.arguments))
        }
        ExpressionKind::Member(member) => {
            let arguments = member.arguments.as_ref().map_or(String::new(), |list| arguments(parsed, list));
            format!("{}.{}{arguments}", expression(parsed, &member.of), member.member.text())
        }
        ExpressionKind::Parenthesized(inner) => format!("({})", expression(parsed, inner)),
        ExpressionKind::Not(inner) => format!("!{}", expression(parsed, inner)),
        ExpressionKind::Negative(inner) => format!("-{}", expression(parsed, inner)),
        ExpressionKind::Chain(chain) => {
            let mut form = expression(parsed, &chain.first);
            for link in &chain.rest {
                let operator = match link.operator {
                    LinkOperator::SideBySide => "_",
                    _ => slice(parsed, link.operator_span),
                };
                form = format!("{form} {operator} {}", expression(parsed, &link.operand));
            }
            format!("({form})")
        }
        ExpressionKind::Comparison(comparison) => {
            let operator = match comparison.operator {
                ComparisonOperator::Equal => "==",
                ComparisonOperator::NotEqual => "!=",
                ComparisonOperator::Less => "<",
                ComparisonOperator::LessOrEqual => "<=",
                ComparisonOperator::Greater => ">",
                ComparisonOperator::GreaterOrEqual => ">=",
                ComparisonOperator::Match => "~",
                ComparisonOperator::NotMatch => "!~",
            };
            assert_eq!(slice(parsed, comparison.operator_span), operator);
            let (left, right) = (expression(parsed, &comparison.left), expression(parsed, &comparison.right));
            format!("({left} {operator} {right})")
        }
        ExpressionKind::Invalid => "invalid".to_owned(),
    }
}

fn arguments(parsed: &Parsed, of: &Arguments) -> String {
    let list = of.list.iter().map(|argument| {
        let name = argument.name.as_ref().map_or(String::new(), |name| format!("{}=", name.text));
        format!("{name}{}", expression(parsed, &argument.value))
    });
    format!("({})", list.collect::<Vec<_>>().join(", "))
}

fn block(parsed: &Parsed, of: &Block) -> String {
    let list: Vec<String> = of.statements.iter().map(|found| statement(parsed, found)).collect();
    format!("{{{}}}", list.join("; "))
}

/// A statement in one line.
pub(crate) fn statement(parsed: &Parsed, of: &Statement) -> String {
    match &of.kind {
        StatementKind::Set(set) => {
            format!("set {} {:?} {}", set.target.text(), set.operator, expression(parsed, &set.value))
        }
        StatementKind::Unset(unset) => {
            format!("{} {}", if unset.is_remove { "remove" } else { "unset" }, unset.target.text())
        }
        StatementKind::Call(name) => format!("call {}", name.text),
        StatementKind::If { branches, otherwise } => {
            let mut form = String::new();
            for branch in branches {
                let keyword = branch.else_keyword.map_or("if".to_owned(), |keyword| format!(" {keyword:?}"));
                let condition = expression(parsed, &branch.condition);
                form += &format!("{keyword} {condition} {}", block(parsed, &branch.block));
            }
            form + &otherwise
                .as_ref()
                .map_or(String::new(), |last| format!(" else {}", block(parsed, &last.block)))
        }
        StatementKind::Return(found) => found.action.as_ref().map_or("return".to_owned(), |action| {
            let list = action.arguments.as_ref().map_or(String::new(), |list| arguments(parsed, list));
            format!("return {}{list}", action.name.text)
        }),
        StatementKind::New(new) => {
            let list = arguments(parsed, &new.arguments);
            format!("new {} = {}{list}", new.name.text, new.constructor.text())
        }
        StatementKind::Function(call) => {
            format!("{}{}", call.function.text(), arguments(parsed, &call.arguments))
        }
        StatementKind::Unused(path) => format!("unused {}", path.text()),
        StatementKind::Block(inner) => block(parsed, inner),
        StatementKind::Include(include) => format!("include {}", slice(parsed, include.path.span)),
        StatementKind::InlineC => "C".to_owned(),
        StatementKind::Old(old) => match old {
            OldStatement::Error { status, reason } => {
                let parts = [status, reason].into_iter().flatten();
                parts.fold("error".to_owned(), |form, part| format!("{form} {}", expression(parsed, part)))
            }
            OldStatement::Synthetic(value) => format!("synthetic {}", expression(parsed, value)),
            OldStatement::Log(value) => format!("log {}", expression(parsed, value)),
            OldStatement::Panic(value) => format!("panic {}", expression(parsed, value)),
            OldStatement::Purge => "purge".to_owned(),
            OldStatement::Esi => "esi".to_owned(),
            OldStatement::Rollback => "rollback".to_owned(),
            OldStatement::Action(name) => format!("action {}", name.text),
        },
        StatementKind::Invalid => "invalid".to_owned(),
    }
}

/// A declaration in one line.
pub(crate) fn declaration(parsed: &Parsed, of: &DeclarationKind) -> String {
    match of {
        DeclarationKind::Version(version) => format!("vcl {}", slice(parsed, version.number)),
        DeclarationKind::Import(import) => {
            let alias = import.alias.as_ref().map_or(String::new(), |name| format!(" as {}", name.text));
            let from =
                import.from.map_or(String::new(), |path| format!(" from {}", slice(parsed, path.span)));
            format!("import {}{alias}{from}", import.module.text)
        }
        DeclarationKind::Include(include) => format!("include {}", slice(parsed, include.path.span)),
        DeclarationKind::Backend(backend) => match &backend.body {
            BackendBody::None => format!("backend {} none", backend.name.text),
            BackendBody::Properties(list) => {
                format!("backend {} {}", backend.name.text, properties(parsed, list))
            }
        },
        DeclarationKind::Probe(probe) => {
            format!("probe {} {}", probe.name.text, properties(parsed, &probe.properties))
        }
        DeclarationKind::Acl(acl) => {
            let flags = acl.flags.iter().map(|flag| slice(parsed, flag.span).to_owned());
            let entries = acl.items.iter().map(|item| match item {
                AclItem::Entry(entry) => address(parsed, entry),
                AclItem::Include(_) => "include".to_owned(),
            });
            let parts: Vec<String> = flags.chain(entries).collect();
            format!("acl {} {}", acl.name.text, parts.join(" "))
        }
        DeclarationKind::Sub(sub) => format!("sub {} {}", sub.name.text, block(parsed, &sub.block)),
        DeclarationKind::Unused(path) => format!("unused {}", path.text()),
        DeclarationKind::Director(director) => {
            let items = director.properties.iter().cloned().map(PropertyItem::Property).collect();
            let own = properties(parsed, &Properties { items, span: director.body });
            let members = director.members.iter();
            let members: String =
                members.map(|member| format!(" [{}]", properties(parsed, &member.properties))).collect();
            format!("director {} {} {own}{members}", director.name.text, director.kind.text)
        }
        DeclarationKind::InlineC => "C".to_owned(),
        DeclarationKind::Invalid => "invalid".to_owned(),
    }
}

fn properties(parsed: &Parsed, of: &Properties) -> String {
    let list = of.items.iter().map(|item| match item {
        PropertyItem::Property(property) => {
            let value = match &property.value {
                PropertyValue::Constant(value) => expression(parsed, value),
                PropertyValue::Strings(list) => {
                    list.iter().map(|string| slice(parsed, string.span)).collect::<Vec<_>>().join(" ")
                }
                PropertyValue::Block(inner) => format!("{{{}}}", properties(parsed, inner)),
                PropertyValue::Invalid => "invalid".to_owned(),
            };
            format!(".{}={value}", property.name.text)
        }
        PropertyItem::Include(_) => "include".to_owned(),
        PropertyItem::Address(entry) => address(parsed, entry),
    });
    list.collect::<Vec<_>>().join(" ")
}

fn address(parsed: &Parsed, of: &sandarac_vcl::tree::AclEntry) -> String {
    let address = slice(parsed, of.address.span);
    let address = if of.is_optional { format!("({address})") } else { address.to_owned() };
    let mask = of.mask.map_or(String::new(), |mask| format!("/{}", mask.bits));
    format!("{}{address}{mask}", if of.is_negated { "!" } else { "" })
}
