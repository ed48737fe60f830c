//! `sandarac replay`: logs replayed against simulated workers and live backends.

use std::fmt::Write;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use sandarac_test_support::{Origin, Output, Reply, Setup, TempDir, reply};

use crate::{sandarac, site};

/// A log of `count` GETs, 100 a second, for ten sites of five pages each. A POST comes before the last GET, and a line that is
/// no log record after it.
fn log(count: usize) -> String {
    let mut log = String::new();
    for number in 0..count {
        if number + 1 == count {
            log += "a.example:80 192.0.2.7 - - [21/Nov/2026:13:55:36 +0000] \"POST / HTTP/1.1\" 200 5 \"-\" \"-\"\n";
        }
        let (site, page, second) = (number * 7 % 10, number * 3 % 5, number / 100);
        writeln!(
            log,
            "site-{site}.example:80 192.0.2.7 - - [21/Nov/2026:13:55:{second:02} +0000] \"GET /{page}?x=%22 HTTP/1.1\" \
             200 1000 \"-\" \"agent/1\""
        )
        .expect("a string takes everything");
    }
    log + "no line of a log\n"
}

struct Played {
    dir: TempDir,
}

impl Played {
    fn new() -> Played {
        Played { dir: TempDir::new() }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.join(name);
        std::fs::write(&path, text).expect("a file can be written");
        path
    }

    /// A file with `text`, compressed by gzip as log rotation does.
    fn gzipped(&self, text: &str) -> PathBuf {
        let path = self.dir.join("access.log.gz");
        let out = std::fs::File::create(&path).expect("a file can be made");
        let mut gzip = Command::new("gzip")
            .arg("-c")
            .stdin(Stdio::piped())
            .stdout(out)
            .spawn()
            .expect("gzip is installed");
        gzip.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("gzip reads");
        assert!(gzip.wait().expect("it ends").success());
        path
    }
}

/// `sandarac replay LOG`, with these arguments.
fn replay(log: &std::path::Path, arguments: &[&str]) -> Setup {
    let setup = sandarac().arg("replay").arg(log.display().to_string());
    arguments.iter().fold(setup, |setup, argument| setup.arg(*argument))
}

/// The cells of the row `label` of the table.
fn row<'a>(output: &'a Output, label: &str) -> Vec<&'a str> {
    let line = output.stdout.lines().find(|line| line.starts_with(&format!("{label} ")));
    line.unwrap_or_else(|| panic!("{label}: {}", output.stdout)).split_whitespace().collect()
}

#[test]
fn a_log_before_simulated_workers_is_a_row_for_every_algorithm_and_always_the_same() {
    let played = Played::new();
    let plain = played.file("access.log", &log(1000));
    let run = |path: &std::path::Path| {
        replay(path, &["--simulate", "--workers", "4", "--class", "host"]).run().success().stdout
    };
    let first = run(&plain);
    let rows = |text: &str| text.split_once("algorithm").expect("a table").1.to_owned();
    assert!(first.contains("1 000 requests for 10 objects in 10 classes, over 9 s; 4 workers"), "{first}");
    for algorithm in ["resume", "lard", "maglev", "least_requests", "peak_ewma", "round_robin", "random"] {
        assert!(first.lines().any(|line| line.starts_with(algorithm)), "{algorithm}: {first}");
    }
    assert!(
        first.contains("left out: 1 of other methods than GET; 1 not in a format of access logs (line 1002)")
    );
    assert_eq!(rows(&first), rows(&run(&plain)));
    assert_eq!(rows(&first), rows(&run(&played.gzipped(&log(1000)))));
}

#[test]
fn the_classifier_of_a_pool_and_a_scenario_are_heeded() {
    let played = Played::new();
    let path = played.file("access.log", &log(500));
    let text = site(
        "http://127.0.0.1:9",
        "",
        "[pool.other]\nbackends = [\"http://127.0.0.1:8\"]\nbalance = \"resume\"\nclass = \"path_segment(1)\"",
    );
    let config = played.file("sandarac.toml", &text).display().to_string();
    let scenario = played.file(
        "workers.toml",
        "[workers]\ncount = 3\ncache = 2\n[[event]]\nat = 200\nkind = \"kill\"\nworker = 1\n[[algorithm]]\nname = \"resume\"\n",
    );
    let scenario = scenario.display().to_string();
    let output =
        replay(&path, &["--simulate", &scenario, "-c", &config, "--pool", "other", "--flat-out"]).run();
    let output = output.success().stdout;
    assert!(output.contains("500 requests for 10 objects in 5 classes"), "{output}");
    assert!(output.contains("3 workers, whose caches hold 2 objects each"), "{output}");
    assert!(output.contains("kill 1"), "{output}");
}

#[test]
fn a_log_before_live_backends_is_played_through_the_balancer() {
    let played = Played::new();
    let path = played.gzipped(&log(300));
    let origins: Vec<Origin> =
        (0..2).map(|_| Origin::new(|_| reply(200).cache("no-store").body("page"))).collect();
    let setup = replay(
        &path,
        &["--flat-out", "--connections", "4", "--balance", "round_robin", "--balance", "least_requests"],
    );
    let output = origins.iter().fold(setup, |setup, origin| setup.before(origin)).run().success();
    let counts: Vec<usize> = origins.iter().map(Origin::count).collect();
    assert_eq!(counts.iter().sum::<usize>(), 600, "each algorithm plays the whole log: {}", output.stdout);
    for algorithm in ["round_robin", "least_requests"] {
        let row = row(&output, algorithm);
        assert_eq!(row[1], "–", "nobody knows what live workers load");
        assert_eq!(row[5], "–", "nobody knows what live workers load");
        assert!(row[2].parse::<f64>().unwrap() > 0.0, "{row:?}");
        // `round_robin` is even whatever happens. With other algorithms, a backend that a busy machine delays gets less.
        let even = if algorithm == "round_robin" { 0.9 } else { 0.1 };
        assert!(row[6].parse::<f64>().unwrap() > even, "{row:?}");
    }
    assert!(output.stdout.contains("answered     200: 300"), "{}", output.stdout);
    assert!(output.stdout.contains("from memory  0.0 %"), "{}", output.stdout);
    assert!(output.stdout.contains(&origins[0].url()), "{}", output.stdout);
}

#[test]
fn what_the_log_tells_of_a_request_reaches_the_backend() {
    let played = Played::new();
    let path = played.file("access.log", &log(10));
    let origin = Origin::new(|request| {
        let right = request.field("user-agent") == Some("agent/1")
            && request.field("host").is_some_and(|host| host.starts_with("site-"))
            && request.target.ends_with("?x=%22");
        reply(if right { 200 } else { 400 }).cache("no-store")
    });
    let output = replay(&path, &["--flat-out"]).before(&origin).run().success();
    assert!(output.stdout.contains("answered     200: 10\n"), "{}", output.stdout);
}

#[test]
fn the_cache_answers_where_it_is_on_and_not_where_it_is_off() {
    let played = Played::new();
    let path = played.file("access.log", &log(200));
    let origin = Origin::new(|_| reply(200).cache("max-age=60").body("page"));
    let output = replay(&path, &["--flat-out", "--connections", "1"]).before(&origin).run().success();
    assert_eq!(origin.count(), 10, "{}", output.stdout);
    assert!(output.stdout.contains("from memory  95.0 %"), "{}", output.stdout);
    let output = replay(&path, &["--flat-out", "--no-cache"]).before(&origin).run().success();
    assert_eq!(origin.count(), 210, "{}", output.stdout);
}

#[test]
fn a_log_is_played_at_its_pace_or_faster_and_not_longer_than_asked() {
    let played = Played::new();
    let path = played.file("access.log", &log(300));
    let origin = Origin::new(|_| reply(200).cache("no-store"));
    let begun = std::time::Instant::now();
    let output = replay(&path, &["--pace", "4"]).before(&origin).run().success();
    assert!(begun.elapsed().as_millis() >= 740, "2.99 seconds, four times as fast");
    assert!(row(&output, "least_requests")[2].parse::<f64>().unwrap() <= 410.0, "{}", output.stdout);
    assert_eq!(origin.count(), 300);
    replay(&path, &["--for", "500ms"]).before(&origin).run().success();
    let more = origin.count() - 300;
    assert!((1..=51).contains(&more), "{more} requests in half a second");
    replay(&path, &["--flat-out", "--requests", "7"]).before(&origin).run().success();
    assert_eq!(origin.count() - 300 - more, 7);
}

/// Regression: the configuration had to have a listener, which the replay does not open.
#[test]
fn a_configuration_without_listeners_can_be_played() {
    let played = Played::new();
    let origin = Origin::new(|_| reply(200));
    let text = format!("[pool.app]\nbackends = [\"{}\"]\n\n[[route]]\npool = \"app\"\n", origin.url());
    let config = played.file("sandarac.toml", &text).display().to_string();
    let whole = played.file("access.log", &log(20));
    replay(&whole, &["-c", &config, "--flat-out"]).run().success();
    assert!(origin.count() > 0);
}

#[test]
fn a_pool_can_be_played_past_the_routes() {
    let played = Played::new();
    let path = played.file("access.log", &log(20));
    let (origin, other) = (Origin::new(|_| reply(200)), Origin::new(|_| reply(200).cache("no-store")));
    let text = site(&origin.url(), "", &format!("[pool.other]\nbackends = [\"{}\"]", other.url()));
    let config = played.file("sandarac.toml", &text).display().to_string();
    replay(&path, &["-c", &config, "--pool", "other", "--flat-out"]).run().success();
    assert_eq!(origin.count(), 0);
    assert_eq!(other.count(), 20);
}

#[test]
fn bad_input_is_told_in_words() {
    let played = Played::new();
    let whole = played.file("access.log", &log(20));
    let config = played.file("sandarac.toml", &site("http://127.0.0.1:9", "", "")).display().to_string();
    let cut = played.gzipped(&log(5000));
    let bytes = std::fs::read(&cut).expect("a file");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).expect("a file can be written");
    let told = |path: &std::path::Path, arguments: &[&str]| {
        let output = replay(path, arguments).run().failure();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        output.stderr
    };
    for how in [&["--simulate"][..], &["-b", "http://127.0.0.1:9"]] {
        assert!(told(&played.dir.join("absent"), how).contains("cannot read"));
        assert!(told(played.dir.path(), how).contains("cannot read it"));
        assert!(told(&played.file("empty", ""), how).contains("it is empty"));
        let text = played.file("text", &"a text\n".repeat(3000));
        assert!(told(&text, how).contains("it is no access log: line 1 is not in a format"));
        let posts = log(3).replace("GET", "PUT");
        assert!(told(&played.file("posts", &posts), how).contains("no request in it is a GET"));
    }
    assert!(told(&cut, &["--simulate"]).contains("cannot read it beyond line"));
    assert!(told(&whole, &[]).contains("nothing to play the log before"));
    assert!(told(&whole, &["-c", &config, "--pool", "ap"]).contains("pools: app"));
    assert!(told(&whole, &["--simulate", "--class", "hosts"]).contains("did you mean \"host\"?"));
    assert!(told(&whole, &["--simulate", "--warm-up", "20"]).contains("none of the 20 requests"));
    assert!(told(&whole, &["--simulate", "/dev/null/x"]).contains("cannot read /dev/null/x"));
    assert!(told(&whole, &["-b", "http://127.0.0.1:9", "--pace", "0"]).contains("above 0"));
    let ignored = told(&whole, &["-b", "http://127.0.0.1:9", "--warm-up", "20", "--seed", "4"]);
    assert!(ignored.contains("--warm-up, --seed: only a simulation heeds that"), "{ignored}");
    assert!(told(&whole, &["-b", "http://127.0.0.1:9", "--balance", "best"]).contains("--balance"));
}

#[test]
fn a_chart_that_cannot_be_written_is_told_of_before_anything_is_played() {
    let played = Played::new();
    let whole = played.file("access.log", &log(20));
    let output = replay(&whole, &["--simulate", "--svg", "/dev/null/chart.svg"]).run().failure();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stderr.contains("cannot write /dev/null/chart.svg"), "{}", output.stderr);
    assert_eq!(output.stdout, "");
}

#[test]
fn errors_are_counted_apart_and_a_run_without_another_answer_fails() {
    let played = Played::new();
    let whole = played.file("access.log", &log(20));
    let dead = replay(&whole, &["-b", "unix:/nowhere", "--flat-out"]).run().failure();
    assert_eq!(dead.status.code(), Some(1), "{dead:?}");
    for line in ["  answered     none\n", "  errors       50", "connection"] {
        assert!(dead.stdout.contains(line), "{line}: {}", dead.stdout);
    }
    assert!(dead.stderr.contains("no request of the log was answered without an error"), "{}", dead.stderr);

    let broken = Origin::new(|_| reply(502).cache("no-store"));
    let output = replay(&whole, &["--flat-out", "--no-cache"]).before(&broken).run().failure();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(row(&output, "least_requests")[2], "0", "errors are no throughput: {}", output.stdout);
    assert!(output.stdout.contains("  errors       502: 20 ("), "{}", output.stdout);

    let half = Origin::new(|request| {
        reply(if request.target.starts_with("/0") { 500 } else { 404 }).cache("no-store")
    });
    let output = replay(&whole, &["--flat-out", "--no-cache"]).before(&half).run().success();
    assert!(output.stdout.contains("  answered     404: 16\n"), "{}", output.stdout);
    assert!(output.stdout.contains("  errors       500: 4 ("), "{}", output.stdout);
}

/// Regression: the run ended only when the balancer gave up, and requests in flight were reported as never sent.
#[test]
fn a_run_ends_when_it_is_to_and_counts_what_is_in_flight() {
    let played = Played::new();
    let whole = played.file("access.log", &log(20));
    let silent = Origin::new(|_| Reply::verbatim("").hang());
    let begun = std::time::Instant::now();
    let output = replay(&whole, &["--flat-out", "--no-cache", "--connections", "4", "--for", "200ms"])
        .before(&silent)
        .run()
        .failure();
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    assert!(
        output.stdout.contains("  not answered 4 (4 requests in flight when it ended)\n"),
        "{}",
        output.stdout
    );
    assert!(!output.stdout.contains("from memory"), "{}", output.stdout);
    assert!(output.stderr.contains("4 requests in flight when it ended"), "{}", output.stderr);
    assert_eq!(row(&output, "least_requests")[3..5], ["–", "–"], "{}", output.stdout);
}
