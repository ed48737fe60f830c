//! Compression, as a setting of a route.

use sandarac_coding::Level;
use sandarac_message::codings::Coding;
use sandarac_message::glob::Glob;
use sandarac_policy::{ByteSize, CacheRule, CompressRule};

use crate::definition::{Value, settings};
use crate::report::{At, Complaint, Node, Report};
use crate::setting::Kind;
use crate::value::{Text, choice};

settings! {
    /// Which bodies are sent in another coding, and how.
    pub(crate) struct CompressSettings {
        /// The codings that bodies are sent in: `"zstd"`, `"br"`, `"gzip"`. Of those that a client accepts with the
        /// same weight, the first is used.
        // zstd is as dense as gzip at a fraction of the cost, on both sides; brotli is denser, and slower to make.
        codings: Vec<Coding> = vec![Coding::Zstd, Coding::Brotli, Coding::Gzip];
        /// The media types whose bodies are compressed. A star matches any run of characters.
        types: Option<Vec<MediaType>> = None, unset "text, its relatives (JSON, XML, SVG, scripts), fonts and other formats without compression of their own" "[\"text/*\", \"application/json\"]";
        /// Shorter bodies are not compressed.
        // They fit in one packet as they are.
        min_size: ByteSize = ByteSize(1 << 10);
        /// How much time is spent for smaller bodies: `"fast"`, `"normal"` or `"best"`.
        level: Level = Level::Normal;
        /// What backends are asked for, for responses that may be stored: `"plain"` bodies, or `"gzip"`, which saves traffic
        /// between a backend and here. `Accept-Encoding` then selects no responses: one serves all clients. A body
        /// that comes in a coding is stored as it came, and inflated for clients that cannot take it. Under the
        /// profile rfc, and with `raw_accept_encoding`, backends get the client's own.
        backend: BackendCoding = BackendCoding::Plain;
        /// Whether responses that set cookies, or are `private`, are compressed too. An attacker who can put text
        /// into such a response and see its length can read secrets in it (BREACH).
        private: bool = false;
    }
}

choice!(Coding { "zstd" => Coding::Zstd, "br" => Coding::Brotli, "gzip" => Coding::Gzip });
choice!(Level { "fast" => Level::Fast, "normal" => Level::Normal, "best" => Level::Best });
choice!(BackendCoding { "plain" => BackendCoding::Plain, "gzip" => BackendCoding::Gzip });

/// The form of bodies that backends are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackendCoding {
    Plain,
    Gzip,
}

/// A media type, with stars.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MediaType(Glob);

impl Text for MediaType {
    fn form() -> Kind {
        Kind::Text {
            name: "media type",
            form: "a media type, in which a star matches any run of characters",
            examples: &["text/*"],
        }
    }

    fn from_text(text: &str) -> Result<MediaType, Complaint> {
        let is_type = |c: char| c.is_ascii_alphanumeric() || "!#$&-^_.+*/".contains(c);
        if text.is_empty() || !text.chars().all(is_type) || text.matches('/').count() > 1 {
            return Err(Complaint::new(format!("{text:?} is not {}", MediaType::form().words())));
        }
        Ok(MediaType(Glob::new(text.to_ascii_lowercase())))
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(self.0.text()).into_owned()
    }
}

/// `true`, `false`, or a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CompressChoice {
    Off,
    On(CompressSettings),
}

impl Value for CompressChoice {
    fn kind() -> Kind {
        Kind::Either(vec![Kind::Bool, CompressSettings::kind()])
    }

    fn read(node: &Node<'_>, report: &mut Report) -> Option<CompressChoice> {
        match (node.get_ref().as_bool(), node.get_ref().is_table()) {
            (Some(true), _) => Some(CompressChoice::On(CompressSettings::default())),
            (Some(false), _) => Some(CompressChoice::Off),
            (None, true) => CompressSettings::read(node, report).map(CompressChoice::On),
            (None, false) => {
                report.unexpected(node, &CompressChoice::kind());
                None
            }
        }
    }

    fn show(&self) -> Option<String> {
        match self {
            CompressChoice::Off => Some("false".to_owned()),
            CompressChoice::On(_) => None,
        }
    }
}

/// The rule that a choice describes; `None` if bodies are sent as they came. Reports a rule without codings.
pub(crate) fn compress_rule(choice: &At<CompressChoice>, report: &mut Report) -> Option<CompressRule> {
    let CompressChoice::On(settings) = &choice.value else { return None };
    let CompressSettings { codings, types, min_size, level, backend: _, private } = settings;
    if codings.is_empty() {
        report.error(choice.place.clone(), "`codings` is empty").help = Some("compress = false".to_owned());
    }
    Some(CompressRule {
        codings: codings.clone(),
        types: types.as_ref().map(|types| types.iter().map(|pattern| pattern.0.clone()).collect()),
        min_size: min_size.0,
        level: *level,
        private: *private,
    })
}

/// Makes responses serve clients of every coding: backends are asked for one form, and `Accept-Encoding` selects nothing.
pub(crate) fn ask_for_one_form(choice: &CompressChoice, rule: &mut CacheRule) {
    let CompressChoice::On(settings) = choice else { return };
    let is_keyed = rule.key.fields.iter().any(|name| name.eq_ignore_ascii_case(ACCEPT_ENCODING));
    let vary = &mut rule.policy.vary;
    if rule.policy.profile == sandarac_message::caching::Profile::Rfc || vary.raw_codings || is_keyed {
        return;
    }
    rule.accept_encoding = Some(match settings.backend {
        BackendCoding::Plain => "identity",
        BackendCoding::Gzip => "gzip",
    });
    vary.ignored.push(ACCEPT_ENCODING.into());
}

/// Whether backends are asked for bodies in a coding.
pub(crate) fn asks_for_a_coding(choice: &CompressChoice) -> bool {
    matches!(choice, CompressChoice::On(CompressSettings { backend: BackendCoding::Gzip, .. }))
}

pub(crate) const ACCEPT_ENCODING: &[u8] = b"accept-encoding";
