//! Files that change.

use std::fs;
use std::time::Duration;

use sandarac_test_support::{eventually, get};

use super::{replace, serving, site, tree, write};
use crate::{labelled, sandarac};

#[test]
fn a_replaced_file_is_seen_within_a_second_and_not_mixed_with_the_old_one() {
    let (proxy, tree) = serving(&[("a.txt", "old")], "");
    let mut client = proxy.connect();
    let old = client.get("/a.txt").expect(200).field("etag").unwrap().to_owned();
    replace(&tree, "a.txt", "newer");
    let tag = eventually("the new file", || {
        let response = client.get("/a.txt").expect(200);
        let tag = response.field("etag").unwrap().to_owned();
        let (text, is_old) = (response.text(), tag == old);
        assert_eq!(text, if is_old { "old" } else { "newer" });
        (!is_old).then_some(tag)
    });
    client.exchange(&get("/a.txt").with("If-None-Match", &tag)).expect(304);
    fs::remove_file(tree.join("a.txt")).unwrap();
    eventually("its absence", || (client.get("/a.txt").status == 404).then_some(()));
    write(&tree, "a.txt", "back");
    eventually("its return", || (client.get("/a.txt").status == 200).then_some(()));
}

#[test]
fn every_change_is_seen_at_once_where_nothing_is_taken_on_trust() {
    let (proxy, tree) = serving(&[("a.txt", "0")], "files_valid = \"0s\"");
    let mut client = proxy.connect();
    for number in 1..50 {
        let content = number.to_string();
        if number % 2 == 0 {
            replace(&tree, "a.txt", &content)
        } else {
            write(&tree, "a.txt", &content)
        }
        assert_eq!(client.get("/a.txt").expect(200).text(), content);
    }
}

/// The response that is being sent keeps to the file with which it began.
#[test]
fn a_download_goes_on_with_the_old_file_while_it_is_replaced() {
    let old = "old ".repeat(2_000_000);
    let (proxy, tree) = serving(&[("a.bin", &old)], "files_valid = \"0s\"");
    let mut client = proxy.connect();
    client.shrink_receive_buffer();
    client.send("GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut response = client.response_head().expect(200);
    replace(&tree, "a.bin", "new");
    assert_eq!(proxy.get("/a.bin").expect(200).text(), "new");
    client.try_response_body("GET", &mut response).expect("the body comes whole");
    assert!(response.text() == old, "every byte is of the old file");
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_ends_that_connection_alone() {
    let content = "x".repeat(8_000_000);
    let (proxy, tree) = serving(&[("a.bin", &content), ("b.txt", "b")], "");
    let mut other = proxy.connect();
    other.get("/b.txt").expect(200);
    let mut client = proxy.connect();
    client.shrink_receive_buffer();
    client.send("GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut response = client.response_head().expect(200);
    assert_eq!(response.field("content-length"), Some("8000000"));
    fs::File::options().write(true).open(tree.join("a.bin")).unwrap().set_len(1000).unwrap();
    client.try_response_body("GET", &mut response).expect_err("it breaks off");
    other.get("/b.txt").expect(200);
    // Until the file is looked at again, its old length is announced, and cannot be met.
    eventually("the new length", || {
        let mut client = proxy.connect();
        client.send("GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n");
        let response = client.try_response("GET").ok()?;
        (response.field("content-length") == Some("1000")).then_some(())
    });
}

#[test]
fn a_root_that_goes_and_comes_back_is_a_fault_meanwhile() {
    let place = tree(&[("site/a.txt", "a")]);
    let proxy = sandarac().config(site(&place.join("site"), "files_valid = \"0s\"")).start();
    proxy.get("/a.txt").expect(200);
    fs::rename(place.join("site"), place.join("aside")).unwrap();
    let gone = proxy.get("/a.txt").expect(503);
    assert!(gone.text().contains("the directory of the files is not there"), "{}", gone.text());
    assert!(gone.fields.has("retry-after"));
    assert_eq!(labelled(&proxy, "failed", "files-missing"), 1);
    fs::rename(place.join("aside"), place.join("site")).unwrap();
    proxy.get("/a.txt").expect(200);
}

/// More files than descriptors: those that were used last stay open.
#[test]
fn more_files_than_the_process_may_open_are_served_all_the_same() {
    let content = "y".repeat(20_000);
    let names: Vec<String> = (0..300).map(|number| format!("{number}.txt")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (&**name, &*content)).collect();
    let tree = tree(&files);
    let proxy = sandarac().descriptors(200).config(site(tree.path(), "files_valid = \"1h\"")).start();
    let mut client = proxy.connect().patient_for(Duration::from_secs(60));
    for name in names.iter().chain(&names) {
        assert!(client.get(&format!("/{name}")).expect(200).text() == content);
    }
}
