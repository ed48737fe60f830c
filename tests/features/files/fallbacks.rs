//! Names that are tried, and the pool for requests without a file.

use sandarac_test_support::{Origin, get, post, reply};

use super::{site, tree};
use crate::sandarac;

#[test]
fn names_are_tried_in_order_and_then_the_pool() {
    let tree =
        tree(&[("a.txt", "file"), ("page.html", "page"), ("docs/index.html", "docs"), (".env", "secret")]);
    let origin = Origin::new(|request| {
        reply(200).cache("max-age=60").body(format!("{} {}", request.method, request.path()))
    });
    let pool = format!("\n[pool.app]\nbackends = [\"{}\"]\n", origin.url());
    let keys = format!(
        "try = [\"{{path}}\", \"{{path}}.html\", \"{{path}}/index.html\", \"pool:app\"]\nindex = []\n{pool}"
    );
    let proxy = sandarac().config(site(tree.path(), &keys)).start();
    let mut client = proxy.connect();
    for (path, content) in [
        ("/a.txt", "file"),
        ("/page", "page"),
        ("/docs", "docs"),
        ("/docs/", "docs"),
        ("/app", "GET /app"),
        ("/.env", "GET /.env"),
        ("/docs/none", "GET /docs/none"),
    ] {
        assert_eq!(client.get(path).expect(200).text(), content, "{path}");
    }
    assert!(client.get("/app").expect(200).is_hit(), "the pool's responses are cached");
    assert_eq!(client.exchange(&post("/a.txt", "x")).expect(200).text(), "POST /a.txt");
    assert_eq!(origin.count(), 4);
}

#[test]
fn a_page_of_its_own_answers_for_all_paths_of_an_application_in_the_browser() {
    let tree = tree(&[("index.html", "app"), ("app.js", "code")]);
    let proxy = sandarac().config(site(tree.path(), "try = [\"{path}\", \"/index.html\"]")).start();
    assert_eq!(proxy.get("/app.js").expect(200).text(), "code");
    for path in ["/", "/users/42", "/users/42/"] {
        let page = proxy.get(path).expect(200);
        assert_eq!(
            (page.text().as_str(), page.field("content-type")),
            ("app", Some("text/html; charset=utf-8"))
        );
    }
}

#[test]
fn the_source_of_a_program_is_never_sent() {
    const NAMES: [&str; 7] =
        ["index.php", "wp/index.php", "config.inc.php", "INFO.PHP", "x.phtml", "y.phar", "z.php7"];
    let tree = tree(&NAMES.map(|name| (name, "<?php $secret = 1;")));
    let origin = Origin::new(|request| reply(200).cache("no-store").body(request.path()));
    let pool = format!("\n[pool.php]\nbackends = [\"{}\"]\n", origin.url());
    let index = "index = [\"index.php\", \"index.html\"]";
    for names in
        ["\"{path}\"", "\"{path}\", \"{path}/index.php\", \"{path}.php\"", "\"{path}\", \"/index.php\""]
    {
        let keys = format!("{index}\ntry = [{names}, \"pool:php\"]\n{pool}");
        let proxy = sandarac().config(site(tree.path(), &keys)).start();
        for path in NAMES.map(|name| format!("/{name}")).iter().map(String::as_str).chain([
            "/",
            "/wp/",
            "/%69ndex%2ephp",
        ]) {
            assert_eq!(proxy.get(path).expect(200).text(), path, "{names}");
        }
        assert_eq!(proxy.get("/config.inc").expect(200).text(), "/config.inc", "{names}");
        let keys = format!("{index}\ntry = [{names}]");
        let proxy = sandarac().config(site(tree.path(), &keys)).start();
        for path in NAMES.map(|name| format!("/{name}")).iter().map(String::as_str).chain(["/", "/wp/"]) {
            let refused = proxy.get(path).expect(403);
            assert!(
                refused
                    .field("proxy-status")
                    .is_some_and(|status| status.contains("a program is not sent as a file")),
                "{refused:?}"
            );
        }
    }
}

#[test]
fn a_directory_with_a_program_as_its_index_gets_a_slash() {
    let tree = tree(&[("wp/index.php", "<?php")]);
    let origin = Origin::new(|request| reply(200).cache("no-store").body(request.path()));
    let keys = format!(
        "index = [\"index.php\"]\ntry = [\"{{path}}\", \"pool:php\"]\n\n[pool.php]\nbackends = [\"{}\"]\n",
        origin.url()
    );
    let proxy = sandarac().config(site(tree.path(), &keys)).start();
    assert_eq!(proxy.get("/wp").expect(301).field("location"), Some("/wp/"));
    assert_eq!(proxy.get("/wp/").expect(200).text(), "/wp/");
}

#[test]
fn edits_apply_to_files_and_may_use_the_request() {
    let tree = tree(&[("a.txt", "a")]);
    let keys = "response.set = { X-Host = \"{host}\", Cache-Control = \"max-age=60\" }\nresponse.remove = [\"Last-Modified\"]";
    let proxy = sandarac().config(site(tree.path(), keys)).start();
    for host in ["one.example", "two.example", "one.example"] {
        let response = proxy.exchange(&get("/a.txt").host(host)).expect(200);
        assert_eq!(response.field("x-host"), Some(host));
        assert!(!response.fields.has("last-modified") && response.fields.has("etag"));
    }
}
