//! Placement: the server that holds a key, by rendezvous hashing (Thaler and Ravishankar, "Using name-based
//! mappings to increase hit rates", 1998).

use sandarac_balance::hash;
use sandarac_wire::entry::EntryKey;

/// The servers of the shared tier, as far as placement is concerned.
///
/// A server that joins takes its share of the keys from all others, and one that leaves gives its keys to all
/// others; no other key moves. Health does not matter: the keys of a server that does not answer are misses,
/// because a copy elsewhere would be missed by purges once the server is back.
#[derive(Clone, Debug)]
pub struct Placement {
    /// The seed of each server, from its name.
    seeds: Box<[u64]>,
}

impl Placement {
    /// Servers by their names, in any order. All nodes MUST use the same names, and none twice, because a name
    /// decides which keys a server gets.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Placement {
        Placement { seeds: names.into_iter().map(|name| hash(name.as_bytes(), 0)).collect() }
    }

    /// The number of the server that holds a key, in the order of the names; `None` without servers.
    pub fn server_of(&self, key: &EntryKey) -> Option<usize> {
        let key = hash(key.as_bytes(), 0).to_le_bytes();
        let score = |&server: &usize| (hash(&key, self.seeds[server]), self.seeds[server]);
        (0..self.seeds.len()).max_by_key(score)
    }
}

#[cfg(test)]
mod tests {
    use sandarac_wire::entry::{EntryKeys, LocalKey, Sealer};

    use super::*;

    const NAMES: [&str; 4] =
        ["10.0.0.1:11211", "10.0.0.2:11211", "[2001:db8::3]:11211", "unix:/run/memcached"];

    fn keys() -> Vec<EntryKey> {
        let keys = EntryKeys::new(b"shop", &Sealer::checksum());
        let local = |n: u128| LocalKey { key: n.to_le_bytes(), rules: [0; 16] };
        (0..10_000).map(|n| keys.entry(&local(n))).collect()
    }

    /// The names of the servers that hold the keys.
    fn placed(names: &[&'static str], keys: &[EntryKey]) -> Vec<&'static str> {
        let placement = Placement::new(names.iter().copied());
        keys.iter().map(|key| names[placement.server_of(key).unwrap()]).collect()
    }

    #[test]
    fn each_server_gets_its_share() {
        let placed = placed(&NAMES, &keys());
        for name in NAMES {
            let count = placed.iter().filter(|other| **other == name).count();
            assert!((2300..2700).contains(&count), "{name}: {count} of 10000");
        }
    }

    #[test]
    fn only_the_keys_of_a_server_that_leaves_move() {
        let keys = keys();
        let (before, after) = (placed(&NAMES, &keys), placed(&NAMES[1..], &keys));
        let mut moved = 0;
        for (before, after) in before.iter().zip(&after) {
            match *before == NAMES[0] {
                true => moved += usize::from(*after == NAMES[1]),
                false => assert_eq!(before, after),
            }
        }
        // Its keys are spread over those that stay.
        assert!((700..1000).contains(&moved), "{moved}");
    }

    #[test]
    fn the_order_of_the_list_does_not_matter() {
        let keys = keys();
        let mut reversed = NAMES;
        reversed.reverse();
        assert_eq!(placed(&NAMES, &keys), placed(&reversed, &keys));
    }

    #[test]
    fn nodes_of_all_versions_agree() {
        let placed: Vec<_> =
            keys()[..8].iter().map(|key| Placement::new(NAMES).server_of(key).unwrap()).collect();
        assert_eq!(placed, [1, 2, 2, 0, 3, 0, 1, 1]);
    }

    #[test]
    fn without_servers_no_key_has_one() {
        assert_eq!(Placement::new([]).server_of(&keys()[0]), None);
    }
}
