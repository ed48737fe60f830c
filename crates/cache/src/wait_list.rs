//! Tasks that wait for the same thing.

use std::task::{Context, Waker};

/// Values under small numbers that are reused.
pub(crate) struct Entries<T> {
    entries: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Entries<T> {
    pub(crate) const fn new() -> Entries<T> {
        Entries { entries: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(crate) fn insert(&mut self, entry: T) -> usize {
        match self.free.pop() {
            Some(at) => {
                self.entries[at] = Some(entry);
                at
            }
            None => {
                self.entries.push(Some(entry));
                self.entries.len() - 1
            }
        }
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.entries.get_mut(at)?.as_mut()
    }

    pub(crate) fn remove(&mut self, at: usize) -> Option<T> {
        let entry = self.entries.get_mut(at)?.take();
        if entry.is_some() {
            self.free.push(at);
        }
        entry
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        self.entries.iter_mut().enumerate().filter_map(|(at, entry)| Some((at, entry.as_mut()?)))
    }
}

/// Wakers collected under a lock, to be woken after it is released.
#[derive(Default)]
#[must_use = "dropped wakers wake nobody"]
pub(crate) struct Wake(Vec<Waker>);

impl Wake {
    pub(crate) fn add(&mut self, waker: Option<Waker>) {
        self.0.extend(waker);
    }

    pub(crate) fn wake(self) {
        self.0.into_iter().for_each(Waker::wake);
    }
}

/// Keeps the waker of `cx` in `place`. Clones it only if the present one would wake another task.
pub(crate) fn keep(place: &mut Option<Waker>, cx: &Context<'_>) {
    match place {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *place = Some(cx.waker().clone()),
    }
}
