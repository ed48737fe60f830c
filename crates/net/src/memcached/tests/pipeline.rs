//! The order of operations, with time as an argument.

use super::super::operation::MIN_RATE;
use super::super::pipeline::{Pipeline, Step};
use super::*;
use crate::Output;
use sandarac_wire::memcached::parse;
use std::task::{Context, Poll, Waker};

fn abilities() -> Abilities {
    Abilities { version: "1.6".into(), item_size_max: 1 << 20, explicit_cas: true, value_removal: true }
}

struct Bench {
    pipeline: Pipeline,
    start: Moment,
}

impl Bench {
    fn new(limits: QueueLimits) -> Bench {
        let start = Moment::now();
        let mut pipeline = Pipeline::new(limits);
        pipeline.connected();
        Bench { pipeline, start }
    }

    fn at(&self, millis: u64) -> Moment {
        self.start.plus(Duration::from_millis(millis))
    }

    fn submit(&mut self, request: Request, deadline: Deadline, millis: u64) -> Pending<Option<Item>> {
        let slot = Slot::new();
        let now = self.at(millis);
        self.pipeline.submit(request, slot.clone(), deadline, now);
        Pending::new(slot, Answer::item)
    }

    fn get(&mut self, name: &str, deadline: Deadline, millis: u64) -> Pending<Option<Item>> {
        self.submit(Request::Get(value_of(name), 100), deadline, millis)
    }

    /// Sends all that waits, and returns its length.
    fn send(&mut self, millis: u64) -> usize {
        let (mut out, now) = (Output::new(), self.at(millis));
        while self.pipeline.encode_next(&abilities(), &mut out, now) {}
        self.pipeline.sent(out.len() as u64, 0);
        out.len()
    }

    /// Receives a line without a value.
    fn receive(&mut self, wire: &str, millis: u64) -> Result<(), Unavailable> {
        let now = self.at(millis);
        self.pipeline.received(wire.len(), now);
        let parsed = parse(wire.as_bytes(), 100).unwrap().unwrap();
        self.pipeline.line_arrived(parsed.line, now).map(|step| assert!(matches!(step, Step::Answered)))
    }

    fn expire(&mut self, millis: u64) -> Option<Duration> {
        let now = self.at(millis);
        self.pipeline.expire(now);
        self.pipeline.next_deadline(now)
    }
}

fn total(millis: u64) -> Deadline {
    Deadline::Total(Duration::from_millis(millis))
}

fn result(pending: &mut Pending<Option<Item>>) -> Option<Result<Option<Item>, Unavailable>> {
    match std::pin::Pin::new(pending).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

const TIMED_OUT: Option<Result<Option<Item>, Unavailable>> = Some(Err(Unavailable::TimedOut));

#[test]
fn each_operation_has_its_own_deadline() {
    let mut bench = Bench::new(QueueLimits::default());
    let mut long = bench.get("a", total(90), 0);
    let mut short = bench.get("b", total(50), 0);
    assert!(bench.send(0) > 0);
    assert_eq!(bench.expire(49), Some(Duration::from_millis(1)));
    assert_eq!(result(&mut short), None);
    assert_eq!(bench.expire(50), Some(Duration::from_millis(40)));
    assert_eq!((result(&mut short), result(&mut long)), (TIMED_OUT, None));
    assert_eq!(bench.receive("EN O0\r\n", 60), Ok(()));
    assert_eq!(result(&mut long), Some(Ok(None)));
    // The answer to the one that timed out keeps its turn.
    assert_eq!(bench.pipeline.operations(), 1);
    assert_eq!(bench.receive("EN O1\r\n", 61), Ok(()));
    assert_eq!((bench.pipeline.operations(), bench.expire(90)), (0, None));
}

#[test]
fn an_operation_that_was_not_sent_in_time_is_never_sent() {
    let mut bench = Bench::new(QueueLimits::default());
    let mut late = bench.get("a", total(50), 0);
    drop(bench.get("b", total(90), 0));
    bench.expire(50);
    assert_eq!(result(&mut late), TIMED_OUT);
    assert_eq!((bench.pipeline.operations(), bench.pipeline.held_bytes(), bench.send(51)), (0, 0, 0));
}

#[test]
fn bytes_in_either_direction_move_the_deadline_of_a_transfer_by_their_time_at_the_lowest_rate() {
    let mut bench = Bench::new(QueueLimits::default());
    let now = bench.at(0);
    bench.pipeline.received(1_000_000, now);
    let mut pending = bench.get("a", Deadline::Transfer(Duration::from_millis(50)), 0);
    bench.send(0);
    let now = bench.at(40);
    bench.pipeline.received(20 * MIN_RATE as usize, now);
    assert_eq!(bench.expire(50), Some(Duration::from_millis(20)));
    bench.pipeline.sent(10 * MIN_RATE, 0);
    assert_eq!(bench.expire(70), Some(Duration::from_millis(10)));
    assert_eq!(result(&mut pending), None);
    bench.expire(80);
    assert_eq!(result(&mut pending), TIMED_OUT);
}

/// Regression: any byte put the deadline off.
#[test]
fn a_byte_now_and_then_does_not_move_the_deadline_of_a_transfer() {
    let mut bench = Bench::new(QueueLimits::default());
    let mut pending = bench.get("a", Deadline::Transfer(Duration::from_millis(50)), 0);
    bench.send(0);
    for millis in (0..50).step_by(10) {
        let now = bench.at(millis);
        bench.pipeline.received(1, now);
    }
    bench.expire(50);
    assert_eq!(result(&mut pending), TIMED_OUT);
}

#[test]
fn silence_is_measured_while_answers_are_awaited() {
    let mut bench = Bench::new(QueueLimits::default());
    assert_eq!(bench.pipeline.silence(bench.at(5)), None);
    let pending = bench.get("a", total(50), 10);
    bench.send(20);
    drop(pending);
    assert_eq!(bench.pipeline.silence(bench.at(50)), Some(Duration::from_millis(30)));
    // Only what arrives ends it.
    bench.pipeline.sent(10, 0);
    assert_eq!(bench.pipeline.silence(bench.at(70)), Some(Duration::from_millis(50)));
    assert_eq!(bench.receive("EN O0\r\n", 80), Ok(()));
    assert_eq!(bench.pipeline.silence(bench.at(80)), None);
}

#[test]
fn the_queue_is_bounded_in_operations_and_bytes() {
    let mut bench = Bench::new(QueueLimits { operations: 2, bytes: 10_000 });
    let full = Some(Err(Unavailable::QueueFull));
    let set = |size: usize| Request::Set(minute("a"), vec![Bytes::from(vec![0; size])]);
    assert_eq!(result(&mut bench.submit(set(10_000), AMPLE, 0)), full);
    let mut first = bench.submit(set(8_000), AMPLE, 0);
    assert_eq!(result(&mut bench.submit(set(2_000), AMPLE, 0)), full);
    assert_eq!(result(&mut first), None);
    bench.send(0);
    // What the system has not taken still counts.
    bench.pipeline.sent(0, 8_000);
    assert_eq!(result(&mut bench.submit(set(2_000), AMPLE, 1)), full);
    bench.pipeline.sent(8_000, 0);
    // The place of a cancelled operation is taken until it is answered.
    drop(bench.get("b", AMPLE, 2));
    assert_eq!(result(&mut bench.get("c", AMPLE, 2)), full);
    drop(first);
    assert_eq!(bench.receive("HD O0\r\n", 3), Ok(()));
    assert_eq!(result(&mut bench.get("c", AMPLE, 3)), None);
    assert_eq!(bench.pipeline.counts.refused, 4);
}

#[test]
fn what_waits_survives_only_the_ordinary_end_of_a_connection_that_has_served() {
    let closed = Unavailable::Closed;
    let mut bench = Bench::new(QueueLimits::default());
    let _waiting = bench.get("a", AMPLE, 0);
    assert!(!bench.pipeline.disconnected(&closed), "it has answered nothing");
    bench.send(0);
    bench.receive("EN O0\r\n", 1).unwrap();
    let (mut in_flight, mut waiting) = (bench.get("b", AMPLE, 2), None);
    bench.send(2);
    waiting.get_or_insert(bench.get("c", AMPLE, 3));
    assert!(bench.pipeline.disconnected(&closed));
    assert_eq!(result(&mut in_flight), Some(Err(closed.clone())));
    assert_eq!(result(waiting.as_mut().unwrap()), None);
    bench.pipeline.connected();
    assert!(!bench.pipeline.disconnected(&closed), "the new one has answered nothing");
    bench.pipeline.fail_all(&closed);
    assert_eq!(result(waiting.as_mut().unwrap()), Some(Err(closed)));
}
