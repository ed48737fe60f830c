//! A wiki with Sandarac before it, set up as the example says.

use std::fs;
use std::path::Path;

use sandarac_test_support::{Sandarac, Setup};

use crate::browser::Browser;
use crate::wiki::Wiki;

/// The wiki, and what stands before it.
pub(crate) struct Site {
    pub(crate) proxy: Sandarac,
    pub(crate) wiki: Wiki,
}

impl Site {
    /// Installs a wiki and starts it, with Sandarac before it.
    #[track_caller]
    pub(crate) fn start() -> Site {
        let wiki = Wiki::start();
        let proxy = Setup::new(env!("CARGO_BIN_EXE_sandarac")).config(configuration(&wiki)).start();
        wiki.stand_behind(proxy.address());
        Site { proxy, wiki }
    }

    /// Someone who has never been here.
    pub(crate) fn visitor(&self) -> Browser {
        Browser::new(self.proxy.address())
    }

    /// What Sandarac has written to its access log so far.
    pub(crate) fn access_log(&self) -> String {
        fs::read_to_string(self.proxy.dir().join("access.log")).unwrap_or_default()
    }
}

/// The example, with its addresses and the directory of its uploads replaced, and an access log.
fn configuration(wiki: &Wiki) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/mediawiki/sandarac.toml");
    let mut text = fs::read_to_string(path).expect("the example can be read");
    let (socket, directory) = wiki.places();
    for (old, new) in [
        ("address = \":8080\"", "address = \"127.0.0.1:0\"".to_owned()),
        ("fcgi+unix:/run/php/php-fpm.sock", format!("fcgi+unix:{socket}")),
        ("files = \"/var/lib/mediawiki\"", format!("files = \"{directory}\"")),
    ] {
        assert_eq!(text.matches(old).count(), 1, "{old} in {text}");
        text = text.replace(old, &new);
    }
    text + "\n[log]\naccess = \"./access.log\"\n"
}
