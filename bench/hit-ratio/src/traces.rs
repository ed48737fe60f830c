//! The traces: streams of requests, each made from the seed alone.
//!
//! 200 requests a second arrive on average. Objects live for a day, which is longer than any trace, unless the
//! trace is about lifetimes. `pages` are 20 000 objects of log-normal sizes (median 8 KB, sigma 1, at most
//! 1 MB), 280 MB in total, of which 16 MiB hold about 6 %. `site` objects are log-normal (median 8 KB, sigma
//! 1.3), with one in 1000 between 1 and 50 MB. Popularities follow Zipf's law, with exponent 0.9 unless the
//! trace names another.

use crate::cost::cost;
use crate::patterns::{self, Pattern};
use crate::random::Random;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Milliseconds since the start of the trace.
    pub(crate) at: u32,
    /// The object. Keys are dense, so that a policy can use them as indices.
    pub(crate) key: u32,
    /// Bytes of the body.
    pub(crate) size: u32,
    /// Milliseconds for which the response is fresh.
    pub(crate) lifetime: u32,
}

/// A trace, and the cache it is meant for.
pub(crate) struct Trace {
    pub(crate) requests: Vec<Request>,
    /// One past the largest key.
    pub(crate) keys: usize,
    /// Bytes of the cache.
    pub(crate) capacity: u64,
    /// Whether an expired object is refreshed by a 304. If not, it is fetched again.
    pub(crate) revalidates: bool,
}

/// The size of the cache.
#[derive(Clone, Copy)]
enum Memory {
    Mib(u64),
    /// A share, in per cent, of all `site` or `pages` objects.
    Percent(u64),
}

/// The sizes of objects.
#[derive(Clone, Copy)]
enum Sizes {
    Pages,
    Site,
    /// Evenly between 4 and 12 KB.
    Even,
}

/// How a trace is made.
pub(crate) struct Recipe {
    pub(crate) name: &'static str,
    /// What happens in it.
    pub(crate) text: &'static str,
    pattern: Pattern,
    skew: f64,
    objects: usize,
    sizes: Sizes,
    memory: Memory,
    /// Seconds for which responses are fresh.
    lifetime: u32,
    revalidates: bool,
    /// Its requests, in per cent of those of most traces.
    length: usize,
}

const DAY: u32 = 86_400;
/// Milliseconds between two requests, on average.
const GAP: usize = 5;
/// Bytes of a large download.
const DOWNLOAD: u32 = 20_000_000;

/// `pages` in 16 MiB.
const fn pages(name: &'static str, text: &'static str, pattern: Pattern) -> Recipe {
    Recipe {
        name,
        text,
        pattern,
        skew: 0.9,
        objects: 20_000,
        sizes: Sizes::Pages,
        memory: Memory::Mib(16),
        lifetime: DAY,
        revalidates: false,
        length: 100,
    }
}

/// `pages`, and one event, whose effect a long trace would hide.
const fn event(name: &'static str, text: &'static str, pattern: Pattern) -> Recipe {
    Recipe { length: 20, ..pages(name, text, pattern) }
}

const fn zipf(name: &'static str, skew: f64, percent: u64) -> Recipe {
    Recipe {
        skew,
        objects: 50_000,
        sizes: Sizes::Site,
        memory: Memory::Percent(percent),
        ..pages(
            name,
            "50 000 site objects; the name has the exponent and the cache in per cent of them",
            Pattern::Zipf,
        )
    }
}

const fn aging(name: &'static str, lifetime: u32, revalidates: bool) -> Recipe {
    let text = "pages that expire after as many seconds as the name says, and are refreshed by a 304 or fetched again";
    Recipe { lifetime, revalidates, ..pages(name, text, Pattern::Zipf) }
}

const fn passing(share: f64, times: u32, gap: usize) -> Pattern {
    Pattern::Passing { share, times, gap, sized: None }
}

/// Every 800th request is for a download of 20 MB.
const fn flood(name: &'static str, text: &'static str, times: u32) -> Recipe {
    let pattern = Pattern::Passing { share: 0.00125, times, gap: 2000, sized: Some(DOWNLOAD) };
    Recipe { memory: Memory::Mib(128), objects: 40_000, ..pages(name, text, pattern) }
}

const fn large(name: &'static str, text: &'static str, pattern: Pattern) -> Recipe {
    Recipe {
        objects: 200_000,
        sizes: Sizes::Site,
        memory: Memory::Mib(2048),
        length: 200,
        ..pages(name, text, pattern)
    }
}

/// All traces.
pub(crate) const RECIPES: &[Recipe] = &[
    zipf("zipf-0.7-1%", 0.7, 1),
    zipf("zipf-0.7-5%", 0.7, 5),
    zipf("zipf-0.7-20%", 0.7, 20),
    zipf("zipf-0.9-1%", 0.9, 1),
    zipf("zipf-0.9-5%", 0.9, 5),
    zipf("zipf-0.9-20%", 0.9, 20),
    zipf("zipf-1.1-1%", 1.1, 1),
    zipf("zipf-1.1-5%", 1.1, 5),
    zipf("zipf-1.1-20%", 1.1, 20),
    event("shift-half", "in the middle, half of the pages exchange their popularity", Pattern::Shift(0.5)),
    event("shift-all", "in the middle, all pages exchange their popularity", Pattern::Shift(1.0)),
    event("launch", "in the middle, 200 new pages become the most popular", Pattern::Launch(200)),
    pages("one-hit-60", "60 % of the requests are for objects requested once", passing(0.6, 1, 0)),
    event(
        "scan",
        "in the middle, every second request is part of a scan of 10 times the cache",
        Pattern::Scan(10.0),
    ),
    pages("loop", "pages of 1.1 times the cache, one after the other, again and again", Pattern::Loop(1.1)),
    pages(
        "news",
        "a page is born every 20 requests; its popularity halves every 40 000 requests",
        Pattern::News { born_every: 20, half_life: 40_000.0 },
    ),
    pages("burst-20-near", "20 % are requested 3 times, 50 requests apart, never again", passing(0.2, 3, 50)),
    pages(
        "burst-50-mid",
        "50 % are requested 3 times, 500 requests apart, never again",
        passing(0.5, 3, 500),
    ),
    pages(
        "burst-50-far",
        "50 % are requested 3 times, 2000 requests apart, never again",
        passing(0.5, 3, 2000),
    ),
    flood("flood-once", "128 MiB; every 800th request is a download of 20 MB that nobody else wants", 1),
    flood("flood-twice", "128 MiB; the same, but each download is requested twice, 2000 requests apart", 2),
    pages(
        "flood-small",
        "90 % are for objects of 500 bytes that are requested twice at once, never again",
        Pattern::Passing { share: 0.9, times: 2, gap: 1, sized: Some(500) },
    ),
    Recipe {
        skew: 0.0,
        objects: 200,
        sizes: Sizes::Even,
        memory: Memory::Mib(4),
        ..pages(
            "flood-steady",
            "4 MiB; 98 % are for such objects, the others for 200 pages of 4 to 12 KB, evenly",
            Pattern::Passing { share: 0.98, times: 2, gap: 1, sized: Some(500) },
        )
    },
    pages(
        "file-popular",
        "every 20th request is for one file of 800 KB",
        Pattern::Files { share: 0.05, files: 1, sized: Some(800_000) },
    ),
    pages(
        "files-popular",
        "every 4th request is for one of 20 files of 400 KB",
        Pattern::Files { share: 0.25, files: 20, sized: Some(400_000) },
    ),
    aging("fresh-10", 10, false),
    aging("fresh-10-304", 10, true),
    aging("fresh-60", 60, false),
    aging("fresh-60-304", 60, true),
    aging("fresh-300", 300, false),
    aging("fresh-300-304", 300, true),
    large("2g-zipf", "2 GiB; 200 000 site objects", Pattern::Zipf),
    large(
        "2g-one-hit-30",
        "2 GiB; the same, and 30 % of the requests are for objects requested once",
        passing(0.3, 1, 0),
    ),
];

impl Recipe {
    /// Makes the trace. `count` is the number of requests in most traces.
    pub(crate) fn make(&self, seed: u64, count: usize) -> Trace {
        let count = count * self.length / 100;
        let mut random = Random::of(seed, u64::from_le_bytes(*b"requests"));
        let size = |key| self.size(seed, key);
        let capacity = match self.memory {
            Memory::Mib(mib) => mib << 20,
            Memory::Percent(percent) => {
                (0..self.objects as u32).map(|key| cost(size(key))).sum::<u64>() * percent / 100
            }
        };
        // The number of objects, from a key on, that take so many times the cache.
        let filling = |times: f64, from: usize| {
            let mut left = capacity as f64 * times;
            let fits = |&key: &u32| {
                left -= cost(size(key)) as f64;
                left >= 0.0
            };
            (from as u32..).take_while(fits).count()
        };
        let keys = patterns::keys(self.pattern, self.skew, self.objects, count, &filling, &mut random);
        let mut at = 0;
        let request = |key| {
            at += random.below(2 * GAP + 1) as u32;
            Request { at, key, size: size(key), lifetime: self.lifetime * 1000 }
        };
        let requests: Vec<Request> = keys.into_iter().map(request).collect();
        let last = requests.iter().map(|request| request.key).max().unwrap_or(0);
        Trace { requests, keys: last as usize + 1, capacity, revalidates: self.revalidates }
    }

    /// Bytes of the body of an object.
    fn size(&self, seed: u64, key: u32) -> u32 {
        if let Pattern::Passing { sized: Some(size), .. } | Pattern::Files { sized: Some(size), .. } =
            self.pattern
            && key as usize >= self.objects
        {
            return size;
        }
        let mut random = Random::of(seed, u64::from(key));
        match self.sizes {
            Sizes::Pages => (8192.0 * random.normal().exp()).clamp(100.0, 1e6) as u32,
            Sizes::Even => 4096 + random.below(8192) as u32,
            Sizes::Site if random.below(1000) == 0 => (1e6 * 50f64.powf(random.fraction())) as u32,
            Sizes::Site => (8192.0 * (1.3 * random.normal()).exp()).clamp(100.0, 1e6) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(name: &str) -> &'static Recipe {
        RECIPES.iter().find(|recipe| recipe.name == name).unwrap()
    }

    #[test]
    fn a_seed_makes_the_same_trace_again_and_another_seed_another() {
        for recipe in RECIPES {
            let [one, same, other] = [1, 1, 2].map(|seed| recipe.make(seed, 3000));
            assert_eq!((&one.requests, one.capacity), (&same.requests, same.capacity), "{}", recipe.name);
            assert_ne!(one.requests, other.requests, "{}", recipe.name);
            assert_eq!(one.requests.len(), 30 * recipe.length);
        }
    }

    #[test]
    fn an_object_has_the_same_size_in_every_request() {
        let trace = recipe("flood-twice").make(1, 20_000);
        let mut sizes = vec![0; trace.keys];
        for request in &trace.requests {
            let size = &mut sizes[request.key as usize];
            assert!(*size == 0 || *size == request.size);
            *size = request.size;
        }
        assert!(sizes.contains(&DOWNLOAD));
    }
}
