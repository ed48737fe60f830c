//! Items of the shared tier: vectors, properties of every item, and every kind of damage.

mod damage;
mod forge;
mod forged;
mod generate;
mod properties;
mod purge_log;
mod samples;
mod vectors;

use sandarac_wire::entry::{EntryKey, EntryKeys, LocalKey, Sealer, Secret};

/// The secret of tests: bytes that all are `byte`.
fn secret(byte: u8) -> Secret {
    Secret::new(&[byte; 32]).expect("long enough")
}

/// A sealer without a secret, and one with.
fn sealers() -> [Sealer; 2] {
    [Sealer::checksum(), Sealer::keyed(secret(b's'), None)]
}

/// A server key.
fn server_key(byte: u8) -> EntryKey {
    let local = LocalKey { key: [byte; 16], rules: [0; 16] };
    EntryKeys::new(b"test", &Sealer::checksum()).entry(&local)
}
