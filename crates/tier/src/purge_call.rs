//! The call of a purge: complete when every server has the record, or at its deadline.

use sandarac_message::Timestamp;
use sandarac_wire::entry::RecordId;

use crate::server::Server;

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
