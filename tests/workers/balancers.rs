//! Two balancers before the same workers, one of which is killed.

use sandarac_test_support::{Conn, Sandarac, get};

use crate::balancer_at;
use crate::fleet::Plan;
use crate::load::{Load, Page, SITES};

/// Which process the balancer sends a request of each site to.
fn choices(proxy: &Sandarac, path: &str) -> Vec<u32> {
    let mut conn = Conn::to(proxy.address());
    let mut ask = |site: usize| {
        let host = format!("site-{site}.example");
        let response = conn.exchange(&get(path).host(&host));
        Page::read(&host, path, &response).expect("a whole page").process
    };
    (0..SITES).map(&mut ask).collect()
}

#[test]
fn clients_of_a_killed_balancer_use_the_other_and_it_knows_all_skills_when_it_is_back() {
    let fleet = Plan::new(4).start();
    // Nobody is tried for the sake of trying, so that choices can be compared.
    let pool = format!(
        "discover = {{ directory = \"{}\" }}\nresume = {{ exploration = 0 }}",
        fleet.sockets().display()
    );
    // At an address of its own it finds its port free again: connections of others do not take ports there.
    let killed = balancer_at("127.0.0.2:0", &pool);
    let other = balancer_at("127.0.0.1:0", &pool);
    let address = killed.address().clone();
    let load = Load::on(&[&address, other.address()]);
    load.reaches(1000);
    assert_eq!(load.moved(), 0);
    // It is killed when dropped.
    drop(killed);
    load.reaches(500);
    assert!(load.moved() >= 4, "a half of eight clients was its: {}", load.moved());

    let back = balancer_at(&address.to_string(), &pool);
    load.reaches(200);
    load.ends_well();
    drop(back);

    // With nothing in flight, skills alone decide. Between the two questions to the other it may have heard news.
    let before = choices(&other, "/before");
    let back = balancer_at(&address.to_string(), &pool);
    assert_eq!(back.metric("resumes_fetched"), 4, "a round trip to each worker");
    let chosen = choices(&back, "/first");
    let after = choices(&other, "/after");
    let differ: Vec<usize> =
        (0..SITES).filter(|&site| ![before[site], after[site]].contains(&chosen[site])).collect();
    // Of workers that are about as good, what a balancer has seen itself decides too: how scarce their memory is, how long they
    // take. Without skills, three of four would be elsewhere.
    assert!(differ.len() <= SITES / 6, "{differ:?} of {before:?}, {chosen:?}, {after:?}");
    // And that is no coincidence: the sites are spread over the workers.
    let mut workers = chosen.clone();
    workers.sort_unstable();
    workers.dedup();
    assert_eq!(workers.len(), 4, "{chosen:?}");
}
