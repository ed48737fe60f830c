//! Workers that are killed.

use std::fs;

use sandarac_test_support::{Conn, Setup, TempDir, Trouble, get};

use crate::fleet::{Fleet, Plan};
use crate::load::{LINES, Load};
use crate::{balancer, configuration};

/// Kills each of four workers after the other, then two at once, twice, while clients ask.
fn nothing_is_lost(fleet: &Fleet, pool: &str) {
    let proxy = balancer(pool);
    let load = Load::on(&[proxy.address()]);
    load.reaches(200);
    for slot in 0..4 {
        fleet.kill(fleet.processes()[slot].process);
        load.reaches(100);
    }
    for pair in [[0, 1], [2, 3]] {
        let processes = fleet.processes();
        pair.iter().for_each(|&slot| fleet.kill(processes[slot].process));
        load.reaches(100);
    }
    // Those that took their places are used as they were.
    for page in fleet.processes() {
        load.sees(page.process);
    }
    load.ends_well();
    assert!(
        proxy.metric("fetch_retries") > 0,
        "no request was at a worker that was killed, or on its way there"
    );
}

#[test]
fn nothing_is_lost_when_workers_that_a_directory_names_are_killed() {
    let fleet = Plan::new(4).start();
    nothing_is_lost(&fleet, &format!("discover = {{ directory = \"{}\" }}", fleet.sockets().display()));
}

#[test]
fn nothing_is_lost_when_workers_that_the_configuration_names_are_killed() {
    let fleet = Plan::new(4).start();
    let backends: Vec<String> =
        fleet.addresses().iter().map(|address| format!("\"{}\"", address.url())).collect();
    nothing_is_lost(&fleet, &format!("backends = [{}]", backends.join(", ")));
}

/// A worker that dies while it streams takes with it what it has not said: that one response breaks off, and does so visibly,
/// as no one else could go on with it. It is not stored, and whoever asks next gets a whole page from another worker.
#[test]
fn a_response_breaks_off_when_its_worker_is_killed_and_never_ends_as_another() {
    let fleet = Plan::new(4).start();
    let pool = format!("discover = {{ directory = \"{}\" }}", fleet.sockets().display());
    let text = configuration("127.0.0.1:0", "lookup", &pool);
    let proxy = Setup::new(env!("CARGO_BIN_EXE_sandarac")).config(text).start();
    let load = Load::on(&[proxy.address()]);
    let dir = TempDir::new();
    let gate = dir.join("gate");
    for (round, path) in
        ["/slow/length", "/slow/chunked", "/slow/length/2", "/slow/chunked/2"].iter().enumerate()
    {
        fs::write(&gate, "").expect("a file can be made");
        let request = get(&format!("{path}?{}", gate.display())).host("slow.example");
        let mut client = Conn::to(proxy.address());
        client.send(request.to_bytes());
        let head = client.response_head().expect(200);
        assert_eq!(head.fields.has("content-length"), path.contains("length"), "{head:?}");
        // Another who wants the same reads along.
        let mut other = Conn::to(proxy.address());
        other.send(request.to_bytes());
        other.response_head().expect(200);
        let chunked = !path.contains("length");
        let half = read_half(&mut client, path, chunked);
        assert_eq!(read_half(&mut other, path, chunked), half);
        let process = half.split(' ').nth(2).and_then(|number| number.parse().ok()).expect("a process");
        fleet.kill(process);
        for client in [&mut client, &mut other] {
            let rest = client.try_read(1);
            assert!(
                matches!(&rest, Err(Trouble::Closed(rest) | Trouble::Reset(rest)) if rest.is_empty()),
                "round {round}: {rest:?}"
            );
        }
        fs::remove_file(&gate).expect("the gate is there");
        let whole = proxy.exchange(&request).expect(200);
        let page = crate::load::Page::read("slow.example", path, &whole).expect("a whole page");
        assert_ne!(page.process, process);
        load.reaches(100);
        // The one that died is to be back before another dies.
        fleet.processes();
    }
    load.ends_well();
}

/// The first half of a page: as many lines as the worker has sent, and not a byte more.
fn read_half(client: &mut Conn, path: &str, chunked: bool) -> String {
    let size = if chunked { client.read_through("\r\n") } else { Vec::new() };
    let first = client.read_through("\n");
    let half = LINES / 2;
    let length = first.len() * (half - 1);
    let mut text = first.clone();
    text.extend(client.read(length));
    if chunked {
        let size = String::from_utf8(size).expect("a size of a chunk");
        assert_eq!(usize::from_str_radix(size.trim_end(), 16), Ok(text.len()));
        client.expect("\r\n");
    }
    let line = String::from_utf8(first).expect("a page is text");
    assert!(line.starts_with(&format!("slow.example {path} ")), "{line:?}");
    let text = String::from_utf8(text).expect("a page is text");
    assert_eq!(text, line.repeat(half));
    text
}
