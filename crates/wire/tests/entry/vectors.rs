//! The bytes printed in `docs/protocols/entry.md`.

use crate::samples::{self, HEADER, LOG, TOKEN};
use crate::secret;
use sandarac_message::vary::VaryKey;
use sandarac_wire::entry::{
    Content, EntryError, EntryKey, EntryKeys, Item, Kind, LocalKey, MarkReason, PurgeLog, Sealer,
};

const LOCAL: LocalKey = LocalKey { key: *b"the local key 16", rules: *b"digest of rules." };

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocols/entry.md");
    std::fs::read_to_string(path).expect("the document is there")
}

/// The lines of the code block after a heading.
fn block(document: &str, heading: &str) -> Vec<String> {
    let heading = format!("\n### {heading}\n");
    let (_, section) = document.split_once(&heading).unwrap_or_else(|| panic!("no section {heading}"));
    let block = section.split("```").nth(1).expect("a block");
    block.lines().skip(1).map(str::to_owned).collect()
}

/// Compares bytes with a block of hexadecimal digits, 32 bytes a line.
fn check(document: &str, heading: &str, bytes: &[u8]) {
    let line = |line: &[u8]| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let lines: Vec<String> = bytes.chunks(32).map(line).collect();
    assert_eq!(block(document, heading), lines, "{heading}:\n{}\n", lines.join("\n"));
}

fn keys(sealer: &Sealer) -> EntryKeys {
    EntryKeys::new(b"shop", sealer)
}

fn sealed() -> Sealer {
    Sealer::keyed(secret(b's'), None)
}

fn entry_key(sealer: &Sealer, content: &Content) -> EntryKey {
    let keys = keys(sealer);
    let entry = keys.entry(&LOCAL);
    match content {
        Content::Representation(attributes) => keys.variant(&LOCAL, TOKEN, &attributes.vary),
        Content::Chunk { number } => keys.chunk(&entry, TOKEN, *number),
        _ => entry,
    }
}

#[test]
fn the_document_has_the_bytes_of_each_kind() {
    let document = document();
    for (name, item, body) in samples::items() {
        assert_eq!(item.content.kind().name(), name);
        let mut written = vec![(Sealer::checksum(), name.to_owned())];
        if ["representation", "chunk"].contains(&name) {
            written.push((sealed(), format!("{name}, sealed")));
        }
        for (sealer, heading) in &written {
            let key = entry_key(sealer, &item.content);
            let bytes = [&item.encode(sealer, &key, &[body]).unwrap(), body].concat();
            check(&document, heading, &bytes);
            let (read, rest) = Item::decode(sealer, &key, bytes).unwrap();
            assert_eq!((&read, &*rest), (&item, body), "{name}");
        }
    }
}

#[test]
fn the_document_has_the_bytes_of_a_purge_log() {
    for (sealer, heading) in [(Sealer::checksum(), "purge-log"), (sealed(), "purge-log, sealed")] {
        let key = keys(&sealer).purge_log();
        let mut bytes = HEADER.encode(&sealer, &key).unwrap();
        let records = samples::records();
        for record in &records {
            bytes.extend(record.encode(&sealer, &key, &LOG).unwrap());
        }
        check(&document(), heading, &bytes);
        let log = PurgeLog::decode(&sealer, &key, bytes, None).unwrap();
        assert_eq!(*log.header(), HEADER);
        assert_eq!(log.records().map(|(_, record)| record).collect::<Vec<_>>(), records);
    }
}

#[test]
fn the_document_has_the_server_keys() {
    let document = document();
    for (sealer, heading) in [(Sealer::checksum(), "Server keys"), (sealed(), "Server keys, with the secret")]
    {
        let keys = keys(&sealer);
        let entry = keys.entry(&LOCAL);
        let all = [
            entry,
            keys.variant(&LOCAL, TOKEN, &VaryKey::from_bytes(&b"accept-language:en\n"[..])),
            keys.chunk(&entry, TOKEN, 3),
            keys.claim(&entry),
            keys.purge_log(),
        ];
        let lines = all.map(|key| key.to_string());
        assert_eq!(block(&document, heading), lines, "{}", lines.join("\n"));
    }
}

#[test]
fn the_document_names_every_kind_reason_and_fault() {
    let document = document();
    let has_row = |number: u8, name: &str| document.contains(&format!("| {number} | `{name}` |"));
    assert!(Kind::ALL.iter().all(|kind| has_row(*kind as u8, kind.name())));
    for reason in MarkReason::all() {
        assert!(has_row(reason.code(), reason.name()), "{reason:?}");
    }
    for error in EntryError::ALL {
        let row = format!("| `{}` | {} |", error.name(), error.text());
        assert!(document.contains(&row), "{row}");
    }
}
