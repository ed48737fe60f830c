//! Edits of header fields, as settings.

use sandarac_message::Name;
use sandarac_policy::Edits;

use crate::definition::settings;
use crate::field::{FieldName, FieldValue};
use crate::report::{At, Place, Report};
use crate::template::{Use, read_template};
use crate::value::Map;

settings! {
    /// Edits of fields, in this order: remove, set, add.
    pub(crate) struct EditSettings {
        /// Fields to remove, with all their lines.
        remove: Vec<At<FieldName>> = Vec::new();
        /// Fields to set: one line replaces all lines of each, at the position of the first. In a value, `{host}`, `{path}`,
        /// `{query}` and `{target}` stand for those of the request. In `request`, `{client}` (its address), `{scheme}` and
        /// `{id}` are also available; `{id}` is the `X-Request-Id` of a trusted proxy, or a new one, and appears in the JSON
        /// log. `{tls_version}`, `{tls_cipher}`, `{tls_server_name}`, `{tls_resumed}` and `{tls_client_certificate}` (the
        /// SHA-256 digest of the client's, in hexadecimal) describe the connection; they are empty without TLS, and in requests
        /// whose response may be stored. Values are inserted as the client sent them: a target may contain `<`, `>`, `"`, `;`
        /// and `,`, and so is safe neither in `Link` nor in a cookie. `{{` is a literal brace, and so is a brace that does not
        /// begin a word in braces, as in JSON; an unknown word is an error, including `{Host}` and `{ host }`. Parts that a
        /// request lacks are left out. A response that varies on a field with `{client}` or `{id}` is not stored.
        set: Map<FieldName, FieldValue> = Map::default();
        /// Fields to add, after existing ones of the same name; several values make several lines. Values are written
        /// as for `set`.
        add: Map<FieldName, Vec<FieldValue>> = Map::default();
    }
}

/// The edits described by the settings, on a request or a response.
pub(crate) fn edits(settings: &EditSettings, request: bool, report: &mut Report) -> Edits {
    let mut check = |name: &At<FieldName>, set: bool| {
        let known = Name::of(name.value.as_str().as_bytes());
        if let Some(why) = refusal(known, request, set) {
            report.error(name.place.clone(), format!("`{}` cannot be edited: {why}", name.value.as_str()));
        }
    };
    let bytes = |text: &str| Box::from(text.as_bytes());
    settings.remove.iter().for_each(|name| check(name, false));
    settings.set.0.iter().for_each(|(name, _)| check(name, true));
    settings.add.0.iter().for_each(|(name, _)| check(name, false));
    let used = if request { Use::Request } else { Use::Response };
    let mut line = |name: &At<FieldName>, value: &FieldValue| {
        warn_of_variables(value.as_str(), &name.place, report);
        let template = read_template(value.as_str(), used);
        let template = template.map_err(|complaint| report.complain(name.place.clone(), complaint)).ok()?;
        Some((bytes(name.value.as_str()), template))
    };
    let set = settings.set.0.iter().filter_map(|(name, value)| line(name, value)).collect();
    let values = |(name, values): &'_ (At<FieldName>, Vec<FieldValue>)| {
        values.iter().filter_map(|value| line(name, value)).collect::<Vec<_>>()
    };
    let add = settings.add.0.iter().flat_map(values).collect();
    Edits { remove: settings.remove.iter().map(|name| bytes(name.value.as_str())).collect(), set, add }
}

/// The reason why rules may not edit a field, if any: in a request or a response, by `set` or by `add` or `remove`.
pub(crate) fn refusal(name: Name, request: bool, set: bool) -> Option<&'static str> {
    match name {
        Name::ContentLength | Name::TransferEncoding | Name::Trailer | Name::Te => {
            Some("the proxy frames messages itself")
        }
        Name::Connection | Name::KeepAlive | Name::ProxyConnection | Name::Upgrade => {
            Some("it is about one connection, and the proxy has its own")
        }
        Name::Host if !request => Some("a response has none"),
        Name::Host if !set => Some("a request has exactly one; it can be set"),
        _ => None,
    }
}

/// Warns of a template with a variable of nginx or a sample of HAProxy, which are sent as they stand.
pub(crate) fn warn_of_variables(text: &str, at: &Option<Place>, report: &mut Report) {
    let haproxy = || Some(&text[text.find("%[")?..]).and_then(|at| Some(&at[..=at.find(']')?]));
    let nginx = || {
        let rest = &text[text.find('$')?..];
        let len = rest[1..]
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .map_or(rest.len(), |len| len + 1);
        (len > 1).then_some(&rest[..len])
    };
    let Some(variable) = nginx().or_else(haproxy) else { return };
    let message = format!("\"{variable}\" is sent as it stands: there are no variables, but templates");
    let ours = match variable.trim_start_matches('$') {
        "%[src]" | "remote_addr" | "binary_remote_addr" => "{client} is the address of the client; ",
        "request_id" => "{id} is the name of the request; ",
        _ => "",
    };
    let help = format!(
        "{ours}{{host}}, {{path}}, {{query}} and {{target}} (path and query) stand for those of the request"
    );
    report.warning(at.clone(), message).help = Some(help);
}
