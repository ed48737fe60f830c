//! Disks that do not answer at once.

use std::os::unix::fs::symlink;

use sandarac_test_support::{HungFileSystem, SlowFileSystem};

use super::{site, tree};
use crate::sandarac;

/// A mount whose server has gone holds the requests for its files, and nothing else on the same core.
#[test]
fn a_mount_that_hangs_holds_no_request_for_other_files() {
    let tree = tree(&[("a.txt", "a")]);
    let Some(_hung) = HungFileSystem::on(&tree.join("hung")) else {
        return;
    };
    symlink("hung/x", tree.join("link")).unwrap();
    let proxy = sandarac().config(site(tree.path(), "files_valid = \"0s\"")).start();
    let mut waiting = proxy.connect();
    waiting.send("GET /hung/x HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut through_a_link = proxy.connect();
    through_a_link.send("GET /link HTTP/1.1\r\nHost: a\r\n\r\n");
    for _ in 0..20 {
        assert_eq!(proxy.get("/a.txt").expect(200).text(), "a");
    }
    assert!(waiting.is_silent() && through_a_link.is_silent());
}

/// The pages of a file come from a file system that answers when the test lets it.
#[test]
fn a_read_that_waits_holds_no_other_request_and_its_bytes_come_in_the_end() {
    let tree = tree(&[("a.txt", "a")]);
    let content: String = (0..60_000).map(|number| format!("{number:05}")).collect();
    let Some(slow) = SlowFileSystem::on(&tree.join("slow"), content.clone().into_bytes()) else {
        return;
    };
    let proxy = sandarac().config(site(tree.path(), "")).start();
    let mut client = proxy.connect();
    client.send("GET /slow/file.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut response = client.response_head().expect(200);
    assert_eq!(response.field("content-length"), Some("300000"));
    slow.awaits_read();
    for _ in 0..20 {
        assert_eq!(proxy.get("/a.txt").expect(200).text(), "a");
    }
    assert!(client.is_silent(), "no byte of the body was read yet");
    slow.answer_reads();
    client.try_response_body("GET", &mut response).expect("the body comes whole");
    assert!(response.text() == content, "every byte");
    let part =
        proxy.exchange(&sandarac_test_support::get("/slow/file.txt").with("Range", "bytes=100000-100004"));
    assert_eq!(part.expect(206).text(), "20000");
}
