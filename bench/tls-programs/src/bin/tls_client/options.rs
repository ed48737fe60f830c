//! The arguments.

use crate::Failure;

pub(crate) struct Options {
    pub(crate) mode: String,
    pub(crate) port: u16,
    pub(crate) path: String,
    pub(crate) body: usize,
    pub(crate) connections: usize,
    pub(crate) seconds: f64,
    pub(crate) rate: f64,
    pub(crate) is_hybrid: bool,
    pub(crate) is_aes256: bool,
    pub(crate) is_plain: bool,
    pub(crate) is_resumed: bool,
}

impl Options {
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
        let mut next = |name| arguments.next().ok_or(format!("{name} is missing"));
        let mut options = Options {
            mode: next("the mode")?,
            port: next("the port")?.parse()?,
            path: next("the path")?,
            body: next("the size of the body")?.parse()?,
            connections: 64,
            seconds: 2.0,
            rate: 0.0,
            is_hybrid: false,
            is_aes256: false,
            is_plain: false,
            is_resumed: false,
        };
        for argument in arguments {
            let (name, value) = argument.split_once('=').ok_or(format!("no value: {argument}"))?;
            match (name, value) {
                ("connections", _) => options.connections = value.parse()?,
                ("seconds", _) => options.seconds = value.parse()?,
                ("rate", _) => options.rate = value.parse()?,
                ("group", "x25519" | "hybrid") => options.is_hybrid = value == "hybrid",
                ("suite", "aes128" | "aes256") => options.is_aes256 = value == "aes256",
                ("plain", "yes" | "no") => options.is_plain = value == "yes",
                ("resumed", "yes" | "no") => options.is_resumed = value == "yes",
                _ => return Err(format!("unknown option: {argument}").into()),
            }
        }
        Ok(options)
    }
}
