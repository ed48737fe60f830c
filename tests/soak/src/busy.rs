//! The time that a thread was kept from reading.

use std::time::Duration;

/// The time for which this thread has computed, or waited for a processor, since it began. Zero where the system does
/// not tell, so that nothing is excused there.
pub(crate) fn busy() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let times = told.split_whitespace().take(2).filter_map(|nanoseconds| nanoseconds.parse().ok());
    times.map(Duration::from_nanos).sum()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::busy;

    #[test]
    fn a_thread_that_computes_is_busy_and_one_that_sleeps_is_not() {
        const WHILE: Duration = Duration::from_millis(50);
        let before = busy();
        let began = Instant::now();
        while began.elapsed() < WHILE {}
        let computed = busy() - before;
        std::thread::sleep(WHILE * 10);
        let slept = busy() - before - computed;
        assert!(computed >= WHILE / 2, "{computed:?}");
        assert!(slept < WHILE * 5, "{slept:?}");
    }
}
