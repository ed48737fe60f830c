//! Words and values of other programs are answered with those of this one.

use crate::{BASE, refused, warnings};

/// The message and the help of the first error in `text` after a whole configuration.
fn told(text: &str) -> (String, String) {
    let diagnostics = refused(&format!("{BASE}[[route]]\nmatch = \"/first\"\npool = \"app\"\n{text}\n"));
    let first = &diagnostics.errors()[0];
    (first.message.clone(), first.help.clone().unwrap_or_default())
}

#[test]
fn a_word_of_varnish_or_nginx_is_answered_with_the_setting_or_the_page() {
    for (table, words) in [
        (
            "[[route]]\npool = \"app\"",
            &[
                ("backend", "`pool`"),
                ("proxy_pass", "`pool`"),
                ("fastcgi_pass", "`pool`"),
                ("upstream", "`pool`"),
                ("director", "`balance`"),
                ("probe", "`check`"),
                ("location", "`match`"),
                ("server_name", "`match`"),
                ("beresp.ttl", "`ttl`"),
                ("do_esi", "`fragments`"),
                ("esi", "`fragments`"),
                ("do_gzip", "`compress`"),
                ("gzip", "`compress`"),
                ("hash_data", "`key_fields`"),
                ("synth", "`answer`"),
                ("deny", "`answer = { status = 403 }`"),
                ("return", "`redirect`"),
                ("rewrite", "`redirect`"),
                ("unset", "`remove`"),
                ("add_header", "`response`"),
                ("proxy_set_header", "`request`"),
                ("expires", "Cache-Control"),
                ("error_page", "`not_found`"),
                ("hit_for_miss", "docs/manual/caching.md"),
                ("limit_req", "`max_in_flight`"),
                ("client_max_body_size", "`body`"),
                ("acl", "`allow`"),
            ][..],
        ),
        (
            "[[route]]\npool = \"app\"\n[route.cache]",
            &[
                ("stale_while_revalidate", "`grace`"),
                ("default_grace", "`grace`"),
                ("hash_data", "`key_fields`"),
            ],
        ),
        (
            "[pool.b]\nbackends = \"http://b\"",
            &[
                ("upstream", "`backends`"),
                ("keepalive", "`idle_timeout`"),
                ("director", "`balance`"),
                ("probe", "`check`"),
            ],
        ),
        ("[[listen]]\naddress = \":81\"", &[("server_name", "`match`"), ("ssl_certificate", "`tls`")]),
        ("[cache]", &[("storage", "`memory`"), ("default_grace", "`grace`")]),
        ("[limits]", &[("client_max_body_size", "`body`")]),
    ] {
        for (word, expected) in words {
            let (message, help) = told(&format!("{table}\n{word} = \"1\""));
            let key = word.split('.').next().unwrap();
            assert_eq!(message, format!("unknown key `{key}`"), "{table}");
            assert!(help.contains(expected), "{word} in {table}: {help}");
        }
    }
    let top = refused(&format!("worker_processes = 4\n{BASE}[[route]]\npool = \"app\"\n")).to_string();
    assert!(top.contains("here it is called `threads`"), "{top}");
}

#[test]
fn a_value_of_another_program_is_answered_with_ours() {
    for (text, expected) in [
        (
            "[[route]]\nmatch = \"http://example.org/\"\npool = \"app\"",
            "leave out the scheme: \"example.org/\"",
        ),
        ("[[route]]\nmatch = \"^/foo.*\"\npool = \"app\"", "a star matches any run of characters"),
        ("[[route]]\npool = \"app\"\ncache = \"off\"", "cache = \"pass\""),
        ("[[route]]\npool = \"app\"\nfragments = \"on\"", "write true, without quotes"),
        ("[[route]]\npool = \"app\"\ncompress = \"on\"", "write true, without quotes"),
        ("[[listen]]\naddress = \":81\"\nhttp2 = \"on\"", "write true, without quotes"),
        ("[[listen]]\naddress = \":81\"\nhttp2 = \"off\"", "write false, without quotes"),
        ("[[listen]]\naddress = \":81\"\ntls = true", "tls.certificates"),
        ("[[route]]\nfiles = \"/srv\"\nindex = \"index.php index.html\"", "[\"index.php\", \"index.html\"]"),
    ] {
        let (message, help) = told(text);
        assert!(help.contains(expected), "{text}: {message}: {help}");
    }
    let several = refused("[[listen]]\naddress = \":80\"\n[[pool]]\nbackends = \"http://a\"\n").to_string();
    assert!(several.contains("[pool.NAME]"), "{several}");
    let route = format!("{BASE}[[route]]\npool = \"app\"\nrequest.set.X-A = \"$remote_addr\"\n");
    let (_, found) = sandarac_config::Config::from_toml("a", &route).unwrap();
    assert!(found[0].to_string().contains("{client}"), "{found:?}");
}

#[test]
fn a_file_of_varnish_or_nginx_is_answered_with_one_message() {
    for (text, expected) in [
        ("vcl 4.1;\n\nbackend default { .host = \"127.0.0.1\"; }\n", "from-varnish.md"),
        ("# Ours\nsub vcl_recv {\n  return (pass);\n}\n", "from-varnish.md"),
        ("user www;\nhttp {\n  server {\n    listen 80;\n  }\n}\n", "from-nginx.md"),
        ("server {\n  listen 80;\n}\n", "from-nginx.md"),
    ] {
        let diagnostics = refused(text);
        assert_eq!(diagnostics.errors().len(), 1, "{diagnostics}");
        assert!(diagnostics.to_string().contains(expected), "{diagnostics}");
    }
}

#[test]
fn a_setting_that_cannot_do_what_it_looks_like_is_warned_of() {
    let route = |keys: &str| warnings(&format!("{BASE}[[route]]\npool = \"app\"\n{keys}\n"));
    for (keys, expected) in [
        ("cache = { ignore_cookies = [\"^_ga.*$\"] }", "\"^_ga.*$\" is taken literally except for stars"),
        ("request.remove = [\"Cookie\"]", "requests with cookies bypass the cache all the same"),
        ("hsts = \"1d\"", "no client comes by https"),
        (
            "cache = { ignore_cookies = [\"a\", \"b\"], bypass_cookies = [\"b\"] }",
            "`b` is in `bypass_cookies` and in `ignore_cookies`: requests with it bypass the cache",
        ),
    ] {
        let found = route(keys);
        assert!(found.iter().any(|message| message.contains(expected)), "{keys}: {found:?}");
    }
    let listen = "[[listen]]\naddress = \":80\"\nredirect_to_https = true\n";
    let found =
        warnings(&format!("{listen}[pool.app]\nbackends = \"http://a\"\n[[route]]\npool = \"app\"\n"));
    assert!(found.iter().any(|message| message.contains("no listener has `tls`")), "{found:?}");
    for fine in [
        "cache = { ignore_cookies = [\"_ga*\"], bypass_cookies = [\"session\"] }",
        "cache = \"pass\"\nrequest.remove = [\"Cookie\"]",
        "cache = { ignore_cookies = [\"*\"] }\nrequest.remove = [\"Cookie\"]",
    ] {
        assert_eq!(route(fine), [""; 0], "{fine}");
    }
}
