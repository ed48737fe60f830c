//! ACME before the first certificate: what is reported of a CA that cannot be reached, and of the state directory.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use sandarac_test_support::{Address, Conn, Origin, Port, TempDir, eventually, reply};

use crate::ca::Ca;
use crate::{sandarac, site};

/// A site that asks a CA at an address where nobody listens, and keeps its state in `state`.
fn unreachable(ca: &Ca, port: &Port, origin: &Origin, state: &str) -> String {
    let acme = format!(
        "names = [\"b.example\", \"a.example\"], directory = \"https://{}/dir\", ca = \"{}\", state = \"{state}\"",
        port.address(),
        ca.file()
    );
    let tls = format!("\"127.0.0.1:0\"\ntls = {{ acme = {{ {acme} }} }}");
    site(&origin.url(), "", "").replace("\"127.0.0.1:0\"", &tls)
}

#[test]
fn failed_attempts_are_in_status_metrics_and_checks() {
    let (ca, port, origin, dir) = (Ca::new(), Port::new(), Origin::new(|_| reply(200)), TempDir::new());
    let state = dir.join("state");
    let text = unreachable(&ca, &port, &origin, &state.display().to_string());
    let proxy = sandarac().config(text.clone()).start();
    let told = eventually("a failed attempt", || {
        let told = proxy.admin(&["status", "--tls", "A.example"]).success().stdout;
        told.contains("failed").then_some(told)
    });
    let directory = format!("https://{}/dir", port.address());
    assert!(told.contains(&format!("ACME for a.example, b.example, by {directory}:\n")), "{told}");
    assert!(told.contains("no certificate yet; a self-signed one stands in; next order in "), "{told}");
    assert!(told.contains("1 attempt failed; the last: unreachable: "), "{told}");
    let other = proxy.admin_json(&["status", "--tls", "c.example", "--json"]);
    assert_eq!(other["acme"].as_array().map(Vec::len), Some(0));
    let all = proxy.admin_json(&["status", "--tls", "--json"]);
    assert_eq!((&all["acme"][0]["failed_attempts"], &all["acme"][0]["failures"]), (&1.into(), &1.into()));

    let metrics = Conn::to(&Address::Unix(proxy.admin_path())).get("/metrics").expect(200).text();
    let labels = format!("{{names=\"a.example,b.example\",directory=\"{directory}\"");
    for sample in [
        format!("sandarac_acme_orders_total{labels}}} 0\n"),
        format!("sandarac_acme_failed_attempts{labels}}} 1\n"),
        format!("sandarac_acme_certificate_expiry_timestamp_seconds{labels}}} 0\n"),
        format!("sandarac_acme_next_order_timestamp_seconds{labels}}} "),
        format!("sandarac_acme_failures_total{labels},reason=\"unreachable\"}} 1\n"),
    ] {
        assert!(metrics.contains(&sample), "{sample}: {metrics}");
    }
    drop(proxy);
    let said = sandarac().config(text).arg("check").run().success().stdout;
    assert!(said.contains(&format!("none yet; a start orders one from {directory}\n")), "{said}");
    assert!(
        said.contains("1 attempt failed, the next follows at ") && said.contains("unreachable"),
        "{said}"
    );
}

#[test]
fn a_check_makes_no_state_directory_and_refuses_one_that_others_may_enter() {
    let (ca, port, origin, dir) = (Ca::new(), Port::new(), Origin::new(|_| reply(200)), TempDir::new());
    let state = dir.join("state");
    let text = unreachable(&ca, &port, &origin, &state.display().to_string());
    let check = || sandarac().config(text.clone()).arg("check").run();
    let said = check().success().stdout;
    assert!(
        said.contains(&format!("Certificate by ACME for b.example, a.example, in {}:\n", state.display()))
    );
    assert!(!state.exists());

    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
    let said = check().failure().stderr;
    assert!(said.contains("(open_directory)"), "{said}");
}
