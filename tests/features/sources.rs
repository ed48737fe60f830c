//! What is told of sources of backends: in the log, and by `sandarac pools`.

use std::net::Ipv4Addr;

use sandarac_test_support::{NameServer, Sandarac, within};
use serde_json::Value;

use crate::{pool, sandarac};

fn the_pool(proxy: &Sandarac) -> Value {
    proxy.admin_json(&["pools", "--json"])["pools"][0].clone()
}

#[test]
fn a_name_server_that_answers_nonsense_again_and_again_is_told_of_once() {
    let server = NameServer::new(&[Ipv4Addr::LOCALHOST], 1);
    let keys = format!(
        "discover = {{ dns = \"http://app.internal:9\" }}\n[dns]\nservers = [\"{}\"]",
        server.address()
    );
    let proxy = sandarac().config(pool(&[], &keys)).start();
    server.garble(true);
    proxy.says("lost: malformed: ");
    // Two questions to an attempt.
    let asked = server.questions();
    within("more attempts", || (server.questions() >= asked + 8).then_some(()));
    // Another reason is news, and the first is none when it comes back.
    server.garble(false);
    server.answer_with(2);
    proxy.says("lost: failed: ");
    server.answer_with(0);
    server.garble(true);
    let asked = server.questions();
    within("more attempts", || (server.questions() >= asked + 8).then_some(()));
    let said = proxy.stderr();
    assert_eq!(said.matches("lost: malformed: ").count(), 1, "{said}");
    assert_eq!(the_pool(&proxy)["backends"][0]["address"], "http://127.0.0.1:9");
    server.garble(false);
    proxy.says("found again");
}
