//! Messages as they were read from the wire.

use std::fmt;

/// Fields in the order, case and repetition in which they came. Bytes are taken for Latin-1, so that none is lost.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Fields(pub(crate) Vec<(String, String)>);

impl Fields {
    /// The first value of `name`, in any case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).into_iter().next()
    }

    /// Every value of `name`, in any case.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str()).collect()
    }

    /// Whether there is a field `name`.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The values of `name` as one list.
    pub fn list(&self, name: &str) -> String {
        self.all(name).join(", ")
    }

    /// The names, as written.
    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The names and values, as written.
    pub fn lines(&self) -> Vec<(&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self.0.iter().map(|(name, value)| (name, value))).finish()
    }
}

/// A request, as an origin received it.
#[derive(Clone, Default)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The target, as it stood in the request line.
    pub target: String,
    /// The version, `HTTP/1.1`.
    pub version: String,
    /// The fields of the head.
    pub fields: Fields,
    /// The body, without its framing.
    pub body: Vec<u8>,
    /// The fields after a chunked body.
    pub trailers: Fields,
    /// Whether the body came whole.
    pub whole: bool,
    /// Which request it was of all that the origin received, from 1.
    pub serial: usize,
    /// Which connection it came on of all that the origin accepted, from 1.
    pub connection: usize,
}

impl Request {
    /// The first value of the field `name`.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name)
    }

    /// The target without its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        latin1(&self.body)
    }
}

/// A response, as a client received it.
#[derive(Clone, Default)]
pub struct Response {
    /// The version, `HTTP/1.1`.
    pub version: String,
    /// The status code.
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// The fields of the head.
    pub fields: Fields,
    /// The body, without its framing.
    pub body: Vec<u8>,
    /// The fields after a chunked body.
    pub trailers: Fields,
    /// The sizes of the chunks of a chunked body, in order.
    pub chunks: Vec<usize>,
    /// Interim responses (1xx) that came before, in order.
    pub interim: Vec<Response>,
}

impl Response {
    /// The first value of the field `name`.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        latin1(&self.body)
    }

    /// Whether Cache-Status (RFC 9211) says that the response came from the store.
    pub fn is_hit(&self) -> bool {
        self.cache_status().split(';').any(|parameter| parameter.trim() == "hit")
    }

    /// The last member of Cache-Status, the one of the cache nearest to the client; empty without the field.
    pub fn cache_status(&self) -> String {
        let list = self.fields.list("cache-status");
        list.rsplit(", ").next().unwrap_or_default().to_owned()
    }

    /// The value of a parameter of Cache-Status's last member; the empty string for one without value.
    pub fn cache_parameter(&self, name: &str) -> Option<String> {
        self.cache_status().split(';').skip(1).find_map(|parameter| {
            let (key, value) = parameter.trim().split_once('=').unwrap_or((parameter.trim(), ""));
            (key == name).then(|| value.trim_matches('"').to_owned())
        })
    }

    /// Age, in seconds.
    ///
    /// # Panics
    /// If there is none or it is not a number.
    #[track_caller]
    pub fn age(&self) -> u64 {
        self.field("age").and_then(|age| age.parse().ok()).unwrap_or_else(|| panic!("no Age in {self:?}"))
    }

    /// The status with which the message checks out as `status`, for chaining.
    ///
    /// # Panics
    /// If it is another.
    #[track_caller]
    pub fn expect(self, status: u16) -> Response {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "[{} {} {} {:?}", self.method, self.target, self.version, self.fields)?;
        show_body(&self.body, &self.trailers, out)
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.interim.iter().try_for_each(|interim| write!(out, "{interim:?} "))?;
        write!(out, "[{} {} {} {:?}", self.version, self.status, self.reason, self.fields)?;
        show_body(&self.body, &self.trailers, out)
    }
}

/// The beginning of a body, which is all that a person wants to see of a long one.
fn show_body(body: &[u8], trailers: &Fields, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    const SHOWN: usize = 200;
    write!(out, " {} bytes: {:?}", body.len(), latin1(&body[..body.len().min(SHOWN)]))?;
    if !trailers.0.is_empty() {
        write!(out, " {trailers:?}")?;
    }
    out.write_str("]")
}

/// Bytes as text, each byte the character of the same number.
pub(crate) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| byte as char).collect()
}

/// The fields in `lines`, which have no line ends.
pub(crate) fn parse_fields<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Result<Fields, String> {
    let mut fields = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let text = latin1(line);
        let (name, value) =
            text.split_once(':').ok_or_else(|| format!("no colon in the field line {text:?}"))?;
        if name.is_empty() || name.contains([' ', '\t']) || text.contains(['\r', '\n', '\0']) {
            return Err(format!("malformed field line {text:?}"));
        }
        fields.push((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()));
    }
    Ok(Fields(fields))
}
