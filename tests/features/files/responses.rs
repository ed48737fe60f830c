//! The responses: fields, conditions, ranges, codings, directories.

use sandarac_test_support::http2::Http2;
use sandarac_test_support::{Sandarac, get, head, request};

use super::{serving, site, tree, write};
use crate::{labelled, sandarac, stat};

const PAGE: &str = "<p>Hello.</p>\n";

#[test]
fn a_file_comes_with_its_type_its_validators_and_its_length() {
    let (proxy, _tree) = serving(&[("index.html", PAGE), ("a.unknown", "?")], "");
    let mut client = proxy.connect();
    for _ in 0..2 {
        let response = client.get("/index.html").expect(200);
        assert_eq!(response.text(), PAGE);
        assert_eq!(response.field("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(response.field("content-length"), Some("14"));
        assert_eq!(response.field("accept-ranges"), Some("bytes"));
        assert!(response.field("etag").is_some_and(|tag| tag.starts_with('"') && tag.ends_with("-e\"")));
        assert!(response.field("last-modified").is_some_and(|date| date.ends_with("GMT")));
        assert!(response.fields.has("date") && !response.fields.has("age") && !response.fields.has("vary"));
        assert_eq!(response.cache_status(), "sandarac; detail=file");
    }
    assert_eq!(client.get("/a.unknown").field("content-type"), Some("application/octet-stream"));
    let without = client.exchange(&head("/index.html")).expect(200);
    assert_eq!((without.text().as_str(), without.field("content-length")), ("", Some("14")));
    assert_eq!(stat(&proxy, "files"), 4);
}

/// Two nodes with copies of one tree must agree, so that a client may go from one to the other.
#[test]
fn an_entity_tag_depends_on_time_and_size_alone() {
    let (one, tree_one) = serving(&[("a.txt", "same")], "");
    let (other, tree_other) = serving(&[("a.txt", "copy")], "");
    let time = std::fs::metadata(tree_one.join("a.txt")).unwrap().modified().unwrap();
    std::fs::File::options().write(true).open(tree_other.join("a.txt")).unwrap().set_modified(time).unwrap();
    let tag = |proxy: &Sandarac| proxy.get("/a.txt").field("etag").map(str::to_owned);
    assert_eq!(tag(&one), tag(&other));
}

#[test]
fn conditions_are_evaluated() {
    let (proxy, _tree) =
        serving(&[("a.txt", "0123456789")], "response.set = { Cache-Control = \"max-age=60\" }");
    let mut client = proxy.connect();
    let first = client.get("/a.txt").expect(200);
    let (tag, date) = (first.field("etag").unwrap(), first.field("last-modified").unwrap());
    assert_eq!(first.field("cache-control"), Some("max-age=60"));
    let fresh = client.exchange(&get("/a.txt").with("If-None-Match", tag)).expect(304);
    assert_eq!((fresh.field("etag"), fresh.field("cache-control")), (Some(tag), Some("max-age=60")));
    assert!(!fresh.fields.has("content-type") && fresh.fields.has("date"));
    client.exchange(&get("/a.txt").with("If-Modified-Since", date)).expect(304);
    client.exchange(&get("/a.txt").with("If-None-Match", "\"other\"")).expect(200);
    client.exchange(&get("/a.txt").with("If-Match", "\"other\"")).expect(412);
    client.exchange(&get("/a.txt").with("If-Match", tag)).expect(200);
    client.exchange(&get("/a.txt").with("If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:01 GMT")).expect(412);
    client.exchange(&head("/a.txt").with("If-None-Match", "*")).expect(304);
}

#[test]
fn ranges_are_served_singly_and_several_at_a_time() {
    let content: String = (0..40_000).map(|number| format!("{number:05}")).collect();
    let (proxy, _tree) = serving(&[("small.txt", "0123456789"), ("large.txt", &content)], "");
    let mut client = proxy.connect();
    let part = client.exchange(&get("/small.txt").with("Range", "bytes=2-4")).expect(206);
    assert_eq!((part.text().as_str(), part.field("content-range")), ("234", Some("bytes 2-4/10")));
    let part = client.exchange(&get("/large.txt").with("Range", "bytes=-5")).expect(206);
    assert_eq!((part.text().as_str(), part.field("content-length")), ("39999", Some("5")));
    let none = client.exchange(&get("/small.txt").with("Range", "bytes=10-")).expect(416);
    assert_eq!(none.field("content-range"), Some("bytes */10"));
    let parts = client.exchange(&get("/large.txt").with("Range", "bytes=0-4,100000-100004")).expect(206);
    let kind = parts.field("content-type").unwrap().to_owned();
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect("a boundary");
    assert_eq!(
        parts.text(),
        format!(
            "\r\n--{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes 0-4/200000\r\n\r\n00000\
             \r\n--{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes 100000-100004/200000\r\n\r\n20000\
             \r\n--{boundary}--\r\n"
        )
    );
    let tag = client.get("/large.txt").field("etag").unwrap().to_owned();
    let same = get("/large.txt").with("Range", "bytes=0-4").with("If-Range", &tag);
    assert_eq!(client.exchange(&same).expect(206).text(), "00000");
    let other = get("/large.txt").with("Range", "bytes=0-4").with("If-Range", "\"other\"");
    assert!(client.exchange(&other).expect(200).text() == content, "the whole");
}

/// Once a file is a second old, its date is a strong validator (RFC 9110 §8.8.2.2).
#[test]
fn the_date_of_an_older_file_is_a_condition_for_a_range() {
    let tree = tree(&[("a.txt", "0123456789")]);
    let file = std::fs::File::options().write(true).open(tree.join("a.txt")).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000))
        .unwrap();
    let proxy = sandarac().config(site(tree.path(), "")).start();
    let range = |date: &str| proxy.exchange(&get("/a.txt").with("Range", "bytes=2-3").with("If-Range", date));
    assert_eq!(range("Sun, 09 Sep 2001 01:46:40 GMT").expect(206).text(), "23");
    assert_eq!(range("Sun, 09 Sep 2001 01:46:41 GMT").expect(200).text(), "0123456789");
}

/// Each size takes another path: held in memory, sent from the file in place, and sent by an exchange.
#[test]
fn every_byte_of_a_file_arrives_whatever_its_size_over_http_1_and_2() {
    let sizes = [0, 1, 2048, 16 * 1024, 16 * 1024 + 1, 300_000, 5_000_000];
    let content =
        |size: usize| -> String { (0..size).map(|at| char::from(b'a' + (at % 23) as u8)).collect() };
    let names: Vec<(String, String)> = sizes.map(|size| (format!("{size}.txt"), content(size))).to_vec();
    let files: Vec<(&str, &str)> = names.iter().map(|(name, content)| (&**name, &**content)).collect();
    let tree = tree(&files);
    let config = site(tree.path(), "").replace("\"127.0.0.1:0\"", "\"127.0.0.1:0\"\nhttp2 = true");
    let proxy = sandarac().config(config).start();
    let mut client = proxy.connect();
    let mut http2 = Http2::to(proxy.address());
    http2.window(0, 100_000_000);
    for (name, content) in files {
        let target = format!("/{name}");
        assert!(client.get(&target).expect(200).text() == content, "{name}");
        let stream = http2.get(&target, &[]);
        http2.window(stream, 100_000_000);
        assert!(http2.response(stream).expect(200).text() == content, "{name} over HTTP/2");
    }
}

#[test]
fn a_compressed_neighbour_is_sent_to_clients_that_accept_it() {
    let files = [
        ("a.css", "a long text that was compressed before"),
        ("a.css.br", "brotli, the shortest"),
        ("a.css.gz", "gzip, a bit longer..."),
        ("b.css", "none beside it"),
    ];
    let (proxy, tree) = serving(&files, "files_valid = \"0s\"");
    let mut client = proxy.connect();
    let plain = client.get("/a.css").expect(200);
    assert_eq!((plain.text().as_str(), plain.field("vary")), (files[0].1, Some("Accept-Encoding")));
    let accepting = |value: &str| get("/a.css").with("Accept-Encoding", value);
    let brotli = client.exchange(&accepting("gzip, br")).expect(200);
    assert_eq!((brotli.text().as_str(), brotli.field("content-encoding")), (files[1].1, Some("br")));
    assert_eq!(brotli.field("content-type"), Some("text/css; charset=utf-8"));
    assert_eq!(brotli.field("vary"), Some("Accept-Encoding"));
    let gzip = client.exchange(&accepting("gzip, br;q=0")).expect(200);
    assert_eq!((gzip.text().as_str(), gzip.field("content-encoding")), (files[2].1, Some("gzip")));
    let tags = [&plain, &brotli, &gzip].map(|response| response.field("etag").unwrap());
    assert!(tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2], "{tags:?}");
    client.exchange(&accepting("br").with("If-None-Match", tags[1])).expect(304);
    client.exchange(&accepting("gzip").with("If-None-Match", tags[1])).expect(200);
    let alone = client.exchange(&get("/b.css").with("Accept-Encoding", "gzip, br")).expect(200);
    assert!(!alone.fields.has("vary") && !alone.fields.has("content-encoding"));
    // Made from an earlier state of the file.
    let old = std::fs::File::options().write(true).open(tree.join("a.css.br")).unwrap();
    old.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let gzip = client.exchange(&accepting("gzip, br")).expect(200);
    assert_eq!(gzip.field("content-encoding"), Some("gzip"));
}

#[test]
fn a_directory_is_its_index_under_the_path_with_a_slash() {
    let files = [("index.html", "top"), ("docs/index.html", "docs"), ("empty/x.txt", "x")];
    let (proxy, _tree) = serving(&files, "");
    let mut client = proxy.connect();
    assert_eq!(client.get("/").expect(200).text(), "top");
    assert_eq!(client.get("/docs/").expect(200).text(), "docs");
    let to = |response: &sandarac_test_support::Response| response.field("location").map(str::to_owned);
    let moved = client.get("/docs?a=b").expect(301);
    assert_eq!(to(&moved).as_deref(), Some("/docs/?a=b"));
    for elsewhere in ["//docs", "///docs"] {
        assert_eq!(to(&client.get(elsewhere).expect(301)).as_deref(), Some("/docs/"), "{elsewhere}");
    }
    assert!(client.get("/empty/").expect(403).text().contains("no index"));
    client.get("/empty").expect(403);
    client.get("/index.html/").expect(404);
    assert_eq!(labelled(&proxy, "failed", "file-no-index"), 2);
    assert_eq!(labelled(&proxy, "failed", "file-not-found"), 1);
}

#[test]
fn a_directory_is_listed_only_where_that_is_wanted_and_nothing_in_it_has_a_meaning() {
    let (proxy, tree) =
        serving(&[("<b>&.txt", "x"), (".hidden", "x"), ("javascript:alert(1)", "x")], "listing = true");
    write(&tree, "sub/y", "y");
    let page = proxy.get("/").expect(200);
    assert_eq!(page.field("content-type"), Some("text/html; charset=utf-8"));
    let text = page.text();
    assert!(text.contains("<a href=\"./%3Cb%3E%26.txt\">&lt;b&gt;&amp;.txt</a>"), "{text}");
    assert!(text.contains("<a href=\"./sub/\">sub/</a>") && text.contains("./javascript%3Aalert"), "{text}");
    assert!(!text.contains(".hidden"), "{text}");
    assert_eq!(proxy.get("/sub").expect(301).field("location"), Some("/sub/"));
    assert!(proxy.get("/sub/").expect(200).text().contains("\"../\""));
}

#[test]
fn only_get_and_head_have_a_meaning() {
    let (proxy, _tree) = serving(&[("a.txt", "a")], "");
    let mut client = proxy.connect();
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let refused = client.exchange(&request(method, "/a.txt")).expect(405);
        assert_eq!(refused.field("allow"), Some("GET, HEAD"), "{method}");
    }
    client.exchange(&get("/a.txt").body("a body that means nothing")).expect(200);
    client.get("/a.txt").expect(200);
}
