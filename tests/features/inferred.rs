//! `skills = "inferred"`: the balancer infers skills from response times, for workers that know nothing of résumés.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use sandarac_test_support::{Origin, Sandarac, Signal, TempDir, reply, within};
use serde_json::{Value, json};

use crate::{pool, sandarac};

const KEYS: &str = "balance = \"resume\"\nclass = \"path_segment(1)\"\nresume = { skills = \"inferred\", exploration = 0.0 }";

/// How long a slow backend takes, on purpose: longer than anything else in these tests, even on a busy machine. A test asks
/// such a backend only once or twice.
const SLOW: Duration = Duration::from_secs(1);

/// A backend that is slow on purpose for every class but `home`, as if it had to load what it needs.
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
        // Slow on purpose: much slower than a failure.
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
        // Slow on purpose where it claims to be best.
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
    // A thread reads the file, and the start does not wait for it.
    within("the saved skills to be read", || {
        after.admin_json(&["pools", "--json"]).to_string().contains("\"a\"").then_some(())
    });
    for class in ["/a", "/b", "/b", "/a"] {
        assert_eq!(after.get(class).expect(200).text(), class);
    }
}

/// A file of skills in which `backend` is good at class `a`, by the classifier of this fingerprint.
fn skills_of(backend: &str, by: &str) -> String {
    json!({"by": by, "workers": {backend: {"a": [9.0, 40.0]}}}).to_string()
}

/// The classifier's fingerprint, and the list of classes as JSON.
fn classes(proxy: &Sandarac) -> (String, String) {
    let pools = proxy.admin_json(&["pools", "--json"]);
    let fingerprint = pools["pools"][0]["classifier"]["fingerprint"].as_str().expect("a fingerprint");
    (fingerprint.to_owned(), pools["pools"][0]["classes"].to_string())
}

#[test]
fn skills_of_another_classifier_are_told_of() {
    let origin = at_home_in("/a");
    let dir = TempDir::new();
    let path = dir.join("skills.json");
    fs::write(&path, skills_of(&origin.url(), "00000000000000ff")).unwrap();
    let proxy = sandarac().config(pool(&[origin.url()], &kept_in(&path))).start();
    proxy.says("are not used: they are of another classifier (fingerprint 00000000000000ff");
    assert_eq!(classes(&proxy).1, "[]");
}

#[test]
fn skills_are_kept_until_the_table_of_their_classes_is_there() {
    let origin = at_home_in("/a");
    let dir = TempDir::new();
    let (path, table) = (dir.join("skills.json"), dir.join("classes"));
    let keys = kept_in(&path).replace("\"path_segment(1)\"", &format!("{{ file = {table:?} }}"));
    fs::write(&table, "/a a\n").unwrap();
    let by = classes(&sandarac().config(pool(&[origin.url()], &keys)).start()).0;
    fs::write(&path, skills_of(&origin.url(), &by)).unwrap();
    fs::remove_file(&table).unwrap();
    let proxy = sandarac().config(pool(&[origin.url()], &keys)).start();
    proxy.says("its table of classes is lost");
    fs::write(dir.join("new"), "/a a\n").unwrap();
    fs::rename(dir.join("new"), &table).unwrap();
    within("the saved skills to be in force", || classes(&proxy).1.contains(&origin.url()).then_some(()));
    assert!(!proxy.stderr().contains("another classifier"), "{}", proxy.stderr());
}

/// Sandarac that has learnt a class, with a pipe in place of its skills file: a reader waits until a writer has opened and
/// closed it.
fn learning_with_a_pipe(origin: &Origin, path: &Path) -> Sandarac {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo is there").success());
    let proxy = sandarac().config(pool(&[origin.url()], &kept_in(path))).start();
    proxy.get("/a").expect(200);
    within("the class to be learnt", || classes(&proxy).1.contains(&origin.url()).then_some(()));
    proxy
}

#[test]
fn a_file_of_skills_that_is_still_read_at_the_end_is_left_as_it_is() {
    let origin = at_home_in("/a");
    let dir = TempDir::new();
    let path = dir.join("skills.json");
    let mut proxy = learning_with_a_pipe(&origin, &path);
    proxy.signal(Signal::Terminate);
    assert!(proxy.wait().success());
    assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
}

#[test]
fn what_is_learnt_meanwhile_is_not_written_over_a_file_that_nobody_can_read() {
    let origin = at_home_in("/a");
    let dir = TempDir::new();
    let path = dir.join("skills.json");
    let mut proxy = learning_with_a_pipe(&origin, &path);
    fs::write(&path, "not skills").unwrap();
    proxy.says("skills are not kept in");
    proxy.signal(Signal::Terminate);
    assert!(proxy.wait().success());
    assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
}

#[test]
fn a_reload_keeps_the_saved_skills_of_backends_that_are_not_there() {
    let origin = at_home_in("/a");
    let dir = TempDir::new();
    let path = dir.join("skills.json");
    let site = pool(&[origin.url()], &kept_in(&path));
    let by = classes(&sandarac().config(site.clone()).start()).0;
    fs::write(&path, skills_of("http://192.0.2.1:80", &by)).unwrap();
    let mut proxy = sandarac().config(site.clone()).start();
    proxy.get("/a").expect(200);
    within("the class to be learnt", || classes(&proxy).1.contains(&origin.url()).then_some(()));
    proxy.reload(&site).success();
    // Classes learnt after the reload are saved at the end.
    proxy.get("/b").expect(200);
    within("the class to be learnt", || classes(&proxy).1.contains("\"b\"").then_some(()));
    proxy.signal(Signal::Terminate);
    assert!(proxy.wait().success());
    let saved: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert!(saved["workers"]["http://192.0.2.1:80"]["a"].is_array(), "{saved}");
    assert!(saved["workers"][origin.url()]["b"].is_array(), "{saved}");
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

/// Regression: the inferred skills of a backend were forgotten when its source lost it for a second.
#[test]
fn a_backend_that_comes_back_has_the_skills_it_had() {
    let [a, b] = [at_home_in("/a"), at_home_in("/b")];
    let dir = TempDir::new();
    let (path, list) = (dir.join("skills.json"), dir.join("backends"));
    let both = format!("{}\n{}\n", a.url(), b.url());
    fs::write(&list, &both).unwrap();
    let keys = format!("{}\ndiscover = {{ file = {list:?} }}", kept_in(&path));
    let mut proxy = sandarac().config(pool(&[], &keys)).start();
    let mut client = proxy.connect();
    for class in ["/a", "/b"].repeat(30) {
        client.get(class).expect(200);
    }
    drop(client);
    let knows = |origin: &Origin| classes(&proxy).1.contains(&origin.url());
    assert!(knows(&a) && knows(&b), "{}", classes(&proxy).1);
    fs::write(&list, format!("{}\n", a.url())).unwrap();
    within("the one to be gone", || (!knows(&b)).then_some(()));
    fs::write(&list, &both).unwrap();
    within("the other to be known again", || knows(&b).then_some(()));
    fs::write(&list, format!("{}\n", a.url())).unwrap();
    within("the one to be gone", || (!knows(&b)).then_some(()));
    proxy.signal(Signal::Terminate);
    assert!(proxy.wait().success());
    let saved: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert!(saved["workers"][b.url()]["b"].is_array(), "{saved}");
    assert!(saved["away_since"][b.url()].is_u64() && saved["away_since"][a.url()].is_null(), "{saved}");
}

#[test]
fn a_worker_that_was_away_for_a_day_is_left_out_of_the_file() {
    let origin = at_home_in("/a");
    let dir = TempDir::new();
    let path = dir.join("skills.json");
    let site = pool(&[origin.url()], &kept_in(&path));
    let by = classes(&sandarac().config(site.clone()).start()).0;
    let skills = json!({"a": [9.0, 40.0]});
    let workers = json!({"http://192.0.2.1:80": skills, "http://192.0.2.2:80": skills});
    let long_ago = json!({"http://192.0.2.1:80": 1_000_000_000});
    fs::write(&path, json!({"by": by, "workers": workers, "away_since": long_ago}).to_string()).unwrap();
    let mut proxy = sandarac().config(site).start();
    proxy.get("/a").expect(200);
    within("the class to be learnt", || classes(&proxy).1.contains(&origin.url()).then_some(()));
    proxy.signal(Signal::Terminate);
    assert!(proxy.wait().success());
    let saved: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert!(saved["workers"]["http://192.0.2.1:80"].is_null(), "{saved}");
    assert!(saved["workers"]["http://192.0.2.2:80"].is_object(), "{saved}");
}

#[test]
fn a_missing_directory_for_the_file_of_skills_is_told_of_at_the_start() {
    let origin = at_home_in("/a");
    let dir = TempDir::new();
    let path = dir.join("missing/skills.json");
    let proxy = sandarac().config(pool(&[origin.url()], &kept_in(&path))).start();
    proxy.says("its skills cannot be saved to");
}
