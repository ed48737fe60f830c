//! A deadline that is cheap to move later.
//!
//! Most deadlines (keep-alive, reading, writing) are moved with every message and hardly ever reached. Moving
//! one later only writes a number. The runtime's timer is touched only when it fires early, or when a
//! deadline moves nearer.

use crate::Moment;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

/// One movable deadline.
#[derive(Debug, Default)]
pub struct Timer {
    deadline: Option<Moment>,
    /// The runtime's timer.
    armed: Option<Armed>,
}

#[derive(Debug)]
struct Armed {
    sleep: Pin<Box<Sleep>>,
    /// When it fires.
    fires: Moment,
    /// The waker registered with it. The waker of a task does not change, so registering once is enough until
    /// the timer moves to another task.
    wakes: Option<Waker>,
}

impl Timer {
    /// A timer without a deadline.
    pub fn new() -> Timer {
        Timer::default()
    }

    /// Sets the deadline `after` from now.
    pub fn set(&mut self, after: Duration) {
        self.deadline = Some(Moment::now().plus(after));
    }

    /// Sets the deadline `after` from now, unless it is earlier already.
    pub fn set_earlier(&mut self, after: Duration) {
        let wanted = Moment::now().plus(after);
        self.deadline = Some(self.deadline.map_or(wanted, |deadline| deadline.min(wanted)));
    }

    /// Removes the deadline.
    pub fn clear(&mut self) {
        self.deadline = None;
    }

    /// Whether a deadline is set.
    pub fn is_set(&self) -> bool {
        self.deadline.is_some()
    }

    /// Ready once the deadline has passed; wakes the task that polled it last. Never ready without a
    /// deadline.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline else { return Poll::Pending };
        loop {
            let now = Moment::now();
            if now >= deadline {
                self.deadline = None;
                return Poll::Ready(());
            }
            let armed = self.armed.get_or_insert_with(|| Armed {
                sleep: Box::pin(sleep_until(wake_up(deadline, now))),
                fires: deadline,
                wakes: None,
            });
            if armed.fires > deadline {
                armed.sleep.as_mut().reset(wake_up(deadline, now));
                (armed.fires, armed.wakes) = (deadline, None);
            }
            // The clocks differ by a tick: the timer may fire before this one shows it.
            let asked = armed.wakes.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
            if asked && !armed.sleep.is_elapsed() {
                return Poll::Pending;
            }
            // If the task has used up its turn, the runtime's timer would be pending without registering the
            // waker.
            match pin!(unconstrained(armed.sleep.as_mut())).poll(cx) {
                Poll::Pending => {
                    armed.wakes = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                // It fired for an earlier deadline.
                Poll::Ready(()) => {
                    armed.sleep.as_mut().reset(wake_up(deadline, now));
                    (armed.fires, armed.wakes) = (deadline, None);
                }
            }
        }
    }
}

/// The coarse clock lags by up to a tick; waking a little late saves waking twice.
fn wake_up(deadline: Moment, now: Moment) -> Instant {
    Instant::now() + deadline.since(now) + Duration::from_millis(4)
}

/// A future with a deadline: `None` if the deadline came first.
pub async fn within<F: Future>(after: Duration, future: F) -> Option<F::Output> {
    tokio::time::timeout(after, future).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::task::coop::consume_budget;

    /// Regression: a task that had done much work in one turn was not woken at its deadline.
    #[test]
    fn a_deadline_is_met_by_a_task_that_has_used_up_its_turn() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut timer = Timer::new();
        timer.set(Duration::from_millis(20));
        let mut used_up = false;
        let deadline = poll_fn(|cx| {
            while !used_up && pin!(consume_budget()).poll(cx).is_ready() {}
            used_up = true;
            timer.poll(cx)
        });
        meet(&runtime, deadline);
    }

    /// A future that waits for a timer may continue in another task than the one that began it.
    #[test]
    fn a_deadline_is_met_by_the_task_that_has_taken_over_the_timer() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut timer = Timer::new();
        timer.set(Duration::from_millis(20));
        let mut timer = runtime.block_on(async {
            let first = tokio::spawn(async move {
                poll_fn(|cx| Poll::Ready(timer.poll(cx).is_pending())).await;
                timer
            });
            first.await.unwrap()
        });
        meet(&runtime, poll_fn(|cx| timer.poll(cx)));
    }

    fn meet(runtime: &tokio::runtime::Runtime, deadline: impl Future<Output = ()>) {
        runtime.block_on(async {
            tokio::select! {
                biased;
                // Checked first, because the wake-up below would otherwise make the deadline visible.
                () = tokio::time::sleep(Duration::from_secs(5)) => panic!("nothing woke the task"),
                () = deadline => {}
            }
        });
    }
}
