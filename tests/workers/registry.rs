//! ZooKeeper, killed while workers come and go.

use std::collections::BTreeSet;

use sandarac_test_support::registry::ZooKeeper;
use sandarac_test_support::{Address, Sandarac, within};

use crate::balancer;
use crate::fleet::Plan;
use crate::load::Load;

/// The addresses of the pool's backends.
fn backends(proxy: &Sandarac) -> BTreeSet<String> {
    let status = proxy.admin_json(&["status", "--json"]);
    let backends = status["pools"][0]["backends"].as_array().expect("a pool has backends");
    backends.iter().filter_map(|backend| backend["address"].as_str().map(str::to_owned)).collect()
}

fn urls(workers: &[Address]) -> BTreeSet<String> {
    workers.iter().map(Address::url).collect()
}

#[test]
fn nothing_is_lost_while_zookeeper_is_away_and_workers_die_and_come() {
    let mut zookeeper = ZooKeeper::start();
    // Each process has a port of its own, so that one that takes the place of another is known only to whom it is told.
    let fleet =
        Plan::new(4).over_tcp().option("--zookeeper", format!("{}/shop", zookeeper.address())).start();
    let first = fleet.addresses();
    let proxy = balancer(&format!(
        "discover = {{ zookeeper = {{ servers = [\"{}\"], path = \"/shop\", session_timeout = \"2s\" }} }}",
        zookeeper.address()
    ));
    within("the workers to be registered", || (backends(&proxy) == urls(&first)).then_some(()));
    let load = Load::on(&[proxy.address()]);
    load.reaches(200);

    zookeeper.kill();
    proxy.says("ZooKeeper /shop: lost: ");
    load.reaches(100);
    let before = fleet.processes();
    for page in &before[..2] {
        fleet.kill(page.process);
        load.reaches(100);
    }
    // Others take their places, at other addresses, and nobody tells of them.
    let now = (1..=2).map(|count| {
        within(&format!("{count} of the dead to be replaced"), || {
            let now = fleet.addresses();
            let new = now.iter().filter(|address| !first.contains(address)).count();
            (now.len() >= 2 + count && new >= count).then_some(now)
        })
    });
    let now = now.last().expect("two died");
    let newcomers = fleet.processes().into_iter().map(|page| page.process);
    let newcomers: Vec<u32> =
        newcomers.filter(|new| before.iter().all(|page| page.process != *new)).collect();
    assert_eq!(newcomers.len(), 2);
    load.reaches(200);
    assert_eq!(backends(&proxy), urls(&first), "the list of a source that is away stays as it was");
    assert!(!newcomers.iter().any(|&process| load.has_seen(process)));

    zookeeper.restart();
    proxy.says("ZooKeeper /shop: found again");
    within("the pool to be those that serve", || (backends(&proxy) == urls(&now)).then_some(()));
    newcomers.iter().for_each(|&process| load.sees(process));
    load.ends_well();
}
