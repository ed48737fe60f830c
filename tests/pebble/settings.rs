//! The settings of certificates from pebble.

use sandarac_acme::{ChallengeKind, Settings};
use sandarac_test_support::TempDir;

use crate::node::limits;
use crate::server::Pebble;

impl Pebble {
    /// The settings for certificates from it.
    pub(crate) fn settings(&self, dir: &TempDir, kind: ChallengeKind, names: &[&str]) -> Settings {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Settings {
            directory: self.directory(),
            ca: Some(self.root_file()),
            challenges: vec![kind],
            limits: limits(),
            ..Settings::new(names, dir.join("state"))
        }
    }
}
