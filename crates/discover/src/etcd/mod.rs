//! Keys of etcd.
//!
//! Below the prefix of the pool there is a key for each worker, `PREFIX/providers/NAME`, usually with a lease
//! that the worker keeps alive; its value or its name is the address. `PREFIX/settings` is a JSON object.
//! Both are read together, with their revision, and then watched from the next revision on. After any change
//! they are read again, so a compacted revision needs no special treatment. Other keys with the prefix belong
//! to the application; they are neither read nor watched, however many there are.

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

/// Changes that follow a first one within this time are read together with it.
const SETTLING: Duration = Duration::from_millis(50);

/// How often everything is read without an event. A watch reports nothing when the machine at its other end
/// has gone.
const REREAD_INTERVAL: Duration = Duration::from_secs(5);

/// The prefix of the keys of workers, after the pool's prefix.
const PROVIDERS: &str = "/providers/";

/// The key of the settings, after the pool's prefix.
const SETTINGS: &str = "/settings";

/// The most keys that are read: those of workers, and some malformed ones.
const MAX_KEYS: usize = 2 * MAX_MEMBERS;

/// A prefix that is followed.
pub(super) struct Etcd {
    endpoints: ServerRotation,
    prefix: String,
    user: Option<(String, String)>,
    connector: Connector,
}

/// The registered state at one moment.
struct Reading {
    listing: Listing,
    revision: i64,
}

/// An endpoint, and the credentials for it.
struct Session {
    gateway: Gateway,
    token: Option<String>,
}

/// A message of a watch.
enum WatchMessage {
    /// Nothing relevant.
    Nothing,
    Change,
    /// The watch cannot begin at its revision, because that was compacted.
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

    /// Reports the registered workers until no endpoint responds any more.
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

    /// Follows at one endpoint. Sets `served` when it begins to serve.
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

    /// Reads again whenever the watch reports a change, and at intervals, until the watch must be restarted.
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

    /// Reads everything, with a new token if the old one has expired.
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

    /// Begins to watch at `revision`, on a connection of its own.
    async fn watch(&mut self, endpoint: &str, session: &Session, revision: i64) -> Result<Messages, Loss> {
        // JSON carries 64-bit numbers as text, by the mapping of protocol buffers.
        let from = || json!({"start_revision": revision.to_string()});
        let [providers, settings] = [self.providers(from()), with(self.settings(), from())];
        let questions = [providers, settings].map(|keys| json!({"create_request": keys}));
        self.open(endpoint).await?.stream("watch", &questions, session.token.as_deref()).await
    }

    /// The prefix of the keys of workers.
    fn before_names(&self) -> String {
        format!("{}{PROVIDERS}", self.prefix)
    }

    /// A request for the keys of workers, extended by `also`.
    fn providers(&self, also: Value) -> Value {
        let first = self.before_names();
        // The first key after all with this prefix, whose last character is a slash.
        let end = format!("{}0", first.trim_end_matches('/'));
        with(json!({"key": BASE64.encode(first), "range_end": BASE64.encode(end)}), also)
    }

    /// A request for the key of the settings.
    fn settings(&self) -> Value {
        json!({"key": BASE64.encode(format!("{}{SETTINGS}", self.prefix))})
    }
}

/// `object` extended by the members of `also`.
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

/// A 64-bit number, which is text in JSON. Absent if it is 0.
fn number(object: &Value, key: &str) -> Option<i64> {
    object.get(key)?.as_str()?.parse().ok()
}

/// Bytes, which are Base64 in JSON. Absent if there are none.
fn bytes(object: &Value, key: &str) -> Result<Vec<u8>, Loss> {
    match object.get(key) {
        None => Ok(Vec::new()),
        Some(text) => text.as_str().and_then(|text| BASE64.decode(text).ok()).ok_or_else(malformed),
    }
}
