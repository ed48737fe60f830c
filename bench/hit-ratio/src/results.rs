//! The hit ratios of a run, and their file.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::policies::Kind;

/// Hits in per cent, of requests and of the bytes of their bodies.
#[derive(Clone, Copy)]
pub(crate) struct Ratio {
    pub(crate) objects: f64,
    pub(crate) bytes: f64,
}

/// The hit ratios of a run.
pub(crate) struct Results {
    seed: u64,
    requests: usize,
    pub(crate) traces: Vec<(String, Vec<(Kind, Ratio)>)>,
}

impl Results {
    pub(crate) fn new(seed: u64, requests: usize, traces: Vec<(&str, Vec<(Kind, Ratio)>)>) -> Results {
        let traces = traces.into_iter().map(|(name, ratios)| (name.to_owned(), ratios)).collect();
        Results { seed, requests, traces }
    }

    /// The result of a policy on a trace, if it was measured.
    pub(crate) fn of(&self, trace: &str, kind: Kind) -> Option<Ratio> {
        let (_, ratios) = self.traces.iter().find(|(name, _)| name == trace)?;
        ratios.iter().find(|(other, _)| *other == kind).map(|(_, ratio)| *ratio)
    }

    /// # Errors
    /// A message, if `self` is of other traces.
    pub(crate) fn must_be_comparable(&self, seed: u64, requests: usize) -> Result<(), String> {
        if (self.seed, self.requests) == (seed, requests) {
            return Ok(());
        }
        Err(format!("the earlier results are of seed {} and {} requests", self.seed, self.requests))
    }

    /// # Errors
    /// A message, if the file cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<(), String> {
        let mut traces = json!({});
        for (name, ratios) in &self.traces {
            for (kind, ratio) in ratios {
                traces[name][kind.name()] = json!({ "objects": ratio.objects, "bytes": ratio.bytes });
            }
        }
        let all = json!({ "seed": self.seed, "requests": self.requests, "traces": traces });
        let text = format!("{all:#}\n");
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// # Errors
    /// A message, if the file cannot be read or is no result of this program.
    pub(crate) fn read(path: &Path) -> Result<Results, String> {
        let with_path = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(path).map_err(|error| with_path(&error))?;
        let all: Value = serde_json::from_str(&text).map_err(|error| with_path(&error))?;
        Results::of_json(&all).ok_or(with_path(&"not a result of this program"))
    }

    fn of_json(all: &Value) -> Option<Results> {
        let ratio = |value: &Value| {
            Some(Ratio { objects: value["objects"].as_f64()?, bytes: value["bytes"].as_f64()? })
        };
        let ratios = |policies: &Value| {
            let known = Kind::ALL.into_iter().filter(|kind| !policies[kind.name()].is_null());
            known.map(|kind| Some((kind, ratio(&policies[kind.name()])?))).collect::<Option<Vec<_>>>()
        };
        let traces = all["traces"].as_object()?.iter();
        Some(Results {
            seed: all["seed"].as_u64()?,
            requests: usize::try_from(all["requests"].as_u64()?).ok()?,
            traces: traces
                .map(|(name, policies)| Some((name.clone(), ratios(policies)?)))
                .collect::<Option<_>>()?,
        })
    }
}
