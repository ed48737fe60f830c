//! The upgrade of VCL 2 and 3: the corpus of old files, and single constructs.

mod any_input;
mod corpus;
mod transcripts;

#[allow(dead_code, reason = "the tests of the tree use more of it")]
#[path = "../tree/form.rs"]
mod form;

use std::sync::Arc;

use sandarac_vcl::{Limits, NoFiles, OldVersion, Parsed, Upgrade, UpgradeOptions, parse, upgrade};

fn read(text: &str) -> Parsed {
    parse("main.vcl", Arc::from(text.as_bytes()), &mut NoFiles, Limits::default())
}

/// The program, and its upgrade.
fn upgraded(text: &str, version: Option<OldVersion>) -> (Parsed, Upgrade) {
    let parsed = read(text);
    match upgrade(&parsed, UpgradeOptions { version }) {
        Ok(upgraded) => (parsed, upgraded),
        Err(refusal) => panic!("{refusal}: {text}"),
    }
}

/// The new text of the main file.
fn new_text(upgraded: &Upgrade) -> String {
    let (_, text) = upgraded.files().next().expect("a file");
    String::from_utf8(text.to_vec()).expect("text")
}
