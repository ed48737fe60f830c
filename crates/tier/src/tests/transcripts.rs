//! Transcripts of single machines: the packets they send, and what they decide.

use std::time::Duration;

use sandarac_message::Timestamp;
use sandarac_wire::entry::{
    Content, Effect, EntryError, LogId, Position, Purge, Record, RecordId, Sealer, Secret, Token,
};

use super::content::{self, Page};
use super::memcached::Model;
use crate::check::{Check, CheckResult, CheckStep};
use crate::command::{Command, Reply};
use crate::local_copy::{Hit, LocalCopy};
use crate::log_sync::LogSync;
use crate::lookup::{Fetch, Lookup, LookupStep, Outcome};
use crate::purge_call::{PurgeCall, tombstone};
use crate::reason::{FetchReason, Refusal};
use crate::server::{Server, Verdict};
use crate::settings::Settings;

/// A server, the nodes' knowledge of it, and what was sent.
struct Bench {
    model: Model,
    nodes: Vec<Server>,
    now: u64,
    reachable: bool,
    sent: Vec<String>,
}

fn no_ban(_: &Content, _: &str) -> bool {
    false
}

fn record(number: u8, purge: Purge) -> Record {
    Record { id: RecordId([number; 16]), made: Timestamp::from_secs(9000), effect: Effect::Hard, purge }
}

fn page_purge(number: u8, page: usize) -> Record {
    record(number, content::purge(page, usize::MAX))
}

impl Bench {
    fn new(nodes: usize) -> Bench {
        Bench::with_settings(nodes, &Settings::default())
    }

    fn with_settings(nodes: usize, settings: &Settings) -> Bench {
        let log_key = content::keys().purge_log();
        let node = |seed| Server::new(settings.clone(), Sealer::checksum(), log_key, seed as u64);
        let nodes = (0..nodes).map(node).collect();
        Bench { model: Model::default(), nodes, now: 1_000_000, reachable: true, sent: Vec::new() }
    }

    fn time(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    /// Executes a packet, which takes two milliseconds.
    fn execute(&mut self, commands: &[Command]) -> Vec<Reply> {
        let texts: Vec<String> = commands.iter().map(Command::to_string).collect();
        self.sent.push(texts.join("; "));
        self.now += 2;
        let unavailable = |_| Reply::Unavailable("timed-out");
        if !self.reachable {
            return commands.iter().map(unavailable).collect();
        }
        commands.iter().map(|command| self.model.execute(self.now, command)).collect()
    }

    /// The packets since the last call.
    fn sent(&mut self) -> Vec<String> {
        std::mem::take(&mut self.sent)
    }

    /// Delivers what is owed, and reads the log.
    fn sync(&mut self, node: usize) {
        let mut sync = LogSync::new(self.time());
        while let Some(command) = sync.next(self.time(), &mut self.nodes[node]) {
            let reply = self.execute(&[command]).remove(0);
            sync.reply(self.time(), reply, &mut self.nodes[node]);
        }
    }

    fn look_up(&self, node: usize) -> Lookup {
        Lookup::new(content::target(0), node as u64, self.time(), &self.nodes[node], 1)
    }

    /// Drives a lookup until it wants something other than a packet.
    fn drive(&mut self, node: usize, lookup: &mut Lookup) -> LookupStep {
        loop {
            match lookup.next(self.time(), &mut self.nodes[node], &no_ban) {
                LookupStep::Send(commands) => {
                    let replies = self.execute(&commands);
                    lookup.reply(self.time(), replies, &mut self.nodes[node]);
                }
                step => return step,
            }
        }
    }

    /// Drives a lookup through its pauses to the fetch.
    fn wait_for_fetch(&mut self, node: usize, lookup: &mut Lookup) -> Fetch {
        loop {
            match self.drive(node, lookup) {
                LookupStep::Wait(until) => self.now = until.as_millis(),
                LookupStep::Fetch(fetch) => return fetch,
                step => panic!("{step:?}"),
            }
        }
    }

    /// Looks a page up, fetches it, and stores it. The copy of the node.
    fn fill(&mut self, node: usize) -> LocalCopy {
        let mut lookup = self.look_up(node);
        let fetch = self.wait_for_fetch(node, &mut lookup);
        let began = self.time();
        lookup.fetched(outcome(fetch.position.unwrap(), 1));
        assert!(matches!(self.drive(node, &mut lookup), LookupStep::Done { filled: Some(_) }));
        LocalCopy::fetched(Token(77), began, fetch.position)
    }

    fn check(&mut self, node: usize, copy: &mut LocalCopy) -> CheckResult {
        let mut check = Check::new(content::target(0).key, self.time(), &self.nodes[node]);
        loop {
            let (now, server) = (self.time(), &mut self.nodes[node]);
            let step = content::with_subject(0, |subject| check.next(now, copy, server, subject));
            let commands = match step {
                CheckStep::Send(commands) => commands,
                CheckStep::Offer(position) => {
                    vec![check.write_back(copy, 20, content::encode(&page(1), copy.token, position, 0, 20))]
                }
                CheckStep::Done(result) => return result,
            };
            let replies = self.execute(&commands);
            check.reply(self.time(), replies, &mut self.nodes[node]);
        }
    }
}

fn page(version: u64) -> Page {
    Page { page: 0, version, rendered: 0 }
}

fn outcome(position: Position, version: u64) -> Outcome {
    Outcome::Fill {
        token: Token(77),
        ttl: 30,
        value: content::encode(&page(version), Token(77), position, 0, 30),
    }
}

#[test]
fn a_cold_key_is_claimed_fetched_and_filled() {
    let mut bench = Bench::new(1);
    let mut lookup = bench.look_up(0);
    let LookupStep::Fetch(fetch) = bench.drive(0, &mut lookup) else { panic!("no fetch") };
    assert_eq!((fetch.claimed, fetch.reason), (true, FetchReason::Absent));
    let LookupStep::Wait(renewal) = bench.drive(0, &mut lookup) else { panic!("no pause") };
    bench.now = renewal.as_millis();
    assert!(matches!(bench.drive(0, &mut lookup), LookupStep::Wait(_)));
    lookup.fetched(outcome(fetch.position.unwrap(), 1));
    assert!(matches!(bench.drive(0, &mut lookup), LookupStep::Done { filled: Some(_) }));
    assert_eq!(
        bench.sent(),
        [
            "get log value=true; get entry /0 value=true",
            "set log Absent ttl=None",
            "set claim /0 Absent ttl=Some(3); get entry /0 value=false",
            "set claim /0 Cas(2) ttl=Some(3)",
            "set entry /0 Absent ttl=Some(30); delete claim /0 cas=3",
        ]
    );
    let mut lookup = bench.look_up(0);
    assert!(matches!(bench.drive(0, &mut lookup), LookupStep::Found(_)));
    assert_eq!(bench.sent(), ["get entry /0 value=true"], "the log was read just before");
}

#[test]
fn a_node_that_dies_during_its_fetch_is_replaced() {
    let mut bench = Bench::new(2);
    let mut first = bench.look_up(0);
    assert!(bench.wait_for_fetch(0, &mut first).claimed);
    let died = bench.now;
    let mut second = bench.look_up(1);
    let fetch = bench.wait_for_fetch(1, &mut second);
    assert!(fetch.claimed, "{fetch:?}");
    assert!((2000..3500).contains(&(bench.now - died)), "after {} ms", bench.now - died);
}

#[test]
fn nobody_waits_longer_than_the_bound_for_another_node() {
    let mut bench = Bench::new(2);
    let mut first = bench.look_up(0);
    bench.wait_for_fetch(0, &mut first);
    let mut second = bench.look_up(1);
    let started = bench.now;
    let fetch = loop {
        assert!(matches!(bench.drive(0, &mut first), LookupStep::Wait(_)), "the first one fetches");
        match bench.drive(1, &mut second) {
            LookupStep::Wait(until) => bench.now = until.as_millis(),
            LookupStep::Fetch(fetch) => break fetch,
            step => panic!("{step:?}"),
        }
    };
    assert_eq!((fetch.claimed, fetch.reason), (false, FetchReason::WaitedTooLong));
    assert!((5000..5010).contains(&(bench.now - started)), "after {} ms", bench.now - started);
}

#[test]
fn an_unanswered_lookup_fetches_and_stores_nothing() {
    let mut bench = Bench::new(1);
    bench.sync(0);
    bench.reachable = false;
    let mut lookup = bench.look_up(0);
    let fetch = bench.wait_for_fetch(0, &mut lookup);
    let expected = (false, FetchReason::Unavailable, None);
    assert_eq!((fetch.claimed, fetch.reason, fetch.position), expected);
    lookup.fetched(Outcome::Nothing);
    assert!(matches!(bench.drive(0, &mut lookup), LookupStep::Done { filled: None }));
}

#[test]
fn a_mark_is_fetched_past_without_a_claim() {
    let mut bench = Bench::new(2);
    let mut lookup = bench.look_up(0);
    let fetch = bench.wait_for_fetch(0, &mut lookup);
    let value = content::mark(0, Token(5), fetch.position.unwrap());
    lookup.fetched(Outcome::Fill { token: Token(5), ttl: 120, value });
    assert!(matches!(bench.drive(0, &mut lookup), LookupStep::Done { filled: Some(_) }));
    let mut lookup = bench.look_up(1);
    let fetch = bench.wait_for_fetch(1, &mut lookup);
    assert_eq!((fetch.claimed, fetch.reason), (false, FetchReason::Marked));
    bench.sent();
    // A response that is storable after all replaces the mark.
    lookup.fetched(outcome(fetch.position.unwrap(), 1));
    assert!(matches!(bench.drive(1, &mut lookup), LookupStep::Done { filled: Some(_) }));
    assert_eq!(bench.sent(), ["set entry /0 Cas(3) ttl=Some(30)"]);
}

#[test]
fn a_tombstone_ends_a_copy_and_stops_a_fill() {
    let mut bench = Bench::new(2);
    let mut copy = bench.fill(0);
    let mut slow = bench.look_up(1);
    assert!(matches!(bench.drive(1, &mut slow), LookupStep::Found(_)));
    slow.reject(bench.time(), &bench.nodes[1]);
    let fetch = bench.wait_for_fetch(1, &mut slow);
    assert_eq!(fetch.reason, FetchReason::Unsuitable);
    bench.execute(&[tombstone(content::target(0).key, Token(9), &Sealer::checksum())]);
    assert_eq!(bench.check(0, &mut copy), CheckResult::Replaced);
    slow.fetched(outcome(fetch.position.unwrap(), 1));
    assert!(matches!(bench.drive(1, &mut slow), LookupStep::Done { filled: None }));
    let mut lookup = bench.look_up(0);
    assert_eq!(bench.wait_for_fetch(0, &mut lookup).reason, FetchReason::Tombstone);
}

#[test]
fn a_purge_during_a_fetch_outlives_the_fill() {
    let mut bench = Bench::new(3);
    let mut slow = bench.look_up(0);
    let fetch = bench.wait_for_fetch(0, &mut slow);
    let now = bench.time();
    bench.nodes[1].owe(page_purge(1, 0), now);
    bench.sync(1);
    slow.fetched(outcome(fetch.position.unwrap(), 1));
    bench.drive(0, &mut slow);
    let mut lookup = bench.look_up(2);
    let fetch = bench.wait_for_fetch(2, &mut lookup);
    assert_eq!(fetch.refusal, Some(Refusal::Purged));
}

#[test]
fn an_owed_purge_is_delivered_before_an_entry_is_read() {
    let mut bench = Bench::new(2);
    bench.fill(0);
    bench.sync(1);
    let now = bench.time();
    bench.nodes[1].owe(page_purge(1, 0), now);
    bench.sent();
    let mut lookup = bench.look_up(1);
    let fetch = bench.wait_for_fetch(1, &mut lookup);
    assert_eq!(fetch.refusal, Some(Refusal::Purged));
    let sent = bench.sent();
    assert_eq!(sent[0], "append log cas=1 62 bytes");
    assert_eq!(sent[1], "get entry /0 value=true");
    // The other node learns of it once.
    bench.sync(0);
    assert_eq!(bench.nodes[0].take_unapplied(), [page_purge(1, 0)]);
    bench.now += 6000;
    bench.sync(0);
    assert_eq!(bench.nodes[0].take_unapplied(), []);
    assert_eq!(bench.nodes[1].take_unapplied(), [], "it knows its own");
}

#[test]
fn a_lost_log_gets_what_each_node_knows() {
    let mut bench = Bench::new(2);
    let now = bench.time();
    bench.nodes[0].owe(page_purge(1, 0), now);
    bench.sync(0);
    bench.sync(1);
    let before = bench.nodes[1].position().unwrap();
    bench.model.restart();
    bench.sync(1);
    let after = bench.nodes[1].position().unwrap();
    assert_ne!(before.log, after.log);
    assert_eq!(before.offset, after.offset, "the purge of the other node, which it had read");
    let verdict = content::with_subject(0, |subject| bench.nodes[1].judge(&before, subject));
    assert_eq!(verdict, Verdict::Refuse(Refusal::OtherLog));
    // The purging node finds its record there.
    bench.sync(0);
    assert_eq!(bench.nodes[0].position(), Some(after));
}

#[test]
fn a_damaged_log_is_replaced() {
    let mut bench = Bench::new(1);
    let now = bench.time();
    bench.nodes[0].owe(page_purge(1, 0), now);
    bench.sync(0);
    bench.model.damage(content::keys().purge_log().as_bytes());
    bench.sent();
    bench.now += 6000;
    bench.sync(0);
    assert_eq!(bench.sent(), ["get log value=false", "get log value=true", "set log Cas(2) ttl=None"]);
    assert!(bench.nodes[0].is_current(bench.time()));
}

#[test]
fn a_log_of_nodes_with_a_secret_is_left_alone() {
    let mut bench = Bench::new(1);
    let secret = Secret::new(&[7; 32]).unwrap();
    let sealer = Sealer::keyed(secret, None);
    bench.nodes.push(Server::new(Settings::default(), sealer, content::keys().purge_log(), 9));
    bench.sync(1);
    bench.sent();
    let mut lookup = bench.look_up(0);
    assert_eq!(bench.wait_for_fetch(0, &mut lookup).reason, FetchReason::Unavailable);
    assert_eq!(bench.sent(), ["get log value=true; get entry /0 value=true"]);
    assert_eq!(bench.nodes[0].log_fault(), Some(EntryError::Sealed));
}

/// Two secrets rotate as the document says: old and new, new and old, new. The nodes take each step one after
/// another, and purge in between.
#[test]
fn secrets_rotate_without_a_lost_purge_or_log() {
    let secret = |byte| Secret::new(&[byte; 32]).unwrap();
    let sealer = |first, second: Option<u8>| Sealer::keyed(secret(first), second.map(secret));
    let log_key = content::keys().purge_log();
    let mut bench = Bench::new(0);
    let node = |seed| Server::new(Settings::default(), sealer(1, None), log_key, seed);
    bench.nodes = vec![node(1), node(2)];
    bench.sync(0);
    let mut number = 0;
    for (first, second) in [(1, Some(2)), (2, Some(1)), (2, None)] {
        for node in [0, 1] {
            bench.nodes[node].configure(Settings::default(), sealer(first, second), log_key);
            for purging in [0, 1] {
                number += 1;
                let now = bench.time();
                bench.nodes[purging].owe(page_purge(number, 0), now);
                [0, 1].into_iter().for_each(|node| bench.sync(node));
                [0, 1].into_iter().for_each(|node| bench.sync(node));
                assert_eq!(bench.nodes[1 - purging].take_unapplied().len(), 1, "purge {number}");
                assert_eq!(bench.nodes[purging].take_unapplied(), []);
                assert_eq!(bench.nodes[0].position(), bench.nodes[1].position());
            }
        }
    }
    // A node that starts anew reads all of it.
    bench.nodes.push(Server::new(Settings::default(), sealer(2, None), log_key, 3));
    bench.sync(2);
    assert_eq!(bench.nodes[2].log_fault(), None);
    assert_eq!(bench.nodes[2].take_unapplied().len(), usize::from(number));
}

#[test]
fn a_large_log_loses_its_oldest_records_and_refuses_what_they_covered() {
    let settings = Settings { log_bound: 400, ..Settings::default() };
    let mut bench = Bench::with_settings(2, &settings);
    bench.sync(1);
    bench.sync(0);
    let first = bench.nodes[0].position().unwrap();
    for number in 0..12 {
        let now = bench.time();
        bench.nodes[0].owe(page_purge(number, 1), now);
        bench.sync(0);
    }
    let size = bench.model.value(bench.now, content::keys().purge_log().as_bytes()).unwrap().len();
    assert!(size <= 400 + 62, "{size} bytes");
    for node in [0, 1] {
        bench.sync(node);
        let verdict = content::with_subject(0, |subject| bench.nodes[node].judge(&first, subject));
        assert_eq!(verdict, Verdict::Refuse(Refusal::BeforeLog));
    }
    assert!(bench.nodes[0].covers(&first), "it knows every record that was dropped");
    assert!(!bench.nodes[1].covers(&first));
}

#[test]
fn too_many_owed_purges_become_one_of_everything() {
    let settings = Settings { max_owed: 3, ..Settings::default() };
    let mut bench = Bench::with_settings(1, &settings);
    bench.sync(0);
    let position = bench.nodes[0].position().unwrap();
    for number in 0..4 {
        let now = bench.time();
        bench.nodes[0].owe(page_purge(number, 1), now);
    }
    bench.sync(0);
    let verdict = content::with_subject(0, |subject| bench.nodes[0].judge(&position, subject));
    assert_eq!(verdict, Verdict::Refuse(Refusal::Purged));
}

#[test]
fn a_copy_is_checked_ahead_of_time_or_first() {
    let mut bench = Bench::new(1);
    let mut copy = bench.fill(0);
    let filled = bench.now;
    assert_eq!(copy.hit(bench.time(), &bench.nodes[0], true), Hit::Serve);
    bench.now = filled + 4100;
    bench.sync(0);
    assert_eq!(copy.hit(bench.time(), &bench.nodes[0], true), Hit::ServeAndCheck);
    assert_eq!(copy.hit(bench.time(), &bench.nodes[0], true), Hit::Serve, "one check at a time");
    bench.sent();
    assert_eq!(bench.check(0, &mut copy), CheckResult::Agreed);
    assert_eq!(bench.sent(), ["get entry /0 value=false"]);
    bench.now += 6000;
    assert_eq!(copy.hit(bench.time(), &bench.nodes[0], true), Hit::CheckFirst);
    assert_eq!(copy.hit(bench.time(), &bench.nodes[0], true), Hit::AwaitCheck);
    bench.reachable = false;
    assert_eq!(bench.check(0, &mut copy), CheckResult::Unanswered);
    assert_eq!(copy.hit(bench.time(), &bench.nodes[0], true), Hit::Serve, "no wait for a while");
    bench.now += 1000;
    assert_eq!(copy.hit(bench.time(), &bench.nodes[0], true), Hit::CheckFirst);
}

#[test]
fn a_copy_refills_a_server_that_lost_everything() {
    let mut bench = Bench::new(1);
    let mut copy = bench.fill(0);
    bench.model.restart();
    bench.now += 5000;
    bench.sent();
    assert_eq!(bench.check(0, &mut copy), CheckResult::Agreed);
    assert_eq!(
        bench.sent(),
        [
            "get log value=false; get entry /0 value=false",
            "set log Absent ttl=None",
            "set entry /0 Absent ttl=Some(20)",
        ]
    );
    assert!(bench.nodes[0].covers(&copy.position.unwrap()));
    let mut lookup = bench.look_up(0);
    assert!(matches!(bench.drive(0, &mut lookup), LookupStep::Found(_)));
}

#[test]
fn a_copy_is_dropped_when_it_may_have_been_purged() {
    let dropped = |change: &dyn Fn(&mut Bench, &mut LocalCopy)| {
        let mut bench = Bench::new(2);
        let mut copy = bench.fill(0);
        bench.now += 5000;
        change(&mut bench, &mut copy);
        bench.check(0, &mut copy)
    };
    let purge = |bench: &mut Bench| {
        let now = bench.time();
        bench.nodes[1].owe(page_purge(1, 0), now);
        bench.sync(1);
    };
    let purged = dropped(&|bench, _| purge(bench));
    assert_eq!(purged, CheckResult::Dropped(Refusal::Purged));
    let purged_in_new_log = dropped(&|bench, _| {
        bench.model.restart();
        purge(bench);
    });
    assert_eq!(purged_in_new_log, CheckResult::Dropped(Refusal::Purged));
    let forgotten = dropped(&|bench, _| {
        bench.model.restart();
        bench.now += 3_600_000;
    });
    assert_eq!(forgotten, CheckResult::Dropped(Refusal::Unconfirmed));
    let without_position = dropped(&|_, copy| copy.position = None);
    assert_eq!(without_position, CheckResult::Dropped(Refusal::NoPosition));
    let replaced = dropped(&|_, copy| copy.token = Token(78));
    assert_eq!(replaced, CheckResult::Replaced);
}

#[test]
fn a_soft_purge_makes_an_entry_stale() {
    let mut bench = Bench::new(1);
    let mut copy = bench.fill(0);
    let now = bench.time();
    bench.nodes[0].owe(Record { effect: Effect::Soft, ..page_purge(1, 0) }, now);
    let mut lookup = bench.look_up(0);
    let LookupStep::Found(found) = bench.drive(0, &mut lookup) else { panic!("nothing found") };
    assert!(found.softened);
    assert_eq!(bench.check(0, &mut copy), CheckResult::Softened);
}

#[test]
fn an_entry_that_is_newer_than_the_known_log_is_judged_by_the_log_as_it_is() {
    let mut bench = Bench::new(2);
    bench.sync(0);
    bench.sync(1);
    let now = bench.time();
    bench.nodes[1].owe(page_purge(1, 1), now);
    bench.sync(1);
    bench.fill(1);
    bench.sent();
    let mut lookup = bench.look_up(0);
    assert!(matches!(bench.drive(0, &mut lookup), LookupStep::Found(_)));
    assert_eq!(bench.sent(), ["get entry /0 value=true", "get log value=false", "get log value=true"]);
}

#[test]
fn a_reply_that_was_overtaken_changes_nothing() {
    let mut bench = Bench::new(1);
    bench.sync(0);
    let known = bench.nodes[0].position();
    bench.now += 6000;
    let now = bench.time();
    let (late, _) = bench.nodes[0].log_step(now, now).unwrap();
    bench.now += 10;
    bench.sync(0);
    let now = bench.time();
    assert!(bench.nodes[0].log_reply(late, Reply::Absent, now));
    bench.sent();
    bench.sync(0);
    assert_eq!(bench.nodes[0].position(), known);
    assert_eq!(bench.sent(), ["get log value=true"]);
}

#[test]
fn a_purge_call_names_the_servers_it_did_not_reach() {
    let mut bench = Bench::new(2);
    let (now, record) = (bench.time(), page_purge(1, 0));
    let call = PurgeCall::new(record.id, now.plus(Duration::from_millis(50)));
    // The nodes of the bench stand for two servers here.
    for server in &mut bench.nodes {
        server.owe(record.clone(), now);
    }
    assert_eq!(call.outcome(now, &bench.nodes), None);
    bench.sync(0);
    assert_eq!(call.outcome(now, &bench.nodes), None);
    assert_eq!(call.outcome(now.plus(Duration::from_millis(50)), &bench.nodes), Some(vec![1]));
    bench.sync(1);
    assert_eq!(call.outcome(now, &bench.nodes), Some(vec![]));
}

#[test]
fn nothing_is_used_before_the_log_was_read() {
    let bench = Bench::new(1);
    let position = Position { log: LogId([1; 16]), offset: 0 };
    let verdict = content::with_subject(0, |subject| bench.nodes[0].judge(&position, subject));
    assert_eq!(verdict, Verdict::Refuse(Refusal::OtherLog));
    assert!(!bench.nodes[0].covers(&position));
}
