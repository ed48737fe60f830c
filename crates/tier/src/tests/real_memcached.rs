//! The model of memcached beside the real server: the same commands have the same replies.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sandarac_balance::Random;
use sandarac_test_support::Memcached;
use sandarac_wire::entry::EntryKey;
use sandarac_wire::memcached::{
    Code, Delete, Get, ItemFlags, Line, MAX_LINE, Mode, Remaining, ServerKey, Set, Ttl, VALUE_END, parse,
};

use super::content;
use super::memcached::Model;
use crate::command::{Command, Condition, Reply, StoredItem};

/// A connection to a real server.
struct Real(UnixStream);

impl Real {
    fn execute(&mut self, command: &Command) -> Reply {
        let server_key = |key: &EntryKey| ServerKey::new(key.as_bytes().to_vec()).unwrap();
        let mut out = Vec::new();
        match command {
            Command::Get { key, value } => {
                let mut get = Get::new(server_key(key));
                (get.value, get.client_flags, get.cas) = (*value, true, true);
                (get.size, get.remaining) = (true, true);
                get.encode(1, &mut out);
            }
            Command::Set { key, condition, ttl, flags, value } => {
                let mut set = Set::new(server_key(key), ttl.map_or(Ttl::NEVER, Ttl::seconds));
                set.mode = if *condition == Condition::Absent { Mode::Add } else { Mode::Set };
                set.compare = match condition {
                    Condition::Cas(cas) => Some(*cas),
                    _ => None,
                };
                (set.client_flags, set.return_cas) = (*flags, true);
                let value = value.concat();
                set.encode(value.len(), 1, &mut out);
                out.extend([&value, VALUE_END].concat());
            }
            Command::Append { key, cas, value } => {
                let mut set = Set::new(server_key(key), Ttl::NEVER);
                (set.mode, set.compare, set.return_cas) = (Mode::Append, Some(*cas), true);
                set.encode(value.len(), 1, &mut out);
                out.extend([value, VALUE_END].concat());
            }
            Command::Delete { key, cas } => {
                let delete = Delete { compare: Some(*cas), ..Delete::new(server_key(key)) };
                delete.encode(1, &mut out);
            }
        }
        self.0.write_all(&out).unwrap();
        self.reply()
    }

    fn reply(&mut self) -> Reply {
        let mut input = Vec::new();
        loop {
            let mut buffer = [0; MAX_LINE];
            let read = self.0.read(&mut buffer).unwrap();
            assert!(read > 0, "the server closed the connection");
            input.extend_from_slice(&buffer[..read]);
            let Some(parsed) = parse(&input, 1 << 20).unwrap() else { continue };
            let Line::Meta(meta) = parsed.line else { panic!("{:?}", parsed.line) };
            return match meta.code {
                Code::Value(len) => {
                    let end = parsed.len + len as usize;
                    if input.len() < end + VALUE_END.len() {
                        continue;
                    }
                    item(&meta.flags, input[parsed.len..end].to_vec().into())
                }
                Code::Done if meta.flags.size.is_some() => item(&meta.flags, Bytes::new()),
                Code::Done => meta.flags.cas.map_or(Reply::Deleted, Reply::Stored),
                Code::Miss | Code::NotFound => Reply::Absent,
                Code::NotStored | Code::Exists => Reply::Refused,
            };
        }
    }
}

fn item(flags: &ItemFlags, value: Bytes) -> Reply {
    let left = match flags.remaining.unwrap() {
        Remaining::Unlimited => None,
        Remaining::Seconds(seconds) => Some(seconds),
    };
    Reply::Item(StoredItem {
        value,
        size: flags.size.unwrap(),
        flags: flags.client_flags.unwrap(),
        cas: flags.cas.unwrap(),
        left,
    })
}

/// A command drawn at random, with CAS values that were seen.
fn draw(random: &mut Random, seen: &[u64]) -> Command {
    let key = content::target(random.below(3)).key;
    let cas = seen.get(random.below(seen.len() + 1)).copied().unwrap_or(1 << 40);
    let bytes = |random: &mut Random| Bytes::from(vec![b'x'; 1 + random.below(9)]);
    match random.below(8) {
        0 => Command::Append { key, cas, value: bytes(random) },
        1 => Command::Delete { key, cas },
        2 | 3 => Command::Get { key, value: random.below(2) == 0 },
        _ => {
            let condition = match random.below(4) {
                0 => Condition::Always,
                1 => Condition::Absent,
                _ => Condition::Cas(cas),
            };
            let ttl = (random.below(2) == 0).then_some(60);
            Command::Set { key, condition, ttl, flags: random.bits() as u32, value: vec![bytes(random)] }
        }
    }
}

/// The same command with the CAS value of the model.
fn translated(command: &Command, to_model: &BTreeMap<u64, u64>) -> Command {
    let cas = |real: u64| to_model.get(&real).copied().unwrap_or(real);
    match command.clone() {
        Command::Set { key, condition: Condition::Cas(real), ttl, flags, value } => {
            Command::Set { key, condition: Condition::Cas(cas(real)), ttl, flags, value }
        }
        Command::Append { key, cas: real, value } => Command::Append { key, cas: cas(real), value },
        Command::Delete { key, cas: real } => Command::Delete { key, cas: cas(real) },
        command => command,
    }
}

#[test]
fn the_model_replies_like_the_real_server() {
    let server = Memcached::start(&[]);
    let mut real = Real(UnixStream::connect(server.socket()).unwrap());
    let (mut model, mut random) = (Model::default(), Random::new(7));
    let (mut to_model, mut seen) = (BTreeMap::new(), Vec::new());
    for _ in 0..3000 {
        let recent = &seen[seen.len() - seen.len().min(4)..];
        let command = draw(&mut random, recent);
        let mut reply = real.execute(&command);
        let mut modelled = model.execute(0, &translated(&command, &to_model));
        match (&mut reply, &mut modelled) {
            (Reply::Stored(real), Reply::Stored(model)) => {
                to_model.insert(*real, *model);
                seen.push(*real);
                *real = *model;
            }
            (Reply::Item(real), Reply::Item(model)) => {
                real.cas = to_model[&real.cas];
                assert_eq!(real.left.is_some(), model.left.is_some());
                real.left = model.left;
            }
            _ => {}
        }
        assert_eq!(reply, modelled, "{command:?}");
    }
}

#[test]
fn the_remaining_time_of_the_real_server_is_at_most_a_second_too_long() {
    let server = Memcached::start(&[]);
    let mut real = Real(UnixStream::connect(server.socket()).unwrap());
    let key = content::target(0).key;
    let condition = Condition::Always;
    let set = Command::Set { key, condition, ttl: Some(3), flags: 0, value: vec![Bytes::from_static(b"x")] };
    let begun = Instant::now();
    real.execute(&set);
    loop {
        let reply = real.execute(&Command::Get { key, value: false });
        let passed = begun.elapsed();
        let Reply::Item(StoredItem { left: Some(left), .. }) = reply else {
            assert!(passed > Duration::from_secs(2), "gone after {passed:?}");
            break;
        };
        let lain = sandarac_wire::entry::time_on_server(3, left).unwrap();
        assert!(lain + Duration::from_millis(50) >= passed, "{lain:?} after {passed:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
