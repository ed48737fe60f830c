//! Items of the shared tier: no bytes panic, and an item that is read is written as the same bytes.

use crate::common::{entry_item, entry_record};
use sandarac_wire::entry::{
    Content, EntryKey, EntryKeys, Item, LocalKey, LogHeader, LogId, PurgeLog, Sealer, Token,
};

const LOG: LogId = LogId([7; 16]);

/// The input is a kind, the number of bytes of fields in two bytes, the fields, and the body.
fn split(input: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[kind, low, high], rest) = input.split_first_chunk()?;
    let (fields, body) = rest.split_at_checked(u16::from_le_bytes([low, high]).into())?;
    Some((kind, fields, body))
}

fn check_item(sealer: &Sealer, key: &EntryKey, bytes: Vec<u8>) {
    let Ok((item, body)) = Item::decode(sealer, key, bytes.clone()) else { return };
    let head = item.encode(sealer, key, &[&body]).expect("what was read can be written");
    assert_eq!([&*head, &body].concat(), bytes);
    if let Content::Manifest { total, .. } = item.content {
        let lens = (0..item.content.chunks()).map(|at| item.content.chunk_len(at).expect("a chunk"));
        assert_eq!(lens.map(u64::from).sum::<u64>(), total);
        assert_eq!(item.content.chunk_len(item.content.chunks()), None);
    }
}

/// Checks one input.
pub(crate) fn run(input: &[u8]) {
    let sealer = Sealer::checksum();
    let key = EntryKeys::new(b"", &sealer).entry(&LocalKey { key: [0; 16], rules: [0; 16] });
    assert!(Item::decode(&sealer, &key, input.to_vec()).is_err());

    if let Some((kind, fields, body)) = split(input) {
        check_item(&sealer, &key, entry_item(&key, kind, fields, body));
    }
    let header = LogHeader { token: Token(0), id: LOG, base: 0 };
    let mut bytes = header.encode(&sealer, &key).expect("a header can be written");
    let start = bytes.len();
    for record in input.split(|&byte| byte == b'\n') {
        bytes.extend(entry_record(&key, &LOG.0, record));
    }
    let Ok(log) = PurgeLog::decode(&sealer, &key, bytes.clone(), None) else { return };
    let mut again = bytes[..start].to_vec();
    for (at, record) in log.records() {
        assert_eq!(at as usize, again.len() - start);
        again.extend(record.encode(&sealer, &key, &LOG).expect("what was read can be written"));
    }
    assert_eq!(again, bytes);
}
