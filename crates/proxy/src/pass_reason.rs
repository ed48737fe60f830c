//! Why a request goes past the store.

use sandarac_message::caching::BypassReason;

/// Why a request goes past the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassReason {
    /// The route says so.
    Rule,
    /// A mark says that responses to it are not shared.
    HitForPass,
    /// What others fetched was not for it, time and again.
    NotWorthWaiting,
    /// The request is of a kind that does.
    Bypass(BypassReason),
}

impl PassReason {
    /// Every reason.
    pub(crate) const ALL: [PassReason; 8] = [
        PassReason::Rule,
        PassReason::HitForPass,
        PassReason::NotWorthWaiting,
        PassReason::Bypass(BypassReason::Method),
        PassReason::Bypass(BypassReason::Body),
        PassReason::Bypass(BypassReason::Cookie),
        PassReason::Bypass(BypassReason::Authorization),
        PassReason::Bypass(BypassReason::NoStore),
    ];

    /// The reason as logs and Cache-Status write it.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            PassReason::Rule => "rule",
            PassReason::HitForPass => "hit-for-pass",
            PassReason::NotWorthWaiting => "not-worth-waiting",
            PassReason::Bypass(reason) => reason.text(),
        }
    }
}
