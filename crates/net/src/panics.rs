//! Panics, counted by the part of the program that they ended.
//!
//! A panic ends the task or the thread that it happened in; the process goes on. The process installs a hook that [counts](count)
//! and reports each, so that no task has to be watched for it. The part is known from the thread's name, and on a core from the
//! task that is polled, which [`spawn`](crate::spawn) notes.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

macro_rules! parts {
    ($($variant:ident $name:literal $text:literal),* $(,)?) => {
        /// A part of the program that a panic may end.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum PanicPart {
            $(#[doc = $text] $variant),*
        }

        impl PanicPart {
            /// Every part.
            pub const ALL: &'static [PanicPart] = &[$(PanicPart::$variant),*];

            /// The name in metrics and messages.
            pub const fn name(self) -> &'static str {
                match self { $(PanicPart::$variant => $name),* }
            }
        }
    };
}

parts! {
    Session "session" "A client connection, with its exchanges over HTTP/1.",
    Exchange "exchange" "A request over HTTP/2, or a fragment of a page.",
    Fetch "fetch" "A fetch that goes on without its client.",
    Fill "fill" "The body of an object that is being stored.",
    Origin "origin" "A connection to a backend that several requests share.",
    Tier "tier" "A request to the shared tier.",
    Files "files" "A thread that reads or writes a file.",
    Upkeep "upkeep" "The upkeep of pools and of the shared tier.",
    Sweeper "sweeper" "The sweep of the store.",
    Certificates "certificates" "The watch over certificates, or an order for one.",
    Log "log" "The access log.",
    Admin "admin" "The admin interface.",
    Other "other" "Anything else.",
}

static COUNTS: [AtomicU64; PanicPart::ALL.len()] = [const { AtomicU64::new(0) }; PanicPart::ALL.len()];

thread_local! {
    /// The part that the task being polled belongs to.
    static TASK: Cell<Option<PanicPart>> = const { Cell::new(None) };
}

impl PanicPart {
    /// The part that a thread of this name works for.
    fn of_thread(name: &str) -> PanicPart {
        match name {
            "files" => PanicPart::Files,
            "upkeep" | "file-reader" | "skills-writer" => PanicPart::Upkeep,
            "sweeper" => PanicPart::Sweeper,
            "certificates" | "certificate file" | "acme" => PanicPart::Certificates,
            "log" => PanicPart::Log,
            "admin" => PanicPart::Admin,
            core if core.starts_with("worker-") => PanicPart::Session,
            _ => PanicPart::Other,
        }
    }
}

/// Counts a panic of this thread, and returns the part that it ends. For a panic hook.
pub fn count() -> PanicPart {
    let of_thread = || PanicPart::of_thread(std::thread::current().name().unwrap_or_default());
    let part = TASK.get().unwrap_or_else(of_thread);
    COUNTS[part as usize].fetch_add(1, Relaxed);
    part
}

/// The panics of a part so far.
pub fn counted(part: PanicPart) -> u64 {
    COUNTS[part as usize].load(Relaxed)
}

/// A task of a part.
pub(crate) struct OfPart<F> {
    part: PanicPart,
    task: Pin<Box<F>>,
}

impl<F> OfPart<F> {
    pub(crate) fn new(part: PanicPart, task: Pin<Box<F>>) -> OfPart<F> {
        OfPart { part, task }
    }
}

impl<F: Future> Future for OfPart<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _polled = Polled(TASK.replace(Some(self.part)));
        self.task.as_mut().poll(cx)
    }
}

/// Restores the part of the outer task, also when the inner one panics.
struct Polled(Option<PanicPart>);

impl Drop for Polled {
    fn drop(&mut self) {
        TASK.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Once;

    /// Counts panics as the process does, beside the hook of the test runner.
    fn count_panics() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let runner = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                count();
                runner(info);
            }));
        });
    }

    #[test]
    fn the_panic_of_a_task_counts_for_its_part_and_the_core_goes_on() {
        count_panics();
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.build_local(tokio::runtime::LocalOptions::default()).unwrap();
        let (fills, tiers) = (counted(PanicPart::Fill), counted(PanicPart::Tier));
        runtime.block_on(async {
            crate::spawn(PanicPart::Fill, || async { panic!("a fault of a fill, for a test") });
            let (done, is_done) = tokio::sync::oneshot::channel();
            crate::spawn(PanicPart::Tier, || async { done.send(()).unwrap() });
            is_done.await.unwrap();
        });
        assert_eq!((counted(PanicPart::Fill), counted(PanicPart::Tier)), (fills + 1, tiers));
    }

    #[test]
    fn the_panic_of_a_thread_counts_for_the_part_that_it_works_for() {
        count_panics();
        for (name, part) in [("sweeper", PanicPart::Sweeper), ("a-new-thread", PanicPart::Other)] {
            let before = counted(part);
            let thread = std::thread::Builder::new().name(name.to_owned());
            let ended = thread.spawn(|| panic!("a fault of a thread, for a test")).unwrap().join();
            assert!(ended.is_err());
            assert_eq!(counted(part), before + 1, "{name}");
        }
        assert_eq!(PanicPart::of_thread("worker-3"), PanicPart::Session);
    }
}
