//! The steps of an exchange, one file each.

mod ahead;
pub(crate) mod apart;
pub(crate) mod assemble;
pub(crate) mod body;
pub(crate) mod combine;
pub(crate) mod deliver;
pub(crate) mod fetch;
pub(crate) mod files;
mod fill;
pub(crate) mod hash;
mod head;
mod invalidate;
pub(crate) mod lookup;
mod miss;
pub(crate) mod pass;
pub(crate) mod pipe;
pub(crate) mod purge;
pub(crate) mod query;
pub(crate) mod receive;
pub(crate) mod received;
mod relay;
pub(crate) mod response_edits;
pub(crate) mod shared_fetch;
mod stand_in;
pub(crate) mod store;
pub(crate) mod tags;
mod unsafe_method;
