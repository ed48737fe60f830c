//! Sandarac's store, driven as the proxy does, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use sandarac_cache::{Flight, Intent, Key, Lookup, NewObject, Query, Settings, Store};
use sandarac_message::caching::{Lifetimes, RequestDirectives};
use sandarac_message::vary::VarySpec;
use sandarac_message::{FieldsBuf, StoredHead, Timestamp};

use crate::cache::Cache;
use crate::traces::Request;

const START: Timestamp = Timestamp::from_secs(1_800_000_000);
const HOST: &[u8] = b"www.example.com";

/// The server's sweep: its interval in milliseconds, and the places of each.
const SWEEP_INTERVAL: u32 = 100;
const SWEEP_PLACES: usize = 2048;

/// How long the proxy keeps an expired object that can be validated, by default.
const KEEP: Duration = Duration::from_secs(3600);

/// Bodies are copied out of this, a read's worth at a time.
static SOURCE: [u8; 64 << 10] = [b'x'; 64 << 10];

/// The store, with one request at a time.
pub(crate) struct Ours {
    store: Arc<Store>,
    head: StoredHead,
    fields: FieldsBuf,
    directives: RequestDirectives,
    revalidates: bool,
    /// When the next sweep is due, in milliseconds of the trace.
    next_sweep: u32,
}

impl Ours {
    /// An empty store of `capacity` bytes.
    pub(crate) fn new(capacity: u64, revalidates: bool) -> Ours {
        let fields: FieldsBuf = [
            ("Server", "origin"),
            ("Date", "Sat, 21 Nov 2026 08:00:12 GMT"),
            ("Content-Type", "text/html; charset=utf-8"),
            ("Last-Modified", "Sat, 21 Nov 2020 08:00:12 GMT"),
            ("ETag", "\"6b014f8c-400\""),
            ("Cache-Control", "public, max-age=3600"),
        ]
        .into_iter()
        .collect();
        Ours {
            store: Arc::new(Store::new(Settings::new(capacity as usize))),
            head: StoredHead::new(200, b"OK", &fields).expect("the head is small"),
            fields: FieldsBuf::new(),
            directives: RequestDirectives::default(),
            revalidates,
            next_sweep: SWEEP_INTERVAL,
        }
    }

    /// Bytes that the store holds.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.store.stats().bytes
    }

    fn sweep_until(&mut self, at: u32) {
        while self.next_sweep <= at {
            self.store.sweep(SWEEP_PLACES, time(self.next_sweep));
            self.next_sweep += SWEEP_INTERVAL;
        }
    }

    /// Takes the origin's response. Returns whether it is a 304.
    fn fetch(&self, flight: Flight, path: &[u8], request: &Request) -> bool {
        let keep = if self.revalidates { KEEP } else { Duration::ZERO };
        let fresh = Duration::from_millis(request.lifetime.into());
        let new = NewObject {
            head: self.head.clone(),
            lifetimes: Lifetimes::fixed(time(request.at), fresh, Duration::ZERO, keep),
            vary: &VarySpec::None,
            request: self.fields.view(),
            host: HOST,
            path,
            tags: &[],
            range: None,
            len: Some(request.size.into()),
            limit: None,
            resumable: self.revalidates,
            transaction: 1,
        };
        if self.revalidates && flight.candidate().is_some() {
            return flight.refresh(new).is_some();
        }
        let mut writer = flight.store(new);
        let mut left = request.size as usize;
        while left > 0 {
            if !writer.is_wanted() {
                // It streams to its client. The store takes no more of it.
                return false;
            }
            let now = left.min(SOURCE.len());
            writer.append(&SOURCE[..now]);
            left -= now;
        }
        writer.finish(None);
        false
    }
}

impl Cache for Ours {
    fn request(&mut self, _: usize, request: &Request) -> bool {
        self.sweep_until(request.at);
        let path = format!("/articles/{}", request.key);
        let key = Key::of(b"http", HOST, path.as_bytes());
        let fields = self.fields.view();
        let query = Query { fields, directives: &self.directives, part: None, intent: Intent::Fill };
        match self.store.lookup(key, &query, time(request.at)) {
            Lookup::Hit(_) => true,
            Lookup::Miss(flight) => self.fetch(flight, path.as_bytes(), request),
            _ => unreachable!("one request at a time, without marks, grace and peeks"),
        }
    }
}

fn time(at: u32) -> Timestamp {
    START.plus(Duration::from_millis(at.into()))
}
