//! Settings that a source provides beside the list, and that may change while it is watched.

use super::{Ignored, IgnoredReason, MAX_ENTRY_BYTES};
use sandarac_balance::{ResumeSettings, Settings};
use serde_json::Value;
use std::fmt;
use std::ops::RangeInclusive;

/// The settings of a pool and its workers that a source provides. Others stay as configured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LiveSettings {
    /// [`sandarac_balance::ResumeSettings::variance`].
    pub variance: Option<f64>,
    /// [`sandarac_balance::ResumeSettings::backlog_history`].
    pub backlog_history: Option<u32>,
    /// [`sandarac_balance::ResumeSettings::exploration`].
    pub exploration: Option<f64>,
    /// For workers: the number of requests that they measure over. Not used by a balancer.
    pub history: Option<u32>,
    /// For workers: after how many requests of other classes a class is forgotten. Not used by a balancer.
    pub max_skill_age: Option<u32>,
}

impl LiveSettings {
    /// Reads a JSON object. Unknown settings and invalid values are left out and recorded. Empty text, as in
    /// a node without data, has no settings.
    pub(super) fn read(json: &[u8], ignored: &mut Ignored) -> LiveSettings {
        let mut settings = LiveSettings::default();
        if json.trim_ascii().is_empty() {
            return settings;
        }
        if json.len() > MAX_ENTRY_BYTES {
            ignored.add(IgnoredReason::TooLong, json);
            return settings;
        }
        let Ok(Value::Object(object)) = serde_json::from_slice(json) else {
            ignored.add(IgnoredReason::BadSetting, json);
            return settings;
        };
        for (name, value) in &object {
            let given = match name.as_str() {
                "variance" => within(value, 0.1..=1000.0).map(|number| settings.variance = Some(number)),
                "backlog_history" => {
                    count(value, 1_000_000).map(|number| settings.backlog_history = Some(number))
                }
                "exploration" => within(value, 0.0..=1.0).map(|number| settings.exploration = Some(number)),
                "history" => count(value, u32::MAX).map(|number| settings.history = Some(number)),
                "max_skill_age" => count(value, u32::MAX).map(|number| settings.max_skill_age = Some(number)),
                _ => {
                    ignored.add(IgnoredReason::UnknownSetting, name.as_bytes());
                    continue;
                }
            };
            if given.is_none() {
                ignored.add(IgnoredReason::BadSetting, format!("{name}: {value}").as_bytes());
            }
        }
        settings
    }

    /// The settings in force in a pool. Those of its workers are not known to it.
    pub fn in_force(resume: &ResumeSettings) -> LiveSettings {
        LiveSettings {
            variance: Some(resume.variance),
            backlog_history: Some(resume.backlog_history),
            exploration: Some(resume.exploration),
            history: None,
            max_skill_age: None,
        }
    }

    /// The settings present, by name.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, f64)> + use<> {
        let all = [
            ("variance", self.variance),
            ("backlog_history", self.backlog_history.map(f64::from)),
            ("exploration", self.exploration),
            ("history", self.history.map(f64::from)),
            ("max_skill_age", self.max_skill_age.map(f64::from)),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }

    /// These settings, completed from `others`.
    pub fn or(self, others: LiveSettings) -> LiveSettings {
        LiveSettings {
            variance: self.variance.or(others.variance),
            backlog_history: self.backlog_history.or(others.backlog_history),
            exploration: self.exploration.or(others.exploration),
            history: self.history.or(others.history),
            max_skill_age: self.max_skill_age.or(others.max_skill_age),
        }
    }

    /// The settings `now` in force, with these applied, and as `configured` where these are absent.
    pub fn applied_to(&self, now: &Settings, configured: &Settings) -> Settings {
        let mut settings = now.clone();
        let (resume, usual) = (&mut settings.resume, &configured.resume);
        resume.variance = self.variance.unwrap_or(usual.variance);
        resume.backlog_history = self.backlog_history.unwrap_or(usual.backlog_history);
        resume.exploration = self.exploration.unwrap_or(usual.exploration);
        settings
    }
}

impl fmt::Display for LiveSettings {
    /// As in `variance 3, history 9999`; empty if there are none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.given().enumerate() {
            write!(f, "{}{name} {value}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// A number within the bounds of the configuration.
fn within(value: &Value, bounds: RangeInclusive<f64>) -> Option<f64> {
    value.as_f64().filter(|number| bounds.contains(number))
}

/// A whole number from 1 to `most`.
fn count(value: &Value, most: u32) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok().filter(|number| (1..=most).contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_within_their_bounds() {
        let mut ignored = Ignored::default();
        let json = br#"{"variance": 3, "backlog_history": 9, "exploration": 0.1,
            "history": 999, "max_skill_age": 9990}"#;
        let settings = LiveSettings::read(json, &mut ignored);
        assert_eq!(
            settings,
            LiveSettings {
                variance: Some(3.0),
                backlog_history: Some(9),
                exploration: Some(0.1),
                history: Some(999),
                max_skill_age: Some(9990),
            }
        );
        assert_eq!(LiveSettings::read(b" \n", &mut ignored), LiveSettings::default());
        assert_eq!(ignored.total(), 0);
    }

    #[test]
    fn of_several_sources_the_first_that_gives_a_setting_counts() {
        let first = LiveSettings { variance: Some(3.0), ..LiveSettings::default() };
        let second = LiveSettings { variance: Some(5.0), history: Some(99), ..LiveSettings::default() };
        assert_eq!(first.or(second).to_string(), "variance 3, history 99");
        assert_eq!(LiveSettings::default().to_string(), "");
    }

    #[test]
    fn values_that_cannot_be_are_left_out_one_by_one() {
        for wrong in [
            r#"{"variance": 0}"#,
            r#"{"variance": -1}"#,
            r#"{"variance": 1e300}"#,
            r#"{"variance": 0.01}"#,
            r#"{"exploration": 1e300}"#,
            r#"{"backlog_history": 4294967295}"#,
            r#"{"variance": "4"}"#,
            r#"{"variance": null}"#,
            r#"{"backlog_history": 0}"#,
            r#"{"backlog_history": 1.5}"#,
            r#"{"history": 4294967296}"#,
            r#"{"exploration": 1.1}"#,
            "[]",
            "variance=4",
            "\u{ff}",
        ] {
            let mut ignored = Ignored::default();
            assert_eq!(
                LiveSettings::read(wrong.as_bytes(), &mut ignored),
                LiveSettings::default(),
                "{wrong}"
            );
            assert_eq!(ignored.count(IgnoredReason::BadSetting), 1, "{wrong}");
        }
        let mut ignored = Ignored::default();
        let settings = LiveSettings::read(br#"{"variance": 2, "history": 0, "colour": 1}"#, &mut ignored);
        assert_eq!(settings.variance, Some(2.0));
        assert_eq!(ignored.count(IgnoredReason::BadSetting), 1);
        assert_eq!(ignored.count(IgnoredReason::UnknownSetting), 1);
    }
}
