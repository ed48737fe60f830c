//! The bounds of the protocol, tested against what really happened in a history.

use sandarac_wire::entry::{Content, Item, LogId, PurgeLog, Record, Sealer};

use super::content::{self, FRESH, PAGES, Page};
use super::world::{DEADLINE, Kind, SLOWEST_FETCH, World};
use crate::command::{Command, Condition, Reply};
use crate::purge_index::matches;
use crate::settings::Settings;

/// The true course of a history.
pub(super) struct Checker {
    pub(super) violation: Option<String>,
    pub(super) responses: u64,
    pub(super) fetches: u64,
    pub(super) from_tier: u64,
    purges: Vec<Purged>,
    /// The log of each server, and since when it has been there.
    logs: Vec<(Option<LogId>, u64)>,
    /// Whether records were dropped from the log of each server.
    is_cut: Vec<bool>,
    entries: [Option<Entry>; PAGES],
    fetching: [u32; PAGES],
    /// How much later than at its deadline a fill was executed by a server that had been stopped.
    late: [u64; PAGES],
    bound: u64,
    memory: u64,
    node_count: usize,
}

/// A purge that was made.
struct Purged {
    record: Record,
    /// The oldest versions that it does not apply to; 0 for pages that it leaves alone.
    valid_from: [u64; PAGES],
    /// Since when the log of each server has had it without a gap.
    in_log: Vec<Option<u64>>,
    /// Since when each node has known it, by its own doing or from the log of each server.
    known: Vec<Vec<Option<u64>>>,
}

/// An entry that a server has.
struct Entry {
    version: u64,
    since: u64,
    log: LogId,
}

/// The source of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Ram,
    Tier,
    Origin,
}

impl Checker {
    pub(super) fn new(node_count: usize, server_count: usize, settings: &Settings) -> Checker {
        Checker {
            violation: None,
            responses: 0,
            fetches: 0,
            from_tier: 0,
            purges: Vec::new(),
            logs: vec![(None, 0); server_count],
            is_cut: vec![false; server_count],
            entries: [const { None }; PAGES],
            fetching: [0; PAGES],
            late: [0; PAGES],
            bound: settings.local_ttl.as_millis() as u64 + DEADLINE,
            memory: settings.purge_memory.as_millis() as u64,
            node_count,
        }
    }

    fn violate(&mut self, text: String) {
        self.violation.get_or_insert(text);
    }

    pub(super) fn purge_made(&mut self, record: &Record, versions: &[u64; PAGES]) {
        let applies = |page| content::with_subject(page, |subject| matches(&record.purge, subject));
        self.purges.push(Purged {
            record: record.clone(),
            valid_from: std::array::from_fn(|page| if applies(page) { versions[page] } else { 0 }),
            in_log: vec![None; self.logs.len()],
            known: vec![vec![None; self.logs.len()]; self.node_count],
        });
    }

    pub(super) fn purge_known(&mut self, node: usize, server: usize, record: &Record, now: u64) {
        for purge in self.purges.iter_mut().filter(|purge| purge.record.id == record.id) {
            purge.known[node][server].get_or_insert(now);
        }
    }

    pub(super) fn node_restarted(&mut self, node: usize) {
        self.purges.iter_mut().for_each(|purge| purge.known[node].fill(None));
    }

    pub(super) fn fetch_ended(&mut self, page: usize) {
        self.fetching[page] -= 1;
    }

    /// A request or a machine has waited from `started` until now.
    pub(super) fn waited(&mut self, what: &str, started: u64, now: u64, at_most: u64) {
        if now > started + at_most {
            self.violate(format!("{what} took {} ms", now - started));
        }
    }
}

/// A node begins a fetch.
pub(super) fn fetch_begins(world: &mut World, node: usize, page: usize) {
    world.checker.fetches += 1;
    world.checker.fetching[page] += 1;
    let is_double = world.checker.fetching[page] > 1 && page < PAGES - 1;
    if world.kind == Kind::Quiet && is_double {
        world.checker.violate(format!("node {node} fetches /{page}, which another fetches already"));
    }
}

/// A server executed a command that was sent at this time.
pub(super) fn executed(world: &mut World, server: usize, command: &Command, reply: &Reply, sent: u64) {
    if !matches!(reply, Reply::Stored(_)) {
        return;
    }
    let (Command::Set { key, .. } | Command::Append { key, .. }) = command else { return };
    if *key == content::keys().purge_log() {
        return log_changed(world, server);
    }
    let Command::Set { condition, value, .. } = command else { return };
    let Some(page) = (0..PAGES).find(|page| content::target(*page).key == *key) else { return };
    let now = world.now;
    let decoded = Item::decode(&Sealer::checksum(), key, value.concat());
    let (item, body) = decoded.expect("nodes write valid items");
    let checker = &mut world.checker;
    let Content::Representation(attributes) = item.content else {
        checker.entries[page] = None;
        return;
    };
    if now > sent + DEADLINE {
        checker.late[page] = checker.late[page].max(now - sent);
    }
    let entry = Entry { version: content::decode(&body).version, since: now, log: attributes.position.log };
    let usable = |entry: &Entry| Some(entry.log) == checker.logs[server].0;
    if let Some(old) = &checker.entries[page]
        && *condition != Condition::Absent
        && usable(old)
        && usable(&entry)
        && old.version > entry.version
    {
        let text = format!("version {} of /{page} replaced version {}", entry.version, old.version);
        checker.violate(text);
    }
    checker.entries[page] = Some(entry);
}

/// The log of a server may be another one now, and its items may have gone.
pub(super) fn log_changed(world: &mut World, server: usize) {
    let key = content::keys().purge_log();
    let stored = world.stored(server, key.as_bytes());
    let log = stored.and_then(|value| PurgeLog::decode(&Sealer::checksum(), &key, value, None).ok());
    let missing: Vec<usize> = (0..PAGES)
        .filter(|page| world.server_of(*page) == server)
        .filter(|page| world.stored(server, content::target(*page).key.as_bytes()).is_none())
        .collect();
    let now = world.now;
    let checker = &mut world.checker;
    missing.into_iter().for_each(|page| checker.entries[page] = None);
    let id = log.as_ref().map(|log| log.header().id);
    checker.is_cut[server] = log.as_ref().is_some_and(|log| log.header().base > 0);
    let is_same = id.is_some() && checker.logs[server].0 == id;
    if !is_same {
        checker.logs[server] = (id, now);
    }
    let records: Vec<Record> = log.iter().flat_map(|log| log.records()).map(|(_, record)| record).collect();
    for purge in &mut checker.purges {
        let is_there = records.iter().any(|record| record.id == purge.record.id);
        purge.in_log[server] = match purge.in_log[server] {
            // The record may have been dropped since: entries that it applies to are then before the base.
            Some(since) if is_same => Some(since),
            _ => is_there.then_some(now),
        };
    }
}

/// A request that began at `started` gets a response.
pub(super) fn response(
    world: &mut World,
    node: usize,
    wanted: usize,
    page: &Page,
    source: Source,
    started: u64,
) {
    world.note(|| format!("node {node}: /{wanted} version {} from {source:?}", page.version));
    let server = world.server_of(wanted);
    let (now, reachable_since) = (world.now, world.reachable_since(node, server));
    let settings_wait = world.settings.shared_wait.as_millis() as u64;
    let is_stored = world.stored(server, content::target(wanted).key.as_bytes()).is_some();
    let checker = &mut world.checker;
    checker.responses += 1;
    checker.from_tier += u64::from(source == Source::Tier);
    if page.page != wanted {
        checker.violate(format!("node {node} answered /{wanted} with /{}", page.page));
    }
    if now > page.rendered + FRESH + checker.late[wanted] {
        checker.violate(format!("node {node} served /{wanted} at the age of {}", now - page.rendered));
    }
    // A check, a lookup, and a fetch.
    let most = settings_wait + 8 * DEADLINE + SLOWEST_FETCH;
    checker.waited(&format!("a request of node {node}"), started, now, most);
    let Some(asked) = started.checked_sub(checker.bound) else { return };
    let in_contact = reachable_since <= asked;
    let mut found = None;
    for purge in checker.purges.iter().filter(|purge| page.version < purge.valid_from[wanted]) {
        let id = purge.record.id.0[0];
        if purge.known[node][server].is_some_and(|known| known < started) {
            found = Some(format!("node {node} served /{wanted} against purge {id}, which it knows"));
        } else if in_contact && purge.in_log[server].is_some_and(|since| since <= asked) {
            found = Some(format!("node {node} served /{wanted} against purge {id}, which is in the log"));
        }
    }
    if let Some(entry) = checker.entries[wanted].as_ref().filter(|_| is_stored)
        && source == Source::Ram
        && in_contact
        && entry.version > page.version
        && entry.since <= asked
        && checker.logs[server].0 == Some(entry.log)
    {
        found =
            Some(format!("node {node} served /{wanted} from RAM; the tier has version {}", entry.version));
    }
    if let Some(text) = found {
        checker.violate(text);
    }
}

/// A node looks after its logs: what it knows has been delivered where it could be.
pub(super) fn deliveries(world: &mut World, node: usize) {
    let bound = world.checker.bound;
    // What was dropped from a log is covered by its base.
    for server in
        (0..world.checker.logs.len()).filter(|server| !world.checker.is_cut[*server]).collect::<Vec<_>>()
    {
        let since = world.reachable_since(node, server).max(world.checker.logs[server].1) + bound;
        let now = world.now;
        let checker = &mut world.checker;
        let late = checker.purges.iter().find(|purge| {
            let known = purge.known[node][server].filter(|known| known + bound <= now);
            let remembered = known.is_some_and(|known| now + bound < known + checker.memory);
            remembered && since <= now && purge.in_log[server].is_none()
        });
        if let Some(late) = late {
            let id = late.record.id.0[0];
            checker.violate(format!("node {node} has not delivered purge {id} to server {server}"));
        }
    }
}
