//! Tests of the example scenarios at small scale, and of the guarantees of simulations.

use std::path::Path;

use sandarac_lab::{Load, Phase, Scenario, chart, simulate, table};

fn examples() -> Vec<(String, Scenario)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/simulate");
    let files = std::fs::read_dir(directory).expect("the examples are there").flatten();
    let scenarios =
        files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|kind| kind == "toml"));
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a file");
        let scenario =
            Scenario::from_toml(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path.display().to_string(), scenario)
    };
    scenarios.map(read).collect()
}

/// The same scenario at small scale.
fn small(mut scenario: Scenario) -> Scenario {
    let share = scenario.requests / 2000;
    scenario.requests /= share;
    scenario.warm_up /= share;
    scenario.sites.count /= 10;
    scenario.workers.cache = (scenario.workers.cache / 10).max(1);
    for event in &mut scenario.events {
        event.at /= share;
        if let sandarac_lab::EventKind::Crowd { site, .. } = &mut event.kind {
            *site /= 10;
        }
    }
    scenario
}

fn scenario(text: &str) -> Scenario {
    Scenario::from_toml(text).unwrap_or_else(|error| panic!("{error}"))
}

/// The first phases of the first algorithms of a scenario.
fn first_phases<const N: usize>(scenario: &Scenario) -> [Phase; N] {
    std::array::from_fn(|at| simulate(scenario, &scenario.algorithms[at]).phases.remove(0))
}

const PLAIN: &str = "title = 't'\nrequests = 20000\nwarm_up = 20000\n[sites]\ncount = 40\n[workers]\ncount = 8\ncache = 1000\n";

#[test]
fn every_example_plays_with_all_its_algorithms() {
    let examples = examples();
    assert!(examples.len() >= 10);
    for (name, scenario) in examples {
        let scenario = small(scenario);
        let reports: Vec<_> =
            scenario.algorithms.iter().map(|algorithm| simulate(&scenario, algorithm)).collect();
        for report in &reports {
            assert_eq!(report.phases.len(), scenario.events.len() + 1, "{name}");
            let requests: u64 = report.phases.iter().map(|phase| phase.requests).sum();
            assert_eq!(requests, scenario.requests, "{name}: {}", report.label);
        }
        assert!(table(&reports).lines().count() > reports.len(), "{name}");
        let svg = chart("a < b & c", &reports);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.contains("a &lt; b &amp; c"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
    }
}

#[test]
fn equal_seeds_give_equal_reports_and_others_do_not() {
    let mut scenario =
        scenario(&format!("{PLAIN}[load.clients]\ncount = 16\n[[algorithm]]\nname = 'resume'\n"));
    let first = simulate(&scenario, &scenario.algorithms[0]);
    assert_eq!(first, simulate(&scenario, &scenario.algorithms[0]));
    scenario.seed = 1;
    assert_ne!(first, simulate(&scenario, &scenario.algorithms[0]));
}

#[test]
fn the_worker_that_knows_a_class_gets_its_requests() {
    let scenario = scenario(&format!(
        "{PLAIN}[load.clients]\ncount = 16\n[[algorithm]]\nname = 'resume'\n[[algorithm]]\nname = 'least_requests'\n"
    ));
    let [resume, least] = first_phases(&scenario);
    assert!(resume.loads < 0.1 * least.loads, "{} instead of {}", resume.loads, least.loads);
    assert!(
        resume.throughput > 3.0 * least.throughput,
        "{} instead of {}",
        resume.throughput,
        least.throughput
    );
}

#[test]
fn a_new_worker_finds_its_share_under_light_load_only_by_exploration() {
    let scenario = scenario(
        "title = 't'\nrequests = 12000\nwarm_up = 20000\n[sites]\ncount = 40\nchurn = 0.1\n[workers]\ncount = 8\ncache = 4000\n\
         [load.rate]\nper_second = 16.0\n[[event]]\nat = 100\nkind = 'join'\n\
         [[algorithm]]\nname = 'resume'\n[[algorithm]]\nname = 'resume'\nexploration = 0.0\n",
    );
    let after = |at: usize| simulate(&scenario, &scenario.algorithms[at]).phases[1].share_after;
    assert!(after(0).is_some_and(|requests| requests < 6000), "{:?}", after(0));
    assert_eq!(after(1), None);
}

#[test]
fn where_nothing_is_loaded_twice_the_load_alone_counts() {
    let scenario = scenario(
        "title = 't'\nrequests = 20000\nwarm_up = 150000\n[sites]\ncount = 20\n[workers]\ncount = 4\ncache = 2000\n\
         [load.clients]\ncount = 8\n[[algorithm]]\nname = 'resume'\n[[algorithm]]\nname = 'least_requests'\n",
    );
    let [resume, least] = first_phases(&scenario).map(|phase| phase.throughput);
    // Spreading is slow where the caches are new: 0.97 is reached after four times as many requests.
    assert!(resume > 0.9 * least, "{resume} instead of {least}");
}

/// Regression: the balancer was not told that responses came, so workers with requests all the time counted as
/// silent after a second. Their classes moved to others, which loaded the data again: 721 requests a second.
#[test]
fn a_worker_that_is_always_busy_is_not_silent() {
    let scenario = scenario(
        "title = 't'\nrequests = 20000\nwarm_up = 20000\n[sites]\ncount = 40\n[workers]\ncount = 8\ncache = 700\n\
         [load.clients]\ncount = 80\n[[algorithm]]\nname = 'resume'\n[[algorithm]]\nname = 'published'\n",
    );
    let [resume, published] = first_phases(&scenario);
    assert!(resume.throughput > published.throughput, "{resume:?} instead of {published:?}");
}

/// Regression: the time since the previous response counted as that of a request, so that busy workers seemed
/// to be quick. Two workers got most requests, and others none.
#[test]
fn workers_that_work_on_several_requests_share_the_load() {
    let scenario = scenario(
        "title = 't'\nrequests = 10000\nwarm_up = 10000\n[sites]\ncount = 8\nobjects = 1\nobjects_per_request = 1\n\
         [workers]\ncount = 8\ncache = 8\nfixed_ms = 100.0\nload_ms = 10.0\njitter = 0.1\nconcurrency = 4\n\
         [load.clients]\ncount = 36\n[[algorithm]]\nname = 'resume'\n[[algorithm]]\nname = 'least_requests'\n",
    );
    let [resume, least] = first_phases(&scenario);
    assert!(resume.throughput > 0.97 * least.throughput, "{resume:?} instead of {least:?}");
    assert!(resume.fairness > 0.97, "{resume:?}");
}

/// Caches that hold everything, and loading that triples the cost of a request.
fn cheap_loading(jitter: f64, algorithms: &str) -> Scenario {
    scenario(&format!(
        "title = 't'\nrequests = 20000\n[sites]\ncount = 100\nobjects_per_request = 30\nchurn = 0.05\n\
         [workers]\ncount = 8\ncache = 1250\nfixed_ms = 0.5\nload_ms = 0.04\njitter = {jitter}\n[load.clients]\ncount = 16\n\
         {algorithms}"
    ))
}

#[test]
fn cheap_loading_evicts_as_much_as_dear_loading() {
    let scenario = cheap_loading(
        0.0,
        "[[algorithm]]\nname = 'resume'\n[[algorithm]]\nname = 'consistent_hash'\nload_factor = 4.0\n\
         [[algorithm]]\nname = 'consistent_hash'\nload_factor = 2.0\n",
    );
    let [resume, at_home, spread] = first_phases(&scenario);
    assert!(resume.loads < 1.1 * at_home.loads, "{} instead of {}", resume.loads, at_home.loads);
    assert!(
        resume.throughput > 1.1 * spread.throughput,
        "{} instead of {}",
        resume.throughput,
        spread.throughput
    );
}

#[test]
fn requests_do_not_wait_for_their_home_because_times_vary() {
    let scenario = cheap_loading(
        0.2,
        "[[algorithm]]\nname = 'resume'\n[[algorithm]]\nname = 'consistent_hash'\nload_factor = 1.25\n",
    );
    let [resume, even] = first_phases(&scenario).map(|phase| phase.p99_ms);
    assert!(resume < 0.9 * even, "{resume} ms, and {even} ms where load is even");
}

#[test]
fn requests_of_a_worker_that_dies_are_served_by_others() {
    let scenario = scenario(&format!(
        "{PLAIN}[load.clients]\ncount = 64\n[[event]]\nat = 5000\nkind = 'kill'\nworker = 0\n"
    ));
    for algorithm in &scenario.algorithms {
        let report = simulate(&scenario, algorithm);
        assert_eq!(
            report.phases.iter().map(|phase| phase.requests).sum::<u64>(),
            20000,
            "{}",
            algorithm.label
        );
    }
}

#[test]
fn what_cannot_be_simulated_says_why() {
    for (text, expected) in [
        ("title = 1", "expected a string"),
        ("title = 't'\nlaod = 1", "did you mean `load`?"),
        ("title = 't'", "missing field `load`"),
        ("title = 't'\n[load.clients]\ncount = 0", "load.clients.count"),
        ("title = 't'\n[load]\nclients = 3", "a load is [load.clients] with `count`, or [load.rate]"),
        (
            "title = 't'\n[load.clients]\ncount = 1\n[load.rate]\nper_second = 1",
            "there are several of them; only one is possible",
        ),
        (
            "title = 't'\n[load.clients]\ncount = 1\n[sites]\npopularity = 'zipf'",
            "a popularity is \"uniform\", { zipf = 0.9 } or { exponential = 20 }",
        ),
        ("title = 't'\n[load.rate]\nper_second = nan", "load.rate.per_second"),
        ("title = 't'\n[load.clients]\ncount = 1\n[workers]\ncount = 0", "workers.count"),
        ("title = 't'\n[load.clients]\ncount = 1\n[workers]\nconcurrency = 0", "workers.concurrency"),
        (
            "title = 't'\n[load.clients]\ncount = 1\n[[algorithm]]\nname = 'best'",
            "there is no algorithm \"best\"",
        ),
        (
            "title = 't'\n[load.clients]\ncount = 1\n[[event]]\nat = 2000000\nkind = 'deploy'",
            "after the last",
        ),
        (
            "title = 't'\n[load.clients]\ncount = 1\n[[event]]\nat = 2\nkind = 'kill'\nworker = 16",
            "no worker 16",
        ),
        (
            "title = 't'\n[load.clients]\ncount = 1\n[[event]]\nat = 2\nkind = 'quake'",
            "unknown variant `quake`",
        ),
        ("title = 't'\n[load.clients]\ncount = 1\n[sites]\ncount = 4000000000", "more than the"),
        (
            "title = 't'\n[load.clients]\ncount = 1\n[sites]\nobjects_per_request = 4000000000",
            "sites.objects_per_request cannot be more than the 100 objects of a site, and is 4000000000",
        ),
        (
            "title = 't'\n[load.clients]\ncount = 1\n[sites]\nchurn = 1e18",
            "sites.churn cannot be more than the 20000 objects that there are, and is 1000000000000000000",
        ),
        (
            "title = 't'\n[load.clients]\ncount = 1\nthink_ms = -1.0",
            "think_ms cannot be less than 0, and is -1",
        ),
        (
            "title = 't'\n[load.clients]\ncount = 4000000000",
            "load.clients.count cannot be more than 1000000, and is 4000000000",
        ),
        (
            "title = 't'\nbalancers = 4000000000\n[load.clients]\ncount = 1",
            "4000000000 balancers times 16 workers are more than the 262144 that can be simulated",
        ),
        (
            "title = 't'\n[load.clients]\ncount = 1\n[workers]\nfixed_ms = 1e300",
            "workers.fixed_ms cannot be more than 1000000, and is 1",
        ),
        (
            "title = 't'\n[load.clients]\ncount = 1\n[workers]\nslowness = [1.0, inf]",
            "workers.slowness cannot be more than 1000, and is inf",
        ),
        (
            "title = 't'\n[load.clients]\ncount = 1\n[workers]\njitter = -0.1",
            "workers.jitter cannot be less than 0, and is -0.1",
        ),
        (
            "title = 't'\n[load.clients]\ncount = 1\n[[algorithm]]\nname = 'lard'\n[[algorithm]]\nname = 'resume'\nvariance = -3.0",
            "algorithm 2: variance of resume has to be from 0.1 to 1000, and is -3",
        ),
        (
            "title = 't'\n[load.clients]\ncount = 1\n[[algorithm]]\nname = 'resume'\nload_factor = 2.0",
            "algorithm 1: load_factor means nothing to resume; it is a setting of consistent_hash",
        ),
        (
            "title = 't'\n[load.clients]\ncount = 1\n[[event]]\nat = 2\nkind = 'slow'\nworker = 1\nslowness = 0.0",
            "event at 2: slowness has to be more than 0",
        ),
        (
            "title = 't'\n[load.clients]\ncount = 1\n[[event]]\nat = 2\nkind = 'crowd'\nsite = 200\nshare = 0.5",
            "sites from 0 to 199",
        ),
        (
            "title = 't'\n[load.clients]\ncount = 1\n[workers]\ncount = 2\n[[event]]\nat = 2\nkind = 'kill'\nworker = 0\n\
             [[event]]\nat = 3\nkind = 'kill'\nworker = 1\n[[event]]\nat = 4\nkind = 'restart'\nworker = 1",
            "the event at 3 kills the last worker",
        ),
    ] {
        let error = Scenario::from_toml(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    let plain = scenario("title = 't'\n[load.clients]\ncount = 1");
    assert_eq!(plain.load, Load::Clients { count: 1, think_ms: 0.0 });
    assert!(plain.algorithms.len() > 8);
}
