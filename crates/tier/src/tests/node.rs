//! A node: an abstract RAM, and the machines, driven as the proxy drives them.

use std::collections::BTreeMap;

use sandarac_message::Timestamp;
use sandarac_wire::entry::{Content, Record, Sealer, Token};

use super::checker::{self, Source};
use super::content::{self, FRESH, PAGES, Page};
use super::world::{DEADLINE, Event, Kind, Packet, SLOWEST_FETCH, World};
use crate::check::{Check, CheckResult, CheckStep};
use crate::command::Reply;
use crate::local_copy::{Hit, LocalCopy};
use crate::log_sync::LogSync;
use crate::lookup::{Fetch, Found, Lookup, LookupStep, Outcome};
use crate::purge_index::matches;
use crate::server::{Server, Verdict};
use crate::shared_copy::SharedCopy;

pub(super) struct Node {
    number: usize,
    pub(super) incarnation: u32,
    pub(super) servers: Vec<Server>,
    ram: BTreeMap<usize, Object>,
    tasks: BTreeMap<u64, Task>,
    next_task: u64,
}

struct Object {
    page: Page,
    /// When it was received from the origin, as far as this node knows, less its age then.
    born: u64,
    copy: SharedCopy,
}

struct Task {
    server: usize,
    page: usize,
    machine: Machine,
    started: u64,
    /// The packet whose replies are awaited.
    packet: Option<u64>,
    /// When the requests began that wait for it.
    waiters: Vec<u64>,
    /// A purge has come since: later requests do not join it, and RAM does not keep its response.
    condemned: bool,
    fetch: Option<(Fetch, u64)>,
    token: Token,
}

enum Machine {
    Sync(LogSync),
    Check(Check),
    Lookup(Box<Lookup>),
}

fn no_ban(_: &Content, expression: &str) -> bool {
    expression == "every"
}

impl Node {
    pub(super) fn new(number: usize, servers: usize, incarnation: u32, world: &mut World) -> Node {
        let log_key = content::keys().purge_log();
        let server =
            |_| Server::new(world.settings.clone(), Sealer::checksum(), log_key, world.random.bits());
        let servers = (0..servers).map(server).collect();
        world.at(world.now + 500, Event::Upkeep { node: number, incarnation });
        Node { number, incarnation, servers, ram: BTreeMap::new(), tasks: BTreeMap::new(), next_task: 0 }
    }

    fn start(&mut self, page: usize, server: usize, machine: Machine, waiters: Vec<u64>, world: &mut World) {
        self.next_task += 1;
        let token = match (&machine, self.ram.get(&page)) {
            (Machine::Check(_), Some(object)) => object.copy.token(),
            _ => Token(world.random.bits()),
        };
        let started = world.now;
        let (packet, condemned, fetch) = (None, false, None);
        let task = Task { server, page, machine, started, packet, waiters, condemned, fetch, token };
        self.tasks.insert(self.next_task, task);
        self.proceed(self.next_task, world);
    }

    pub(super) fn request(&mut self, page: usize, world: &mut World) {
        world.note(|| format!("node {}: request for /{page}", self.number));
        self.serve(page, world.now, world);
    }

    /// Serves a request that began at `started`.
    fn serve(&mut self, page: usize, started: u64, world: &mut World) {
        let (now, server) = (world.timestamp(), world.server_of(page));
        let object = self.ram.get_mut(&page).filter(|object| world.now < object.born + FRESH);
        let Some(object) = object else { return self.look_up(page, vec![started], world) };
        let hit = match object.copy.is_trusted(now) {
            true => Hit::Serve,
            false => object.copy.hit(now, &self.servers[server], true),
        };
        if matches!(hit, Hit::Serve | Hit::ServeAndCheck) {
            checker::response(world, self.number, page, &object.page, Source::Ram, started);
        }
        match hit {
            Hit::Serve => {}
            Hit::ServeAndCheck => self.check(page, Vec::new(), world),
            Hit::CheckFirst => self.check(page, vec![started], world),
            Hit::AwaitCheck => {
                let is_check =
                    |task: &&mut Task| task.page == page && matches!(task.machine, Machine::Check(_));
                match self.tasks.values_mut().find(is_check) {
                    Some(task) => task.waiters.push(started),
                    None => world.checker.violation = Some("no check is in flight".to_owned()),
                }
            }
        }
    }

    fn check(&mut self, page: usize, waiters: Vec<u64>, world: &mut World) {
        let server = world.server_of(page);
        let check = Check::new(content::target(page).key, world.timestamp(), &self.servers[server]);
        self.start(page, server, Machine::Check(check), waiters, world);
    }

    fn look_up(&mut self, page: usize, waiters: Vec<u64>, world: &mut World) {
        let is_flight = |task: &&mut Task| {
            task.page == page && !task.condemned && matches!(task.machine, Machine::Lookup(_))
        };
        if page < PAGES - 1
            && let Some(task) = self.tasks.values_mut().find(is_flight)
        {
            return task.waiters.extend(waiters);
        }
        let server = world.server_of(page);
        let (node, seed) = (self.number as u64, world.random.bits());
        let now = world.timestamp();
        let lookup = Lookup::new(content::target(page), node, now, &self.servers[server], seed);
        self.start(page, server, Machine::Lookup(Box::new(lookup)), waiters, world);
    }

    pub(super) fn upkeep(&mut self, world: &mut World) {
        checker::deliveries(world, self.number);
        for server in 0..self.servers.len() {
            self.start(PAGES, server, Machine::Sync(LogSync::new(world.timestamp())), Vec::new(), world);
        }
        let pause = 1500 + world.random.below(1000) as u64;
        world.at(world.now + pause, Event::Upkeep { node: self.number, incarnation: self.incarnation });
    }

    pub(super) fn purge(&mut self, record: Record, world: &mut World) {
        let versions = *world.versions();
        world.checker.purge_made(&record, &versions);
        for server in 0..self.servers.len() {
            self.servers[server].owe(record.clone(), world.timestamp());
            self.start(PAGES, server, Machine::Sync(LogSync::new(Timestamp::default())), Vec::new(), world);
        }
        // Other threads of the node go on in between: what they read from a server meanwhile must not enter RAM behind the purge.
        let soon = world.random.below(20) as u64;
        world.at(world.now + soon, Event::Apply { node: self.number, incarnation: self.incarnation, record });
    }

    /// Applies a purge of this node, of which its servers are to be told, to RAM.
    pub(super) fn apply_own(&mut self, record: &Record, world: &mut World) {
        self.apply(record);
        for server in 0..self.servers.len() {
            world.checker.purge_known(self.number, server, record, world.now);
        }
    }

    /// Applies a purge to RAM and to fetches in flight.
    fn apply(&mut self, record: &Record) {
        let applies = |page: usize| content::with_subject(page, |subject| matches(&record.purge, subject));
        self.ram.retain(|page, _| !applies(*page));
        let affected = self.tasks.values_mut().filter(|task| task.page < PAGES && applies(task.page));
        affected.for_each(|task| task.condemned = true);
    }

    pub(super) fn awaits(&self, packet: &Packet) -> bool {
        self.incarnation == packet.incarnation
            && self.tasks.get(&packet.task).is_some_and(|task| task.packet == Some(packet.number))
    }

    pub(super) fn reply(&mut self, packet: &Packet, replies: Vec<Reply>, world: &mut World) {
        if !self.awaits(packet) {
            return;
        }
        let now = world.timestamp();
        let Some(task) = self.tasks.get_mut(&packet.task) else { return };
        task.packet = None;
        let server = &mut self.servers[task.server];
        match &mut task.machine {
            Machine::Sync(sync) => replies.into_iter().for_each(|reply| sync.reply(now, reply, server)),
            Machine::Check(check) => check.reply(now, replies, server),
            Machine::Lookup(lookup) => lookup.reply(now, replies, server),
        }
        let number = task.server;
        for record in server.take_unapplied() {
            self.apply(&record);
            world.checker.purge_known(self.number, number, &record, world.now);
        }
        self.proceed(packet.task, world);
    }

    pub(super) fn proceed(&mut self, id: u64, world: &mut World) {
        if self.tasks.get(&id).is_none_or(|task| task.packet.is_some()) {
            return;
        }
        let mut task = self.tasks.remove(&id).expect("it was found");
        let goes_on = match &mut task.machine {
            Machine::Sync(sync) => match sync.next(world.timestamp(), &mut self.servers[task.server]) {
                Some(command) => {
                    task.packet = Some(self.send(id, task.server, vec![command], world));
                    true
                }
                None => false,
            },
            Machine::Check(_) => self.proceed_check(id, &mut task, world),
            Machine::Lookup(_) => self.proceed_lookup(id, &mut task, world),
        };
        if goes_on {
            self.tasks.insert(id, task);
        }
    }

    fn send(&self, id: u64, server: usize, commands: Vec<crate::Command>, world: &mut World) -> u64 {
        world.send((self.number, self.incarnation), id, server, commands)
    }

    fn proceed_check(&mut self, id: u64, task: &mut Task, world: &mut World) -> bool {
        let Machine::Check(check) = &mut task.machine else { return false };
        let (now, page) = (world.timestamp(), task.page);
        let waiters = std::mem::take(&mut task.waiters);
        let server = &mut self.servers[task.server];
        let object = self.ram.get_mut(&page).filter(|object| object.copy.token() == task.token);
        let Some(object) = object else {
            waiters.into_iter().for_each(|started| self.serve(page, started, world));
            return false;
        };
        let mut step = object
            .copy
            .with(|copy| content::with_subject(page, |subject| check.next(now, copy, server, subject)));
        if let CheckStep::Offer(position) = step {
            let age = world.now - object.born;
            let ttl = FRESH.saturating_sub(age).div_ceil(1000) as u32;
            step = if ttl == 0 {
                check.keep();
                CheckStep::Done(CheckResult::Agreed)
            } else {
                let value = content::encode(&object.page, object.copy.token(), position, age, ttl);
                CheckStep::Send(vec![object.copy.with(|copy| check.write_back(copy, ttl, value))])
            };
        }
        match step {
            CheckStep::Send(commands) => {
                task.packet = Some(self.send(id, task.server, commands, world));
                task.waiters = waiters;
                return true;
            }
            CheckStep::Done(CheckResult::Agreed | CheckResult::Unanswered) => {
                let (page_there, is_fresh) = (object.page, world.now < object.born + FRESH);
                for started in waiters {
                    if is_fresh {
                        checker::response(world, self.number, page, &page_there, Source::Ram, started);
                    } else {
                        self.look_up(page, vec![started], world);
                    }
                }
            }
            CheckStep::Done(result) => {
                world.note(|| format!("node {}: copy of /{page} is {result:?}", self.number));
                self.ram.remove(&page);
                if !waiters.is_empty() {
                    self.look_up(page, waiters, world);
                }
            }
            CheckStep::Offer(_) => unreachable!("offers were answered"),
        }
        world.checker.waited("a check", task.started, world.now, 5 * DEADLINE);
        false
    }

    fn proceed_lookup(&mut self, id: u64, task: &mut Task, world: &mut World) -> bool {
        let Machine::Lookup(lookup) = &mut task.machine else { return false };
        loop {
            let now = world.timestamp();
            let server = &mut self.servers[task.server];
            match lookup.next(now, server, &no_ban) {
                LookupStep::Send(commands) => {
                    task.packet = Some(self.send(id, task.server, commands, world));
                    return true;
                }
                LookupStep::Wait(until) => {
                    if until.as_millis() < u64::MAX {
                        let (node, incarnation) = (self.number, self.incarnation);
                        world.at(until.as_millis(), Event::Wake { node, incarnation, task: id });
                    }
                    return true;
                }
                LookupStep::Found(found) => {
                    let (page, born) = received(&found);
                    if world.now >= born + FRESH {
                        lookup.reject(now, server);
                        continue;
                    }
                    lookup.accept();
                    let copy =
                        SharedCopy::found(LocalCopy::found(found.item.token, found.read, server), None);
                    if !task.condemned {
                        self.ram.insert(task.page, Object { page, born, copy });
                    }
                    for started in std::mem::take(&mut task.waiters) {
                        checker::response(world, self.number, task.page, &page, Source::Tier, started);
                    }
                    // Nothing joins what has been answered.
                    task.condemned = true;
                }
                LookupStep::Fetch(fetch) => {
                    let most = world.settings.shared_wait.as_millis() as u64 + 2 * DEADLINE;
                    world.checker.waited("a lookup", task.started, world.now, most);
                    task.fetch = Some((fetch, world.now));
                    self.fetch(id, task.page, fetch, world);
                }
                LookupStep::Done { filled } => {
                    let object = self.ram.get_mut(&task.page);
                    if let (Some(filled), Some(object)) = (filled, object)
                        && object.copy.token() == task.token
                    {
                        object.copy.with(|copy| copy.agreed = copy.agreed.max(filled));
                    }
                    return false;
                }
            }
        }
    }

    fn fetch(&self, task: u64, page: usize, fetch: Fetch, world: &mut World) {
        world.note(|| format!("node {}: fetches /{page}: {fetch:?}", self.number));
        checker::fetch_begins(world, self.number, page);
        let (node, incarnation) = (self.number, self.incarnation);
        let slow = match world.random.below(12) {
            // Others do not wait for this one to the end, and fetch too.
            0 if world.kind == Kind::Faults => SLOWEST_FETCH as usize,
            0..=2 => 1900,
            _ => 250,
        };
        let (before, left) = (world.random.below(slow / 2) as u64, world.random.below(slow / 2) as u64);
        if world.kind == Kind::Faults && world.random.below(20) == 0 {
            world.at(world.now + before, Event::FetchFailed { node, incarnation, task, page });
        } else {
            world.at(world.now + before, Event::Render { node, incarnation, task, page, left });
        }
    }

    pub(super) fn fetched(&mut self, id: u64, page: Page, world: &mut World) {
        let Some(mut task) = self.tasks.remove(&id) else { return };
        let (Machine::Lookup(lookup), Some((fetch, began))) = (&mut task.machine, task.fetch) else { return };
        let is_storable = page.page < PAGES - 1;
        let age = world.now - began;
        let outcome = match fetch.position {
            None => Outcome::Nothing,
            Some(position) if is_storable => {
                let ttl = FRESH.saturating_sub(age).div_ceil(1000) as u32;
                Outcome::Fill {
                    token: task.token,
                    ttl,
                    value: content::encode(&page, task.token, position, age, ttl),
                }
            }
            Some(position) => {
                let value = content::mark(page.page, task.token, position);
                Outcome::Fill { token: task.token, ttl: 120, value }
            }
        };
        lookup.fetched(outcome);
        let server = &self.servers[task.server];
        let is_valid = fetch.position.is_none_or(|position| {
            content::with_subject(page.page, |subject| server.judge(&position, subject)) == Verdict::Use
        });
        if is_storable && is_valid && !task.condemned {
            let copy = LocalCopy::fetched(task.token, Timestamp::from_millis(began), fetch.position);
            let copy = SharedCopy::fetched(copy, None);
            self.ram.insert(page.page, Object { page, born: began, copy });
        }
        for started in std::mem::take(&mut task.waiters) {
            checker::response(world, self.number, task.page, &page, Source::Origin, started);
        }
        task.condemned = true;
        self.tasks.insert(id, task);
        self.proceed(id, world);
    }

    pub(super) fn fetch_failed(&mut self, id: u64, world: &mut World) {
        if let Some(task) = self.tasks.get_mut(&id)
            && let Machine::Lookup(lookup) = &mut task.machine
        {
            lookup.fetched(Outcome::Nothing);
            task.waiters.clear();
            task.condemned = true;
            self.proceed(id, world);
        }
    }
}

/// The page of an entry, and when it was born by the reader's reckoning.
fn received(found: &Found) -> (Page, u64) {
    let Content::Representation(attributes) = &found.item.content else {
        panic!("only representations are stored for pages");
    };
    let age = attributes.lifetimes.held + found.lain.as_millis() as u64;
    (content::decode(&found.body), found.read.as_millis() - age)
}
