//! Verdicts: whether an entry or a copy may be used, by what is known of its server's purge log.

use sandarac_message::Timestamp;
use sandarac_wire::entry::{Effect, Position};

use super::Server;
use crate::log_view::LogView;
use crate::purge_index::Subject;
use crate::reason::Refusal;
use crate::rules::{Rule, holds};

/// The verdict on an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be used.
    Use,
    /// It is stale because of a soft purge.
    Soften,
    /// It is not used.
    Refuse(Refusal),
}

impl Server {
    /// Whether copies with this position are covered by the log that is known: later purges have been
    /// applied.
    pub fn covers(&self, position: &Position) -> bool {
        let covers = |view: &LogView| view.id == position.log && position.offset >= view.floor;
        !holds(Rule::LostPosition) || self.view.as_ref().is_some_and(covers)
    }

    /// The verdict on an entry with this position.
    pub fn judge(&self, position: &Position, subject: &Subject<'_>) -> Verdict {
        self.judge_from(position, false, subject)
    }

    /// The verdict on a copy in RAM with this position, to which all purges were applied as they were read.
    pub fn judge_copy(&self, position: &Position, subject: &Subject<'_>) -> Verdict {
        self.judge_from(position, true, subject)
    }

    fn judge_from(&self, position: &Position, in_memory: bool, subject: &Subject<'_>) -> Verdict {
        let Some(view) = &self.view else { return Verdict::Refuse(Refusal::OtherLog) };
        let position = if holds(Rule::Position) { *position } else { view.position() };
        if !holds(Rule::LostPosition) && position.log != view.id {
            return Verdict::Use;
        }
        if holds(Rule::DeliverFirst) && self.deliveries.owed_effect(subject) == Some(Effect::Hard) {
            return Verdict::Refuse(Refusal::OwedPurge);
        }
        match view.effect(&position, in_memory, subject) {
            Err(refusal) => Verdict::Refuse(refusal),
            Ok(Some(Effect::Hard)) if holds(Rule::Log) => Verdict::Refuse(Refusal::Purged),
            Ok(Some(Effect::Soft)) => Verdict::Soften,
            Ok(_) if self.deliveries.owed_effect(subject) == Some(Effect::Soft) => Verdict::Soften,
            Ok(_) => Verdict::Use,
        }
    }

    /// The verdict on a copy in RAM whose log was lost. It was `confirmed` when no purge was known that
    /// applied to it. Purges since then are in the new log, because every node that knows them delivers them
    /// before it reads.
    pub fn judge_lost(&self, confirmed: Timestamp, now: Timestamp, subject: &Subject<'_>) -> Verdict {
        let Some(view) = &self.view else { return Verdict::Refuse(Refusal::OtherLog) };
        let purged = self.deliveries.owed_effect(subject).or_else(|| view.index.effect(0, subject));
        if !holds(Rule::LostPosition) {
            Verdict::Use
        } else if now.since(confirmed) >= self.settings.purge_memory {
            Verdict::Refuse(Refusal::Unconfirmed)
        } else if view.base > 0 {
            Verdict::Refuse(Refusal::BeforeLog)
        } else if purged.is_some() && holds(Rule::Log) {
            Verdict::Refuse(Refusal::Purged)
        } else {
            Verdict::Use
        }
    }
}
