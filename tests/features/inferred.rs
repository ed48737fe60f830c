//! `skills = "inferred"`: for workers that know nothing of résumés, the balancer goes by how long answers take.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use sandarac_test_support::{Origin, Sandarac, Signal, TempDir, reply, within};
use serde_json::Value;

use crate::{pool, sandarac};

const KEYS: &str = "balance = \"resume\"\nclass = \"path_segment(1)\"\nresume = { skills = \"inferred\", exploration = 0.0 }";

/// Longer than anything else in these tests takes, be the machine as busy as it may. What is done by those who are that slow is
/// done once or twice only.
const SLOW: Duration = Duration::from_secs(1);

/// A backend that has to look for what it needs for all classes but `home`.
fn at_home_in(home: &'static str) -> Origin {
    Origin::new(move |request| {
        if !request.path().starts_with(home) {
            thread::sleep(SLOW);
        }
        reply(200).cache("no-store").body(home)
    })
}

fn start(origins: &[&Origin]) -> Sandarac {
    sandarac().config(pool(&origins.iter().map(|origin| origin.url()).collect::<Vec<_>>(), KEYS)).start()
}

#[test]
fn a_class_goes_where_it_is_answered_fastest() {
    let origins = [at_home_in("/a"), at_home_in("/b")];
    let proxy = start(&origins.each_ref());
    let mut client = proxy.connect();
    let mut at_home = 0;
    for round in 0..60 {
        for class in ["/a", "/b"] {
            let answered = client.get(class).expect(200).text();
            at_home += usize::from(round >= 30 && answered == class);
        }
    }
    assert!(at_home >= 54, "{at_home} of 60 late requests were answered where their class is at home");
}

#[test]
fn a_backend_that_fails_fast_is_not_taken_for_the_best() {
    let failing = Origin::new(|_| reply(500).body("failing"));
    let slow = Origin::new(|_| {
        thread::sleep(Duration::from_millis(50));
        reply(200).cache("no-store")
    });
    let proxy = start(&[&failing, &slow]);
    let mut client = proxy.connect();
    let statuses: Vec<u16> = (0..60).map(|_| client.get("/a").status).collect();
    let good = statuses[30..].iter().filter(|&&status| status == 200).count();
    assert!(good >= 27, "{statuses:?}");
}

#[test]
fn a_backend_that_talks_of_skills_is_not_asked_nor_believed() {
    let boasting = Origin::new(|request| {
        if !request.path().starts_with("/b") {
            thread::sleep(SLOW);
        }
        let state = "id=\"x\", rev=1, inflight=0, version=\"1\"";
        reply(200).body("boasting").with("Worker-State", state).with("Worker-Skills", "\"a\";score=1000000")
    });
    let fast = at_home_in("/a");
    let proxy = start(&[&boasting, &fast]);
    let mut client = proxy.connect();
    let seen: Vec<String> = (0..40)
        .map(|_| {
            client.get("/b").expect(200);
            client.get("/a").expect(200).text()
        })
        .collect();
    let good = seen[20..].iter().filter(|name| *name == "/a").count();
    assert!(good >= 18, "{seen:?}");
    assert!(boasting.requests().iter().all(|request| !request.target.contains("worker-resume")));
}

/// Keys of a pool that keeps its skills in `path`.
fn kept_in(path: &Path) -> String {
    KEYS.replace("exploration", &format!("skills_file = \"{}\", exploration", path.display()))
}

#[test]
fn a_restarted_balancer_goes_by_the_skills_it_had_saved() {
    let origins = [at_home_in("/a"), at_home_in("/b")];
    let urls = origins.each_ref().map(Origin::url);
    let dir = TempDir::new();
    let path = dir.join("skills.json");
    let mut before = sandarac().config(pool(&urls, &kept_in(&path))).start();
    let mut client = before.connect();
    for class in ["/a", "/b"].repeat(30) {
        client.get(class).expect(200);
    }
    drop(client);
    before.signal(Signal::Terminate);
    assert!(before.wait().success());
    let saved: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    for (url, home) in urls.iter().zip(["a", "b"]) {
        assert!(saved["workers"][url][home].is_array(), "{saved}");
    }

    let after = sandarac().config(pool(&urls, &kept_in(&path))).start();
    // Read by a thread that nobody waits for at the start.
    within("the saved skills to be read", || {
        after.admin_json(&["pools", "--json"]).to_string().contains("\"a\"").then_some(())
    });
    for class in ["/a", "/b", "/b", "/a"] {
        assert_eq!(after.get(class).expect(200).text(), class);
    }
}

#[test]
fn a_file_of_skills_that_nobody_can_read_is_told_and_left_as_it_is() {
    let origin = at_home_in("/a");
    let dir = TempDir::new();
    let path = dir.join("skills.json");
    fs::write(&path, "not skills").unwrap();
    let mut proxy = sandarac().config(pool(&[origin.url()], &kept_in(&path))).start();
    proxy.says("skills are not kept in");
    proxy.get("/a").expect(200);
    proxy.signal(Signal::Terminate);
    assert!(proxy.wait().success());
    assert_eq!(fs::read_to_string(&path).unwrap(), "not skills");
}
