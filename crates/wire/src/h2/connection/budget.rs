//! The cost of what a peer makes us do, limited over time.

use super::super::fault::Fault;
use std::time::Duration;

/// The cost that a connection may owe: 500 cancelled requests, or 1000 PINGs, at once. A browser that leaves
/// a page cancels about a hundred.
pub const BUDGET: u32 = 2000;

/// The cost that is forgiven in a second: 25 cancelled requests, or 50 PINGs.
pub const REFILL_PER_SECOND: u32 = 100;

/// What a frame of data that we send forgives: one PING, which gRPC clients send to measure their bandwidth
/// whenever data arrives. Data that the peer sends forgives nothing, because cancelled uploads are an attack.
const SENT_FRAME: u32 = 2;

/// Bytes of data that we send, and that forgive a cost of 1 more.
const BYTES_PER_POINT: u32 = 4096;

/// What a request that was answered to its end forgives.
const ANSWERED: u32 = 4;

/// A kind of frame that costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// A request that was cancelled before its response ended.
    CancelledRequest,
    /// A reset that the peer's frames force us to send.
    ForcedReset,
    /// A CONTINUATION frame.
    Continuation,
    /// A CONTINUATION frame with few bytes, which is not the last.
    ShortContinuation,
    /// A SETTINGS frame.
    Settings,
    /// A PING frame.
    Ping,
    /// A frame without content that does not end its stream.
    EmptyFrame,
    /// A small increment of a window.
    SmallWindowUpdate,
    /// PRIORITY or PRIORITY_UPDATE.
    Priority,
    /// A frame that is ignored.
    UselessFrame,
}

impl Cost {
    /// The cost, and the fault when it exceeds the budget.
    const fn price(self) -> (u32, Fault) {
        match self {
            Cost::CancelledRequest => (4, Fault::RapidReset),
            Cost::ForcedReset => (4, Fault::ForcedReset),
            Cost::Continuation => (2, Fault::ContinuationFlood),
            Cost::ShortContinuation => (8, Fault::ContinuationFlood),
            Cost::Settings => (8, Fault::SettingsFlood),
            Cost::Ping => (2, Fault::PingFlood),
            Cost::EmptyFrame => (4, Fault::EmptyFrameFlood),
            Cost::SmallWindowUpdate => (1, Fault::WindowUpdateFlood),
            Cost::Priority => (2, Fault::PriorityFlood),
            Cost::UselessFrame => (2, Fault::UselessFrameFlood),
        }
    }
}

/// What a connection owes. It shrinks with time and with useful work, but never below zero.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Budget {
    owed: u32,
    /// The time up to which costs are forgiven.
    at: Duration,
}

impl Budget {
    pub(super) fn charge(&mut self, cost: Cost, now: Duration) -> Result<(), Fault> {
        let (price, fault) = cost.price();
        let passed = now.saturating_sub(self.at).as_millis();
        let forgiven = passed * u128::from(REFILL_PER_SECOND) / 1000;
        if forgiven > 0 {
            self.owed = self.owed.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX));
            self.at = now;
        }
        self.owed += price;
        if self.owed > BUDGET { Err(fault) } else { Ok(()) }
    }

    /// A frame with these bytes of data was sent.
    pub(super) fn sent(&mut self, bytes: u32) {
        if bytes > 0 {
            self.owed = self.owed.saturating_sub(SENT_FRAME + bytes / BYTES_PER_POINT);
        }
    }

    /// A request was answered to its end.
    pub(super) fn answered(&mut self) {
        self.owed = self.owed.saturating_sub(ANSWERED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charges(budget: &mut Budget, cost: Cost, now: u64) -> u32 {
        (0..).take_while(|_| budget.charge(cost, Duration::from_millis(now)).is_ok()).count() as u32
    }

    #[test]
    fn time_and_work_forgive_costs() {
        let mut budget = Budget::default();
        assert_eq!(charges(&mut budget, Cost::CancelledRequest, 0), 500);
        let mut budget = Budget { owed: BUDGET, ..Budget::default() };
        assert_eq!(budget.charge(Cost::Ping, Duration::ZERO), Err(Fault::PingFlood));
        let mut budget = Budget { owed: BUDGET, ..Budget::default() };
        assert_eq!(charges(&mut budget, Cost::Ping, 1000), 50);
        let mut budget = Budget { owed: BUDGET, ..Budget::default() };
        (0..25).for_each(|_| budget.answered());
        assert_eq!(charges(&mut budget, Cost::Ping, 0), 50);
        let mut budget = Budget { owed: BUDGET, ..Budget::default() };
        (0..10).for_each(|_| budget.sent(8192));
        assert_eq!(charges(&mut budget, Cost::Ping, 0), 20);
    }

    #[test]
    fn charges_that_follow_each_other_closely_still_lose_time() {
        let mut budget = Budget { owed: BUDGET, ..Budget::default() };
        for now in 1..=10 {
            let charged = budget.charge(Cost::SmallWindowUpdate, Duration::from_millis(now));
            assert_eq!(charged.is_ok(), now == 10, "{now}");
            budget.owed = BUDGET;
        }
    }
}
