//! Damaged, copied and forged items.

use crate::samples::{self, HEADER, LOG};
use crate::{sealers, secret, server_key};
use sandarac_wire::entry::{EntryError, Item, PurgeLog, Sealer};

/// All bytes of the sample items.
fn items(sealer: &Sealer) -> Vec<(&'static str, Vec<u8>)> {
    let bytes = |(name, item, body): (_, Item, &[u8])| {
        (name, [&*item.encode(sealer, &server_key(0), &[body]).unwrap(), body].concat())
    };
    samples::items().into_iter().map(bytes).collect()
}

fn decode(sealer: &Sealer, bytes: &[u8]) -> Result<(), EntryError> {
    Item::decode(sealer, &server_key(0), bytes.to_vec()).map(|_| ())
}

#[test]
fn every_flipped_bit_is_found() {
    for sealer in sealers() {
        for (name, bytes) in items(&sealer) {
            assert_eq!(decode(&sealer, &bytes), Ok(()), "{name}");
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert!(decode(&sealer, &flipped).is_err(), "{name}, bit {bit}");
            }
        }
    }
}

#[test]
fn every_truncation_and_every_addition_is_found() {
    for sealer in sealers() {
        for (name, bytes) in items(&sealer) {
            for len in 0..bytes.len() {
                assert_eq!(decode(&sealer, &bytes[..len]), Err(EntryError::Truncated), "{name}, {len} bytes");
            }
            let longer = [&*bytes, b"\0"].concat();
            assert_eq!(decode(&sealer, &longer), Err(EntryError::TrailingBytes), "{name}");
        }
    }
}

#[test]
fn an_item_under_another_key_is_refused() {
    for (sealer, expected) in sealers().iter().zip([EntryError::Checksum, EntryError::Seal]) {
        for (name, bytes) in items(sealer) {
            assert_eq!(
                Item::decode(sealer, &server_key(1), bytes).map(|_| ()),
                Err(expected),
                "{name} under another key"
            );
        }
    }
}

#[test]
fn frames_of_others_are_refused_by_name() {
    let [plain, sealed] = sealers();
    let (_, bytes) = items(&plain).remove(0);
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        decode(&plain, &bytes)
    };
    assert_eq!(with(0, b's'), Err(EntryError::Magic));
    assert_eq!(with(4, 2), Err(EntryError::Version));
    assert_eq!(with(5, 9), Err(EntryError::Kind));
    assert_eq!(with(6, 1), Err(EntryError::Sealed));
    assert_eq!(decode(&sealed, &bytes), Err(EntryError::Unsealed));
    assert_eq!(decode(&plain, &items(&sealed)[0].1), Err(EntryError::Sealed));
    let log = HEADER.encode(&plain, &server_key(0)).unwrap();
    assert_eq!(decode(&plain, &log), Err(EntryError::UnexpectedKind));
    let log = PurgeLog::decode(&plain, &server_key(0), bytes, None);
    assert_eq!(log.err(), Some(EntryError::UnexpectedKind));
}

#[test]
fn a_secret_that_rotates_is_accepted_on_both_sides() {
    let (old, new, other) = (secret(1), secret(2), secret(3));
    let with = |first: &_, second: Option<&_>| Sealer::keyed(Clone::clone(first), second.cloned());
    let stages = [with(&old, None), with(&old, Some(&new)), with(&new, Some(&old)), with(&new, None)];
    for (at, writer) in stages.iter().enumerate() {
        let (_, bytes) = items(writer).remove(0);
        for (read_at, reader) in stages.iter().enumerate() {
            let expected = if at.abs_diff(read_at) <= 1 || (at, read_at) == (0, 2) || (at, read_at) == (3, 1)
            {
                Ok(())
            } else {
                Err(EntryError::UnknownSecret)
            };
            assert_eq!(decode(reader, &bytes), expected, "stage {at} read at stage {read_at}");
        }
        assert_eq!(decode(&with(&other, None), &bytes), Err(EntryError::UnknownSecret));
    }
}

#[test]
fn a_record_of_another_log_is_refused() {
    for (sealer, expected) in sealers().iter().zip([EntryError::Checksum, EntryError::Seal]) {
        let key = server_key(0);
        let header = HEADER.encode(sealer, &key).unwrap();
        let record = &samples::records()[0];
        let other_log = sandarac_wire::entry::LogId([9; 16]);
        for (record, outcome) in [
            (record.encode(sealer, &key, &LOG), None),
            (record.encode(sealer, &key, &other_log), Some(expected)),
            (record.encode(sealer, &server_key(1), &LOG), Some(expected)),
        ] {
            let bytes = [&*header, &record.unwrap()].concat();
            assert_eq!(PurgeLog::decode(sealer, &key, bytes, None).err(), outcome);
        }
    }
}
