//! RFC 9111: storability, freshness, and the reuse of stored responses.
//!
//! [`storability`] turns a response into [`Lifetimes`] or a [`Reason`] not to store it; [`Lifetimes::reuse`]
//! judges a stored response against a request. What the RFC leaves to a cache is written down in a
//! [`Policy`].

mod directives;
mod freshen;
mod lifetimes;
mod policy;
mod storability;
mod targeted;

pub use directives::{MaxStale, RequestDirectives, delta_seconds};
pub use freshen::{
    combine, freshen, head_agrees, invalidates, own_fields_of_update, part_fields, resumable, stored_fields,
};
pub use lifetimes::{Lifetimes, Reuse};
pub use policy::{BypassReason, CookieRule, Heuristics, Policy, Profile, is_personal, lookup_bypass};
pub use storability::{Reason, Storability, blames_request, storability};
pub use targeted::{SURROGATE_CAPABILITY, SURROGATE_DEVICE};

#[cfg(test)]
mod tests;
