//! More connections than descriptors.

use sandarac_test_support::{Conn, Origin, get, reply, within};

use crate::sandarac;

#[test]
fn running_out_of_descriptors_is_survived() {
    let origin = Origin::new(|_| reply(200).cache("max-age=60").body("page"));
    let mut proxy = sandarac().before(&origin).descriptors(80).start();
    let mut first = proxy.connect();
    first.get("/page").expect(200);
    let resting = proxy.open_descriptors();
    let mut clients: Vec<Conn> = (0..200).map(|_| proxy.connect()).collect();
    let mut served = 0;
    for client in &mut clients {
        let _ = client.try_send(get("/page").to_bytes());
    }
    for client in &mut clients {
        match client.response().status {
            200 => served += 1,
            status => assert_eq!(status, 503),
        }
    }
    let patience = std::time::Duration::from_millis(500);
    assert!(served > 0, "nobody was served");
    assert!(proxy.is_running());
    assert_eq!(first.get("/page").expect(200).text(), "page", "an established connection is not disturbed");
    drop(clients);
    within("new connections to be served", || {
        let mut client = proxy.connect().patient_for(patience);
        let _ = client.try_send(get("/page").to_bytes());
        client.try_response("GET").is_ok_and(|response| response.status == 200).then_some(())
    });
    within("the descriptors to be given back", || (proxy.open_descriptors() <= resting + 2).then_some(()));
}

#[test]
fn an_origin_that_cannot_be_reached_for_want_of_descriptors_is_an_error_and_no_crash() {
    let origin = Origin::new(|_| reply(200).cache("no-store").body("page"));
    let mut proxy = sandarac().before(&origin).descriptors(64).start();
    let patience = std::time::Duration::from_millis(500);
    for round in 0..3 {
        let mut clients: Vec<Conn> = (0..100).map(|_| proxy.connect().patient_for(patience)).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            let _ = client.try_send(get(&format!("/{round}/{number}")).to_bytes());
        }
        for client in &mut clients {
            if let Ok(response) = client.try_response("GET") {
                assert!(matches!(response.status, 200 | 502 | 503), "{response:?}");
            }
        }
        assert!(proxy.is_running());
    }
    within("requests to be served", || {
        let mut client = proxy.connect().patient_for(patience);
        let _ = client.try_send(get("/after").to_bytes());
        client.try_response("GET").is_ok_and(|response| response.status == 200).then_some(())
    });
}
