//! Templates, as settings: the target of a redirect, and the values that edits write into fields.

use sandarac_policy::{Template, TemplatePart, TemplatePiece};

use crate::report::Complaint;
use crate::setting::Kind;
use crate::suggest::closest;
use crate::value::Text;

/// The place of a template, which determines the parts it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// `redirect.to`.
    Redirect,
    /// The value of a field of a request.
    Request,
    /// The value of a field of a response, which may be stored and go to other clients.
    Response,
}

impl Use {
    /// The allowed parts, for messages.
    fn known(self) -> String {
        let known = TemplatePart::ALL.into_iter().filter(|&part| refusal(part, self).is_none());
        known.map(|part| format!("{{{}}}", part.name())).collect::<Vec<_>>().join(", ")
    }
}

/// Reads text in which `{name}` is a placeholder for a part and `{{` is a literal brace. In the value of a field, a
/// brace that does not begin a word in braces is also literal, as in JSON. A placeholder of a class is refused,
/// because it would be sent as written.
pub(crate) fn read_template(text: &str, used: Use) -> Result<Template, Complaint> {
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
                if used == Use::Redirect && literal.ends_with('/') && begins_with_slash(part) {
                    return Err(second_slash(name));
                }
                if !literal.is_empty() {
                    pieces.push(TemplatePiece::Literal(std::mem::take(&mut literal).into()));
                }
                pieces.push(TemplatePiece::Part(part));
                after
            }
        };
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(TemplatePiece::Literal(literal.into()));
    }
    Ok(Template::new(pieces))
}

/// Whether a path begins the part.
fn begins_with_slash(part: TemplatePart) -> bool {
    matches!(part, TemplatePart::Path | TemplatePart::Target)
}

fn second_slash(name: &str) -> Complaint {
    Complaint::new(format!("{{{name}}} begins with a slash, and stands behind one"))
        .help(format!("write /new{{{name}}} or https://{{host}}{{{name}}}; what begins with two slashes leads to another host"))
}

/// The first placeholder in text without templates.
pub(crate) fn place_in(text: &str) -> Option<&str> {
    let mut words =
        text.match_indices('{').filter_map(|(at, _)| Some(&text[at..=at + text[at..].find('}')?]));
    words.find(|word| TemplatePart::ALL.iter().any(|part| word[1..word.len() - 1] == *part.name()))
}

/// The reason why a part is not allowed there, if any.
fn refusal(part: TemplatePart, used: Use) -> Option<&'static str> {
    match (part, used) {
        (part, Use::Response | Use::Redirect) if part.is_of_tls() => {
            Some("what is stored goes to clients with other connections")
        }
        (TemplatePart::Client | TemplatePart::Id | TemplatePart::Scheme, Use::Response) => {
            Some("a stored response goes to many clients, whose requests differ in it")
        }
        (TemplatePart::Client | TemplatePart::Id, Use::Redirect) => {
            Some("a redirect may be stored by other caches")
        }
        _ => None,
    }
}

/// Placeholders with an argument, which only the name of a class may have.
const OF_CLASSES: [&str; 4] = ["cookie", "header", "query", "segment"];

/// Whether this is meant to be the name of a part, right or wrong: a word, one with an argument as in
/// `{cookie:lang}`, or a known name in another letter case or surrounded by blanks.
fn is_word(name: &str) -> bool {
    let is_word = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let is_of_class = name.split_once(':').is_some_and(|(word, _)| OF_CLASSES.contains(&word));
    is_word
        || is_of_class
        || TemplatePart::ALL.iter().any(|part| name.trim().eq_ignore_ascii_case(part.name()))
}

fn part(name: &str, used: Use) -> Result<TemplatePart, Complaint> {
    let known = TemplatePart::ALL.into_iter().find(|part| part.name() == name);
    let brace = if used == Use::Redirect { "" } else { "; `{{` is a brace" };
    let Some(part) = known else {
        let complaint = Complaint::new(format!("{{{name}}} is not a known part"));
        let meant = closest(name.trim(), &TemplatePart::ALL.map(TemplatePart::name));
        return Err(match meant.filter(|_| !name.contains(':')) {
            Some(meant) => complaint.help(format!("did you mean {{{meant}}}?")),
            None => complaint.help(format!("known: {}{brace}", used.known())),
        });
    };
    match refusal(part, used) {
        None => Ok(part),
        Some(why) => Err(Complaint::new(format!("{{{name}}} is not allowed here: {why}"))
            .help(format!("known here: {}{brace}", used.known()))),
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
        // A name in braces with a blank is reported by name, not as a blank.
        let template = read_template(text, Use::Redirect);
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
    use sandarac_policy::RequestParts;

    fn filled(template: &Template) -> String {
        let parts = RequestParts {
            client: Some("192.0.2.7".parse().unwrap()),
            id: "9f-4",
            scheme: "https",
            host: b"a.example:8080",
            target: b"/x%20y?b=c?d",
            tls: None,
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
        let filled = |value: &str| filled(&read_template(value, Use::Request).unwrap());
        assert_eq!(filled("{client} {id}"), "192.0.2.7 9f-4");
        assert_eq!(filled(r#"{"group": {"ttl": 1}}"#), r#"{"group": {"ttl": 1}}"#);
        assert_eq!(filled("{{client} {} { x}"), "{client} {} { x}");
        assert_eq!(filled(r#"{a: 1} {a:"b"} 100%[ $5 $Version"#), r#"{a: 1} {a:"b"} 100%[ $5 $Version"#);
        let written = read_template("{{client} {host}", Use::Request).unwrap().to_string();
        assert_eq!(written, "{{client} {host}");
    }

    /// Regression: these were sent as they are written, without a word.
    #[test]
    fn places_that_there_are_not_are_refused() {
        for text in ["{cookie:lang}", "a{header:Origin}", "{segment:1}", "{query:q}"] {
            for used in [Use::Request, Use::Response] {
                let refused = read_template(text, used).unwrap_err();
                assert!(refused.help.is_some_and(|help| help.contains("{host}")), "{text}");
            }
        }
        assert!(read_template("{{cookie:lang}", Use::Request).is_ok());
    }

    #[test]
    fn what_only_one_client_is_to_see_does_not_stand_in_responses() {
        for part in ["{client}", "{id}", "{scheme}", "{tls_version}"] {
            let refused = read_template(part, Use::Response).unwrap_err();
            assert_eq!(
                refused.help.unwrap(),
                "known here: {host}, {path}, {query}, {target}; `{{` is a brace"
            );
        }
        assert!(read_template("<https://{host}{path}>", Use::Response).is_ok());
        assert_eq!(
            read_template("{clinet}", Use::Request).unwrap_err().help.unwrap(),
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
            "/{path}",
            "/{target}",
            "https://a.example/{path}",
        ] {
            assert!(Template::from_text(text).is_err(), "{text:?}");
        }
        assert_eq!(Template::from_text("/{hots}").unwrap_err().help.unwrap(), "did you mean {host}?");
        assert_eq!(
            Template::from_text("/{path}").unwrap_err().help.unwrap(),
            "write /new{path} or https://{host}{path}; what begins with two slashes leads to another host"
        );
    }
}
