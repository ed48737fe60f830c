//! Why a request bypasses the store.

use sandarac_message::caching::BypassReason;

/// Why a request bypasses the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassReason {
    /// The route is configured so.
    Rule,
    /// A mark records that responses to it are not shared.
    HitForPass,
    /// Responses that others fetched did not answer it, repeatedly.
    NotWorthWaiting,
    /// The client has presented a certificate: the response may be for it alone.
    ClientCertificate,
    /// The request itself requires it.
    Bypass(BypassReason),
}

impl PassReason {
    /// Every reason.
    pub(crate) const ALL: [PassReason; 13] = [
        PassReason::Rule,
        PassReason::HitForPass,
        PassReason::NotWorthWaiting,
        PassReason::ClientCertificate,
        PassReason::Bypass(BypassReason::Method),
        PassReason::Bypass(BypassReason::Body),
        PassReason::Bypass(BypassReason::Cookie),
        PassReason::Bypass(BypassReason::Authorization),
        PassReason::Bypass(BypassReason::NoStore),
        PassReason::Bypass(BypassReason::BypassField),
        PassReason::Bypass(BypassReason::UnknownField),
        PassReason::Bypass(BypassReason::FormField),
        PassReason::Bypass(BypassReason::Accept),
    ];

    /// The reason in logs and Cache-Status.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            PassReason::Rule => "rule",
            PassReason::HitForPass => "hit-for-pass",
            PassReason::NotWorthWaiting => "not-worth-waiting",
            PassReason::ClientCertificate => "client-certificate",
            PassReason::Bypass(reason) => reason.text(),
        }
    }
}
