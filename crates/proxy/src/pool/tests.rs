use super::*;
use sandarac_balance::{Address, AttemptOutcome};
use sandarac_config::Config;
use sandarac_discover::LiveSettings;
use std::sync::mpsc::channel;
use std::time::Instant;

/// A pool of these backends and of those in two directories.
fn config(backends: &str) -> PoolConfig {
    discovering(backends, &["/one", "/two"])
}

/// A pool of these backends and of those in directories.
fn discovering(backends: &str, directories: &[&str]) -> PoolConfig {
    let sources: Vec<_> = directories.iter().map(|path| format!("{{ directory = {path:?} }}")).collect();
    let text = format!(
        "[[listen]]\naddress = \":0\"\n[pool.app]\nbackends = [{backends}]\ndiscover = [{}]\n[[route]]\npool = \"app\"",
        sources.join(", ")
    );
    let (mut config, _) = Config::from_toml("test.toml", &text).unwrap();
    config.pools.remove(0)
}

fn pool(backends: &str) -> SitePool {
    SitePool::new(&config(backends), None, 1, Arc::default())
}

fn member(address: &str) -> Member {
    Member { address: address.parse().unwrap(), weight: 1 }
}

fn addresses(pool: &SitePool) -> Vec<String> {
    pool.live().backends().iter().map(|backend| backend.address().to_string()).collect()
}

#[test]
fn backends_come_from_everywhere_and_each_is_there_once() {
    let pool = pool("\"http://a\"");
    pool.found(1, vec![member("http://b"), member("http://a")]);
    pool.found(0, vec![member("http://c"), member("http://b")]);
    assert_eq!(addresses(&pool), ["http://a", "http://c", "http://b"]);
    pool.found(0, Vec::new());
    assert_eq!(addresses(&pool), ["http://a", "http://b"]);
}

#[test]
fn what_an_order_removes_stays_away_until_an_order_adds_it() {
    let pool = pool("\"http://a\", \"http://b\"");
    pool.remove(&member("http://a").address).unwrap();
    pool.found(0, vec![member("http://a"), member("http://c")]);
    assert_eq!(addresses(&pool), ["http://b", "http://c"]);
    pool.add(member("http://a")).unwrap();
    assert_eq!(addresses(&pool), ["http://a", "http://b", "http://c"]);
    assert_eq!(pool.add(member("http://a")), Err(PoolRefusal::There));
    assert_eq!(pool.remove(&member("http://d").address), Err(PoolRefusal::NotThere));
}

/// Regression: an order to drain was lost when a source lost the backend for a moment.
#[test]
fn what_an_order_drains_drains_when_it_is_found_again() {
    let [a, b] = ["http://a", "http://b"].map(member);
    let pool = pool("");
    pool.found(0, vec![a.clone(), b.clone()]);
    pool.drain(&a.address, true).unwrap();
    pool.found(0, vec![b.clone()]);
    let pool = SitePool::new(&config(""), Some(&pool), 1, Arc::default());
    let draining =
        |pool: &SitePool| pool.live().backends().iter().map(Backend::is_draining).collect::<Vec<_>>();
    pool.found(0, vec![a.clone(), b.clone()]);
    assert_eq!(draining(&pool), [true, false]);
    pool.drain(&a.address, false).unwrap();
    pool.found(0, vec![b.clone()]);
    pool.found(0, vec![a.clone(), b.clone()]);
    assert_eq!(draining(&pool), [false, false]);
    // Removing and adding a backend means that it is to serve.
    pool.drain(&a.address, true).unwrap();
    pool.remove(&a.address).unwrap();
    pool.add(a).unwrap();
    assert_eq!(draining(&pool), [false, false]);
}

#[test]
fn orders_without_end_are_not_all_remembered() {
    let pool = pool("\"http://a\"");
    for port in 1..1100 {
        let added = member(&format!("http://b:{port}"));
        pool.add(added.clone()).unwrap();
        pool.remove(&added.address).unwrap();
    }
    let removed = pool.removed();
    assert_eq!(removed.len(), 1000);
    assert_eq!(removed[999].to_string(), "http://b:1099");
}

#[test]
fn the_last_backend_is_not_removed() {
    let pool = pool("\"http://a\"");
    assert_eq!(pool.remove(&member("http://a").address), Err(PoolRefusal::Last));
}

#[test]
fn the_last_backend_that_is_not_draining_stays() {
    let pool = pool("\"http://a\", \"http://b\"");
    let (a, b) = (member("http://a").address, member("http://b").address);
    pool.drain(&a, true).unwrap();
    assert_eq!(pool.drain(&b, true), Err(PoolRefusal::LastServing));
    assert_eq!(pool.remove(&b), Err(PoolRefusal::LastServing));
    pool.drain(&a, false).unwrap();
    pool.drain(&b, true).unwrap();
    pool.remove(&b).unwrap();
    assert_eq!(addresses(&pool), ["http://a"]);
    assert_eq!(pool.removed(), [b]);
    assert_eq!(pool.drain(&member("http://c").address, true), Err(PoolRefusal::NotThere));
}

/// Regression: the pool had no backend at all, and every request got a 503.
#[test]
fn orders_that_leave_nobody_are_given_up() {
    let (a, b) = ("\"http://a\"", "\"http://b\"");
    let both = || pool(&format!("{a}, {b}"));
    for order in [
        |pool: &SitePool, address: &Address| pool.remove(address),
        |pool: &SitePool, address: &Address| pool.drain(address, true),
    ] {
        let before = both();
        order(&before, &member("http://a").address).unwrap();
        let reloaded = SitePool::new(&config(a), Some(&before), 1, Arc::default());
        assert_eq!(addresses(&reloaded), ["http://a"]);
        assert!(!reloaded.live().backends()[0].is_draining());
        assert!(reloaded.has_lifted_orders());
        assert!(!reloaded.has_lifted_orders(), "they are reported once");
        let found = pool("");
        found.found(0, vec![member("http://a"), member("http://b")]);
        order(&found, &member("http://a").address).unwrap();
        assert!(!found.has_lifted_orders());
        found.found(0, vec![member("http://a")]);
        assert_eq!(addresses(&found), ["http://a"]);
        assert!(found.has_lifted_orders());
        assert!(found.live().pick(None, Duration::ZERO, &[]).is_ok());
    }
}

/// Regression: found backends were assigned by the position of their source in the configuration.
#[test]
fn a_source_keeps_what_it_found_wherever_a_reload_puts_it() {
    let before = SitePool::new(&discovering("", &["/old", "/main"]), None, 1, Arc::default());
    before.found(0, vec![member("http://c")]);
    before.found(1, vec![member("http://a"), member("http://b")]);
    let without = SitePool::new(&discovering("", &["/main"]), Some(&before), 1, Arc::default());
    assert_eq!(addresses(&without), ["http://a", "http://b"]);
    let with = SitePool::new(&discovering("", &["/new", "/main"]), Some(&without), 1, Arc::default());
    assert!(!with.has_found(0));
    assert!(with.has_found(1));
    with.found(1, vec![member("http://a")]);
    assert_eq!(addresses(&with), ["http://a"]);
}

#[test]
fn what_a_pool_had_stays_until_its_new_source_names_somebody() {
    let found = pool("");
    found.found(0, vec![member("http://a")]);
    for before in [found, pool("\"http://a\"")] {
        let reloaded = SitePool::new(&discovering("", &["/new"]), Some(&before), 1, Arc::default());
        let again = SitePool::new(&discovering("", &["/newer"]), Some(&reloaded), 1, Arc::default());
        assert_eq!(addresses(&again), ["http://a"]);
        assert!(!again.has_found(0));
        assert_eq!(again.awaits(), None);
        again.found(0, vec![member("http://b")]);
        assert_eq!(addresses(&again), ["http://b"]);
        again.found(0, Vec::new());
        assert_eq!(addresses(&again), [""; 0]);
    }
}

/// Regression: after a reload, the settings of an unreachable registry were those of the configuration.
#[test]
fn what_a_source_told_last_is_in_force_after_a_reload() {
    let configured = config("\"http://a\"");
    let before = pool("\"http://a\"");
    let settings = LiveSettings { variance: Some(7.0), ..LiveSettings::default() };
    let lost = Some("unreachable".to_owned());
    let state = SourceState { told: true, settings, lost, ..SourceState::default() };
    before.set_source_state(&configured, 1, state.clone());
    let turned = discovering("\"http://a\"", &["/two", "/one"]);
    let reloaded = SitePool::new(&turned, Some(&before), 1, Arc::default());
    assert_eq!(reloaded.live().settings().resume.variance, 7.0);
    assert_eq!(reloaded.sources()[0].1, state);
    reloaded.set_source_state(&turned, 0, SourceState::default());
    assert_eq!(reloaded.live().settings().resume, configured.settings.resume);
}

#[test]
fn requests_in_flight_stay_counted_as_backends_come() {
    let pool = pool("\"http://a\"");
    let before = pool.live();
    let pick = before.pick(None, Duration::ZERO, &[]).unwrap();
    pool.found(0, vec![member("http://b")]);
    assert_eq!(pool.report(Duration::ZERO)[0].in_flight, 1);
    pick.finish(AttemptOutcome::Answered, Duration::ZERO);
    assert_eq!(pool.report(Duration::ZERO)[0].in_flight, 0);
}

/// Regression: the wait polled the pools every millisecond.
#[test]
fn a_wait_for_a_pool_ends_when_the_pool_is_ready() {
    const PATIENCE: Duration = Duration::from_secs(60);
    let configured = config("");
    let told = || SourceState { told: true, ..SourceState::default() };
    let both_told = |pool: &SitePool| (0..2).for_each(|at| pool.set_source_state(&configured, at, told()));
    let one_found = |pool: &SitePool| pool.found(1, vec![member("http://a")]);
    for make_ready in [&both_told as &dyn Fn(&SitePool), &one_found] {
        let changes = Arc::new(PoolChanges::default());
        let pool = SitePool::new(&configured, None, 1, changes.clone());
        let is_ready = || pool.awaits().is_none();
        let begun = Instant::now();
        changes.wait_until(is_ready, Duration::from_millis(20));
        assert!(!is_ready() && begun.elapsed() >= Duration::from_millis(20));
        std::thread::scope(|scope| {
            let (looked, has_looked) = channel();
            let (changes, pool) = (&changes, &pool);
            let waiter = scope.spawn(move || {
                let is_ready = || {
                    let ready = pool.awaits().is_none();
                    looked.send(()).unwrap();
                    ready
                };
                changes.wait_until(is_ready, PATIENCE);
            });
            has_looked.recv().unwrap();
            make_ready(pool);
            waiter.join().unwrap();
        });
        assert!(is_ready() && begun.elapsed() < PATIENCE);
    }
}
