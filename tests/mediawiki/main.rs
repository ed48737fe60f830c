//! A real application from end to end: Debian's MediaWiki, run by php-fpm, browsed through Sandarac as `examples/mediawiki`
//! sets it up.
//!
//! It needs Debian packages, which `./check` installs; without them it fails and names them. `cargo test` of the workspace
//! leaves it out; `cargo test -p sandarac-server --test mediawiki` runs it.

mod browser;
mod site;
mod wiki;

use std::sync::Barrier;
use std::thread;

use browser::Browser;
use sandarac_test_support::{Response, within};
use site::Site;
use wiki::EDITOR;

const MAIN: &str = "/index.php/Main_Page";
/// A page that the test edits, and one that no one does.
const NEWS: &str = "/index.php/News";
const QUIET: &str = "/index.php/Quiet";
/// A special page that is never kept: it comes with `no-store` and the cookie of a session.
const LOGIN_FORM: &str = "/index.php/Special:UserLogin";

#[test]
fn a_page_is_made_once_for_all_who_are_logged_out() {
    let site = Site::start();
    let first = site.visitor().get(MAIN).expect(200);
    assert!(first.text().contains("Main Page"), "{}", first.text());
    assert_eq!(first.cache_parameter("fwd").as_deref(), Some("uri-miss"), "{first:?}");
    let second = site.visitor().get(MAIN).expect(200);
    assert_hit(&second);
    assert_eq!(second.body, first.body);
    assert_eq!(origin_fields(&second), origin_fields(&first));
    assert_eq!(site.wiki.requests(), [format!("GET {MAIN}")]);
}

#[test]
fn cookies_that_are_not_the_wikis_and_tracking_parameters_share_the_page() {
    let site = Site::start();
    let plain = site.visitor().get(MAIN).expect(200);
    for identity in ["1", "2"] {
        let tracked =
            site.visitor().with_cookie("_ga", identity).get(&format!("{MAIN}?utm_source={identity}"));
        assert_hit(&tracked);
        assert_eq!(tracked.body, plain.body);
    }
    // MediaWiki leaves the name with whoever logs out, for thirty days. It stands for no login.
    assert_hit(&site.visitor().with_cookie("wikiUserName", EDITOR).get(MAIN));
    assert_eq!(site.wiki.requests(), [format!("GET {MAIN}")]);
}

#[test]
fn styles_scripts_and_files_are_shared_by_everyone_logged_in_or_not() {
    let site = Site::start();
    let mut editor = site.visitor();
    log_in(&mut editor);
    let asked = site.wiki.requests().len();
    let startup = "/load.php?lang=en&modules=startup&only=scripts&raw=1&skin=vector";
    let first = editor.get(startup).expect(200);
    for again in [site.visitor().get(startup), editor.get(startup)] {
        assert_hit(&again);
        assert!(again.body == first.body, "{startup} differs");
    }
    assert_eq!(site.wiki.requests()[asked..].len(), 1);
    for target in ["/resources/assets/poweredby_mediawiki_88x31.png", "/skins/Vector/skin.json"] {
        let (first, second) = (editor.get(target).expect(200), site.visitor().get(target).expect(200));
        assert_eq!(second.cache_parameter("detail").as_deref(), Some("file"), "{second:?}");
        assert!(second.body == first.body, "{target} differs");
    }
    assert_eq!(site.wiki.requests()[asked..].len(), 1, "PHP was asked for a file");
}

#[test]
fn an_upload_of_20_mb_is_stored_and_served_as_a_file() {
    let site = Site::start();
    let mut editor = site.visitor();
    log_in(&mut editor);
    let token = edit_token(&mut editor);
    let content = "A line of text\n".repeat(20_000_000 / 15);
    let fields = [("action", "upload"), ("format", "json"), ("filename", "Long.txt"), ("token", &token)];
    let answer = editor.upload("/api.php", &fields, ("file", "Long.txt", &content)).expect(200);
    let answer = json(&answer);
    assert_eq!(answer["upload"]["result"], "Success", "{answer}");
    let url = answer["upload"]["imageinfo"]["url"].as_str().expect("it has a URL");
    let path = &url[url.find("/images/").expect("it is among the uploads")..];
    let asked = site.wiki.requests().len();
    let read = site.visitor().get(path).expect(200);
    assert_eq!(read.cache_parameter("detail").as_deref(), Some("file"), "{path}");
    assert!(read.text() == content, "{path} has {} bytes", read.body.len());
    assert_eq!(site.wiki.requests().len(), asked);
}

#[test]
fn the_installer_and_the_scripts_of_the_command_line_are_out_of_reach() {
    let site = Site::start();
    for target in
        ["/mw-config/index.php", "/maintenance/install.php", "/includes/WebStart.php", "/vendor/autoload.php"]
    {
        site.visitor().get(target).expect(403);
    }
    for target in ["/LocalSettings.php", "/images/x.php", "/composer.json/x.php", "/.env"] {
        let seen = site.visitor().get(target);
        assert!(!seen.text().contains("<?php") && !seen.text().contains("wgDB"), "{target}: {seen:?}");
    }
}

#[test]
fn what_someone_logged_in_sees_is_neither_taken_from_memory_nor_kept_for_others() {
    let site = Site::start();
    // One page is in memory before the login, the other is first seen by the editor.
    site.visitor().get(QUIET).expect(200);
    let mut editor = site.visitor();
    log_in(&mut editor);
    for page in [QUIET, NEWS, QUIET, NEWS] {
        let seen = editor.get(page).expect(200);
        assert!(seen.text().contains(EDITOR), "{page} shows no login: {}", seen.text());
        assert!(!seen.is_hit(), "{seen:?}");
        assert_eq!(seen.cache_parameter("fwd").as_deref(), Some("bypass"), "{seen:?}");
        assert_eq!(seen.cache_parameter("stored"), None, "{seen:?}");
    }
    let secrets: Vec<String> = editor.cookies().map(|(_, value)| value.to_owned()).collect();
    for page in [QUIET, NEWS, LOGIN_FORM, QUIET, NEWS] {
        let seen = site.visitor().get(page).expect(200);
        assert_impersonal(&seen, &secrets);
        if page != LOGIN_FORM {
            assert!(!seen.fields.has("set-cookie"), "{seen:?}");
        }
    }
    assert_hit(&site.visitor().get(QUIET));
    assert_hit(&site.visitor().get(NEWS));
}

#[test]
fn a_login_form_and_its_session_are_its_askers_alone() {
    let site = Site::start();
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let form = site.visitor().get(LOGIN_FORM).expect(200);
        assert!(!form.is_hit(), "{form:?}");
        sessions.push(form.field("set-cookie").expect("a login form begins a session").to_owned());
    }
    sessions.sort();
    sessions.dedup();
    assert_eq!(sessions.len(), 3, "a session was given to two: {sessions:?}");
}

#[test]
fn someone_logged_in_and_visitors_who_ask_at_the_same_moment_each_see_their_own() {
    const EACH: usize = 4;
    let site = Site::start();
    let mut editor = site.visitor();
    log_in(&mut editor);
    let secrets: Vec<String> = editor.cookies().map(|(_, value)| value.to_owned()).collect();
    let start = Barrier::new(2 * EACH);
    thread::scope(|scope| {
        for _ in 0..EACH {
            scope.spawn(|| {
                let mut editor = editor.clone();
                start.wait();
                let seen = editor.get(NEWS).expect(200);
                assert!(seen.text().contains(EDITOR) && !seen.is_hit(), "{seen:?}");
            });
            scope.spawn(|| {
                let mut visitor = site.visitor();
                start.wait();
                assert_impersonal(&visitor.get(NEWS).expect(200), &secrets);
            });
        }
    });
    let asked = site.wiki.requests().iter().filter(|request| **request == format!("GET {NEWS}")).count();
    assert_eq!(
        asked,
        EACH + 1,
        "one request for each time the editor asked, and one for all visitors together"
    );
}

#[test]
fn an_edit_is_seen_by_everyone_as_soon_as_it_is_saved_and_other_pages_stay_in_memory() {
    let site = Site::start();
    let old = site.visitor().get(NEWS).expect(200);
    assert!(old.text().contains(wiki::TEXT) && !old.text().contains("Harvest is in."), "{}", old.text());
    site.visitor().get(QUIET).expect(200);
    assert_hit(&site.visitor().get(NEWS));
    assert_hit(&site.visitor().get(QUIET));

    let mut editor = site.visitor();
    log_in(&mut editor);
    edit(&mut editor, "News", "Harvest is in.");

    // MediaWiki purges when it has answered.
    let purge = within("the wiki's PURGE in the access log", || {
        site.access_log()
            .lines()
            .find(|line| line.contains("PURGE ") && line.contains(NEWS))
            .map(str::to_owned)
    });
    assert!(purge.contains(" HTTP/1.1\" 200 "), "{purge}");
    assert!(purge.contains("MediaWiki/"), "not sent by the wiki: {purge}");
    let new = site.visitor().get(NEWS).expect(200);
    assert!(new.text().contains("Harvest is in.") && !new.text().contains(wiki::TEXT), "{}", new.text());
    assert_hit(&site.visitor().get(QUIET));
    let again = site.visitor().get(NEWS).expect(200);
    assert_hit(&again);
    assert_eq!(again.body, new.body);
}

#[test]
fn a_page_purged_by_its_url_on_the_command_line_is_made_anew() {
    let site = Site::start();
    for page in [NEWS, QUIET] {
        site.visitor().get(page).expect(200);
        assert_hit(&site.visitor().get(page));
    }
    let asked = site.wiki.requests().len();
    site.proxy.admin(&["purge", &format!("{}{NEWS}", site.proxy.url())]).success();
    assert!(!site.visitor().get(NEWS).expect(200).is_hit());
    assert_hit(&site.visitor().get(NEWS));
    assert_hit(&site.visitor().get(QUIET));
    assert_eq!(site.wiki.requests()[asked..], [format!("GET {NEWS}")]);
}

/// Fills in the login form and sends it, as a person does.
#[track_caller]
fn log_in(browser: &mut Browser) {
    let form = browser.get(LOGIN_FORM).expect(200);
    let token = browser::hidden_input(&form.text(), "wpLoginToken");
    let fields = [
        ("wpName", EDITOR),
        ("wpPassword", wiki::PASSWORD),
        ("wpLoginToken", &token),
        ("title", "Special:UserLogin"),
        ("authAction", "login"),
    ];
    let answer = browser.post(LOGIN_FORM, &fields).expect(302);
    assert!(!answer.is_hit(), "{answer:?}");
    assert!(browser.cookies().any(|(name, _)| name == "wikiUserID"), "not logged in: {answer:?}");
}

/// Replaces the text of `title` through the wiki's API.
#[track_caller]
fn edit(browser: &mut Browser, title: &str, text: &str) {
    let token = edit_token(browser);
    let fields =
        [("action", "edit"), ("format", "json"), ("title", title), ("text", text), ("token", &token)];
    let answer = browser.post("/api.php", &fields).expect(200);
    assert_eq!(json(&answer)["edit"]["result"], "Success", "{answer:?}");
}

/// The token that a change needs.
#[track_caller]
fn edit_token(browser: &mut Browser) -> String {
    let tokens = json(&browser.get("/api.php?action=query&meta=tokens&format=json").expect(200));
    tokens["query"]["tokens"]["csrftoken"].as_str().expect("a token for edits").to_owned()
}

#[track_caller]
fn json(response: &Response) -> serde_json::Value {
    serde_json::from_slice(&response.body).unwrap_or_else(|error| panic!("{error} in {response:?}"))
}

#[track_caller]
fn assert_hit(response: &Response) {
    assert!(response.status == 200 && response.is_hit(), "not from memory: {response:?}");
}

/// That a page seen by a visitor shows the way to log in, and nothing of the editor's: neither the name nor a cookie's value.
#[track_caller]
fn assert_impersonal(seen: &Response, secrets: &[String]) {
    let all = format!("{:?}{}", seen.fields, seen.text());
    assert!(all.contains("pt-login") && !all.contains("pt-logout"), "{all}");
    for secret in secrets.iter().map(String::as_str).chain([EDITOR]) {
        // The user's number would be found in any page.
        assert!(secret.len() < 4 || !all.contains(secret), "{secret:?} was shown to a visitor: {all}");
    }
}

/// What the wiki said in the head of a response, without what Sandarac says of each delivery. PHP gives no length.
fn origin_fields(response: &Response) -> Vec<(&str, &str)> {
    let own = |name: &str| {
        ["age", "cache-status", "content-length", "transfer-encoding"]
            .iter()
            .any(|own| name.eq_ignore_ascii_case(own))
    };
    response.fields.lines().into_iter().filter(|(name, _)| !own(name)).collect()
}
