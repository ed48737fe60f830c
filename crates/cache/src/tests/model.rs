//! The store against a model: after any sequence of operations, the bytes charged are the bytes held, and
//! never exceed the limit.

use proptest::prelude::*;
use sandarac_esi::TemplateBuilder;
use sandarac_message::codings::Coding;
use sandarac_message::range::ByteRange;
use sandarac_message::recoding::Uncompressed;

use super::*;
use crate::Purge::{Hard, Soft};
use crate::{BodyWriter, Combination, Mark, PageMarkup, Recoding};

/// Paths that the operations use.
const PATHS: u8 = 24;

#[derive(Clone, Debug)]
enum Step {
    Put { path: u8, len: u32, tags: u8, vary: Option<u8> },
    Begin { path: u8, known: bool, tags: u8 },
    Part { path: u8, first: u32, len: u32, all: bool },
    Append { which: u8, len: u32 },
    Finish { which: u8 },
    Break { which: u8, spoiled: bool },
    Look { path: u8, vary: u8, wait: u16 },
    Refresh { path: u8 },
    Hold { path: u8 },
    Block { path: u8, len: u8 },
    Markup { path: u8, includes: u8 },
    Recode { path: u8, coding: u8, len: u32, block: u8 },
    Carry { from: u8, to: u8 },
    LetGo,
    Read { which: u8 },
    Purge { path: u8, hard: bool },
    PurgeTag { tag: u8, hard: bool },
    PurgeAll { hard: bool },
    Ban { path: u8 },
    Sweep { budget: u8 },
    Limit { limit: u32 },
    Mark { path: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    let path = 0..PATHS;
    let len = prop_oneof![8 => 0u32..3000, 3 => 3000u32..70_000, 1 => 70_000u32..400_000];
    prop_oneof![
        8 => (path.clone(), len.clone(), 0u8..8, proptest::option::weighted(0.2, 0u8..4))
            .prop_map(|(path, len, tags, vary)| Step::Put { path, len, tags, vary }),
        4 => (path.clone(), any::<bool>(), 0u8..8)
            .prop_map(|(path, known, tags)| Step::Begin { path, known, tags }),
        6 => (path.clone(), 0u32..200_000, len.clone(), proptest::bool::weighted(0.8))
            .prop_map(|(path, first, len, all)| Step::Part { path, first, len, all }),
        12 => (any::<u8>(), len).prop_map(|(which, len)| Step::Append { which, len }),
        4 => any::<u8>().prop_map(|which| Step::Finish { which }),
        2 => (any::<u8>(), any::<bool>()).prop_map(|(which, spoiled)| Step::Break { which, spoiled }),
        6 => (path.clone(), 0u8..5, 0u16..40).prop_map(|(path, vary, wait)| Step::Look { path, vary, wait }),
        2 => path.clone().prop_map(|path| Step::Refresh { path }),
        2 => path.clone().prop_map(|path| Step::Hold { path }),
        3 => (path.clone(), any::<u8>()).prop_map(|(path, len)| Step::Block { path, len }),
        3 => (path.clone(), any::<u8>()).prop_map(|(path, includes)| Step::Markup { path, includes }),
        4 => (path.clone(), any::<u8>(), 0u32..100_000, any::<u8>())
            .prop_map(|(path, coding, len, block)| Step::Recode { path, coding, len, block }),
        1 => (path.clone(), path.clone()).prop_map(|(from, to)| Step::Carry { from, to }),
        2 => Just(Step::LetGo),
        4 => any::<u8>().prop_map(|which| Step::Read { which }),
        1 => (path.clone(), any::<bool>()).prop_map(|(path, hard)| Step::Purge { path, hard }),
        1 => (0u8..3, any::<bool>()).prop_map(|(tag, hard)| Step::PurgeTag { tag, hard }),
        1 => proptest::bool::weighted(0.3).prop_map(|hard| Step::PurgeAll { hard }),
        1 => path.clone().prop_map(|path| Step::Ban { path }),
        1 => any::<u8>().prop_map(|budget| Step::Sweep { budget }),
        1 => (100_000u32..2_000_000).prop_map(|limit| Step::Limit { limit }),
        1 => path.prop_map(|path| Step::Mark { path }),
    ]
}

/// A store, and the references that a proxy would hold.
struct World {
    store: Arc<Store>,
    now: Timestamp,
    writers: Vec<BodyWriter>,
    readers: Vec<Reader>,
    held: Vec<Arc<Object>>,
    limit: usize,
}

fn path(path: u8) -> String {
    format!("/{path}")
}

fn tags(bits: u8) -> Vec<Tag> {
    (0..3u8).filter(|bit| bits & 1 << bit != 0).map(|bit| Tag::new(&[bit])).collect()
}

impl World {
    fn new() -> World {
        let limit = 1_000_000;
        World {
            store: store(limit),
            now: START,
            writers: Vec::new(),
            readers: Vec::new(),
            held: Vec::new(),
            limit,
        }
    }

    fn response(&self, to: u8, bits: u8) -> Response {
        Response { tags: tags(bits), ..response(&path(to)).lifetimes(self.now, 10, 5, 30).resumable() }
    }

    fn run(&mut self, step: &Step) {
        match step.clone() {
            Step::Put { path, len, tags, vary } => {
                let mut response = self.response(path, tags);
                if let Some(vary) = vary {
                    response = response.vary("X", &[("X", &vary.to_string())]);
                }
                response.put(&self.store, &vec![path; len as usize]);
            }
            Step::Begin { path: to, known, tags } => {
                let mut response = self.response(to, tags);
                response.len = known.then_some(100_000);
                if let Lookup::Miss(flight) | Lookup::Stale(_, Some(flight)) =
                    get(&path(to)).lookup(&self.store, self.now)
                {
                    let writer = flight.store(response.new_object());
                    self.readers.extend(writer.object().reader());
                    self.writers.push(writer);
                }
            }
            Step::Part { path: to, first, len, all } => {
                let part = ByteRange { first: first.into(), last: u64::from(first + len) };
                if let Lookup::Miss(flight) = get(&path(to)).lookup(&self.store, self.now) {
                    let mut response = self.response(to, to);
                    let arrives = ContentRange::of(part, 1 << 20);
                    let held = flight.candidate().and_then(|candidate| candidate.range());
                    response.range = held.and_then(|held| held.union(&arrives)).or(Some(arrives));
                    let combination = flight.candidate().and_then(|held| Combination::of(held.clone(), part));
                    let mut writer = match combination {
                        Some(combination) => flight.combine(response.new_object(), combination),
                        None => {
                            response.range = Some(arrives);
                            flight.store(response.new_object())
                        }
                    };
                    self.readers.extend(writer.reader());
                    if all {
                        writer.append(&vec![2; part.len() as usize]);
                        writer.finish(None);
                    } else {
                        self.writers.push(writer);
                    }
                }
            }
            Step::Append { which, len } => {
                let count = self.writers.len().max(1);
                if let Some(writer) = self.writers.get_mut(which as usize % count) {
                    writer.append(&vec![1; len as usize]);
                }
            }
            Step::Finish { which } => {
                if !self.writers.is_empty() {
                    self.writers.swap_remove(which as usize % self.writers.len()).finish(None);
                }
            }
            Step::Break { which, spoiled } => {
                if !self.writers.is_empty() {
                    let writer = self.writers.swap_remove(which as usize % self.writers.len());
                    if !spoiled {
                        writer.break_off(self.now);
                    }
                }
            }
            Step::Look { path: to, vary, wait } => {
                self.now = self.now.plus(Duration::from_millis(u64::from(wait) * 100));
                let request = get(&path(to)).with(&[("X", &vary.to_string())]);
                if let Lookup::Hit(object) = request.lookup(&self.store, self.now) {
                    assert!(object.path() == path(to).as_bytes());
                    assert!(object.lifetimes().is_fresh(self.now));
                }
            }
            Step::Refresh { path: to } => {
                if let Lookup::Miss(flight) = get(&path(to)).lookup(&self.store, self.now) {
                    flight.refresh(self.response(to, to).new_object());
                }
            }
            Step::Hold { path: to } => {
                if let Lookup::Hit(object) = get(&path(to)).lookup(&self.store, self.now) {
                    self.held.push(object);
                }
            }
            Step::Block { path: to, len } => {
                if let Lookup::Hit(object) = get(&path(to)).lookup(&self.store, self.now) {
                    let before = object.block().map(<[u8]>::to_vec);
                    self.store.keep_block(&object, vec![len; len.into()].into());
                    let after = object.block().map(<[u8]>::to_vec);
                    assert!(before.is_none() || before == after, "a block stays as it is");
                }
            }
            Step::Markup { path: to, includes } => {
                if let Lookup::Hit(object) = get(&path(to)).lookup(&self.store, self.now) {
                    let mut template = TemplateBuilder::default();
                    (0..includes).for_each(|_| template.push(b"<esi:include src=\"/a\"/>"));
                    let template = template.finish().expect("a template");
                    self.store.keep_markup(&object, PageMarkup::Parts(template));
                }
            }
            Step::Recode { path: to, coding, len, block } => {
                if let Lookup::Hit(object) = get(&path(to)).lookup(&self.store, self.now) {
                    let coding = Coding::ALL.get(usize::from(coding % 4)).copied();
                    if len % 5 == 0 {
                        self.store.keep_useless(&object, coding, Uncompressed::NotSmaller);
                    } else {
                        let (head, body) = (object.head().clone(), vec![0; len as usize].into());
                        self.store.keep_recoding(&object, coding, head, body);
                    }
                    if let Some(Recoding::Made(recoded)) = object.recoding(coding) {
                        self.store.keep_block_of_recoding(&object, recoded, vec![0; block.into()].into());
                    }
                }
            }
            Step::Carry { from, to } => {
                let found = [from, to].map(|at| get(&path(at)).lookup(&self.store, self.now));
                if let [Lookup::Hit(before), Lookup::Hit(after)] = &found {
                    self.store.carry_recodings(before, after, |_| Some(after.head().clone()));
                }
            }
            Step::LetGo => drop(self.held.pop()),
            Step::Read { which } => {
                let count = self.readers.len().max(1);
                let read =
                    self.readers.get_mut(which as usize % count).map(|reader| Task::new().read(reader));
                if read.is_some_and(|read| read.ends_with('>')) {
                    self.readers.swap_remove(which as usize % count);
                }
            }
            Step::Purge { path: to, hard } => {
                self.store.purge(key(&path(to)), if hard { Hard } else { Soft }, self.now);
                self.expect_no_hit(&[to]);
            }
            Step::PurgeTag { tag, hard } => {
                self.store.purge_tags(&[Tag::new(&[tag])], if hard { Hard } else { Soft }, self.now);
                assert_eq!(
                    if hard { self.store.purge_tags(&[Tag::new(&[tag])], Hard, self.now) } else { 0 },
                    0
                );
            }
            Step::PurgeAll { hard } => {
                self.store.purge_all(if hard { Hard } else { Soft }, self.now);
                self.expect_no_hit(&(0..PATHS).collect::<Vec<_>>());
            }
            Step::Ban { path: to } => {
                self.store.ban(format!("path == \"/{to}\"").parse().unwrap(), self.now);
                self.expect_no_hit(&[to]);
            }
            Step::Sweep { budget } => _ = self.store.sweep(budget.into(), self.now),
            Step::Limit { limit } => {
                self.limit = limit as usize;
                self.store.configure(Settings { limit: self.limit, ..self.store.settings() });
            }
            Step::Mark { path: to } => {
                if let Lookup::Miss(flight) = get(&path(to)).lookup(&self.store, self.now) {
                    flight.mark(Mark::HitForMiss, self.now.plus(Duration::from_secs(3)), self.now);
                }
            }
        }
        self.check();
    }

    fn expect_no_hit(&self, paths: &[u8]) {
        for &to in paths {
            assert!(!look(&self.store, &get(&path(to)).peek(), self.now).starts_with("hit"));
        }
    }

    fn check(&self) {
        let stats = self.store.stats();
        let recounted =
            recount(&self.store, self.writers.iter().flat_map(BodyWriter::holds), &self.held, &self.readers);
        assert_eq!(stats.bytes as usize, recounted, "{stats:?}");
        // Eviction cannot free the objects that readers hold outside the store.
        let pinned = self.pinned();
        assert!(stats.bytes as usize <= self.limit.max(pinned), "{stats:?}, {pinned} pinned");
    }

    /// Bytes that eviction could not free.
    fn pinned(&self) -> usize {
        let index: usize = (0..self.store.shards()).map(|at| self.store.shard(at).index_bytes()).sum();
        let objects = self.held.iter().chain(self.readers.iter().map(Reader::object));
        let objects = objects.chain(self.writers.iter().flat_map(BodyWriter::holds));
        index + distinct(objects).iter().map(|object| object.recount()).sum::<usize>() * 2
    }
}

/// Every object once.
fn distinct<'a>(objects: impl Iterator<Item = &'a Arc<Object>>) -> Vec<Arc<Object>> {
    let mut distinct: Vec<Arc<Object>> = objects.cloned().collect();
    distinct.sort_by_key(Arc::as_ptr);
    distinct.dedup_by_key(|object| Arc::as_ptr(object));
    distinct
}

/// The bytes that should be charged: the index, and every object that is in it or referenced, each body
/// counted once.
fn recount<'a>(
    store: &Store,
    writer: impl Iterator<Item = &'a Arc<Object>>,
    held: &'a [Arc<Object>],
    readers: &'a [Reader],
) -> usize {
    let mut index = 0;
    let mut stored = Vec::new();
    for at in 0..store.shards() {
        let shard = store.shard(at);
        index += shard.index_bytes();
        let objects: Vec<Arc<Object>> =
            (0..shard.end()).filter_map(|slot| shard.object(slot).cloned()).collect();
        let queued = shard.queued(crate::queue::Queue::Small) + shard.queued(crate::queue::Queue::Main);
        assert_eq!(queued, objects.iter().map(|object| object.weight()).sum::<usize>(), "weights in queues");
        assert_eq!(shard.len(), objects.iter().filter(|object| !object.is_condemned()).count());
        stored.extend(objects);
    }
    let in_hands = writer.chain(held).chain(readers.iter().map(Reader::object)).cloned();
    stored.extend(in_hands);
    let all = distinct(stored.iter());
    let mut shared: Vec<(usize, usize)> = all.iter().flat_map(|object| object.recount_shared()).collect();
    shared.sort_unstable();
    shared.dedup();
    let own: usize = all.iter().map(|object| object.recount_own()).sum();
    index + own + shared.iter().map(|(_, bytes)| bytes).sum::<usize>()
}

proptest! {
    #[test]
    fn what_is_charged_is_what_is_held_and_within_the_limit(steps in proptest::collection::vec(step(), 1..200)) {
        let mut world = World::new();
        for step in &steps {
            world.run(step);
        }
        let store = world.store.clone();
        drop(world);
        store.purge_all(Hard, START);
        let index: usize = (0..store.shards()).map(|at| store.shard(at).index_bytes()).sum();
        prop_assert_eq!(store.stats().bytes as usize, index);
        prop_assert_eq!(store.stats().flights, 0);
    }
}
