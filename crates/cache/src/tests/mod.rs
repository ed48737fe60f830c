//! Scenarios that use the store from outside, and their shared helpers.

mod arriving;
mod bans;
mod combining;
mod eviction;
mod held;
mod lookup;
mod model;
mod moving;
mod page_markup;
mod passing;
mod purge;
mod recodings;
mod stress;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use sandarac_message::caching::{Lifetimes, RequestDirectives};
use sandarac_message::range::{ContentRange, RangeSpec};
use sandarac_message::vary::{VaryRule, VarySpec};
use sandarac_message::{FieldsBuf, Piece, StoredHead, Timestamp};

use crate::{
    BodyWriter, Flight, Intent, Key, Lookup, NewObject, Object, Query, Reader, Settings, Store, Tag, Waited,
    Waiter,
};

/// The start of every scenario.
const START: Timestamp = Timestamp::from_secs(1_700_000_000);

fn at(seconds: u64) -> Timestamp {
    START.plus(Duration::from_secs(seconds))
}

fn key(path: &str) -> Key {
    Key::of(b"http", b"a.example", path.as_bytes())
}

fn fields(lines: &[(&str, &str)]) -> FieldsBuf {
    lines.iter().copied().collect()
}

fn store(limit: usize) -> Arc<Store> {
    Arc::new(Store::new(Settings { shards: Some(4), ..Settings::new(limit) }))
}

/// A response under construction.
struct Response {
    head: StoredHead,
    lifetimes: Lifetimes,
    vary: VarySpec,
    request: FieldsBuf,
    path: String,
    tags: Vec<Tag>,
    range: Option<ContentRange>,
    len: Option<u64>,
    limit: Option<u64>,
    resumable: bool,
}

/// A response to a request for `path` at the start: fresh for 10 s, then 5 s of grace, kept for 60 s more.
fn response(path: &str) -> Response {
    let secs = Duration::from_secs;
    Response {
        head: StoredHead::new(200, b"OK", &fields(&[("Content-Type", "text/plain")])).unwrap(),
        lifetimes: Lifetimes::fixed(START, secs(10), secs(5), secs(60)),
        vary: VarySpec::None,
        request: FieldsBuf::new(),
        path: path.to_owned(),
        tags: Vec::new(),
        range: None,
        len: None,
        limit: None,
        resumable: false,
    }
}

impl Response {
    fn lifetimes(self, received: Timestamp, fresh: u64, grace: u64, keep: u64) -> Response {
        let secs = Duration::from_secs;
        let lifetimes = Lifetimes::fixed(received, secs(fresh), secs(grace), secs(keep));
        Response { lifetimes, ..self }
    }

    fn head(self, status: u16, lines: &[(&str, &str)]) -> Response {
        Response { head: StoredHead::new(status, b"", &fields(lines)).unwrap(), ..self }
    }

    fn vary(self, vary: &str, request: &[(&str, &str)]) -> Response {
        let vary = VarySpec::of(fields(&[("Vary", vary)]).view(), &VaryRule::default());
        Response { vary, request: fields(request), ..self }
    }

    fn tags(self, tags: &[&str]) -> Response {
        Response { tags: tags.iter().map(|tag| Tag::new(tag.as_bytes())).collect(), ..self }
    }

    fn len(self, len: u64) -> Response {
        Response { len: Some(len), ..self }
    }

    fn resumable(self) -> Response {
        Response { resumable: true, ..self }
    }

    fn new_object(&self) -> NewObject<'_> {
        NewObject {
            head: self.head.clone(),
            lifetimes: self.lifetimes,
            vary: self.vary.key(self.request.view()),
            host: b"a.example",
            path: self.path.as_bytes(),
            tags: &self.tags,
            range: self.range,
            len: self.len,
            limit: self.limit,
            resumable: self.resumable,
            copy: None,
            transaction: 7,
        }
    }

    /// Stores it whole, without regard to flights.
    fn put(&self, store: &Arc<Store>, body: &[u8]) -> Arc<Object> {
        store.open(key(&self.path)).store_complete(self.new_object(), &[body], None)
    }
}

/// A request under construction.
#[derive(Clone, Default)]
struct Request {
    path: String,
    fields: FieldsBuf,
    directives: RequestDirectives,
    part: Option<RangeSpec>,
    intent: Intent,
}

fn get(path: &str) -> Request {
    Request { path: path.to_owned(), ..Request::default() }
}

impl Request {
    fn with(self, lines: &[(&str, &str)]) -> Request {
        let fields = fields(lines);
        Request { directives: RequestDirectives::of(fields.view()), fields, ..self }
    }

    fn part(self, part: RangeSpec) -> Request {
        Request { part: Some(part), ..self }
    }

    fn peek(self) -> Request {
        Request { intent: Intent::Peek, ..self }
    }

    fn query(&self) -> Query<'_> {
        Query {
            fields: self.fields.view(),
            directives: &self.directives,
            part: self.part,
            intent: self.intent,
        }
    }

    fn lookup(&self, store: &Arc<Store>, now: Timestamp) -> Lookup {
        store.lookup(key(&self.path), &self.query(), now)
    }
}

/// The result in a word, with the body if there is one.
fn said(lookup: &Lookup) -> String {
    match lookup {
        Lookup::Hit(object) => format!("hit {}", text(object)),
        Lookup::Stale(object, Some(_)) => format!("stale {}, validate", text(object)),
        Lookup::Stale(object, None) => format!("stale {}", text(object)),
        Lookup::Miss(flight) => match flight.candidate() {
            Some(object) => format!("miss, candidate {}", text(object)),
            None => "miss".to_owned(),
        },
        Lookup::Wait(_) => "wait".to_owned(),
        Lookup::Marked(mark, _) => format!("{mark:?}"),
        Lookup::Absent(Some(object)) => format!("absent, candidate {}", text(object)),
        Lookup::Absent(None) => "absent".to_owned(),
    }
}

/// The result of a lookup in a word; the lookup itself is dropped.
fn look(store: &Arc<Store>, request: &Request, now: Timestamp) -> String {
    said(&request.lookup(store, now))
}

fn text(object: &Object) -> String {
    let body: Vec<u8> = content(object.body().segments());
    String::from_utf8_lossy(&body).into_owned()
}

/// The concatenated bytes of pieces in memory.
fn content(pieces: impl Iterator<Item = sandarac_message::Piece>) -> Vec<u8> {
    pieces.flat_map(|piece| piece.bytes().expect("in memory").to_vec()).collect()
}

fn flight(lookup: Lookup) -> Flight {
    match lookup {
        Lookup::Miss(flight) | Lookup::Stale(_, Some(flight)) => flight,
        other => panic!("no flight: {}", said(&other)),
    }
}

/// Stores a response whose body is to follow.
fn fill(store: &Arc<Store>, response: &Response) -> BodyWriter {
    flight(get(&response.path).lookup(store, START)).store(response.new_object())
}

fn waiter(lookup: Lookup) -> Waiter {
    match lookup {
        Lookup::Wait(waiter) => waiter,
        other => panic!("no waiter: {}", said(&other)),
    }
}

fn hit(lookup: Lookup) -> Arc<Object> {
    match lookup {
        Lookup::Hit(object) => object,
        other => panic!("no hit: {}", said(&other)),
    }
}

/// A task that counts how often it is woken.
#[derive(Default)]
struct Task(AtomicUsize);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

impl Task {
    fn new() -> Arc<Task> {
        Arc::new(Task::default())
    }

    fn woken(&self) -> usize {
        self.0.swap(0, Relaxed)
    }

    fn run<T>(self: &Arc<Task>, poll: impl FnOnce(&mut Context<'_>) -> T) -> T {
        let waker = Waker::from(self.clone());
        poll(&mut Context::from_waker(&waker))
    }

    fn wait(self: &Arc<Task>, waiter: &mut Waiter, request: &Request, now: Timestamp) -> Poll<Waited> {
        self.run(|cx| waiter.poll(cx, &request.query(), now))
    }

    /// Reads what has arrived.
    fn read(self: &Arc<Task>, reader: &mut Reader) -> String {
        let mut read = String::new();
        loop {
            match self.run(|cx| reader.poll_chunk(cx)) {
                Poll::Ready(Some(Ok(chunk))) => {
                    read += &String::from_utf8_lossy(chunk.bytes().expect("in memory"))
                }
                Poll::Ready(Some(Err(broken))) => return format!("{read}<{broken:?}>"),
                Poll::Ready(None) => return format!("{read}<end>"),
                Poll::Pending => return read,
            }
        }
    }
}

/// The outcome for a waiter in a word.
fn told(waited: &Poll<Waited>) -> String {
    match waited {
        Poll::Pending => "pending".to_owned(),
        Poll::Ready(Waited::Object(object)) => format!("object {}", text(object)),
        Poll::Ready(Waited::Lead(_)) => "lead".to_owned(),
        Poll::Ready(Waited::Again) => "again".to_owned(),
        Poll::Ready(Waited::Failed) => "failed".to_owned(),
    }
}
