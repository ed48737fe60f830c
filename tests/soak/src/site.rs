//! The cached site: its pages, their versions, and how old an answer may be.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sandarac_test_support::http_date_at;

use crate::page::Page;
use crate::random::Random;

/// The host of the cached site.
pub(crate) const HOST: &str = "cache.example";

/// Pages of the site.
const PAGES: usize = 400;

/// Pages below this rank are never large, because each of them takes a large share of all requests.
const SMALL_RANKS: usize = 40;

/// The rank of a page that is more than the system takes on behalf of a client, and that stays fresh.
pub(crate) const LARGE_RANK: usize = PAGES - 1;

/// Tags that pages carry.
const TAGS: u64 = 24;

/// The values of the field `X-Tint`, by which some pages vary.
pub(crate) const TINTS: [&str; 4] = ["", "red", "green", "blue"];

/// The time of the last change of version 0 of each page, in seconds since 1970. Versions are a second apart, so that a date
/// names one.
const FIRST_CHANGE: i64 = 1_700_000_000;

/// All pages, the most popular first.
pub(crate) struct Site {
    pub(crate) entries: Vec<Entry>,
}

/// How the validators of a page look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Validator {
    Strong,
    Weak,
    /// Last-Modified alone.
    Date,
    None,
}

/// How long a page may be served after the origin made it.
#[derive(Clone)]
pub(crate) struct Life {
    /// The fields that say so.
    pub(crate) fields: Vec<(&'static str, String)>,
    pub(crate) fresh: Duration,
    /// How much longer it may be served while another is fetched.
    pub(crate) while_revalidating: Duration,
    /// Whether it may stand in for an origin that fails.
    pub(crate) may_stand_in: bool,
}

/// A page and its versions.
pub(crate) struct Entry {
    pub(crate) target: String,
    pub(crate) life: Life,
    pub(crate) validator: Validator,
    pub(crate) chunked: bool,
    /// Whether it varies by `X-Tint`.
    pub(crate) tinted: bool,
    /// Whether the origin answers ranges of it.
    pub(crate) ranged: bool,
    /// The name of the field with its tags.
    pub(crate) tag_field: &'static str,
    pub(crate) tags: Vec<String>,
    /// Bytes of a field that makes the head long.
    pub(crate) padding: usize,
    base: u64,
    /// When each version was replaced, from version 1 on. The current one is the next.
    replaced: Mutex<Vec<Instant>>,
    floor: AtomicU64,
    soft_floor: AtomicU64,
}

impl Site {
    pub(crate) fn new(random: &mut Random) -> Site {
        Site { entries: (0..PAGES).map(|rank| Entry::new(rank, random)).collect() }
    }

    /// The number of the page that a visitor asks for: popularity falls with the rank as Zipf's law has it.
    pub(crate) fn choose(&self, random: &mut Random) -> usize {
        let count = self.entries.len() as f64;
        ((count + 1.0).powf(random.unit()) as usize - 1).min(self.entries.len() - 1)
    }

    /// The page with this target.
    pub(crate) fn find(&self, target: &str) -> Option<&Entry> {
        let number: usize = target.strip_prefix("/c/")?.parse().ok()?;
        self.entries.get(number)
    }
}

impl Entry {
    fn new(rank: usize, random: &mut Random) -> Entry {
        let large = rank == LARGE_RANK;
        let base = match random.below(100) {
            _ if large => random.within(8 << 20, 20 << 20),
            0..5 => 0,
            5..25 => random.within(100, 800),
            25..65 => random.within(1 << 10, 16 << 10),
            65..90 => random.within(16 << 10, 128 << 10),
            90..96 => random.within(128 << 10, 1 << 20),
            _ if rank < SMALL_RANKS => random.within(1 << 10, 64 << 10),
            96..99 => random.within(1 << 20, 5 << 20),
            _ => random.within(8 << 20, 20 << 20),
        };
        let validator = random.weighted(&[
            (6, Validator::Strong),
            (1, Validator::Weak),
            (2, Validator::Date),
            (1, Validator::None),
        ]);
        let tags = (0..random.below(3)).map(|_| format!("t{}", random.below(TAGS))).collect();
        Entry {
            target: format!("/c/{rank}"),
            life: if large { Life::long() } else { Life::new(random) },
            validator,
            chunked: random.percent(40),
            tinted: !large && random.percent(12),
            ranged: random.percent(70),
            tag_field: random.pick(&["Surrogate-Key", "Cache-Tag", "xkey"]),
            tags,
            padding: if random.percent(8) { random.within(1, 20_000) as usize } else { 0 },
            base,
            replaced: Mutex::default(),
            floor: AtomicU64::new(1),
            soft_floor: AtomicU64::new(1),
        }
    }

    /// The page as it is for a visitor with the tint `tint`.
    pub(crate) fn page(&self, version: u64, tint: &str) -> Page {
        let owner = if tint.is_empty() || !self.tinted { "-" } else { tint };
        Page {
            place: format!("{HOST}{}", self.target),
            version,
            length: self.length(version),
            owner: owner.to_owned(),
        }
    }

    /// The length of a version: those next to each other differ, so that a mixture of them cannot pass.
    pub(crate) fn length(&self, version: u64) -> u64 {
        if self.base == 0 { 0 } else { self.base + version % 7 }
    }

    /// A length that each version has at least.
    pub(crate) fn least_length(&self) -> u64 {
        self.base
    }

    pub(crate) fn current(&self) -> u64 {
        self.replaced.lock().expect("no thread panics here").len() as u64 + 1
    }

    /// Replaces the current version, and gives the one that is current then.
    pub(crate) fn bump(&self) -> u64 {
        let mut replaced = self.replaced.lock().expect("no thread panics here");
        replaced.push(Instant::now());
        replaced.len() as u64 + 1
    }

    /// When `version` was replaced; `None` while it is current.
    pub(crate) fn replaced(&self, version: u64) -> Option<Instant> {
        self.replaced.lock().expect("no thread panics here").get(version as usize - 1).copied()
    }

    /// The least version that may be served, and the least that may be served as fresh.
    pub(crate) fn floors(&self) -> (u64, u64) {
        (self.floor.load(Ordering::SeqCst), self.soft_floor.load(Ordering::SeqCst))
    }

    /// Nothing older than `version` may be served to requests that begin from now on.
    pub(crate) fn forbid_before(&self, version: u64) {
        self.floor.fetch_max(version, Ordering::SeqCst);
        self.soften_before(version);
    }

    /// Nothing older than `version` may be served as fresh to requests that begin from now on.
    pub(crate) fn soften_before(&self, version: u64) {
        self.soft_floor.fetch_max(version, Ordering::SeqCst);
    }

    /// The entity tag of a page of this entry.
    pub(crate) fn tag(&self, page: &Page) -> Option<String> {
        let tag = format!("\"{}-{:016x}\"", page.version, page.digest());
        match self.validator {
            Validator::Strong => Some(tag),
            Validator::Weak => Some(format!("W/{tag}")),
            Validator::Date | Validator::None => None,
        }
    }

    /// The time of the last change of `version`.
    pub(crate) fn changed(&self, version: u64) -> Option<String> {
        let time = FIRST_CHANGE + version as i64;
        (self.validator != Validator::None).then(|| http_date_at(time))
    }
}

impl Life {
    fn long() -> Life {
        Life {
            fields: vec![("Cache-Control", "max-age=300".to_owned())],
            fresh: Duration::from_secs(300),
            while_revalidating: Duration::ZERO,
            may_stand_in: true,
        }
    }

    fn new(random: &mut Random) -> Life {
        let seconds = random.pick(&[1, 2, 5, 30, 300]);
        let max_age = format!("max-age={seconds}");
        let fresh = Duration::from_secs(seconds);
        let plain = |name, value: String| Life {
            fields: vec![(name, value)],
            fresh,
            while_revalidating: Duration::ZERO,
            may_stand_in: true,
        };
        let hidden_from_clients = |name| Life {
            fields: vec![(name, format!("max-age={seconds}")), ("Cache-Control", "max-age=0".to_owned())],
            ..plain(name, String::new())
        };
        match random.below(20) {
            0..8 => plain("Cache-Control", max_age),
            8 => Life { fresh: Duration::ZERO, ..plain("Cache-Control", "max-age=0".to_owned()) },
            9 => Life {
                fresh: Duration::ZERO,
                may_stand_in: false,
                ..plain("Cache-Control", "no-cache".to_owned())
            },
            10..13 => Life {
                fresh: Duration::from_secs(1),
                while_revalidating: Duration::from_secs(3),
                ..plain("Cache-Control", "max-age=1, stale-while-revalidate=3".to_owned())
            },
            13 => plain("Cache-Control", format!("{max_age}, stale-if-error=10")),
            14 => {
                Life { may_stand_in: false, ..plain("Cache-Control", format!("{max_age}, must-revalidate")) }
            }
            15 => Life { may_stand_in: false, ..plain("Cache-Control", format!("s-maxage={seconds}")) },
            16 | 17 => hidden_from_clients("Surrogate-Control"),
            18 => hidden_from_clients("Sandarac-Cache-Control"),
            _ => hidden_from_clients("CDN-Cache-Control"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_replaced_by_the_next_and_floors_only_rise() {
        let site = Site::new(&mut Random::new(1, 0));
        let entry = site.find("/c/7").expect("there is a page of each rank");
        assert_eq!(entry.current(), 1);
        assert_eq!(entry.replaced(1), None);
        let before = Instant::now();
        assert_eq!(entry.bump(), 2);
        assert_eq!(entry.current(), 2);
        assert!(entry.replaced(1).is_some_and(|time| time >= before) && entry.replaced(2).is_none());
        entry.forbid_before(2);
        entry.soften_before(1);
        assert_eq!(entry.floors(), (2, 2));
    }

    #[test]
    fn the_same_seed_makes_the_same_site() {
        let pages = |seed| {
            let site = Site::new(&mut Random::new(seed, 0));
            site.entries.iter().map(|entry| entry.page(1, "").to_string()).collect::<Vec<_>>()
        };
        assert_eq!(pages(5), pages(5));
        assert_ne!(pages(5), pages(6));
    }

    #[test]
    fn popular_pages_are_asked_for_most() {
        let site = Site::new(&mut Random::new(1, 0));
        let mut random = Random::new(1, 1);
        let asked: Vec<usize> = (0..10_000).map(|_| site.choose(&mut random)).collect();
        let below = |rank| asked.iter().filter(|&&number| number < rank).count();
        assert!((900..1500).contains(&below(1)), "{}", below(1));
        assert!(below(400) == 10_000 && below(20) < 6000);
    }
}
