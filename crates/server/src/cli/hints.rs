//! Hints for command lines written for varnishd, or without the flag before a file.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};

/// Flags of varnishd that do not exist here, and their replacements.
const VARNISHD: [(&str, &str); 10] = [
    ("-f", "there is no VCL here: routes and rules are in a configuration, -c FILE"),
    ("-t", "varnishd's -t is `[cache] default_ttl` in a configuration, -c FILE"),
    ("-T", "varnishd's -T is --admin here, with a socket path, or with an address and a token"),
    ("-S", "varnishd's -S is --admin-token-file here"),
    ("-F", "leave it out: sandarac is always in the foreground"),
    ("-d", "leave it out: sandarac is always in the foreground"),
    (
        "-n",
        "varnishd's -n is --admin here, with a socket path, for the process and for `sandarac status` and the others",
    ),
    ("-p", "settings are in a configuration, -c FILE; `sandarac config --defaults` prints them all"),
    (
        "-j",
        "varnishd's -j is --user here, for a start by root: the process keeps only the right to its ports",
    ),
    ("-P", "there is no PID file: the service manager knows the process"),
];

/// The error with a hint, if there is one.
pub(super) fn hinted(error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let first = arguments.get(1).and_then(|first| first.to_str()).unwrap_or_default();
    match hint(&error, first) {
        Some(hint) => {
            let mut error = error;
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
            error
        }
        None => error,
    }
}

fn hint(error: &clap::Error, first: &str) -> Option<String> {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if let Some(word) = named(ContextKind::InvalidSubcommand) {
        return word.ends_with(".toml").then(|| format!("name the configuration by -c: sandarac -c {word}"));
    }
    let argument = named(ContextKind::InvalidArg)?;
    match first {
        "check" if !argument.starts_with('-') => {
            Some(format!("name the configuration by -c: sandarac check -c {argument}"))
        }
        _ if first.starts_with('-') => {
            let (_, hint) = VARNISHD.iter().find(|(flag, _)| *flag == argument)?;
            Some((*hint).to_owned())
        }
        _ => None,
    }
}
