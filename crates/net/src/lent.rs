//! Memory that connections use in turn.
//!
//! A core keeps the memory for reading and encoding, and lends it to a connection while that works with it.
//! It must never carry bytes from one connection to the next, whichever way the work ends. So [`Lent`] clears
//! the memory when it is dropped, by return, error, panic or a dropped future alike, and [`Lent::take`]
//! refuses memory that is not clear.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::thread::LocalKey;

/// Memory kept by a core until the next use.
pub(crate) type Spare<T> = RefCell<Vec<T>>;

/// Memory that can be lent. Its default holds none.
pub(crate) trait Lend: Default + 'static {
    /// How many a core keeps; more are freed.
    const KEPT: usize;

    /// New memory.
    fn make() -> Self;

    /// Where a core keeps them.
    fn spare() -> &'static LocalKey<Spare<Self>>;

    /// Forgets the content and keeps the memory. MUST leave it clear.
    fn clear(&mut self);

    /// Whether no content of an earlier use is visible.
    fn is_clear(&self) -> bool;
}

/// Memory on loan. Dropping it clears it and gives it back to the core.
#[derive(Debug)]
pub(crate) struct Lent<T: Lend>(T);

impl<T: Lend> Lent<T> {
    /// Borrows clear memory.
    ///
    /// # Panics
    /// If the memory is not clear: the connection ends rather than send or parse the bytes of another one.
    #[inline]
    pub(crate) fn take() -> Lent<T> {
        let memory = T::spare().with_borrow_mut(Vec::pop).unwrap_or_else(T::make);
        assert!(memory.is_clear(), "memory on loan holds bytes of another connection");
        Lent(memory)
    }
}

impl<T: Lend> Drop for Lent<T> {
    fn drop(&mut self) {
        let mut memory = std::mem::take(&mut self.0);
        memory.clear();
        // If the thread is ending, its spare memory may be gone already.
        let _ = T::spare().try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < T::KEPT {
                spare.push(memory);
            }
        });
    }
}

impl<T: Lend> Deref for Lent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Lend> DerefMut for Lent<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    thread_local! {
        static SPARE: Spare<Text> = const { RefCell::new(Vec::new()) };
    }

    #[derive(Default)]
    struct Text(String);

    impl Lend for Text {
        const KEPT: usize = 2;

        fn make() -> Text {
            Text::default()
        }

        fn spare() -> &'static LocalKey<Spare<Text>> {
            &SPARE
        }

        fn clear(&mut self) {
            self.0.clear();
        }

        fn is_clear(&self) -> bool {
            self.0.is_empty()
        }
    }

    fn spare() -> usize {
        SPARE.with_borrow(Vec::len)
    }

    #[test]
    fn memory_comes_back_clear_whatever_path_it_is_left_by() {
        let fails = || -> Result<(), ()> {
            let mut text = Lent::<Text>::take();
            text.0.0.push_str("of one connection");
            Err(())
        };
        assert!(fails().is_err());
        assert_eq!(spare(), 1);
        assert!(Lent::<Text>::take().0.0.capacity() > 0);

        let panics = catch_unwind(|| {
            let mut text = Lent::<Text>::take();
            text.0.0.push_str("of another");
            panic!("in the middle");
        });
        assert!(panics.is_err());
        assert_eq!(spare(), 1);

        let mut dropped = Box::pin(async {
            let mut text = Lent::<Text>::take();
            text.0.0.push_str("of a third");
            std::future::pending::<()>().await;
        });
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(dropped.as_mut().poll(&mut cx).is_pending());
        assert_eq!(spare(), 0);
        drop(dropped);
        assert!(SPARE.with_borrow(|spare| spare.iter().all(Text::is_clear)));
        assert_eq!(spare(), 1);
    }

    #[test]
    fn no_more_is_kept_than_is_worth_it() {
        drop([Lent::<Text>::take(), Lent::take(), Lent::take()]);
        assert_eq!(spare(), Text::KEPT);
    }

    #[test]
    fn memory_that_is_not_clear_is_never_lent() {
        SPARE.with_borrow_mut(|spare| spare.push(Text("of one connection".to_owned())));
        let taken = catch_unwind(AssertUnwindSafe(|| drop(Lent::<Text>::take())));
        assert!(taken.is_err());
        assert_eq!(spare(), 0);
    }
}
