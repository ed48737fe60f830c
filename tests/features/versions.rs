//! `single_version`: of backends that announce a version, only the largest group of one version serves.

use std::collections::BTreeSet;

use sandarac_test_support::{Sandarac, Worker, within};

use crate::resumes::{KEYS, by_anyone, settle};
use crate::{pool, sandarac};

/// Workers that run these versions.
fn workers(versions: &[&str]) -> Vec<Worker> {
    let begun = versions.iter().enumerate().map(|(at, version)| {
        let worker = Worker::new(&format!("w{at}"), &[]);
        worker.runs(version);
        worker
    });
    begun.collect()
}

fn start(workers: &[Worker], keys: &str) -> Sandarac {
    let urls: Vec<String> = workers.iter().map(Worker::url).collect();
    sandarac().config(pool(&urls, &format!("{KEYS}\n{keys}"))).start()
}

/// Who answers many requests of classes that nobody knows.
fn serving(proxy: &Sandarac) -> BTreeSet<String> {
    (0..24).map(|_| by_anyone(proxy)).collect()
}

/// Waits until all of `names` serve and nobody else, and sees that it stays so. One that comes back is given more than the others
/// until it has as many classes as they.
#[track_caller]
fn serve(proxy: &Sandarac, names: &[&str]) {
    let names: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut seen = BTreeSet::new();
    within(&format!("{names:?} to serve"), || {
        let serving = serving(proxy);
        if serving.is_subset(&names) {
            seen.extend(serving);
        } else {
            seen.clear();
        }
        (seen == names).then_some(())
    });
    assert!(serving(proxy).is_subset(&names));
}

#[test]
fn the_largest_group_of_one_version_serves() {
    let workers = workers(&["2", "1", "2", "3"]);
    let proxy = start(&workers, "single_version = true");
    serve(&proxy, &["w0", "w2"]);
}

#[test]
fn without_single_version_all_serve() {
    let workers = workers(&["2", "1", "2", "3"]);
    let proxy = start(&workers, "");
    settle(&proxy, &workers.iter().collect::<Vec<_>>());
    serve(&proxy, &["w0", "w1", "w2", "w3"]);
}

#[test]
fn a_deploy_changes_over_when_the_new_version_is_the_larger() {
    let workers = workers(&["1", "1", "1"]);
    let proxy = start(&workers, "single_version = true");
    settle(&proxy, &workers.iter().collect::<Vec<_>>());
    proxy.says("pool app: version \"1\" serves: ");
    workers[0].restarts("w0-2", &[]).runs("2");
    serve(&proxy, &["w1", "w2"]);
    workers[1].restarts("w1-2", &[]).runs("2");
    serve(&proxy, &["w0", "w1"]);
    workers[2].restarts("w2-2", &[]).runs("2");
    // It gets no requests that it could tell it by.
    serve(&proxy, &["w0", "w1", "w2"]);
    proxy.says("pool app: version \"2\" serves now instead of \"1\": ");
}

#[test]
fn a_tie_keeps_the_version_in_service() {
    let workers = workers(&["1", "1"]);
    let proxy = start(&workers, "single_version = true");
    settle(&proxy, &workers.iter().collect::<Vec<_>>());
    workers[0].restarts("w0-2", &[]).runs("2");
    serve(&proxy, &["w1"]);
    workers[1].restarts("w1-2", &[]).runs("2");
    serve(&proxy, &["w0", "w1"]);
}
