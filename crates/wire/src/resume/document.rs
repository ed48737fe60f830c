//! The complete résumé of a worker: a JSON document at a well-known path.

use super::{MAX_CLASSES, Malformed, Skills, text};
use serde::Deserializer as _;
use serde::de::{Error, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The path of a worker's résumé, followed by `?by=<fingerprint>`.
pub const WELL_KNOWN: &str = "/.well-known/worker-resume";

/// The most bytes of a résumé: [`MAX_CLASSES`] of [`super::MAX_CLASS`] bytes in base64 fit.
pub const MAX_DOCUMENT: usize = 40 << 20;

/// The target of a request for the résumé under the classifier with this fingerprint.
pub fn target(by: u64) -> String {
    format!("{WELL_KNOWN}?by={by:016x}")
}

/// A worker's résumé under one classifier.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The identifier of this start of the worker: 1 to 32 letters, digits, `-` and `_`.
    pub instance: String,
    /// The revision of the résumé: 1 or more.
    pub revision: u64,
    /// The fingerprint of the classifier.
    pub by: u64,
    /// The version of the software that the worker runs.
    pub version: Option<String>,
    /// The requests in progress, from all balancers.
    pub in_flight: u64,
    /// The number of requests that its measurements cover.
    pub history: u64,
    /// The scores, none of them 0.
    pub skills: Skills,
}

impl Document {
    /// Reads a document, strictly (RFC 8259). The last of repeated members counts.
    ///
    /// # Errors
    /// If anything is wrong: [`Malformed::Syntax`] takes precedence over all but [`Malformed::TooLarge`].
    pub fn parse(body: &[u8]) -> Result<Document, Malformed> {
        text::bounded(body, MAX_DOCUMENT)?;
        let body = std::str::from_utf8(body).map_err(|_| Malformed::Syntax)?;
        let members = Members::of(body).map_err(|_| Malformed::Syntax)?;
        let instance = members.id.and_then(string).filter(|text| text::is_instance(text.as_bytes()));
        let by = members.by.and_then(string).and_then(|text| text::fingerprint(&text));
        let version = match members.version {
            None => None,
            Some(version) => {
                let version = string(version).filter(|text| text::is_version(text.as_bytes()));
                Some(version.ok_or(Malformed::Version)?)
            }
        };
        Ok(Document {
            instance: instance.ok_or(Malformed::Id)?,
            revision: members.rev.and_then(|raw| integer(raw, 1)).ok_or(Malformed::Rev)?,
            by: by.ok_or(Malformed::By)?,
            version,
            in_flight: members.inflight.and_then(|raw| integer(raw, 0)).ok_or(Malformed::InFlight)?,
            history: members.history.and_then(|raw| integer(raw, 1)).ok_or(Malformed::History)?,
            skills: skills(members.skills.ok_or(Malformed::Skills)?)?,
        })
    }

    /// Appends the document in its canonical form; nothing on an error.
    ///
    /// # Errors
    /// If a reader would refuse the document.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        if !text::is_instance(self.instance.as_bytes()) {
            return Err(Malformed::Id);
        }
        text::within(self.revision, 1).ok_or(Malformed::Rev)?;
        text::within(self.in_flight, 0).ok_or(Malformed::InFlight)?;
        text::within(self.history, 1).ok_or(Malformed::History)?;
        if self.version.as_ref().is_some_and(|version| !text::is_version(version.as_bytes())) {
            return Err(Malformed::Version);
        }
        if self.skills.iter().any(|(_, score)| score == 0.0) {
            return Err(Malformed::Score);
        }
        out.extend_from_slice(b"{\"id\":");
        text::put_string(out, self.instance.as_bytes());
        out.extend_from_slice(b",\"rev\":");
        text::put_integer(out, self.revision);
        out.extend_from_slice(b",\"by\":\"");
        text::put_fingerprint(out, self.by);
        out.push(b'"');
        if let Some(version) = &self.version {
            out.extend_from_slice(b",\"version\":");
            text::put_string(out, version.as_bytes());
        }
        out.extend_from_slice(b",\"inflight\":");
        text::put_integer(out, self.in_flight);
        out.extend_from_slice(b",\"history\":");
        text::put_integer(out, self.history);
        out.extend_from_slice(b",\"skills\":{");
        for (at, (class, score)) in self.skills.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            text::put_class_key(out, class);
            out.push(b':');
            text::put_score(out, score);
        }
        out.extend_from_slice(b"}}");
        Ok(())
    }
}

/// The known members as raw text. That the whole document is JSON is checked before any member is examined.
#[derive(Default)]
struct Members<'a> {
    id: Option<&'a RawValue>,
    rev: Option<&'a RawValue>,
    by: Option<&'a RawValue>,
    version: Option<&'a RawValue>,
    inflight: Option<&'a RawValue>,
    history: Option<&'a RawValue>,
    skills: Option<&'a RawValue>,
}

impl<'a> Members<'a> {
    fn of(body: &'a str) -> serde_json::Result<Members<'a>> {
        let mut reader = serde_json::Deserializer::from_str(body);
        let members = reader.deserialize_map(Members::default())?;
        reader.end()?;
        Ok(members)
    }
}

impl<'de> Visitor<'de> for Members<'de> {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Members<'de>, A::Error> {
        while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
            let member = match key.as_str() {
                "id" => &mut self.id,
                "rev" => &mut self.rev,
                "by" => &mut self.by,
                "version" => &mut self.version,
                "inflight" => &mut self.inflight,
                "history" => &mut self.history,
                "skills" => &mut self.skills,
                _ => continue,
            };
            *member = Some(value);
        }
        Ok(self)
    }
}

fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

fn integer(raw: &RawValue, least: u64) -> Option<u64> {
    serde_json::from_str(raw.get()).ok().and_then(|value| text::within(value, least))
}

fn skills(raw: &RawValue) -> Result<Skills, Malformed> {
    if !raw.get().starts_with('{') {
        return Err(Malformed::Skills);
    }
    let (mut skills, mut why) = (Skills::new(), None);
    let reading = Reading { skills: &mut skills, why: &mut why };
    match serde_json::Deserializer::from_str(raw.get()).deserialize_map(reading) {
        Ok(()) => Ok(skills),
        // The text is JSON, so an unrecorded error is an escape in a class that stands for no character.
        Err(_) => Err(why.unwrap_or(Malformed::Class)),
    }
}

/// Reads skills. Stops at the first malformed one and records the reason.
struct Reading<'r> {
    skills: &'r mut Skills,
    why: &'r mut Option<Malformed>,
}

impl Reading<'_> {
    fn add(&mut self, class: &[u8], raw: &RawValue) -> Result<(), Malformed> {
        let score: f64 = serde_json::from_str(raw.get()).map_err(|_| Malformed::Score)?;
        // A dropped class has no place in a document.
        if score == 0.0 {
            return Err(Malformed::Score);
        }
        self.skills.push(class, score)
    }
}

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object of at most {MAX_CLASSES} classes")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut class = Vec::new();
        while let Some(read) = map.next_key_seed(Class(&mut class))? {
            let value = map.next_value::<&RawValue>()?;
            if let Err(why) = read.and_then(|()| self.add(&class, value)) {
                *self.why = Some(why);
                return Err(A::Error::custom(why));
            }
        }
        Ok(())
    }
}

/// Reads a member name into a buffer that is reused for the next.
struct Class<'b>(&'b mut Vec<u8>);

impl<'de> serde::de::DeserializeSeed<'de> for Class<'_> {
    type Value = Result<(), Malformed>;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Class<'_> {
    type Value = Result<(), Malformed>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a class")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(text::class_of_key(key, self.0))
    }
}
