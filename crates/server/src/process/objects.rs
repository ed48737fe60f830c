//! The objects of a cache as a stream of bytes: to the process that takes over, or to the next one by way of a
//! file.
//!
//! ```text
//! "Sandarac objects 1" LF │ Unix time in milliseconds (8) │ records │ start of a record of no bytes
//! ```
//!
//! The records are those of [`sandarac_cache::Records`], little-endian as all numbers. Their times are relative to the
//! time in the head.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use sandarac_cache::{Begun, RECORD_START, Records, Store, TakenOut};
use sandarac_message::Timestamp;
use sandarac_net::wall;

use crate::human::{bytes, count, lasting};

const HEAD: &[u8; 19] = b"Sandarac objects 1\n";

/// Bytes that are read and written at a time.
const BUFFER: usize = 256 << 10;

/// Clocks are corrected by less.
const TOLERANCE: Duration = Duration::from_secs(1);

/// The amount of what has been written or read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    /// Objects, and bytes of their records.
    pub(super) objects: u64,
    pub(super) bytes: u64,
    /// Those that stayed behind: parts of a representation, very large ones; or stale, purged, or known anew
    /// where they came.
    pub(super) left: u64,
    /// Those that were damaged.
    pub(super) damaged: u64,
}

impl Amount {
    /// The amount in words, and the time that it took.
    pub(super) fn said(&self, time: Duration) -> String {
        let mut said = format!(
            "{} of {} in {}",
            count(self.objects, "object"),
            bytes(self.bytes),
            lasting(time.as_secs_f64())
        );
        if self.left > 0 {
            said.push_str(&format!(", {} left behind", self.left));
        }
        if self.damaged > 0 {
            said.push_str(&format!(", {} damaged", self.damaged));
        }
        said
    }
}

/// Moves the objects of a store to `out`. What cannot be written is gone, too.
pub(super) fn write(store: &Store, out: impl Write) -> io::Result<Amount> {
    let mut out = BufWriter::with_capacity(BUFFER, out);
    let now = wall();
    let (records, most) = (Records::default(), store.largest_record());
    let (mut so_far, mut written) = (TakenOut::default(), Amount::default());
    out.write_all(HEAD)?;
    out.write_all(&now.as_millis().to_le_bytes())?;
    while let Some(taken) = store.take_out(&mut so_far) {
        for moved in taken {
            match records.record(&moved, most, now) {
                None => written.left += 1,
                Some(pieces) => {
                    pieces.iter().try_for_each(|piece| out.write_all(piece))?;
                    written.objects += 1;
                    written.bytes += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
                }
            }
        }
    }
    out.write_all(&Records::start(0))?;
    out.flush()?;
    Ok(written)
}

/// Takes all objects out of a store.
pub(super) fn drop_all(store: &Store) {
    let mut so_far = TakenOut::default();
    while store.take_out(&mut so_far).is_some() {}
}

/// Puts the objects that come from `input` into a store, until they end. Purges and bans since `begun` apply to
/// them.
///
/// # Errors
/// `InvalidData` if these are no objects, or from a time to come; `UnexpectedEof` if they break off. What came before
/// stays.
pub(super) fn read(
    store: &Arc<Store>,
    input: impl Read,
    begun: Begun,
    amount: &mut Amount,
) -> io::Result<()> {
    let mut input = BufReader::with_capacity(BUFFER, input);
    let mut head = [0; HEAD.len() + 8];
    input.read_exact(&mut head)?;
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
    let (name, time) = head.split_first_chunk().expect("it is longer");
    if name != HEAD {
        return Err(invalid("these are no objects of this version"));
    }
    let written = Timestamp::from_millis(u64::from_le_bytes(time.try_into().expect("eight bytes")));
    if written > wall().plus(TOLERANCE) {
        return Err(invalid("they are from a time to come; has the clock been set back?"));
    }
    let (records, most) = (Records::default(), store.largest_record() as u64 + OVERHEAD);
    let mut start = [0; RECORD_START];
    input.read_exact(&mut start)?;
    loop {
        let Some(rest) = Records::rest(start) else {
            // Damage: the next record begins further on.
            amount.damaged += 1;
            while Records::rest(start).is_none() {
                start.copy_within(1.., 0);
                input.read_exact(&mut start[RECORD_START - 1..])?;
            }
            continue;
        };
        match u64::from(rest) {
            0 => return Ok(()),
            rest if rest > most => {
                let passed = io::copy(&mut (&mut input).take(rest), &mut io::sink())?;
                if passed < rest {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                amount.left += 1;
            }
            rest => {
                let mut record = vec![0; rest as usize];
                input.read_exact(&mut record)?;
                let now = wall();
                let put = |arrived| store.put_in(arrived, now.since(written), begun, now);
                match records.read(record.into()).map(put) {
                    Ok(true) => {
                        amount.objects += 1;
                        amount.bytes += rest;
                    }
                    Ok(false) => amount.left += 1,
                    Err(_) => amount.damaged += 1,
                }
            }
        }
        input.read_exact(&mut start)?;
    }
}

/// Bytes of a record beside its body: a head, host, path and tags.
const OVERHEAD: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_cache::{Intent, Key, Lookup, NewObject, Query, Settings};
    use sandarac_message::caching::{Lifetimes, RequestDirectives};
    use sandarac_message::vary::VaryKey;
    use sandarac_message::{Fields, FieldsBuf, StoredHead};

    fn key(path: &str) -> Key {
        Key::of(b"http", b"a", path.as_bytes())
    }

    /// A store with these objects of `len` bytes.
    fn store(paths: &[&str], len: usize) -> Arc<Store> {
        let store = Arc::new(Store::new(Settings::new(16 << 20)));
        for path in paths {
            let lifetimes = Lifetimes::fixed(wall(), Duration::from_secs(60), Duration::ZERO, Duration::ZERO);
            let new = NewObject {
                head: StoredHead::new(200, b"OK", &FieldsBuf::new()).unwrap(),
                lifetimes,
                vary: VaryKey::default(),
                host: b"a",
                path: path.as_bytes(),
                tags: &[],
                range: None,
                len: None,
                limit: None,
                resumable: false,
                copy: None,
                transaction: 1,
            };
            store.open(key(path)).store_complete(new, &[&vec![b'o'; len]], None);
        }
        store
    }

    fn has(store: &Arc<Store>, path: &str) -> bool {
        let directives = RequestDirectives::default();
        let query =
            Query { fields: Fields::default(), directives: &directives, part: None, intent: Intent::Peek };
        matches!(store.lookup(key(path), &query, wall()), Lookup::Hit(_))
    }

    fn written(paths: &[&str], len: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let amount = write(&store(paths, len), &mut out).unwrap();
        assert_eq!(amount.objects, paths.len() as u64);
        out
    }

    /// Reads a stream into an empty store.
    fn read_all(stream: &[u8]) -> (Arc<Store>, Amount, io::Result<()>) {
        let (store, mut amount) = (store(&[], 0), Amount::default());
        let ended = read(&store, stream, store.begun(), &mut amount);
        (store, amount, ended)
    }

    #[test]
    fn what_is_written_can_be_read() {
        let (store, amount, ended) = read_all(&written(&["/1", "/2", "/3"], 300_000));
        ended.unwrap();
        assert_eq!((amount.objects, amount.left, amount.damaged), (3, 0, 0));
        assert!(["/1", "/2", "/3"].iter().all(|path| has(&store, path)));
    }

    #[test]
    fn damage_costs_the_object_that_it_is_in() {
        let whole = written(&["/1", "/2", "/3"], 500);
        let head = HEAD.len() + 8;
        let each = (whole.len() - head - RECORD_START) / 3;
        for at in head..whole.len() - RECORD_START {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x80;
            let (_, amount, ended) = read_all(&damaged);
            ended.unwrap();
            assert_eq!((amount.objects, amount.damaged), (2, 1), "byte {} of {each}", at - head);
        }
    }

    #[test]
    fn what_comes_before_a_break_stays() {
        let whole = written(&["/1", "/2", "/3"], 500);
        for len in 0..whole.len() {
            let (_, amount, ended) = read_all(&whole[..len]);
            assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{len}");
            assert!(amount.objects <= 3 && amount.damaged == 0);
        }
    }

    #[test]
    fn another_format_and_another_time_are_refused() {
        let mut whole = written(&["/1"], 500);
        whole[HEAD.len() + 5] ^= 0x10;
        let (_, amount, ended) = read_all(&whole);
        assert!(ended.unwrap_err().to_string().contains("a time to come"));
        assert_eq!(amount, Amount::default());
        let (_, _, ended) = read_all(b"Sandarac objects 2\n12345678123456789012");
        assert!(ended.unwrap_err().to_string().contains("this version"));
    }
}
