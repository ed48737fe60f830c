//! Nodes of ZooKeeper.
//!
//! The layout is that of zc.zk. Below the node of the pool there is `providers`, and in it an ephemeral node
//! for each worker; its name or its data is the address. The data of the pool's node are settings, as a JSON
//! object. All of it is watched, and read again after any change.

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

/// Changes that follow a first one within this time are read together with it: workers start and stop
/// together.
const SETTLING: Duration = Duration::from_millis(50);

/// The node below a pool's that contains the workers.
const PROVIDERS: &str = "providers";

/// A node that is followed.
pub(super) struct ZooKeeper {
    servers: ServerRotation,
    path: String,
    timeout: Duration,
    connector: Connector,
    /// The highest transaction seen. A server that does not know it yet is behind, and would return old data.
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

    /// Reports the registered workers until no server responds any more.
    pub(super) async fn follow(&mut self, reporter: &mut EventReporter<'_>) -> Loss {
        let mut loss = Loss::new(LossReason::Unreachable, "there is no server to ask");
        self.servers.begin();
        while let Some(server) = self.servers.next() {
            let mut served = None;
            let Err(of_server) = self.follow_at(&server, &mut served, reporter).await;
            self.servers.ended(served);
            loss = Loss::new(of_server.reason, format!("{server}: {}", of_server.detail));
        }
        // All of them are behind the highest transaction seen: this ZooKeeper may have been set up anew.
        self.zxid = 0;
        loss
    }

    /// Follows at one server. Sets `served` when it begins to serve.
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
                // The session continues, because its watch reports when they are made.
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

    /// Reads everything, and watches it. `None` if there is no node for the workers; its creation is watched
    /// too.
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
        // If there are too many, select the same ones every time.
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
                // It was deleted meanwhile, which fires the watch on the list.
                Reply::NoNode => {}
                // Anyone who may register may make such a node. It must not exclude other workers.
                Reply::Denied => builder.ignore(IgnoredReason::Denied, name),
            }
        }
        Ok(Some(builder.build()))
    }
}
