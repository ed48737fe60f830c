//! Files that a response names in `X-Sendfile` or `X-Accel-Redirect`.

use std::fs;
use std::os::unix::fs::symlink;

use sandarac_test_support::{Origin, Reply, Sandarac, TempDir, get, head, post, reply};

use crate::sandarac;

/// Sandarac before an origin that responds with the field and the `Cache-Control` that the query of a request names, and a
/// tree: `files` for X-Sendfile, `internal` for X-Accel-Redirect, `open` for everyone, and a secret beside them.
struct Site {
    proxy: Sandarac,
    origin: Origin,
    tree: TempDir,
}

/// Settings that let the pool do both.
const BOTH: &str = "x_sendfile = \"ROOT/files\"\nx_accel_redirect = true";

impl Site {
    fn new(pool: &str) -> Site {
        Site::with_route(pool, "")
    }

    /// A site whose route to the pool has these keys.
    fn with_route(pool: &str, route: &str) -> Site {
        let tree = TempDir::new();
        for (name, content) in [
            ("files/report.txt", "0123456789"),
            ("files/100%25.txt", "percent"),
            ("files/deep/a b.bin", "blank"),
            ("files/.hidden", "secret"),
            ("files/tool.php", "<?php secret();"),
            ("internal/protected/film.bin", "film"),
            ("internal/protected/Report90%.pdf", "percent"),
            ("internal/protected/100%25.txt", "escape"),
            ("internal/protected/a;b.txt", "semicolon"),
            ("internal/protected/back\\slash.txt", "backslash"),
            ("internal/protected/end.", "dot"),
            ("open/public/page.html", "page"),
            ("secret.txt", "secret"),
        ] {
            let path = tree.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        symlink(tree.join("secret.txt"), tree.join("files/link.txt")).unwrap();
        symlink("report.txt", tree.join("files/inside.txt")).unwrap();
        symlink("tool.php", tree.join("files/source.txt")).unwrap();
        let origin = Origin::new(|request| {
            let query = request.target.split_once('?').map_or("", |(_, query)| query);
            let fields = query.split('&').filter_map(|pair| pair.split_once('='));
            let (status, fields): (Vec<_>, Vec<_>) = fields.partition(|(name, _)| *name == "status");
            let status = status.first().map_or(200, |(_, status)| status.parse().expect("a status"));
            let begun = reply(status).with("Content-Type", "text/x-own").body("the body of the application");
            let with =
                |reply: Reply, (name, value): &(&str, &str)| reply.with(name, &value.replace('+', " "));
            fields.iter().fold(begun, with)
        });
        let root = tree.path().display();
        let config = format!(
            "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[pool.app]\nbackends = [\"{}\"]\n{}\n\
             [[route]]\nmatch = \"/protected/\"\nfiles = \"{root}/internal\"\ninternal = true\n\
             [[route]]\nmatch = \"/public/\"\nfiles = \"{root}/open\"\n\
             [[route]]\npool = \"app\"\n{route}",
            origin.url(),
            pool.replace("ROOT", &root.to_string())
        );
        Site { proxy: sandarac().config(config).start(), origin, tree }
    }

    /// The target of a request whose response names this file.
    fn sendfile(&self, name: &str) -> String {
        format!("/get?X-Sendfile={}/{name}", self.tree.path().display())
    }
}

#[test]
fn a_file_is_sent_in_place_of_the_body_with_the_fields_of_the_application() {
    let site = Site::new(BOTH);
    let sent = site.proxy.get(&(site.sendfile("files/report.txt") + "&X-Own=kept&ETag=app")).expect(200);
    assert_eq!(sent.text(), "0123456789");
    assert_eq!(sent.field("content-type"), Some("text/x-own"));
    assert_eq!(sent.field("x-own"), Some("kept"));
    assert_eq!(sent.field("content-length"), Some("10"));
    assert!(sent.field("etag").is_some_and(|etag| etag != "app"), "{sent:?}");
    assert!(!sent.fields.has("x-sendfile"), "{sent:?}");
    let film = site.proxy.get("/get?X-Accel-Redirect=/protected/film.bin").expect(200);
    assert_eq!(film.text(), "film");
    assert!(!film.fields.has("x-accel-redirect"), "{film:?}");
    for name in ["files/deep/a+b.bin", "files/100%25.txt", "files/inside.txt"] {
        site.proxy.get(&site.sendfile(name)).expect(200);
    }
    let posted = site.proxy.exchange(&post(&site.sendfile("files/report.txt"), "form"));
    assert_eq!(posted.expect(200).text(), "0123456789");
}

/// Regression: names that some servers read differently were refused, although every reading leads to the same
/// route.
#[test]
fn a_name_is_sent_as_it_would_be_if_it_was_asked_for() {
    let site = Site::new(BOTH);
    for (uri, text) in [
        ("/protected/Report90%25.pdf", "percent"),
        ("/protected/100%2525.txt", "escape"),
        ("/protected/a;b.txt", "semicolon"),
        ("/protected/a%3Bb.txt", "semicolon"),
        ("/protected/back\\slash.txt", "backslash"),
        ("/protected/end.", "dot"),
    ] {
        assert_eq!(site.proxy.get(&format!("/get?X-Accel-Redirect={uri}")).expect(200).text(), text, "{uri}");
    }
}

#[test]
fn parts_and_conditions_are_answered_from_the_file() {
    let site = Site::new(BOTH);
    let target = site.sendfile("files/report.txt");
    let part = site.proxy.exchange(&get(&target).with("Range", "bytes=2-4").with("Cookie", "a=1"));
    let part = part.expect(206);
    assert_eq!(part.text(), "234");
    assert_eq!(part.field("content-range"), Some("bytes 2-4/10"));
    let etag = part.field("etag").unwrap().to_owned();
    let known = site.proxy.exchange(&get(&target).with("If-None-Match", &etag).with("Cookie", "a=1"));
    known.expect(304);
    let beyond = site.proxy.exchange(&get(&target).with("Range", "bytes=90-").with("Cookie", "a=1"));
    beyond.expect(416);
    let about = site.proxy.exchange(&head(&target).with("Cookie", "a=1")).expect(200);
    assert_eq!(about.field("content-length"), Some("10"));
}

/// Regression: a request whose response might have been stored got the whole file.
#[test]
fn parts_and_conditions_are_obeyed_whether_the_response_is_stored_or_not() {
    let site = Site::new(BOTH);
    for stated in ["", "&Cache-Control=max-age=60", "&Cache-Control=no-store", "&Set-Cookie=a=1"] {
        let target = site.sendfile("files/report.txt") + stated + "&X-Own=kept";
        let asked = |name: &str, value: &str| site.proxy.exchange(&get(&target).with(name, value));
        for round in 0..2 {
            let part = asked("Range", "bytes=2-4").expect(206);
            assert_eq!(part.text(), "234", "{stated}");
            assert_eq!(part.field("content-range"), Some("bytes 2-4/10"), "{stated}");
            assert_eq!(part.field("content-length"), Some("3"), "{stated}");
            assert_eq!(part.field("x-own"), Some("kept"), "{stated}");
            assert_eq!(part.is_hit(), stated.contains("max-age") && round == 1, "{stated}");
        }
        let whole = site.proxy.get(&target).expect(200);
        assert_eq!(whole.text(), "0123456789", "{stated}");
        let (etag, modified) = (whole.field("etag").unwrap(), whole.field("last-modified").unwrap());
        for (name, value) in [("If-None-Match", etag), ("If-Modified-Since", modified)] {
            let known = asked(name, value).expect(304);
            assert_eq!(known.field("etag"), Some(etag), "{stated}");
        }
        asked("If-None-Match", "\"other\"").expect(200);
        assert_eq!(asked("Range", "bytes=90-").expect(416).field("content-range"), Some("bytes */10"));
        let tail = get(&target).with("Range", "bytes=8-");
        assert_eq!(site.proxy.exchange(&tail.clone().with("If-Range", etag)).expect(206).text(), "89");
        assert_eq!(site.proxy.exchange(&tail.with("If-Range", "\"other\"")).expect(200).text(), "0123456789");
        let about = site.proxy.exchange(&head(&target)).expect(200);
        assert_eq!(about.field("content-length"), Some("10"), "{stated}");
    }
    let film = get("/get?X-Accel-Redirect=/protected/film.bin").with("Range", "bytes=1-2");
    assert_eq!(site.proxy.exchange(&film).expect(206).text(), "il");
    fs::write(site.tree.join("files/long.txt"), "x".repeat(5000)).unwrap();
    let several = get(&site.sendfile("files/long.txt")).with("Range", "bytes=0-1,4000-4001");
    let several = site.proxy.exchange(&several).expect(206);
    assert!(several.field("content-type").unwrap().starts_with("multipart/byteranges"), "{several:?}");
    // Only a 200 is a representation of which there are parts.
    let page = get(&(site.sendfile("files/report.txt") + "&status=404")).with("Range", "bytes=2-4");
    assert_eq!(site.proxy.exchange(&page).expect(404).text(), "0123456789");
}

#[test]
fn a_file_is_no_page_whatever_its_application_says() {
    let file = "a<esi:remove>b</esi:remove>c";
    for route in ["fragments = true", "fragments = true\ncache = \"pass\"", "fragments = \"announced\""] {
        let site = Site::with_route(BOTH, route);
        fs::write(site.tree.join("files/up.html"), file).unwrap();
        let target = site.sendfile("files/up.html") + "&Surrogate-Control=max-age=60,content=ESI/1.0";
        let asked = |name: &str, value: &str| site.proxy.exchange(&get(&target).with(name, value));
        for _ in 0..2 {
            let whole = site.proxy.get(&target).expect(200);
            assert_eq!(whole.text(), file, "{route}");
            assert_eq!(
                (whole.field("x-sendfile"), whole.field("surrogate-control")),
                (None, None),
                "{route}"
            );
            let etag = whole.field("etag").expect("a tag");
            assert_eq!(asked("Range", "bytes=1-4").expect(206).text(), "<esi", "{route}");
            asked("If-None-Match", etag).expect(304);
        }
        // The application's own pages go on having no parts.
        let page = "/get?Surrogate-Control=max-age=60,content=ESI/1.0";
        let page = site.proxy.exchange(&get(page).with("Range", "bytes=1-4")).expect(200);
        assert_eq!(page.text(), "the body of the application", "{route}");
        assert!(site.origin.requests().iter().all(|request| request.field("range").is_none()), "{route}");
    }
}

#[test]
fn no_client_reaches_an_internal_route() {
    let site = Site::new(BOTH);
    for target in [
        "/protected/film.bin",
        "//protected/film.bin",
        "/x/../protected/film.bin",
        "/%70rotected/film.bin",
        "/public/..%2fprotected/film.bin",
        "/protected%2ffilm.bin",
        "/protected/",
    ] {
        let answer = site.proxy.get(target);
        assert!(!answer.text().contains("film"), "{target}: {answer:?}");
        assert!(matches!(answer.status, 200 | 400 | 404), "{target}: {answer:?}");
    }
    site.proxy.get("/protected/film.bin").expect(404);
    site.proxy.exchange(&post("/protected/film.bin", "x")).expect(404);
    assert_eq!(site.origin.count_of("/protected/film.bin"), 0);
}

#[test]
fn nothing_outside_of_the_directory_is_sent() {
    let site = Site::new(BOTH);
    let root = site.tree.path().display().to_string();
    let outside = [
        format!("{root}/secret.txt"),
        format!("{root}/files/../secret.txt"),
        format!("{root}/files/deep/../../secret.txt"),
        format!("{root}/files"),
        format!("{root}/filesystem"),
        format!("{root}/files/%2e%2e/secret.txt"),
        "secret.txt".to_owned(),
        "/etc/passwd".to_owned(),
        "../secret.txt".to_owned(),
    ];
    for path in &outside {
        let answer = site.proxy.get(&format!("/get?X-Sendfile={path}"));
        assert!(matches!(answer.status, 404 | 502), "{path}: {answer:?}");
        assert!(!answer.text().contains("secret\n") && answer.text() != "secret", "{path}: {answer:?}");
    }
    for (name, status) in [
        ("files/link.txt", 403),
        ("files/.hidden", 404),
        ("files/tool.php", 403),
        ("files/source.txt", 403),
        ("files/deep", 403),
        ("files/none", 404),
    ] {
        let answer = site.proxy.get(&site.sendfile(name)).expect(status);
        assert!(!answer.text().contains("secret"), "{name}: {answer:?}");
    }
    for uri in [
        "/public/page.html",
        "/elsewhere",
        "/protected/../public/page.html",
        "/protected%2ffilm.bin",
        "/protected/..%2f..%2fsecret.txt",
        "protected/film.bin",
        "@named",
        "http://other/protected/film.bin",
        "/get?X-Accel-Redirect=/get",
    ] {
        let answer = site.proxy.get(&format!("/get?X-Accel-Redirect={uri}")).expect(502);
        assert_eq!(
            answer.cache_parameter("detail").as_deref(),
            Some("file-not-allowed"),
            "{uri}: {answer:?}"
        );
    }
}

#[test]
fn a_pool_that_names_nothing_has_the_fields_removed() {
    let site = Site::new("");
    for target in [site.sendfile("files/report.txt"), "/get?X-Accel-Redirect=/protected/film.bin".to_owned()]
    {
        let answer = site.proxy.get(&target).expect(200);
        assert_eq!(answer.text(), "the body of the application");
        assert!(!answer.fields.has("x-sendfile") && !answer.fields.has("x-accel-redirect"), "{answer:?}");
    }
    // One of the two does not allow the other.
    let site = Site::new("x_sendfile = \"ROOT/files\"");
    let answer = site.proxy.get("/get?X-Accel-Redirect=/protected/film.bin").expect(200);
    assert_eq!(answer.text(), "the body of the application");
}

#[test]
fn a_file_is_stored_only_if_the_application_states_how_long() {
    let site = Site::new(BOTH);
    let target = site.sendfile("files/report.txt");
    for _ in 0..2 {
        let sent = site.proxy.get(&target).expect(200);
        assert!(!sent.is_hit(), "{sent:?}");
    }
    assert_eq!(site.origin.count(), 2);
    let stated = target + "&Cache-Control=max-age=60";
    site.proxy.get(&stated).expect(200);
    let hit = site.proxy.get(&stated).expect(200);
    assert!(hit.is_hit() && hit.text() == "0123456789", "{hit:?}");
    let part = site.proxy.exchange(&get(&stated).with("Range", "bytes=8-")).expect(206);
    assert!(part.is_hit() && part.text() == "89", "{part:?}");
    assert_eq!(site.origin.count(), 3);
}

/// Regression: such a response was stored by the default lifetime of its status.
#[test]
fn a_response_without_content_has_no_file_and_is_not_stored_by_default() {
    let site = Site::new(BOTH);
    for field in [site.sendfile("files/report.txt"), "/get?X-Accel-Redirect=/protected/film.bin".to_owned()] {
        let before = site.origin.count();
        for _ in 0..2 {
            let empty = site.proxy.get(&format!("{field}&status=204")).expect(204);
            assert!(!empty.fields.has("x-sendfile") && !empty.fields.has("x-accel-redirect"), "{empty:?}");
            assert!(empty.body.is_empty() && !empty.is_hit(), "{empty:?}");
        }
        assert_eq!(site.origin.count(), before + 2);
        let known = get(&format!("{field}&status=304")).with("If-None-Match", "\"a\"").with("Cookie", "a=1");
        let known = site.proxy.exchange(&known).expect(304);
        assert!(!known.fields.has("x-sendfile") && !known.fields.has("x-accel-redirect"), "{known:?}");
    }
    let stated = site.sendfile("files/report.txt") + "&status=204&Cache-Control=max-age=60";
    site.proxy.get(&stated).expect(204);
    assert!(site.proxy.get(&stated).expect(204).is_hit());
}

#[test]
fn fields_that_name_different_files_are_refused() {
    let site = Site::new(BOTH);
    let (report, blank) = (site.sendfile("files/report.txt"), site.tree.join("files/deep/a+b.bin"));
    for target in [
        format!("{report}&X-Sendfile={}", blank.display()),
        format!("{report}&x-sendfile="),
        "/get?X-Accel-Redirect=/protected/film.bin&X-Accel-Redirect=/protected/other.bin".to_owned(),
    ] {
        let refused = site.proxy.get(&target).expect(502);
        assert_eq!(refused.cache_parameter("detail").as_deref(), Some("file-ambiguous"), "{target}");
    }
    let twice = format!("{report}&X-Sendfile={}", site.tree.join("files/report.txt").display());
    assert_eq!(site.proxy.get(&twice).expect(200).text(), "0123456789");
    let both = site.proxy.get(&format!("{report}&X-Accel-Redirect=/protected/film.bin")).expect(200);
    assert_eq!(both.text(), "film");
    // Where the pool names nothing, it does not matter.
    let site = Site::new("");
    site.proxy.get("/get?X-Sendfile=/a&X-Sendfile=/b").expect(200);
}

#[test]
fn what_describes_the_body_of_the_application_is_not_said_of_the_file() {
    let site = Site::new(BOTH);
    let own = "&Content-Encoding=gzip&Last-Modified=Thu,+01+Jan+1970+00:00:00+GMT&ETag=app";
    for more in ["", "&Cache-Control=max-age=60"] {
        let sent = site.proxy.get(&(site.sendfile("files/report.txt") + own + more)).expect(200);
        assert_eq!(sent.text(), "0123456789");
        assert_eq!(sent.field("content-encoding"), None);
        assert!(sent.field("last-modified").is_some_and(|date| !date.contains("1970")), "{sent:?}");
        assert!(sent.field("etag").is_some_and(|etag| etag != "app"), "{sent:?}");
    }
}

#[test]
fn the_backend_is_free_while_a_client_reads_its_file() {
    // More than the buffers on the way hold.
    let site = Site::new(&format!("{BOTH}\nmax_in_flight = 1\nqueue = 0"));
    fs::write(site.tree.join("files/long.bin"), vec![b'x'; 64 << 20]).unwrap();
    let mut slow = site.proxy.connect();
    slow.send(get(&site.sendfile("files/long.bin")).with("Cookie", "a=1").to_bytes());
    let begun = slow.response_head();
    assert_eq!((begun.status, begun.field("content-length")), (200, Some("67108864")));
    site.proxy.get("/other").expect(200);
}

/// Regression: all but two of them reached clients, as they do not from nginx.
#[test]
fn no_instruction_of_an_application_reaches_a_client() {
    for pool in ["", BOTH] {
        let site = Site::new(pool);
        for more in ["", "&Cache-Control=no-store"] {
            let target = "/get?X-Accel-Limit-Rate=1000&X-Accel-Buffering=no&x-accel-charset=utf-8&X-Accel-Expires=60&\
                          X-Accel-Other=kept";
            let answer = site.proxy.get(&format!("{target}{more}")).expect(200);
            let told = format!("{answer:?}").to_ascii_lowercase();
            for name in ["limit-rate", "buffering", "charset=", "x-accel-charset", "expires"] {
                assert!(!told.contains(name), "{name}: {told}");
            }
            assert_eq!(answer.field("x-accel-other"), Some("kept"));
        }
    }
}

#[test]
fn x_accel_expires_says_how_long_a_response_is_stored_if_its_pool_may_lead_to_files() {
    let later = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() + 60;
    let (later, no_store, max_age) = (format!("@{later}"), "no-store", "max-age=60");
    let site = Site::new(BOTH);
    for (expires, said, is_stored) in [
        ("60", no_store, true),
        (&*later, "private", true),
        ("0", max_age, false),
        ("@1000", max_age, false),
        ("soon", max_age, true),
        ("soon", no_store, false),
        ("60", "no-store&Set-Cookie=a=1", false),
        ("0", "no-store&Sandarac-Cache-Control=max-age=60", true),
    ] {
        let target = format!("/get?X-Accel-Expires={expires}&Cache-Control={said}");
        let first = site.proxy.get(&target).expect(200);
        assert!(!first.fields.has("sandarac-cache-control"), "{first:?}");
        assert_eq!(site.proxy.get(&target).expect(200).is_hit(), is_stored, "{target}");
    }
    // nginx does not store a response that leads to a file.
    let file = "/get?X-Accel-Redirect=/protected/film.bin&X-Accel-Expires=60";
    for _ in 0..2 {
        assert!(!site.proxy.get(file).expect(200).is_hit());
    }
    let site = Site::new("x_sendfile = \"ROOT/files\"");
    let target = "/get?X-Accel-Expires=60&Cache-Control=no-store";
    for _ in 0..2 {
        assert!(!site.proxy.get(target).expect(200).is_hit(), "the pool may not");
    }
}

/// Regression: both fields went out in interim responses and in trailers.
#[test]
fn no_client_learns_of_a_file_from_interim_responses_or_trailers() {
    let origin = Origin::new(|_| {
        let hints =
            "X-Sendfile: /srv/a\r\nX-Accel-Redirect: /b\r\nX-Accel-Buffering: no\r\nLink: </style.css>\r\n";
        let reply = reply(200).interim(103, hints).chunked().body("page");
        reply.trailer("X-Sendfile", "/srv/a").trailer("X-Accel-Redirect", "/b").trailer("X-Sum", "1")
    });
    let config = crate::site(&origin.url(), "cache = \"pass\"", "");
    let proxy =
        sandarac().config(config.replace("[[route]]", "forward_trailers = true\n\n[[route]]")).start();
    let response = proxy.exchange(&get("/").with("TE", "trailers").with("Connection", "TE")).expect(200);
    assert_eq!(response.interim[0].field("link"), Some("</style.css>"));
    let told = format!("{response:?}").to_ascii_lowercase();
    assert!(told.contains("x-sum") && !told.contains("x-sendfile") && !told.contains("x-accel"), "{told}");
}
