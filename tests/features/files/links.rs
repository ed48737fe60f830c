//! Symbolic links.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use sandarac_test_support::get;

use super::{replace, serving, site, tree, write};
use crate::sandarac;

#[test]
fn a_link_is_followed_inside_the_tree_whether_it_is_relative_or_absolute() {
    let (proxy, tree) = serving(&[("real/a.txt", "inside"), ("real/deep/b.txt", "deep")], "");
    symlink("real/a.txt", tree.join("relative")).unwrap();
    symlink(tree.join("real/a.txt"), tree.join("absolute")).unwrap();
    symlink(tree.join("real"), tree.join("directory")).unwrap();
    symlink("../a.txt", tree.join("real/deep/up")).unwrap();
    symlink("absolute", tree.join("chain")).unwrap();
    symlink("loop", tree.join("loop")).unwrap();
    symlink("nowhere", tree.join("broken")).unwrap();
    for path in
        ["/relative", "/absolute", "/directory/a.txt", "/real/deep/up", "/chain", "/directory/deep/up"]
    {
        assert_eq!(proxy.get(path).expect(200).text(), "inside", "{path}");
    }
    assert_eq!(proxy.get("/directory/deep/b.txt").expect(200).text(), "deep");
    proxy.get("/loop").expect(403);
    proxy.get("/broken").expect(404);
}

/// Regression: the source of a program was sent under the name of a link.
#[test]
fn a_link_to_a_program_is_refused_like_the_program() {
    let files =
        [("lib/tool.php", "<?php secret();"), ("a.txt", "plain"), ("b.html", "page"), ("dir.php/c.txt", "c")];
    for keys in ["", "files_valid = \"0s\"", "index = [\"start\"]\nlisting = true"] {
        let (proxy, tree) = serving(&files, keys);
        symlink("lib/tool.php", tree.join("x.txt")).unwrap();
        symlink(tree.join("lib/tool.php"), tree.join("absolute.txt")).unwrap();
        symlink("x.txt", tree.join("chain")).unwrap();
        symlink("lib", tree.join("more")).unwrap();
        symlink("../more/tool.php", tree.join("lib/start")).unwrap();
        symlink("lib/tool.php", tree.join("a.txt.gz")).unwrap();
        symlink("b.html", tree.join("b.php")).unwrap();
        symlink("dir.php", tree.join("fine")).unwrap();
        for path in
            ["/x.txt", "/absolute.txt", "/chain", "/lib/start", "/more/start", "/more/tool.php", "/b.php"]
        {
            for _ in 0..2 {
                let refused = proxy.get(path).expect(403);
                assert!(refused.text().contains("program"), "{path}: {}", refused.text());
            }
        }
        assert!(!proxy.get("/lib/").text().contains("secret"));
        assert_eq!(
            proxy.exchange(&get("/a.txt").with("Accept-Encoding", "gzip")).expect(200).text(),
            "plain"
        );
        // Only the name of the file itself counts.
        assert_eq!(proxy.get("/fine/c.txt").expect(200).text(), "c");
    }
}

/// A file that is replaced while it is looked at has no name any more.
#[test]
fn a_link_to_a_program_that_is_replaced_all_the_time_is_refused_too() {
    let (proxy, tree) = serving(&[("tool.php", "<?php secret();")], "files_valid = \"0s\"");
    symlink("tool.php", tree.join("x.txt")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                replace(&tree, "tool.php", "<?php secret();");
            }
        });
        let mut client = proxy.connect();
        let statuses: Vec<u16> = (0..1000).map(|_| client.get("/x.txt").status).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(statuses.iter().all(|status| matches!(status, 403 | 404)), "{statuses:?}");
    });
}

#[test]
fn a_link_that_leads_out_is_refused() {
    let outside = tree(&[("secret.txt", "secret")]);
    let (proxy, tree) = serving(&[("a.txt", "a")], "");
    symlink(outside.join("secret.txt"), tree.join("absolute")).unwrap();
    symlink(outside.path(), tree.join("directory")).unwrap();
    symlink("../../../../../../../etc/passwd", tree.join("relative")).unwrap();
    symlink("/proc/self/root/etc/passwd", tree.join("magic")).unwrap();
    symlink("..", tree.join("parent")).unwrap();
    for path in ["/absolute", "/directory/secret.txt", "/relative", "/magic", "/parent/x"] {
        let refused = proxy.get(path).expect(403);
        assert!(refused.text().contains("symbolic link"), "{path}: {}", refused.text());
    }
    proxy.get("/a.txt").expect(200);
}

#[test]
fn links_may_lead_to_further_trees_each_resolved_beneath_its_own() {
    let also = tree(&[("img/a.png", "image"), ("b.txt", "b")]);
    let outside = tree(&[("secret.txt", "secret")]);
    symlink(outside.join("secret.txt"), also.join("out")).unwrap();
    symlink(also.join("b.txt"), also.join("img/again")).unwrap();
    let root = tree(&[("a.txt", "a")]);
    symlink(also.path(), root.join("more")).unwrap();
    let keys = format!("also = [{:?}]", also.path().display().to_string());
    let proxy = sandarac().config(site(root.path(), &keys)).start();
    assert_eq!(proxy.get("/more/img/a.png").expect(200).text(), "image");
    assert_eq!(proxy.get("/more/img/again").expect(200).text(), "b");
    proxy.get("/more/out").expect(403);
    proxy.get("/more/nothing").expect(404);
}

#[test]
fn no_link_is_followed_where_none_may_be() {
    let (proxy, tree) = serving(&[("real/a.txt", "a")], "symlinks = \"never\"");
    symlink("real/a.txt", tree.join("file")).unwrap();
    symlink("real", tree.join("directory")).unwrap();
    proxy.get("/real/a.txt").expect(200);
    proxy.get("/file").expect(403);
    proxy.get("/directory/a.txt").expect(403);
}

/// The root may itself be a link, as `current -> releases/42`.
#[test]
fn a_root_that_is_a_link_is_followed_to_its_new_place() {
    let place = tree(&[("one/a.txt", "one"), ("two/a.txt", "two")]);
    symlink("one", place.join("current")).unwrap();
    let proxy = sandarac().config(site(&place.join("current"), "files_valid = \"0s\"")).start();
    assert_eq!(proxy.get("/a.txt").expect(200).text(), "one");
    symlink("two", place.join("next")).unwrap();
    fs::rename(place.join("next"), place.join("current")).unwrap();
    assert_eq!(proxy.get("/a.txt").expect(200).text(), "two");
}

/// An attacker who may write to the tree swaps a directory for a link to the outside, over and over.
#[test]
fn a_directory_that_becomes_a_link_while_it_is_entered_leads_nowhere() {
    let outside = tree(&[("a.txt", "secret")]);
    let (proxy, tree) = serving(&[("dir/a.txt", "inside")], "files_valid = \"0s\"");
    write(&tree, "links/keep", "");
    symlink(outside.path(), tree.join("links/out")).unwrap();
    // A link to an absolute path is followed step by step.
    symlink(tree.join("dir/a.txt"), tree.join("absolute")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for (from, to) in
                    [("dir", "aside"), ("links/out", "dir"), ("dir", "links/out"), ("aside", "dir")]
                {
                    fs::rename(tree.join(from), tree.join(to)).unwrap();
                }
            }
        });
        let mut client = proxy.connect();
        let mut inside = 0;
        for round in 0..2000 {
            let path = if round % 2 == 0 { "/dir/a.txt" } else { "/absolute" };
            let response = client.get(path);
            assert!(!response.text().contains("secret"), "round {round}");
            assert!([200, 403, 404].contains(&response.status), "round {round}: {}", response.status);
            inside += usize::from(response.status == 200);
        }
        stop.store(true, Ordering::Relaxed);
        assert!(inside > 0, "it was inside sometimes");
    });
}
