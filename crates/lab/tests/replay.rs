//! Tests of logs replayed with simulated workers.

use std::fmt::Write;
use std::io::Cursor;
use std::time::Duration;

use sandarac_config::Config;
use sandarac_lab::{Load, Log, LogOptions, LogSettings, Report, Scenario, Trace, replay, table};
use sandarac_policy::Classifier;

/// The classifier that a pool with this `class` has.
fn classifier(class: &str) -> Classifier {
    let text = format!(
        "[[listen]]\naddress = \":0\"\n[pool.app]\nbackends = [\"http://a\"]\nbalance = \"resume\"\nclass = \"{class}\"\n\
         [[route]]\npool = \"app\"\n"
    );
    let (config, _) = Config::from_toml("test.toml", &text).unwrap();
    config.pools[0].classifier.clone().unwrap()
}

/// A log of 4000 requests, 40 a second, for 20 sites of 30 pages each.
fn log() -> String {
    let mut state = 1_u32;
    let mut next = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % below
    };
    let mut log = String::new();
    for number in 0..4000 {
        let (minute, second) = (number / 40 / 60, number / 40 % 60);
        let (site, page) = (next(20), next(30));
        writeln!(
            log,
            "site-{site}.example:80 192.0.2.7 - - [21/Nov/2026:13:{minute:02}:{second:02} +0000] \
             \"GET /{page} HTTP/1.1\" 200 1000"
        )
        .unwrap();
    }
    log
}

fn trace(class: &str, most: u64, span: Duration) -> Trace {
    let options = LogOptions { head: false, host: "a".to_owned() };
    let mut log = Log::new(Cursor::new(log()), options).unwrap();
    Trace::read(&mut log, &classifier(class), most, span).unwrap()
}

fn whole(class: &str) -> Trace {
    trace(class, u64::MAX, Duration::MAX)
}

fn settings(text: &str, load: Load) -> LogSettings {
    LogSettings {
        text: text.to_owned(),
        title: "a log".to_owned(),
        load,
        workers: Some(4),
        cache: None,
        fixed_ms: None,
        load_ms: None,
        warm_up: None,
        seed: None,
        resume: None,
    }
}

fn play(settings: &LogSettings, trace: &Trace) -> Vec<Report> {
    let scenario = Scenario::for_log(settings, trace).unwrap();
    scenario.algorithms.iter().map(|algorithm| replay(&scenario, trace, algorithm)).collect()
}

const OWN_PACE: Load = Load::Log { pace: 1.0 };
const FLAT_OUT: Load = Load::Clients { count: 16, think_ms: 0.0 };

#[test]
fn a_trace_knows_classes_and_objects() {
    let trace = whole("host");
    assert_eq!(trace.requests(), 4000);
    assert_eq!(trace.classes(), 20);
    assert_eq!(trace.unclassified(), 0);
    assert!((500..=600).contains(&trace.objects()), "{}", trace.objects());
    assert!((99..100).contains(&trace.span().as_secs()), "{:?}", trace.span());
    let by_page = whole("path_segment(1)");
    assert_eq!(by_page.classes(), 30);
    assert_eq!(by_page.objects(), trace.objects());
    let nothing = whole("path_segment(2)");
    assert_eq!(nothing.classes(), 1);
    assert_eq!(nothing.unclassified(), 4000);
}

#[test]
fn a_trace_ends_where_it_is_told_to() {
    assert_eq!(trace("host", 10, Duration::MAX).requests(), 10);
    assert_eq!(trace("host", u64::MAX, Duration::from_millis(1999)).requests(), 80);
}

#[test]
fn every_algorithm_serves_every_request_of_the_log_and_twice_the_same() {
    for load in [OWN_PACE, FLAT_OUT] {
        let trace = whole("host");
        let reports = play(&settings("", load), &trace);
        assert!(reports.len() >= 10);
        for report in &reports {
            assert_eq!(report.warm_up, 400, "{}", report.label);
            assert_eq!(report.phases[0].requests, 3600, "{}", report.label);
        }
        assert_eq!(table(&reports), table(&play(&settings("", load), &trace)));
    }
}

#[test]
fn a_log_is_played_at_the_pace_asked_for() {
    let trace = whole("host");
    for (pace, expected) in [(1.0, 40.0), (3.0, 120.0)] {
        let reports = play(&settings("", Load::Log { pace }), &trace);
        let rate = reports[0].phases[0].throughput;
        assert!((rate / expected - 1.0).abs() < 0.02, "{rate} instead of {expected}");
    }
}

#[test]
fn who_keeps_classes_together_loads_less() {
    let trace = whole("host");
    let reports = play(&settings("", FLAT_OUT), &trace);
    let loads = |label: &str| {
        reports.iter().find(|report| report.label == label).map(|report| report.phases[0].loads).unwrap()
    };
    assert!(loads("resume") < 0.7 * loads("random"), "{}", table(&reports));
}

#[test]
fn without_a_class_every_algorithm_still_works() {
    let reports = play(&settings("", FLAT_OUT), &whole("path_segment(2)"));
    assert!(reports.iter().all(|report| report.phases[0].requests == 3600), "{}", table(&reports));
}

#[test]
fn a_scenario_says_what_the_log_does_not() {
    let trace = whole("host");
    let text = "warm_up = 1000\n[workers]\ncount = 3\ncache = 7\nfixed_ms = 2\n[[event]]\nat = 500\nkind = \"kill\"\nworker = 1\n\
                [[algorithm]]\nname = \"round_robin\"\n";
    let scenario =
        Scenario::for_log(&LogSettings { workers: None, ..settings(text, OWN_PACE) }, &trace).unwrap();
    assert_eq!(scenario.workers.count, 3);
    assert_eq!(scenario.workers.cache, 7);
    assert_eq!(scenario.requests, 3000);
    let report = replay(&scenario, &trace, &scenario.algorithms[0]);
    assert_eq!(report.phases.len(), 2);
    assert_eq!(report.phases[0].requests, 500);
    assert_eq!(report.phases[1].requests, 2500);
    let told = LogSettings { warm_up: Some(0), cache: Some(9), ..settings(text, OWN_PACE) };
    let scenario = Scenario::for_log(&told, &trace).unwrap();
    assert_eq!(scenario.workers.count, 4);
    assert_eq!(scenario.workers.cache, 9);
    assert_eq!(scenario.requests, 4000);
    let report = replay(&scenario, &trace, &scenario.algorithms[0]);
    assert_eq!(report.phases.iter().map(|phase| phase.requests).sum::<u64>(), 4000);
}

#[test]
fn what_a_log_cannot_have_is_told() {
    let trace = whole("host");
    let told = |settings: &LogSettings| Scenario::for_log(settings, &trace).unwrap_err().to_string();
    let crowd = "[[event]]\nat = 5\nkind = \"crowd\"\nsite = 0\nshare = 0.5";
    assert!(told(&settings(crowd, OWN_PACE)).contains("`crowd`"));
    assert!(told(&settings("[wrkers]", OWN_PACE)).contains("wrkers"));
    assert!(told(&settings("", Load::Log { pace: 0.0 })).contains("pace"));
    let warm = LogSettings { warm_up: Some(4000), ..settings("", OWN_PACE) };
    assert!(told(&warm).contains("none of the 4000 requests"));
}
