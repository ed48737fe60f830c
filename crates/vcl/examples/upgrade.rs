//! Upgrades files of VCL 2 and 3, and writes each new text to a folder.
//!
//! `cargo run -p sandarac-vcl --example upgrade -- FOLDER FILE…`
//!
//! A first line `# vcl 2` or `# vcl 3` is the version of the file.

use std::path::Path;
use std::sync::Arc;

use sandarac_vcl::{Limits, NoFiles, OldVersion, UpgradeOptions, parse, upgrade};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((folder, files)) = arguments.split_first() else { return Ok(()) };
    for name in files {
        let text: Arc<[u8]> = std::fs::read(name)?.into();
        let version = match &text {
            text if text.starts_with(b"# vcl 2") => Some(OldVersion::V2),
            text if text.starts_with(b"# vcl 3") => Some(OldVersion::V3),
            _ => None,
        };
        let parsed = parse(name, text, &mut NoFiles, Limits::default());
        match upgrade(&parsed, UpgradeOptions { version }) {
            Ok(upgraded) => {
                let base = Path::new(name).file_name().unwrap_or_default();
                for (_, text) in upgraded.files().take(1) {
                    std::fs::write(Path::new(folder).join(base), text)?;
                }
                eprint!("{}", upgraded.list(&parsed.sources));
            }
            Err(refusal) => eprintln!("{name}: {refusal}"),
        }
    }
    Ok(())
}
