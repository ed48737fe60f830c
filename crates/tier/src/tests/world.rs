//! A history: nodes, servers, the origin and the network between them, in virtual time, drawn from a seed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use sandarac_balance::{Backoff, Random};
use sandarac_message::Timestamp;
use sandarac_wire::entry::{Record, RecordId};

use super::checker::{self, Checker};
use super::content::{self, PAGES, Page};
use super::memcached::Model;
use super::node::Node;
use crate::command::{Command, Reply};
use crate::settings::Settings;

/// The deadline of an operation.
pub(super) const DEADLINE: u64 = 50;
/// The longest fetch.
pub(super) const SLOWEST_FETCH: u64 = 8000;
/// The time after which nothing new happens.
const END: u64 = 60_000;

/// The kind of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Everything happens.
    Faults,
    /// No faults and no purges: only requests and expiry.
    Quiet,
}

#[derive(Clone, Debug)]
pub(super) enum Event {
    Request {
        node: usize,
        page: usize,
    },
    Update {
        page: usize,
    },
    Purge {
        node: usize,
        record: Record,
    },
    /// A purge that the servers owe reaches the RAM of its node.
    Apply {
        node: usize,
        incarnation: u32,
        record: Record,
    },
    /// The node looks after its purge logs.
    Upkeep {
        node: usize,
        incarnation: u32,
    },
    Fault(Fault),
    /// A packet reaches a server.
    Arrive {
        packet: Packet,
    },
    Reply {
        packet: Packet,
        replies: Vec<Reply>,
    },
    /// The deadline of a packet.
    Deadline {
        packet: Packet,
    },
    /// A task wants to be called.
    Wake {
        node: usize,
        incarnation: u32,
        task: u64,
    },
    Render {
        node: usize,
        incarnation: u32,
        task: u64,
        page: usize,
        left: u64,
    },
    Fetched {
        node: usize,
        incarnation: u32,
        task: u64,
        page: Page,
    },
    FetchFailed {
        node: usize,
        incarnation: u32,
        task: u64,
        page: usize,
    },
}

#[derive(Clone, Debug)]
pub(super) enum Fault {
    RestartServer(usize),
    Flush(usize),
    EvictLog(usize),
    DamageLog(usize),
    EvictOne(usize, usize),
    Freeze(usize, u64),
    Partition(usize, usize, u64),
    LoseReplies(usize, usize, u64),
    RestartNode(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) node: usize,
    pub(super) incarnation: u32,
    pub(super) server: usize,
    server_incarnation: u32,
    pub(super) task: u64,
    /// Numbers the packets of a history, so that a late reply is not taken for another's.
    pub(super) number: u64,
    sent: u64,
    commands: Vec<Command>,
}

struct Server {
    model: Model,
    incarnation: u32,
    frozen_until: u64,
}

/// The state of the way between a node and a server.
#[derive(Clone, Copy, Default)]
struct Link {
    cut_until: u64,
    loses_replies_until: u64,
    /// The last time at which anything was wrong on it.
    disturbed: u64,
}

/// All but the nodes.
pub(super) struct World {
    pub(super) now: u64,
    pub(super) random: Random,
    pub(super) checker: Checker,
    pub(super) settings: Settings,
    pub(super) kind: Kind,
    trace: Option<Vec<String>>,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    pending: BTreeMap<u64, Event>,
    sequence: u64,
    servers: Vec<Server>,
    links: Vec<Vec<Link>>,
    versions: [u64; PAGES],
}

/// The counts of a history.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) events: u64,
    pub(super) responses: u64,
    pub(super) fetches: u64,
    pub(super) from_tier: u64,
}

/// Runs the history of a seed. The error has the violation and, if wanted, the trace.
pub(super) fn run(seed: u64, kind: Kind, traced: bool) -> Result<Totals, String> {
    let mut random = Random::new(seed);
    let node_count = 2 + random.below(3);
    let server_count = 1 + random.below(4);
    let settings = Settings {
        purge_memory: Duration::from_secs(25),
        log_bound: 1500,
        poll: Backoff { first: Duration::from_millis(10), longest: Duration::from_millis(200) },
        ..Settings::default()
    };
    let server = |_| Server { model: Model::default(), incarnation: 0, frozen_until: 0 };
    let mut world = World {
        now: 1_000_000,
        checker: Checker::new(node_count, server_count, &settings),
        kind,
        trace: traced.then(Vec::new),
        events: BinaryHeap::new(),
        pending: BTreeMap::new(),
        sequence: 0,
        servers: (0..server_count).map(server).collect(),
        links: vec![vec![Link::default(); server_count]; node_count],
        versions: [1; PAGES],
        settings,
        random,
    };
    world.plan(node_count, server_count);
    let mut nodes: Vec<Node> =
        (0..node_count).map(|number| Node::new(number, server_count, 0, &mut world)).collect();
    let mut totals = Totals::default();
    while let Some(Reverse((at, sequence))) = world.events.pop() {
        world.now = at;
        totals.events += 1;
        let Some(event) = world.pending.remove(&sequence) else { continue };
        world.handle(event, &mut nodes);
        if let Some(violation) = world.checker.violation.take() {
            let trace = world.trace.unwrap_or_default().join("\n");
            return Err(format!("{trace}\n{}: {violation}", world.now - 1_000_000));
        }
        if at > 1_000_000 + END + 15_000 {
            break;
        }
    }
    (totals.responses, totals.fetches) = (world.checker.responses, world.checker.fetches);
    totals.from_tier = world.checker.from_tier;
    Ok(totals)
}

impl World {
    /// Draws the events that come from outside.
    fn plan(&mut self, nodes: usize, servers: usize) {
        let start = self.now;
        let at = |random: &mut Random| start + random.below(END as usize) as u64;
        for _ in 0..40 {
            let (when, page) = (at(&mut self.random), self.random.below(PAGES));
            for _ in 0..1 + self.random.below(6) {
                let node = self.random.below(nodes);
                let most = if self.random.below(2) == 0 { 20 } else { 9000 };
                let soon = self.random.below(most) as u64;
                self.at(when + soon, Event::Request { node, page });
            }
        }
        if self.kind == Kind::Quiet {
            return;
        }
        for _ in 0..4 + self.random.below(12) {
            let (when, page) = (at(&mut self.random), self.random.below(PAGES - 1));
            self.at(when, Event::Update { page });
            let form = self.random.below(12);
            let record = Record {
                id: RecordId(std::array::from_fn(|_| self.random.bits() as u8)),
                made: Timestamp::from_millis(when),
                effect: sandarac_wire::entry::Effect::Hard,
                purge: content::purge(page, form),
            };
            let node = self.random.below(nodes);
            let soon = self.random.below(40) as u64;
            self.at(when + soon, Event::Purge { node, record });
            // The page is often wanted just then.
            for _ in 0..self.random.below(4) {
                let (node, soon) = (self.random.below(nodes), self.random.below(1500) as u64);
                self.at((when + soon).saturating_sub(700), Event::Request { node, page });
            }
        }
        // Changes without a purge reach clients when an entry is lost or has expired.
        for _ in 0..self.random.below(8) {
            let (when, page) = (at(&mut self.random), self.random.below(PAGES - 1));
            self.at(when, Event::Update { page });
        }
        for _ in 0..self.random.below(9) {
            let when = at(&mut self.random);
            let (node, server) = (self.random.below(nodes), self.random.below(servers));
            let most = if self.random.below(2) == 0 { 300 } else { 15_000 };
            let lasts = 20 + self.random.below(most) as u64;
            let fault = match self.random.below(9) {
                0 => Fault::RestartServer(server),
                1 => Fault::Flush(server),
                2 => Fault::EvictLog(server),
                3 => Fault::DamageLog(server),
                4 => Fault::EvictOne(server, self.random.below(100)),
                5 => Fault::Freeze(server, lasts),
                6 => Fault::Partition(node, server, lasts),
                7 => Fault::LoseReplies(node, server, lasts),
                _ => Fault::RestartNode(node),
            };
            self.at(when, Event::Fault(fault));
        }
    }

    pub(super) fn at(&mut self, when: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((when, self.sequence)));
        self.pending.insert(self.sequence, event);
    }

    pub(super) fn timestamp(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    pub(super) fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>6} {}", self.now - 1_000_000, text()));
        }
    }

    /// Sends a packet, and returns its number.
    pub(super) fn send(
        &mut self,
        from: (usize, u32),
        task: u64,
        server: usize,
        commands: Vec<Command>,
    ) -> u64 {
        let (node, incarnation) = from;
        self.sequence += 1;
        let number = self.sequence;
        let server_incarnation = self.servers[server].incarnation;
        let sent = self.now;
        let packet = Packet { node, incarnation, server, server_incarnation, task, number, sent, commands };
        self.at(self.now + DEADLINE, Event::Deadline { packet: packet.clone() });
        if self.links[node][server].cut_until <= self.now {
            let delay = 1 + self.random.below(20) as u64;
            self.at(self.now + delay, Event::Arrive { packet });
        }
        number
    }

    /// The versions of the origin.
    pub(super) fn versions(&self) -> &[u64; PAGES] {
        &self.versions
    }

    /// Since when nothing has been wrong between a node and a server.
    pub(super) fn reachable_since(&self, node: usize, server: usize) -> u64 {
        let (link, frozen) = (&self.links[node][server], self.servers[server].frozen_until);
        link.disturbed.max(link.cut_until).max(link.loses_replies_until).max(frozen)
    }

    pub(super) fn server_of(&self, page: usize) -> usize {
        page % self.servers.len()
    }

    /// The value of an item, whatever the network does.
    pub(super) fn stored(&self, server: usize, key: &[u8]) -> Option<bytes::Bytes> {
        self.servers[server].model.value(self.now, key)
    }

    fn handle(&mut self, event: Event, nodes: &mut [Node]) {
        match event {
            Event::Request { node, page } => nodes[node].request(page, self),
            Event::Update { page } => {
                self.versions[page] += 1;
                let version = self.versions[page];
                self.note(|| format!("origin: /{page} is version {version}"));
            }
            Event::Purge { node, record } => {
                self.note(|| format!("node {node}: purge {:?} of {:?}", record.id.0[0], record.purge));
                nodes[node].purge(record, self);
            }
            Event::Apply { node, incarnation, record } if nodes[node].incarnation == incarnation => {
                nodes[node].apply_own(&record, self);
            }
            Event::Upkeep { node, incarnation } if nodes[node].incarnation == incarnation => {
                nodes[node].upkeep(self);
            }
            Event::Fault(fault) => self.fault(&fault, nodes),
            Event::Arrive { packet } => self.arrive(packet),
            Event::Reply { packet, replies } => {
                let link = &mut self.links[packet.node][packet.server];
                if link.cut_until.max(link.loses_replies_until) > self.now {
                    return;
                }
                nodes[packet.node].reply(&packet, replies, self);
            }
            Event::Deadline { packet } => {
                let replies = vec![Reply::Unavailable("timed-out"); packet.commands.len()];
                if nodes[packet.node].awaits(&packet) {
                    let (node, server) = (packet.node, packet.server);
                    self.links[node][server].disturbed = self.now;
                    self.note(|| format!("node {node}: no reply from server {server}"));
                }
                nodes[packet.node].reply(&packet, replies, self);
            }
            Event::Wake { node, incarnation, task } if nodes[node].incarnation == incarnation => {
                nodes[node].proceed(task, self);
            }
            Event::Render { node, incarnation, task, page, left } => {
                let rendered = Page { page, version: self.versions[page], rendered: self.now };
                self.at(self.now + left, Event::Fetched { node, incarnation, task, page: rendered });
            }
            Event::Fetched { node, incarnation, task, page } => {
                self.checker.fetch_ended(page.page);
                if nodes[node].incarnation == incarnation {
                    nodes[node].fetched(task, page, self);
                }
            }
            Event::FetchFailed { node, incarnation, task, page } => {
                self.checker.fetch_ended(page);
                if nodes[node].incarnation == incarnation {
                    nodes[node].fetch_failed(task, self);
                }
            }
            Event::Apply { .. } | Event::Upkeep { .. } | Event::Wake { .. } => {}
        }
    }

    fn arrive(&mut self, packet: Packet) {
        let server = &mut self.servers[packet.server];
        if server.incarnation != packet.server_incarnation {
            return;
        }
        if server.frozen_until > self.now {
            let thaw = server.frozen_until + 1;
            return self.at(thaw, Event::Arrive { packet });
        }
        let mut replies = Vec::new();
        for command in &packet.commands {
            let reply = self.servers[packet.server].model.execute(self.now, command);
            self.note(|| format!("  server {}: {command} → {}", packet.server, brief(&reply)));
            checker::executed(self, packet.server, command, &reply, packet.sent);
            replies.push(reply);
        }
        let delay = 1 + self.random.below(20) as u64;
        self.at(self.now + delay, Event::Reply { packet, replies });
    }

    fn fault(&mut self, fault: &Fault, nodes: &mut [Node]) {
        self.note(|| format!("fault: {fault:?}"));
        let now = self.now;
        let log = content::keys().purge_log();
        match *fault {
            Fault::RestartServer(server) => {
                self.servers[server].model.restart();
                self.servers[server].incarnation += 1;
            }
            Fault::Flush(server) => self.servers[server].model.flush(),
            Fault::EvictLog(server) => self.servers[server].model.evict(log.as_bytes()),
            Fault::DamageLog(server) => self.servers[server].model.damage(log.as_bytes()),
            Fault::EvictOne(server, drawn) => {
                let keys = self.servers[server].model.keys();
                if let Some(key) = keys.get(drawn % keys.len().max(1)) {
                    self.servers[server].model.evict(key);
                }
            }
            Fault::Freeze(server, lasts) => self.servers[server].frozen_until = now + lasts,
            Fault::Partition(node, server, lasts) => self.links[node][server].cut_until = now + lasts,
            Fault::LoseReplies(node, server, lasts) => {
                self.links[node][server].loses_replies_until = now + lasts;
            }
            Fault::RestartNode(number) => {
                let incarnation = nodes[number].incarnation + 1;
                self.checker.node_restarted(number);
                nodes[number] = Node::new(number, nodes[number].servers.len(), incarnation, self);
            }
        }
        if let Fault::RestartServer(server)
        | Fault::Flush(server)
        | Fault::EvictLog(server)
        | Fault::DamageLog(server)
        | Fault::EvictOne(server, _) = *fault
        {
            checker::log_changed(self, server);
        }
    }
}

fn brief(reply: &Reply) -> String {
    match reply {
        Reply::Item(item) => format!("{} bytes, cas {}, left {:?}", item.size, item.cas, item.left),
        other => format!("{other:?}"),
    }
}

impl std::fmt::Display for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Command::Get { key, value } => write!(f, "get {} value={value}", name(key.as_str())),
            Command::Set { key, condition, ttl, .. } => {
                write!(f, "set {} {condition:?} ttl={ttl:?}", name(key.as_str()))
            }
            Command::Append { key, cas, value } => {
                write!(f, "append {} cas={cas} {} bytes", name(key.as_str()), value.len())
            }
            Command::Delete { key, cas } => write!(f, "delete {} cas={cas}", name(key.as_str())),
        }
    }
}

/// A short name of a server key.
fn name(key: &str) -> String {
    let named = (0..PAGES).map(|page| (page, content::target(page)));
    for (page, target) in named {
        if target.key.as_str() == key {
            return format!("entry /{page}");
        }
        if target.claim().as_str() == key {
            return format!("claim /{page}");
        }
    }
    "log".to_owned()
}
