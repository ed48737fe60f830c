//! The call of a purge: complete when every server has the record, or at its deadline.

use sandarac_message::Timestamp;
use sandarac_wire::entry::{Content, EntryKey, Item, RecordId, Sealer, Token};

use crate::command::{Command, Condition};
use crate::server::Server;

/// Seconds that a tombstone stays, unless a fill replaces it: longer than most copies that were not asked for
/// in the meantime live.
const TOMBSTONE_TTL: u32 = 24 * 60 * 60;

/// Puts a tombstone in the place of an entry that was purged, to be sent behind the record. It only makes the
/// purge quicker: the record is what makes entries and copies invalid.
pub fn tombstone(key: EntryKey, token: Token, sealer: &Sealer) -> Command {
    let item = Item { token, content: Content::Tombstone };
    let value = item.encode(sealer, &key, &[]).expect("a tombstone has no lists");
    let (condition, ttl, flags) = (Condition::Always, Some(TOMBSTONE_TTL), token.flags());
    Command::Set { key, condition, ttl, flags, value: vec![value.into()] }
}

/// A purge that a caller waits for.
#[derive(Clone, Copy, Debug)]
pub struct PurgeCall {
    id: RecordId,
    deadline: Timestamp,
}

impl PurgeCall {
    /// Waits until `deadline` for the record that every server has been made to owe by [`Server::owe`].
    pub fn new(id: RecordId, deadline: Timestamp) -> PurgeCall {
        PurgeCall { id, deadline }
    }

    /// The indices of the servers that were not reached, if the call is complete. They get the record before
    /// this node reads from them again.
    pub fn outcome<'a>(
        &self,
        now: Timestamp,
        servers: impl IntoIterator<Item = &'a Server>,
    ) -> Option<Vec<usize>> {
        let servers = servers.into_iter().enumerate();
        let missing: Vec<usize> =
            servers.filter(|(_, server)| server.owes(&self.id)).map(|(at, _)| at).collect();
        (missing.is_empty() || now >= self.deadline).then_some(missing)
    }
}
