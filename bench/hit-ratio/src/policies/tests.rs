//! The policies against sequences made by hand.

use super::*;

/// Plays `sequence` against a policy that holds three objects of cost 1. Returns a character for each request:
/// the key in upper case for a hit, in lower case for a miss.
fn play(policy: &mut dyn Policy, sequence: &str) -> String {
    play_sized(policy, sequence, |_| 1)
}

fn play_sized(policy: &mut dyn Policy, sequence: &str, cost: impl Fn(char) -> u64) -> String {
    let keys: Vec<char> = sequence.chars().collect();
    let request = |(now, &key): (usize, &char)| {
        let next = keys[now + 1..].iter().position(|&other| other == key);
        let next = next.map_or(NEVER, |distance| (now + 1 + distance) as u32);
        let when = When { now: now as u32, next };
        let index = key as u32 - 'a' as u32;
        if policy.access(index, when) {
            return key.to_ascii_uppercase();
        }
        policy.insert(index, cost(key), when);
        key
    };
    keys.iter().enumerate().map(request).collect()
}

#[test]
fn fifo_evicts_the_oldest_although_it_was_requested() {
    assert_eq!(play(&mut recency::Recency::fifo(3, 26), "abcadabc"), "abcAdabc");
}

#[test]
fn lru_evicts_the_least_recently_used() {
    assert_eq!(play(&mut recency::Recency::lru(3, 26), "abcadabcd"), "abcAdAbcd");
}

#[test]
fn sieve_passes_over_visited_objects_and_its_hand_goes_on() {
    // d evicts b, and the hand stays at c; e evicts c, though a is older and no longer visited.
    assert_eq!(play(&mut sieve::Sieve::new(3, 26), "abcadeadc"), "abcAdeADc");
}

#[test]
fn s3_fifo_moves_what_was_requested_twice_and_remembers_what_left() {
    // Room for k is made by moving a to the main queue and evicting b, which comes back into the main queue.
    let (sequence, expected) = ("aaabcdefghijkblmnopqrstuabc", "aAAbcdefghijkblmnopqrstuABc");
    assert_eq!(play(&mut s3_fifo::S3Fifo::new(10, 26), sequence), expected);
}

#[test]
fn gdsf_evicts_a_large_object_before_older_small_ones() {
    let cost = |key| if key == 'c' { 5 } else { 1 };
    assert_eq!(play_sized(&mut gdsf::Gdsf::new(7, 26), "abcdabc", cost), "abcdABc");
}

#[test]
fn the_bound_keeps_what_is_requested_soonest() {
    // Belady: d would evict c, which is requested last, and is itself never requested again.
    assert_eq!(play(&mut bound::Bound::new(2, 26), "abcabdab"), "abcABdAB");
}

#[test]
fn the_libraries_hold_what_fits() {
    let mut policies: [Box<dyn Policy>; 2] =
        [Box::new(libraries::Moka::new(100)), Box::new(libraries::QuickCache::new(100))];
    for policy in &mut policies {
        let when = When { now: 0, next: NEVER };
        let present =
            |policy: &mut Box<dyn Policy>| (0..1000).filter(|&key| policy.access(key, when)).count();
        (0..10).for_each(|key| policy.insert(key, 10, when));
        assert!(present(policy) >= 9);
        (10..1000).for_each(|key| policy.insert(key, 10, when));
        assert!(present(policy) <= 10);
    }
}

/// Ten requests for one object, a second apart.
fn aging_trace(revalidates: bool) -> Trace {
    let request = |n: u32| Request { at: n * 1000, key: 0, size: 1000, lifetime: 3000 };
    Trace { requests: (0..10).map(request).collect(), keys: 1, capacity: 4 << 20, revalidates }
}

#[test]
fn an_expired_object_is_a_miss_or_a_hit_by_a_304_in_every_cache() {
    for (revalidates, expected) in [(false, "-hh-hh-hh-"), (true, "-hhhhhhhhh")] {
        let trace = aging_trace(revalidates);
        for kind in Kind::ALL {
            let mut cache = kind.make(&trace);
            let hit = |(n, request)| if cache.request(n, request) { 'h' } else { '-' };
            let hits: String = trace.requests.iter().enumerate().map(hit).collect();
            assert_eq!(hits, expected, "{}", kind.name());
        }
    }
}
