//! Backends that are found: in directories and files, and by names. Those of registries are in `tests/registries`.

mod directory;
mod dns;
mod file;
mod strangers;
mod watched;
