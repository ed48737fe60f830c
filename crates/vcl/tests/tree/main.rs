//! The shape of the tree, and the text that its spans cover.

mod form;

use std::sync::Arc;

use form::{declaration, expression, slice, statement};
use sandarac_vcl::tree::{Block, DeclarationKind, Statement, StatementKind};
use sandarac_vcl::{Dialect, Limits, NoFiles, OldVersion, Parsed, parse};

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
