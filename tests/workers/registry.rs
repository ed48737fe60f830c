//! ZooKeeper, killed while workers come and go.

use std::collections::BTreeSet;
use std::time::Duration;

use sandarac_test_support::registry::{Registrar, ZooKeeper};
use sandarac_test_support::{Address, Sandarac, within};

use crate::balancer;
use crate::fleet::Plan;
use crate::load::Load;

/// Longer than the test.
const LONG: Duration = Duration::from_secs(60);

fn node(worker: &Address) -> String {
    format!("/shop/providers/{worker}")
}

fn register(session: &mut Registrar, workers: &[Address]) {
    workers.iter().for_each(|worker| session.register(&node(worker), ""));
}

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
    let fleet = Plan::new(4).over_tcp().start();
    let first = fleet.addresses();
    let mut session = zookeeper.session(LONG);
    session.create("/shop", "");
    session.create("/shop/providers", "");
    register(&mut session, &first);
    let proxy = balancer(&format!(
        "discover = {{ zookeeper = {{ servers = [\"{}\"], path = \"/shop\", session_timeout = \"2s\" }} }}",
        zookeeper.address()
    ));
    let load = Load::on(&[proxy.address()]);
    load.reaches(200);

    zookeeper.kill();
    proxy.says("ZooKeeper /shop: lost: ");
    load.reaches(100);
    let before = fleet.processes();
    let mut dead = Vec::new();
    for page in &before[..2] {
        fleet.kill(page.process);
        dead.push(page.process);
        load.reaches(100);
    }
    load.reaches(200);
    // Others have taken the places of the dead by then, or are about to.
    let now = within("four addresses, two of them new", || {
        let now = fleet.addresses();
        let new = now.iter().filter(|address| !first.contains(address)).count();
        (now.len() == 4 && new == 2).then_some(now)
    });
    load.reaches(100);
    assert_eq!(backends(&proxy), urls(&first), "the list of a source that is away stays as it was");
    let newcomers: Vec<u32> = fleet
        .processes()
        .iter()
        .map(|page| page.process)
        .filter(|process| before.iter().all(|page| page.process != *process))
        .collect();
    assert_eq!(newcomers.len(), 2);
    assert!(!newcomers.iter().any(|&process| load.has_seen(process)), "nobody has told of them");

    zookeeper.restart();
    proxy.says("ZooKeeper /shop: found again");
    session.reconnect();
    first.iter().filter(|worker| !now.contains(worker)).for_each(|worker| session.delete(&node(worker)));
    let new: Vec<Address> = now.iter().filter(|worker| !first.contains(worker)).cloned().collect();
    register(&mut session, &new);
    within("the pool to be those that serve", || (backends(&proxy) == urls(&now)).then_some(()));
    newcomers.iter().for_each(|&process| load.sees(process));
    load.ends_well();
}
