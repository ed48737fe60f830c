//! Pages of real PHP, by FastCGI from Debian's php-fpm, which the tests start with a configuration of their own.
//!
//! It needs the package php-fpm, which `./check` installs. `cargo test` of the workspace leaves it out;
//! `cargo test -p sandarac-server --test php` runs it.

mod application;
mod fpm;

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use fpm::Fpm;
use sandarac_test_support::{get, head, post, request};

/// Shows what a request was to PHP.
const SHOW: &str = "<?php header('Content-Type: text/plain');\n\
    foreach (['REQUEST_METHOD', 'SCRIPT_NAME', 'SCRIPT_FILENAME', 'PATH_INFO', 'QUERY_STRING', 'REQUEST_URI', 'DOCUMENT_ROOT', \
    'HTTPS', 'REMOTE_ADDR', 'SERVER_NAME', 'SERVER_PORT', 'CONTENT_TYPE', 'CONTENT_LENGTH', 'HTTP_X_FOO', 'HTTP_PROXY', \
    'PHP_SELF', 'APP_ENV'] as $name) { echo $name, '=', $_SERVER[$name] ?? '(none)', \"\\n\"; }\n\
    echo 'GET=', json_encode($_GET), \"\\nPOST=\", json_encode($_POST), \"\\nCOOKIE=\", json_encode($_COOKIE), \"\\n\";";

#[track_caller]
fn shows(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|shown| shown == *line), "{line} is not in:\n{text}");
    }
}

#[test]
fn a_page_sees_its_request_as_behind_any_web_server() {
    let fpm = Fpm::start(2);
    fpm.file("show.php", SHOW);
    let proxy = fpm.site("", "params = { APP_ENV = \"test\" }", "");
    let port = proxy.address().port();
    let request = get("/show.php/a%2Fb/c?x=1&y[]=2")
        .host(&format!("wiki.example:{port}"))
        .with("X-Foo", "real")
        .with("X_Foo", "forged")
        .with("X.Foo", "forged")
        .with("Proxy", "http://evil")
        .with("Cookie", "a=1")
        .with("Cookie", "b=2");
    let shown = proxy.exchange(&request).expect(200).text();
    let root = fs::canonicalize(fpm.root()).unwrap();
    shows(
        &shown,
        &[
            "REQUEST_METHOD=GET",
            "SCRIPT_NAME=/show.php",
            "PATH_INFO=/a/b/c",
            &format!("SCRIPT_FILENAME={}/show.php", root.display()),
            &format!("DOCUMENT_ROOT={}", root.display()),
            "QUERY_STRING=x=1&y[]=2",
            "REQUEST_URI=/show.php/a%2Fb/c?x=1&y[]=2",
            "PHP_SELF=/show.php/a/b/c",
            "HTTPS=(none)",
            "REMOTE_ADDR=127.0.0.1",
            "SERVER_NAME=wiki.example",
            &format!("SERVER_PORT={port}"),
            "HTTP_X_FOO=real",
            "HTTP_PROXY=(none)",
            "APP_ENV=test",
            "GET={\"x\":\"1\",\"y\":[\"2\"]}",
            "COOKIE={\"a\":\"1\",\"b\":\"2\"}",
        ],
    );
}

#[test]
fn forms_and_bodies_arrive_whole_with_and_without_a_length() {
    let fpm = Fpm::start(2);
    fpm.file("show.php", SHOW);
    fpm.file(
        "sum.php",
        "<?php $body = file_get_contents('php://input'); echo strlen($body), ' ', md5($body);",
    );
    let proxy = fpm.site("", "", "");
    let form = |request: sandarac_test_support::Req| {
        request.with("Content-Type", "application/x-www-form-urlencoded")
    };
    for sent in [
        form(post("/show.php", "name=Edwina&x[]=1")),
        form(request("POST", "/show.php")).chunked(&["name=Ed", "wina&x[]=1"]),
    ] {
        let shown = proxy.exchange(&sent).expect(200).text();
        shows(&shown, &["POST={\"name\":\"Edwina\",\"x\":[\"1\"]}", "CONTENT_LENGTH=17"]);
    }
    // Digests of as many letters a, as md5sum has them.
    let long = "a".repeat(20_000_000);
    let answer = proxy.exchange(&post("/sum.php", &long)).expect(200).text();
    assert_eq!(answer, "20000000 c435d04042ea0663ba580ee27f494712");
    let piece = "a".repeat(1_000_000);
    let chunked = proxy.exchange(&request("POST", "/sum.php").chunked(&[&*piece; 5]));
    assert_eq!(chunked.expect(200).text(), "5000000 ca6e2f55ffd30e828d900707296d91d9");
    proxy.exchange(&request("POST", "/sum.php").chunked(&[&*piece; 9])).expect(413);
}

#[test]
fn an_uploaded_file_is_received() {
    let fpm = Fpm::start(1);
    fpm.file(
        "upload.php",
        "<?php $f = $_FILES['f']; echo $f['name'], ' ', $f['error'], ' ', filesize($f['tmp_name']);",
    );
    let proxy = fpm.site("", "", "");
    let content = "0123456789".repeat(2_000_000);
    let body = format!(
        "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"big.bin\"\r\n\r\n{content}\r\n--B--\r\n"
    );
    let request = post("/upload.php", &body).with("Content-Type", "multipart/form-data; boundary=B");
    assert_eq!(proxy.exchange(&request).expect(200).text(), "big.bin 0 20000000");
}

#[test]
fn statuses_redirects_and_cookies_come_back() {
    let fpm = Fpm::start(1);
    fpm.file("missing.php", "<?php http_response_code(404); echo 'gone';");
    fpm.file("moved.php", "<?php header('Location: /elsewhere');");
    fpm.file("cookies.php", "<?php setcookie('a', '1'); setcookie('b', '2'); echo 'ok';");
    fpm.file("length.php", "<?php header('Content-Length: 5'); echo 'hello';");
    fpm.file("empty.php", "<?php http_response_code(204);");
    let proxy = fpm.site("", "", "");
    assert_eq!(proxy.get("/missing.php").expect(404).text(), "gone");
    assert_eq!(proxy.get("/moved.php").expect(302).field("location"), Some("/elsewhere"));
    assert_eq!(proxy.get("/cookies.php").expect(200).fields.all("set-cookie"), ["a=1", "b=2"]);
    assert_eq!(proxy.get("/length.php").expect(200).field("content-length"), Some("5"));
    assert!(!proxy.get("/empty.php").expect(204).fields.has("content-length"));
    proxy.exchange(&head("/length.php")).expect(200);
}

#[test]
fn output_that_is_flushed_arrives_before_the_page_ends() {
    let fpm = Fpm::start(1);
    let gate = fpm.beside("gate");
    let script = format!(
        "<?php header('X-Accel-Buffering: no'); echo 'first'; flush();\n\
         for ($i = 0; $i < 10000 && !file_exists('{0}'); $i++) {{ usleep(1000); clearstatcache(); }}\n\
         echo file_exists('{0}') ? 'second' : 'late';",
        gate.display()
    );
    fpm.file("stream.php", &script);
    let proxy = fpm.site("", "", "cache = \"pass\"");
    let mut client = proxy.connect();
    client.send(get("/stream.php").to_bytes());
    client.read_through("first");
    fs::write(gate, "").unwrap();
    client.read_through("second");
}

#[test]
fn only_the_script_that_a_path_names_runs() {
    let fpm = Fpm::start(1);
    fpm.file("index.php", "<?php echo 'index ', $_SERVER['PATH_INFO'] ?? '';");
    fpm.file("image.png", "<?php echo 'HACKED';");
    fpm.file("notes.txt", "<?php echo 'HACKED';");
    fpm.file("a.php/b.php", "<?php echo 'inner';");
    let proxy = fpm.site("", "", "cache = \"pass\"");
    for path in [
        "/image.png/x.php",
        "/image.png%2Fx.php",
        "/notes.txt/.php",
        "/image.png",
        "/nothing.php/image.png",
        "/image.png/index.php",
    ] {
        assert!(!proxy.get(path).expect(404).text().contains("HACKED"), "{path}");
    }
    assert_eq!(proxy.get("/index.php/image.png").expect(200).text(), "index /image.png");
    assert_eq!(proxy.get("/").expect(200).text(), "index ");
    assert_eq!(proxy.get("/a.php/b.php/c").expect(200).text(), "inner");
    let front = fpm.site("", "front_controller = \"/index.php\"", "cache = \"pass\"");
    for path in ["/image.png/x.php", "/about", "/image.png"] {
        assert_eq!(front.get(path).expect(200).text(), "index ", "{path}");
    }
}

#[test]
fn a_swapped_release_takes_effect_at_once_under_opcache() {
    let fpm = Fpm::start(2);
    for release in ["one", "two"] {
        let dir = fpm.beside(release);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("index.php"), format!("<?php echo '{release} ', __DIR__;")).unwrap();
    }
    let current = fpm.beside("current");
    symlink(fpm.beside("one"), &current).unwrap();
    let proxy = fpm.site_at(&current, "", "", "cache = \"pass\"");
    for _ in 0..4 {
        assert!(proxy.get("/").expect(200).text().starts_with("one "));
    }
    symlink(fpm.beside("two"), fpm.beside("next")).unwrap();
    fs::rename(fpm.beside("next"), &current).unwrap();
    for _ in 0..4 {
        assert!(proxy.get("/").expect(200).text().starts_with("two "));
    }
}

#[test]
fn pages_are_stored_and_shared_like_those_of_any_origin() {
    let fpm = Fpm::start(1);
    fpm.file("page.php", "<?php header('Cache-Control: max-age=60'); header('ETag: \"1\"'); echo uniqid();");
    let proxy = fpm.site("", "", "");
    let first = proxy.get("/page.php").expect(200);
    let second = proxy.get("/page.php").expect(200);
    assert!(!first.is_hit() && second.is_hit() && first.body == second.body);
    assert_eq!(second.field("content-length"), Some("13"));
    proxy.exchange(&get("/page.php").with("If-None-Match", "\"1\"")).expect(304);
}

#[test]
fn php_that_dies_in_mid_body_leaves_a_response_that_is_broken_off_and_not_stored() {
    let fpm = Fpm::start(2);
    fpm.file(
        "die.php",
        "<?php header('Cache-Control: max-age=60'); echo str_repeat('x', 100000); flush();\n\
         exec('kill -9 ' . getmypid()); sleep(5);",
    );
    fpm.file("ok.php", "<?php echo 'ok';");
    let proxy = fpm.site("", "", "");
    for _ in 0..2 {
        let mut client = proxy.connect();
        client.send(get("/die.php").to_bytes());
        let mut response = client.response_head();
        assert_eq!(response.status, 200);
        assert!(client.try_response_body("GET", &mut response).is_err(), "{} bytes", response.body.len());
        assert!(!response.is_hit());
    }
    assert_eq!(proxy.get("/ok.php").expect(200).text(), "ok");
}

#[test]
fn errors_of_php_go_to_the_log_however_many() {
    let fpm = Fpm::start(1);
    fpm.file("warn.php", "<?php for ($i = 0; $i < 20000; $i++) { error_log(\"trouble $i\"); } echo 'fine';");
    fpm.file("fatal.php", "<?php header('Content-Type: text/plain'); undefined_function();");
    let proxy = fpm.site("", "", "");
    assert_eq!(proxy.get("/warn.php").expect(200).text(), "fine");
    proxy.says("PHP message: trouble 0");
    proxy.get("/fatal.php").expect(500);
    proxy.says("undefined_function");
    assert!(proxy.stderr().len() < 30_000);
}

#[test]
fn a_check_by_the_ping_of_php_fpm_passes() {
    let fpm = Fpm::start(1);
    fpm.file("index.php", "<?php echo 'ok';");
    let proxy = fpm.site("check = { path = \"/ping\", status = [200], interval = \"50ms\" }", "", "");
    proxy.get("/").expect(200);
    let proxy = fpm.site(
        "check = { path = \"/no-such-script.php\", status = [200], interval = \"50ms\", fall = 1 }",
        "",
        "",
    );
    proxy.says("it answered 404");
}

/// Regression: the front controller of the application got the request, and answered 404.
#[test]
fn a_check_by_the_ping_passes_with_a_front_controller() {
    let fpm = Fpm::start(1);
    fpm.file("index.php", "<?php http_response_code($_SERVER['REQUEST_URI'] === '/up' ? 204 : 404);");
    let check = |path: &str, status: u16| {
        let check =
            format!("check = {{ path = \"{path}\", status = [{status}], interval = \"50ms\", fall = 1 }}");
        fpm.site(&check, "front_controller = \"/index.php\"", "")
    };
    let (ping, up) = (check("/ping", 200), check("/up", 204));
    check("/other", 200).says("it answered 404");
    for proxy in [ping, up] {
        assert!(!proxy.stderr().contains("it answered"), "{}", proxy.stderr());
    }
}

/// Each page takes 50 ms, and there are 2 processes: 64 requests need 32 turns. One that waited for a process with an idle
/// connection would wait half a minute.
#[test]
fn few_processes_serve_many_clients_and_none_waits_for_a_kept_connection() {
    const CLIENTS: usize = 64;
    const PAGE: Duration = Duration::from_millis(50);
    let fpm = Fpm::start(2);
    fpm.file("index.php", "<?php usleep(50000); echo 'ok';");
    for fastcgi in ["", "keep_alive = true"] {
        let proxy = fpm.site("idle_timeout = \"30s\"", fastcgi, "cache = \"pass\"");
        proxy.get("/").expect(200);
        let start = Barrier::new(CLIENTS);
        let began = Instant::now();
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    let mut client = proxy.connect();
                    start.wait();
                    assert_eq!(client.get("/").expect(200).text(), "ok");
                });
            }
        });
        let turns = PAGE * (CLIENTS as u32 / 2);
        let took = began.elapsed();
        assert!(took < turns + Duration::from_secs(10), "{fastcgi}: {took:?} for what takes {turns:?}");
    }
}
