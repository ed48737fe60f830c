//! HTTP/2 with real clients: curl, nghttp, h2load, and Chromium without a screen; and with nghttpd as a
//! backend.
//!
//! `./check` installs them from Debian; without one of them its test fails and says so. `cargo test` of the
//! workspace leaves this out; `cargo test -p sandarac-server --test http2-clients` runs it.

#[allow(dead_code, reason = "the rest is for the features' tests of TLS")]
#[path = "../features/ca.rs"]
mod ca;
mod nghttpd;

use std::process::{Command, Stdio};

use ca::Ca;
use sandarac_test_support::{Origin, Reply, Request, Sandarac, Setup, reply, within};

/// The longest that one run of a client may take, in seconds.
const PATIENCE: &str = "90";

/// Sandarac with two listeners that speak HTTP/2, in clear and over TLS, before an origin.
struct Site {
    ca: Ca,
    proxy: Sandarac,
    origin: Origin,
}

impl Site {
    fn new(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Site {
        let (ca, origin) = (Ca::new(), Origin::new(rule));
        ca.issue("site", "localhost");
        let setup = Setup::new(env!("CARGO_BIN_EXE_sandarac"));
        let log = setup.dir().join("access.log");
        let text = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\nhttp2 = true\n\n\
             [[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ directory = \"{}\" }}\n\n\
             [pool.app]\nbackends = [\"{}\"]\n\n[[route]]\nmatch = \"/files/\"\nfiles = \"{}\"\n\n[[route]]\npool = \"app\"\n\n\
             [log]\naccess = \"{}\"\n",
            ca.directory.path().display(),
            origin.url(),
            setup.dir().path().display(),
            log.display(),
        );
        Site { ca, proxy: setup.config(text).start(), origin }
    }

    fn clear(&self) -> String {
        format!("http://{}", self.proxy.addresses()[0])
    }

    fn tls(&self) -> String {
        let address = self.proxy.addresses()[1].to_string();
        format!("https://localhost:{}", address.rsplit(':').next().expect("a port"))
    }

    /// The lines of the access log, once it has `count` of those that contain `text`.
    fn logged(&self, text: &str, count: usize) -> Vec<String> {
        let path = self.proxy.dir().join("access.log");
        within("the lines in the access log", || {
            let lines = std::fs::read_to_string(&path).ok()?;
            let lines: Vec<String> =
                lines.lines().filter(|line| line.contains(text)).map(str::to_owned).collect();
            (lines.len() >= count).then_some(lines)
        })
    }
}

/// Runs a client, which MUST succeed, and returns what it printed.
#[track_caller]
fn run(program: &str, arguments: &[&str]) -> String {
    // `timeout` ends the client, and what it has started, by its own process group.
    let mut command = Command::new("timeout");
    command.args(["-k", "5", PATIENCE, program]).args(arguments).stdin(Stdio::null());
    command
        .env_remove("http_proxy")
        .env_remove("https_proxy")
        .env_remove("HTTP_PROXY")
        .env_remove("HTTPS_PROXY");
    let output = command.output().expect("timeout, of coreutils");
    let (printed, complaints) =
        (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {arguments:?}: {}\n{printed}\n{complaints}", output.status);
    printed
}

fn page(bytes: usize) -> String {
    (b'a'..=b'w').map(char::from).cycle().take(bytes).collect()
}

fn echo(request: &Request) -> Reply {
    match request.method.as_str() {
        "POST" => reply(200).cache("no-store").body(&request.body),
        _ if request.path() == "/large" => reply(200).cache("max-age=60").body(page(2_000_000)),
        _ => reply(200).cache("max-age=60").with("X-Kind", "page").body(request.path()),
    }
}

#[test]
fn curl_gets_and_uploads_over_both() {
    let site = Site::new(echo);
    let (ca, upload) = (site.proxy.dir().join("ca.pem"), site.proxy.dir().join("upload"));
    std::fs::write(&ca, &site.ca.pem).unwrap();
    let ca = ca.display().to_string();
    std::fs::write(&upload, page(300_000)).unwrap();
    let upload = format!("@{}", upload.display());
    for (how, base) in [("--http2-prior-knowledge", site.clear()), ("--http2", site.tls())] {
        let common = ["-sS", "--noproxy", "*", "--cacert", ca.as_str(), how, "-w", " over %{http_version}"];
        let curl = |rest: &[&str]| run("curl", &[&common[..], rest].concat());
        assert_eq!(curl(&[&format!("{base}/page")]), "/page over 2");
        assert!(curl(&["-I", &format!("{base}/page")]).starts_with("HTTP/2 200"));
        assert!(curl(&[&format!("{base}/large")]) == page(2_000_000) + " over 2");
        let sent = curl(&["--data-binary", &upload, &format!("{base}/upload")]);
        assert!(sent == page(300_000) + " over 2");
        // The response comes before curl has sent everything.
        let refused = curl(&["--data-binary", &upload, &format!("{base}/files/upload")]);
        assert!(refused.starts_with("405") && refused.ends_with(" over 2"), "{refused}");
    }
    // Both at once on one connection. Without TLS, curl 7.88 fails at that with any server.
    let one = format!("{}/one", site.tls());
    let arguments = ["-sS", "--noproxy", "*", "--cacert", &ca, "--http2", "-w", " over %{http_version}"];
    let both = run("curl", &[&arguments[..], &["--parallel", &one, &one]].concat());
    // curl may print both pages before it has counted the first as done.
    assert_eq!((both.matches("/one").count(), both.matches(" over 2").count()), (2, 2), "{both}");
    assert_eq!(site.origin.count_of("/page"), 2, "one for each scheme: the others were hits");
}

#[test]
fn an_upgrade_to_h2c_stays_http_1_and_reaches_no_origin() {
    let site = Site::new(echo);
    let got = run(
        "curl",
        &[
            "-sS",
            "--noproxy",
            "*",
            "--http2",
            "-w",
            " over %{http_version}",
            &format!("{}/h2c", site.clear()),
        ],
    );
    assert_eq!(got, "/h2c over 1.1");
    let received = site.origin.last();
    for name in ["Upgrade", "HTTP2-Settings"] {
        assert!(!received.fields.has(name), "{received:?}");
    }
}

#[test]
fn nghttp_gets_many_at_a_time_and_trailers() {
    let site = Site::new(|request| match request.path() {
        "/trailers" => reply(200).cache("no-store").body("body").chunked().trailer("X-Sum", "42"),
        _ => echo(request),
    });
    let urls: Vec<String> = (0..30).map(|n| format!("{}/{n}", site.tls())).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let got = run("nghttp", &[&["--no-verify-peer"][..], &urls[..]].concat());
    let expected: String = (0..30).map(|n| format!("/{n}")).collect();
    assert_eq!(got.len(), expected.len(), "{got}");
    for n in 0..30 {
        assert!(got.contains(&format!("/{n}")), "{got}");
    }
    let told = run("nghttp", &["-v", "-H", "te: trailers", &format!("{}/trailers", site.clear())]);
    assert!(told.contains("x-sum: 42") && told.contains("body"), "{told}");
    assert!(!told.contains("error_code=PROTOCOL_ERROR"), "{told}");
}

#[test]
fn h2load_gets_an_answer_to_every_request() {
    let site = Site::new(echo);
    for base in [site.clear(), site.tls()] {
        let told = run("h2load", &["-n", "2000", "-c", "10", "-m", "20", &format!("{base}/page")]);
        assert!(told.contains("2000 succeeded, 0 failed, 0 errored, 0 timeout"), "{told}");
        assert!(told.contains("Application protocol: h2"), "{told}");
    }
    assert_eq!(site.origin.count(), 2, "one for each scheme");
}

#[test]
fn chromium_loads_a_page_with_all_it_refers_to() {
    const IMAGE: &str = "<svg xmlns='http://www.w3.org/2000/svg' width='7' height='5'/>";
    const SCRIPT: &str = "
        const seen = document.getElementById('seen');
        const style = getComputedStyle(seen).color;
        fetch('/data.json').then(response => response.json()).then(data => {
            const images = [...document.images].filter(image => image.complete && image.naturalWidth === 7);
            seen.textContent = `${data.word}, ${images.length} images, ${style}`;
        });";
    let site = Site::new(|request| {
        let (kind, body) = match request.path() {
            "/" => {
                let images: String = (0..8).map(|n| format!("<img src='/{n}.svg'>")).collect();
                let page = format!(
                    "<!doctype html><link rel='stylesheet' href='/style.css'><p id='seen'>nothing</p>{images}\
                     <script>onload = () => document.body.append(Object.assign(document.createElement('script'), {{src: '/script.js'}}))\
                     </script>"
                );
                ("text/html", page)
            }
            "/style.css" => ("text/css", "p { color: rgb(1, 2, 3) }".to_owned()),
            "/script.js" => ("text/javascript", SCRIPT.to_owned()),
            "/data.json" => ("application/json", "{\"word\": \"loaded\"}".to_owned()),
            path if path.ends_with(".svg") => ("image/svg+xml", IMAGE.to_owned()),
            _ => return reply(404),
        };
        reply(200).cache("max-age=60").with("Content-Type", kind).body(body)
    });
    let profile = site.proxy.dir().join("profile");
    let profile = format!("--user-data-dir={}", profile.display());
    let flags = [
        "--headless=new",
        // The sandbox needs rights that containers do not have.
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--no-proxy-server",
        "--ignore-certificate-errors",
        "--virtual-time-budget=20000",
        "--dump-dom",
    ];
    let url = format!("{}/", site.tls());
    let dom = run("chromium", &[&flags[..], &[profile.as_str(), url.as_str()]].concat());
    assert!(dom.contains("loaded, 8 images, rgb(1, 2, 3)"), "{dom}");
    // The page, the style sheet, the script, the data and the images. A browser may ask for an icon, too, and
    // be logged before one of them.
    for path in ["/ ", "/style.css ", "/script.js ", "/data.json ", "/0.svg ", "/7.svg "] {
        let lines = site.logged(&format!("GET {path}HTTP/2.0\" 200"), 1);
        assert!(lines.iter().all(|line| line.contains("HeadlessChrome")), "{path}: {lines:#?}");
    }
    let lines = site.logged("HeadlessChrome", 12);
    assert!(lines.iter().all(|line| line.contains(" HTTP/2.0\" ")), "{lines:#?}");
}
