//! Text with places for parts of a request: the target of a redirect, and the values that edits write into
//! fields.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

/// Text with places for parts of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<TemplatePiece>);

/// A piece of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePiece {
    /// Text that is the same for every request.
    Literal(Box<str>),
    /// A place for a part of the request.
    Part(TemplatePart),
}

/// A part of a request for a [`Template`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplatePart {
    /// The address of the client.
    Client,
    /// The host, with the port if one was named.
    Host,
    /// The id of the request.
    Id,
    /// The path, as received.
    Path,
    /// The query with its question mark.
    Query,
    /// `http` or `https`.
    Scheme,
    /// Path and query, as received.
    Target,
    /// The cipher suite.
    TlsCipher,
    /// The SHA-256 digest of the client's certificate.
    TlsClientCertificate,
    /// Whether the TLS session was resumed.
    TlsResumed,
    /// The name that the client asked for in the handshake.
    TlsServerName,
    /// The version of TLS.
    TlsVersion,
}

/// The values for the places of a template.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestParts<'a> {
    /// The address of the client, if it has one.
    pub client: Option<IpAddr>,
    /// The unique id of the request.
    pub id: &'a str,
    /// `http` or `https`.
    pub scheme: &'a str,
    /// The host, with the port if one was named.
    pub host: &'a [u8],
    /// Path and query.
    pub target: &'a [u8],
    /// The TLS of the client's connection; `None` if it has none, or if the response may be for other clients.
    pub tls: Option<TlsParts<'a>>,
}

/// The parts that a TLS connection provides.
#[derive(Clone, Copy, Debug)]
pub struct TlsParts<'a> {
    /// The version, such as `TLSv1.3`.
    pub version: &'a str,
    /// The cipher suite by the name that IANA registered.
    pub cipher: &'a str,
    /// The name that the client asked for; empty if none.
    pub server_name: &'a str,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
    /// The SHA-256 digest of the client's certificate in hexadecimal; empty if it has none.
    pub client_certificate: &'a str,
}

impl TemplatePart {
    /// All parts.
    pub const ALL: [TemplatePart; 12] = [
        TemplatePart::Client,
        TemplatePart::Host,
        TemplatePart::Id,
        TemplatePart::Path,
        TemplatePart::Query,
        TemplatePart::Scheme,
        TemplatePart::Target,
        TemplatePart::TlsCipher,
        TemplatePart::TlsClientCertificate,
        TemplatePart::TlsResumed,
        TemplatePart::TlsServerName,
        TemplatePart::TlsVersion,
    ];

    /// The name of the part, as written in braces in a template.
    pub const fn name(self) -> &'static str {
        match self {
            TemplatePart::Client => "client",
            TemplatePart::Host => "host",
            TemplatePart::Id => "id",
            TemplatePart::Path => "path",
            TemplatePart::Query => "query",
            TemplatePart::Scheme => "scheme",
            TemplatePart::Target => "target",
            TemplatePart::TlsCipher => "tls_cipher",
            TemplatePart::TlsClientCertificate => "tls_client_certificate",
            TemplatePart::TlsResumed => "tls_resumed",
            TemplatePart::TlsServerName => "tls_server_name",
            TemplatePart::TlsVersion => "tls_version",
        }
    }

    /// Whether it is a property of the client's TLS connection.
    pub const fn is_of_tls(self) -> bool {
        matches!(
            self,
            TemplatePart::TlsCipher
                | TemplatePart::TlsClientCertificate
                | TemplatePart::TlsResumed
                | TemplatePart::TlsServerName
                | TemplatePart::TlsVersion
        )
    }

    /// Its text, if it is a property of the client's TLS connection.
    fn of_tls<'t>(self, tls: &TlsParts<'t>) -> &'t str {
        match self {
            TemplatePart::TlsCipher => tls.cipher,
            TemplatePart::TlsClientCertificate => tls.client_certificate,
            TemplatePart::TlsResumed if tls.resumed => "true",
            TemplatePart::TlsResumed => "false",
            TemplatePart::TlsServerName => tls.server_name,
            TemplatePart::TlsVersion => tls.version,
            _ => "",
        }
    }
}

impl Template {
    /// The template of these pieces, in this order.
    pub fn new(pieces: Vec<TemplatePiece>) -> Template {
        Template(pieces)
    }

    /// The text for a request. `{query}` includes its question mark. Parts that the request does not have are
    /// omitted.
    pub fn fill(&self, request: &RequestParts<'_>) -> Cow<'_, [u8]> {
        if let [TemplatePiece::Literal(text)] = &self.0[..] {
            return Cow::Borrowed(text.as_bytes());
        }
        let target = request.target;
        let (path, query) =
            target.split_at(target.iter().position(|&byte| byte == b'?').unwrap_or(target.len()));
        let mut out = Vec::with_capacity(64 + target.len());
        for piece in &self.0 {
            let part = match piece {
                TemplatePiece::Literal(text) => text.as_bytes(),
                TemplatePiece::Part(TemplatePart::Host) => request.host,
                TemplatePiece::Part(TemplatePart::Id) => request.id.as_bytes(),
                TemplatePiece::Part(TemplatePart::Path) => path,
                TemplatePiece::Part(TemplatePart::Query) => query,
                TemplatePiece::Part(TemplatePart::Scheme) => request.scheme.as_bytes(),
                TemplatePiece::Part(TemplatePart::Target) => target,
                TemplatePiece::Part(part) if part.is_of_tls() => {
                    request.tls.as_ref().map_or("", |tls| part.of_tls(tls)).as_bytes()
                }
                TemplatePiece::Part(_) => {
                    let client = request.client.map(|client| client.to_string()).unwrap_or_default();
                    out.extend_from_slice(client.as_bytes());
                    continue;
                }
            };
            out.extend_from_slice(part);
        }
        Cow::Owned(out)
    }

    /// Whether it is the same for every request.
    pub fn is_constant(&self) -> bool {
        self.0.iter().all(|piece| matches!(piece, TemplatePiece::Literal(_)))
    }

    /// Whether it uses the host of the request.
    pub fn needs_host(&self) -> bool {
        self.has(TemplatePart::Host)
    }

    /// Whether it uses parts that differ between clients or requests.
    pub fn is_of_one_request(&self) -> bool {
        self.needs_client() || self.needs_id() || self.needs_tls()
    }

    /// Whether it uses the address of the client.
    pub fn needs_client(&self) -> bool {
        self.has(TemplatePart::Client)
    }

    /// Whether it uses the id of the request.
    pub fn needs_id(&self) -> bool {
        self.has(TemplatePart::Id)
    }

    /// Whether it uses properties of the client's TLS connection.
    pub fn needs_tls(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, TemplatePiece::Part(part) if part.is_of_tls()))
    }

    fn has(&self, part: TemplatePart) -> bool {
        self.0.contains(&TemplatePiece::Part(part))
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            TemplatePiece::Literal(text) => f.write_str(&text.replace('{', "{{")),
            TemplatePiece::Part(part) => write!(f, "{{{}}}", part.name()),
        })
    }
}
