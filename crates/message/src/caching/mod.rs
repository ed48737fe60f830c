//! RFC 9111: storability, freshness, and the reuse of stored responses.
//!
//! [`storability`] turns a response into [`Lifetimes`] or a [`Reason`] not to store it; [`Lifetimes::reuse`]
//! checks a stored response against a request. A [`Policy`] holds the choices that the RFC leaves to a cache.

mod directives;
mod freshen;
mod lifetimes;
mod policy;
mod relative;
mod storability;
mod targeted;

pub use directives::{MaxStale, RequestDirectives, delta_seconds};
pub use freshen::{
    combine, freshen, head_agrees, invalidates, own_fields_of_update, part_fields, resumable, stored_fields,
};
pub use lifetimes::{Lifetimes, Reuse};
pub use policy::{
    BypassReason, CookieRule, Heuristics, PAGES_AND_ASSETS, Policy, Profile, StoreUse, bar, is_personal,
    store_use,
};
pub use relative::{LifetimeFlags, RelativeLifetimes};
pub use storability::{Reason, Storability, blames_request, states_freshness, storability};
pub use targeted::{SURROGATE_CAPABILITY, SURROGATE_CAPABILITY_ESI, SURROGATE_DEVICE, announces_esi};

#[cfg(test)]
mod tests;
