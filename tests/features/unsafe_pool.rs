//! `unsafe_pool`: reading methods go to the primary and the replicas, writing methods to the primary.

use sandarac_test_support::{Origin, Reply, Request, Sandarac, reply, request};

use crate::sandarac;

/// Sandarac before a primary and a replica, as in a CouchDB installation.
fn start(
    cache: &str,
    rule: impl Fn(&Request) -> Reply + Copy + Send + Sync + 'static,
) -> (Sandarac, [Origin; 2]) {
    let origins = [Origin::new(rule), Origin::new(rule)];
    let [primary, replica] = origins.each_ref().map(Origin::url);
    let text = format!(
        "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n\n[pool.read]\nbackends = [\"{primary}\", \"{replica}\"]\n\
         balance = \"round_robin\"\n\n[pool.write]\nbackends = \"{primary}\"\n\n\
         [[route]]\npool = \"read\"\nunsafe_pool = \"write\"\ncache = \"{cache}\"\n"
    );
    (sandarac().config(text).start(), origins)
}

#[test]
fn reading_goes_over_both_and_writing_to_the_primary() {
    let (proxy, [primary, replica]) = start("pass", |_| reply(200).cache("no-store"));
    let mut client = proxy.connect();
    for method in ["GET", "HEAD", "OPTIONS"] {
        let before = [primary.count(), replica.count()];
        (0..4).for_each(|_| drop(client.exchange(&request(method, "/db/1")).expect(200)));
        assert_eq!([primary.count(), replica.count()], before.map(|count| count + 2), "{method}");
    }
    let before = [primary.count(), replica.count()];
    for method in ["POST", "PUT", "DELETE", "PATCH", "COPY", "PROPFIND"] {
        client.exchange(&request(method, "/db/1").body("{}")).expect(200);
        assert_eq!(primary.last().method, method);
    }
    assert_eq!([primary.count(), replica.count()], [before[0] + 6, before[1]]);
}

#[test]
fn what_is_written_is_forgotten_by_the_cache() {
    let (proxy, [primary, replica]) = start("lookup", |_| reply(200).cache("max-age=60"));
    proxy.get("/db/1").expect(200);
    assert!(proxy.get("/db/1").expect(200).is_hit());
    proxy.exchange(&request("PUT", "/db/1").body("{}")).expect(200);
    assert!(!proxy.get("/db/1").expect(200).is_hit());
    assert_eq!(primary.count() + replica.count(), 3);
}

#[test]
fn writing_does_not_go_to_the_replica_when_the_primary_is_gone() {
    let (proxy, [primary, replica]) = start("pass", |_| Reply::none());
    proxy.exchange(&request("PUT", "/db/1").body("{}")).expect(502);
    proxy.exchange(&request("DELETE", "/db/1")).expect(502);
    assert!(primary.count() >= 2);
    assert_eq!(replica.count(), 0);
}

#[test]
fn a_pool_that_is_not_there_is_an_error() {
    let text = "[[listen]]\naddress = \":0\"\n[pool.read]\nbackends = \"http://127.0.0.1:1\"\n\
                [[route]]\npool = \"read\"\nunsafe_pool = \"wirte\"\n";
    let output = sandarac().config(text).arg("check").run().failure();
    assert!(output.stderr.contains("wirte"), "{output:?}");
}
