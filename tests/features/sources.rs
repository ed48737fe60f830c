//! Sources of backends: their log lines, and their entries in `sandarac pools`.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use sandarac_test_support::registry::base64;
use sandarac_test_support::{
    Gate, HungFileSystem, NameServer, Origin, Sandarac, Signal, TempDir, reply, within,
};
use serde_json::{Value, json};

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
    // Each attempt asks two questions.
    let asked = server.questions();
    within("more attempts", || (server.questions() >= asked + 8).then_some(()));
    // A new reason is logged; the first reason is not logged again when it comes back.
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

/// A server that speaks etcd's protocol: its pool has one worker, and settings that the test changes.
struct Registry {
    origin: Origin,
    settings: Arc<Mutex<Option<&'static str>>>,
    /// When open, the server reports a change.
    change: Gate,
    /// When open, the server answers with the current keys.
    answer: Gate,
}

impl Registry {
    fn new() -> Registry {
        let registry = Registry::of("127.0.0.1:9");
        registry.answer.open();
        registry
    }

    /// A registry with this worker and closed gates.
    fn of(worker: &str) -> Registry {
        let worker = format!("/app/providers/{worker}");
        let settings = Arc::new(Mutex::new(None));
        let (told, change) = (settings.clone(), Gate::new());
        let gate = change.clone();
        let answer = Gate::new();
        let answers = answer.clone();
        let origin = Origin::new(move |request| {
            if request.target.ends_with("/watch") {
                let event = json!({"result": {"events": [{}]}});
                return reply(200).chunked().pause(&gate).body(format!("{event}\n")).hang();
            }
            let pair = |key: &str, value: &str| json!({"key": base64(key), "value": base64(value)});
            let range = |pairs: Vec<Value>| json!({"response_range": {"kvs": pairs}});
            let settings = told.lock().unwrap().map(|settings| pair("/app/settings", settings));
            let ranges = [range(vec![pair(&worker, "")]), range(settings.into_iter().collect())];
            let text = json!({"header": {"revision": "7"}, "succeeded": true, "responses": ranges});
            reply(200).pause(&answers).body(text.to_string())
        });
        Registry { origin, settings, change, answer }
    }

    fn says(&self, settings: Option<&'static str>) {
        *self.settings.lock().unwrap() = settings;
        self.change.open();
    }
}

#[test]
fn settings_of_a_source_are_told_of_and_shown() {
    let registry = Registry::new();
    let dir = TempDir::new();
    let keys = format!(
        "balance = \"resume\"\nresume = {{ variance = 6.0 }}\ndiscover = [{{ file = {:?} }}, {{ etcd = {{ endpoints = [{:?}], \
         prefix = \"/app/\" }} }}]",
        dir.join("backends"),
        registry.origin.url()
    );
    let proxy = sandarac().config(pool(&[], &keys)).start();
    assert_eq!(the_pool(&proxy)["settings"]["variance"], 6.0);
    assert_eq!(the_pool(&proxy)["sources"][1]["settings"], json!({}));

    registry.says(Some("{\"variance\": 3.5, \"history\": 999}"));
    proxy.says("etcd /app/: it gives settings: variance 3.5, history 999");
    within("the settings to be in force", || (the_pool(&proxy)["settings"]["variance"] == 3.5).then_some(()));
    assert_eq!(the_pool(&proxy)["sources"][1]["settings"], json!({"variance": 3.5, "history": 999.0}));
    assert_eq!(the_pool(&proxy)["settings"]["backlog_history"], 9.0);

    // A source without settings does not remove those of another source.
    std::fs::write(dir.join("backends"), "http://127.0.0.1:8\n").expect("written");
    within("both backends", || (the_pool(&proxy)["backends"].as_array()?.len() == 2).then_some(()));
    assert_eq!(the_pool(&proxy)["settings"]["variance"], 3.5);

    registry.says(None);
    proxy.says("etcd /app/: it gives no settings any more");
    within("those configured to be back", || (the_pool(&proxy)["settings"]["variance"] == 6.0).then_some(()));
}

/// Regression: an error message from the registry could forge log lines, in colour.
#[test]
fn what_a_registry_says_writes_no_line_of_its_own() {
    let error = json!({"error": "boom\nsandarac: forged \u{1b}[31mred"}).to_string();
    let registry = Origin::new(move |_| reply(500).body(&error));
    let etcd = format!("discover = {{ etcd = {{ endpoints = [{:?}], prefix = \"/app\" }} }}", registry.url());
    let proxy = sandarac().config(pool(&[], &etcd)).start();
    proxy.says("boom\\nsandarac: forged \\u{1b}[31mred; it is waited for");
    let shown = proxy.admin(&["pools", "app"]).success().stdout;
    assert!(shown.contains("; LOST: failed") && !shown.contains("last list stays"), "{shown}");
}

#[test]
fn what_makes_no_sense_in_a_list_is_said_when_it_changes() {
    let dir = TempDir::new();
    let backends = dir.join("backends");
    let list = |text: &str| {
        std::fs::write(dir.join("new"), text).expect("written");
        std::fs::rename(dir.join("new"), &backends).expect("renamed");
    };
    list("nonsense\nhttp://127.0.0.1:8\n");
    let proxy = sandarac().config(pool(&[], &format!("discover = {{ file = {backends:?} }}"))).start();
    proxy.says(": 1 backend");
    list("nonsense\nhttp://127.0.0.1:8\nhttp://127.0.0.1:9\n");
    proxy.says(": 2 backends");
    list("rubbish\nhttp://127.0.0.1:8\n");
    proxy.says("\"rubbish\"");
    let said = proxy.stderr();
    assert_eq!(said.matches("\"nonsense\"").count(), 1, "{said}");
}

/// Regression: the pool had no backend until the source answered, or ever if it did not answer.
#[test]
fn a_reload_to_a_source_keeps_the_backends_until_it_names_others() {
    let [old, new] = ["old", "new"].map(|name| Origin::new(move |_| reply(200).body(name)));
    let proxy = sandarac().config(pool(&[old.url()], "")).start();
    let backends = proxy.dir().join("backends");
    let found = format!("discover = {{ file = {backends:?} }}");
    proxy.reload(&pool(&[], &found)).success();
    assert_eq!(proxy.get("/").expect(200).body, b"old");
    std::fs::write(&backends, format!("{}\n", new.url())).expect("written");
    within("the new one to answer", || (proxy.get("/").expect(200).body == b"new").then_some(()));
}

/// Regression: requests to a new pool got 503 until its source answered.
#[test]
fn a_reload_waits_for_the_backends_of_a_new_pool() {
    let [old, new] = ["old", "new"].map(|name| Origin::new(move |_| reply(200).body(name)));
    let registry = Registry::of(&new.address().to_string());
    let proxy = sandarac().config(pool(&[old.url()], "")).start();
    let etcd =
        format!("discover = {{ etcd = {{ endpoints = [{:?}], prefix = \"/app\" }} }}", registry.origin.url());
    let text = pool(&[], &etcd).replace("pool.app", "pool.other").replace("\"app\"", "\"other\"");
    std::thread::scope(|scope| {
        let reload = scope.spawn(|| proxy.reload(&text));
        registry.answer.reached(1);
        assert_eq!(proxy.get("/").expect(200).body, b"old");
        registry.answer.open();
        reload.join().expect("it ends").success();
    });
    assert_eq!(proxy.get("/").expect(200).body, b"new");
}

/// Regression: one thread read the files of all pools, and the process did not end before that thread had finished.
#[test]
fn a_file_system_that_hangs_holds_up_neither_other_pools_nor_the_end() {
    let [one, two] = ["one", "two"].map(|name| Origin::new(move |_| reply(200).body(name)));
    let dir = TempDir::new();
    let Some(_hung) = HungFileSystem::on(&dir.join("away")) else {
        return;
    };
    let backends = dir.join("backends");
    std::fs::write(&backends, format!("{}\n", one.url())).expect("written");
    let other = format!(
        "discover = {{ file = {backends:?} }}\n[pool.files]\ndiscover = {{ file = {:?} }}\n[pool.sockets]\n\
         discover = {{ directory = {:?} }}\n[pool.skills]\nbackends = [{:?}]\nbalance = \"resume\"\n\
         resume = {{ skills = \"inferred\", skills_file = {:?} }}",
        dir.join("away/backends"),
        dir.join("away/workers"),
        one.url(),
        dir.join("away/skills")
    );
    let mut proxy = sandarac().config(pool(&[], &other)).start();
    assert_eq!(proxy.get("/").expect(200).body, b"one");
    std::fs::write(&backends, format!("{}\n", two.url())).expect("written");
    within("the new one to answer", || (proxy.get("/").expect(200).body == b"two").then_some(()));
    proxy.signal(Signal::Terminate);
    assert!(proxy.wait().success());
}
