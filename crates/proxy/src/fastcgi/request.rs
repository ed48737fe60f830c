//! The parameters of a request: those of CGI/1.1 (RFC 3875 §4), and those that nginx sends and PHP expects.

use super::script::Script;
use crate::request::requester::Requester;
use sandarac_config::FastCgiConfig;
use sandarac_message::target::{Authority, Scheme, split_query};
use sandarac_message::{Field, Fields, Name};
use sandarac_wire::fastcgi::{ParamTooLong, Request, RequestId};
use sandarac_wire::h1::BodyFraming;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A request to an application, beside its method, target, fields and body.
pub(crate) struct CgiRequest<'a> {
    pub(super) config: &'a FastCgiConfig,
    pub(super) root: Arc<Path>,
    pub(super) script: Script,
    /// The name that the application is told, if it is not that of the script.
    pub(super) script_name: Option<Vec<u8>>,
    pub(super) requester: Requester<'a>,
    /// The transaction number of the request that it is for.
    pub(crate) transaction: u64,
}

/// The software that this program calls itself.
const SOFTWARE: &[u8] = concat!("sandarac/", env!("CARGO_PKG_VERSION")).as_bytes();

/// Room for the parameters beside the fields.
const USUAL_PARAMS: usize = 1024;

/// Writes the records of a request before its body. `fields` are those of the request, then those for this
/// backend alone; `id` is its number on the connection, and `keep` asks the application to keep the
/// connection.
///
/// The protocol and the port do not depend on the connection of the client: a response may be stored, and
/// serves clients that came otherwise.
pub(crate) fn encode(
    cgi: &CgiRequest<'_>,
    method: &[u8],
    target: &[u8],
    fields: [Fields<'_>; 2],
    framing: BodyFraming,
    (id, keep): (RequestId, bool),
) -> Result<Vec<u8>, ParamTooLong> {
    let CgiRequest { config, root, script, requester, .. } = cgi;
    let name = cgi.script_name.as_ref().unwrap_or(&script.name);
    let room =
        USUAL_PARAMS + 2 * target.len() + fields.iter().map(|fields| fields.encoded_len()).sum::<usize>();
    let mut out = Vec::with_capacity(room);
    let mut params = Params { request: Request::begin(&mut out, id, keep), config };
    let root = root.as_os_str().as_bytes();
    let mut joined = Vec::with_capacity(root.len() + script.name.len() + script.path_info.len());
    joined.extend_from_slice(root.strip_suffix(b"/").unwrap_or(root));
    joined.extend_from_slice(&script.name);
    params.add(b"SCRIPT_FILENAME", &joined)?;
    params.add(b"SCRIPT_NAME", name)?;
    if !script.path_info.is_empty() {
        params.add(b"PATH_INFO", &script.path_info)?;
    }
    joined.clear();
    joined.extend_from_slice(name);
    joined.extend_from_slice(&script.path_info);
    params.add(b"DOCUMENT_URI", &joined)?;
    params.add(b"DOCUMENT_ROOT", root)?;
    params.add(b"REQUEST_METHOD", method)?;
    params.add(b"REQUEST_URI", target)?;
    params.add(b"QUERY_STRING", split_query(target).1.unwrap_or_default())?;
    let all = fields[0];
    params.add(b"CONTENT_TYPE", all.get(Name::ContentType).unwrap_or_default())?;
    let mut digits = Digits::default();
    match framing {
        BodyFraming::Length(length) => params.add(b"CONTENT_LENGTH", digits.of(length))?,
        _ => params.add(b"CONTENT_LENGTH", b"")?,
    }
    params.add(b"GATEWAY_INTERFACE", b"CGI/1.1")?;
    params.add(b"SERVER_SOFTWARE", SOFTWARE)?;
    params.add(b"SERVER_PROTOCOL", b"HTTP/1.1")?;
    params.add(b"REQUEST_SCHEME", requester.scheme.text().as_bytes())?;
    if requester.scheme == Scheme::Https {
        params.add(b"HTTPS", b"on")?;
    }
    let authority = Authority::parse(requester.host);
    params.add(b"SERVER_NAME", authority.map_or(&b"localhost"[..], |authority| authority.host))?;
    let port = authority.and_then(|authority| authority.port).unwrap_or(requester.scheme.default_port());
    params.add(b"SERVER_PORT", digits.of(port.into()))?;
    if let Some(address) = requester.visitor.or(requester.ip) {
        params.add(b"REMOTE_ADDR", address.to_string().as_bytes())?;
        if Some(address) == requester.ip
            && let Some(port) = requester.port
        {
            params.add(b"REMOTE_PORT", digits.of(port.into()))?;
        }
    }
    // PHP built to be safe from being called directly requires it.
    params.add(b"REDIRECT_STATUS", b"200")?;
    params.fields(fields)?;
    for (name, value) in config.params.iter().filter(|(_, value)| !value.is_empty()) {
        params.request.param(name.as_bytes(), value.as_bytes())?;
    }
    params.request.finish();
    Ok(out)
}

struct Params<'o, 'a> {
    request: Request<'o>,
    config: &'a FastCgiConfig,
}

impl Params<'_, '_> {
    /// Adds a parameter, unless the configuration has one of this name.
    fn add(&mut self, name: &[u8], value: &[u8]) -> Result<(), ParamTooLong> {
        if self.config.params.iter().any(|(configured, _)| configured.as_bytes() == name) {
            return Ok(());
        }
        self.request.param(name, value)
    }

    /// Adds the fields of the request, each name once: `HTTP_`, and the name in capitals with `_` for `-`.
    fn fields(&mut self, fields: [Fields<'_>; 2]) -> Result<(), ParamTooLong> {
        let (mut name, mut value) = (Vec::with_capacity(64), Vec::new());
        let all = || fields[0].iter().chain(fields[1].iter());
        for (at, field) in all().enumerate().filter(|(_, field)| is_param(field)) {
            let is_same = |other: &Field<'_>| other.id == field.id && other.is(field.name);
            if all().take(at).any(|earlier| is_same(&earlier)) {
                continue;
            }
            name.clear();
            name.extend_from_slice(b"HTTP_");
            name.extend(
                field.name.iter().map(|byte| if *byte == b'-' { b'_' } else { byte.to_ascii_uppercase() }),
            );
            let mut later = all().skip(at + 1).filter(is_same).peekable();
            if later.peek().is_none() {
                self.add(&name, field.value)?;
                continue;
            }
            value.clear();
            value.extend_from_slice(field.value);
            for other in later {
                // Cookies have another separator (RFC 6265 §4.2.1).
                value.extend_from_slice(if field.id == Name::Cookie { b"; " } else { b", " });
                value.extend_from_slice(other.value);
            }
            self.add(&name, &value)?;
        }
        Ok(())
    }
}

/// Whether a field becomes a parameter. Names with other bytes than letters, digits and hyphens are left out:
/// in a parameter they would look like another field (`X_Foo` like `X-Foo`, and to PHP also `X.Foo`). `Proxy`
/// would choose the proxy of the application's own requests (httpoxy).
fn is_param(field: &Field<'_>) -> bool {
    !matches!(field.id, Name::ContentType | Name::ContentLength | Name::Expect)
        && field.name.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !field.is(b"Proxy")
}

/// A number as text, without an allocation.
#[derive(Default)]
struct Digits([u8; 20]);

impl Digits {
    fn of(&mut self, number: u64) -> &[u8] {
        let mut rest = &mut self.0[..];
        write!(rest, "{number}").expect("20 digits are enough");
        let left = rest.len();
        &self.0[..self.0.len() - left]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fastcgi::Application;
    use sandarac_message::FieldsBuf;

    /// The parameters of a request, as an application reads them.
    fn params(out: &[u8]) -> Vec<(String, String)> {
        let (mut content, mut rest) = (Vec::new(), &out[16..]);
        while let [1, 4, 0, 1, high, low, 0, 0, after @ ..] = rest {
            let (record, next) = after.split_at(usize::from(u16::from_be_bytes([*high, *low])));
            content.extend_from_slice(record);
            rest = next;
        }
        assert!(rest.is_empty());
        let mut pairs = Vec::new();
        let mut rest = &content[..];
        let length = |rest: &mut &[u8]| match **rest {
            [short @ ..128, ..] => {
                *rest = &rest[1..];
                usize::from(short)
            }
            [a, b, c, d, ..] => {
                *rest = &rest[4..];
                u32::from_be_bytes([a & 0x7f, b, c, d]) as usize
            }
            _ => panic!("a length is cut off"),
        };
        while !rest.is_empty() {
            let (name, value) = (length(&mut rest), length(&mut rest));
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            pairs.push((text(&rest[..name]), text(&rest[name..name + value])));
            rest = &rest[name + value..];
        }
        pairs
    }

    fn application(params: &[(&str, &str)]) -> Application {
        let config = FastCgiConfig {
            root: "/srv/wiki".into(),
            local: false,
            real_path: false,
            extensions: vec![".php".to_owned()],
            index: "index.php".to_owned(),
            front_controller: Some("/index.php".to_owned()),
            params: params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            keep_alive: false,
            max_idle: 1,
        };
        Application::new("php", &config)
    }

    fn requester(scheme: Scheme, host: &[u8]) -> Requester<'_> {
        Requester {
            ip: Some("192.0.2.7".parse().unwrap()),
            port: Some(4711),
            visitor: None,
            trusted: false,
            scheme,
            host,
            tls: None,
            certificate_forward: None,
        }
    }

    /// Regression: a check of php-fpm's `ping.path` had the front controller as its SCRIPT_NAME, so the
    /// application answered it with 404.
    #[test]
    fn a_check_names_its_own_path_as_the_script_and_still_runs_the_front_controller() {
        for (target, name, file) in [
            ("/ping", "/ping", "/srv/wiki/index.php"),
            ("/up?x", "/up", "/srv/wiki/index.php"),
            ("/", "/index.php", "/srv/wiki/index.php"),
            ("/index.php/up", "/index.php", "/srv/wiki/index.php"),
        ] {
            let application = application(&[]);
            let cgi = application.own_request(target.as_bytes(), &requester(Scheme::Http, b"a"));
            let none = Fields::default();
            let out = encode(
                &cgi,
                b"GET",
                target.as_bytes(),
                [none, none],
                BodyFraming::None,
                (RequestId::FIRST, false),
            );
            let sent = params(&out.unwrap());
            let of = |wanted: &str| sent.iter().find(|(name, _)| name == wanted).unwrap().1.clone();
            assert_eq!((&*of("SCRIPT_NAME"), &*of("SCRIPT_FILENAME")), (name, file), "{target}");
        }
    }

    fn sent(application: &Application, target: &str, fields: &[(&str, &str)]) -> Vec<(String, String)> {
        let fields: FieldsBuf = fields.iter().copied().collect();
        let requester = requester(Scheme::Https, b"wiki.example:8443");
        let cgi = application.request(target.as_bytes(), &requester, 1, None).unwrap();
        let own = FieldsBuf::new();
        let both = [fields.view(), own.view()];
        let out = encode(
            &cgi,
            b"POST",
            target.as_bytes(),
            both,
            BodyFraming::Length(12),
            (RequestId::FIRST, false),
        )
        .unwrap();
        params(&out)
    }

    #[test]
    fn a_request_is_described_as_nginx_does_it() {
        let fields = [
            ("Host", "wiki.example:8443"),
            ("Content-Type", "text/plain"),
            ("Content-Length", "12"),
            ("Expect", "100-continue"),
        ];
        let sent = sent(&application(&[]), "/index.php/AC%2FDC?a=b%20c", &fields);
        let expected = [
            ("SCRIPT_FILENAME", "/srv/wiki/index.php"),
            ("SCRIPT_NAME", "/index.php"),
            ("PATH_INFO", "/AC/DC"),
            ("DOCUMENT_URI", "/index.php/AC/DC"),
            ("DOCUMENT_ROOT", "/srv/wiki"),
            ("REQUEST_METHOD", "POST"),
            ("REQUEST_URI", "/index.php/AC%2FDC?a=b%20c"),
            ("QUERY_STRING", "a=b%20c"),
            ("CONTENT_TYPE", "text/plain"),
            ("CONTENT_LENGTH", "12"),
            ("GATEWAY_INTERFACE", "CGI/1.1"),
            ("SERVER_SOFTWARE", concat!("sandarac/", env!("CARGO_PKG_VERSION"))),
            ("SERVER_PROTOCOL", "HTTP/1.1"),
            ("REQUEST_SCHEME", "https"),
            ("HTTPS", "on"),
            ("SERVER_NAME", "wiki.example"),
            ("SERVER_PORT", "8443"),
            ("REMOTE_ADDR", "192.0.2.7"),
            ("REMOTE_PORT", "4711"),
            ("REDIRECT_STATUS", "200"),
            ("HTTP_HOST", "wiki.example:8443"),
        ];
        assert_eq!(sent, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn every_name_of_a_field_comes_once_and_none_that_could_be_taken_for_another() {
        let fields = [
            ("X-Foo", "real"),
            ("X_Foo", "forged"),
            ("X.Foo", "forged"),
            ("Proxy", "http://evil"),
            ("Cookie", "a=1"),
            ("x-foo", "again"),
            ("cookie", "b=2"),
        ];
        let sent = sent(&application(&[]), "/", &fields);
        let of_fields: Vec<_> = sent.iter().filter(|(name, _)| name.starts_with("HTTP_")).collect();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(of_fields, [&pair("HTTP_X_FOO", "real, again"), &pair("HTTP_COOKIE", "a=1; b=2")]);
    }

    #[test]
    fn configured_parameters_replace_and_remove() {
        let application = application(&[
            ("APP_ENV", "prod"),
            ("SERVER_NAME", "_"),
            ("HTTP_X_A", "fixed"),
            ("REMOTE_PORT", ""),
        ]);
        let sent = sent(&application, "/", &[("X-A", "client")]);
        let values = |name: &str| {
            sent.iter().filter(|(sent, _)| sent == name).map(|(_, value)| &**value).collect::<Vec<_>>()
        };
        assert_eq!(values("APP_ENV"), ["prod"]);
        assert_eq!(values("SERVER_NAME"), ["_"]);
        assert_eq!(values("HTTP_X_A"), ["fixed"]);
        assert!(values("REMOTE_PORT").is_empty());
    }
}
