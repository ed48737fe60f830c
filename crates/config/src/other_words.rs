//! The words of other programs for settings, and ours.

use std::ops::Range;

/// Other names of settings that are too different from ours to be found as typing errors. They apply in tables with
/// our name.
const NAMES: [(&str, &str); 37] = [
    ("root", "files"),
    ("file_server", "files"),
    ("document_root", "files"),
    ("try_files", "try"),
    ("error_page", "not_found"),
    ("php_fastcgi", "php"),
    ("fastcgi_pass", "backends"),
    ("fastcgi_pass", "pool"),
    ("proxy_pass", "backends"),
    ("proxy_pass", "pool"),
    ("grpc_pass", "backends"),
    ("grpc_pass", "pool"),
    ("upstream", "backends"),
    ("upstream", "pool"),
    ("backend", "pool"),
    ("director", "balance"),
    ("probe", "check"),
    ("keepalive", "idle_timeout"),
    ("location", "match"),
    ("server_name", "match"),
    ("autoindex", "listing"),
    ("gzip_static", "precompressed"),
    ("gzip", "compress"),
    ("do_gzip", "compress"),
    ("esi", "fragments"),
    ("do_esi", "fragments"),
    ("hash_data", "key_fields"),
    ("synth", "answer"),
    ("unset", "remove"),
    ("default_grace", "grace"),
    ("stale_while_revalidate", "grace"),
    ("swr", "grace"),
    ("storage", "memory"),
    ("shared_max", "max_object"),
    ("shared_wait", "wait"),
    ("worker_processes", "threads"),
    ("ssl_certificate", "tls"),
];

/// Words for which there is no single setting, or one in another table.
const MEANINGS: [(&str, &str); 29] = [
    ("acl", "`allow` in [purge] says who may purge; there are no other lists of addresses"),
    ("add_header", "`set` or `add` in the `response` of a route"),
    ("beresp", "`ttl`, `grace` and `keep` in the `cache` of a route; its `response` edits fields"),
    ("client_max_body_size", "`body` in [limits]"),
    ("default_grace", "`grace` in [cache] or in the `cache` of a route"),
    ("deny", "`answer = { status = 403 }` on a route for what nobody may reach"),
    ("director", "`balance` of a pool"),
    ("do_esi", "`fragments = true` on a route"),
    ("do_gzip", "`compress = true` on a route"),
    (
        "error_page",
        "`not_found` on a route with `files`; other errors are plain text, and `stale_if_error` serves stored pages instead",
    ),
    ("esi", "`fragments = true` on a route"),
    (
        "expires",
        "`set = { Cache-Control = \"…\" }` in the `response` of a route; `ttl` in its `cache` is for the cache here",
    ),
    ("gzip", "`compress = true` on a route"),
    ("hash_data", "`key_fields` or `key_cookies` in the `cache` of a route"),
    ("hit_for_miss", "it is always on, for two minutes: docs/manual/caching.md"),
    ("keepalive", "`idle_timeout` of a pool"),
    ("limit_req", "there is no limit by rate; `max_in_flight` of a pool limits the requests at a time"),
    ("location", "`match` of a [[route]]"),
    ("probe", "`check` of a pool"),
    ("proxy_set_header", "`set` in the `request` of a route"),
    ("return", "`redirect` or `answer` on a route, or `cache = \"pass\"`"),
    ("rewrite", "`redirect` on a route; paths are forwarded as they came"),
    ("server_name", "`match` of a [[route]]: match = \"example.org\""),
    ("ssl_certificate", "`tls` of a [[listen]]"),
    ("stale_while_revalidate", "`grace` in [cache] or in the `cache` of a route"),
    ("storage", "`memory` in [cache]"),
    ("synth", "`answer` on a route"),
    ("unset", "`remove` in the `request`, `response` or `stored_response` of a route"),
    ("worker_processes", "`threads` at the top of the file"),
];

/// What `word` is called here, in a table with these `names`, or elsewhere.
pub(crate) fn help_for(word: &str, names: &[&str]) -> Option<String> {
    if let Some((_, name)) = NAMES.iter().find(|(other, name)| *other == word && names.contains(name)) {
        return Some(format!("here it is called `{name}`"));
    }
    MEANINGS.iter().find(|(other, _)| *other == word).map(|(_, meaning)| format!("here it is {meaning}"))
}

/// A file of another program: the bytes of its first telling line, the name of its language, and the page about the move.
pub(crate) fn other_program(text: &str) -> Option<(Range<usize>, &'static str, &'static str)> {
    // A file that says what it is does so at its beginning.
    const LINES: usize = 100;
    let mut at = 0;
    for line in text.split_inclusive('\n').take(LINES) {
        let words = line.trim();
        let place = at..at + line.trim_end().len();
        at += line.len();
        let opens =
            |block: &str| words.strip_prefix(block).is_some_and(|rest| rest.trim_start().starts_with('{'));
        if words.starts_with("vcl 4") || words.starts_with("sub vcl_") {
            return Some((place, "Varnish (VCL)", "docs/how-to/from-varnish.md"));
        }
        if ["server", "http", "events"].into_iter().any(opens) {
            return Some((place, "nginx", "docs/how-to/from-nginx.md"));
        }
    }
    None
}
