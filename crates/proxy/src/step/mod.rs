//! The steps of an exchange, one file each.

pub(crate) mod deliver;
pub(crate) mod fetch;
mod fill;
pub(crate) mod hash;
pub(crate) mod join;
pub(crate) mod lookup;
pub(crate) mod pipe;
pub(crate) mod purge;
pub(crate) mod receive;
pub(crate) mod relay;
pub(crate) mod shared_fetch;
mod stand_in;
pub(crate) mod store;
pub(crate) mod stream;
