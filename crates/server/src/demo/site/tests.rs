use super::*;
use sandarac_test_support::PATIENCE;
use std::io::{Read, Write};
use std::net::TcpStream;

fn site() -> Site {
    Site::start("127.0.0.1:0".parse().unwrap(), Options { workers: 4, slowness: 0.01 }).unwrap()
}

/// Sends request lines (and a body after an empty one) and returns the whole answer as text.
fn ask(site: &Site, request: &str) -> String {
    let mut stream = TcpStream::connect(site.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = request.replace('\n', "\r\n");
    let (head, body) = request.split_once("\r\n\r\n").unwrap_or((&request, ""));
    write!(stream, "{head}\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(site: &Site, path: &str) -> String {
    ask(site, &format!("GET {path} HTTP/1.1"))
}

fn field<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split("\r\n\r\n").next()?;
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn status(answer: &str) -> &str {
    &answer[9..12]
}

#[test]
fn public_pages_say_how_long_they_may_be_kept_and_carry_tags() {
    let site = site();
    for (path, tags) in [
        ("/", "front list"),
        ("/sections/history", "section-history list"),
        ("/articles/3", "article-3 section-history"),
        ("/api/articles/3", "api article-3"),
    ] {
        let answer = get(&site, path);
        assert_eq!(status(&answer), "200", "{path}");
        assert_eq!(field(&answer, "cache-control"), Some("public, max-age=0"), "{path}");
        assert!(field(&answer, "cdn-cache-control").unwrap().starts_with("max-age="), "{path}");
        assert_eq!(field(&answer, "surrogate-key"), Some(tags));
        assert!(field(&answer, "etag").is_some() && field(&answer, "x-made-in").is_some());
    }
    assert_eq!(field(&get(&site, "/images/3.svg"), "cache-control"), Some("public, max-age=86400"));
    assert_eq!(field(&get(&site, "/style.css"), "content-type"), Some("text/css; charset=utf-8"));
}

#[test]
fn a_validator_that_still_holds_is_answered_304_without_a_body() {
    let site = site();
    for path in ["/articles/3", "/api/articles/3"] {
        let etag = field(&get(&site, path), "etag").unwrap().to_owned();
        let answer = ask(&site, &format!("GET {path} HTTP/1.1\nIf-None-Match: {etag}"));
        assert_eq!(status(&answer), "304");
        assert_eq!(field(&answer, "etag"), Some(etag.as_str()));
        assert!(answer.ends_with("\r\n\r\n"));
    }
}

#[test]
fn thanking_an_author_changes_the_article_and_its_validator() {
    let site = site();
    let before = field(&get(&site, "/articles/3"), "etag").unwrap().to_owned();
    let answer = ask(&site, "POST /articles/3 HTTP/1.1");
    assert_eq!(status(&answer), "303");
    assert_eq!(field(&answer, "location"), Some("/articles/3"));
    let after = get(&site, "/articles/3");
    assert!(after.contains("Thanked 1 times"));
    assert_ne!(field(&after, "etag"), Some(before.as_str()));
}

#[test]
fn a_login_makes_every_page_private_and_greets_by_name() {
    let site = site();
    assert_eq!(field(&get(&site, "/account"), "location"), Some("/login"));
    let answer = ask(&site, "POST /login HTTP/1.1\n\nname=Ada");
    assert_eq!(status(&answer), "303");
    assert_eq!(field(&answer, "cache-control"), Some("no-store"));
    let cookie = field(&answer, "set-cookie").unwrap().split(';').next().unwrap();
    for path in ["/", "/articles/3", "/account", "/nowhere"] {
        let answer = ask(&site, &format!("GET {path} HTTP/1.1\nCookie: {cookie}\nIf-None-Match: *"));
        assert_eq!(field(&answer, "cache-control"), Some("private, no-cache"), "{path}");
        assert_eq!(field(&answer, "cdn-cache-control"), None, "{path}");
        assert!(answer.contains("data-visitor=\"Ada\""), "{path}");
    }
    assert!(get(&site, "/articles/3").contains("data-visitor=\"\""));
    assert!(field(&ask(&site, "POST /logout HTTP/1.1"), "set-cookie").unwrap().contains("Max-Age=0"));
}

#[test]
fn a_name_that_will_not_do_is_answered_with_the_form_again() {
    let answer = ask(&site(), "POST /login HTTP/1.1\n\nname=a%3Bb");
    assert_eq!(status(&answer), "422");
    assert_eq!(field(&answer, "set-cookie"), None);
    assert!(answer.contains("letters, digits and dashes"));
}

#[test]
fn the_clock_may_never_be_kept_and_is_new_each_time() {
    let site = site();
    let (first, second) = (get(&site, "/clock"), get(&site, "/clock"));
    assert_eq!(field(&first, "cache-control"), Some("no-store"));
    assert_ne!(first, second);
}

#[test]
fn what_is_not_there_is_404_for_a_short_while() {
    for path in ["/articles/0", "/articles/x", "/images/1.png", "/sections/x", "/a/b"] {
        let answer = get(&site(), path);
        assert_eq!(status(&answer), "404", "{path}");
        assert_eq!(field(&answer, "cdn-cache-control"), Some("max-age=5"), "{path}");
    }
}

#[test]
fn head_has_the_fields_of_get_and_no_body() {
    let answer = ask(&site(), "HEAD /articles/3 HTTP/1.1");
    assert_eq!(status(&answer), "200");
    assert!(
        answer.ends_with("\r\n\r\n")
            && field(&answer, "content-length").unwrap().parse::<u64>().unwrap() > 1000
    );
}

#[test]
fn pages_beyond_the_workers_wait_their_turn() {
    let site = Site::start("127.0.0.1:0".parse().unwrap(), Options { workers: 1, slowness: 0.2 }).unwrap();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| get(&site, "/clock"));
        }
    });
    assert!(begun.elapsed() >= Duration::from_millis(4 * 19), "{:?}", begun.elapsed());
    assert_eq!(site.requests(), 4);
}

#[test]
fn todays_page_is_for_all_where_its_corner_is_put_in() {
    let site = site();
    let login =
        ask(&site, "POST /login HTTP/1.1\nContent-Type: application/x-www-form-urlencoded\n\nname=ann");
    let cookie = field(&login, "set-cookie").unwrap().split(';').next().unwrap();
    let greeting = "data-visitor=\"ann\"";
    let alone = ask(&site, &format!("GET /today HTTP/1.1\nCookie: {cookie}"));
    assert!(alone.contains(greeting) && field(&alone, "cdn-cache-control").is_none());
    let capability = "Surrogate-Capability: a=\"ESI/1.0\"";
    let shared = ask(&site, &format!("GET /today HTTP/1.1\nCookie: {cookie}\n{capability}"));
    assert!(shared.contains("<esi:include src=\"/corner\"/>") && !shared.contains("data-visitor"));
    assert_eq!(field(&shared, "cache-control"), Some("private, no-cache"));
    assert!(field(&shared, "cdn-cache-control").unwrap().starts_with("max-age=600"));
    let corner = ask(&site, &format!("GET /corner HTTP/1.1\nCookie: {cookie}"));
    assert!(corner.contains(greeting));
    assert_eq!(field(&corner, "cache-control"), Some("private, no-cache"));
}
