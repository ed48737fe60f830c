//! The shared tier: its servers, how their content is protected, and how long they may take.

mod credentials;
mod make;
mod route_use;
mod secret_file;
mod server;
mod settings;
mod source;
mod tier;

pub use credentials::Credentials;
pub(crate) use make::shared_config;
pub(crate) use route_use::{SharedChoice, shared_use, warn_of_unused_tier};
pub use secret_file::{SecretContent, SecretFile};
pub use server::SharedServer;
pub(crate) use settings::SharedSettings;
pub use tier::{SharedConfig, SharedEjection, SharedLogin, SharedServers};
