//! Every message of the corpus is refused, for its intended reason only.

mod support;

use sandarac_message::Method;
use sandarac_wire::h1::Refusal;
use sandarac_wire::h1::repair::Repair;
use std::collections::HashSet;
use support::corpus::{self, Case};
use support::{Message, read_repaired, read_request, read_response, relaxed};

type Verdict = Result<Option<Message>, Refusal>;

/// Reads `case` whole and cut at every byte (every 97th of the long ones), and returns the deviations from
/// its expectations.
fn faults(
    case: &Case,
    read: impl Fn(&[u8]) -> Verdict,
    relaxed: &relaxed::Reading,
    status: fn(Refusal) -> u16,
) -> Vec<String> {
    let mut faults = Vec::new();
    let verdict = read(&case.bytes);
    match &verdict {
        Err(refusal) if refusal.name() == case.refusal && status(*refusal) == case.status => {}
        other => faults.push(format!("expected {} {}, got {other:?}", case.refusal, case.status)),
    }
    let step = if case.bytes.len() > 4096 { 97 } else { 1 };
    for cut in (0..case.bytes.len()).step_by(step) {
        let early = read(&case.bytes[..cut]);
        if early != Ok(None) && early != verdict {
            faults.push(format!("its first {cut} bytes give {early:?}"));
            break;
        }
    }
    if !relaxed.faults.iter().eq([&case.refusal]) {
        faults.push(format!("the relaxed reader found {:?}", relaxed.faults));
    }
    if relaxed.summary != case.naive {
        faults.push(format!("naive: {}", relaxed.summary));
    }
    faults.into_iter().map(|fault| format!("{}: {fault}\n", case.name)).collect()
}

fn check_names(cases: &[Case], at_least: usize) {
    let names: HashSet<_> = cases.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), cases.len(), "names are unique");
    assert!(cases.len() >= at_least, "the corpus was read: {}", cases.len());
}

#[test]
fn every_request_is_refused_by_the_check_it_is_there_for() {
    let cases = corpus::load("requests.txt");
    check_names(&cases, 200);
    let faults: Vec<String> = cases
        .iter()
        .flat_map(|case| faults(case, read_request, &relaxed::request(&case.bytes), Refusal::status))
        .collect();
    assert!(faults.is_empty(), "\n{}", faults.concat());
}

#[test]
fn every_response_is_refused_by_the_check_it_is_there_for() {
    let cases = corpus::load("responses.txt");
    check_names(&cases, 80);
    let faults: Vec<String> = cases
        .iter()
        .flat_map(|case| {
            let method = Method::of(case.method.as_bytes());
            let relaxed = relaxed::response(&case.bytes, &case.method);
            faults(case, |bytes| read_response(bytes, method), &relaxed, |_| 502)
        })
        .collect();
    assert!(faults.is_empty(), "\n{}", faults.concat());
}

#[test]
fn what_has_one_reading_is_repaired_and_all_else_refused() {
    let mut faults = Vec::new();
    for case in corpus::load("responses.txt") {
        let method = Method::of(case.method.as_bytes());
        let read = |bytes: &[u8]| read_repaired(bytes, method).map_err(Refusal::name);
        let verdict = read(&case.bytes);
        let expected = match &case.repaired {
            Some(repaired) => Ok(Some(repaired.clone())),
            None => Err(case.refusal.as_str()),
        };
        if verdict != expected {
            faults.push(format!("{}: expected {expected:?}, got {verdict:?}\n", case.name));
        }
        let step = if case.bytes.len() > 4096 { 97 } else { 1 };
        let early = (0..case.bytes.len()).step_by(step).map(|cut| (cut, read(&case.bytes[..cut])));
        if let Some((cut, early)) =
            early.into_iter().find(|(_, early)| *early != Ok(None) && *early != verdict)
        {
            faults.push(format!("{}: its first {cut} bytes give {early:?}\n", case.name));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.concat());
}

#[test]
fn every_repair_is_in_the_corpus() {
    let cases = corpus::load("responses.txt").into_iter().filter_map(|case| case.repaired);
    let named: Vec<String> =
        cases.filter_map(|text| text.split_once(": ").map(|(names, _)| names.to_owned())).collect();
    for repair in Repair::ALL {
        assert!(named.iter().any(|names| names == repair.name()), "{repair:?} alone");
    }
}

#[test]
fn every_refusal_is_in_the_corpus() {
    let cases = corpus::load("requests.txt").into_iter().chain(corpus::load("responses.txt"));
    let named: HashSet<String> = cases.map(|case| case.refusal).collect();
    for refusal in Refusal::ALL {
        assert!(named.contains(refusal.name()), "{refusal:?}");
    }
}
