//! Keys of etcd.
//!
//! Below the prefix of the pool there is a key for each worker, `PREFIX/providers/NAME`, usually with a lease that the worker
//! keeps alive; its value or its name is the address. `PREFIX/settings` is a JSON object. Both are read together, with their
//! revision, and then watched from the next one on; whatever changes, they are read anew. So a compacted revision is only one more
//! reason to read. Other keys that begin with the prefix are the application's, however many, and neither read nor watched.

mod gateway;

use super::connect::{Connector, ServerRotation};
use super::event::EventReporter;
use super::listing::ListingBuilder;
use super::{IgnoredReason, Listing, Loss, LossReason, MAX_MEMBERS, registry_entry};
use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use gateway::{Gateway, Messages, malformed};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Changes that follow a first one within this are read with it.
const SETTLING: Duration = Duration::from_millis(50);

/// How often everything is read without being told. A watch says nothing when the machine at its other end has gone.
const REREAD_INTERVAL: Duration = Duration::from_secs(5);

/// What the keys of workers begin with, after the prefix.
const PROVIDERS: &str = "/providers/";

/// The key of the settings, after the prefix.
const SETTINGS: &str = "/settings";

/// The most keys that are read: those of workers, and some that make no sense.
const MAX_KEYS: usize = 2 * MAX_MEMBERS;

/// A prefix that is followed.
pub(super) struct Etcd {
    endpoints: ServerRotation,
    prefix: String,
    user: Option<(String, String)>,
    connector: Connector,
}

/// What is registered at a time.
struct Reading {
    listing: Listing,
    revision: i64,
}

/// An endpoint, and who we are to it.
struct Session {
    gateway: Gateway,
    token: Option<String>,
}

/// A message of a watch.
enum WatchMessage {
    /// Nothing of importance.
    Nothing,
    Change,
    /// It cannot begin where it should, for what happened there is forgotten.
    Compacted,
}

impl Etcd {
    /// Follows the keys that begin with `prefix`.
    pub(super) fn new(
        endpoints: ServerRotation,
        prefix: &str,
        user: Option<(String, String)>,
        connector: Connector,
    ) -> Etcd {
        Etcd { endpoints, prefix: prefix.trim_end_matches('/').to_owned(), user, connector }
    }

    /// Tells what is registered until no endpoint can be asked any more.
    pub(super) async fn follow(&mut self, reporter: &mut EventReporter<'_>) -> Loss {
        let mut loss = Loss::new(LossReason::Unreachable, "there is no endpoint to ask");
        self.endpoints.begin();
        while let Some(endpoint) = self.endpoints.next() {
            let mut served = None;
            let Err(of_endpoint) = self.follow_at(&endpoint, &mut served, reporter).await;
            self.endpoints.ended(served);
            loss = Loss::new(of_endpoint.reason, format!("{endpoint}: {}", of_endpoint.detail));
        }
        loss
    }

    /// Follows at one endpoint, which has `served` since the time that is left there.
    async fn follow_at(
        &mut self,
        endpoint: &str,
        served: &mut Option<Instant>,
        reporter: &mut EventReporter<'_>,
    ) -> Result<Infallible, Loss> {
        let mut session = Session { gateway: self.open(endpoint).await?, token: None };
        session.token = self.token(&mut session.gateway).await?;
        loop {
            let reading = self.read(&mut session).await?;
            reporter.listing(reading.listing);
            served.get_or_insert_with(Instant::now);
            let messages = self.watch(endpoint, &session, reading.revision + 1).await?;
            self.follow_watch(messages, &mut session, reporter).await?;
            tokio::time::sleep(SETTLING).await;
        }
    }

    /// Reads again whenever the watch tells of a change, and now and then, until the watch must be begun anew.
    async fn follow_watch(
        &self,
        mut messages: Messages,
        session: &mut Session,
        reporter: &mut EventReporter<'_>,
    ) -> Result<(), Loss> {
        loop {
            let mut end = Instant::now() + REREAD_INTERVAL;
            let mut has_changed = false;
            while let Ok(message) = timeout_at(end, messages.next()).await {
                match watch_message(&message?)? {
                    WatchMessage::Change if !has_changed => {
                        has_changed = true;
                        end = Instant::now() + SETTLING;
                    }
                    WatchMessage::Change | WatchMessage::Nothing => {}
                    WatchMessage::Compacted => return Ok(()),
                }
            }
            reporter.listing(self.read(session).await?.listing);
        }
    }

    async fn open(&mut self, endpoint: &str) -> Result<Gateway, Loss> {
        let stream = self.connector.connect(endpoint).await?;
        Gateway::open(stream, endpoint.strip_prefix("http://").unwrap_or(endpoint)).await
    }

    /// A token for the user, if there is one.
    async fn token(&self, gateway: &mut Gateway) -> Result<Option<String>, Loss> {
        let Some((name, password)) = &self.user else { return Ok(None) };
        let message = json!({"name": name, "password": password});
        let answer = gateway.call("auth/authenticate", &message, None).await?;
        let token = answer.get("token").and_then(Value::as_str).ok_or_else(malformed)?;
        Ok(Some(token.to_owned()))
    }

    /// Reads everything, with a new token where the old one has expired.
    async fn read(&self, session: &mut Session) -> Result<Reading, Loss> {
        let providers = self.providers(json!({"limit": MAX_KEYS}));
        let question = json!({"success": [{"request_range": providers}, {"request_range": self.settings()}]});
        let answer = match session.gateway.call("kv/txn", &question, session.token.as_deref()).await {
            Err(Loss { reason: LossReason::Denied, .. }) if session.token.is_some() => {
                session.token = self.token(&mut session.gateway).await?;
                session.gateway.call("kv/txn", &question, session.token.as_deref()).await?
            }
            answer => answer?,
        };
        let revision =
            answer.get("header").and_then(|header| number(header, "revision")).ok_or_else(malformed)?;
        Ok(Reading { listing: self.list(&answer)?, revision })
    }

    fn list(&self, answer: &Value) -> Result<Listing, Loss> {
        let range = |at: usize| answer.get("responses")?.get(at)?.get("response_range");
        let (providers, settings) = range(0).zip(range(1)).ok_or_else(malformed)?;
        let mut builder = ListingBuilder::default();
        for pair in pairs(settings) {
            builder.settings(&bytes(pair, "value")?);
        }
        let before = self.before_names();
        for pair in pairs(providers) {
            let key = bytes(pair, "key")?;
            let name = key.strip_prefix(before.as_bytes()).ok_or_else(malformed)?;
            registry_entry::add(&mut builder, name, &bytes(pair, "value")?);
        }
        if providers.get("more").and_then(Value::as_bool) == Some(true) {
            builder.ignore(IgnoredReason::TooMany, b"keys beyond those that are read");
        }
        Ok(builder.build())
    }

    /// Begins to watch, on a connection of its own, at `revision`.
    async fn watch(&mut self, endpoint: &str, session: &Session, revision: i64) -> Result<Messages, Loss> {
        // 64 bits are text in JSON, as protocol buffers have it.
        let from = || json!({"start_revision": revision.to_string()});
        let [providers, settings] = [self.providers(from()), with(self.settings(), from())];
        let questions = [providers, settings].map(|keys| json!({"create_request": keys}));
        self.open(endpoint).await?.stream("watch", &questions, session.token.as_deref()).await
    }

    /// What the keys of workers begin with.
    fn before_names(&self) -> String {
        format!("{}{PROVIDERS}", self.prefix)
    }

    /// The keys of workers, and what else is said of them.
    fn providers(&self, also: Value) -> Value {
        let first = self.before_names();
        // The first one after all that begin like this: the last character of it is a slash.
        let end = format!("{}0", first.trim_end_matches('/'));
        with(json!({"key": BASE64.encode(first), "range_end": BASE64.encode(end)}), also)
    }

    /// The key of the settings.
    fn settings(&self) -> Value {
        json!({"key": BASE64.encode(format!("{}{SETTINGS}", self.prefix))})
    }
}

/// `object` with what another one has.
fn with(mut object: Value, also: Value) -> Value {
    if let (Value::Object(object), Value::Object(also)) = (&mut object, also) {
        object.extend(also);
    }
    object
}

/// The keys and values that were found.
fn pairs(range: &Value) -> &[Value] {
    range.get("kvs").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn watch_message(message: &Value) -> Result<WatchMessage, Loss> {
    let result = message.get("result").ok_or_else(malformed)?;
    if result.get("canceled").and_then(Value::as_bool) == Some(true) {
        if number(result, "compact_revision").is_some_and(|revision| revision > 0) {
            return Ok(WatchMessage::Compacted);
        }
        let why = result.get("cancel_reason").and_then(Value::as_str).unwrap_or("the watch was cancelled");
        let reason = if why.contains("permission denied") { LossReason::Denied } else { LossReason::Failed };
        return Err(Loss::new(reason, why.chars().take(200).collect::<String>()));
    }
    let has_events = result.get("events").and_then(Value::as_array).is_some_and(|events| !events.is_empty());
    Ok(if has_events { WatchMessage::Change } else { WatchMessage::Nothing })
}

/// A number of 64 bits, which is text in JSON. Absent where it is 0.
fn number(object: &Value, key: &str) -> Option<i64> {
    object.get(key)?.as_str()?.parse().ok()
}

/// Bytes, which are Base64 in JSON. Absent where there are none.
fn bytes(object: &Value, key: &str) -> Result<Vec<u8>, Loss> {
    match object.get(key) {
        None => Ok(Vec::new()),
        Some(text) => text.as_str().and_then(|text| BASE64.decode(text).ok()).ok_or_else(malformed),
    }
}
