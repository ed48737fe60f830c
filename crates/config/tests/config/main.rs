//! The configuration as its users meet it.

mod classes;
mod compression;
mod cookies;
mod diagnostics;
mod documents;
mod files;
mod flags;
mod fragments;
mod habits;
mod pages;
mod php;
mod pools;
mod reading;
mod robustness;
mod routes;
mod shared;
mod shared_secrets;
mod tls;

use sandarac_config::{Config, Diagnostics};

/// A whole configuration that `more` is added to.
const BASE: &str = "[[listen]]\naddress = \":8080\"\n[pool.app]\nbackends = [\"http://127.0.0.1:8000\"]\n";

fn load(text: &str) -> Config {
    match Config::from_toml("sandarac.toml", text) {
        Ok((config, _)) => config,
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

fn refused(text: &str) -> Diagnostics {
    Config::from_toml("sandarac.toml", text).expect_err(text)
}

fn warnings(text: &str) -> Vec<String> {
    let (_, warnings) = Config::from_toml("sandarac.toml", text).unwrap_or_else(|errors| panic!("{errors}"));
    warnings.iter().map(|warning| warning.diagnostic().message.clone()).collect()
}
