//! More connections than descriptors.

use std::time::{Duration, Instant};

use sandarac_test_support::{Conn, Origin, Sandarac, get, reply, within};

use crate::sandarac;

/// How long connections that were asked on together have for their answers. Some get none: they wait to be accepted.
const TOGETHER: Duration = Duration::from_secs(2);

/// Asks on each of `clients`, and gives the statuses of the answers that come.
fn ask_all(clients: Vec<Conn>, target: impl Fn(usize) -> String) -> (Vec<Conn>, Vec<u16>) {
    let mut clients = clients;
    for (number, client) in clients.iter_mut().enumerate() {
        let _ = client.try_send(get(&target(number)).to_bytes());
    }
    let until = Instant::now() + TOGETHER;
    let mut statuses = Vec::new();
    let asked = clients.into_iter().map(|client| {
        let mut client = client.patient_for(until.saturating_duration_since(Instant::now()));
        statuses.extend(client.try_response("GET").map(|response| response.status));
        client
    });
    (asked.collect(), statuses)
}

#[track_caller]
fn serves_again(proxy: &Sandarac) {
    within("new connections to be served", || {
        let mut client = proxy.connect().patient_for(TOGETHER);
        let _ = client.try_send(get("/page").to_bytes());
        client.try_response("GET").is_ok_and(|response| response.status == 200).then_some(())
    });
}

#[test]
fn running_out_of_descriptors_is_survived() {
    let origin = Origin::new(|_| reply(200).cache("max-age=60").body("page"));
    let mut proxy = sandarac().before(&origin).option("--threads", "2").descriptors(80).start();
    let mut first = proxy.connect();
    first.get("/page").expect(200);
    let resting = proxy.open_descriptors();
    let clients = (0..200).map(|_| proxy.connect()).collect();
    let (clients, statuses) = ask_all(clients, |_| "/page".to_owned());
    assert!(statuses.contains(&200), "nobody was served");
    assert!(statuses.iter().all(|status| matches!(status, 200 | 503)), "{statuses:?}");
    assert!(proxy.is_running());
    assert_eq!(first.get("/page").expect(200).text(), "page", "an established connection is not disturbed");
    drop(clients);
    serves_again(&proxy);
    within("the descriptors to be given back", || (proxy.open_descriptors() <= resting + 2).then_some(()));
}

#[test]
fn an_origin_that_cannot_be_reached_for_want_of_descriptors_is_an_error_and_no_crash() {
    let origin = Origin::new(|_| reply(200).cache("no-store").body("page"));
    let mut proxy = sandarac().before(&origin).option("--threads", "2").descriptors(64).start();
    for round in 0..3 {
        let clients = (0..100).map(|_| proxy.connect()).collect();
        let (_clients, statuses) = ask_all(clients, |number| format!("/{round}/{number}"));
        assert!(statuses.iter().all(|status| matches!(status, 200 | 502 | 503)), "{statuses:?}");
        assert!(proxy.is_running());
    }
    serves_again(&proxy);
}
