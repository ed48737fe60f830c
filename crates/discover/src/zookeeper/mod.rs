//! Nodes of ZooKeeper.
//!
//! The layout is that of zc.zk: below the node of the pool there is `providers`, and in it an ephemeral node for each worker,
//! named by its address or holding it; the data of the pool's node are settings, as a JSON object. All of it is
//! watched, and read anew when any of it changes.

mod connection;
mod protocol;

use super::connect::{Connector, ServerRotation};
use super::event::EventReporter;
use super::listing::ListingBuilder;
use super::{IgnoredReason, Listing, Loss, LossReason, MAX_MEMBERS, registry_entry};
use connection::{Connection, Reply, denied};
use protocol::{Fields, Operation};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::Instant;

/// Changes that follow a first one within this are read with it: workers start and stop together.
const SETTLING: Duration = Duration::from_millis(50);

/// The node below a pool's that has the workers.
const PROVIDERS: &str = "providers";

/// A node that is followed.
pub(super) struct ZooKeeper {
    servers: ServerRotation,
    path: String,
    timeout: Duration,
    connector: Connector,
    /// The highest transaction seen. A server that does not know it yet is behind, and would show the past.
    zxid: i64,
}

impl ZooKeeper {
    /// Follows the node at `path`; sessions live for `timeout` without a sign of life.
    pub(super) fn new(
        servers: ServerRotation,
        path: &str,
        timeout: Duration,
        connector: Connector,
    ) -> ZooKeeper {
        ZooKeeper { servers, path: path.trim_end_matches('/').to_owned(), timeout, connector, zxid: 0 }
    }

    /// Tells what is registered until no server can be asked any more.
    pub(super) async fn follow(&mut self, reporter: &mut EventReporter<'_>) -> Loss {
        let mut loss = Loss::new(LossReason::Unreachable, "there is no server to ask");
        self.servers.begin();
        while let Some(server) = self.servers.next() {
            let mut served = None;
            let Err(of_server) = self.follow_at(&server, &mut served, reporter).await;
            self.servers.ended(served);
            loss = Loss::new(of_server.reason, format!("{server}: {}", of_server.detail));
        }
        // None of them knows as much as was seen before: this ZooKeeper may have been set up anew.
        self.zxid = 0;
        loss
    }

    /// Follows at one server, which has `served` since the time that is left there.
    async fn follow_at(
        &mut self,
        server: &str,
        served: &mut Option<Instant>,
        reporter: &mut EventReporter<'_>,
    ) -> Result<Infallible, Loss> {
        let stream = self.connector.connect(server).await?;
        let mut connection = Connection::open(stream, self.zxid, self.timeout).await?;
        loop {
            let looked = self.look(&mut connection).await;
            self.zxid = self.zxid.max(connection.zxid);
            match looked? {
                Some(listing) => reporter.listing(listing),
                // The session goes on, for its watch tells when they are made.
                None => {
                    let absent = format!("there is no node {}", self.providers());
                    reporter.lost(Loss::new(LossReason::Absent, absent));
                }
            }
            served.get_or_insert_with(Instant::now);
            connection.changed().await?;
            tokio::time::sleep(SETTLING).await;
        }
    }

    fn providers(&self) -> String {
        format!("{}/{PROVIDERS}", self.path)
    }

    /// Reads everything, and watches it. `None` where there is no node for the workers, which is watched for, too.
    async fn look(&self, connection: &mut Connection) -> Result<Option<Listing>, Loss> {
        let mut builder = ListingBuilder::default();
        let node = if self.path.is_empty() { "/" } else { &self.path };
        match connection.ask_one(Operation::GetData, node).await? {
            Reply::Found(packet) => builder.settings(Fields(&packet).buffer()?),
            Reply::NoNode => {}
            Reply::Denied => return Err(denied()),
        }
        let providers = self.providers();
        let children = loop {
            match connection.ask_one(Operation::GetChildren, &providers).await? {
                Reply::Found(packet) => break packet,
                Reply::Denied => return Err(denied()),
                Reply::NoNode => {
                    if let Reply::NoNode = connection.ask_one(Operation::Exists, &providers).await? {
                        return Ok(None);
                    }
                }
            }
        };
        let mut names = Fields(&children).buffers()?;
        // The same ones every time, where there are too many.
        names.sort_unstable();
        for name in names.drain(names.len().min(MAX_MEMBERS)..) {
            builder.ignore(IgnoredReason::TooMany, name);
        }
        let path = |name: &&[u8]| [providers.as_bytes(), b"/", name].concat();
        let paths: Vec<Vec<u8>> = names.iter().map(path).collect();
        let replies = connection.ask(Operation::GetData, &paths).await?;
        for (name, reply) in names.iter().zip(&replies) {
            match reply {
                Reply::Found(packet) => registry_entry::add(&mut builder, name, Fields(packet).buffer()?),
                // It has gone meanwhile, and has set off the watch on the list.
                Reply::NoNode => {}
                // Whoever may register may make such a node, which is to keep nobody else out.
                Reply::Denied => builder.ignore(IgnoredReason::Denied, name),
            }
        }
        Ok(Some(builder.build()))
    }
}
