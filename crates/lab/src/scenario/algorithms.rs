//! The algorithms of a scenario, and their syntax.

use sandarac_balance::{Algorithm as Balance, ResumeSettings, SkillSource};
use serde::Deserialize;

use crate::lard::LardSettings;

/// An algorithm to compare.
#[derive(Clone, Debug, PartialEq)]
pub struct Algorithm {
    /// Its label in the table.
    pub label: String,
    /// Its kind.
    pub kind: AlgorithmKind,
}

/// An algorithm of the shipping balancer, or one for comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum AlgorithmKind {
    /// An algorithm of the shipping balancer.
    Pool {
        /// The algorithm.
        algorithm: Balance,
        /// For `consistent_hash`.
        load_factor: f64,
        /// For `resume`.
        resume: ResumeSettings,
        /// Whether learning stops at the end of the warm-up.
        frozen: bool,
        /// Whether scores are those that workers report, without corrections between two reports.
        uncorrected: bool,
    },
    /// For comparison, with knowledge that no balancer can have: the objects of each worker, and the end of
    /// its work.
    Oracle {
        /// The cost of each second of loading, beside that second.
        price: f64,
    },
    /// LARD with replication.
    Lard(LardSettings),
    /// Résumés as published in 2012, with the defaults of that time.
    Published,
}

/// Algorithms for comparison, which do not ship.
const COMPARED: [&str; 3] = ["lard", "oracle", "published"];

fn is_known(name: &str) -> bool {
    COMPARED.contains(&name) || name.parse::<Balance>().is_ok()
}

/// An algorithm as written.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenAlgorithm {
    name: String,
    label: Option<String>,
    load_factor: Option<f64>,
    variance: Option<f64>,
    backlog_history: Option<u32>,
    exploration: Option<f64>,
    inferred: Option<bool>,
    frozen: Option<bool>,
    uncorrected: Option<bool>,
    price: Option<f64>,
    low: Option<u32>,
    high: Option<u32>,
    shrink_seconds: Option<f64>,
}

impl WrittenAlgorithm {
    fn named(name: &str) -> WrittenAlgorithm {
        WrittenAlgorithm { name: name.to_owned(), ..WrittenAlgorithm::default() }
    }

    /// The algorithms of a scenario that lists none.
    pub(super) fn usual() -> Vec<WrittenAlgorithm> {
        let hash = |factor| WrittenAlgorithm { load_factor: Some(factor), ..Self::named("consistent_hash") };
        vec![
            Self::named("resume"),
            WrittenAlgorithm { frozen: Some(true), ..Self::named("resume") },
            Self::named("lard"),
            hash(1.25),
            hash(2.0),
            hash(4.0),
            Self::named("maglev"),
            Self::named("least_requests"),
            Self::named("peak_ewma"),
            Self::named("round_robin"),
            Self::named("random"),
        ]
    }

    /// Refuses invalid numbers, and keys that the algorithm does not use.
    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        let flag = |flag: Option<bool>| flag.map(f64::from);
        // The bounds of the configuration, for its settings.
        let given = [
            ("load_factor", self.load_factor, 1.0..=1e3, "consistent_hash"),
            ("variance", self.variance, 0.1..=1e3, "resume"),
            ("backlog_history", self.backlog_history.map(f64::from), 1.0..=1e6, "resume"),
            ("exploration", self.exploration, 0.0..=1.0, "resume"),
            ("inferred", flag(self.inferred), 0.0..=1.0, "resume"),
            ("frozen", flag(self.frozen), 0.0..=1.0, "resume"),
            ("uncorrected", flag(self.uncorrected), 0.0..=1.0, "resume"),
            ("price", self.price, 0.0..=1e6, "oracle"),
            ("low", self.low.map(f64::from), 1.0..=1e6, "lard"),
            ("high", self.high.map(f64::from), 1.0..=1e6, "lard"),
            ("shrink_seconds", self.shrink_seconds, 0.0..=1e9, "lard"),
        ];
        for (setting, value, bounds, of) in given {
            let Some(value) = value else { continue };
            if name != of && is_known(name) {
                return Err(format!("{setting} means nothing to {name}; it is a setting of {of}"));
            }
            if !bounds.contains(&value) {
                let (least, most) = (bounds.start(), bounds.end());
                return Err(format!("{setting} of {name} has to be from {least} to {most}, and is {value}"));
            }
        }
        Ok(())
    }

    pub(super) fn read(&self) -> Result<Algorithm, String> {
        self.check()?;
        let mut label = vec![self.name.clone()];
        let mut said =
            |name: &str, value: Option<String>| label.extend(value.map(|value| format!("{name} {value}")));
        said("factor", self.load_factor.map(|value| value.to_string()));
        said("variance", self.variance.map(|value| value.to_string()));
        said("history", self.backlog_history.map(|value| value.to_string()));
        said("exploration", self.exploration.map(|value| value.to_string()));
        said("price", self.price.map(|value| value.to_string()));
        said("low", self.low.map(|value| value.to_string()));
        said("high", self.high.map(|value| value.to_string()));
        said("shrink", self.shrink_seconds.map(|value| format!("{value} s")));
        let flag = |name: &str, value: Option<bool>| value.filter(|value| *value).map(|_| name.to_owned());
        label.extend(flag("inferred", self.inferred));
        label.extend(flag("frozen", self.frozen));
        label.extend(flag("uncorrected", self.uncorrected));
        let label = self.label.clone().unwrap_or_else(|| label.join(", "));
        let kind = if self.name == "oracle" {
            AlgorithmKind::Oracle { price: self.price.unwrap_or(1.0) }
        } else if self.name == "published" {
            AlgorithmKind::Published
        } else if self.name == "lard" {
            let usual = LardSettings::default();
            AlgorithmKind::Lard(LardSettings {
                low: self.low.unwrap_or(usual.low),
                high: self.high.unwrap_or(usual.high),
                shrink_seconds: self.shrink_seconds.unwrap_or(usual.shrink_seconds),
            })
        } else {
            let names = || [&Balance::ALL.map(Balance::name)[..], &COMPARED].concat().join(", ");
            let none = |_| format!("there is no algorithm {:?}; there are {}", self.name, names());
            let algorithm = self.name.parse().map_err(none)?;
            let mut resume = ResumeSettings::default();
            resume.variance = self.variance.unwrap_or(resume.variance);
            resume.backlog_history = self.backlog_history.unwrap_or(resume.backlog_history);
            resume.exploration = self.exploration.unwrap_or(resume.exploration);
            if self.inferred == Some(true) {
                resume.skills = SkillSource::Inferred;
            }
            AlgorithmKind::Pool {
                algorithm,
                load_factor: self.load_factor.unwrap_or(1.25),
                resume,
                frozen: self.frozen.unwrap_or(false),
                uncorrected: self.uncorrected.unwrap_or(false),
            }
        };
        Ok(Algorithm { label, kind })
    }
}
