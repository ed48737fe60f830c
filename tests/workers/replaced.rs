//! Workers that are replaced by those of another release, none of which is to cost a request.

use sandarac_test_support::within;

use crate::balancer;
use crate::fleet::Plan;
use crate::load::Load;

#[test]
fn nothing_is_lost_while_workers_are_replaced_one_after_another() {
    let fleet = Plan::new(4).start();
    let proxy = balancer(&format!("discover = {{ directory = \"{}\" }}", fleet.sockets().display()));
    let load = Load::on(&[proxy.address()]);
    for release in ["2", "3"] {
        load.reaches(200);
        fleet.release(release);
        fleet.replace();
        fleet.runs(release);
    }
    let processes = fleet.processes();
    processes.iter().for_each(|page| load.sees(page.process));
    load.reaches(100);
    load.ends_well();
}

/// The new release beside the old one, each with a runner and a directory of its own; then the old one is told to go.
#[test]
fn one_version_serves_at_a_time_while_another_takes_its_place() {
    let mut old = Plan::new(3).option("--app-version", "1").start();
    let new = Plan::new(3).option("--app-version", "2");
    let proxy = balancer(&format!(
        "single_version = true\ndiscover = [{{ directory = \"{}\" }}, {{ directory = \"{}\" }}]",
        old.sockets().display(),
        new.sockets().display()
    ));
    let load = Load::on(&[proxy.address()]);
    load.reaches(200);
    let new = new.release("2").start();
    let newcomers = new.processes();
    load.reaches(200);
    // As many as the old ones: a tie keeps the version in service.
    assert!(!newcomers.iter().any(|page| load.has_seen(page.process)));
    old.stop();
    newcomers.iter().for_each(|page| load.sees(page.process));
    load.reaches(200);
    assert_eq!(load.went_back(), Vec::<String>::new());
    load.ends_well();
}

/// Workers that come back as another release where the balancer knows the ones before.
#[test]
fn a_release_that_takes_the_sockets_of_another_answers_nobody_until_it_serves() {
    let release = |plan: Plan, release: &str| plan.release(release).option("--app-version", release).start();
    let mut blue = release(Plan::new(2), "1");
    let mut green = release(Plan::new(1), "1");
    let addresses = [blue.addresses(), green.addresses()].concat();
    let backends: Vec<String> = addresses.iter().map(|address| format!("\"{}\"", address.url())).collect();
    let proxy = balancer(&format!(
        "single_version = true\nconnect_timeout = \"60s\"\nbackends = [{}]",
        backends.join(", ")
    ));
    let load = Load::on(&[proxy.address()]);
    for page in green.processes() {
        load.sees(page.process);
    }
    for next in ["2", "3"] {
        green = release(green.gives_way(), next);
        within(&format!("release {next} to be known"), || {
            let pools = proxy.admin_json(&["pools", "--json"]);
            (pools["pools"][0]["backends"][2]["version"] == next).then_some(())
        });
        load.reaches(300);
        assert!(!green.processes().iter().any(|page| load.has_seen(page.process)));
    }
    blue.stop();
    for page in green.processes() {
        load.sees(page.process);
    }
    load.reaches(100);
    assert_eq!(load.went_back(), Vec::<String>::new());
    load.ends_well();
}
