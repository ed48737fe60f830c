//! Tests of the queue of a pool.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::Wake;
use std::thread::{self, Thread};

use proptest::prelude::*;

use super::*;
use crate::{Algorithm, AttemptOutcome, Backend, Pick, Pool, Settings, Ticket};

pub(super) const NOW: Duration = Duration::from_secs(1000);

/// Counts how often it is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Count>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A request with a ticket and a waker of its own. An empty class is none.
pub(super) struct Request {
    ticket: Ticket,
    class: Vec<u8>,
    woken: Arc<Count>,
}

impl Request {
    pub(super) fn new(pool: &Pool, class: &[u8]) -> Request {
        Request { ticket: pool.queue(), class: class.to_vec(), woken: Arc::default() }
    }

    /// A request without a class, whose session sticks to a backend.
    pub(super) fn sticking(pool: &Pool, backend: BackendId) -> Request {
        Request { ticket: pool.queue().sticking_to(backend), class: Vec::new(), woken: Arc::default() }
    }

    /// A request that waits already.
    pub(super) fn waiting(pool: &Pool, class: &[u8]) -> Request {
        let mut request = Request::new(pool, class);
        assert!(request.poll(NOW).is_pending());
        request
    }

    pub(super) fn poll(&mut self, now: Duration) -> Poll<Result<Pick, NoBackend>> {
        self.poll_but(now, &[])
    }

    pub(super) fn poll_but(&mut self, now: Duration, exclude: &[BackendId]) -> Poll<Result<Pick, NoBackend>> {
        let waker = Waker::from(self.woken.clone());
        let class = Some(self.class.as_slice()).filter(|class| !class.is_empty());
        self.ticket.poll_pick(&mut Context::from_waker(&waker), class, now, exclude)
    }

    pub(super) fn wakes(&self) -> usize {
        self.woken.0.load(Ordering::Relaxed)
    }

    pub(super) fn is_woken(&self) -> bool {
        self.wakes() > 0
    }

    pub(super) fn served(&mut self) -> Pick {
        match self.poll(NOW) {
            Poll::Ready(Ok(pick)) => pick,
            other => panic!("{other:?}"),
        }
    }
}

fn backend(n: usize) -> Backend {
    Backend::new(format!("http://10.0.0.{n}:80").parse().unwrap())
}

fn pool(backends: usize, limit: u32, queue: u32) -> Pool {
    let backends = (0..backends).map(|n| backend(n).max_in_flight(limit)).collect();
    Pool::new("app", backends, Settings { queue_limit: queue, ..Settings::default() })
}

fn pick(pool: &Pool) -> Pick {
    pool.pick(None, NOW, &[]).unwrap()
}

#[test]
fn a_place_given_back_goes_to_the_first_that_waits() {
    let pool = pool(1, 1, 10);
    let mut held = Request::new(&pool, b"").served();
    let mut requests: Vec<_> = (0..3).map(|_| Request::waiting(&pool, b"")).collect();
    assert_eq!(pool.queue_report(), QueueReport { waiting: 3, limit: 10, queued: 3, refused: 0 });
    for at in 0..3 {
        held.finish(AttemptOutcome::Answered, NOW);
        let wakes: Vec<_> = requests.iter().map(Request::wakes).collect();
        assert_eq!(wakes, (0..3).map(|other| usize::from(other <= at)).collect::<Vec<_>>());
        // Neither the next in the queue, polled without a wake-up, nor a newcomer comes before the one that
        // was woken.
        assert!(requests.iter_mut().skip(at + 1).all(|request| request.poll(NOW).is_pending()));
        assert_eq!(pool.pick(None, NOW, &[]).unwrap_err(), NoBackend::AllFull);
        held = requests[at].served();
    }
    assert_eq!(pool.queue_report().waiting, 0);
    drop(held);
    drop(pick(&pool));
}

#[test]
fn a_ticket_dropped_after_it_was_woken_passes_its_turn_on() {
    let pool = pool(1, 1, 10);
    let held = pick(&pool);
    let [first, second, mut third] = [(); 3].map(|()| Request::waiting(&pool, b""));
    drop(second);
    drop(held);
    assert_eq!(first.wakes(), 1);
    assert_eq!(third.wakes(), 0);
    drop(first);
    assert_eq!(third.wakes(), 1);
    drop(third.served());
    assert_eq!(pool.backends()[0].in_flight(), 0);
}

#[test]
fn the_queue_has_an_end() {
    let limited = pool(1, 1, 2);
    let held = pick(&limited);
    let _waiting = [Request::waiting(&limited, b""), Request::waiting(&limited, b"")];
    let mut third = Request::new(&limited, b"");
    assert!(matches!(third.poll(NOW), Poll::Ready(Err(NoBackend::QueueFull))));
    assert_eq!(limited.queue_report(), QueueReport { waiting: 2, limit: 2, queued: 2, refused: 1 });
    drop(held);
    // The first has a place now and no longer waits.
    assert!(third.poll(NOW).is_pending());

    let none = pool(1, 1, 0);
    let _held = pick(&none);
    assert!(matches!(Request::new(&none, b"").poll(NOW), Poll::Ready(Err(NoBackend::AllFull))));
    assert_eq!(none.queue_report(), QueueReport { waiting: 0, limit: 0, queued: 0, refused: 1 });
}

#[test]
fn what_waiting_does_not_help_is_told_at_once() {
    assert!(matches!(Request::new(&pool(0, 1, 10), b"").poll(NOW), Poll::Ready(Err(NoBackend::Empty))));
    let pool = pool(1, 1, 10);
    let held = pick(&pool);
    let tried = [held.id()];
    assert!(matches!(Request::new(&pool, b"").poll_but(NOW, &tried), Poll::Ready(Err(NoBackend::AllTried))));
    let mut waiting = Request::waiting(&pool, b"");
    assert!(matches!(waiting.poll_but(NOW, &tried), Poll::Ready(Err(NoBackend::AllTried))));
    assert_eq!(pool.queue_report().waiting, 0);
}

#[test]
fn a_place_that_the_first_may_not_take_goes_to_the_next() {
    let pool = pool(2, 1, 10);
    let (one, two) = (pick(&pool), pick(&pool));
    let (kept, freed) = (one.id(), two.id());
    let mut picky = Request::new(&pool, b"");
    assert!(picky.poll_but(NOW, &[freed]).is_pending());
    let mut second = Request::waiting(&pool, b"");
    drop(two);
    assert_eq!(picky.wakes(), 0);
    assert_eq!(second.wakes(), 1);
    let taken = second.served();
    assert_eq!(taken.id(), freed);
    // With no waiter left that may take it, a newcomer may, although there are waiters.
    drop(taken);
    drop(pick(&pool));
    drop(one);
    assert!(matches!(picky.poll_but(NOW, &[freed]), Poll::Ready(Ok(pick)) if pick.id() == kept));
}

#[test]
fn after_a_reload_the_new_pool_serves_those_that_waited_at_the_old() {
    let before = pool(1, 1, 10);
    let held = pick(&before);
    let mut requests = [(); 4].map(|()| Request::waiting(&before, b""));

    let wider = vec![backend(7).max_in_flight(1), backend(0).max_in_flight(1)];
    let after = before.succeeded_by(wider, Algorithm::Random);
    assert!(requests.iter().all(|request| request.wakes() == 1), "all ask again");
    let new = requests[0].served();
    assert_eq!(new.backend().address(), after.backends()[0].address());
    assert_ne!(new.id(), held.id());
    assert!(requests[1].poll(NOW).is_pending());

    // A place given back at the old pool is a place at the new one, and vice versa.
    let mut late = Request::waiting(&after, b"");
    drop(held);
    let old = requests[1].served();
    drop(new);
    drop(requests[2].served());
    drop(old);
    drop(requests[3].served());
    drop(late.served());
    assert_eq!(after.queue_report().waiting, 0);
}

#[test]
fn ids_are_not_used_twice_over_reloads() {
    let reload = |before: &Pool, n| before.succeeded_by(vec![backend(n)], Algorithm::Random);
    let first = pool(1, 1, 10);
    let second = reload(&first, 5);
    let third = reload(&second, 6);
    let ids = [&first, &second, &third].map(|pool| pick(pool).id());
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
    assert_eq!(pick(&reload(&third, 6)).id(), ids[2]);
}

#[test]
fn a_pool_is_freed_when_its_last_ticket_is() {
    let pool = pool(1, 1, 10);
    let held = pick(&pool);
    let waiting = Request::waiting(&pool, b"");
    let inner = pool.downgrade();
    drop((pool, held));
    assert!(Pool::upgrade(&inner).is_some());
    drop(waiting);
    assert!(Pool::upgrade(&inner).is_none());
}

/// Unparks the waiting thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Unpark>) {
        self.0.unpark();
    }
}

/// Waits for a place; a wake-up that is lost fails the test instead of hanging it.
fn wait(ticket: &mut Ticket, round: u64) -> Result<Pick, NoBackend> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        match ticket.poll_pick(&mut cx, None, NOW + Duration::from_millis(round), &[]) {
            Poll::Ready(done) => return done,
            Poll::Pending => {
                let began = std::time::Instant::now();
                thread::park_timeout(Duration::from_secs(30));
                assert!(began.elapsed() < Duration::from_secs(30), "nobody woke this one");
            }
        }
    }
}

#[test]
fn cores_share_a_queue_and_every_ticket_is_served_once() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 3000;
    let first = pool(2, 1, 1000);
    let current = Mutex::new(first.clone());
    let served = AtomicU64::new(0);
    let given_up = AtomicU64::new(0);
    thread::scope(|scope| {
        for core in 0..THREADS {
            let (current, served, given_up) = (&current, &served, &given_up);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let pool = current.lock().unwrap().clone();
                    let mut ticket = pool.queue();
                    if (round + core) % 7 == 0 {
                        // Polls once and leaves, with or without a place.
                        let polled =
                            ticket.poll_pick(&mut Context::from_waker(Waker::noop()), None, NOW, &[]);
                        thread::yield_now();
                        drop(ticket);
                        drop(polled);
                        given_up.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    let pick = wait(&mut ticket, round).unwrap();
                    assert!(pick.backend().in_flight() <= 1);
                    served.fetch_add(1, Ordering::Relaxed);
                    let ends = [
                        AttemptOutcome::Answered,
                        AttemptOutcome::ConnectFailed,
                        AttemptOutcome::Broken,
                        AttemptOutcome::Aborted,
                    ];
                    if round % 3 == 0 {
                        thread::yield_now();
                    }
                    pick.finish(ends[((round ^ core) % 4) as usize], NOW + Duration::from_millis(round));
                    if core == 0 && round % 100 == 0 {
                        let mut current = current.lock().unwrap();
                        *current =
                            current.succeeded_by(current.backends().to_vec(), current.settings().clone());
                    }
                }
            });
        }
    });
    assert_eq!(served.into_inner() + given_up.into_inner(), THREADS * ROUNDS);
    assert_eq!(first.queue_report().waiting, 0);
    assert!(first.backends().iter().all(|backend| backend.in_flight() == 0));
}

proptest! {
    /// Compares with a plain list of waiters: the first is served first, and no place is free while there is
    /// a waiter.
    #[test]
    fn whatever_happens_the_first_that_waits_is_served_first(
        backends in 1_usize..4,
        limit in 1_u32..3,
        steps in prop::collection::vec((0_u8..6, any::<u8>()), 0..200),
    ) {
        let pool = pool(backends, limit, 20);
        let places = backends * limit as usize;
        let mut held: Vec<Pick> = Vec::new();
        let mut line: Vec<Request> = Vec::new();
        for (step, which) in steps {
            match step {
                0 | 1 => {
                    let mut request = Request::new(&pool, b"");
                    match request.poll(NOW) {
                        Poll::Ready(Ok(pick)) => {
                            prop_assert!(line.is_empty());
                            held.push(pick);
                        }
                        Poll::Ready(Err(why)) => {
                            prop_assert_eq!(why, NoBackend::QueueFull);
                            prop_assert_eq!(line.len(), 20);
                        }
                        Poll::Pending => line.push(request),
                    }
                }
                2 => if let Ok(pick) = pool.pick(None, NOW, &[]) {
                    prop_assert!(line.is_empty());
                    held.push(pick);
                },
                3 if !line.is_empty() => drop(line.remove(which as usize % line.len())),
                4 if !line.is_empty() => {
                    let at = which as usize % line.len();
                    prop_assert!(line[at].poll(NOW).is_pending());
                }
                5 if !held.is_empty() => {
                    drop(held.swap_remove(which as usize % held.len()));
                    if !line.is_empty() {
                        let mut first = line.remove(0);
                        prop_assert_eq!(first.wakes(), 1);
                        held.push(first.served());
                    }
                }
                _ => {}
            }
            prop_assert_eq!(pool.queue_report().waiting, line.len());
            prop_assert!(line.is_empty() || held.len() == places);
            prop_assert!(line.iter().all(|request| request.wakes() == 0));
        }
        drop((held, line));
        prop_assert!(pool.backends().iter().all(|backend| backend.in_flight() == 0));
    }
}
