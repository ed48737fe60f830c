//! Requests as a client writes them.

/// A request to be sent: the request line, `Host: www.example` unless told otherwise, then the fields in the order in which
/// they were added.
#[derive(Clone, Debug)]
pub struct Req {
    pub(crate) method: String,
    target: String,
    version: &'static str,
    host: Option<String>,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

/// A GET for `target`.
pub fn get(target: &str) -> Req {
    request("GET", target)
}

/// A HEAD for `target`.
pub fn head(target: &str) -> Req {
    request("HEAD", target)
}

/// A POST of `body` to `target`.
pub fn post(target: &str, body: &str) -> Req {
    request("POST", target).body(body)
}

/// A request with `method` for `target`.
pub fn request(method: &str, target: &str) -> Req {
    Req {
        method: method.to_owned(),
        target: target.to_owned(),
        version: "HTTP/1.1",
        host: Some("www.example".to_owned()),
        fields: Vec::new(),
        body: Vec::new(),
    }
}

impl Req {
    /// Adds a field.
    pub fn with(mut self, name: &str, value: &str) -> Req {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets Host.
    pub fn host(mut self, host: &str) -> Req {
        self.host = Some(host.to_owned());
        self
    }

    /// Leaves Host out.
    pub fn without_host(mut self) -> Req {
        self.host = None;
        self
    }

    /// Makes it a request of HTTP/1.0.
    pub fn http10(mut self) -> Req {
        self.version = "HTTP/1.0";
        self
    }

    /// Sets the body, and Content-Length with it.
    pub fn body(mut self, body: impl AsRef<[u8]>) -> Req {
        self.body = body.as_ref().to_vec();
        let length = self.body.len().to_string();
        self.with("Content-Length", &length)
    }

    /// Makes `chunks` the body, each a chunk.
    pub fn chunked(self, chunks: &[&str]) -> Req {
        let mut body = String::new();
        for chunk in chunks {
            body += &format!("{:x}\r\n{chunk}\r\n", chunk.len());
        }
        let mut request = self.with("Transfer-Encoding", "chunked");
        request.body = (body + "0\r\n\r\n").into_bytes();
        request
    }

    /// The request as it goes onto the wire.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} {}\r\n", self.method, self.target, self.version);
        if let Some(host) = &self.host {
            text += &format!("Host: {host}\r\n");
        }
        for (name, value) in &self.fields {
            text += &format!("{name}: {value}\r\n");
        }
        text += "\r\n";
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}
