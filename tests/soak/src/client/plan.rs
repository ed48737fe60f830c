//! The next request of a visitor.

use super::{About, Visitor};
use crate::ask::{Ask, Cached, Echo, Range, Wants};
use crate::behaviour::{self, Behaviour};
use crate::files;
use crate::page::Page;
use crate::pool::Pool;
use crate::site::{Entry, TINTS, Validator};
use crate::{Only, Profile};

/// Pools whose requests are plain questions with a nonce.
const ECHOING: [(u64, Pool); 9] = [
    (3, Pool::Steady),
    (3, Pool::Shared),
    (4, Pool::Retry),
    (2, Pool::Hedge),
    (2, Pool::Queue),
    (3, Pool::Version),
    (3, Pool::Unix),
    (3, Pool::Stray),
    (3, Pool::Cgi),
];

impl Visitor {
    /// A request for a conversation.
    pub(super) fn plan(&mut self, line: &About) -> Ask {
        let cache = self.only != Some(Only::Origin);
        let origin = self.only != Some(Only::Cache);
        match self.random.weighted(&[
            (if cache { 62 } else { 0 }, 0),
            (if cache { 8 } else { 0 }, 1),
            (if cache { 2 } else { 0 }, 2),
            (if origin { 28 } else { 0 }, 3),
            (if origin { 6 } else { 0 }, 4),
        ]) {
            0 => self.page(),
            1 => self.private(line),
            2 => self.post(),
            4 => self.file(),
            _ => {
                let pool = self.random.weighted(&ECHOING);
                self.echo(pool, line)
            }
        }
    }

    fn page(&mut self) -> Ask {
        let number = self.stage.site.choose(&mut self.random);
        let stage = std::sync::Arc::clone(&self.stage);
        let entry = &stage.site.entries[number];
        let tint = if entry.tinted { self.random.pick(&TINTS) } else { "" };
        let visitor = format!("visitor-{}-{}", self.number, self.stage.nonce());
        let mut cached = Cached {
            entry: number,
            tint,
            ranges: Vec::new(),
            known: None,
            only_of: None,
            visitor: visitor.clone(),
            anew: false,
        };
        let mut ask = Ask::get(Pool::Cache, entry.target.clone(), Wants::Cached(cached.clone()))
            .with("X-Visitor", visitor);
        if !tint.is_empty() {
            ask = ask.with("X-Tint", tint);
        }
        match self.random.below(100) {
            0..8 => ask.method = "HEAD",
            8..20 => ask = self.condition(ask, entry, &mut cached),
            20..32 => ask = self.range(ask, entry, &mut cached),
            32..35 if stage.profile == Profile::Rfc => {
                cached.anew = true;
                ask = ask.with("Cache-Control", self.random.pick(&["no-cache", "max-age=0"]));
            }
            35..37 if stage.profile == Profile::Rfc => ask = ask.with("Cache-Control", "only-if-cached"),
            _ => {}
        }
        ask.wants = Wants::Cached(cached);
        ask
    }

    /// A version that the client may have got before.
    fn known_version(&mut self, entry: &Entry) -> u64 {
        entry.current().saturating_sub(self.random.weighted(&[(6, 0), (2, 1), (1, 2)])).max(1)
    }

    fn condition(&mut self, ask: Ask, entry: &Entry, cached: &mut Cached) -> Ask {
        let version = self.known_version(entry);
        let page: Page = entry.page(version, cached.tint);
        cached.known = Some(version);
        match (entry.tag(&page), entry.changed(version)) {
            (Some(tag), _) if self.random.percent(80) => ask.with("If-None-Match", tag),
            (None, Some(time)) => ask.with("If-Modified-Since", time),
            _ => {
                cached.known = None;
                ask
            }
        }
    }

    fn range(&mut self, ask: Ask, entry: &Entry, cached: &mut Cached) -> Ask {
        let length = entry.least_length();
        let count = if self.random.percent(15) { 3 } else { 1 };
        for _ in 0..count {
            let from = self.random.below(length + length / 8 + 10);
            cached.ranges.push(match self.random.below(10) {
                0..6 => Range::Within(from, from + self.random.below(length / 2 + 10)),
                6 | 7 => Range::From(from),
                8 => Range::From(0),
                _ => Range::Last(self.random.within(1, length + 10)),
            });
        }
        let ranges: Vec<String> = cached.ranges.iter().map(|range| range.text()).collect();
        let mut ask = ask.with("Range", format!("bytes={}", ranges.join(",")));
        if entry.validator == Validator::Strong && self.random.percent(30) {
            let version = self.known_version(entry);
            cached.only_of = Some(version);
            ask = ask.with("If-Range", entry.tag(&entry.page(version, cached.tint)).unwrap_or_default());
        }
        ask
    }

    fn private(&mut self, line: &About) -> Ask {
        // Under rfc, a field that nobody knows is no reason not to share.
        let kinds: &[_] = match self.stage.profile {
            Profile::Safe => &["private", "no-store", "bearer", "vary", "keyed"],
            Profile::Rfc => &["private", "no-store", "bearer", "vary"],
        };
        let kind = self.random.pick(kinds);
        let target = format!("/private/{kind}/{}", self.random.below(5));
        let nobody = matches!(kind, "vary" | "keyed") && self.random.percent(30);
        let user = if nobody { "-".to_owned() } else { line.user.clone() };
        let ask = Ask::get(Pool::Cache, target, Wants::Private { user: user.clone() });
        match kind {
            _ if nobody => ask,
            "bearer" => ask.with("Authorization", format!("Bearer {user}")),
            "keyed" => ask.with("Api-User", user),
            _ => ask.with("Cookie", format!("user={user}")),
        }
    }

    fn file(&mut self) -> Ask {
        let number = self.random.below(files::FILES);
        let length = files::page(number).length;
        let from = self.random.below(length + length / 8 + 10);
        let range = match self.random.below(10) {
            0 => Some(Range::Within(from, from + self.random.below(length / 2 + 10))),
            1 => Some(Range::From(from)),
            2 => Some(Range::Last(self.random.within(1, length + 10))),
            _ => None,
        };
        let mut ask = Ask::get(Pool::Files, files::target(number), Wants::File(number, range));
        match range {
            Some(range) => ask = ask.with("Range", format!("bytes={}", range.text())),
            None if self.random.percent(15) => ask.method = "HEAD",
            None => {}
        }
        ask
    }

    /// A POST that makes a new version of a page.
    fn post(&mut self) -> Ask {
        let number = self.stage.site.choose(&mut self.random);
        let nonce = self.stage.nonce();
        let target = self.stage.site.entries[number].target.clone();
        let ask = Ask::get(Pool::Cache, target, Wants::Posted { entry: number, nonce });
        Ask { method: "POST", body: Some(b"change=it".to_vec()), ..ask }.with("X-Nonce", nonce.to_string())
    }

    /// A question with a nonce.
    pub(super) fn echo(&mut self, pool: Pool, line: &About) -> Ask {
        let nonce = self.stage.nonce();
        let length = match self.random.below(10) {
            0..6 => self.random.within(200, 4000),
            6..9 if pool != Pool::Stray => self.random.within(4000, 60_000),
            9 if pool != Pool::Stray => self.random.within(60_000, 400_000),
            _ => 200,
        };
        // Where all ask for the same, only the nonce tells the answers apart.
        let length = if pool == Pool::Shared { 1000 } else { length };
        let method = if self.random.percent(15) { "HEAD" } else { "GET" };
        let behaviour = Behaviour::choose(pool, method, &mut self.random);
        let once = self.random.percent(80);
        let echo = Echo { nonce, length, behaviour, address: Some(line.address.clone()), sum: None };
        let ask = Ask::get(pool, format!("/echo/{length}"), Wants::Echo(echo));
        Ask { method, ..ask }.with("X-Nonce", nonce.to_string()).with(behaviour::FIELD, behaviour.value(once))
    }
}
