//! The shape of the tree, and the text that its spans cover.

use std::sync::Arc;

use sandarac_vcl::tree::{
    AclItem, Arguments, BackendBody, Block, ComparisonOperator, DeclarationKind, Expression, ExpressionKind,
    LinkOperator, OldStatement, Properties, PropertyItem, PropertyValue, Statement, StatementKind,
};
use sandarac_vcl::{Dialect, Limits, NoFiles, OldVersion, Parsed, Span, parse};

#[test]
fn operators_bind_by_precedence() {
    for (text, form) in [
        ("a || b && c || d", "(a || (b && c) || d)"),
        ("!a == b && !(c)", "(!(a == b) && !(c))"),
        ("a + b * c - d % e / f", "(a + (b * c) - (d % e / f))"),
        ("a + b == c - 1", "((a + b) == (c - 1))"),
        ("-a + - b", "(-a + -b)"),
        ("1 + -2 * 3", "(1 + (-2 * 3))"),
        ("a ~ \"b\" && c !~ d", "((a ~ \"b\") && (c !~ d))"),
        (
            "a < b || a <= b || a > b || a >= b || a != b",
            "((a < b) || (a <= b) || (a > b) || (a >= b) || (a != b))",
        ),
        ("f(a, b = c, )", "f(a, b=c)"),
        ("m.f(a + b, g())", "m.f((a + b), g())"),
        ("(\"a\" + b).upper().len(1)", "((\"a\" + b)).upper().len(1)"),
        ("m.pool.backend().name", "m.pool.backend().name"),
        ("req . http . A", "req.http.A"),
        ("req.http.\"a.b\"", "req.http.a.b"),
        ("10s + 1.5 m - 3ms", "(10s + 90s - 0.003s)"),
        ("2y + 1w + 1d + 1h", "(63072000s + 604800s + 86400s + 3600s)"),
        ("5 kb + 1.5GB", "(5120B + 1610612736B)"),
        ("TRUE || false", "(true || false)"),
        (":AAAA: + ::", "(:AAAA: + ::)"),
        ("10. + 0.5", "(10 + 0.5)"),
    ] {
        let parsed = read(&format!("vcl 4.1; sub a {{ set a = {text}; }}"));
        assert_eq!(parsed.diagnostics, [], "{text}");
        let StatementKind::Set(set) = &first_statement(&parsed).kind else { panic!("no assignment: {text}") };
        assert_eq!(expression(&parsed, &set.value), form, "{text}");
        assert_eq!(slice(&parsed, set.value.span), text);
    }
}

#[test]
fn texts_side_by_side_are_a_chain_in_old_programs() {
    let parsed = read("sub vcl_fetch { set a = \"b\" c {\"d\"} + e\n regsub(f, \"g\", \"h\"); }");
    assert_eq!(parsed.program.dialect, Dialect::Old);
    assert_eq!(parsed.program.old_version, None);
    let StatementKind::Set(set) = &first_statement(&parsed).kind else { panic!("no assignment") };
    assert_eq!(expression(&parsed, &set.value), "(\"b\" _ c _ {\"d\"} + e _ regsub(f, \"g\", \"h\"))");
}

#[test]
fn statements_have_their_parts_and_the_spans_of_their_text() {
    let parsed = read(
        "vcl 4.1; sub a {
            set req.url += \"b\" ;
            unset req.http.Cookie;
            call b;
            return;
            return (synth(404, \"a\"));
            new c = d.e(1);
            std.log(\"f\");
            unused g;
            { }
            C{ x }C
            if (a) { } elseif (b) { } elsif (c) { } elif (d) { } else if (e) { } else { call f; }
        }",
    );
    assert_eq!(parsed.diagnostics, []);
    let forms: Vec<String> = sub(&parsed).statements.iter().map(|found| statement(&parsed, found)).collect();
    assert_eq!(
        forms,
        [
            "set req.url Add \"b\"",
            "unset req.http.Cookie",
            "call b",
            "return",
            "return synth(404, \"a\")",
            "new c = d.e(1)",
            "std.log(\"f\")",
            "unused g",
            "{}",
            "C",
            "if a {} Elseif b {} Elsif c {} Elif d {} ElseIf e {} else {call f}",
        ]
    );
    let texts: Vec<&str> = sub(&parsed).statements.iter().map(|found| slice(&parsed, found.span)).collect();
    assert_eq!(texts[0], "set req.url += \"b\" ;");
    assert_eq!(texts[4], "return (synth(404, \"a\"));");
    assert_eq!(texts[9], "C{ x }C");
    assert!(texts[10].starts_with("if (a)") && texts[10].ends_with("call f; }"));
}

#[test]
fn old_statements_are_nodes_of_their_own() {
    let parsed = read(
        "sub vcl_fetch {
            error; error 404; error 404 \"a\" b; error (500) \"c\";
            synthetic {\"d\"} e; log \"f\" g; purge; esi; pass; remove h; set i = \"%20j\";
        }",
    );
    assert_eq!(parsed.diagnostics, []);
    let forms: Vec<String> = sub(&parsed).statements.iter().map(|found| statement(&parsed, found)).collect();
    let expected = [
        "error",
        "error 404",
        "error 404 (\"a\" _ b)",
        "error (500) \"c\"",
        "synthetic ({\"d\"} _ e)",
        "log (\"f\" _ g)",
        "purge",
        "esi",
        "action pass",
        "remove h",
        "set i Assign \"%20j\"%",
    ];
    assert_eq!(forms, expected);
}

#[test]
fn declarations_have_their_parts() {
    let parsed = read(
        "vcl 4.0; import a; import b as c from \"d\"; unused e;
        backend f none; backend g { .host = \"h\"; .probe = { .url = \"/\"; } }
        probe i { .request = \"j\" \"k\"; .interval = 5s; }
        acl l +log -pedantic { \"m\"; !\"n\"/24; (\"o\"); !(\"p\"/8); (! \"q\"); }
        C{ }C",
    );
    assert_eq!(parsed.diagnostics, []);
    assert_eq!(parsed.program.dialect, Dialect::V4_0);
    let forms: Vec<String> =
        parsed.program.declarations.iter().map(|found| declaration(&parsed, &found.kind)).collect();
    let expected = [
        "vcl 4.0",
        "import a",
        "import b as c from \"d\"",
        "unused e",
        "backend f none",
        "backend g .host=\"h\" .probe={.url=\"/\"}",
        "probe i .request=\"j\" \"k\" .interval=5s",
        "acl l +log -pedantic \"m\" !\"n\"/24 (\"o\") !(\"p\")/8 !(\"q\")",
        "C",
    ];
    assert_eq!(forms, expected);
}

#[test]
fn directors_have_properties_and_members() {
    let parsed = read(
        "director a random { .retries = 2; { .backend = b; .weight = 1; } { .backend = { .host = \"c\"; } } }
        director d dns { .list = { .port = \"80\"; \"192.0.2.0\"/24; } }",
    );
    assert_eq!(parsed.diagnostics, []);
    let forms: Vec<String> =
        parsed.program.declarations.iter().map(|found| declaration(&parsed, &found.kind)).collect();
    let expected = [
        "director a random .retries=2 [.backend=b .weight=1] [.backend={.host=\"c\"}]",
        "director d dns .list={.port=\"80\" \"192.0.2.0\"/24}",
    ];
    assert_eq!(forms, expected);
}

#[test]
fn names_show_the_version_of_an_old_program() {
    for (text, version) in [
        ("sub vcl_fetch { if (!beresp.cacheable) { return (pass); } }", Some(OldVersion::V2)),
        ("import std; sub vcl_fetch { return (hit_for_pass); }", Some(OldVersion::V3)),
        ("sub vcl_fetch { return (deliver); }", None),
        ("vcl 4.1; sub vcl_recv { set req.http.A = \"ban\"; }", None),
    ] {
        assert_eq!(read(text).program.old_version, version, "{text}");
    }
}

#[test]
fn comments_are_kept_with_their_spans() {
    let parsed = read("# a\nvcl 4.1; // b\r\n/* c\nd */ sub e { } #");
    let texts: Vec<&str> = parsed.comments.iter().map(|comment| slice(&parsed, comment.span)).collect();
    assert_eq!(texts, ["# a", "// b", "/* c\nd */", "#"]);
}

#[test]
fn a_file_without_a_version_is_old_if_its_names_are() {
    for (text, dialect, rules) in [
        ("sub vcl_recv { if (req.request == \"GET\") { return (lookup); } }", Dialect::Old, &[][..]),
        (
            "sub vcl_recv { if (req.method == \"GET\") { return (hash); } }",
            Dialect::V4_1,
            &["missing-version"],
        ),
        ("backend default { .host = \"a\"; }", Dialect::V4_1, &["missing-version"]),
        ("", Dialect::V4_1, &["missing-version"]),
    ] {
        let parsed = read(text);
        assert_eq!(parsed.program.dialect, dialect, "{text}");
        let found: Vec<&str> = parsed.diagnostics.iter().map(|found| found.rule.name).collect();
        assert_eq!(found, rules, "{text}");
    }
}

fn read(text: &str) -> Parsed {
    parse("main.vcl", Arc::from(text.as_bytes()), &mut NoFiles, Limits::default())
}

fn slice(parsed: &Parsed, span: Span) -> &str {
    std::str::from_utf8(parsed.sources.bytes(span)).expect("text")
}

fn sub(parsed: &Parsed) -> &Block {
    let subs = parsed.program.declarations.iter().find_map(|declaration| match &declaration.kind {
        DeclarationKind::Sub(sub) => Some(&sub.block),
        _ => None,
    });
    subs.expect("a sub")
}

fn first_statement(parsed: &Parsed) -> &Statement {
    &sub(parsed).statements[0]
}

fn expression(parsed: &Parsed, of: &Expression) -> String {
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

fn statement(parsed: &Parsed, of: &Statement) -> String {
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

fn declaration(parsed: &Parsed, of: &DeclarationKind) -> String {
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
