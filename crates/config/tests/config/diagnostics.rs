//! Diagnostics: each error names its place and the probable intention.

use sandarac_config::{Config, Flags};

use crate::{BASE, refused, warnings};

/// The first error's message, the text that is marked, and the help, of `text` after a whole configuration.
fn told(text: &str) -> (String, String, String) {
    let whole = format!("{BASE}[[route]]\nmatch = \"/first\"\npool = \"app\"\n{text}");
    let diagnostics = refused(&whole);
    let first = &diagnostics.errors()[0];
    let marked = first.place.clone().and_then(|place| whole.get(place)).unwrap_or_default();
    (first.message.clone(), marked.to_owned(), first.help.clone().unwrap_or_default())
}

#[test]
fn an_error_is_rendered_with_line_column_mark_and_suggestion() {
    let text = "[[listen]]\naddress = \":8080\"\n\n[pool.app]\nbackend = [\"http://127.0.0.1:8000\"]\n";
    let expected = "\
error: unknown key `backend`
 --> sandarac.toml:5:1
  |
5 | backend = [\"http://127.0.0.1:8000\"]
  | ^^^^^^^
  = help: did you mean `backends`?
";
    assert_eq!(refused(text).to_string(), expected);
}

#[test]
fn several_errors_are_told_in_one_run_in_the_order_of_the_file() {
    let diagnostics = refused(
        "[timeout]
        head = \"5\"
        [[listen]]
        address = 80
        [pool.app]
        backends = [\"ftp://a\", \"b\"]
        [[route]]
        pool = \"ap\"
        cache = \"looup\"
        ",
    );
    let messages: Vec<_> = diagnostics.errors().iter().map(|error| error.message.as_str()).collect();
    let lines: Vec<_> = diagnostics
        .errors()
        .iter()
        .filter_map(|error| diagnostics.position(error))
        .map(|(line, _)| line)
        .collect();
    assert_eq!(lines, [1, 4, 6, 6, 8, 9], "{messages:?}");
    assert!(messages[2].contains("ftp://"), "{messages:?}");
}

#[test]
fn what_was_probably_meant_is_named_where_the_word_is_another() {
    let (message, _, help) = told("cache = false\n");
    assert!(message.contains("a table of settings, found a boolean"), "{message}");
    assert_eq!(help, "cache = \"pass\"?");
    let (_, marked, help) = told("cache = { stale_while_revalidate = \"1m\" }\n");
    assert_eq!(marked, "stale_while_revalidate");
    assert_eq!(help, "here it is called `grace`");
    let (_, _, help) = told("[cache]\nmemory = 100000000\n");
    assert_eq!(help, "\"100MB\"?");
}

#[test]
fn slips_get_a_suggestion() {
    for (text, marked, help) in [
        ("[cashe]\n", "cashe", "did you mean `cache`?"),
        ("[cache]\nmax-ttl = \"1s\"\n", "max-ttl", "did you mean `max_ttl`?"),
        ("memory = 3\n", "memory", "`memory` belongs to [cache]"),
        ("[purge]\ntoken = \"x\"\n", "token", "`token` belongs to [admin]; known here: allow"),
        ("[timeouts]\nhead = 5\n", "5", "\"5s\"?"),
        ("[timeouts]\nhead = \"5\"\n", "\"5\"", "\"5s\"?"),
        ("[cache]\nmemory = 1000\n", "1000", "\"1000MiB\"?"),
        ("[cache]\nprofile = \"save\"\n", "\"save\"", "did you mean \"safe\"?"),
        ("[cache]\ncache_status = \"true\"\n", "\"true\"", "without quotes: true"),
        ("[limits]\nfields = \"100\"\n", "\"100\"", "without quotes: 100"),
        ("[[listen]]\naddress = \"localhost:81\"\n", "\"localhost:81\"", "did you mean \"127.0.0.1:81\"?"),
        (
            "[pool.b]\nbackends = [\"localhost:81\"]\n",
            "\"localhost:81\"",
            "did you mean \"http://localhost:81\"?",
        ),
        ("[pool.b]\nbackends = [\"http://a/x\"]\n", "\"http://a/x\"", "did you mean \"http://a\"?"),
        (
            "[pool.b]\nbackends = \"http://a\"\nbalance = \"leastrequests\"\n",
            "\"leastrequests\"",
            "did you mean \"least_requests\"?",
        ),
        ("[[route]]\npool = \"apt\"\n", "\"apt\"", "did you mean \"app\"?"),
        (
            "[[route]]\nmatch = \"*.php\"\npool = \"app\"\n",
            "\"*.php\"",
            "a path begins with a slash: \"/*.php\"",
        ),
        (
            "[[route]]\nmatch = \"^~ /x\"\npool = \"app\"\n",
            "\"^~ /x\"",
            "\"/static/\" is everything below that path, \"=/static\" that path alone; the longer path is taken first",
        ),
        (
            "[[route]]\nmatch = \"a.example www.a.example\"\npool = \"app\"\n",
            "\"a.example www.a.example\"",
            "several hosts: match = { host = [\"example.org\", \"www.example.org\"] }",
        ),
        (
            "[[route]]\nmatch = \"/img/*.(jpg|png)\"\npool = \"app\"\n",
            "\"/img/*.(jpg|png)\"",
            "a star matches any run of characters: \"/images/*.png\"; if \"(\" is meant: { path = … }",
        ),
        (
            "[[route]]\nmatch = \"_\"\npool = \"app\"\n",
            "\"_\"",
            "without a host, a route is for all of them: match = \"/\"",
        ),
        (
            "[[route]]\nmatch = \"get /\"\npool = \"app\"\n",
            "\"get /\"",
            "methods are case-sensitive: \"GET\"",
        ),
        (
            "[[route]]\nmatch.host = \"a:80\"\npool = \"app\"\n",
            "\"a:80\"",
            "ports are ignored; did you mean \"a\"?",
        ),
        (
            "[[route]]\nmatch.path = \"/a?b\"\npool = \"app\"\n",
            "\"/a?b\"",
            "queries are ignored; did you mean \"/a\"?",
        ),
        (
            "[[route]]\npool = \"app\"\nupgrade = \"h2c\"\n",
            "\"h2c\"",
            "its requests would bypass all rules of this file",
        ),
        (
            "[[route]]\nredirect = \"https://www.example.com{target}\"\n",
            "\"https://www.example.com{target}\"",
            "redirect.to = \"https://www.example.com{target}\"",
        ),
        ("[[route]]\nanswer = \"Not here.\"\n", "\"Not here.\"", "answer.body = \"Not here.\""),
        ("[[route]]\nanswer = 403\n", "403", "answer.status = 403"),
        ("[[route]]\nredirect = {}\n", "{}", "redirect = { to = \"https://{host}{target}\" }"),
        ("[[route]]\nmatch = \"/\"\n", "[[route]]", "pool = \"app\""),
        ("[log]\naccess = \"stdot\"\n", "\"stdot\"", "did you mean \"stdout\"?"),
        ("[purge]\nallow = [\"10.0.0.1/8\"]\n", "\"10.0.0.1/8\"", "did you mean \"10.0.0.0/8\"?"),
        ("[admin]\ntoken = \"x\"\n", "\"x\"", "make one with: openssl rand -hex 16"),
    ] {
        let (message, was_marked, was_help) = told(text);
        assert_eq!(was_marked, marked, "{text}: {message}");
        assert_eq!(was_help, help, "{text}: {message}");
    }
}

#[test]
fn what_does_not_fit_together_is_refused() {
    for (text, message) in [
        ("[[listen]]\naddress = \":8080\"\n", ":8080 is listened on twice"),
        ("[[listen]]\naddress = \"127.0.0.1:8080\"\n", ":8080 and 127.0.0.1:8080 cannot both be listened on"),
        (
            "[[listen]]\naddress = \"[::]:1\"\n[[listen]]\naddress = \"10.0.0.1:1\"\n",
            "[::]:1 and 10.0.0.1:1 cannot both be listened on",
        ),
        (
            "[[listen]]\naddress = \"unix:/a\"\nmode = \"1777\"\n",
            "\"1777\" is not an octal mode from 0000 to 0777, such as \"0660\"",
        ),
        ("[[listen]]\naddress = \":1\"\nmode = \"0600\"\n", "only a Unix socket has a mode"),
        ("[pool.b]\n", "the pool `b` has no backends"),
        ("[pool.b]\nbackends = [\"http://a\", \"http://a:80\"]\n", "the backend http://a is listed twice"),
        ("[pool.\"a b\"]\n", "\"a b\" is not a name of letters, digits, `-` and `_`"),
        (
            "[[route]]\npool = \"app\"\nanswer = {}\n",
            "a route has only one of `pool`, `files`, `answer` and `redirect`",
        ),
        (
            "[[route]]\nanswer = { status = 204, body = \"x\" }\n",
            "an answer with status 204 has no body (RFC 9110 §15)",
        ),
        ("[[route]]\nredirect = { to = \"/\", status = 304 }\n", "304 is not the status of a redirect"),
        (
            "[[route]]\npool = \"app\"\nrequest.set.Content-Length = \"1\"\n",
            "`Content-Length` cannot be edited: the proxy frames messages itself",
        ),
        (
            "[[route]]\npool = \"app\"\nrequest.remove = \"Host\"\n",
            "`Host` cannot be edited: a request has exactly one; it can be set",
        ),
        (
            "[[route]]\npool = \"app\"\nresponse.set.X = \"a\\r\\nb\"\n",
            "the value of a field holds no line breaks or other control characters",
        ),
        ("[cache]\nmin_ttl = \"2s\"\nmax_ttl = \"1s\"\n", "`min_ttl` is more than `max_ttl`"),
        ("[cache]\nstatus_ttl = { 700 = \"1s\" }\n", "\"700\" is not a status code from 200 to 599"),
        ("[cache]\nttl = { 404 = \"1s\", override = 1 }\n", "expected true or false, found an integer"),
        (
            "[cache]\nkey_fields = [\"X-Country\", \"cookie\"]\n",
            "`key_fields` names Cookie, and requests with cookies bypass the cache",
        ),
        ("[cache]\nmemory = \"1kB\"\n", "\"1kB\" is too small: at least 1MiB"),
        ("[limits]\nhead = \"61KiB\"\n", "\"61KiB\" is out of bounds: from 1KiB to 60KiB"),
        ("[limits]\nhead = \"2KiB\"\n", "[limits] target is more than head, of which it is a part"),
        ("[timeouts]\nhead = \"0s\"\n", "a timeout must be more than 0s"),
        (
            "[admin]\nlisten = \":9\"\n",
            "the admin interface on :9 needs a `token`: whoever reaches it rules the proxy",
        ),
    ] {
        assert_eq!(told(text).0, message, "{text}");
    }
}

#[test]
fn what_is_missing_is_told_only_where_the_rest_could_be_read() {
    let messages = |text: &str| {
        let diagnostics = refused(text);
        diagnostics.errors().iter().map(|error| error.message.clone()).collect::<Vec<_>>()
    };
    assert_eq!(messages(""), ["nothing to listen on", "there is no route"]);
    assert_eq!(messages("[[listen]]\nadress = \":80\"\n"), ["unknown key `adress`"]);
    let diagnostics = refused(BASE);
    assert_eq!(diagnostics.errors()[0].help.as_deref(), Some("add [[route]] with pool = \"app\""));
}

#[test]
fn a_trusted_proxy_that_may_purge_is_warned_of() {
    let with = |trusted: &str, allow: &str| {
        let text = format!(
            "[[listen]]\naddress = \":8080\"\ntrusted_proxies = {trusted}\n[pool.app]\nbackends = \"http://a\"\n\
             [[route]]\npool = \"app\"\n[purge]\nallow = {allow}\n"
        );
        warnings(&text)
    };
    for (trusted, allow, both) in [
        ("\"127.0.0.1\"", "[\"192.0.2.1\", \"127.0.0.0/8\"]", "127.0.0.1"),
        ("\"10.0.0.0/8\"", "\"10.1.2.3\"", "10.1.2.3"),
        ("\"2001:db8::/32\"", "\"2001:db8:7::/48\"", "2001:db8:7::/48"),
        ("\"unix\"", "\"unix\"", "unix"),
    ] {
        let warning = format!(
            "[purge] allow holds {both}, and so do the trusted_proxies of :8080: anyone whose requests that proxy passes on can purge"
        );
        assert_eq!(with(trusted, allow), [warning]);
    }
    for (trusted, allow) in
        [("\"10.0.0.0/8\"", "\"127.0.0.1\""), ("\"unix\"", "\"127.0.0.1\""), ("\"::1\"", "\"127.0.0.1\"")]
    {
        assert!(with(trusted, allow).is_empty(), "{trusted} {allow}");
    }
}

#[test]
fn an_empty_file_is_named() {
    assert!(refused("").to_string().starts_with("error: nothing to listen on\n --> sandarac.toml\n"));
}

#[test]
fn bytes_that_are_no_text_are_told_with_their_place() {
    let file = b"[[listen]]\naddress = \":80\"\n# caf\xe9 br\xfbl\xe9\n";
    let errors = Config::from_bytes_and_flags("sandarac.toml", file, &Flags::default()).unwrap_err();
    let expected = "\
error: byte 0xe9 is not UTF-8
 --> sandarac.toml:3:6
  |
3 | # caf\u{fffd} br\u{fffd}l\u{fffd}
  |      ^
  = help: save the file as UTF-8
";
    assert_eq!(errors.to_string(), expected);
}

#[test]
fn a_key_that_is_there_twice_shows_the_first() {
    let first_line = |text: &str| {
        let errors = refused(text);
        let error = errors.errors().iter().find(|error| error.message == "duplicate key").expect("it is one");
        let (place, why) = error.also.clone().expect("the first is shown");
        assert_eq!(why, "here already");
        text[..place.start].lines().count()
            + usize::from(text[..place.start].ends_with('\n') || place.start == 0)
    };
    assert_eq!(first_line("a = 1\nb = 1\na = 2\n"), 1);
    assert_eq!(first_line("[t]\na = 1\n[u]\na = 1\na = 2\n"), 4);
    assert_eq!(first_line("a = 1\nb.a = 1\na = 2\n"), 1);
    assert_eq!(first_line("[log]\n[cache]\n[log]\n"), 1);
    assert_eq!(first_line("x = { a = 1, b = 2, a = 3 }\n"), 1);
}

#[test]
fn a_number_that_is_too_large_is_told_as_such() {
    for number in ["99999999999999999999", "4294967296"] {
        let message = told(&format!("[limits]\nconnections = {number}\n")).0;
        assert_eq!(message, format!("{number} is too large: a number up to 4294967295"));
    }
}

#[test]
fn broken_toml_is_told_with_its_place() {
    let expected = "\
error: invalid basic string, expected `\"`
 --> sandarac.toml:2:15
  |
2 | address = \":80
  |               ^
";
    assert_eq!(refused("[[listen]]\naddress = \":80\n").to_string(), expected);
    assert_eq!(refused("a = 1\na = 2\n").errors()[0].message, "duplicate key");
}

#[test]
fn what_is_probably_not_meant_is_warned_of() {
    let route = |matched: &str| format!("[[route]]\nmatch = {matched}\npool = \"app\"\n");
    let never =
        |later: u32, first: u32| format!("route {later} is never used: route {first} takes all its requests");
    for (first, second, unreachable) in [
        ("\"/blog\"", "\"/blog/2020/\"", true),
        ("\"/blog/\"", "\"/blog\"", false),
        ("\"/blog\"", "\"/blogs\"", false),
        ("\"/\"", "\"example.com\"", true),
        ("\"example.com\"", "\"/\"", false),
        ("\"*.example.com\"", "\"www.example.com/a\"", true),
        ("\"www.example.com\"", "\"*.example.com\"", false),
        ("\"GET /a\"", "\"/a\"", false),
        ("\"/a\"", "\"GET|HEAD /a/*.php\"", true),
        ("\"GET|HEAD /a\"", "\"GET /a\"", true),
        ("[\"/a\", \"/b\"]", "[\"/b/c\", \"/a\"]", true),
        ("[\"/a\", \"/b\"]", "[\"/b/c\", \"/c\"]", false),
        ("\"/a*\"", "\"/ab\"", true),
        ("\"/*.php\"", "\"=/x.php\"", true),
        ("\"/*.php\"", "\"/x.php\"", false),
        ("\"=/a\"", "\"/a\"", false),
        ("[]", "\"/\"", true),
    ] {
        let found = warnings(&format!("{BASE}{}{}", route(first), route(second)));
        let expected = if unreachable { vec![never(2, 1)] } else { Vec::new() };
        assert_eq!(found, expected, "{first} then {second}");
    }

    let text = format!("{BASE}[[route]]\npool = \"app\"\n");
    assert_eq!(
        warnings(&format!("{text}[pool.b]\nbackends = \"http://b\"\n")),
        ["no route uses the pool `b`"]
    );
    let all = "[purge] allow holds 0.0.0.0/0: anyone can empty the cache";
    assert_eq!(warnings(&format!("{text}[purge]\nallow = \"0.0.0.0/0\"\n")), [all]);
    let idle = format!(
        "{BASE}[[route]]\nmatch = \"/a\"\nanswer = {{}}\ncache = \"pass\"\n[[route]]\npool = \"app\"\n"
    );
    assert_eq!(warnings(&idle), ["`cache` has no effect on a route without a `pool`"]);
}

#[test]
fn edits_that_are_meant_for_what_all_share_are_warned_of_where_they_meet_personal_pages() {
    let with = |edits: &str| warnings(&format!("{BASE}[[route]]\npool = \"app\"\n{edits}\n"));
    assert_eq!(
        with("response = { remove = [\"set-cookie\"] }"),
        ["this removes cookies that log visitors in, of responses that are not stored, too"]
    );
    assert_eq!(
        with("response.set = { Cache-Control = \"public, max-age=60\" }"),
        ["this lets browsers and other caches keep personal pages, of responses that are not stored, too"]
    );
    assert_eq!(
        warnings(&format!(
            "{BASE}[[route]]\nfiles = \"/srv/www\"\ntry = [\"{{path}}\", \"pool:app\"]\nresponse.set = {{ Cache-Control = \"max-age=60\" }}\n"
        )),
        ["this lets browsers and other caches keep personal pages, of responses that are not stored, too"]
    );
    let alone = "[[route]]\nmatch = \"/assets/*\"\nfiles = \"/srv/www\"\nresponse.set = { Cache-Control = \"max-age=60\" }\n";
    assert!(warnings(&format!("{BASE}{alone}[[route]]\npool = \"app\"\n")).is_empty());
    // The page may belong to the session that the cookie began.
    let [lost] = &with("stored_response = { remove = [\"Set-Cookie\"] }")[..] else { panic!("one warning") };
    assert!(lost.starts_with("pages that set a cookie are stored without it"), "{lost}");
    for fine in [
        "stored_response = { set = { Cache-Control = \"public\" } }",
        "response = { set = { Cache-Control = \"private\" } }",
        "cache = \"pass\"\nresponse = { remove = [\"Set-Cookie\"] }",
    ] {
        assert!(with(fine).is_empty(), "{fine}");
    }
}

#[test]
fn fields_that_the_cache_writes_itself_are_not_for_edits_where_it_is_used() {
    let fields =
        ["Range", "If-Range", "If-None-Match", "if-modified-since", "If-Match", "If-Unmodified-Since"];
    for field in fields {
        for edit in [format!("set = {{ {field} = \"x\" }}"), format!("add = {{ {field} = [\"x\"] }}")] {
            let (message, marked, help) = told(&format!("[[route]]\npool = \"app\"\nrequest.{edit}\n"));
            assert!(
                message.starts_with(&format!("`{field}` cannot be set on a route with a cache: ")),
                "{message}"
            );
            assert_eq!(marked, field);
            assert_eq!(help, "cache = \"pass\" on this route, if none of its responses should be stored");
        }
    }
    for fine in [
        "cache = \"pass\"\nrequest.set = { Range = \"bytes=0-9\" }",
        "request.remove = [\"Range\", \"If-None-Match\"]",
    ] {
        assert!(warnings(&format!("{BASE}[[route]]\npool = \"app\"\n{fine}\n")).is_empty(), "{fine}");
    }
}

#[test]
fn placeholders_in_another_spelling_are_refused_and_braces_of_json_are_not() {
    for (value, help) in [
        ("{Host}", "did you mean {host}?"),
        ("{ host }", "did you mean {host}?"),
        ("a/{TARGET}", "did you mean {target}?"),
        ("{hots}", "did you mean {host}?"),
        (
            "{foo}",
            "known: {client}, {host}, {id}, {path}, {query}, {scheme}, {target}, {tls_cipher}, \
             {tls_client_certificate}, {tls_resumed}, {tls_server_name}, {tls_version}; `{{` is a brace",
        ),
    ] {
        let (message, marked, told) =
            told(&format!("[[route]]\npool = \"app\"\nrequest.set.X-A = \"{value}\"\n"));
        let word = &value[value.find('{').unwrap()..];
        assert_eq!(message, format!("{word} is not a known part"));
        assert_eq!(marked, "X-A");
        assert_eq!(told, help);
    }
    let (_, marked, help) = told("[[route]]\nredirect.to = \"https://{ Host }/\"\n");
    assert_eq!(marked, "\"https://{ Host }/\"");
    assert_eq!(help, "did you mean {host}?");
    for fine in ["{}", "{ }", "{\\\"group\\\":1}", "{{Host}", "{a:b}", "{1}", "{x y}", "{Foo}", "{ x }"] {
        let text = format!("{BASE}[[route]]\npool = \"app\"\nresponse.set.X-A = \"{fine}\"\n");
        assert!(warnings(&text).is_empty(), "{fine}");
    }
}

#[test]
fn placeholders_in_answers_are_warned_of() {
    let with = |answer: &str| warnings(&format!("{BASE}[[route]]\nanswer.{answer}\n"));
    let not_filled =
        |word: &str| format!("{word} is not replaced here: an answer is the same for all requests");
    let pool = "no route uses the pool `app`".to_owned();
    assert_eq!(with("body = \"You are {client} at {host}.\""), [pool.clone(), not_filled("{client}")]);
    assert_eq!(with("fields = { X-A = \"{id}\" }"), [pool.clone(), not_filled("{id}")]);
    assert_eq!(with("body = '{\"host\": {\"path\": {}}, \"b\": {hosts}}'"), [pool]);
}

/// As people who come from nginx and HAProxy write them.
#[test]
fn variables_are_warned_of() {
    for route in [
        "redirect = { to = \"https://$host$request_uri\" }",
        "pool = \"app\"\nrequest.set = { X-Real-IP = \"$remote_addr\" }",
        "pool = \"app\"\nrequest.set = { X-Real-IP = \"ip=%[src]\" }",
    ] {
        let text = format!("{BASE}[[route]]\n{route}\n");
        let said = warnings(&text).into_iter().find(|warning| warning.contains("there are no variables"));
        assert!(
            said.is_some_and(|said| said.starts_with("\"$") || said.starts_with("\"%[src]\"")),
            "{route}"
        );
    }
    let price = format!("{BASE}[[route]]\npool = \"app\"\nresponse.set = {{ X-Price = \"$ 5\" }}\n");
    assert!(warnings(&price).is_empty());
}
