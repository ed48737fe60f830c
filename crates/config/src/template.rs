//! Text with places for parts of a request: the target of a redirect, and the values that edits write into fields.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use crate::report::Complaint;
use crate::setting::Kind;
use crate::suggest::closest;
use crate::value::Text;

/// Text with places for parts of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(Box<str>),
    Part(Part),
}

/// What of a request can stand in a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Client,
    Host,
    Id,
    Path,
    Query,
    Scheme,
    Target,
}

/// What the places of a template are filled with.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestParts<'a> {
    /// The address of the client, if it has one.
    pub client: Option<IpAddr>,
    /// What tells the request from all others.
    pub id: &'a str,
    /// `http` or `https`.
    pub scheme: &'a str,
    /// The host, with the port if one was named.
    pub host: &'a [u8],
    /// Path and query.
    pub target: &'a [u8],
}

/// Where a template stands, which says what can be put into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// `redirect.to`.
    Redirect,
    /// The value of a field of a request.
    Request,
    /// The value of a field of a response, which may be stored and go to other clients.
    Response,
}

impl Part {
    const ALL: [Part; 7] =
        [Part::Client, Part::Host, Part::Id, Part::Path, Part::Query, Part::Scheme, Part::Target];

    const fn name(self) -> &'static str {
        match self {
            Part::Client => "client",
            Part::Host => "host",
            Part::Id => "id",
            Part::Path => "path",
            Part::Query => "query",
            Part::Scheme => "scheme",
            Part::Target => "target",
        }
    }

    /// Why it cannot stand there, if it cannot.
    fn refusal(self, used: Use) -> Option<&'static str> {
        match (self, used) {
            (Part::Client | Part::Id | Part::Scheme, Use::Response) => {
                Some("a stored response goes to many clients, whose requests differ in it")
            }
            (Part::Client | Part::Id, Use::Redirect) => Some("a redirect may be stored by other caches"),
            _ => None,
        }
    }
}

impl Use {
    /// What can stand there, for people.
    fn known(self) -> String {
        let known = Part::ALL.into_iter().filter(|part| part.refusal(self).is_none());
        known.map(|part| format!("{{{}}}", part.name())).collect::<Vec<_>>().join(", ")
    }
}

impl Template {
    /// Reads text in which `{name}` is a place for a part and `{{` is a brace. In the value of a field, a brace that does not
    /// begin a word in braces is one too, as JSON has them.
    pub(crate) fn read(text: &str, used: Use) -> Result<Template, Complaint> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            literal.push_str(before);
            let name = after.split_once('}').filter(|(name, _)| used == Use::Redirect || is_word(name));
            rest = match name {
                _ if after.starts_with('{') => {
                    literal.push('{');
                    &after[1..]
                }
                None if used == Use::Redirect => return Err(Complaint::new("`{` without `}`")),
                None => {
                    literal.push('{');
                    after
                }
                Some((name, after)) => {
                    let part = part(name, used)?;
                    if !literal.is_empty() {
                        pieces.push(Piece::Literal(std::mem::take(&mut literal).into()));
                    }
                    pieces.push(Piece::Part(part));
                    after
                }
            };
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal.into()));
        }
        Ok(Template(pieces))
    }

    /// The text for a request. `{query}` includes its question mark; what a request does not have is left out.
    pub fn fill(&self, request: &RequestParts<'_>) -> Cow<'_, [u8]> {
        if let [Piece::Literal(text)] = &self.0[..] {
            return Cow::Borrowed(text.as_bytes());
        }
        let target = request.target;
        let (path, query) =
            target.split_at(target.iter().position(|&byte| byte == b'?').unwrap_or(target.len()));
        let mut out = Vec::with_capacity(64 + target.len());
        for piece in &self.0 {
            let part = match piece {
                Piece::Literal(text) => text.as_bytes(),
                Piece::Part(Part::Host) => request.host,
                Piece::Part(Part::Id) => request.id.as_bytes(),
                Piece::Part(Part::Path) => path,
                Piece::Part(Part::Query) => query,
                Piece::Part(Part::Scheme) => request.scheme.as_bytes(),
                Piece::Part(Part::Target) => target,
                Piece::Part(Part::Client) => {
                    let client = request.client.map(|client| client.to_string()).unwrap_or_default();
                    out.extend_from_slice(client.as_bytes());
                    continue;
                }
            };
            out.extend_from_slice(part);
        }
        Cow::Owned(out)
    }

    /// The first place for a part in text that is not filled in.
    pub(crate) fn place_in(text: &str) -> Option<&str> {
        let mut words =
            text.match_indices('{').filter_map(|(at, _)| Some(&text[at..=at + text[at..].find('}')?]));
        words.find(|word| Part::ALL.iter().any(|part| word[1..word.len() - 1] == *part.name()))
    }

    /// Whether it takes the host of the request.
    pub fn needs_host(&self) -> bool {
        self.has(Part::Host)
    }

    /// Whether it takes what differs from one client, or one request, to the next.
    pub(crate) fn is_of_one_request(&self) -> bool {
        self.needs_client() || self.needs_id()
    }

    /// Whether it takes the address of the client.
    pub(crate) fn needs_client(&self) -> bool {
        self.has(Part::Client)
    }

    /// Whether it takes the id of the request.
    pub(crate) fn needs_id(&self) -> bool {
        self.has(Part::Id)
    }

    fn has(&self, part: Part) -> bool {
        self.0.contains(&Piece::Part(part))
    }
}

/// Whether this is meant to be the name of a part, right or wrong: a word, or a known name in other letter case or with blanks
/// around it.
fn is_word(name: &str) -> bool {
    let is_word = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_word || Part::ALL.iter().any(|part| name.trim().eq_ignore_ascii_case(part.name()))
}

fn part(name: &str, used: Use) -> Result<Part, Complaint> {
    let known = Part::ALL.into_iter().find(|part| part.name() == name);
    let brace = if used == Use::Redirect { "" } else { "; `{{` is a brace" };
    let Some(part) = known else {
        let complaint = Complaint::new(format!("{{{name}}} stands for nothing"));
        return Err(match closest(name.trim(), &Part::ALL.map(Part::name)) {
            Some(meant) => complaint.help(format!("did you mean {{{meant}}}?")),
            None => complaint.help(format!("known: {}{brace}", used.known())),
        });
    };
    match part.refusal(used) {
        None => Ok(part),
        Some(why) => Err(Complaint::new(format!("{{{name}}} cannot stand here: {why}"))
            .help(format!("known here: {}{brace}", used.known()))),
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Literal(text) => f.write_str(&text.replace('{', "{{")),
            Piece::Part(part) => write!(f, "{{{}}}", part.name()),
        })
    }
}

impl Text for Template {
    fn form() -> Kind {
        Kind::Text {
            name: "URL",
            form: "a URL, in which {host}, {target}, {path}, {query} and {scheme} stand for those of the request",
            examples: &["https://{host}{target}", "/new/"],
        }
    }

    fn from_text(text: &str) -> Result<Template, Complaint> {
        // What stands in braces with a blank is told with its name, and not as a blank.
        let template = Template::read(text, Use::Redirect);
        if let Some(bad) = text.chars().find(|c| !c.is_ascii_graphic())
            && template.is_ok()
        {
            let complaint = Complaint::new(format!("a URL does not hold {bad:?}"));
            return Err(complaint.help("write it percent-encoded, as browsers send it"));
        }
        let absolute =
            ["/", "http://", "https://", "{scheme}://"].iter().any(|start| text.starts_with(start));
        if !absolute || text.len() > 4096 {
            return Err(Complaint::new(format!("{text:?} is not a URL to redirect to"))
                .help("it begins with https://, http:// or a slash"));
        }
        template
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &Template) -> String {
        let parts = RequestParts {
            client: Some("192.0.2.7".parse().unwrap()),
            id: "9f-4",
            scheme: "https",
            host: b"a.example:8080",
            target: b"/x%20y?b=c?d",
        };
        String::from_utf8(template.fill(&parts).into_owned()).unwrap()
    }

    #[test]
    fn a_template_is_filled_from_the_request() {
        let filled = |template: &str| filled(&Template::from_text(template).unwrap());
        assert_eq!(filled("https://{host}{target}"), "https://a.example:8080/x%20y?b=c?d");
        assert_eq!(filled("/new{path}/{query}"), "/new/x%20y/?b=c?d");
        assert_eq!(filled("{scheme}://b/"), "https://b/");
    }

    #[test]
    fn values_of_fields_have_places_and_braces() {
        let filled = |value: &str| filled(&Template::read(value, Use::Request).unwrap());
        assert_eq!(filled("{client} {id}"), "192.0.2.7 9f-4");
        assert_eq!(filled(r#"{"group": {"ttl": 1}}"#), r#"{"group": {"ttl": 1}}"#);
        assert_eq!(filled("{{client} {} { x}"), "{client} {} { x}");
        let written = Template::read("{{client} {host}", Use::Request).unwrap().to_string();
        assert_eq!(written, "{{client} {host}");
    }

    #[test]
    fn what_only_one_client_is_to_see_does_not_stand_in_responses() {
        for part in ["{client}", "{id}", "{scheme}"] {
            let refused = Template::read(part, Use::Response).unwrap_err();
            assert_eq!(
                refused.help.unwrap(),
                "known here: {host}, {path}, {query}, {target}; `{{` is a brace"
            );
        }
        assert!(Template::read("<https://{host}{path}>", Use::Response).is_ok());
        assert_eq!(
            Template::read("{clinet}", Use::Request).unwrap_err().help.unwrap(),
            "did you mean {client}?"
        );
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
            "/{client}",
        ] {
            assert!(Template::from_text(text).is_err(), "{text:?}");
        }
        assert_eq!(Template::from_text("/{hots}").unwrap_err().help.unwrap(), "did you mean {host}?");
    }
}
