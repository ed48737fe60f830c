//! Names that are served, and names that are not.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{serving, site, tree};
use crate::sandarac;

#[test]
fn nothing_above_the_root_is_served_however_it_is_written() {
    let tree = tree(&[("site/a.txt", "inside"), ("secret.txt", "secret")]);
    let proxy = sandarac().config(site(&tree.join("site"), "")).start();
    let mut client = proxy.connect();
    assert_eq!(client.get("/a.txt").expect(200).text(), "inside");
    for (path, status) in [
        ("/../secret.txt", 400),
        ("/%2e%2e/secret.txt", 400),
        ("/a/../../secret.txt", 400),
        ("/..%2fsecret.txt", 400),
        ("/..%5csecret.txt", 400),
        ("/..\\secret.txt", 400),
        ("/%252e%252e/secret.txt", 404),
        ("/..%252fsecret.txt", 404),
        ("/..;/secret.txt", 400),
        ("/a.txt%00.html", 400),
        ("/.../secret.txt", 404),
        ("/a.txt.", 404),
        ("/a.txt%20", 404),
        ("/a.txt/", 404),
        ("/a.txt/x", 404),
        ("/x%2fa.txt", 404),
        ("/%2fa.txt", 404),
        ("/proc/self/root/etc/passwd", 404),
    ] {
        let response = proxy.get(path);
        assert_eq!(response.status, status, "{path}");
        assert!(!response.text().contains("secret"), "{path}");
    }
    // Dot segments that stay inside are those of the path (RFC 3986 §5.2.4).
    assert_eq!(proxy.get("/x/../a.txt").expect(200).text(), "inside");
    assert_eq!(proxy.get("/./a.txt").expect(200).text(), "inside");
    let long = format!("/{}", "x".repeat(4000));
    proxy.get(&long).expect(404);
}

#[test]
fn hidden_files_look_like_none_except_those_of_well_known() {
    let files = [
        (".env", "secret"),
        (".git/config", "secret"),
        ("a/.x", "secret"),
        (".well-known/security.txt", "ok"),
    ];
    let (proxy, _tree) = serving(&files, "");
    for path in ["/.env", "/%2eenv", "/.git/config", "/.git/", "/a/.x", "/.nothing"] {
        let response = proxy.get(path).expect(404);
        assert!(response.text().contains("there is no such file"), "{path}");
    }
    assert_eq!(proxy.get("/.well-known/security.txt").expect(200).text(), "ok");
}

#[test]
fn names_are_bytes() {
    let (proxy, tree) =
        serving(&[("100%.txt", "percent"), ("a b.txt", "blank"), ("back\\slash", "backslash")], "");
    std::fs::write(tree.path().join(OsStr::from_bytes(b"\xffnot-utf-8")), "bytes").unwrap();
    for (path, content) in [
        ("/100%25.txt", "percent"),
        ("/a%20b.txt", "blank"),
        ("/back%5cslash", "backslash"),
        ("/%FFnot-utf-8", "bytes"),
    ] {
        assert_eq!(proxy.get(path).expect(200).text(), content, "{path}");
    }
}

#[test]
fn what_is_no_regular_file_is_not_opened_for_long() {
    let (proxy, tree) = serving(&[("a.txt", "a")], "");
    mknodat(CWD, tree.join("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(tree.join("socket")).unwrap();
    for path in ["/fifo", "/socket"] {
        assert!(proxy.get(path).expect(403).text().contains("not a regular file"), "{path}");
    }
    proxy.get("/a.txt").expect(200);
}
