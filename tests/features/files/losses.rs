//! Losses while files are served: descriptors, the directory, its file system.

use std::fs;

use sandarac_test_support::{MountedFileSystem, eventually};

use super::{serving, site, tree, write};
use crate::{labelled, sandarac};

/// Neither can a file be opened, nor does closing others help.
#[test]
fn without_a_descriptor_a_file_is_503_and_is_served_once_there_is_one() {
    let content = "y".repeat(20_000);
    let files = [("a.bin", &*content), ("b.bin", &content), ("c.bin", &content), ("small.txt", "small")];
    for valid in ["1h", "0s"] {
        let (proxy, tree) = serving(&files, &format!("files_valid = \"{valid}\""));
        let mut client = proxy.connect();
        assert!(client.get("/a.bin").expect(200).text() == content);
        client.get("/small.txt").expect(200);
        let before = proxy.open_descriptors();
        let limit = proxy.descriptor_limit();
        proxy.limit_descriptors(3);
        for _ in 0..3 {
            for target in ["/b.bin", "/c.bin"] {
                let refused = client.get(target).expect(503);
                assert!(refused.text().contains("too many files are open"), "{}", refused.text());
                assert!(
                    refused.fields.has("retry-after") && refused.fields.has("proxy-status"),
                    "{refused:?}"
                );
            }
        }
        proxy.says(&format!("files in {}: too many files are open", tree.path().display()));
        proxy.limit_descriptors(limit);
        for target in ["/a.bin", "/b.bin", "/c.bin"] {
            assert!(client.get(target).expect(200).text() == content, "{target}");
        }
        assert_eq!(client.get("/small.txt").expect(200).text(), "small");
        assert_eq!(labelled(&proxy, "failed", "file-no-descriptors"), 6);
        let after = proxy.open_descriptors();
        assert!(after <= before + 4, "{after} are open, {before} were before");
    }
}

/// A directory that is renamed away and another in its place, as some deployments do it.
#[test]
fn a_root_that_is_replaced_is_seen_and_a_download_goes_on_with_the_old_one() {
    let old = "old ".repeat(2_000_000);
    let place = tree(&[("site/a.bin", &old), ("site/gone.txt", "gone"), ("next/a.bin", "new")]);
    let proxy = sandarac().config(site(&place.join("site"), "")).start();
    assert_eq!(proxy.get("/gone.txt").expect(200).text(), "gone");
    let mut client = proxy.connect();
    client.shrink_receive_buffer();
    client.send("GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut response = client.response_head().expect(200);
    fs::rename(place.join("site"), place.join("aside")).unwrap();
    fs::rename(place.join("next"), place.join("site")).unwrap();
    eventually("the new directory", || (proxy.get("/gone.txt").status == 404).then_some(()));
    assert_eq!(proxy.get("/a.bin").expect(200).text(), "new");
    fs::remove_dir_all(place.join("aside")).unwrap();
    client.try_response_body("GET", &mut response).expect("the body comes whole");
    assert!(response.text() == old, "every byte is of the old file");
}

#[test]
fn a_root_whose_file_system_is_unmounted_serves_what_is_there_then_and_comes_back() {
    let old = "old ".repeat(2_000_000);
    let place = tree(&[("site/below.txt", "below")]);
    let root = place.join("site");
    let Some(mounted) = MountedFileSystem::on(&root) else {
        return;
    };
    write(&place, "site/a.bin", &old);
    let proxy = sandarac().config(site(&root, "files_valid = \"0s\"")).start();
    proxy.get("/below.txt").expect(404);
    let mut client = proxy.connect();
    client.shrink_receive_buffer();
    client.send("GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut response = client.response_head().expect(200);
    drop(mounted);
    proxy.get("/a.bin").expect(404);
    assert_eq!(proxy.get("/below.txt").expect(200).text(), "below");
    client.try_response_body("GET", &mut response).expect("the body comes whole");
    assert!(response.text() == old, "what is open stays readable");
    let _mounted = MountedFileSystem::on(&root).expect("it may be mounted again");
    write(&place, "site/a.bin", "new");
    assert_eq!(proxy.get("/a.bin").expect(200).text(), "new");
    proxy.get("/below.txt").expect(404);
}
