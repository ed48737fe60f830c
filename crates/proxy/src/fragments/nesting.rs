//! The bounds that pages within pages share.

use crate::report::fragment_failure::FragmentFailure;
use std::cell::Cell;
use std::rc::Rc;

/// Pages within pages: a fragment may have fragments, and so on. Varnish has the same bound.
const MAX_DEPTH: u8 = 5;

/// Fragments for one request of a client, those within fragments included.
const MAX_FRAGMENTS: u32 = 256;

/// The place of a request among pages within pages.
#[derive(Clone, Debug)]
pub(crate) struct Nesting {
    /// How many pages it is within.
    depth: u8,
    /// How many fragments may follow, for all pages of one request together.
    left: Rc<Cell<u32>>,
    /// The transaction number of the client's own request.
    pub(crate) page: u64,
}

impl Nesting {
    /// The place of a client's own request.
    pub(crate) fn outermost(page: u64) -> Nesting {
        Nesting { depth: 0, left: Rc::new(Cell::new(MAX_FRAGMENTS)), page }
    }

    /// The place of a fragment of this request.
    ///
    /// # Errors
    /// There may be none.
    pub(crate) fn within(&self) -> Result<Nesting, FragmentFailure> {
        if self.depth == MAX_DEPTH {
            return Err(FragmentFailure::TooDeep);
        }
        let left = self.left.get().checked_sub(1).ok_or(FragmentFailure::TooMany)?;
        self.left.set(left);
        Ok(Nesting { depth: self.depth + 1, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_within_pages_share_their_bounds() {
        let mut nesting = Nesting::outermost(1);
        for _ in 0..MAX_DEPTH {
            nesting = nesting.within().expect("a level more");
        }
        assert_eq!(nesting.within().err(), Some(FragmentFailure::TooDeep));
        let nesting = Nesting::outermost(1);
        let within = nesting.within().expect("one");
        for _ in 1..MAX_FRAGMENTS {
            within.within().expect("one more");
        }
        assert_eq!(within.within().err(), Some(FragmentFailure::TooMany));
        assert_eq!(nesting.within().err(), Some(FragmentFailure::TooMany));
    }
}
