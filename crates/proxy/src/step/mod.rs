//! The steps of an exchange, one file each.

pub(crate) mod background;
pub(crate) mod deliver;
pub(crate) mod fetch;
mod fill;
pub(crate) mod hash;
mod hedge;
pub(crate) mod join;
pub(crate) mod lookup;
mod meet;
pub(crate) mod pipe;
pub(crate) mod purge;
pub(crate) mod receive;
pub(crate) mod relay;
mod stand_in;
pub(crate) mod store;
pub(crate) mod stream;
