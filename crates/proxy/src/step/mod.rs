//! The steps of an exchange, one file each.

mod ahead;
pub(crate) mod apart;
pub(crate) mod assemble;
pub(crate) mod body;
pub(crate) mod combine;
pub(crate) mod decide;
pub(crate) mod deliver;
pub(crate) mod fetch;
pub(crate) mod files;
mod fill;
mod head;
mod invalidate;
mod judge;
pub(crate) mod lookup;
mod miss;
pub(crate) mod pass;
pub(crate) mod pipe;
pub(crate) mod purge;
pub(crate) mod receive;
mod relay;
pub(crate) mod shared_fetch;
mod stand_in;
pub(crate) mod store;
mod unsafe_method;
