//! A connection to a ZooKeeper server with a session of its own.
//!
//! Sessions matter to owners of ephemeral nodes. A reader loses only its watches with a session. So a broken
//! connection is followed by a new session, and everything is read again.

use super::protocol::{Fields, MAX_PACKET, NOTIFICATION, Operation, PING, Packet, malformed};
use crate::{Loss, LossReason};
use bytes::{Buf, Bytes, BytesMut};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// The most requests in flight. We read only after writing up to this many. If the system cannot buffer that
/// many responses, the server waits until it can.
const MAX_IN_FLIGHT: usize = 64;

/// The bytes of a response before its result: transaction id, number of the last change, error.
const HEADER_BYTES: usize = 16;

/// The time limit for a server to begin a session.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(4);

/// A connection with a session.
pub(super) struct Connection {
    stream: TcpStream,
    incoming: BytesMut,
    /// How long either side may be silent.
    timeout: Duration,
    last_heard: Instant,
    last_said: Instant,
    next_xid: i32,
    /// The highest transaction that the server has reported.
    pub(super) zxid: i64,
    /// Whether a watch has fired.
    changed: bool,
}

/// A server's response.
pub(super) enum Reply {
    /// The requested data.
    Found(Bytes),
    /// There is no such node.
    NoNode,
    /// Reading it is not allowed.
    Denied,
}

impl Connection {
    /// Begins a session on `stream` that the server keeps for `timeout` without a sign of life; it may offer
    /// less or more.
    pub(super) async fn open(stream: TcpStream, zxid: i64, timeout: Duration) -> Result<Connection, Loss> {
        let now = Instant::now();
        let mut connection = Connection {
            stream,
            incoming: BytesMut::new(),
            // No ping before the session has begun.
            timeout: 3 * HANDSHAKE_TIMEOUT,
            last_heard: now,
            last_said: now,
            next_xid: 1,
            zxid,
            changed: false,
        };
        let millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        connection.say(Packet::connect(zxid, millis)).await?;
        let answer = tokio::time::timeout(HANDSHAKE_TIMEOUT, connection.packet()).await;
        let answer = answer.map_err(|_| Loss::new(LossReason::TimedOut, "beginning a session"))??;
        let mut fields = Fields(&answer);
        let _version = fields.int()?;
        let millis = u64::try_from(fields.int()?).map_err(|_| malformed())?;
        let session = fields.long()?;
        if millis == 0 || session == 0 {
            return Err(Loss::new(LossReason::Failed, "the server gives no session"));
        }
        connection.timeout = Duration::from_millis(millis);
        Ok(connection)
    }

    /// Requests `operation` on each of `paths`, with a watch on its result. The replies are in order.
    pub(super) async fn ask(
        &mut self,
        operation: Operation,
        paths: &[impl AsRef<[u8]>],
    ) -> Result<Vec<Reply>, Loss> {
        let mut replies = Vec::with_capacity(paths.len());
        for paths in paths.chunks(MAX_IN_FLIGHT) {
            let mut expected = self.next_xid;
            for path in paths {
                let request = Packet::request(self.next_xid, operation).buffer(path.as_ref()).byte(1);
                self.next_xid = following(self.next_xid);
                self.say(request).await?;
            }
            for _ in paths {
                let mut packet = self.reply().await?;
                let mut fields = Fields(&packet);
                let (xid, _zxid, error) = (fields.int()?, fields.long()?, fields.int()?);
                if xid != expected {
                    return Err(malformed());
                }
                expected = following(expected);
                packet.advance(HEADER_BYTES);
                replies.push(match error {
                    0 => Reply::Found(packet),
                    -101 => Reply::NoNode,
                    -102 => Reply::Denied,
                    -115 => return Err(denied()),
                    error => return Err(Loss::new(LossReason::Failed, format!("ZooKeeper's error {error}"))),
                });
            }
        }
        Ok(replies)
    }

    /// Requests `operation` on a single path.
    pub(super) async fn ask_one(&mut self, operation: Operation, path: &str) -> Result<Reply, Loss> {
        self.ask(operation, &[path]).await?.pop().ok_or_else(malformed)
    }

    /// Waits until a watch fires, or has fired since the last call.
    pub(super) async fn changed(&mut self) -> Result<(), Loss> {
        while !self.changed {
            let packet = self.packet().await?;
            if self.is_reply(&packet)? {
                return Err(malformed());
            }
        }
        self.changed = false;
        Ok(())
    }

    /// The next packet that is a reply.
    async fn reply(&mut self) -> Result<Bytes, Loss> {
        loop {
            let packet = self.packet().await?;
            if self.is_reply(&packet)? {
                return Ok(packet);
            }
        }
    }

    /// Whether a packet is a reply. Others are processed here.
    fn is_reply(&mut self, packet: &[u8]) -> Result<bool, Loss> {
        let mut fields = Fields(packet);
        let (xid, zxid) = (fields.int()?, fields.long()?);
        let _error = fields.int()?;
        self.zxid = self.zxid.max(zxid);
        self.changed |= xid == NOTIFICATION;
        Ok(xid > 0)
    }

    /// The next packet without its length. Meanwhile sends pings, and gives up if the server is silent.
    async fn packet(&mut self) -> Result<Bytes, Loss> {
        loop {
            if let Some(packet) = self.split_packet()? {
                self.last_heard = Instant::now();
                return Ok(packet);
            }
            // As in ZooKeeper's own clients: the server must respond within two thirds of the timeout, so
            // that the last third is left for another server.
            let give_up = self.last_heard + self.timeout * 2 / 3;
            let ping = self.last_said + self.timeout / 3;
            match timeout_at(ping.min(give_up), self.stream.read_buf(&mut self.incoming)).await {
                Ok(Ok(0)) => {
                    return Err(Loss::new(LossReason::Unreachable, "the server closed the connection"));
                }
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(Loss::new(LossReason::Unreachable, error.to_string())),
                Err(_) if Instant::now() >= give_up => {
                    return Err(Loss::new(LossReason::TimedOut, "the server is silent"));
                }
                Err(_) => self.say(Packet::request(PING, Operation::Ping)).await?,
            }
        }
    }

    fn split_packet(&mut self) -> Result<Option<Bytes>, Loss> {
        let Some(length) = self.incoming.first_chunk() else { return Ok(None) };
        let length = usize::try_from(i32::from_be_bytes(*length)).map_err(|_| malformed())?;
        if length > MAX_PACKET {
            return Err(Loss::new(LossReason::TooBig, format!("an answer of {length} bytes")));
        }
        if self.incoming.len() < 4 + length {
            self.incoming.reserve(4 + length - self.incoming.len());
            return Ok(None);
        }
        self.incoming.advance(4);
        Ok(Some(self.incoming.split_to(length).freeze()))
    }

    async fn say(&mut self, packet: Packet) -> Result<(), Loss> {
        let end = Instant::now() + self.timeout * 2 / 3;
        let packet = packet.bytes();
        match timeout_at(end, self.stream.write_all(&packet)).await {
            Ok(Ok(())) => {
                self.last_said = Instant::now();
                Ok(())
            }
            Ok(Err(error)) => Err(Loss::new(LossReason::Unreachable, error.to_string())),
            Err(_) => Err(Loss::new(LossReason::TimedOut, "the server does not read")),
        }
    }
}

/// The loss for a server that denies reading any relevant node.
pub(super) fn denied() -> Loss {
    Loss::new(LossReason::Denied, "reading the nodes is not allowed")
}

/// The transaction id after `xid`; those of requests are above 0.
fn following(xid: i32) -> i32 {
    xid.checked_add(1).unwrap_or(1)
}

impl Drop for Connection {
    /// Ends the session, so that the server need not wait for it to expire. If that cannot be sent at once,
    /// it expires.
    fn drop(&mut self) {
        let _ = self.stream.try_write(&Packet::request(self.next_xid, Operation::CloseSession).bytes());
    }
}
