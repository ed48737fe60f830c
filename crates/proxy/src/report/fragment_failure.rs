//! Why a fragment, or a page, is not assembled.

macro_rules! failures {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $text:literal);* $(;)?) => {
        /// Why there is no fragment, or why a page is sent as it came.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum FragmentFailure {
            $($(#[$doc])* $variant),*
        }

        impl FragmentFailure {
            /// Every reason.
            pub const ALL: &'static [FragmentFailure] = &[$(FragmentFailure::$variant),*];

            /// The name in Cache-Status, logs and counters.
            pub const fn name(self) -> &'static str {
                match self { $(FragmentFailure::$variant => $name),* }
            }

            /// A description for people.
            pub const fn text(self) -> &'static str {
                match self { $(FragmentFailure::$variant => $text),* }
            }
        }
    };
}

failures! {
    /// Its URL has bytes that no URL has, or does not fit a request.
    Url = "fragment-url", "the URL of a fragment is malformed";
    /// Its URL leads to another host, or has another scheme than http and https.
    Elsewhere = "fragment-elsewhere", "a fragment is of another host";
    /// Pages within pages have reached the bound.
    TooDeep = "fragments-too-deep", "fragments are nested too deeply";
    /// The page has used up its fragments, those within fragments included.
    TooMany = "fragments-too-many", "the page has too many fragments";
    /// Connections hold as much memory as they may.
    Memory = "fragment-memory", "there is no memory for a fragment";
    /// Its status is not one of success.
    Status = "fragment-status", "a fragment was answered with an error";
    /// Its body has a coding, although none was accepted.
    Coded = "fragment-coded", "a fragment came in a content coding";
    /// It is an event stream.
    Endless = "fragment-endless", "a fragment is an event stream";
    /// It broke off.
    BrokeOff = "fragment-broke-off", "a fragment broke off";
    /// The page's body has a coding, in which no tags are found.
    PageCoded = "page-coded", "the page came in a content coding";
    /// The response came before the backend had the whole request.
    PageEarly = "page-early", "the page came before the backend had the whole request";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_name_of_its_own() {
        let mut names: Vec<_> = FragmentFailure::ALL.iter().map(|reason| reason.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FragmentFailure::ALL.len());
    }
}
