//! Filters for watchers of the log.

use sandarac_message::glob::Glob;
use sandarac_proxy::{Outcome, Record};

/// Conditions on a record. Conditions of one name are alternatives; those of different names must all match. An empty
/// filter matches every record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    hosts: Vec<Glob>,
    paths: Vec<Glob>,
    backends: Vec<Glob>,
    statuses: Vec<Status>,
    outcomes: Vec<Outcome>,
}

/// A status, or a class of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Is(u16),
    Class(u16),
}

impl Filter {
    /// The names of conditions, as [`Filter::add`] takes them.
    pub const NAMES: [&str; 5] = ["host", "path", "status", "backend", "outcome"];

    /// The most conditions of a filter, and the most bytes of one: every exchange is compared with them.
    const MOST: usize = 16;
    const LONGEST: usize = 256;

    /// Adds a condition; an error suggests what to write instead.
    pub fn add(&mut self, name: &str, value: &str) -> Result<(), String> {
        if value.len() > Filter::LONGEST {
            return Err(format!("a condition has at most {} bytes", Filter::LONGEST));
        }
        let globs = [&self.hosts, &self.paths, &self.backends].map(Vec::len).iter().sum::<usize>();
        if globs + self.statuses.len() + self.outcomes.len() >= Filter::MOST {
            return Err(format!("there are more than {} conditions", Filter::MOST));
        }
        match name {
            "host" => self.hosts.push(Glob::new(value.to_ascii_lowercase())),
            "path" => self.paths.push(Glob::new(value)),
            "backend" => self.backends.push(Glob::new(value)),
            "status" => {
                let status = Status::read(value);
                self.statuses.push(status.ok_or_else(|| {
                    format!("{value:?} is not a status, such as 404, nor a class of them, such as 5xx")
                })?);
            }
            "outcome" => {
                let outcome = Outcome::ALL.into_iter().find(|outcome| outcome.text() == value);
                self.outcomes.push(outcome.ok_or_else(|| {
                    let known = Outcome::ALL.map(Outcome::text).join(", ");
                    format!("{value:?} is not an outcome; known: {known}")
                })?);
            }
            other => return Err(format!("there is no condition called {other:?}")),
        }
        Ok(())
    }

    /// Whether a record matches the conditions. A host is compared in lower case, with its port and without; a path
    /// without the query, unless the pattern has one.
    pub fn takes(&self, record: &Record<'_>) -> bool {
        let host = || {
            let host = record.host.to_ascii_lowercase();
            let name = without_port(&host);
            self.hosts.iter().any(|glob| glob.matches(&host) || glob.matches(name))
        };
        let path = || {
            let end = record.target.iter().position(|&byte| byte == b'?').unwrap_or(record.target.len());
            let fits = |glob: &Glob| {
                let has_query = glob.text().contains(&b'?');
                glob.matches(if has_query { record.target } else { &record.target[..end] })
            };
            self.paths.iter().any(fits)
        };
        let backend = || {
            let backend = record.backend.unwrap_or_default().as_bytes();
            self.backends.iter().any(|glob| glob.matches(backend))
        };
        let status = || self.statuses.iter().any(|status| status.has(record.status));
        (self.statuses.is_empty() || status())
            && (self.outcomes.is_empty() || self.outcomes.contains(&record.outcome))
            && (self.hosts.is_empty() || host())
            && (self.paths.is_empty() || path())
            && (self.backends.is_empty() || backend())
    }
}

/// A host without its port. The port of an IPv6 address follows brackets.
fn without_port(host: &[u8]) -> &[u8] {
    match host.iter().rposition(|&byte| byte == b':') {
        Some(colon) if host[colon + 1..].iter().all(u8::is_ascii_digit) => &host[..colon],
        _ => host,
    }
}

impl Status {
    fn read(text: &str) -> Option<Status> {
        if let Some(class) = text.strip_suffix("xx") {
            let class = class.parse().ok().filter(|class| (1..=5).contains(class))?;
            return Some(Status::Class(class));
        }
        let status = text.parse().ok().filter(|status| (100..=599).contains(status))?;
        Some(Status::Is(status))
    }

    fn has(self, status: u16) -> bool {
        match self {
            Status::Is(expected) => status == expected,
            Status::Class(class) => status / 100 == class,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    fn takes(conditions: &[(&str, &str)]) -> bool {
        let mut filter = Filter::default();
        for (name, value) in conditions {
            filter.add(name, value).unwrap();
        }
        let record = Record {
            host: b"Shop.Example:8080",
            target: b"/api/items?page=2",
            status: 503,
            outcome: Outcome::Stale,
            backend: Some("http://10.0.0.7:8000"),
            ..example()
        };
        filter.takes(&record)
    }

    #[test]
    fn a_record_meets_conditions_of_every_name_and_one_of_several_of_a_name() {
        for (conditions, expected) in [
            (&[][..], true),
            (&[("host", "shop.example")], true),
            (&[("host", "SHOP.example:8080")], true),
            (&[("host", "*.example")], true),
            (&[("host", "example")], false),
            (&[("path", "/api/*")], true),
            (&[("path", "/api/items")], true),
            (&[("path", "/api")], false),
            (&[("path", "/api/items?page=*")], true),
            (&[("path", "/api/items?page=3")], false),
            (&[("status", "503")], true),
            (&[("status", "5xx")], true),
            (&[("status", "404")], false),
            (&[("status", "404"), ("status", "5xx")], true),
            (&[("outcome", "stale")], true),
            (&[("outcome", "hit")], false),
            (&[("backend", "http://10.0.0.7:*")], true),
            (&[("backend", "")], false),
            (&[("status", "5xx"), ("outcome", "hit")], false),
        ] {
            assert_eq!(takes(conditions), expected, "{conditions:?}");
        }
    }

    #[test]
    fn what_is_no_condition_is_refused_with_what_to_write() {
        fn add(name: &str, value: &str) -> String {
            Filter::default().add(name, value).unwrap_err()
        }
        assert_eq!(
            add("status", "6xx"),
            "\"6xx\" is not a status, such as 404, nor a class of them, such as 5xx"
        );
        assert!(add("status", "-1").contains("404"));
        assert!(add("status", "600").contains("404"));
        assert_eq!(add("path", &"x".repeat(257)), "a condition has at most 256 bytes");
        let mut many = Filter::default();
        (0..16).for_each(|_| many.add("path", "/*").unwrap());
        assert_eq!(many.add("host", "*").unwrap_err(), "there are more than 16 conditions");
        assert!(
            add("outcome", "hits")
                .ends_with("known: hit, stale, revalidated, miss, pass, pipe, file, synth, purge, error")
        );
        assert!(add("method", "GET").contains("\"method\""));
    }
}
