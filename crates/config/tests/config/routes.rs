//! The first route that matches a request is the one that counts.

use sandarac_config::Config;
use sandarac_policy::Action;

use crate::load;

/// A configuration in which the route at each place answers with 200 plus that place.
fn numbered(matches: &[&str]) -> Config {
    let mut text = String::from("[[listen]]\naddress = \":80\"\n");
    for (at, matched) in matches.iter().enumerate() {
        text.push_str(&format!("[[route]]\nmatch = {matched}\nanswer.status = {}\n", 200 + at));
    }
    load(&text)
}

fn find(config: &Config, host: &str, path: &str, method: &str) -> Option<usize> {
    let route = &config.routes[config.routes.find(host.as_bytes(), path.as_bytes(), method.as_bytes())?];
    let Action::Answer(answer) = &route.action else { panic!("{route:?}") };
    Some(usize::from(answer.status) - 200)
}

#[test]
fn paths_are_matched_whole_below_by_prefix_and_by_stars() {
    let config =
        numbered(&["\"=/feed\"", "\"/blog\"", "\"/static/\"", "\"/a*b*.php\"", "{ path = \"/é x\" }"]);
    for (path, route) in [
        ("/feed", Some(0)),
        ("/feed/", None),
        ("/blog", Some(1)),
        ("/blog/", Some(1)),
        ("/blog/a/b", Some(1)),
        ("/blogs", None),
        ("/Blog", None),
        ("/static", None),
        ("/static/", Some(2)),
        ("/static/x", Some(2)),
        ("/ab.php", Some(3)),
        ("/a/x/b/y.php", Some(3)),
        ("/ab.php/", None),
        ("/ba.php", None),
        ("/é x/y", Some(4)),
        ("/", None),
        ("", None),
    ] {
        assert_eq!(find(&config, "h", path, "GET"), route, "{path}");
    }
}

#[test]
fn hosts_are_matched_without_port_and_letter_case() {
    let config =
        numbered(&["\"example.com/a\"", "\"*.example.com\"", "\"[::1]\"", "\"*.b.example.com\"", "\"/z\""]);
    for (host, path, route) in [
        ("example.com", "/a", Some(0)),
        ("EXAMPLE.com:8080", "/a", Some(0)),
        ("example.com.", "/a", Some(0)),
        ("example.com", "/z", Some(4)),
        ("example.com", "/", None),
        ("www.example.com", "/", Some(1)),
        ("a.b.example.com", "/z", Some(1)),
        ("notexample.com", "/", None),
        (".example.com", "/", None),
        ("[::1]:80", "/", Some(2)),
        ("", "/z", Some(4)),
        (&"x".repeat(300), "/z", Some(4)),
        (&format!("{}.example.com", "x".repeat(250)), "/", None),
    ] {
        assert_eq!(find(&config, host, path, "GET"), route, "{host}{path}");
    }
}

#[test]
fn methods_are_matched_by_letter_case_and_in_short_or_long_form() {
    let config =
        numbered(&["\"POST|PUT /a\"", "{ method = \"PROPFIND\" }", "[\"GET example.com\", \"GET /b\"]"]);
    for (host, path, method, route) in [
        ("h", "/a", "POST", Some(0)),
        ("h", "/a", "PUT", Some(0)),
        ("h", "/a", "post", None),
        ("h", "/x", "PROPFIND", Some(1)),
        ("example.com", "/", "GET", Some(2)),
        ("h", "/b/c", "GET", Some(2)),
        ("h", "/c", "GET", None),
    ] {
        assert_eq!(find(&config, host, path, method), route, "{method} {host}{path}");
    }
}

#[test]
fn the_order_of_the_file_decides_also_between_hosts() {
    let config = numbered(&["\"/a\"", "\"example.com\"", "\"*.com/b\"", "\"/\""]);
    assert_eq!(find(&config, "example.com", "/a", "GET"), Some(0));
    assert_eq!(find(&config, "example.com", "/b", "GET"), Some(1));
    assert_eq!(find(&config, "x.com", "/b", "GET"), Some(2));
    assert_eq!(find(&config, "x.org", "/b", "GET"), Some(3));
    assert_eq!(find(&config, "", "", "OPTIONS"), Some(3));
}

#[test]
fn the_index_agrees_with_looking_at_every_route_in_order() {
    let hosts = ["a.com", "b.a.com", "c.b.a.com", "b.com", ""];
    let paths = ["", "/", "/x", "/x/y", "/xy", "/x/y.php", "/longer/than/eight"];
    let patterns = [
        "a.com",
        "*.a.com",
        "*.b.a.com",
        "*",
        "a.com/x",
        "*.a.com/x/",
        "=/x",
        "/x",
        "/*.php",
        "/longer/than",
        "/x/*",
        "POST /x",
        "b.com/",
    ];
    // Every pair of patterns, and a few of three: enough for each kind to stand before and after each other.
    for (first, second) in patterns.iter().flat_map(|one| patterns.iter().map(move |two| (one, two))) {
        for third in [patterns[1], patterns[7]] {
            let quoted: Vec<_> = [first, second, &third].map(|pattern| format!("{pattern:?}")).into();
            let quoted: Vec<&str> = quoted.iter().map(String::as_str).collect();
            let together = numbered(&quoted);
            let alone: Vec<_> = quoted.iter().map(|pattern| numbered(&[pattern])).collect();
            for (host, path) in hosts.iter().flat_map(|host| paths.iter().map(move |path| (host, path))) {
                for method in ["GET", "POST"] {
                    let expected = alone.iter().position(|config| find(config, host, path, method).is_some());
                    assert_eq!(
                        find(&together, host, path, method),
                        expected,
                        "{method} {host}{path} {quoted:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn gather_without_effect_is_a_warning_with_a_remedy() {
    let of = |backends: &str, keys: &str| {
        let text = format!(
            "[[listen]]\naddress = \":80\"\n[pool.app]\nbackends = [{backends}]\n[[route]]\npool = \"app\"\n{keys}\n"
        );
        let (_, warnings) = Config::from_toml("sandarac.toml", &text).unwrap();
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let warned = of("\"http://a\", \"h2://b\"", "gather = true");
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0].contains("`gather` has no effect with the pool `app`"), "{}", warned[0]);
    assert!(warned[0].contains("h2://b") && warned[0].contains("http:// or https://"), "{}", warned[0]);
    for (backends, keys) in [
        ("\"h2://b\"", "gather = false"),
        ("\"h2://b\"", ""),
        ("\"http://a\", \"https://b\"", "gather = true"),
    ] {
        assert_eq!(of(backends, keys), [""; 0], "{backends} {keys}");
    }
}
