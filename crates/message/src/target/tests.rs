use proptest::prelude::*;

use super::*;
use crate::FieldsBuf;
use crate::glob::Glob;

fn read(request: &str) -> Result<(Form, String, String), TargetError> {
    let mut lines = request.lines();
    let mut words = lines.next().unwrap().split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let version = if words.next() == Some("HTTP/1.0") { Version::Http10 } else { Version::Http11 };
    let fields: FieldsBuf =
        lines.map(|line| line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""))).collect();
    let head = RequestHead {
        method: Method::of(method.as_bytes()),
        method_text: method.as_bytes(),
        target: target.as_bytes(),
        version,
        fields: fields.view(),
    };
    let target = Target::of(&head)?;
    let scheme = target.scheme.unwrap_or(Scheme::Http);
    let host = target.authority.map_or(Default::default(), |authority| authority.normalised(scheme));
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    Ok((target.form, text(&host), text(target.path_and_query)))
}

#[test]
fn a_query_without_a_path_gets_one() {
    let completed =
        |target: &str| with_path(target.as_bytes()).map(|target| String::from_utf8(target).unwrap());
    assert_eq!(completed("http://a?b/c").as_deref(), Some("http://a/?b/c"));
    assert_eq!(completed("HTTPS://a:1?").as_deref(), Some("HTTPS://a:1/?"));
    for target in ["/a?b", "http://a/b?c", "http://a", "*", "a:1", "?a", "ftp://a?b", ""] {
        assert_eq!(completed(target), None, "{target}");
    }
}

#[test]
fn the_four_forms_are_read() {
    // RFC 9112 §3.2
    for (request, form, host, path) in [
        ("GET /a?b HTTP/1.1\nHost: x", Form::Origin, "x", "/a?b"),
        ("GET /a HTTP/1.1\nHost: EXAMPLE.com:80", Form::Origin, "example.com", "/a"),
        ("GET /a HTTP/1.1\nHost: example.com:", Form::Origin, "example.com", "/a"),
        ("GET /a HTTP/1.1\nHost: example.com:8080", Form::Origin, "example.com:8080", "/a"),
        ("GET /a HTTP/1.1\nHost: example.com:08080", Form::Origin, "example.com:8080", "/a"),
        ("GET /a HTTP/1.1\nHost: [2001:DB8::1]:80", Form::Origin, "[2001:db8::1]", "/a"),
        ("GET //a HTTP/1.1\nHost: x", Form::Origin, "x", "//a"),
        ("GET /a HTTP/1.0", Form::Origin, "", "/a"),
        ("GET /\"<>`|\\^{} HTTP/1.1\nHost: x", Form::Origin, "x", "/\"<>`|\\^{}"),
        // RFC 9112 §3.2.2: the absolute form overrides Host.
        ("GET http://y/a?b HTTP/1.1\nHost: x", Form::Absolute, "y", "/a?b"),
        ("GET HTTP://Y HTTP/1.1\nHost: x", Form::Absolute, "y", "/"),
        ("GET https://y:443/ HTTP/1.1\nHost: x", Form::Absolute, "y", "/"),
        ("GET https://y:80/ HTTP/1.1\nHost: x", Form::Absolute, "y:80", "/"),
        ("OPTIONS * HTTP/1.1\nHost: x", Form::Asterisk, "x", "*"),
        ("CONNECT y:443 HTTP/1.1\nHost: y", Form::Authority, "y:443", ""),
    ] {
        assert_eq!(read(request), Ok((form, host.to_owned(), path.to_owned())), "{request}");
    }
}

#[test]
fn other_targets_and_hosts_are_refused() {
    for (request, error) in [
        ("GET /a HTTP/1.1", TargetError::NoHost),
        ("GET http://y/a HTTP/1.1", TargetError::NoHost),
        ("GET /a HTTP/1.1\nHost: x\nHost: x", TargetError::SeveralHosts),
        ("GET /a HTTP/1.0\nHost: x\nhost: y", TargetError::SeveralHosts),
        ("GET /a HTTP/1.1\nHost:", TargetError::Host),
        ("GET /a HTTP/1.1\nHost: x, y", TargetError::Host),
        ("GET /a HTTP/1.1\nHost: x y", TargetError::Host),
        ("GET /a HTTP/1.1\nHost: x/y", TargetError::Host),
        ("GET /a HTTP/1.1\nHost: user@x", TargetError::Host),
        ("GET /a HTTP/1.1\nHost: x:99999", TargetError::Host),
        ("GET /a HTTP/1.1\nHost: x:8a", TargetError::Host),
        ("GET /a HTTP/1.1\nHost: x:-1", TargetError::Host),
        ("GET /a HTTP/1.1\nHost: :80", TargetError::Host),
        ("GET /a HTTP/1.1\nHost: [::1", TargetError::Host),
        ("GET /a HTTP/1.1\nHost: [::1]x", TargetError::Host),
        ("GET /a HTTP/1.1\nHost: [1.2.3.4]", TargetError::Host),
        ("GET /a HTTP/1.1\nHost: ::1", TargetError::Host),
        ("GET /a HTTP/1.1\nHost: a%2", TargetError::Host),
        ("GET http://u:p@y/ HTTP/1.1\nHost: x", TargetError::Host),
        ("GET http:///a HTTP/1.1\nHost: x", TargetError::Host),
        ("GET http://y/ HTTP/1.1\nHost: x y", TargetError::Host),
        ("GET ftp://y/ HTTP/1.1\nHost: x", TargetError::Scheme),
        ("GET a HTTP/1.1\nHost: x", TargetError::Form),
        ("GET ?a HTTP/1.1\nHost: x", TargetError::Form),
        ("GET http://y?a HTTP/1.1\nHost: x", TargetError::Form),
        ("GET * HTTP/1.1\nHost: x", TargetError::Form),
        ("GET y:443 HTTP/1.1\nHost: x", TargetError::Form),
        ("CONNECT y HTTP/1.1\nHost: y", TargetError::Form),
        ("CONNECT /a HTTP/1.1\nHost: y", TargetError::Form),
        ("GET /a#b HTTP/1.1\nHost: x", TargetError::Byte),
        ("GET /a\x7f HTTP/1.1\nHost: x", TargetError::Byte),
        ("GET /a\t HTTP/1.1\nHost: x", TargetError::Byte),
    ] {
        assert_eq!(read(request), Err(error), "{request}");
    }
}

#[test]
fn normal_hosts_are_not_copied() {
    for host in ["example.com", "example.com:8080", "[::1]:81"] {
        let normalised = Authority::parse(host.as_bytes()).unwrap().normalised(Scheme::Http);
        assert!(matches!(normalised, std::borrow::Cow::Borrowed(_)), "{host}");
    }
}

#[test]
fn routes_match_on_decoded_paths_without_dots() {
    for (path, expected) in [
        ("/", "/"),
        ("/a/b.html", "/a/b.html"),
        ("/a/.hidden", "/a/.hidden"),
        ("/a/..b", "/a/..b"),
        ("/a/./b", "/a/b"),
        ("/a/../b", "/b"),
        ("/a/b/..", "/a/"),
        ("/a/.", "/a/"),
        ("/%61dmin", "/admin"),
        ("/%2e%2E/", ""),
        ("/a/%2e%2e/b", "/b"),
        ("//a///b//", "/a/b/"),
        ("/caf%C3%A9", "/café"),
        ("/a%20b", "/a b"),
        ("/a%2fb", "/a%2Fb"),
        ("/a%252fb", "/a%252fb"),
        ("/a;b=c/d", "/a;b=c/d"),
        ("/a\\b", "/a\\b"),
        ("/a%3Fb", "/a?b"),
        ("/...", "/..."),
    ] {
        let result = route_path(path.as_bytes());
        if expected.is_empty() {
            assert_eq!(result, Err(PathError::AboveRoot), "{path}");
        } else {
            assert_eq!(
                result.map(|path| String::from_utf8(path.into_owned()).unwrap()),
                Ok(expected.to_owned())
            );
        }
    }
}

#[test]
fn paths_that_servers_read_differently_are_refused() {
    for (path, error) in [
        ("/a%", PathError::Escape),
        ("/a%2", PathError::Escape),
        ("/a%zz", PathError::Escape),
        ("/a%00", PathError::Nul),
        ("/..", PathError::AboveRoot),
        ("/a/../../b", PathError::AboveRoot),
        ("/static/..%2fadmin", PathError::HiddenDots),
        ("/static/%2e%2e%2fadmin", PathError::HiddenDots),
        ("/static%2f..%2fadmin", PathError::HiddenDots),
        ("/static%2f..", PathError::HiddenDots),
        ("/static/..\\admin", PathError::HiddenDots),
        ("/static/..%5cadmin", PathError::HiddenDots),
        ("/static\\..\\admin", PathError::HiddenDots),
        ("/static/..;/admin", PathError::HiddenDots),
        ("/static/..;x=y/admin", PathError::HiddenDots),
        ("/static/.;/admin", PathError::HiddenDots),
    ] {
        assert_eq!(route_path(path.as_bytes()), Err(error), "{path}");
    }
}

#[test]
fn ignored_parameters_leave_the_key() {
    let ignored = [Glob::new("utm_*"), Glob::new("fbclid")];
    for (target, expected) in [
        ("/a", "/a"),
        ("/a?", "/a?"),
        ("/a?x=1&y=2", "/a?x=1&y=2"),
        ("/a?utm_source=m", "/a"),
        ("/a?utm_source=m&x=1&fbclid=2&y", "/a?x=1&y"),
        ("/a?x=1&utm_source", "/a?x=1"),
        ("/a?&fbclid=1", "/a"),
        ("/a?x=1&&y=2", "/a?x=1&&y=2"),
        ("/a?x=utm_source", "/a?x=utm_source"),
        ("/a?UTM_source=1", "/a?UTM_source=1"),
        ("/utm_source", "/utm_source"),
    ] {
        let mut out = Vec::new();
        filter_query(target.as_bytes(), &ignored, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{target}");
    }
    let mut out = Vec::new();
    filter_query(b"/a?&x", &[], &mut out);
    assert_eq!(out, b"/a?&x");
}

fn base() -> Target<'static> {
    Target {
        form: Form::Origin,
        scheme: None,
        authority: Authority::parse(b"example.com"),
        path_and_query: b"/b/c/d?q",
    }
}

#[test]
fn references_resolve_as_rfc_3986_shows() {
    // RFC 3986 §5.4, for references to this origin.
    for (reference, expected) in [
        ("g", Some("/b/c/g")),
        ("./g", Some("/b/c/g")),
        ("g/", Some("/b/c/g/")),
        ("/g", Some("/g")),
        ("?y", Some("/b/c/d?y")),
        ("g?y", Some("/b/c/g?y")),
        ("#s", Some("/b/c/d?q")),
        ("g#s", Some("/b/c/g")),
        ("g?y#s", Some("/b/c/g?y")),
        (";x", Some("/b/c/;x")),
        ("", Some("/b/c/d?q")),
        (".", Some("/b/c/")),
        ("./", Some("/b/c/")),
        ("..", Some("/b/")),
        ("../", Some("/b/")),
        ("../g", Some("/b/g")),
        ("../..", Some("/")),
        ("../../g", Some("/g")),
        ("../../../g", Some("/g")),
        ("/./g", Some("/g")),
        ("/../g", Some("/g")),
        ("g.", Some("/b/c/g.")),
        ("..g", Some("/b/c/..g")),
        ("./../g", Some("/b/g")),
        ("g/./h", Some("/b/c/g/h")),
        ("g/../h", Some("/b/c/h")),
        ("g?y/../x", Some("/b/c/g?y/../x")),
        ("http://example.com", Some("/")),
        ("http://EXAMPLE.com:80/x", Some("/x")),
        ("//example.com/x?y", Some("/x?y")),
        ("http://example.com?y", Some("/?y")),
        ("https://example.com/x", None),
        ("http://example.com:81/x", None),
        ("http://other/x", None),
        ("//other/x", None),
        ("mailto:a@b", None),
        ("http:g", None),
        ("http://", None),
    ] {
        let resolved = resolve(&base(), Some(Scheme::Http), reference.as_bytes());
        assert_eq!(resolved.map(|path| String::from_utf8(path).unwrap()).as_deref(), expected, "{reference}");
    }
}

#[test]
fn locations_of_the_same_origin_are_invalidated() {
    // RFC 9111 §4.4
    for (location, content_location, expected) in [
        ("/x", "y", &["/x", "/b/c/y"][..]),
        ("/x", "/x", &["/x"]),
        ("http://other/x", "http://example.com/y", &["/y"]),
        ("", "/b/c/d?q", &[]),
    ] {
        let response: FieldsBuf =
            [("Location", location), ("Content-Location", content_location)].into_iter().collect();
        let paths: Vec<_> = invalidated(&base(), Scheme::Http, response.view())
            .into_iter()
            .map(|path| String::from_utf8(path).unwrap())
            .collect();
        assert_eq!(paths, expected, "{location} {content_location}");
    }
}

proptest! {
    #[test]
    fn no_target_or_host_panics(target: Vec<u8>, host in "[ -~]{0,20}", connect: bool) {
        let fields: FieldsBuf = [("Host", host.trim())].into_iter().collect();
        let method = if connect { Method::Connect } else { Method::Get };
        let request =
            RequestHead { method, method_text: b"", target: &target, version: Version::Http11, fields: fields.view() };
        if let Ok(target) = Target::of(&request) {
            let normalised = target.authority.unwrap().normalised(Scheme::Http).into_owned();
            let again = Authority::parse(&normalised).unwrap();
            prop_assert_eq!(again.normalised(Scheme::Http).into_owned(), normalised);
        }
    }

    #[test]
    fn route_paths_have_no_dot_segments_and_settle(path in "(/|\\.|%2[eEfF5]|%5c|;|\\\\|a){0,12}") {
        let path = format!("/{path}");
        if let Ok(decoded) = route_path(path.as_bytes()) {
            prop_assert!(decoded.starts_with(b"/"));
            prop_assert!(decoded.split(|&byte| byte == b'/').all(|segment| segment != b".." && segment != b"."));
            prop_assert!(!decoded.windows(2).any(|pair| pair == b"//"));
        }
    }

    #[test]
    fn no_path_or_reference_panics(bytes: Vec<u8>) {
        let _ = route_path(&bytes);
        if let Some(path) = resolve(&base(), None, &bytes) {
            prop_assert!(path.starts_with(b"/"));
        }
    }
}
