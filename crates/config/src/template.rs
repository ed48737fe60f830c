//! Where a redirect leads, with parts of the request put in.

use std::fmt;

use crate::report::Complaint;
use crate::setting::Kind;
use crate::suggest::closest;
use crate::value::Text;

/// A URL with places for parts of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(Box<str>),
    Host,
    Target,
    Path,
    Query,
}

const PARTS: [(&str, Part); 4] =
    [("host", Part::Host), ("target", Part::Target), ("path", Part::Path), ("query", Part::Query)];

impl Template {
    /// The URL for a request: `host` as its authority says, port included; `target` its path and query, as received.
    /// `{query}` includes its question mark.
    pub fn fill(&self, host: &[u8], target: &[u8]) -> Vec<u8> {
        let (path, query) =
            target.split_at(target.iter().position(|&byte| byte == b'?').unwrap_or(target.len()));
        let mut out = Vec::with_capacity(64 + target.len());
        for part in &self.0 {
            out.extend_from_slice(match part {
                Part::Literal(text) => text.as_bytes(),
                Part::Host => host,
                Part::Target => target,
                Part::Path => path,
                Part::Query => query,
            });
        }
        out
    }
}

impl Template {
    /// Whether it takes the host of the request.
    pub fn needs_host(&self) -> bool {
        self.0.contains(&Part::Host)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Literal(text) => f.write_str(text),
            part => PARTS
                .iter()
                .find(|(_, known)| known == part)
                .map_or(Ok(()), |(name, _)| write!(f, "{{{name}}}")),
        })
    }
}

impl Text for Template {
    fn form() -> Kind {
        Kind::Text {
            name: "URL",
            form: "a URL, in which {host}, {target}, {path} and {query} stand for those of the request",
            examples: &["https://{host}{target}", "/new/"],
        }
    }

    fn from_text(text: &str) -> Result<Template, Complaint> {
        if let Some(bad) = text.chars().find(|c| !c.is_ascii_graphic()) {
            let complaint = Complaint::new(format!("a URL does not hold {bad:?}"));
            return Err(complaint.help("write it percent-encoded, as browsers send it"));
        }
        let absolute = text.starts_with('/') || text.starts_with("http://") || text.starts_with("https://");
        if !absolute || text.len() > 4096 {
            return Err(Complaint::new(format!("{text:?} is not a URL to redirect to"))
                .help("it begins with https://, http:// or a slash"));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or_else(|| Complaint::new("`{` without `}`"))?;
            let (_, part) = PARTS.iter().find(|(known, _)| *known == name).ok_or_else(|| {
                let complaint = Complaint::new(format!("{{{name}}} stands for nothing"));
                match closest(name, &PARTS.map(|(name, _)| name)) {
                    Some(meant) => complaint.help(format!("did you mean {{{meant}}}?")),
                    None => complaint.help("known: {host}, {target}, {path}, {query}"),
                }
            })?;
            if !before.is_empty() {
                parts.push(Part::Literal(before.into()));
            }
            parts.push(part.clone());
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.into()));
        }
        Ok(Template(parts))
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_from_the_request() {
        let filled = |template: &str| {
            let template = Template::from_text(template).unwrap();
            String::from_utf8(template.fill(b"a.example:8080", b"/x%20y?b=c?d")).unwrap()
        };
        assert_eq!(filled("https://{host}{target}"), "https://a.example:8080/x%20y?b=c?d");
        assert_eq!(filled("/new{path}/{query}"), "/new/x%20y/?b=c?d");
        assert_eq!(filled("http://b/"), "http://b/");
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for text in [
            "",
            "example.com",
            "//{",
            "https://{hots}/",
            "https://{host",
            "/a b",
            "/é",
            "/a\r\nX: y",
            "javascript:x",
        ] {
            assert!(Template::from_text(text).is_err(), "{text:?}");
        }
        assert_eq!(Template::from_text("/{hots}").unwrap_err().help.unwrap(), "did you mean {host}?");
    }
}
