//! Configuration files: any text is a configuration or a list of errors that stand somewhere in it, and the same each time.

use sandarac_config::{Config, explain};

/// Checks one input.
pub(crate) fn run(bytes: &[u8]) {
    let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let read = || Config::from_toml("fuzz.toml", text);
    match read() {
        Ok((config, warnings)) => {
            assert!(!explain(&config).is_empty());
            for warning in &warnings {
                check_position(text, warning.position());
                assert!(!warning.to_string().is_empty());
            }
            let (again, _) = read().expect("the same text");
            assert_eq!(config.needs_restart(&again), Vec::<&str>::new());
        }
        Err(diagnostics) => {
            assert!(!diagnostics.errors().is_empty());
            for error in diagnostics.errors() {
                check_position(text, diagnostics.position(error));
            }
            assert_eq!(diagnostics.to_string(), read().expect_err("the same text").to_string());
        }
    }
}

/// Line and column, from 1, stand in the text or at its end.
fn check_position(text: &str, position: Option<(usize, usize)>) {
    if let Some((line, column)) = position {
        assert!(line >= 1 && line <= text.split('\n').count(), "line {line}");
        assert!(column >= 1 && column <= text.chars().count() + 1, "column {column}");
    }
}
