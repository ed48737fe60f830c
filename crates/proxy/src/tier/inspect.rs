//! Inspection: what a server has for a URL, and whether it would be used.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sandarac_message::caching::Reuse;
use sandarac_message::vary::VarySpec;
use sandarac_message::{FieldsBuf, Timestamp};
use sandarac_net::wall;
use sandarac_tier::{Command, LogSync, Reply, StoredItem, Subject, Verdict, tombstone};
use sandarac_wire::entry::{Coding, Content, Item, Token, time_on_server};

use super::clock::{now, random};
use super::entry::ban_holds;
use super::server::Memory;
use super::{Links, Place, TierServer};

/// What is inspected: the responses for one key, on one server.
pub(crate) struct Inspection {
    pub(crate) place: Place,
    pub(crate) server: Arc<TierServer>,
    /// The fields of the request that selects a variant.
    pub(crate) fields: FieldsBuf,
    /// Whether the entry is removed.
    pub(crate) removes: bool,
}

/// What a server has for a key.
#[derive(Clone, Debug, Default)]
pub struct Inspected {
    /// The scheme of the URL.
    pub scheme: &'static str,
    /// The key on the server.
    pub key: String,
    /// The server.
    pub server: String,
    /// The kind of item that is there; `None` if there is none, or the server does not answer.
    pub kind: Option<&'static str>,
    /// Whether it would be used for a request.
    pub is_used: bool,
    /// Why it is used or not.
    pub why: String,
    /// What is known of a response.
    pub response: Option<InspectedResponse>,
}

/// A response in the tier.
#[derive(Clone, Debug)]
pub struct InspectedResponse {
    /// Its status.
    pub status: u16,
    /// Bytes of its body at rest.
    pub bytes: u64,
    /// Whether the body is compressed at rest.
    pub is_compressed: bool,
    /// The number of chunks of its body; zero if it is in one piece.
    pub chunks: u32,
    /// Its age.
    pub age: Duration,
    /// Seconds of freshness left, negative if it is stale.
    pub fresh_for: i64,
    /// Seconds until the server drops it.
    pub left: Option<u32>,
    /// The number of its tags.
    pub tags: usize,
}

impl Inspection {
    /// Asks the server.
    pub(crate) async fn run(self, memory: &impl Memory, links: &Rc<Links>) -> Inspected {
        let mut inspected = Inspected { server: self.server.name().to_owned(), ..Inspected::default() };
        let mut sync = LogSync::new(now());
        while let Some(command) = self.server.with(memory, |server| sync.next(now(), server)) {
            let reply = self.ask(links, command).await;
            self.server.with(memory, |server| sync.reply(now(), reply, server));
        }
        let mut target = self.place.entry();
        let mut reply = self.ask(links, Command::Get { key: target.key, value: true }).await;
        let sealer = self.server.ask(|server, _| server.sealer().clone());
        let decode = |key, reply: &Reply| match reply {
            Reply::Item(stored) => Some(Item::decode(&sealer, &key, stored.value.clone())),
            _ => None,
        };
        if self.removes {
            let removal = tombstone(target.key, Token(random()), &sealer);
            let why = match self.ask(links, removal).await {
                Reply::Stored(_) => {
                    "removed; copies in the memory of nodes are dropped when they are compared"
                }
                _ => "not removed: the server does not answer",
            };
            return Inspected { key: target.key.to_string(), why: why.to_owned(), ..inspected };
        }
        let mut varies = None;
        if let Some(Ok((Item { token, content: Content::Index { vary, .. } }, _))) =
            decode(target.key, &reply)
        {
            target = self.place.variant(Some(token), &vary.key(self.fields.view()));
            reply = self.ask(links, Command::Get { key: target.key, value: true }).await;
            varies = Some(vary);
        }
        inspected.key = target.key.to_string();
        let (stored, item, body_len) = match (reply, decode) {
            (Reply::Item(stored), decode) => match decode(target.key, &Reply::Item(stored.clone())) {
                Some(Ok((item, body))) => (stored, item, body.len() as u64),
                Some(Err(error)) => {
                    return Inspected { kind: Some("item"), why: format!("not used: {error}"), ..inspected };
                }
                None => return inspected,
            },
            (Reply::Absent, _) => return Inspected { why: nothing(varies, &self.fields), ..inspected },
            (_, _) => return Inspected { why: "the server does not answer".to_owned(), ..inspected },
        };
        inspected.kind = Some(item.content.kind().name());
        (inspected.is_used, inspected.why) = self.judge(&item.content, &stored);
        inspected.response = response(&item.content, &stored, body_len);
        inspected
    }

    async fn ask(&self, links: &Links, command: Command) -> Reply {
        let replies = links.send(self.place.tier(), &self.server, vec![command]).await;
        replies.into_iter().next().unwrap_or(Reply::Unavailable("no-reply"))
    }

    /// Whether an item is used, and why.
    fn judge(&self, content: &Content, stored: &StoredItem) -> (bool, String) {
        let Some(position) = content.position() else {
            return (false, "not used: it stands in the place of a response".to_owned());
        };
        let (host, path, tags) = match content {
            Content::Representation(attributes) | Content::Manifest { attributes, .. } => {
                (attributes.host.clone(), attributes.path.clone(), &attributes.tags[..])
            }
            _ => {
                let target = self.place.entry();
                (target.host, target.path, &[][..])
            }
        };
        let ban = |text: &str| ban_holds(content, text);
        let subject = Subject { host: &host, path: &path, tags, ban: &ban };
        match self.server.ask(|server, _| server.judge(position, &subject)) {
            Verdict::Refuse(refusal) => return (false, format!("not used: {}", refusal.name())),
            Verdict::Soften => return (false, "stale: a soft purge".to_owned()),
            Verdict::Use => {}
        }
        match (content, lifetimes(content, stored, wall())) {
            (Content::Mark { reason, .. }, _) => {
                (false, format!("requests for it are not shared: {}", reason.name()))
            }
            (_, Some(Reuse::Fresh)) => (true, "used".to_owned()),
            (_, Some(Reuse::StaleWhileRevalidate)) => (true, "used, stale, while it is validated".to_owned()),
            (_, Some(Reuse::Gone)) => (false, "not used: past its life".to_owned()),
            (_, Some(_)) => (false, "stale: it is validated first".to_owned()),
            (_, None) => (false, "not used: its TTL is not one that it was given".to_owned()),
        }
    }
}

/// Why there is nothing, where the page `varies` on fields of which the request has some.
fn nothing(varies: Option<VarySpec>, given: &FieldsBuf) -> String {
    let Some(VarySpec::Names(names)) = varies else { return "there is nothing".to_owned() };
    let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
    let fields = names.join(", ");
    let missing = names.iter().filter(|name| given.view().all_named(name.as_bytes()).next().is_none());
    let flags: Vec<String> = missing.map(|name| format!("-H '{name}: …'")).collect();
    match &flags[..] {
        [] => format!("there is no variant for these values; the page varies on {fields}"),
        flags => format!(
            "the page varies on {fields}, and there is no variant without them: give {}",
            flags.join(" ")
        ),
    }
}

/// How a response may be used.
fn lifetimes(content: &Content, stored: &StoredItem, now: Timestamp) -> Option<Reuse> {
    let (Content::Representation(attributes) | Content::Manifest { attributes, .. }) = content else {
        return None;
    };
    let lain = time_on_server(attributes.ttl, stored.left?)?;
    Some(attributes.lifetimes.at(now, lain).reuse(&Default::default(), now))
}

fn response(content: &Content, stored: &StoredItem, body_len: u64) -> Option<InspectedResponse> {
    let (attributes, bytes) = match content {
        Content::Representation(attributes) => (attributes, body_len),
        Content::Manifest { attributes, total, .. } => (attributes, *total),
        _ => return None,
    };
    let now = wall();
    let lain = stored.left.and_then(|left| time_on_server(attributes.ttl, left)).unwrap_or_default();
    let lifetimes = attributes.lifetimes.at(now, lain);
    Some(InspectedResponse {
        status: attributes.head.status(),
        bytes,
        is_compressed: matches!(attributes.coding, Coding::Zstd { .. }),
        chunks: content.chunks(),
        age: lifetimes.age(now),
        fresh_for: lifetimes.ttl(now),
        left: stored.left,
        tags: attributes.tags.len(),
    })
}
