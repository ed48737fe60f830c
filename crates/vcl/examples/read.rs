//! Reads and checks a VCL file with its includes, prints the diagnostics and how long each of the two took.
//!
//! `cargo run --release -p sandarac-vcl --example read -- FILE [--json]`

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use sandarac_vcl::check::{BasicPatterns, check};
use sandarac_vcl::{IncludeRequest, Limits, LoadError, LoadedFile, Loader, parse, render, to_json};

/// Files from the directory of the including file. Patterns are not known here.
struct Disk;

impl Loader for Disk {
    fn load(&mut self, request: IncludeRequest<'_>) -> Result<Vec<LoadedFile>, LoadError> {
        let path = Path::new(request.from).parent().unwrap_or(Path::new("")).join(request.path);
        let text = std::fs::read(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => LoadError::NotFound,
            _ => LoadError::Unreadable(error.to_string()),
        })?;
        Ok(vec![LoadedFile { name: path.display().to_string(), text: text.into() }])
    }
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let as_json = arguments.iter().any(|argument| argument == "--json");
    for name in arguments.iter().filter(|argument| !argument.starts_with("--")) {
        let text: Arc<[u8]> = std::fs::read(name)?.into();
        let bytes = text.len();
        let start = Instant::now();
        let parsed = parse(name, text, &mut Disk, Limits::default());
        let elapsed = start.elapsed();
        let start = Instant::now();
        let diagnostics = check(&parsed, &BasicPatterns);
        let checked = start.elapsed();
        for diagnostic in &diagnostics {
            match as_json {
                true => println!("{}", to_json(&parsed.sources, diagnostic)),
                false => println!("{}", render(&parsed.sources, diagnostic)),
            }
        }
        let lines: usize = parsed.sources.files().map(|(_, file)| file.line_count()).sum();
        eprintln!(
            "{name}: {}, {} diagnostics, {lines} lines, {bytes} bytes, read in {:.3} ms, checked in {:.3} ms",
            parsed.program.dialect,
            diagnostics.len(),
            elapsed.as_secs_f64() * 1000.0,
            checked.as_secs_f64() * 1000.0
        );
    }
    Ok(())
}
