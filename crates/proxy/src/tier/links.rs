//! The connections of one core to the servers of the tier: to each one for small operations, and one for
//! values, so that a large value does not delay small answers.

use std::cell::RefCell;
use std::future::Future;
use std::io::ErrorKind;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use sandarac_net::memcached::{
    Connection, ConnectionState, Deadline, DeleteOutcome, Item, QueueLimits, ServerAddress, SetOutcome,
    Settings, Unavailable,
};
use sandarac_tier::{Attempt, Command, Condition, Reply, StoredItem};
use sandarac_wire::entry::EntryKey;
use sandarac_wire::memcached::{Delete, Get, Mode, Remaining, ServerKey, Set, Ttl};

use super::clock::now;
use super::{SharedTier, TierCount, TierServer};

/// Values of more bytes than this are written over the connection for values.
const SMALL: u64 = 16 << 10;

/// The most bytes of a value that is read besides those of a body: head, lists, and purge logs.
const MAX_BESIDE_BODY: usize = 1 << 20;

/// The connections of one core.
#[derive(Default)]
pub(crate) struct Links(RefCell<Vec<(Arc<TierServer>, Rc<Link>)>>);

/// The connections to one server.
struct Link {
    address: Arc<ServerAddress>,
    small: Connection,
    values: Connection,
}

/// An operation that was submitted.
type Awaited = Pin<Box<dyn Future<Output = Result<Reply, Unavailable>>>>;

impl Links {
    /// Sends operations in one packet, and waits for their replies. A server that is ejected is not asked.
    pub(super) async fn send(
        &self,
        tier: &SharedTier,
        server: &Arc<TierServer>,
        commands: Vec<Command>,
    ) -> Vec<Reply> {
        if !server.is_reachable() {
            return unavailable(&commands, "ejected");
        }
        self.send_trial(tier, server, commands).await
    }

    /// The same, even if the server is ejected.
    pub(super) async fn send_trial(
        &self,
        tier: &SharedTier,
        server: &Arc<TierServer>,
        commands: Vec<Command>,
    ) -> Vec<Reply> {
        let Some(link) = self.link(tier, server) else {
            server.count(TierCount::Failures);
            server.answered(Attempt { sent: now(), is_value: false }, Some("its name cannot be resolved"));
            return unavailable(&commands, "not-resolved");
        };
        let written = value_bytes(&commands);
        let is_large = written > SMALL || commands.iter().any(reads_value);
        let (connection, deadline) = match is_large {
            true => (&link.values, Deadline::Transfer(tier.timeout())),
            false => (&link.small, Deadline::Total(tier.timeout())),
        };
        let max_value = tier.max_object as usize + MAX_BESIDE_BODY;
        let (began, attempt) = (Instant::now(), Attempt { sent: now(), is_value: is_large });
        let submit = |command| submit(connection, command, max_value, deadline);
        // All are submitted before the first is awaited, so that they leave in one write.
        let awaited: Vec<Awaited> = commands.into_iter().map(submit).collect();
        let mut replies = Vec::with_capacity(awaited.len());
        let (mut fault, mut read) = (None, 0);
        for answer in awaited {
            replies.push(answer.await.unwrap_or_else(|unavailable| {
                if unavailable.blames_server() && fault.is_none() {
                    fault = Some(describe(&unavailable, &link.address));
                }
                Reply::Unavailable(unavailable.name())
            }));
            if let Some(Reply::Item(item)) = replies.last() {
                read += item.value.len() as u64;
            }
        }
        let is_used = server.answered(attempt, fault.as_deref());
        if fault.is_some() {
            server.count(TierCount::Failures);
            if !is_used && matches!(connection.state(), ConnectionState::Ready(_)) {
                // An answer may be stuck on it, or the way lost without notice. Trials use a new one.
                connection.close();
            }
        } else {
            server.count(TierCount::Packets);
            server.add(TierCount::Microseconds, began.elapsed().as_micros() as u64);
            server.add(TierCount::BytesWritten, written);
            server.add(TierCount::BytesRead, read);
        }
        replies
    }

    /// The largest item that a server takes, in bytes; memcached's default until it was asked.
    pub(super) fn item_limit(&self, tier: &SharedTier, server: &Arc<TierServer>) -> u64 {
        const DEFAULT: u64 = 1 << 20;
        let state = self.link(tier, server).map(|link| link.values.state());
        match state {
            Some(ConnectionState::Ready(abilities)) => abilities.item_size_max,
            _ => DEFAULT,
        }
    }

    /// Closes the connections to servers that are not in use any more.
    pub(crate) fn prune(&self, tier: Option<&SharedTier>) {
        let servers = tier.map(SharedTier::servers);
        let is_used = |server: &Arc<TierServer>| {
            servers.as_ref().is_some_and(|servers| servers.list.iter().any(|used| Arc::ptr_eq(used, server)))
        };
        self.0.borrow_mut().retain(|(server, _)| is_used(server));
    }

    /// The connections to a server; `None` if it is not known where it is.
    fn link(&self, tier: &SharedTier, server: &Arc<TierServer>) -> Option<Rc<Link>> {
        let address = server.address()?;
        let mut links = self.0.borrow_mut();
        let known = links.iter().position(|(known, _)| Arc::ptr_eq(known, server));
        if let Some(known) = known {
            if links[known].1.address == address {
                return Some(links[known].1.clone());
            }
            links.swap_remove(known);
        }
        let limits = QueueLimits {
            bytes: QueueLimits::default().bytes.max(2 * tier.max_object as usize),
            ..QueueLimits::default()
        };
        let settings = Settings {
            address: (*address).clone(),
            login: tier.credentials.login.clone(),
            // Connecting takes three round trips at most.
            connect_timeout: tier.timeout() * 3,
            limits,
        };
        let (small, values) = (Connection::new(settings.clone()), Connection::new(settings));
        let link = Rc::new(Link { address, small, values });
        links.push((server.clone(), link.clone()));
        Some(link)
    }
}

/// A failure, with the path of a socket that cannot be connected to.
fn describe(unavailable: &Unavailable, address: &ServerAddress) -> String {
    match (unavailable, address) {
        (Unavailable::NotConnected(ErrorKind::NotFound), ServerAddress::Unix(path)) => {
            format!("cannot connect: there is no socket {}", path.display())
        }
        (Unavailable::NotConnected(kind), ServerAddress::Unix(path)) => {
            format!("cannot connect to {}: {kind}", path.display())
        }
        _ => unavailable.to_string(),
    }
}

/// Whether a command reads a value that may be large.
fn reads_value(command: &Command) -> bool {
    matches!(command, Command::Get { value: true, .. })
}

fn unavailable(commands: &[Command], why: &'static str) -> Vec<Reply> {
    commands.iter().map(|_| Reply::Unavailable(why)).collect()
}

fn server_key(key: &EntryKey) -> ServerKey {
    ServerKey::new(key.as_bytes().to_vec()).expect("entry keys are valid keys")
}

/// Submits an operation. It proceeds without being polled.
fn submit(connection: &Connection, command: Command, max_value: usize, deadline: Deadline) -> Awaited {
    match command {
        Command::Get { key, value } => {
            let mut get = Get::new(server_key(&key));
            (get.value, get.client_flags, get.cas) = (value, true, true);
            (get.size, get.remaining) = (true, true);
            let pending = connection.get(get, max_value, deadline);
            Box::pin(async { Ok(pending.await?.map_or(Reply::Absent, item)) })
        }
        Command::Set { key, condition, ttl, flags, value } => {
            let mut set = Set::new(server_key(&key), ttl.map_or(Ttl::NEVER, Ttl::seconds));
            set.mode = if condition == Condition::Absent { Mode::Add } else { Mode::Set };
            set.compare = match condition {
                Condition::Cas(cas) => Some(cas),
                Condition::Always | Condition::Absent => None,
            };
            (set.client_flags, set.return_cas) = (flags, true);
            store(connection, set, value, deadline)
        }
        Command::Append { key, cas, value } => {
            let mut set = Set::new(server_key(&key), Ttl::NEVER);
            (set.mode, set.compare, set.return_cas) = (Mode::Append, Some(cas), true);
            store(connection, set, vec![value], deadline)
        }
        Command::Delete { key, cas } => {
            let delete = Delete { compare: Some(cas), ..Delete::new(server_key(&key)) };
            let pending = connection.delete(delete, deadline);
            Box::pin(async {
                Ok(match pending.await? {
                    DeleteOutcome::Deleted => Reply::Deleted,
                    DeleteOutcome::Exists => Reply::Refused,
                    DeleteOutcome::NotFound => Reply::Absent,
                })
            })
        }
    }
}

fn store(connection: &Connection, set: Set, value: Vec<Bytes>, deadline: Deadline) -> Awaited {
    let pending = connection.set(set, value, deadline);
    Box::pin(async {
        Ok(match pending.await? {
            SetOutcome::Stored(cas) => Reply::Stored(cas.unwrap_or_default()),
            SetOutcome::NotStored | SetOutcome::Exists => Reply::Refused,
            SetOutcome::NotFound => Reply::Absent,
        })
    })
}

fn item(item: Item) -> Reply {
    let Item { value, flags } = item;
    let left = match flags.remaining {
        Some(Remaining::Seconds(seconds)) => Some(seconds),
        Some(Remaining::Unlimited) | None => None,
    };
    let (size, client_flags, cas) = (flags.size, flags.client_flags, flags.cas);
    Reply::Item(StoredItem {
        size: size.unwrap_or(value.len() as u64),
        flags: client_flags.unwrap_or_default(),
        cas: cas.unwrap_or_default(),
        left,
        value,
    })
}

/// The bytes of the values of commands.
fn value_bytes(commands: &[Command]) -> u64 {
    let bytes = |command: &Command| match command {
        Command::Set { value, .. } => value.iter().map(|piece| piece.len() as u64).sum(),
        Command::Append { value, .. } => value.len() as u64,
        Command::Get { .. } | Command::Delete { .. } => 0,
    };
    commands.iter().map(bytes).sum()
}
