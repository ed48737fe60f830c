//! The markup of a stored page with fragments, which is parsed once and kept beside the object.

use sandarac_esi::Template;

use crate::budget::held;

/// What a page turned out to be when it was parsed.
#[derive(Debug)]
pub enum PageMarkup {
    /// Text alone: it is sent as it is.
    Plain,
    /// A page with these parts.
    Parts(Template),
    /// A page with more parts than are kept.
    TooMany,
}

impl PageMarkup {
    /// Bytes charged for it.
    pub(crate) fn bytes(&self) -> usize {
        let mut bytes = held(size_of::<PageMarkup>());
        if let PageMarkup::Parts(template) = self {
            template.allocations(|size| bytes += held(size));
        }
        bytes
    }
}
