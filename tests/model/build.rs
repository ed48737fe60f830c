//! Sets `cfg(model)` for this package alone.

fn main() {
    println!("cargo::rustc-cfg=model");
    println!("cargo::rerun-if-changed=build.rs");
}
