//! libFuzzer on the target that the environment variable `FUZZ_TARGET` names. One program for all of them, because linking one for
//! each took longer than it ran.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sandarac_fuzz::{Check, TARGETS};
use std::sync::LazyLock;

static CHECK: LazyLock<Check> = LazyLock::new(|| {
    let wanted = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target");
    let target = TARGETS.iter().find(|(name, _)| *name == wanted);
    target.unwrap_or_else(|| panic!("{wanted} is not a target")).1
});

fuzz_target!(|bytes: &[u8]| CHECK(bytes));
