//! The fuzz targets: properties that hold for any input. `fuzz/smoke` searches for an input that breaks one, and the tests of this
//! package check the seeds, which are inputs that once did.

mod cache_control;
mod chunked;
mod common;
mod entry;
mod esi;
mod fastcgi;
mod fields;
mod h1_request;
mod h1_response;
mod h2_connection;
mod h2_frames;
mod hpack;
mod inflate;
mod memcached;
mod proxy_protocol;
mod ranges;
mod resume;
mod toml;

/// A property, which panics for an input that breaks it.
pub type Check = fn(&[u8]);

/// Every target, by name.
pub const TARGETS: &[(&str, Check)] = &[
    ("cache_control", cache_control::run),
    ("chunked", chunked::run),
    ("entry", entry::run),
    ("esi", esi::run),
    ("fastcgi", fastcgi::run),
    ("fields", fields::run),
    ("h1_request", h1_request::run),
    ("h1_response", h1_response::run),
    ("h2_connection", h2_connection::run),
    ("h2_frames", h2_frames::run),
    ("hpack", hpack::run),
    ("inflate", inflate::run),
    ("memcached", memcached::run),
    ("proxy_protocol", proxy_protocol::run),
    ("ranges", ranges::run),
    ("resume", resume::run),
    ("toml", toml::run),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn seeds(target: &str) -> Vec<std::path::PathBuf> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
        let entries =
            std::fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn every_seed_and_every_part_of_one_keeps_the_properties_of_its_target() {
        for (target, check) in TARGETS {
            let seeds = seeds(target);
            assert!(!seeds.is_empty(), "{target} has seeds");
            for seed in seeds {
                let bytes = std::fs::read(&seed).unwrap();
                let caught = std::panic::catch_unwind(|| {
                    check(&bytes);
                    // A message that has not arrived whole is the most common input of all.
                    (0..bytes.len().min(64)).for_each(|len| check(&bytes[..len]));
                });
                assert!(caught.is_ok(), "{}", seed.display());
            }
        }
    }

    #[test]
    fn every_folder_of_seeds_has_its_target() {
        let all = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds")).unwrap();
        for entry in all {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(TARGETS.iter().any(|(target, _)| *target == name), "{name}");
        }
    }
}
