//! FastCGI as an application sees it: requests read from a connection, and records to answer with.

use crate::{Conn, Listener, Trouble};

/// Output.
pub const STDOUT: u8 = 6;
/// Error messages.
pub const STDERR: u8 = 7;
/// The end of a response.
pub const END: u8 = 3;

const BEGIN: u8 = 1;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;

/// The role of an application that answers requests, in its two bytes.
const RESPONDER: [u8; 2] = [0, 1];

/// A request that came to an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgiRequest {
    /// Its number on the connection.
    pub id: u16,
    /// Whether the connection is to be kept after it.
    pub keep: bool,
    /// The parameters in their order.
    pub params: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl CgiRequest {
    /// The value of a parameter that came exactly once.
    ///
    /// # Panics
    /// If it came more often.
    #[track_caller]
    pub fn param(&self, name: &str) -> Option<&str> {
        let values: Vec<_> = self.params.iter().filter(|(sent, _)| sent == name).collect();
        assert!(values.len() < 2, "{name} came more than once: {values:?}");
        values.first().map(|(_, value)| &**value)
    }

    /// A response to it: `output` and its end.
    pub fn response(&self, output: &str) -> Vec<u8> {
        let end = record_of(self.id, END, &[0; 8], 0);
        [record_of(self.id, STDOUT, output.as_bytes(), 0), end].concat()
    }
}

impl Listener {
    /// Where it listens, as the address of a FastCGI backend.
    pub fn fcgi_url(&self) -> String {
        match self.url().strip_prefix("http") {
            Some(rest) => format!("fcgi{rest}"),
            None => format!("fcgi+{}", self.url()),
        }
    }
}

impl Conn {
    /// Reads a record of request 1: its type and its content.
    #[track_caller]
    pub fn record(&mut self) -> (u8, Vec<u8>) {
        let (id, kind, content) = self.record_of_any();
        assert_eq!(id, 1, "a record of request 1");
        (kind, content)
    }

    /// Reads a record: the request that it is of, its type and its content.
    #[track_caller]
    fn record_of_any(&mut self) -> (u16, u8, Vec<u8>) {
        self.try_record().unwrap_or_else(|trouble| panic!("no record: {trouble:?}"))
    }

    fn try_record(&mut self) -> Result<(u16, u8, Vec<u8>), Trouble> {
        let header = self.try_read(8)?;
        if header[0] != 1 {
            return Err(Trouble::Malformed(format!("the version in {header:?}")));
        }
        let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let content = self.try_read(number(4).into())?;
        self.try_read(header[6].into())?;
        Ok((number(2), header[1], content))
    }

    /// Reads the content of the next record, which has to be of this request and type.
    fn try_record_of(&mut self, id: u16, kind: u8) -> Result<Vec<u8>, Trouble> {
        match self.try_record()? {
            (of, found, content) if (of, found) == (id, kind) => Ok(content),
            (of, found, _) => Err(Trouble::Malformed(format!("{found} of {of}, not {kind} of {id}"))),
        }
    }

    /// Reads the beginning of a request and its parameters, and leaves the body unread.
    #[track_caller]
    pub fn cgi_head(&mut self) -> CgiRequest {
        self.try_cgi_head().unwrap_or_else(|trouble| panic!("no request: {trouble:?}"))
    }

    fn try_cgi_head(&mut self) -> Result<CgiRequest, Trouble> {
        let (id, kind, begin) = self.try_record()?;
        if (kind, begin.len()) != (BEGIN, 8) || begin[..2] != RESPONDER {
            return Err(Trouble::Malformed(format!("{kind} {begin:?}, not the beginning of a request")));
        }
        let mut params = Vec::new();
        loop {
            let content = self.try_record_of(id, PARAMS)?;
            if content.is_empty() {
                break;
            }
            let pairs = pairs(&content);
            params.append(&mut pairs.ok_or_else(|| Trouble::Malformed("a parameter is cut off".to_owned()))?);
        }
        Ok(CgiRequest { id, keep: begin[2] & 1 == 1, params, body: Vec::new() })
    }

    /// Reads a whole request.
    #[track_caller]
    pub fn cgi_request(&mut self) -> CgiRequest {
        self.try_cgi_request().unwrap_or_else(|trouble| panic!("no request: {trouble:?}"))
    }

    /// Reads a whole request, if one comes.
    pub fn try_cgi_request(&mut self) -> Result<CgiRequest, Trouble> {
        let mut request = self.try_cgi_head()?;
        loop {
            let mut content = self.try_record_of(request.id, STDIN)?;
            if content.is_empty() {
                return Ok(request);
            }
            request.body.append(&mut content);
        }
    }

    /// Sends `output` and the end of the response to request 1.
    #[track_caller]
    pub fn cgi_response(&mut self, output: &str) -> &mut Conn {
        self.send([record(STDOUT, output), end(0)].concat())
    }
}

/// A record of request 1.
pub fn record(kind: u8, content: impl AsRef<[u8]>) -> Vec<u8> {
    record_of(1, kind, content.as_ref(), 0)
}

/// A record with padding, of any request.
pub fn record_of(id: u16, kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
    let [id_high, id_low] = id.to_be_bytes();
    let [high, low] = u16::try_from(content.len()).expect("a record has at most 65535 bytes").to_be_bytes();
    let mut record = vec![1, kind, id_high, id_low, high, low, padding, 0];
    record.extend_from_slice(content);
    record.resize(record.len() + usize::from(padding), 0);
    record
}

/// The record that ends a response. `status` is that of the protocol: 0 is success, 2 means overloaded.
pub fn end(status: u8) -> Vec<u8> {
    record(END, [0, 0, 0, 0, status, 0, 0, 0])
}

/// The name-value pairs in a record, none of which may be cut off: php-fpm reads each record by itself.
fn pairs(content: &[u8]) -> Option<Vec<(String, String)>> {
    let mut rest = content;
    let mut pairs = Vec::new();
    while !rest.is_empty() {
        let (name, after) = length(rest)?;
        let (value, after) = length(after)?;
        let (text, after) = after.split_at_checked(name + value)?;
        let text = String::from_utf8_lossy(text);
        pairs.push((text[..name].to_owned(), text[name..].to_owned()));
        rest = after;
    }
    Some(pairs)
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match *bytes {
        [short @ ..128, ref rest @ ..] => Some((short.into(), rest)),
        [a, b, c, d, ref rest @ ..] => Some((u32::from_be_bytes([a & 0x7f, b, c, d]) as usize, rest)),
        _ => None,
    }
}
