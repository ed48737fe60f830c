//! Files over HTTP/2, where one connection carries many responses.

use std::fs::File;

use sandarac_test_support::http2::{Ended, Http2};
use sandarac_test_support::{Sandarac, SlowFileSystem, eventually, within};

use super::{site, tree};
use crate::{sandarac, stat};

const INTERNAL_ERROR: u32 = 2;

/// Sandarac before a tree, with a listener that takes HTTP/2 and a log, and a connection whose own window is no limit.
fn connected(root: &std::path::Path, keys: &str) -> (Sandarac, Http2) {
    let config = site(root, keys).replace("\"127.0.0.1:0\"", "\"127.0.0.1:0\"\nhttp2 = true");
    let proxy =
        sandarac().config(format!("{config}\n[log]\naccess = \"stdout\"\nformat = \"json\"\n")).start();
    let mut client = Http2::to(proxy.address());
    client.window(0, 100_000_000);
    (proxy, client)
}

/// Regression: the frame that was announced could not be filled, which ended the connection with all of its streams.
#[test]
fn a_file_that_shrinks_while_it_is_sent_resets_its_stream_alone() {
    // The first is sent by an exchange, the second in place.
    for (size, is_logged) in [(8_000_000, true), (1_000_000, false)] {
        let content = "x".repeat(size);
        let tree = tree(&[("short.bin", &content), ("long.bin", &content), ("b.txt", "b")]);
        let (proxy, mut client) = connected(tree.path(), "");
        let (short, long) = (client.get("/short.bin", &[]), client.get("/long.bin", &[]));
        client.gives_windows = false;
        for stream in [short, long] {
            while client.begun(stream).body.len() < 65_535 {
                client.step().expect("the window of the stream is used up");
            }
        }
        File::options().write(true).open(tree.join("short.bin")).unwrap().set_len(100_000).unwrap();
        client.gives_windows = true;
        client.window(short, 8_000_000).window(long, 8_000_000);
        assert_eq!(client.outcome(short).err(), Some(Ended::Reset(INTERNAL_ERROR)));
        let part = client.take_partial(short).expect("the response had begun");
        assert_eq!(part.body, content.as_bytes()[..100_000], "no byte that the file does not have");
        assert!(client.response(long).text() == content, "the other response on the connection comes whole");
        let next = client.get("/b.txt", &[]);
        assert_eq!(client.response(next).text(), "b");
        within("the count", || (stat(&proxy, "bodies_truncated") == 1).then_some(()));
        if is_logged {
            let line = within("the line", || {
                let log = proxy.stdout();
                log.lines().find(|line| line.contains("/short.bin")).map(str::to_owned)
            });
            assert!(line.contains("\"reason\":\"file-broke-off\""), "{line}");
        }
    }
}

/// What has to be read is unknown at the time of the head: a range at the end of a file that is shorter by then.
#[test]
fn a_part_that_the_file_has_no_more_resets_its_stream_alone() {
    let content = "x".repeat(100_000);
    let tree = tree(&[("a.bin", &content), ("b.txt", "b")]);
    let (proxy, mut client) = connected(tree.path(), "files_valid = \"1h\"");
    let whole = client.get("/a.bin", &[]);
    assert!(client.response(whole).text() == content);
    File::options().write(true).open(tree.join("a.bin")).unwrap().set_len(10).unwrap();
    let part = client.get("/a.bin", &[("range", "bytes=5000-5999")]);
    assert_eq!(client.outcome(part).err(), Some(Ended::Reset(INTERNAL_ERROR)));
    let next = client.get("/b.txt", &[]);
    assert_eq!(client.response(next).text(), "b");
    assert_eq!(stat(&proxy, "bodies_truncated"), 1);
}

/// Regression: a read that waited for a disk held up all streams of the connection.
#[test]
fn a_read_that_waits_holds_no_other_stream() {
    let tree = tree(&[("a.txt", "a")]);
    let content: String = (0..60_000).map(|number| format!("{number:05}")).collect();
    let (_proxy, mut client) = connected(tree.path(), "");
    let Some(slow) = SlowFileSystem::on(&tree.join("slow"), content.clone().into_bytes()) else {
        return;
    };
    let waiting = client.get("/slow/file.txt", &[]);
    assert_eq!(client.begun(waiting).status, 200);
    slow.awaits_read();
    for _ in 0..20 {
        let other = client.get("/a.txt", &[]);
        assert_eq!(client.response(other).text(), "a");
    }
    assert!(client.begun(waiting).body.is_empty(), "no byte of the body was read yet");
    slow.answer_reads();
    assert!(client.response(waiting).text() == content, "every byte");
}

#[test]
fn a_read_that_does_not_end_resets_its_stream_alone() {
    let tree = tree(&[("a.txt", "a")]);
    let (proxy, mut client) = connected(tree.path(), "[timeouts]\nwrite = \"1s\"");
    let Some(slow) = SlowFileSystem::on(&tree.join("slow"), vec![b'x'; 300_000]) else {
        return;
    };
    let waiting = client.get("/slow/file.txt", &[]);
    slow.awaits_read();
    assert_eq!(client.outcome(waiting).err(), Some(Ended::Reset(INTERNAL_ERROR)));
    let other = client.get("/a.txt", &[]);
    assert_eq!(client.response(other).text(), "a");
    eventually("the count", || (stat(&proxy, "bodies_truncated") == 1).then_some(()));
}
