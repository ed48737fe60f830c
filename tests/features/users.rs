//! The user whose rights a process keeps that root starts. Where nobody is root, these tests are left out.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use sandarac_test_support::{Conn, Origin, TempDir, reply};

use crate::{sandarac, site};

/// The number of a user without rights: a number, because it need not have a name.
const USER: u32 = 65_533;

/// CAP_NET_BIND_SERVICE, as in `/proc/PID/status`.
const LOW_PORTS: &str = "0000000000000400";

/// Whether these tests can become another user.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A line of `/proc/PID/status`.
fn of_process(pid: u32, line: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let found = status.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':'));
    found.unwrap().split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// A directory in which the user may write.
fn own_directory() -> TempDir {
    let dir = TempDir::new();
    give(dir.path());
    dir
}

fn give(path: &Path) {
    chown(path, Some(USER), Some(USER)).unwrap();
}

#[test]
fn a_process_that_root_starts_keeps_the_rights_of_its_user_and_that_to_low_ports() {
    if !is_root() {
        return;
    }
    let origin = Origin::new(|_| reply(200).cache("max-age=60").body("page"));
    let dir = own_directory();
    let log = dir.join("access.log");
    let more =
        format!("user = \"{USER}\"\n{}[log]\naccess = \"{}\"\n", site(&origin.url(), "", ""), log.display());
    let proxy =
        sandarac().copied_to(dir.join("sandarac")).config(&more).admin_at(dir.join("admin.sock")).start();
    proxy.says(&format!("sandarac: runs as user {USER}"));
    let rights = |pid: u32| {
        let ids = format!("{USER} {USER} {USER} {USER}");
        assert_eq!((of_process(pid, "Uid"), of_process(pid, "Gid")), (ids.clone(), ids), "{pid}");
        assert_eq!(of_process(pid, "Groups"), USER.to_string());
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(of_process(pid, set), LOW_PORTS, "{set} of {pid}");
        }
    };
    rights(proxy.pid());
    Conn::to(proxy.address()).get("/").expect(200);
    proxy.admin(&["reload"]).success();
    assert!(Conn::to(proxy.address()).get("/").expect(200).is_hit());
    proxy.admin(&["upgrade"]).success();
    rights(proxy.successors()[0]);
    Conn::to(proxy.address()).get("/").expect(200);
    assert_eq!(std::fs::metadata(&log).map(|log| std::os::unix::fs::MetadataExt::uid(&log)).unwrap(), USER);
}

/// A thing that a start would not notice, because root may read everything, would end the process at its
/// first reload.
#[test]
fn what_the_user_may_not_read_is_said_at_the_start_and_by_check() {
    if !is_root() {
        return;
    }
    let dir = own_directory();
    let file = dir.join("sandarac.toml");
    let text = |more: &str| {
        format!(
            "user = \"{USER}\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n{more}[[route]]\nanswer = {{ status = 200 }}\n"
        )
    };
    let start = || {
        let admin = dir.join("admin.sock").display().to_string();
        sandarac().option("-c", file.display().to_string()).option("--admin", admin).run()
    };
    let check = || sandarac().arg("check").option("-c", file.display().to_string()).run();
    std::fs::write(&file, text("")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    for refused in [start(), check()] {
        let expected = format!("user {USER} cannot read {}, which each reload has to", file.display());
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(refused.stderr.contains(&expected), "{refused:?}");
    }
    std::fs::write(
        &file,
        text("tls = { certificates = [{ chain = \"/root/none.pem\", key = \"/root/none.pem\" }] }\n"),
    )
    .unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    for refused in [start(), check()] {
        assert!(
            refused.stderr.contains("/root/none.pem") && refused.stderr.contains("denied"),
            "{refused:?}"
        );
    }
}

#[test]
fn a_user_that_does_not_exist_is_a_mistake() {
    for (user, expected) in [
        ("nobody-of-this-name", "there is no user called \"nobody-of-this-name\" (`user`)"),
        ("a b", "\"a b\" is not the name or the number of a user"),
    ] {
        let refused = sandarac()
            .option("--user", user)
            .option("--listen", "127.0.0.1:0")
            .option("--backend", "http://127.0.0.1:1")
            .run();
        assert_eq!(refused.status.code(), Some(2));
        assert!(refused.stderr.contains(expected), "{refused:?}");
    }
}

#[test]
fn root_is_warned_unless_it_is_meant() {
    if !is_root() {
        return;
    }
    let warned = |more: &str| {
        let dir = TempDir::new();
        let file = dir.join("sandarac.toml");
        let text =
            format!("{more}[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nanswer = {{ status = 200 }}\n");
        std::fs::write(&file, text).unwrap();
        let check = sandarac().arg("check").option("-c", file.display().to_string()).run().success();
        check.stderr.contains("warning: started by root without a user, this runs as root")
    };
    assert!(warned("") && !warned("user = \"root\"\n"));
}
