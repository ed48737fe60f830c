//! The page of a route for requests without a file.

use std::fs;

use sandarac_test_support::http2::Http2;
use sandarac_test_support::{get, head, post, within};

use super::{serving, site, tree, write};
use crate::{sandarac, stat};

const PAGE: &str = "<h1>Gone fishing</h1>";

#[test]
fn what_is_not_there_is_answered_with_the_page_and_404() {
    let files = [("404.html", PAGE), ("a.txt", "a"), (".env", "secret"), ("dir/a.txt", "a")];
    let keys = "not_found = \"/404.html\"\ntry = [\"{path}\", \"{path}.html\"]\n\
                response.set = { Cache-Control = \"max-age=60\" }\n\n\
                [log]\naccess = \"stdout\"\nformat = \"json\"";
    let (proxy, tree) = serving(&files, keys);
    let mut client = proxy.connect();
    for target in ["/none", "/.env", "/a%2fb", "/a.txt/", "/none"] {
        let page = client.get(target).expect(404);
        assert_eq!(page.text(), PAGE, "{target}");
        assert_eq!(page.field("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(page.field("content-length"), Some("21"));
        assert_eq!(
            page.field("cache-control"),
            Some("no-store"),
            "the lifetime is meant for files that are there"
        );
        for name in ["etag", "last-modified", "accept-ranges", "vary", "cache-status"] {
            assert!(!page.fields.has(name), "{name}: {page:?}");
        }
        assert!(page.field("proxy-status").is_some_and(|status| status.contains("there is no such file")));
    }
    let without = client.exchange(&head("/none")).expect(404);
    assert_eq!((without.text().as_str(), without.field("content-length")), ("", Some("21")));
    // It is the page of an error: there are no parts of it, and nothing that a client could have (RFC 9110 §13.2.1).
    for (name, value) in [("Range", "bytes=0-1"), ("If-None-Match", "*"), ("If-Match", "\"a\"")] {
        assert_eq!(client.exchange(&get("/none").with(name, value)).expect(404).text(), PAGE, "{name}");
    }
    assert_eq!(client.get("/404.html").expect(200).field("cache-control"), Some("max-age=60"));
    assert_eq!(client.get("/404").expect(200).text(), PAGE);
    assert!(client.get("/dir/").expect(403).text().starts_with("403"), "it is no page for other refusals");
    assert!(client.exchange(&post("/none", "x")).expect(405).text().starts_with("405"));
    assert_eq!(stat(&proxy, "files"), 2);
    let line =
        within("the line", || proxy.stdout().lines().find(|line| line.contains("/.env")).map(str::to_owned));
    for part in ["\"status\":404", "\"reason\":\"file-hidden\"", "\"error\":\"there is no such file\""] {
        assert!(line.contains(part), "{line}");
    }
    drop(tree);
}

/// So that nobody gets it with 200.
#[test]
fn the_page_may_have_a_name_that_is_hidden() {
    let (proxy, _tree) = serving(&[(".errors/404.html", PAGE)], "not_found = \"/.errors/404.html\"");
    for target in ["/none", "/.errors/404.html"] {
        assert_eq!(proxy.get(target).expect(404).text(), PAGE, "{target}");
    }
}

#[test]
fn without_the_page_the_answer_is_a_line_of_text() {
    let (proxy, tree) = serving(&[("a.txt", "a")], "not_found = \"/404.html\"\nfiles_valid = \"0s\"");
    assert!(proxy.get("/none").expect(404).text().contains("there is no such file"));
    write(&tree, "404.html", PAGE);
    assert_eq!(proxy.get("/none").expect(404).text(), PAGE);
    fs::remove_file(tree.join("404.html")).unwrap();
    assert!(proxy.get("/none").expect(404).text().contains("there is no such file"));
}

#[test]
fn a_page_of_any_size_comes_in_the_coding_that_the_client_accepts() {
    let long = format!("<p>{}</p>", "x".repeat(3_000_000));
    let tree = tree(&[("page.html", &long), ("page.html.gz", "compressed")]);
    let keys = "not_found = \"/page.html\"";
    let config = site(tree.path(), keys).replace("\"127.0.0.1:0\"", "\"127.0.0.1:0\"\nhttp2 = true");
    let proxy = sandarac().config(config).start();
    let coded = proxy.exchange(&get("/none").with("Accept-Encoding", "gzip")).expect(404);
    assert_eq!((coded.text().as_str(), coded.field("content-encoding")), ("compressed", Some("gzip")));
    let plain = proxy.get("/none").expect(404);
    assert!(plain.text() == long && plain.field("vary") == Some("Accept-Encoding"));
    let mut client = Http2::to(proxy.address());
    let stream = client.get("/none", &[]);
    let plain = client.response(stream);
    assert!(plain.status == 404 && plain.text() == long);
}

/// Many paths without a file take no more descriptors than one.
#[test]
fn a_scan_for_names_that_are_not_there_opens_the_page_once() {
    let long = "x".repeat(100_000);
    let (proxy, _tree) = serving(&[("404.html", &long)], "not_found = \"/404.html\"\nfiles_valid = \"1h\"");
    let mut client = proxy.connect();
    client.get("/0").expect(404);
    let before = proxy.open_descriptors();
    for number in 1..200 {
        assert!(client.get(&format!("/{number}")).expect(404).text() == long);
    }
    assert!(proxy.open_descriptors() <= before + 2, "{before} before");
}
