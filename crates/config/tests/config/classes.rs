//! Requests are sorted into classes.

use proptest::prelude::*;
use sandarac_config::{TableError, read_class_table};
use sandarac_message::FieldsBuf;
use sandarac_policy::{Classifier, Subject};

use crate::{load, refused};

fn text(class: &str) -> String {
    format!(
        "listen = [{{ address = \":1\" }}]\nroute = [{{ pool = \"app\" }}]\n[pool.app]\nbackends = \"http://a\"\n\
         balance = \"resume\"\nclass = {class}\n"
    )
}

fn classifier(class: &str) -> Classifier {
    load(&text(class)).pools.remove(0).classifier.unwrap()
}

fn table(lines: &str) -> Result<Classifier, TableError> {
    read_class_table(&classifier("{ file = \"/etc/classes\" }"), lines.as_bytes())
}

/// The class of a GET.
fn class(classifier: &Classifier, host: &str, target: &str, fields: &[(&str, &str)]) -> Option<String> {
    let mut lines = FieldsBuf::new();
    fields.iter().for_each(|(name, value)| lines.push(name.as_bytes(), value.as_bytes()).unwrap());
    let subject =
        Subject { host: host.as_bytes(), method: b"GET", target: target.as_bytes(), fields: lines.view() };
    let mut buffer = b"left from before".to_vec();
    let class = classifier.classify(subject, &mut buffer)?;
    Some(String::from_utf8(class.to_vec()).unwrap())
}

#[test]
fn hosts_are_compared_without_letter_case_port_and_www() {
    let classifier = classifier("\"host\"");
    for (host, expected) in [
        ("example.com", Some("example.com")),
        ("WWW.Example.COM:8080", Some("example.com")),
        ("www.example.com.", Some("example.com")),
        ("wwwexample.com", Some("wwwexample.com")),
        ("www", Some("www")),
        ("[::1]:80", Some("[::1]")),
        ("www.", Some("www")),
        ("", None),
        (":80", None),
        (&"a".repeat(257), None),
    ] {
        assert_eq!(class(&classifier, host, "/", &[]).as_deref(), expected, "{host}");
    }
}

#[test]
fn segments_are_counted_from_one_on_the_path_that_routes_see() {
    let second = classifier("\"path_segment(2)\"");
    for (target, expected) in [
        ("/a/b", Some("b")),
        ("/a/b/c?d/e", Some("b")),
        ("/a/./%62", Some("b")),
        ("//a//b", Some("b")),
        ("/a/é", Some("é")),
        ("/a", None),
        ("/a/", None),
        ("/a?x/b", None),
        ("/a/%zz", None),
        ("*", None),
        ("a.example:443", None),
        ("", None),
    ] {
        assert_eq!(class(&second, "h", target, &[]).as_deref(), expected, "{target}");
    }
}

#[test]
fn usual_hosts_and_segments_are_borrowed() {
    for (of, expected) in [("\"host\"", "example.com"), ("\"path_segment(1)\"", "blog")] {
        let (host, target) = (&b"www.example.com"[..], &b"/blog/2020/?a=b"[..]);
        let fields = FieldsBuf::new();
        let subject = Subject { host, method: b"GET", target, fields: fields.view() };
        let (classifier, mut buffer) = (classifier(of), Vec::new());
        assert_eq!(classifier.classify(subject, &mut buffer), Some(expected.as_bytes()));
        assert_eq!(buffer.capacity(), 0, "{of}");
    }
}

#[test]
fn templates_are_filled_with_what_the_request_has() {
    let fields = [("Cookie", "a=1; shop=blue"), ("X-Tenant", "t1"), ("x-tenant", "t2")];
    for (template, target, expected) in [
        ("{host}/{segment:1}", "/x/y", Some("h.example/x")),
        ("{host}/{segment:1}", "/", Some("h.example/")),
        ("{method} {path}?{query}", "/a%20b?c=%20d", Some("GET /a b?c=%20d")),
        ("{target}", "/a%20b?c=%20d", Some("/a%20b?c=%20d")),
        ("{header:X-Tenant}", "/", Some("t1, t2")),
        ("t={cookie:shop}", "/", Some("t=blue")),
        ("t={cookie:sho}", "/", None),
        ("{query:id}", "/?idx=1&id=2&id=3", Some("2")),
        ("{query:id}", "/?id", None),
        ("{query}", "/", None),
    ] {
        let classifier = classifier(&format!("{template:?}"));
        assert_eq!(
            class(&classifier, "www.H.example:1", target, &fields).as_deref(),
            expected,
            "{template} {target}"
        );
    }
    let long = classifier("\"{target}{target}\"");
    assert_eq!(class(&long, "h", &format!("/{}", "a".repeat(127)), &[]).map(|class| class.len()), Some(256));
    assert_eq!(class(&long, "h", &format!("/{}", "a".repeat(128)), &[]), None);
}

#[test]
fn expressions_find_the_class_in_a_part_of_the_request() {
    for (table, host, target, expected) in [
        ("{ regex = '^/(?<class>[^/]+)' }", "h", "/%61b/c", Some("ab")),
        ("{ regex = '^/(?P<class>\\d+)', of = 'path' }", "h", "/x", None),
        ("{ regex = '(?<class>[^.]+)\\.example$', of = 'host' }", "www.Shop.example:1", "/", Some("shop")),
        ("{ regex = '(^|&)id=(?<class>\\w*)', of = 'query' }", "h", "/?a=b&id=7", Some("7")),
        ("{ regex = '(^|&)id=(?<class>\\w*)', of = 'query' }", "h", "/?id=", None),
        ("{ regex = 'x|(?<class>y)', of = 'query' }", "h", "/?x", None),
        ("{ regex = '^(?<class>..)', of = 'header:X-Tenant' }", "h", "/", Some("te")),
        ("{ regex = '(?i)^B(?<class>.*)', of = 'cookie:shop' }", "h", "/", Some("lue")),
        ("{ regex = '(?<class>.*)', of = 'cookie:none' }", "h", "/", None),
    ] {
        let fields = [("Cookie", "shop=blue"), ("X-Tenant", "tenant")];
        assert_eq!(class(&classifier(table), host, target, &fields).as_deref(), expected, "{table}");
    }
}

#[test]
fn what_is_no_classifier_is_told_of() {
    for (class, message, help) in [
        (
            "\"hots\"",
            "\"hots\" is not \"host\", \"path_segment(N)\" or a template, such as \"{host}/{segment:1}\"",
            "did you mean \"host\"?",
        ),
        (
            "\"path_segment\"",
            "\"path_segment\" is not \"host\", \"path_segment(N)\" or a template, such as \"{host}/{segment:1}\"",
            "did you mean \"path_segment(1)\"?",
        ),
        ("\"path_segment(0)\"", "\"0\" is not a number from 1 to 100", "the first segment of /a/b is 1"),
        (
            "\"all\"",
            "\"all\" is not \"host\", \"path_segment(N)\" or a template, such as \"{host}/{segment:1}\"",
            "parts of a request stand in braces: \"{host}/{segment:1}\"",
        ),
        ("\"{hots}\"", "\"hots\" is no part of a request", "did you mean `host`?"),
        (
            "\"{header}\"",
            "\"header\" is no part of a request",
            "known: host, path, query, target, method, segment:, header:, cookie:, query:",
        ),
        ("\"{header:a b}\"", "\"a b\" is not the name of a field", ""),
        ("\"{host\"", "`{` without `}`", ""),
        ("\"a}{host}\"", "`}` without `{`", ""),
        (
            "\"{}\"",
            "\"\" is no part of a request",
            "known: host, path, query, target, method, segment:, header:, cookie:, query:",
        ),
        ("{}", "a class needs a `regex` or a `file`", "regex = '^/(?<class>[^/]+)'"),
        (
            "{ regex = '^/([^/]+)' }",
            "the regular expression has no group `class`",
            "put what the class is in (?<class>…)",
        ),
        ("{ regex = '(?<class>' }", "no regular expression: unclosed group", ""),
        (
            "{ regex = '(?<class>[a-z]{1000}){1000}' }",
            "no regular expression: Compiled regex exceeds size limit of 1048576 bytes.",
            "",
        ),
        (
            "{ regex = '(?<class>.)', of = 'body' }",
            "\"body\" is no part of a request",
            "known: host, path, query, header:, cookie:",
        ),
        (
            "{ regex = '(?<class>.)', file = '/a' }",
            "classes come from a `regex` or from a `file`, not from both",
            "",
        ),
        ("{ file = '/a', of = 'path' }", "`of` belongs to a `regex`", ""),
        ("{ file = 'a' }", "\"a\" is not a path from the root, such as \"/run/app\"", ""),
    ] {
        let diagnostics = refused(&text(class));
        let first = &diagnostics.errors()[0];
        assert_eq!(first.message, message, "{class}");
        assert_eq!(first.help.as_deref().unwrap_or_default(), help, "{class}");
        assert!(first.place.is_some(), "{class}");
    }
}

#[test]
fn of_the_lines_of_a_table_the_most_exact_counts() {
    let table = table(
        "# made by the application
        *                      rest
        /api                   api
        /*.png                 picture
        *.example.com          below
        *.b.example.com/x      deeper   # a comment
        example.com            site
        example.com/blog       blog
        example.com/blog/2020/ old
        example.com=/blog/2020/one single
        example.com/*.php      php
        www.other.example      www
        other.example          other
        EXAMPLE.com            site",
    )
    .unwrap();
    assert_eq!(table.table_len(), Some(12));
    for (host, target, expected) in [
        ("example.com", "/", "site"),
        ("example.com", "", "site"),
        ("Example.com:81", "/blog", "blog"),
        ("example.com", "/blog/x", "blog"),
        ("example.com", "/blogs", "site"),
        ("example.com", "/blog/2020", "blog"),
        ("example.com", "/blog/2020/", "old"),
        ("example.com", "/blog/%32020/x/y", "old"),
        ("example.com", "/blog/2020/one", "single"),
        ("example.com", "/blog/2020/one/two", "old"),
        ("example.com", "/a.php", "php"),
        ("example.com", "/blog/a.php", "blog"),
        ("elsewhere.example", "/a.png", "picture"),
        ("elsewhere.example", "/api/a.png", "api"),
        ("www.example.com", "/blog", "blog"),
        ("a.example.com", "/blog", "below"),
        ("a.b.example.com", "/x/y", "deeper"),
        ("a.b.example.com", "/y", "below"),
        ("www.other.example", "/api", "www"),
        ("other.example", "/api", "other"),
        ("elsewhere.example", "/api/v1", "api"),
        ("elsewhere.example", "/", "rest"),
        ("", "*", "rest"),
        (&"x".repeat(300), "/", "rest"),
    ] {
        assert_eq!(class(&table, host, target, &[]).as_deref(), Some(expected), "{host}{target}");
    }
    let stars = self::table("a.example/*.php php\na.example/x/*.php x\nb.example/* b").unwrap();
    assert_eq!(
        class(&stars, "a.example", "/x/y.php", &[]).as_deref(),
        Some("php"),
        "the first of those with stars"
    );
    assert_eq!(class(&stars, "a.example", "/x/y", &[]), None);
    let unread = classifier("{ file = \"/etc/classes\" }");
    assert_eq!(class(&unread, "a.example", "/", &[]), None);
    assert_eq!(unread.table_len(), Some(0));
}

#[test]
fn a_table_that_cannot_be_read_is_told_of_by_file_and_line() {
    let many = (0..101).map(|at| format!("/{at}*x c\n")).collect::<String>();
    let endless = "/a a\n".repeat(100_001);
    for (lines, told) in [
        ("/a a\n\n/b\n", "/etc/classes:3: a line has a pattern and a class, with a blank between"),
        ("", "/etc/classes:1: no line of the file has a class"),
        ("# none\n\n", "/etc/classes:1: no line of the file has a class"),
        ("/a b c", "/etc/classes:1: a line has a pattern and a class, with a blank between"),
        ("/a a\n/a b", "/etc/classes:2: line 1 has another class for the same, \"a\""),
        ("/a*b a\n/a*b b", "/etc/classes:2: line 1 has another class for the same, \"a\""),
        (
            "http://a/ a",
            "/etc/classes:1: \"http://a/\" is not a host, such as \"example.com\" (the host alone, without http://)",
        ),
        (
            "/a?b a",
            "/etc/classes:1: \"/a?b\" is not a path, such as \"/blog\" (queries are ignored; did you mean \"/a\"?)",
        ),
        (&many, "/etc/classes:101: a host has at most 100 paths with stars"),
        (&format!("/a {}", "c".repeat(257)), "/etc/classes:1: a class has at most 256 bytes"),
        (&format!("/a b #{}", "c".repeat(5000)), "/etc/classes:1: the line has more than 4096 bytes"),
        (&"#\n".repeat(9_000_000), "/etc/classes:1: the file has more than 16777216 bytes"),
    ] {
        assert_eq!(table(lines).unwrap_err().to_string(), told);
    }
    let not_text = read_class_table(&classifier("{ file = \"/etc/classes\" }"), b"/a b\n/\xff c");
    assert_eq!(not_text.unwrap_err().to_string(), "/etc/classes:2: the line is not UTF-8");
    assert!(table(&endless).is_ok(), "the same line again is no other line");
}

#[test]
fn a_large_table_costs_no_more_than_a_small_one() {
    let lines: String =
        (0..50_000).map(|at| format!("site{at}.example/p{at} c{at}\n/q{at}/ q{at}\n")).collect();
    let table = table(&lines).unwrap();
    assert_eq!(table.table_len(), Some(100_000));
    let start = std::time::Instant::now();
    for at in 0..20_000 {
        let host = format!("site{at}.example");
        assert_eq!(class(&table, &host, &format!("/p{at}/x"), &[]), Some(format!("c{at}")));
        assert_eq!(class(&table, &host, &format!("/q{at}/x"), &[]), Some(format!("q{at}")));
        assert_eq!(class(&table, &host, "/none", &[]), None);
    }
    // A scan of all lines would take minutes.
    assert!(start.elapsed() < std::time::Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn fingerprints_tell_classifiers_apart_and_say_nothing_of_comments() {
    let different = [
        "\"host\"",
        "\"path_segment(1)\"",
        "\"path_segment(2)\"",
        "\"{host}\"",
        "\"{host}/\"",
        "{ regex = '(?<class>.)' }",
        "{ regex = '(?<class>.)', of = 'host' }",
        "{ file = '/a' }",
    ]
    .map(|class| classifier(class).fingerprint());
    let once: std::collections::BTreeSet<_> = different.iter().collect();
    assert_eq!(once.len(), different.len());
    // BLAKE3 of "host": every balancer and every version must come to the same.
    assert_eq!(format!("{:016x}", different[0]), "37a615b357eb377f");
    assert_eq!(classifier("{ file = '/a' }").fingerprint(), classifier("{ file = '/b' }").fingerprint());

    let fingerprint = |lines: &str| table(lines).unwrap().fingerprint();
    let whole = fingerprint("a.example a\n/b b\n*.c.example/d d\n");
    assert_eq!(whole, fingerprint("# other\r\n*.c.example/d   d # x\n/b b\nA.example a\n/b b"));
    for other in
        ["a.example a\n/b b\n", "a.example a\n/b b\n*.c.example/d e", "a.example a\n=/b b\n*.c.example/d d"]
    {
        assert_ne!(whole, fingerprint(other), "{other}");
    }
}

#[test]
fn a_pool_takes_a_classifier_whose_table_was_read() {
    let pool = load(&text("{ file = '/etc/classes' }")).pools.remove(0);
    let before = pool.settings.resume.classifier;
    let read = read_class_table(pool.classifier.as_ref().unwrap(), b"/a a").unwrap();
    assert_eq!(read.table_path(), Some("/etc/classes".as_ref()));
    let pool = pool.with_classifier(read.clone());
    assert_eq!(pool.settings.resume.classifier, read.fingerprint());
    assert_ne!(pool.settings.resume.classifier, before);
    assert_eq!(
        read_class_table(&classifier("\"host\""), b"/a a"),
        Ok(classifier("\"host\"")),
        "it has no table"
    );
}

proptest! {
    #[test]
    fn any_request_has_a_class_or_none(
        host in prop::collection::vec(any::<u8>(), 0..300),
        target in "[/?&=.%0-9a-z\\x00-\\xff]{0,400}",
        value in "[ -~]{0,300}",
    ) {
        let mut fields = FieldsBuf::new();
        fields.push(b"X-A", value.trim().as_bytes()).unwrap();
        fields.push(b"Cookie", value.trim().as_bytes()).unwrap();
        let with_table = table("* rest\n/a/ a\n/b*c b\n*.example e\n=/ root\n").unwrap();
        let classifiers = ["\"host\"", "\"path_segment(1)\"", "\"{host}{path}{query}{header:X-A}{cookie:a}{query:a}\"",
            "{ regex = '(?<class>.*)' }", "{ regex = '(a*)*(?<class>a|b)$', of = 'header:X-A' }"];
        for classifier in classifiers.map(classifier).iter().chain([&with_table]) {
            let subject = Subject { host: &host, method: b"GET", target: target.as_bytes(), fields: fields.view() };
            let (mut buffer, mut again) = (Vec::new(), Vec::new());
            let class = classifier.classify(subject, &mut buffer);
            prop_assert!(class.is_none_or(|class| (1..=256).contains(&class.len())));
            prop_assert_eq!(class, classifier.classify(subject, &mut again));
        }
    }

    #[test]
    fn any_class_is_read_or_refused(class in "[\\x20-\\x7e]{0,40}|\\{[a-z:0-9]{0,12}\\}|path_segment\\([ -~]{0,12}\\)") {
        let quoted = class.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok((config, _)) = sandarac_config::Config::from_toml("any", &text(&format!("\"{quoted}\""))) {
            // What is written reads as the same.
            let shown = config.pools[0].classifier.as_ref().unwrap().to_string();
            prop_assert_eq!(shown, class.replace("( ", "(").replace(" )", ")"));
        }
    }

    #[test]
    fn any_bytes_are_a_table_or_told_of(text in prop::collection::vec(any::<u8>(), 0..200), lines in "([*a-z.]{0,6}[/=]?[a-z/*.]{0,6} [a-z#]{0,3}\n){0,6}") {
        let classifier = classifier("{ file = \"/etc/classes\" }");
        for text in [&text, lines.as_bytes()] {
            match read_class_table(&classifier, text) {
                Ok(table) => {
                    class(&table, "a.b", "/a/b", &[]);
                }
                Err(error) => prop_assert!(error.line >= 1 && !error.to_string().is_empty()),
            }
        }
    }

    #[test]
    fn the_index_agrees_with_the_rule(lines in prop::collection::vec(("(\\*|a\\.b|\\*\\.b|)", "(=?(/[ab]){1,3}|(/[ab]){0,2}/)"), 1..8), host in "(a\\.b|b|c\\.b|c)", path in "/|(/[ab]){1,4}/?") {
        let text: String = lines.iter().enumerate().map(|(at, (host, path))| format!("{host}{path} {at}\n")).collect();
        let Ok(table) = table(&text) else { return Ok(()) };
        let exactness = |(host, path): &(String, String)| {
            let host = match host.as_str() { "" | "*" => 0, "*.b" => 1, _ => 2 };
            let path = path.strip_suffix("/").filter(|rest| rest.is_empty()).unwrap_or(path);
            (host, path.starts_with('='), path.len())
        };
        let matches = |(pattern, route): &(String, String)| {
            let hosts = match pattern.as_str() { "" | "*" => true, "*.b" => host.ends_with(".b"), exact => exact == host };
            let paths = match route.strip_prefix('=') {
                Some(exact) => exact == path,
                None => route == "/" || path == *route || (path.starts_with(route.as_str()) && (route.ends_with('/') || path[route.len()..].starts_with('/'))),
            };
            hosts && paths
        };
        let best = lines.iter().enumerate().filter(|(_, line)| matches(line)).max_by_key(|(_, line)| exactness(line));
        prop_assert_eq!(class(&table, &host, &path, &[]), best.map(|(at, _)| at.to_string()));
    }
}
