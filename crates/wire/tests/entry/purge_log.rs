//! Purge logs: positions, damage, and what a cut between two records means.

use crate::generate;
use crate::samples::{self, HEADER, LOG};
use crate::{sealers, secret, server_key};
use proptest::collection::vec;
use proptest::prelude::*;
use sandarac_wire::entry::{EntryError, LogHeader, LogId, Position, Purge, PurgeLog, Record, Sealer};

fn at(offset: u64) -> Position {
    Position { log: LOG, offset }
}

/// A log, and the places in it where records end, the header's end first.
fn log(sealer: &Sealer, records: &[Record]) -> (Vec<u8>, Vec<usize>) {
    let key = server_key(0);
    let mut bytes = HEADER.encode(sealer, &key).unwrap();
    let mut ends = vec![bytes.len()];
    for record in records {
        bytes.extend(record.encode(sealer, &key, &LOG).unwrap());
        ends.push(bytes.len());
    }
    (bytes, ends)
}

fn decode(sealer: &Sealer, bytes: &[u8], from: Option<&Position>) -> Result<PurgeLog, EntryError> {
    PurgeLog::decode(sealer, &server_key(0), bytes.to_vec(), from)
}

proptest! {
    #[test]
    fn what_is_appended_is_read_back(
        records in vec(generate::record(), 0..6), from in 0usize..6, secret: bool,
    ) {
        let sealer = &sealers()[usize::from(secret)];
        let (bytes, ends) = log(sealer, &records);
        let from = from.min(records.len());
        let offset = |end: usize| HEADER.base + (end - ends[0]) as u64;
        let read = decode(sealer, &bytes, Some(&at(offset(ends[from]))))?;
        prop_assert_eq!(read.end(), at(offset(bytes.len())));
        let expected: Vec<_> = records.into_iter().enumerate().skip(from)
            .map(|(number, record)| (offset(ends[number]), record)).collect();
        prop_assert_eq!(read.records().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn every_damage_to_a_log_is_found() {
    for sealer in sealers() {
        let (bytes, ends) = log(&sealer, &samples::records());
        for len in 0..bytes.len() {
            let read = decode(&sealer, &bytes[..len], None);
            match ends.iter().position(|end| *end == len) {
                Some(records) => assert_eq!(read.unwrap().records().count(), records),
                None => assert_eq!(read.err(), Some(EntryError::Truncated), "{len} bytes"),
            }
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&sealer, &flipped, None).is_err(), "bit {bit}");
        }
    }
}

#[test]
fn a_log_that_lost_records_is_known_by_the_position() {
    let [sealer, _] = sealers();
    let (bytes, ends) = log(&sealer, &samples::records());
    let end = decode(&sealer, &bytes, None).unwrap().end();
    assert!(decode(&sealer, &bytes, Some(&end)).is_ok());
    let cut = decode(&sealer, &bytes[..ends[3]], Some(&end));
    assert_eq!(cut.err(), Some(EntryError::BeyondLog));
}

#[test]
fn a_position_is_covered_from_the_base_to_the_end() {
    let [sealer, _] = sealers();
    let (bytes, _) = log(&sealer, &samples::records());
    let read = decode(&sealer, &bytes, None).unwrap();
    let end = read.end().offset;
    assert_eq!(read.check(&at(4095)), Err(EntryError::BeforeLog));
    assert_eq!(read.check(&at(4096)), Ok(()));
    assert_eq!(read.check(&at(end)), Ok(()));
    assert_eq!(read.check(&at(end + 1)), Err(EntryError::BeyondLog));
    let other = Position { log: LogId([1; 16]), offset: end };
    assert_eq!(read.check(&other), Err(EntryError::OtherLog));
    assert_eq!(decode(&sealer, &bytes, Some(&other)).err(), Some(EntryError::OtherLog));
    assert_eq!(decode(&sealer, &bytes, Some(&at(0))).err(), Some(EntryError::BeforeLog));
}

#[test]
fn reading_on_between_records_is_refused() {
    let [sealer, _] = sealers();
    let (bytes, _) = log(&sealer, &samples::records());
    assert!(decode(&sealer, &bytes, Some(&at(4097))).is_err());
}

#[test]
fn a_log_sealed_by_several_secrets_is_read_while_they_rotate() {
    let (old, new) = (secret(1), secret(2));
    let key = server_key(0);
    let [first, second, third] = [(&old, &new), (&new, &old), (&new, &old)]
        .map(|(one, two)| Sealer::keyed(one.clone(), Some(two.clone())));
    let records = samples::records();
    let mut bytes = HEADER.encode(&first, &key).unwrap();
    bytes.extend(records[0].encode(&first, &key, &LOG).unwrap());
    bytes.extend(records[1].encode(&second, &key, &LOG).unwrap());
    assert_eq!(decode(&third, &bytes, None).unwrap().records().count(), 2);
    let done = Sealer::keyed(new, None);
    assert_eq!(decode(&done, &bytes, None).err(), Some(EntryError::UnknownSecret));
}

#[test]
fn bounds_of_logs_are_kept() {
    let [sealer, _] = sealers();
    let (key, text) = (server_key(0), |len| bytes::Bytes::from(vec![b'x'; len]));
    let record = |purge| Record { purge, ..samples::records().remove(0) };
    let largest = record(Purge::Target { host: text(65_535), path: text(65_535) });
    let (bytes, _) = log(&sealer, std::slice::from_ref(&largest));
    let read = decode(&sealer, &bytes, None).unwrap();
    assert_eq!(read.records().next(), Some((4096, largest)));
    for too_large in [Purge::Host(text(65_536)), Purge::Ban("x".repeat(65_536))] {
        assert_eq!(record(too_large).encode(&sealer, &key, &LOG), Err(EntryError::TooLarge));
    }
    let (mut bytes, ends) = log(&sealer, &[]);
    bytes.extend_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(decode(&sealer, &bytes, None).err(), Some(EntryError::TooLarge));
    bytes.truncate(ends[0]);
    bytes.extend_from_slice(&16u32.to_le_bytes());
    assert_eq!(decode(&sealer, &bytes, None).err(), Some(EntryError::Truncated));
    let header = LogHeader { base: u64::MAX, ..HEADER }.encode(&sealer, &key).unwrap();
    let bytes = [header, samples::records()[0].encode(&sealer, &key, &LOG).unwrap()].concat();
    assert_eq!(decode(&sealer, &bytes, None).err(), Some(EntryError::TooLarge));
}
