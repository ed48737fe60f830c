//! Purges: stored responses are removed on request, from RAM and from the shared tier.
//!
//! First every server of the tier owes the purge, and then it is applied to RAM. Until a server has it, this
//! node refuses entries of that server that the purge is for. In the other order, one that was read in
//! between would enter RAM behind the purge.

use std::sync::Arc;
use std::time::Duration;

use sandarac_cache::{Expression, Purge, Tag};
use sandarac_net::wall;
use sandarac_wire::entry::{Effect, Purge as Record};

use crate::request::purge_target::purge_target;
use crate::shared::{Shared, with_target};
use crate::site::Site;
use crate::tier::{PurgeCalls, of_target};

/// Stored responses that a purge is for.
#[derive(Clone, Debug)]
pub enum Selection {
    /// Those of a target of a host, all variants, under either scheme.
    Target {
        /// The host in lower case, without the default port.
        host: Vec<u8>,
        /// The path and query.
        path_and_query: Vec<u8>,
    },
    /// Those that carry one of these tags, or belong to one of these groups.
    Tags(Vec<Tag>),
    /// All.
    All,
    /// Those that match the expression of a ban.
    Matching(Expression),
}

impl Selection {
    /// Those of an absolute URL; `None` if it is not one of http or https with a host.
    pub fn of_url(url: &str) -> Option<Selection> {
        with_target(url, Selection::of_target)
    }

    pub(crate) fn of_target(host: &[u8], path_and_query: &[u8]) -> Selection {
        Selection::Target { host: host.to_vec(), path_and_query: path_and_query.to_vec() }
    }

    /// The selection of a record in the log of a server. Everything, if the expression of its ban cannot be
    /// read.
    pub(crate) fn of_record(record: &Record) -> Selection {
        let matching = |text: &str| match Expression::parse(text) {
            Ok(expression) => Selection::Matching(expression),
            Err(_) => Selection::All,
        };
        match record {
            Record::Target { host, path } => Selection::of_target(host, path),
            Record::Tag(tag) => Selection::Tags(vec![Tag::from_bits(*tag)]),
            Record::All => Selection::All,
            Record::Ban(text) => matching(text),
            Record::Host(host) => matching(&format!("host == {}", quoted(host))),
            Record::Prefix { host, path } => {
                matching(&format!("host == {} && path ~ {}", quoted(host), pattern(path, "")))
            }
            Record::Glob { host, path } => {
                matching(&format!("host ~ {} && path ~ {}", pattern(host, "$"), pattern(path, "$")))
            }
        }
    }

    /// The records for the logs of the servers.
    fn records(&self, site: &Site) -> Vec<Record> {
        match self {
            Selection::Target { host, path_and_query } => {
                of_target(&site.config.routes, host, path_and_query)
            }
            Selection::Tags(tags) => tags.iter().map(|tag| Record::Tag(tag.bits())).collect(),
            Selection::All => vec![Record::All],
            Selection::Matching(expression) => vec![Record::Ban(expression.text().to_owned())],
        }
    }
}

/// A purge that was made.
pub struct Purged {
    /// The number of objects in RAM. A ban counts none.
    pub objects: usize,
    calls: Option<PurgeCalls>,
}

impl Purged {
    /// Blocks the thread until all servers of the tier have the purge, or the time is up. Returns the names
    /// of those that were not reached. They are told before this node reads from them again.
    pub fn wait(&self) -> Vec<String> {
        self.calls.as_ref().map(PurgeCalls::wait).unwrap_or_default()
    }

    /// The same without blocking.
    pub(crate) async fn reached(&self) -> Vec<String> {
        match &self.calls {
            Some(calls) => calls.reached().await,
            None => Vec::new(),
        }
    }
}

/// All that removes stored responses on request goes through here.
pub struct Purger<'a> {
    shared: &'a Shared,
    site: Arc<Site>,
}

impl<'a> Purger<'a> {
    /// The purger of a process, by the rules that are in force.
    pub fn of(shared: &'a Shared) -> Purger<'a> {
        Purger { shared, site: shared.site() }
    }

    /// How long a client waits for the servers of the tier at most: four deadlines of an operation.
    pub(crate) fn patience(&self) -> Duration {
        self.site.tier.as_ref().map_or(Duration::ZERO, |tier| tier.timeout() * 4)
    }

    /// Purges. The servers of the tier have it within `patience`, or are told later.
    pub fn purge(&self, selections: &[Selection], purge: Purge, patience: Duration) -> Purged {
        let records = selections.iter().flat_map(|selection| selection.records(&self.site)).collect();
        let effect = match purge {
            Purge::Hard => Effect::Hard,
            Purge::Soft => Effect::Soft,
        };
        let calls = self.shared.note_purges(records, effect, patience);
        Purged { objects: selections.iter().map(|selection| self.purge_here(selection, purge)).sum(), calls }
    }

    /// Purges RAM alone: what other nodes have purged, or can have no response in the tier. Returns the
    /// number of objects.
    pub(crate) fn purge_here(&self, selection: &Selection, purge: Purge) -> usize {
        let store = &self.shared.store;
        match selection {
            Selection::Target { host, path_and_query } => {
                purge_target(store, &self.site.config.routes, host, path_and_query, purge)
            }
            Selection::Tags(tags) => store.purge_tags(tags, purge, wall()),
            Selection::All => store.purge_all(purge, wall()),
            Selection::Matching(expression) => {
                store.ban(expression.clone(), wall());
                0
            }
        }
    }
}

/// A text in the expression of a ban.
pub(crate) fn quoted(text: &[u8]) -> String {
    format!("\"{}\"", String::from_utf8_lossy(text).replace('\\', "\\\\").replace('"', "\\\""))
}

/// A regular expression that matches like a glob from its beginning.
fn pattern(glob: &[u8], end: &str) -> String {
    let text = String::from_utf8_lossy(glob);
    let parts: Vec<String> = text.split('*').map(escaped).collect();
    quoted(format!("^{}{end}", parts.join(".*")).as_bytes())
}

fn escaped(text: &str) -> String {
    let special = |c: char| "\\.+*?()|[]{}^$#&-~".contains(c);
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}
